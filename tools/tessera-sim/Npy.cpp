//===- Npy.cpp - NumPy's array files --------------------------------------===//
#include "Npy.h"
#include "lib/Support/Files.h"
#include "llvm/ADT/StringExtras.h"

using namespace tessera::sim;
using llvm::Error;
using llvm::StringRef;

static Error refuseFile(StringRef path, const char *why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s: %s", path.str().c_str(), why);
}

/// The value of a key in the header, which is a Python dictionary literal.
static StringRef valueOf(StringRef header, StringRef key) {
  size_t at = header.find(("'" + key + "'").str());
  if (at == StringRef::npos)
    return "";
  return header.drop_front(at + key.size() + 2).ltrim(" :");
}

llvm::Expected<NpyArray> tessera::sim::readNpy(StringRef path) {
  auto file = tessera::readInput(path);
  if (!file)
    return refuseFile(path, file.getError().message().c_str());
  return parseNpy((*file)->getBuffer(), path);
}

llvm::Expected<NpyArray> tessera::sim::parseNpy(StringRef bytes, StringRef path) {
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12)
    return refuseFile(path, "not an .npy file");
  unsigned major = uint8_t(bytes[6]);
  size_t length = uint8_t(bytes[8]) | uint8_t(bytes[9]) << 8, start = 10;
  if (major >= 2) {
    length |= size_t(uint8_t(bytes[10])) << 16 | size_t(uint8_t(bytes[11])) << 24;
    start = 12;
  }
  if (start + length > bytes.size())
    return refuseFile(path, "truncated header");
  StringRef header = bytes.substr(start, length);
  NpyArray a;
  StringRef descr = valueOf(header, "descr");
  if (descr.size() < 4 || descr[0] != '\'')
    return refuseFile(path, "structured types are not read");
  descr = descr.drop_front().take_until([](char c) { return c == '\''; });
  if (descr.size() < 3)
    return refuseFile(path, "the header has no element type");
  if (descr.starts_with(">"))
    return refuseFile(path, "big-endian data");
  a.descr = descr.drop_front().str();
  if (valueOf(header, "fortran_order").starts_with("True"))
    return refuseFile(path, "Fortran order is not read");
  StringRef shape = valueOf(header, "shape").take_until([](char c) { return c == ')'; });
  if (!shape.consume_front("("))
    return refuseFile(path, "the header has no shape");
  llvm::SmallVector<StringRef, 4> parts;
  shape.split(parts, ',');
  for (StringRef p : parts) {
    uint64_t n;
    if (p.trim().empty())
      continue;
    if (p.trim().getAsInteger(10, n))
      return refuseFile(path, "the shape is no tuple of integers");
    a.shape.push_back(n);
  }
  StringRef data = bytes.drop_front(start + length);
  a.data.assign(data.bytes_begin(), data.bytes_end());
  return a;
}

Error tessera::sim::writeNpy(StringRef path, StringRef descr, llvm::ArrayRef<uint64_t> shape,
                             llvm::ArrayRef<uint8_t> data) {
  std::string header = ("{'descr': '" + llvm::Twine(descr.ends_with("1") ? "|" : "<") + descr +
                        "', 'fortran_order': False, 'shape': (")
                           .str();
  for (uint64_t n : shape)
    header += std::to_string(n) + ",";
  header += "), }";
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  return tessera::writeOutput(path, [&](llvm::raw_ostream &os) {
    os << "\x93NUMPY" << '\1' << '\0' << char(header.size() & 255) << char(header.size() >> 8)
       << header << llvm::toStringRef(data);
  });
}
