//===- LaunchFile.cpp - The JSON description of a launch ------------------===//
//
// docs/simulator.md describes the format.
//
//===----------------------------------------------------------------------===//
#include "LaunchFile.h"
#include "Element.h"
#include "Npy.h"
#include "lib/Support/Files.h"
#include "lib/Support/Json.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace tessera::sim;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace json = llvm::json;

namespace {

Error bad(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "launch file: %s",
                                 message.str().c_str());
}

/// The one way in for sizes and counts: a whole number from `least` to `most`.
Expected<uint64_t> wholeNumber(const json::Value &value, const llvm::Twine &key, uint64_t least,
                               uint64_t most) {
  std::optional<uint64_t> n = value.getAsUINT64();
  if (std::optional<int64_t> i = tessera::asInteger(value); !n && i && *i >= 0)
    n = uint64_t(*i);
  if (n && *n >= least && *n <= most)
    return *n;
  return bad("'" + key + "' is " + llvm::formatv("{0}", value).str() +
             ", not a whole number from " + llvm::Twine(least) + " to " + llvm::Twine(most));
}

/// Sets `out` where the key is present.
template <class T>
Error readNumber(const json::Object &o, StringRef key, T &out, uint64_t least = 0,
                 uint64_t most = std::numeric_limits<T>::max()) {
  const json::Value *value = o.get(key);
  if (!value)
    return Error::success();
  Expected<uint64_t> n = wholeNumber(*value, key, least, most);
  if (!n)
    return n.takeError();
  out = T(*n);
  return Error::success();
}

template <class T>
Error readNumbers(const json::Object &o, StringRef key, std::vector<T> &out, uint64_t least = 0,
                  uint64_t most = std::numeric_limits<T>::max()) {
  const json::Array *a = o.getArray(key);
  if (!a)
    return bad("'" + key + "' must be an array");
  for (const json::Value &v : *a) {
    Expected<uint64_t> n = wholeNumber(v, key + "[" + llvm::Twine(out.size()) + "]", least, most);
    if (!n)
      return n.takeError();
    out.push_back(T(*n));
  }
  return Error::success();
}

Expected<std::unique_ptr<llvm::MemoryBuffer>> readRaw(StringRef path) {
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return bad(path + ": " + error.message());
  if (!llvm::sys::fs::is_regular_file(status) || status.getSize() > kMaxMemoryBytes)
    return bad(path + ": not a regular file of at most " + llvm::Twine(kMaxMemoryBytes) + " bytes");
  auto raw = llvm::MemoryBuffer::getFile(path, false, false);
  if (!raw)
    return bad(path + ": " + raw.getError().message());
  return std::move(*raw);
}

class Loader {
public:
  Loader(const Module &module, StringRef directory, LaunchFile &file)
      : module(module), directory(directory), f(file) {}
  Error load(const json::Object &root);

private:
  const Module &module;
  StringRef directory;
  LaunchFile &f;
  const PtxKernel *kernel = nullptr;

  std::string absolute(StringRef path) {
    if (llvm::sys::path::is_absolute(path) || directory.empty())
      return path.str();
    llvm::SmallString<128> p(directory);
    llvm::sys::path::append(p, path);
    return p.str().str();
  }
  Error dimensions(const json::Object &o, StringRef key, Dim3 &out);
  Error buffer(const json::Object &o, StringRef name, FileBuffer &out);
  Error fill(const json::Object &o, FileBuffer &b);
  Error param(const json::Object &o, const ParamInfo &info);
  Error tensorMap(const json::Object &o, std::array<uint8_t, 128> &out);
  Error names(const json::Object &root);
  FileBuffer *find(StringRef name) {
    for (FileBuffer &b : f.buffers)
      if (b.name == name)
        return &b;
    return nullptr;
  }
};

Error Loader::dimensions(const json::Object &o, StringRef key, Dim3 &out) {
  const json::Value *value = o.get(key);
  if (!value)
    return Error::success();
  std::vector<uint32_t> v(1);
  if (!value->getAsArray()) {
    if (Error e = readNumber(o, key, v[0], 1))
      return e;
  } else {
    v.clear();
    if (Error e = readNumbers(o, key, v, 1))
      return e;
    if (v.empty() || v.size() > 3)
      return bad("'" + key + "' has " + llvm::Twine(v.size()) + " extents, not 1 to 3");
  }
  v.resize(3, 1);
  out = Dim3{v[0], v[1], v[2]};
  return Error::success();
}

Error Loader::fill(const json::Object &o, FileBuffer &b) {
  ElementType type = findElementType(b.type);
  unsigned size = type.bytes;
  uint8_t *data = f.memory.find(b.address, b.bytes)->data;
  auto put = [&](uint64_t index, double v) {
    uint64_t bits = encodeElement(v, type);
    memcpy(data + index * size, &bits, size);
  };
  uint64_t n = b.bytes / size;
  StringRef how = o.getString("fill").value_or("zero");
  if (how == "nan") {
    for (uint64_t k = 0; k < n; ++k)
      put(k, std::nan(""));
    if (!type.isFloat())
      std::fill_n(data, b.bytes, 0xff);
  } else if (how == "iota") {
    double scale = o.getNumber("scale").value_or(1);
    uint64_t modulus = UINT64_MAX;
    if (Error e = readNumber(o, "modulus", modulus, 1))
      return e;
    for (uint64_t k = 0; k < n; ++k)
      put(k, scale * double(k % modulus));
  } else if (how == "random") { // uniform in [-scale, scale)
    uint64_t state = uint64_t(o.getInteger("seed").value_or(1)) * 0x9e3779b97f4a7c15ull + 1;
    double scale = o.getNumber("scale").value_or(1);
    for (uint64_t k = 0; k < n; ++k) {
      state ^= state >> 12;
      state ^= state << 25;
      state ^= state >> 27;
      put(k, scale * (double((state * 0x2545f4914f6cdd1dull) >> 11) * 0x1p-52 - 1));
    }
  } else if (how == "constant") {
    double value = o.getNumber("value").value_or(0);
    for (uint64_t k = 0; k < n; ++k)
      put(k, value);
  } else if (how != "zero") {
    return bad("unknown fill '" + how + "'");
  }
  return Error::success();
}

Error Loader::buffer(const json::Object &o, StringRef name, FileBuffer &b) {
  b.name = name.str();
  b.type = o.getString("type").value_or("u8").str();
  std::vector<uint8_t> data;
  bool hasData = false;
  if (auto path = o.getString("npy")) {
    auto a = readNpy(absolute(*path));
    if (!a)
      return a.takeError();
    data = std::move(a->data);
    b.shape = a->shape;
    hasData = true;
  } else if (auto path = o.getString("raw")) {
    auto raw = readRaw(absolute(*path));
    if (!raw)
      return raw.takeError();
    data.assign((*raw)->getBuffer().bytes_begin(), (*raw)->getBuffer().bytes_end());
    hasData = true;
  }
  unsigned size = findElementType(b.type).bytes;
  if (!size)
    return bad("unknown element type '" + b.type + "'");
  if (o.get("shape")) {
    b.shape.clear();
    if (Error e = readNumbers(o, "shape", b.shape))
      return e;
  } else if (b.shape.empty()) {
    b.shape = {data.size() / size};
  }
  b.bytes = size;
  for (uint64_t n : b.shape)
    b.bytes = llvm::SaturatingMultiply(b.bytes, n);
  auto address = f.memory.allocate(b.bytes, name, o.getBoolean("readonly").value_or(false));
  if (!address)
    return bad(llvm::toString(address.takeError()));
  b.address = *address;
  b.output = o.getString("output") ? absolute(*o.getString("output")) : "";
  b.expect = o.getString("expect") ? absolute(*o.getString("expect")) : "";
  b.tolerance = o.getNumber("tolerance").value_or(0);
  b.resets = o.getBoolean("resets").value_or(false);
  if (b.resets && (hasData || o.getString("fill").value_or("zero") != "zero"))
    return bad("\"resets\" is for a buffer that begins as 0, without a file or another \"fill\"");
  if (!hasData)
    return fill(o, b);
  if (data.size() != b.bytes)
    return bad(llvm::formatv("buffer '{0}' has {1} bytes, its file {2}", name, b.bytes, data.size())
                   .str());
  return f.memory.write(b.address, data);
}

Error Loader::tensorMap(const json::Object &o, std::array<uint8_t, 128> &out) {
  TensorMapDesc d;
  FileBuffer *b = find(o.getString("buffer").value_or(""));
  if (!b)
    return bad("tensor map over unknown buffer '" + o.getString("buffer").value_or("") + "'");
  StringRef type = o.getString("type").value_or(b->type);
  std::optional<TensorElement> element = findElementType(type).inMaps;
  if (!element)
    return bad("tensor map of unknown type '" + type + "'");
  d.type = *element;
  uint64_t offset = 0;
  if (Error e = readNumber(o, "offset", offset, 0, b->bytes))
    return e;
  d.globalAddress = b->address + offset;
  if (Error e = readNumbers(o, "dims", d.dims))
    return e;
  if (Error e = readNumbers(o, "box", d.box))
    return e;
  if (o.get("strides")) {
    if (Error e = readNumbers(o, "strides", d.strides))
      return e;
  } else { // packed
    uint64_t s = elementBytes(d.type);
    for (size_t k = 0; k + 1 < d.dims.size(); ++k)
      d.strides.push_back(s = llvm::SaturatingMultiply(s, d.dims[k]));
  }
  if (o.get("element_strides"))
    if (Error e = readNumbers(o, "element_strides", d.elementStrides))
      return e;
  if (Error e = readNumber(o, "interleave", d.interleave))
    return e;
  constexpr std::array<int64_t, 4> swizzles = {0, 32, 64, 128};
  const auto *swizzle = llvm::find(swizzles, o.getInteger("swizzle").value_or(0));
  if (swizzle == swizzles.end())
    return bad("swizzle must be 0, 32, 64 or 128");
  d.swizzle = swizzle - swizzles.begin();
  d.oobNan = o.getString("oob").value_or("zero") == "nan";
  auto map = encodeTensorMap(d);
  if (!map)
    return map.takeError();
  out = *map;
  return Error::success();
}

Error Loader::param(const json::Object &o, const ParamInfo &info) {
  uint8_t *at = f.launch.params.data() + info.offset;
  auto put = [&](const void *p, size_t n) -> Error {
    if (n != info.size)
      return bad(
          llvm::formatv("parameter {0} has {1} bytes, {2} are given", info.name, info.size, n)
              .str());
    memcpy(at, p, n);
    return Error::success();
  };
  if (const json::Object *map = o.getObject("tensor_map")) {
    std::array<uint8_t, 128> bytes;
    if (Error e = tensorMap(*map, bytes))
      return e;
    return put(bytes.data(), 128);
  }
  if (auto name = o.getString("buffer")) {
    FileBuffer *b = find(*name);
    if (!b)
      return bad("unknown buffer '" + *name + "'");
    uint64_t offset = 0;
    if (Error e = readNumber(o, "offset", offset, 0, b->bytes))
      return e;
    uint64_t address = b->address + offset;
    return put(&address, 8);
  }
  if (auto hex = o.getString("hex")) {
    std::vector<uint8_t> bytes;
    for (size_t k = 0; k + 1 < hex->size(); k += 2) {
      uint8_t v;
      if (hex->substr(k, 2).getAsInteger(16, v))
        return bad("malformed hex");
      bytes.push_back(v);
    }
    return put(bytes.data(), bytes.size());
  }
  ElementType type = findElementType(o.getString("type").value_or(info.type));
  unsigned n = type.bytes;
  if (std::optional<StringRef> given = o.getString("type"); given && !n)
    return bad(
        "parameter " + info.name + " has the unknown type '" + given->str() +
        "'; a type is that of a bundle (i32, f32, bf16, ...) or of PTX (u32, s64, b16, ...)");
  if (!n || !o.get("value"))
    return bad("parameter " + info.name + " needs a value, a buffer, a tensor map or hex bytes");
  uint64_t bits;
  const json::Value &value = *o.get("value");
  if (auto v = tessera::asInteger(value); v && !type.isFloat())
    bits = uint64_t(*v);
  else if (auto v = value.getAsUINT64(); v && !type.isFloat())
    bits = *v;
  else
    bits = encodeElement(o.getNumber("value").value_or(0), type);
  return put(&bits, n);
}

Error Loader::names(const json::Object &root) {
  if (const json::Array *a = root.getArray("shared_names"))
    for (const json::Value &v : *a)
      if (const json::Object *o = v.getAsObject()) {
        SharedName n;
        n.name = o->getString("name").value_or("").str();
        for (auto [key, field] : {std::pair("offset", &n.offset), std::pair("stride", &n.stride),
                                  std::pair("count", &n.count)})
          if (Error e = readNumber(*o, key, *field))
            return e;
        n.isStatic = o->getBoolean("static").value_or(false);
        if (const json::Array *places = o->getArray("places"))
          for (const json::Value &place : *places)
            n.places.push_back(place.getAsString().value_or("").str());
        f.options.sharedNames.push_back(n);
      }
  if (const json::Array *a = root.getArray("roles"))
    for (const json::Value &v : *a)
      if (const json::Object *o = v.getAsObject()) {
        RoleName n;
        n.name = o->getString("name").value_or("").str();
        if (Error e = readNumber(*o, "first_warp", n.firstWarp))
          return e;
        if (Error e = readNumber(*o, "warps", n.warps))
          return e;
        f.options.roleNames.push_back(n);
      }
  if (const json::Array *a = root.getArray("barrier_names"))
    for (const json::Value &v : *a)
      if (const json::Object *o = v.getAsObject()) {
        BarrierName n;
        n.name = o->getString("name").value_or("").str();
        if (Error e = readNumber(*o, "id", n.id))
          return e;
        f.options.barrierNames.push_back(n);
      }
  return Error::success();
}

Error Loader::load(const json::Object &root) {
  static const char *known[] = {"kernel",       "grid",    "block",        "cluster",
                                "shared",       "buffers", "params",       "registers",
                                "shared_names", "roles",   "barrier_names"};
  for (const auto &entry : root)
    if (!llvm::is_contained(known, entry.first.str()))
      return bad("unknown key '" + entry.first.str() + "'");
  StringRef name = root.getString("kernel").value_or("");
  if (name.empty() && module.kernels().size() == 1)
    name = module.kernels()[0].name;
  kernel = module.kernel(name);
  if (!kernel)
    return bad("kernel '" + name + "' is not in the module");
  f.launch.kernel = name.str();
  f.launch.memory = &f.memory;
  f.launch.block = kernel->reqntid.x ? kernel->reqntid : Dim3();
  for (auto [key, dim] : {std::pair("grid", &f.launch.grid), std::pair("block", &f.launch.block),
                          std::pair("cluster", &f.launch.cluster)})
    if (Error e = dimensions(root, key, *dim))
      return e;
  if (Error e = readNumber(root, "shared", f.launch.dynamicSharedBytes, 0, kMaxSharedBytes))
    return e;
  if (Error e =
          readNumber(root, "registers", f.launch.registersPerThread, 0, kMaxRegistersPerThread))
    return e;
  if (const json::Object *buffers = root.getObject("buffers")) {
    std::vector<StringRef> order; // addresses must not depend on hashing
    for (const auto &entry : *buffers)
      order.push_back(entry.first);
    llvm::sort(order);
    for (StringRef key : order) {
      const json::Object *o = buffers->getObject(key);
      if (!o)
        return bad("buffer '" + key + "' must be an object");
      FileBuffer b;
      if (Error e = buffer(*o, key, b))
        return e;
      f.buffers.push_back(std::move(b));
    }
  }
  f.launch.params.assign(kernel->paramBytes, 0);
  const json::Array *params = root.getArray("params");
  size_t given = params ? params->size() : 0;
  if (given != kernel->params.size())
    return bad(
        llvm::formatv("the kernel has {0} parameters, {1} are given", kernel->params.size(), given)
            .str());
  for (size_t k = 0; k < given; ++k) {
    const json::Object *o = (*params)[k].getAsObject();
    if (!o)
      return bad("parameters must be objects");
    if (Error e = param(*o, kernel->params[k]))
      return e;
  }
  return names(root);
}

} // namespace

Expected<std::unique_ptr<LaunchFile>> tessera::sim::loadLaunchFile(const Module &module,
                                                                   StringRef path) {
  auto text = tessera::readInput(path);
  if (!text)
    return bad(path + ": " + text.getError().message());
  return parseLaunchFile(module, (*text)->getBuffer(), llvm::sys::path::parent_path(path));
}

Expected<std::unique_ptr<LaunchFile>>
tessera::sim::parseLaunchFile(const Module &module, StringRef text, StringRef directory) {
  auto value = parseJson(text);
  if (!value)
    return bad(llvm::toString(value.takeError()));
  const json::Object *root = value->getAsObject();
  if (!root)
    return bad("the top level must be an object");
  auto file = std::make_unique<LaunchFile>();
  if (Error e = Loader(module, directory, *file).load(*root))
    return e;
  return file;
}

static Error writeResult(const FileBuffer &b, llvm::ArrayRef<uint8_t> data) {
  if (StringRef(b.output).ends_with(".npy"))
    return writeNpy(b.output, findElementType(b.type).npy, b.shape, data);
  return tessera::writeOutput(b.output, llvm::toStringRef(data));
}

static Expected<std::vector<uint8_t>> readExpected(const FileBuffer &b) {
  if (StringRef(b.expect).ends_with(".npy")) {
    auto a = readNpy(b.expect);
    if (!a)
      return a.takeError();
    return std::move(a->data);
  }
  auto raw = readRaw(b.expect);
  if (!raw)
    return raw.takeError();
  llvm::StringRef bytes = (*raw)->getBuffer();
  return std::vector<uint8_t>(bytes.bytes_begin(), bytes.bytes_end());
}

/// How `data` differs from what is expected, within the tolerance of `b`; empty when it does not.
static std::string compare(const FileBuffer &b, llvm::ArrayRef<uint8_t> data,
                           llvm::ArrayRef<uint8_t> expected) {
  if (expected.size() != data.size())
    return llvm::formatv("{0}: {1} bytes, expected {2}", b.name, data.size(), expected.size());
  ElementType type = findElementType(b.type);
  unsigned size = type.bytes;
  double largest = 0;
  for (size_t k = 0; k < data.size(); k += size)
    if (double v = std::fabs(decodeElement(&expected[k], type)); std::isfinite(v))
      largest = std::max(largest, v);
  uint64_t wrong = 0, first = 0;
  for (size_t k = 0; k < data.size(); k += size) {
    if (!memcmp(&data[k], &expected[k], size))
      continue;
    double got = decodeElement(&data[k], type), want = decodeElement(&expected[k], type);
    if (b.tolerance > 0 && ((got != got && want != want) ||
                            std::fabs(got - want) <= b.tolerance * std::max(largest, 1e-300)))
      continue;
    if (!wrong++)
      first = k / size;
  }
  if (!wrong)
    return "";
  return llvm::formatv("{0}: {1} of {2} elements differ, the first at {3}: {4}, expected {5}",
                       b.name, wrong, data.size() / size, first,
                       decodeElement(&data[first * size], type),
                       decodeElement(&expected[first * size], type));
}

/// What a launch did not set back to 0; empty where it is 0.
static std::string findLeft(const FileBuffer &b, llvm::ArrayRef<uint8_t> data) {
  const uint8_t *byte = llvm::find_if(data, [](uint8_t byte) { return byte != 0; });
  if (byte == data.end())
    return "";
  uint64_t element = (byte - data.begin()) / findElementType(b.type).bytes;
  return llvm::formatv("{0}: element {1} is not set back to 0, which the next launch needs", b.name,
                       element);
}

Expected<std::vector<Mismatch>> tessera::sim::finishLaunchFile(const LaunchFile &file, bool write) {
  std::vector<Mismatch> mismatches;
  for (const FileBuffer &b : file.buffers) {
    const GlobalMemory::Buffer &buffer = *file.memory.find(b.address, b.bytes);
    llvm::ArrayRef<uint8_t> data(buffer.data, buffer.size);
    if (!b.output.empty() && write)
      if (Error e = writeResult(b, data))
        return e;
    if (b.resets)
      if (std::string left = findLeft(b, data); !left.empty())
        mismatches.push_back({"not-reset", left});
    if (b.expect.empty())
      continue;
    auto expected = readExpected(b);
    if (!expected)
      return expected.takeError();
    if (std::string mismatch = compare(b, data, *expected); !mismatch.empty())
      mismatches.push_back({"wrong-result", mismatch});
  }
  return mismatches;
}
