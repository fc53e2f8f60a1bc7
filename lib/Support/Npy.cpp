//===- Npy.cpp - NumPy's .npy files ---------------------------------------===//

#include "lib/Support/Npy.h"
#include "lib/Support/Files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <optional>

using namespace llvm;
using namespace llvm::support;

namespace tessera {

static constexpr StringLiteral magic = "\x93NUMPY";

namespace {
/// Reads the header of one file. The header is a Python dictionary literal with three known keys.
class HeaderReader {
public:
  HeaderReader(StringRef bytes, StringRef name) : bytes(bytes), name(name) {}

  Error read();

  std::string descr;
  std::vector<int64_t> shape;
  size_t dataStart = 0;

private:
  Error fail(const Twine &message) {
    return createStringError(inconvertibleErrorCode(),
                             name + ": byte " + Twine(position) + ": " + message);
  }
  Error readPreamble();
  Error readEntry();
  Error readShape();

  bool take(StringRef text) {
    skipSpaces();
    if (!header.substr(position).starts_with(text))
      return false;
    position += text.size();
    return true;
  }
  void skipSpaces() {
    position = std::min(header.find_first_not_of(" \n", position), header.size());
  }
  std::optional<StringRef> takeQuoted() {
    for (StringRef quote : {"'", "\""})
      if (take(quote)) {
        size_t end = header.find(quote, position);
        if (end == StringRef::npos)
          return std::nullopt;
        StringRef text = header.slice(position, end);
        position = end + 1;
        return text;
      }
    return std::nullopt;
  }

  StringRef bytes, name;
  StringRef header; ///< the bytes up to the end of the header
  size_t position = 0;
  bool hasOrder = false, hasShape = false;
};
} // namespace

Error HeaderReader::readPreamble() {
  if (!bytes.starts_with(magic))
    return fail("not a .npy file: it does not begin with \\x93NUMPY");
  position = magic.size();
  if (bytes.size() < 12)
    return fail("the file ends inside its header");
  unsigned major = static_cast<uint8_t>(bytes[6]);
  if (major < 1 || major > 3)
    return fail("format version " + Twine(major) + " is unknown; 1.0, 2.0 and 3.0 are read");
  bool wide = major > 1;
  position = wide ? 12 : 10;
  uint64_t size = wide ? endian::read32le(bytes.data() + 8) : endian::read16le(bytes.data() + 8);
  if (size > bytes.size() - position)
    return fail("the header has " + Twine(size) + " bytes, the file only " +
                Twine(bytes.size() - position) + " more");
  dataStart = position + size;
  header = bytes.take_front(dataStart);
  return Error::success();
}

Error HeaderReader::readShape() {
  if (!take("("))
    return fail("'shape' is a tuple of integers");
  while (!take(")")) {
    skipSpaces();
    StringRef rest = header.substr(position);
    uint64_t extent;
    size_t before = rest.size();
    if (rest.consumeInteger(10, extent) || extent > INT64_MAX)
      return fail("'shape' is a tuple of integers");
    position += before - rest.size();
    shape.push_back(extent);
    if (!take(",") && !header.substr(position).starts_with(")"))
      return fail("expected ',' or ')' in 'shape'");
  }
  hasShape = true;
  return Error::success();
}

Error HeaderReader::readEntry() {
  std::optional<StringRef> key = takeQuoted();
  if (!key)
    return fail("expected a quoted key of the header's dictionary");
  if (!take(":"))
    return fail("expected ':' after '" + *key + "'");
  if (*key == "descr") {
    std::optional<StringRef> text = takeQuoted();
    if (!text)
      return fail("'descr' is not one element type; arrays of structures are not read");
    descr = text->str();
    return Error::success();
  }
  if (*key == "fortran_order") {
    if (take("True"))
      return fail("the array is in Fortran order; save numpy.ascontiguousarray(x)");
    if (!take("False"))
      return fail("'fortran_order' is True or False");
    hasOrder = true;
    return Error::success();
  }
  if (*key == "shape")
    return readShape();
  return fail("unknown key '" + *key + "'; the header has descr, fortran_order and shape");
}

Error HeaderReader::read() {
  if (Error error = readPreamble())
    return error;
  if (!take("{"))
    return fail("the header is a dictionary and begins with '{'");
  while (!take("}")) {
    if (Error error = readEntry())
      return error;
    take(",");
  }
  if (descr.empty() || !hasOrder || !hasShape)
    return fail("the header lacks one of descr, fortran_order and shape");
  return Error::success();
}

/// float64, which no view has.
static constexpr StringLiteral doubleDescr = "<f8";

/// "'<f2', '<f4' and '<i4'", with all that are read.
static std::string listDescrs() {
  std::string list;
  for (const ElementType &type : elementTypes)
    if (type.type && !type.npyDescr.empty())
      list += ("'" + type.npyDescr + "', ").str();
  return list + "'" + doubleDescr.str() + "'";
}

Expected<HostTensor> parseNpy(StringRef bytes, StringRef name) {
  HeaderReader header(bytes, name);
  if (Error error = header.read())
    return std::move(error);
  const ElementType *type =
      findType([&](const ElementType &t) { return t.type && t.npyDescr == header.descr; });
  if (!type && header.descr != doubleDescr)
    return createStringError(inconvertibleErrorCode(),
                             name + ": element type '" + header.descr +
                                 "' is not read; save x.astype('<f4') (read are " + listDescrs() +
                                 ")");
  unsigned size = type ? type->bytes : sizeof(double);
  int64_t count = countElements(header.shape);
  size_t available = bytes.size() - header.dataStart;
  if (count < 0 || static_cast<uint64_t>(count) > available / size ||
      static_cast<uint64_t>(count) * size != available)
    return createStringError(
        inconvertibleErrorCode(),
        formatv(
            "{0}: byte {1}: a '{2}' array of shape ({3}) does not fill the {4} bytes that follow",
            name, header.dataStart, header.descr,
            join(map_range(header.shape, [](int64_t e) { return std::to_string(e); }), ", "),
            available)
            .str());
  HostTensor tensor = HostTensor::contiguous(header.shape);
  tensor.holdsIntegers = type && type->isWideInteger();
  const char *at = bytes.data() + header.dataStart;
  for (int64_t i = 0; i < count; ++i, at += size)
    if (type)
      tensor.decode(i, *type, at);
    else
      tensor.data[i] = bit_cast<double>(readBits(at, size));
  return tensor;
}

Expected<HostTensor> readNpy(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = readInput(path);
  if (!buffer)
    return createStringError(buffer.getError(),
                             path + ": cannot be read: " + buffer.getError().message());
  return parseNpy((*buffer)->getBuffer(), path);
}

Error writeNpy(StringRef path, const HostTensor &tensor, const ElementType &type) {
  const ElementType &written = type.semantics ? *getElementType("f32") : type;
  std::string header =
      ("{'descr': '" + written.npyDescr + "', 'fortran_order': False, 'shape': (").str();
  for (int64_t extent : tensor.shape)
    header += std::to_string(extent) + ", ";
  header += "), }";
  // Data begins at a multiple of 64 bytes; the header ends with a newline.
  header.append(63 - (magic.size() + 4 + header.size()) % 64, ' ');
  header += '\n';
  std::vector<char> data(tensor.numElements() * written.bytes);
  tensor.forEach([&](int64_t linear, int64_t offset) {
    tensor.encode(offset, written, data.data() + linear * written.bytes);
  });
  char size[2];
  endian::write16le(size, header.size());
  return writeOutput(path, [&](raw_ostream &os) {
    os << magic << '\1' << '\0' << StringRef(size, 2) << header;
    os.write(data.data(), data.size());
  });
}

} // namespace tessera
