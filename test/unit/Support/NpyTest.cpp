//===- NpyTest.cpp - .npy files -------------------------------------------===//

#include "lib/Support/Npy.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace tessera;
using llvm::StringRef;

/// A file of format version 1.0.
static std::string makeFile(StringRef header, StringRef data) {
  std::string text = "\x93NUMPY";
  text += {'\1', '\0', static_cast<char>(header.size()), '\0'};
  return text + header.str() + data.str();
}
static std::string header(StringRef descr, StringRef shape) {
  return ("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n").str();
}
static HostTensor read(StringRef bytes) {
  llvm::Expected<HostTensor> tensor = parseNpy(bytes, "x.npy");
  if (tensor)
    return *tensor;
  ADD_FAILURE() << toString(tensor.takeError());
  return {};
}
static std::string readError(StringRef bytes) {
  llvm::Expected<HostTensor> tensor = parseNpy(bytes, "x.npy");
  return tensor ? "no error" : toString(tensor.takeError());
}

TEST(Npy, ReadsEachType) {
  std::string f4("\0\0\x80\x3f\0\0\0\xc0", 8); // 1, -2
  EXPECT_EQ(read(makeFile(header("<f4", "(2,)"), f4)).data, (std::vector<double>{1, -2}));
  std::string f8("\0\0\0\0\0\0\xf8\x3f", 8); // 1.5
  EXPECT_EQ(read(makeFile(header("<f8", "(1, 1)"), f8)).data, (std::vector<double>{1.5}));
  std::string f2("\0\x3c\x01\0\0\xfc", 6); // 1, 2^-24, -inf
  EXPECT_EQ(read(makeFile(header("<f2", "(3,)"), f2)).data,
            (std::vector<double>{1, 0x1p-24, -HUGE_VAL}));
  std::string i4("\xff\xff\xff\xff\0\0\0\x80", 8);
  EXPECT_EQ(read(makeFile(header("<i4", "(2,)"), i4)).data, (std::vector<double>{-1, -0x1p31}));
}

TEST(Npy, KeepsIntegersThatNoDoubleHolds) {
  std::string i8("\1\0\0\0\0\0\x20\0\xff\xff\xff\xff\xff\xff\xff\x7f", 16); // 2^53 + 1, 2^63 - 1
  HostTensor tensor = read(makeFile(header("<i8", "(2,)"), i8));
  EXPECT_TRUE(tensor.holdsIntegers);
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("tessera", "npy", path));
  ASSERT_FALSE(writeNpy(path, tensor, *getElementType("i64")));
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false);
  ASSERT_TRUE(static_cast<bool>(buffer));
  EXPECT_EQ((*buffer)->getBuffer().take_back(i8.size()), i8);
  llvm::sys::fs::remove(path);
}

TEST(Npy, ReadsScalarsEmptyArraysAndNumpysSpelling) {
  std::string one("\0\0\x80\x3f", 4);
  EXPECT_EQ(read(makeFile(header("<f4", "()"), one)).shape, std::vector<int64_t>());
  EXPECT_EQ(read(makeFile(header("<f4", "(0, 3)"), "")).shape, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(read(makeFile("{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"<f4\"}", one)).data,
            std::vector<double>{1});
}

TEST(Npy, WritesWhatItReads) {
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("tessera", "npy", path));
  HostTensor tensor = HostTensor::ordered({2, 3}, {1, 0});
  tensor.forEach([&](int64_t linear, int64_t offset) { tensor.data[offset] = linear + 0.25; });
  ASSERT_FALSE(writeNpy(path, tensor, *getElementType("f32")));
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false);
  ASSERT_TRUE(static_cast<bool>(buffer));
  // Data starts at a multiple of 64 bytes, as numpy.lib.format asks.
  EXPECT_EQ(((*buffer)->getBufferSize() - 6 * 4) % 64, 0u);
  HostTensor back = read((*buffer)->getBuffer());
  EXPECT_EQ(back.shape, tensor.shape);
  EXPECT_EQ(back.data, (std::vector<double>{0.25, 1.25, 2.25, 3.25, 4.25, 5.25}));
  llvm::sys::fs::remove(path);
  EXPECT_NE(toString(writeNpy("/nonexistent/x.npy", tensor, *getElementType("f32")))
                .find("cannot write '/nonexistent/x.npy'"),
            std::string::npos);
}

TEST(Npy, ExplainsWhatItRefuses) {
  EXPECT_EQ(readError("PK\3\4"),
            "x.npy: byte 0: not a .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(readError("\x93NUMPY"), "x.npy: byte 6: the file ends inside its header");
  EXPECT_EQ(readError(std::string("\x93NUMPY\7\0\0\0\0\0", 12)),
            "x.npy: byte 6: format version 7 is unknown; 1.0, 2.0 and 3.0 are read");
  EXPECT_EQ(readError(std::string("\x93NUMPY\1\0\x99\0{}", 12)),
            "x.npy: byte 10: the header has 153 bytes, the file only 2 more");
  EXPECT_EQ(readError(makeFile(header(">f4", "(1,)"), "abcd")),
            "x.npy: element type '>f4' is not read; save x.astype('<f4') (read are '<f2', '<f4', "
            "'|i1', '<i4', '<i8', '<f8')");
  EXPECT_EQ(readError(makeFile("{'fortran_order': True}", "")),
            "x.npy: byte 32: the array is in Fortran order; save numpy.ascontiguousarray(x)");
  EXPECT_EQ(readError(makeFile(header("<f4", "(2,)"), "abcd")),
            "x.npy: byte 68: a '<f4' array of shape (2) does not fill the 4 bytes that follow");
  EXPECT_EQ(readError(makeFile(header("<f4", "(4611686018427387904, 4)"), "")),
            "x.npy: byte 88: a '<f4' array of shape (4611686018427387904, 4) does not fill the 0 "
            "bytes that follow");
  EXPECT_EQ(readError(makeFile("{'shape': (1", "")),
            "x.npy: byte 22: expected ',' or ')' in 'shape'");
  EXPECT_EQ(readError(makeFile("{'descr': [('x', '<f4')]}", "")),
            "x.npy: byte 20: 'descr' is not one element type; arrays of structures are not read");
  EXPECT_EQ(readError(makeFile("{'descr': '<f4'}", "")),
            "x.npy: byte 26: the header lacks one of descr, fortran_order and shape");
}

TEST(Npy, TruncatedHeadersAreRefused) {
  std::string whole = makeFile(header("<f4", "(2, 3)"), "");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(readError(StringRef(whole).take_front(size)), "no error") << size;
}
