//===- HostTensorTest.cpp - Strided tensors of doubles --------------------===//

#include "lib/Support/HostTensor.h"
#include <gtest/gtest.h>

using namespace tessera;

TEST(HostTensor, StorageOrderGivesStrides) {
  HostTensor tensor = HostTensor::ordered({2, 3, 5, 4}, {0, 2, 1, 3});
  EXPECT_EQ(tensor.strides, (std::vector<int64_t>{60, 4, 12, 1}));
  EXPECT_EQ(tensor.data.size(), 120u);
  EXPECT_EQ(HostTensor::contiguous({2, 3, 5, 4}).strides, (std::vector<int64_t>{60, 20, 4, 1}));
}

TEST(HostTensor, VisitsInCOrder) {
  HostTensor tensor = HostTensor::ordered({2, 3}, {1, 0});
  std::vector<int64_t> offsets;
  tensor.forEach([&](int64_t linear, int64_t offset) {
    EXPECT_EQ(linear, static_cast<int64_t>(offsets.size()));
    offsets.push_back(offset);
  });
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
}

TEST(HostTensor, CheckSaysWhatIsWrong) {
  HostTensor tensor = HostTensor::contiguous({2, 3});
  EXPECT_EQ(tensor.check(), "");
  tensor.strides = {4, 1};
  EXPECT_EQ(tensor.check(), "reaches element 6 of a buffer of 6");
  tensor.strides = {-3, 1};
  EXPECT_EQ(tensor.check(), "has the negative stride -3 along dimension 0");
  tensor.strides = {INT64_MAX, INT64_MAX};
  EXPECT_NE(tensor.check().find("too large"), std::string::npos);
  tensor.strides = {1};
  EXPECT_EQ(tensor.check(), "has 2 extents and 1 strides");
  tensor = HostTensor::contiguous({0, 3});
  tensor.strides = {1000, 1};
  EXPECT_EQ(tensor.check(), "");
}

TEST(HostTensor, CountsOrRefuses) {
  EXPECT_EQ(countElements({}), 1);
  EXPECT_EQ(countElements({INT64_MAX, 0, INT64_MAX}), 0);
  EXPECT_EQ(countElements({INT64_MAX, 2}), -1);
  EXPECT_EQ(countElements({3, -1}), -1);
}

TEST(HostTensor, HoldsIntegersThatNoDoubleHolds) {
  const ElementType &type = *getElementType("i64");
  HostTensor tensor = HostTensor::contiguous({2});
  tensor.data = {-3, 0x1p70};
  tensor.convertToIntegers();
  EXPECT_EQ(tensor.getNumber(0), -3);
  EXPECT_EQ(tensor.getNumber(1), 0x1p63);
  HostTensor other = tensor;
  for (int64_t integer : {std::numeric_limits<int64_t>::max() - 2, (int64_t(1) << 53) + 1,
                          std::numeric_limits<int64_t>::min(), int64_t(0x7FF8) << 48}) {
    char bits[8], back[8];
    writeBits(bits, 8, integer);
    tensor.decode(1, type, bits);
    tensor.encode(1, type, back);
    EXPECT_EQ(readBits(back, 8), static_cast<uint64_t>(integer));
    writeBits(bits, 8, integer + 1);
    other.decode(1, type, bits);
    EXPECT_EQ(tensor.getDistance(1, other, 1), 1);
    bool isLost = integer != std::numeric_limits<int64_t>::min() && integer % 2 != 0;
    EXPECT_EQ(HostTensor(tensor).convertToDoubles(),
              isLost ? std::optional(integer) : std::nullopt);
  }
  EXPECT_EQ(tensor.getDistance(0, other, 0), 0);
  tensor.data[1] = tensor.data[0];
  EXPECT_EQ(tensor.convertToDoubles(), std::nullopt);
  EXPECT_EQ(tensor.data, (std::vector<double>{-3, -3}));
}
