//===- Bundle.cpp - Reading and checking a bundle -------------------------===//
//
// Sequences are read in SequenceReader.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/BundleReader.h"

#include "lib/Runtime/Driver.h"
#include "lib/Runtime/Error.h"
#include "lib/Support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <optional>

using namespace tessera::runtime;
using llvm::StringLiteral;
using llvm::StringRef;
namespace json = llvm::json;

/// The largest multiple of 16 below 2^40 (cuTensorMapEncodeTiled, globalStrides).
static constexpr int64_t kMaxStrideBytes = (int64_t(1) << 40) - 16;
/// What cuMemAlloc aligns to, and so each workspace in its memory.
static constexpr uint64_t kWorkspaceAlignment = 256;

static const TypeInfo kScalarTypes[] = {
    {"i32", TESSERA_TYPE_SCALAR_I32, 4, -1, 0, "", nullptr},
    {"i64", TESSERA_TYPE_SCALAR_I64, 8, -1, 0, "", nullptr},
    {"f32", TESSERA_TYPE_SCALAR_F32, 4, -1, 0, "", nullptr},
};

template <typename Predicate>
static const TypeInfo *findScalarType(Predicate predicate) {
  const TypeInfo *found = llvm::find_if(kScalarTypes, predicate);
  return found == std::end(kScalarTypes) ? nullptr : found;
}

const TypeInfo *tessera::runtime::getScalarType(StringRef name) {
  return findScalarType([&](const TypeInfo &type) { return type.name == name; });
}

StringRef tessera::runtime::getTypeName(int32_t value) {
  auto matches = [&](const TypeInfo &type) { return type.type == value; };
  const TypeInfo *type = tessera::findElementType(matches);
  if (!type)
    type = findScalarType(matches);
  return type ? StringRef(type->name) : "unknown type";
}

namespace {

/// Reads one kernel.
class KernelReader : SignatureReader {
public:
  explicit KernelReader(KernelInfo &kernel) : SignatureReader(kernel), kernel(kernel) {}
  bool read(const json::Value &value, json::Path path);

private:
  bool readExtent(const json::Object &object, json::Path path, Extent &extent);
  bool readDimName(const json::Object &object, StringRef key, json::Path path, unsigned &dim);
  bool readArgumentName(const json::Object &object, json::Path path, bool wantsView,
                        unsigned &argument);
  bool readRequirements(const json::Array &array, json::Path path);
  bool readTensorMap(const json::Object &object, json::Path path, TensorMapRecipe &map);
  bool readTensorMapDim(const json::Object &object, json::Path path, bool innermost,
                        TensorMapRecipe &map);
  bool checkBox(const TensorMapRecipe &map, json::Path path);
  bool readParameters(const json::Array &array, json::Path path);
  bool readParameter(const json::Object &object, json::Path path, LaunchParameter &parameter);
  bool readWorkspace(const json::Object &object, json::Path path, ParameterKind kind,
                     LaunchParameter &parameter);
  bool readGrid(const json::Array &array, json::Path path);
  bool readPersistent(const json::Object &object, json::Path path);

  KernelInfo &kernel;
};

} // namespace

bool tessera::runtime::fail(json::Path path, StringLiteral message) {
  path.report(message);
  return false;
}

static const json::Object *readObject(const json::Value &value, json::Path path) {
  const json::Object *object = value.getAsObject();
  if (!object)
    path.report("expected an object");
  return object;
}

const json::Array *tessera::runtime::readArray(const json::Object &object, StringRef key,
                                               json::Path path) {
  const json::Array *array = object.getArray(key);
  if (!array)
    path.field(key).report("expected an array");
  return array;
}

bool tessera::runtime::readString(const json::Object &object, StringRef key, json::Path path,
                                  std::string &out) {
  std::optional<StringRef> text = object.getString(key);
  if (!text || text->empty())
    return fail(path.field(key), "expected a string that is not empty");
  out = text->str();
  return true;
}

bool tessera::runtime::readInteger(const json::Value *value, json::Path path, int64_t low,
                                   int64_t high, StringLiteral expected, int64_t &out) {
  std::optional<int64_t> number = value ? tessera::asInteger(*value) : std::nullopt;
  if (!number || *number < low || *number > high)
    return fail(path, expected);
  out = *number;
  return true;
}

/// Reads an array of three positive sizes whose product is at most `limit`, as `expected` says.
static bool readTriple(const json::Object &object, StringRef key, json::Path path, int64_t limit,
                       StringLiteral expected, std::array<unsigned, 3> &out) {
  const json::Array *array = readArray(object, key, path);
  if (!array)
    return false;
  if (array->size() != 3)
    return fail(path.field(key), expected);
  int64_t product = 1;
  for (unsigned i = 0; i < 3; ++i) {
    int64_t size;
    if (!readInteger(&(*array)[i], path.field(key).index(i), 1, limit, expected, size))
      return false;
    out[i] = size;
    product *= size;
  }
  if (product > limit)
    return fail(path.field(key), expected);
  return true;
}

bool tessera::runtime::forEachObject(
    const json::Array &array, json::Path path,
    llvm::function_ref<bool(const json::Object &object, json::Path at)> function) {
  for (size_t i = 0; i < array.size(); ++i) {
    const json::Object *object = readObject(array[i], path.index(i));
    if (!object || !function(*object, path.index(i)))
      return false;
  }
  return true;
}

bool SignatureReader::readExtentValue(const json::Value &value, json::Path path, Extent &extent) {
  if (std::optional<StringRef> name = value.getAsString()) {
    auto found = llvm::find(signature.dims, *name);
    if (found == signature.dims.end())
      return fail(path, "names no entry of \"dims\"");
    extent.dim = found - signature.dims.begin();
    return true;
  }
  return readInteger(&value, path, 1, kMaxExtent,
                     "expected a dimension's name or an integer from 1 to 2147483647",
                     extent.constant);
}

bool KernelReader::readExtent(const json::Object &object, json::Path path, Extent &extent) {
  const json::Value *value = object.get("extent");
  if (!value)
    return fail(path.field("extent"), "expected a dimension's name or an integer");
  return readExtentValue(*value, path.field("extent"), extent);
}

bool KernelReader::readDimName(const json::Object &object, StringRef key, json::Path path,
                               unsigned &dim) {
  std::string name;
  if (!readString(object, key, path, name))
    return false;
  auto found = llvm::find(kernel.dims, name);
  if (found == kernel.dims.end())
    return fail(path.field(key), "names no entry of \"dims\"");
  dim = found - kernel.dims.begin();
  return true;
}

bool KernelReader::readArgumentName(const json::Object &object, json::Path path, bool wantsView,
                                    unsigned &argument) {
  std::string name;
  if (!readString(object, "argument", path, name))
    return false;
  auto found = llvm::find_if(kernel.arguments,
                             [&](const ArgumentInfo &entry) { return entry.name == name; });
  if (found == kernel.arguments.end())
    return fail(path.field("argument"), "names no entry of \"arguments\"");
  if (found->isView != wantsView)
    return fail(path.field("argument"),
                wantsView ? StringLiteral("expected a view") : StringLiteral("expected a scalar"));
  argument = found - kernel.arguments.begin();
  return true;
}

bool SignatureReader::readArgument(const json::Object &object, json::Path path,
                                   ArgumentInfo &argument) {
  std::string kind, type;
  if (!readString(object, "name", path, argument.name) || !readString(object, "kind", path, kind))
    return false;
  argument.isView = kind == "view";
  if (!argument.isView) {
    if (kind != "scalar")
      return fail(path.field("kind"), "expected \"view\" or \"scalar\"");
    if (!readString(object, "type", path, type))
      return false;
    argument.type = getScalarType(type);
    return argument.type || fail(path.field("type"), "expected i32, i64 or f32");
  }

  if (!readString(object, "element", path, type))
    return false;
  argument.type = tessera::getElementType(type);
  if (!argument.type)
    return fail(path.field("element"), "expected f16, bf16, f32, i8, i32 or i64");
  const json::Array *dims = readArray(object, "dims", path);
  if (!dims)
    return false;
  if (dims->empty())
    return fail(path.field("dims"), "expected at least one dimension");
  for (size_t i = 0; i < dims->size(); ++i)
    if (!readExtentValue((*dims)[i], path.field("dims").index(i), argument.dims.emplace_back()))
      return false;

  std::string access;
  if (!readString(object, "access", path, access))
    return false;
  auto known = llvm::StringSwitch<std::optional<Access>>(access)
                   .Case("read", Access::Read)
                   .Case("write", Access::Write)
                   .Case("readwrite", Access::ReadWrite)
                   .Default(std::nullopt);
  if (!known)
    return fail(path.field("access"), "expected \"read\", \"write\" or \"readwrite\"");
  argument.access = *known;

  static constexpr StringLiteral kAlignmentRule =
      "expected a power of 2, from the element's size to 1024";
  int64_t alignment;
  if (!readInteger(object.get("alignment"), path.field("alignment"), argument.type->bytes, 1024,
                   kAlignmentRule, alignment))
    return false;
  if (!llvm::isPowerOf2_64(alignment))
    return fail(path.field("alignment"), kAlignmentRule);
  argument.alignment = alignment;
  return true;
}

bool SignatureReader::readArguments(const json::Object &object, json::Path path) {
  const json::Array *array = readArray(object, "arguments", path);
  return array &&
         forEachObject(*array, path.field("arguments"),
                       [&](const json::Object &entry, json::Path at) {
                         ArgumentInfo argument;
                         if (!readArgument(entry, at, argument))
                           return false;
                         for (const ArgumentInfo &other : signature.arguments)
                           if (other.name == argument.name)
                             return fail(at.field("name"), "is the name of an earlier argument");
                         signature.arguments.push_back(std::move(argument));
                         return true;
                       });
}

bool SignatureReader::readDims(const json::Object &object, json::Path path) {
  const json::Array *array = readArray(object, "dims", path);
  for (size_t i = 0; array && i < array->size(); ++i) {
    std::optional<StringRef> name = (*array)[i].getAsString();
    if (!name)
      return fail(path.field("dims").index(i), "expected a name");
    signature.dims.push_back(name->str());
  }
  return array;
}

bool SignatureReader::checkDims(json::Path path) {
  for (size_t i = 0; i < signature.dims.size(); ++i) {
    bool used = llvm::any_of(signature.arguments, [&](const ArgumentInfo &argument) {
      return llvm::any_of(argument.dims, [&](Extent e) { return e.dim == static_cast<int>(i); });
    });
    if (!used)
      return fail(path.field("dims").index(i), "is a dimension of no argument");
  }
  return true;
}

bool KernelReader::readRequirements(const json::Array &array, json::Path path) {
  return forEachObject(array, path, [&](const json::Object &object, json::Path at) {
    Requirement requirement;
    unsigned dim = 0;
    if (const json::Value *most = object.get("at_most")) {
      Bound &bound = kernel.bounds.emplace_back();
      return readDimName(object, "dim", at, bound.dim) &&
             readInteger(most, at.field("at_most"), 1, kMaxExtent,
                         "expected an integer from 1 to 2^31 - 1", bound.most);
    }
    json::Path within = at.field("divisor");
    auto readFactor = [&](const json::Value *value, json::Path factor) {
      return readInteger(value, factor, 1, kMaxExtent, "expected an integer from 1 to 2^31 - 1",
                         requirement.factor);
    };
    const json::Value *divisor = object.get("divisor");
    if (divisor && divisor->getAsInteger()) {
      if (!readFactor(divisor, within))
        return false;
    } else if (const json::Object *product = object.getObject("divisor")) {
      if (!readDimName(*product, "dim", within, dim) ||
          !readFactor(product->get("factor"), within.field("factor")))
        return false;
      requirement.divisor = dim;
    } else {
      if (!readDimName(object, "divisor", at, dim))
        return false;
      requirement.divisor = dim;
    }
    if (!readDimName(object, "dividend", at, requirement.dividend))
      return false;
    kernel.requirements.push_back(requirement);
    return true;
  });
}

bool KernelReader::readTensorMapDim(const json::Object &object, json::Path path, bool innermost,
                                    TensorMapRecipe &map) {
  TensorMapDim dim;
  if (!readExtent(object, path, dim.extent))
    return false;
  const json::Value *ofDim = object.get("stride_of_dim"), *bytes = object.get("stride_bytes");
  if (innermost ? ofDim || bytes : !ofDim == !bytes)
    return fail(path, "expected \"stride_of_dim\" or \"stride_bytes\", and neither in the first "
                      "dimension, which is contiguous");
  const ArgumentInfo &argument = kernel.arguments[map.argument];
  if (ofDim) {
    int64_t index;
    if (!readInteger(ofDim, path.field("stride_of_dim"), 0, argument.dims.size() - 1,
                     "expected the number of a dimension of the argument", index))
      return false;
    dim.strideOfDim = index;
  }
  if (bytes) {
    static constexpr StringLiteral kStrideRule = "expected a multiple of 16 from 16 to 2^40 - 16";
    if (!readInteger(bytes, path.field("stride_bytes"), 16, kMaxStrideBytes, kStrideRule,
                     dim.strideBytes))
      return false;
    if (dim.strideBytes % 16)
      return fail(path.field("stride_bytes"), kStrideRule);
  }
  map.dims.push_back(dim);
  return true;
}

/// The rules of cuTensorMapEncodeTiled for boxes, without interleaving.
bool KernelReader::checkBox(const TensorMapRecipe &map, json::Path path) {
  if (map.box.size() != map.dims.size())
    return fail(path, "expected as many sizes as the map has dimensions");
  int64_t innerBytes = int64_t(map.box[0]) * map.element->bytes;
  if (innerBytes % 16)
    return fail(path.index(0), "the innermost size must make a multiple of 16 bytes");
  static constexpr int64_t kSpans[] = {std::numeric_limits<int64_t>::max(), 32, 64, 128};
  if (innerBytes > kSpans[map.swizzle])
    return fail(path.index(0), "the innermost size exceeds the bytes of the swizzle");
  return true;
}

bool KernelReader::readTensorMap(const json::Object &object, json::Path path,
                                 TensorMapRecipe &map) {
  std::string element, swizzle;
  if (!readArgumentName(object, path, /*wantsView=*/true, map.argument) ||
      !readString(object, "element", path, element) ||
      !readString(object, "swizzle", path, swizzle))
    return false;
  const ArgumentInfo &argument = kernel.arguments[map.argument];
  map.element = tessera::getElementType(element);
  if (map.element != argument.type)
    return fail(path.field("element"), "expected the element type of the argument");
  if (argument.alignment % 16)
    return fail(path.field("argument"), "an argument with a tensor map needs alignment 16");
  map.swizzle = llvm::StringSwitch<int>(swizzle)
                    .Case("none", 0)
                    .Case("32B", 1)
                    .Case("64B", 2)
                    .Case("128B", 3)
                    .Default(-1);
  if (map.swizzle < 0)
    return fail(path.field("swizzle"), "expected \"none\", \"32B\", \"64B\" or \"128B\"");

  const json::Array *dims = readArray(object, "dims", path);
  const json::Array *box = dims ? readArray(object, "box", path) : nullptr;
  if (!box)
    return false;
  if (dims->empty() || dims->size() > kMaxTensorMapRank)
    return fail(path.field("dims"), "a tensor map has 1 to 5 dimensions");
  bool read = forEachObject(*dims, path.field("dims"), [&](const json::Object &dim, json::Path at) {
    return readTensorMapDim(dim, at, /*innermost=*/map.dims.empty(), map);
  });
  if (!read)
    return false;
  for (size_t i = 0; i < box->size(); ++i) {
    int64_t size;
    if (!readInteger(&(*box)[i], path.field("box").index(i), 1, 256,
                     "expected an integer from 1 to 256", size))
      return false;
    map.box.push_back(size);
  }
  return checkBox(map, path.field("box"));
}

bool KernelReader::readWorkspace(const json::Object &object, json::Path path, ParameterKind kind,
                                 LaunchParameter &parameter) {
  int64_t bytes;
  if (!readInteger(object.get("bytes"), path.field("bytes"), 1, int64_t(1) << 40,
                   "expected a number of bytes from 1 to 2^40", bytes))
    return false;
  if (kind == ParameterKind::Timeline && kernel.timelineBytes)
    return fail(path, "a kernel has one timeline");
  parameter.kind = kind;
  parameter.bytes = 8;
  parameter.workspaceOffset = llvm::alignTo(kernel.workspaceBytes, kWorkspaceAlignment);
  kernel.workspaceBytes = parameter.workspaceOffset + bytes;
  if (kind == ParameterKind::Timeline) {
    kernel.timelineOffset = parameter.workspaceOffset;
    kernel.timelineBytes = bytes;
  }
  return true;
}

bool KernelReader::readParameter(const json::Object &object, json::Path path,
                                 LaunchParameter &parameter) {
  std::string kind, type;
  if (!readString(object, "kind", path, kind))
    return false;
  if (kind == "tensor_map") {
    TensorMapRecipe map;
    if (!readTensorMap(object, path, map))
      return false;
    parameter.kind = ParameterKind::TensorMap;
    parameter.argument = map.argument;
    parameter.bytes = sizeof(cuda::TensorMap);
    auto &mapsOfArgument = kernel.arguments[map.argument].tensorMaps;
    parameter.mapOfArgument = mapsOfArgument.size();
    mapsOfArgument.push_back(kernel.tensorMaps.size());
    kernel.tensorMaps.push_back(std::move(map));
    return true;
  }
  if (kind == "pointer") {
    parameter.kind = ParameterKind::Pointer;
    parameter.bytes = 8;
    return readArgumentName(object, path, /*wantsView=*/true, parameter.argument);
  }
  if (kind == "scalar") {
    parameter.kind = ParameterKind::Scalar;
    if (!readArgumentName(object, path, /*wantsView=*/false, parameter.argument))
      return false;
    parameter.bytes = kernel.arguments[parameter.argument].type->bytes;
    return true;
  }

  if (kind == "workspace")
    return readWorkspace(object, path, ParameterKind::Workspace, parameter);
  if (kind == "timeline")
    return readWorkspace(object, path, ParameterKind::Timeline, parameter);

  if (kind != "dim" && kind != "stride")
    return fail(path.field("kind"), "expected \"tensor_map\", \"pointer\", \"dim\", \"stride\", "
                                    "\"scalar\", \"workspace\" or \"timeline\"");
  if (!readString(object, "type", path, type))
    return false;
  if (type != "i32" && type != "i64")
    return fail(path.field("type"), "expected i32 or i64");
  parameter.bytes = type == "i32" ? 4 : 8;
  if (kind == "dim") {
    parameter.kind = ParameterKind::Dim;
    return readDimName(object, "dim", path, parameter.dim);
  }
  parameter.kind = ParameterKind::Stride;
  if (!readArgumentName(object, path, /*wantsView=*/true, parameter.argument))
    return false;
  int64_t dim;
  if (!readInteger(object.get("dim"), path.field("dim"), 0,
                   kernel.arguments[parameter.argument].dims.size() - 1,
                   "expected the number of a dimension of the argument", dim))
    return false;
  parameter.dim = dim;
  return true;
}

bool KernelReader::readParameters(const json::Array &array, json::Path path) {
  bool read = forEachObject(array, path, [&](const json::Object &object, json::Path at) {
    LaunchParameter parameter;
    if (!readParameter(object, at, parameter))
      return false;
    uint64_t alignment =
        parameter.kind == ParameterKind::TensorMap ? alignof(cuda::TensorMap) : parameter.bytes;
    parameter.offset = llvm::alignTo(kernel.parameterBytes, alignment);
    kernel.parameterBytes = parameter.offset + parameter.bytes;
    kernel.parameters.push_back(parameter);
    return true;
  });
  if (read && kernel.parameterBytes > kMaxParameterBytes)
    return fail(path, "more than 4096 bytes of parameters, the most a kernel takes");
  return read;
}

bool KernelReader::readGrid(const json::Array &array, json::Path path) {
  if (array.empty() || array.size() > 3)
    return fail(path, "expected 1 to 3 dimensions");
  kernel.grid.fill(GridDim{Extent{1, -1}, 1});
  unsigned next = 0;
  return forEachObject(array, path, [&](const json::Object &object, json::Path at) {
    GridDim &dim = kernel.grid[next++];
    return readExtent(object, at, dim.extent) &&
           readInteger(object.get("divisor"), at.field("divisor"), 1, kMaxExtent,
                       "expected an integer from 1 to 2147483647", dim.divisor);
  });
}

bool tessera::runtime::readFlag(const json::Object &object, StringRef name, json::Path path,
                                bool &flag) {
  const json::Value *value = object.get(name);
  if (!value)
    return true;
  std::optional<bool> read = value->getAsBoolean();
  if (!read)
    return fail(path.field(name), "expected true or false");
  flag = *read;
  return true;
}

bool KernelReader::readPersistent(const json::Object &object, json::Path path) {
  if (!readFlag(object, "persistent", path, kernel.persistent))
    return false;
  if (kernel.persistent && kernel.cluster[1] * kernel.cluster[2] != 1)
    return fail(path.field("cluster"), "the clusters of a persistent kernel extend in x only");
  return true;
}

bool KernelReader::read(const json::Value &value, json::Path path) {
  const json::Object *object = readObject(value, path);
  if (!object || !readString(*object, "name", path, kernel.name) ||
      !readString(*object, "symbol", path, kernel.symbol))
    return false;
  const json::Array *sections[3];
  static constexpr StringRef kSections[] = {"requirements", "launch_parameters", "grid"};
  for (unsigned i = 0; i < 3; ++i)
    if (!(sections[i] = readArray(*object, kSections[i], path)))
      return false;
  if (!readDims(*object, path) || !readArguments(*object, path) ||
      !readRequirements(*sections[0], path.field(kSections[0])) ||
      !readParameters(*sections[1], path.field(kSections[1])) ||
      !readGrid(*sections[2], path.field(kSections[2])) || !checkDims(path))
    return false;

  int64_t sharedMemory;
  if (!readTriple(*object, "block", path, 1024,
                  "expected three sizes, x, y and z, of at most 1024 threads in all",
                  kernel.block) ||
      !readTriple(*object, "cluster", path, 8,
                  "expected three sizes, x, y and z, of at most 8 blocks in all", kernel.cluster) ||
      !readInteger(object->get("shared_memory"), path.field("shared_memory"), 0, 1 << 20,
                   "expected a number of bytes", sharedMemory) ||
      !readPersistent(*object, path) || !readFlag(*object, "pdl", path, kernel.pdl))
    return false;
  kernel.sharedMemory = sharedMemory;
  kernel.description = llvm::formatv("{0}", value).str();
  return true;
}

static bool readImage(const json::Object &object, json::Path path, BundleInfo &bundle) {
  std::string kind, base64;
  if (!readString(object, "kind", path, kind) || !readString(object, "base64", path, base64))
    return false;
  bundle.isPtx = kind == "ptx";
  if (!bundle.isPtx && kind != "cubin")
    return fail(path.field("kind"), "expected \"cubin\" or \"ptx\"");
  if (llvm::Error error = llvm::decodeBase64(base64, bundle.image)) {
    llvm::consumeError(std::move(error));
    return fail(path.field("base64"), "expected base64 text");
  }
  if (bundle.isPtx)
    bundle.image.push_back('\0');
  return true;
}

static bool readSequences(const json::Object &object, json::Path path, BundleInfo &bundle) {
  if (bundle.version < 2)
    return true;
  const json::Array *sequences = readArray(object, "sequences", path);
  for (size_t i = 0; sequences && i < sequences->size(); ++i)
    if (!readSequence((*sequences)[i], path.field("sequences").index(i), bundle,
                      bundle.sequences.emplace_back()))
      return false;
  return sequences;
}

static bool readBundle(const json::Value &value, json::Path path, BundleInfo &bundle) {
  const json::Object *object = readObject(value, path);
  if (!object)
    return false;
  if (object->getString("format") != StringRef("tessera-bundle"))
    return fail(path.field("format"), "expected \"tessera-bundle\": this is no bundle");
  if (!readInteger(object->get("version"), path.field("version"), 1, 2,
                   "this library reads versions 1 and 2", bundle.version))
    return false;
  if (!readString(*object, "target", path, bundle.target))
    return false;
  const json::Object *image = object->getObject("image");
  if (!image)
    return fail(path.field("image"), "expected an object");
  const json::Array *kernels = readArray(*object, "kernels", path);
  if (!readImage(*image, path.field("image"), bundle) || !kernels)
    return false;
  if (kernels->empty())
    return fail(path.field("kernels"), "expected at least one kernel");
  for (size_t i = 0; i < kernels->size(); ++i)
    if (!KernelReader(bundle.kernels.emplace_back())
             .read((*kernels)[i], path.field("kernels").index(i)))
      return false;
  return readSequences(*object, path, bundle);
}

llvm::Expected<BundleInfo> tessera::runtime::readBundle(StringRef text) {
  llvm::Expected<json::Value> value = tessera::parseJson(text);
  if (!value)
    return makeError(TESSERA_RUNTIME_INVALID_BUNDLE, "not a bundle: not JSON text: {0}",
                     llvm::toString(value.takeError()));
  json::Path::Root root("bundle");
  BundleInfo bundle;
  if (!::readBundle(*value, root, bundle))
    return makeError(TESSERA_RUNTIME_INVALID_BUNDLE, "damaged bundle: {0}",
                     llvm::toString(root.getError()));
  return bundle;
}
