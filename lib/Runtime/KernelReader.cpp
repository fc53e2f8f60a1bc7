//===- KernelReader.cpp - Reading and checking a kernel -------------------===//

#include "lib/Runtime/BundleReader.h"

#include "lib/Runtime/Driver.h"
#include "tessera/BundleKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <optional>

using namespace tessera::runtime;
using llvm::StringLiteral;
using llvm::StringRef;
namespace json = llvm::json;
namespace key = tessera::key;
namespace kinds = tessera::kinds;

/// The largest multiple of 16 below 2^40 (cuTensorMapEncodeTiled, globalStrides).
static constexpr int64_t kMaxStrideBytes = (int64_t(1) << 40) - 16;
/// What cuMemAlloc aligns to, and so each workspace in its memory.
static constexpr uint64_t kWorkspaceAlignment = 256;

namespace {

/// Reads one kernel.
class KernelReader : SignatureReader {
public:
  explicit KernelReader(KernelInfo &kernel) : SignatureReader(kernel), kernel(kernel) {}
  bool read(const json::Value &value, json::Path path);

private:
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
  bool readTickets(const json::Object &object, json::Path path, LaunchParameter &parameter);
  void placeTickets();
  bool readPersistent(const json::Object &object, json::Path path);

  KernelInfo &kernel;
};

} // namespace

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
  if (!readString(object, key::argument, path, name))
    return false;
  auto found = llvm::find_if(kernel.arguments,
                             [&](const ArgumentInfo &entry) { return entry.name == name; });
  if (found == kernel.arguments.end())
    return fail(path.field(key::argument), "names no entry of \"arguments\"");
  if (found->isView != wantsView)
    return fail(path.field(key::argument),
                wantsView ? StringLiteral("expected a view") : StringLiteral("expected a scalar"));
  argument = found - kernel.arguments.begin();
  return true;
}

bool KernelReader::readRequirements(const json::Array &array, json::Path path) {
  return forEachObject(array, path, [&](const json::Object &object, json::Path at) {
    Requirement requirement;
    unsigned dim = 0;
    if (const json::Value *most = object.get(key::atMost)) {
      Bound &bound = kernel.bounds.emplace_back();
      return readDimName(object, key::dim, at, bound.dim) &&
             readInteger(most, at.field(key::atMost), 1, kMaxExtent,
                         "expected an integer from 1 to 2^31 - 1", bound.most);
    }
    json::Path within = at.field(key::divisor);
    auto readFactor = [&](const json::Value *value, json::Path factor) {
      return readInteger(value, factor, 1, kMaxExtent, "expected an integer from 1 to 2^31 - 1",
                         requirement.factor);
    };
    const json::Value *divisor = object.get(key::divisor);
    if (divisor && divisor->getAsInteger()) {
      if (!readFactor(divisor, within))
        return false;
    } else if (const json::Object *product = object.getObject(key::divisor)) {
      if (!readDimName(*product, key::dim, within, dim) ||
          !readFactor(product->get(key::factor), within.field(key::factor)))
        return false;
      requirement.divisor = dim;
    } else {
      if (!readDimName(object, key::divisor, at, dim))
        return false;
      requirement.divisor = dim;
    }
    if (!readDimName(object, key::dividend, at, requirement.dividend))
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
  const json::Value *ofDim = object.get(key::strideOfDim), *bytes = object.get(key::strideBytes);
  if (innermost ? ofDim || bytes : !ofDim == !bytes)
    return fail(path, "expected \"stride_of_dim\" or \"stride_bytes\", and neither in the first "
                      "dimension, which is contiguous");
  const ArgumentInfo &argument = kernel.arguments[map.argument];
  if (ofDim) {
    int64_t index;
    if (!readInteger(ofDim, path.field(key::strideOfDim), 0, argument.dims.size() - 1,
                     "expected the number of a dimension of the argument", index))
      return false;
    dim.strideOfDim = index;
  }
  if (bytes) {
    static constexpr StringLiteral kStrideRule = "expected a multiple of 16 from 16 to 2^40 - 16";
    if (!readInteger(bytes, path.field(key::strideBytes), 16, kMaxStrideBytes, kStrideRule,
                     dim.strideBytes))
      return false;
    if (dim.strideBytes % 16)
      return fail(path.field(key::strideBytes), kStrideRule);
  }
  if (const json::Value *ends = object.get(key::wraps)) {
    std::optional<bool> flag = ends->getAsBoolean();
    if (!flag || !ofDim)
      return fail(path.field(key::wraps), "expected true or false, beside \"stride_of_dim\"");
    dim.wraps = *flag;
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
      !readString(object, key::element, path, element) ||
      !readString(object, key::swizzle, path, swizzle))
    return false;
  const ArgumentInfo &argument = kernel.arguments[map.argument];
  map.element = argument.type;
  map.roundsToTF32 = element == tessera::elements::tf32;
  if (map.roundsToTF32 ? argument.type->type != TESSERA_TYPE_F32 : element != argument.type->name)
    return fail(path.field(key::element),
                "expected the element type of the argument, or \"tf32\" for f32");
  if (argument.alignment % 16)
    return fail(path.field(key::argument), "an argument with a tensor map needs alignment 16");
  map.swizzle = llvm::StringSwitch<int>(swizzle)
                    .Case("none", 0)
                    .Case("32B", 1)
                    .Case("64B", 2)
                    .Case("128B", 3)
                    .Default(-1);
  if (map.swizzle < 0)
    return fail(path.field(key::swizzle), "expected \"none\", \"32B\", \"64B\" or \"128B\"");

  const json::Array *dims = readArray(object, key::dims, path);
  const json::Array *box = dims ? readArray(object, key::box, path) : nullptr;
  if (!box)
    return false;
  if (dims->empty() || dims->size() > kMaxTensorMapRank)
    return fail(path.field(key::dims), "a tensor map has 1 to 5 dimensions");
  bool read =
      forEachObject(*dims, path.field(key::dims), [&](const json::Object &dim, json::Path at) {
        return readTensorMapDim(dim, at, /*innermost=*/map.dims.empty(), map);
      });
  if (!read)
    return false;
  for (size_t i = 0; i < box->size(); ++i) {
    int64_t size;
    if (!readInteger(&(*box)[i], path.field(key::box).index(i), 1, 256,
                     "expected an integer from 1 to 256", size))
      return false;
    map.box.push_back(size);
  }
  return checkBox(map, path.field(key::box));
}

bool KernelReader::readWorkspace(const json::Object &object, json::Path path, ParameterKind kind,
                                 LaunchParameter &parameter) {
  int64_t bytes;
  if (!readInteger(object.get(key::bytes), path.field(key::bytes), 1, int64_t(1) << 40,
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

bool KernelReader::readTickets(const json::Object &object, json::Path path,
                               LaunchParameter &parameter) {
  if (!kernel.ticketed.empty())
    return fail(path, "a kernel has one array of tickets");
  parameter.kind = ParameterKind::Tickets;
  parameter.bytes = 8;
  const json::Array *views = readArray(object, key::views, path);
  if (!views)
    return false;
  if (views->empty())
    return fail(path.field(key::views), "expected a view at least");
  for (size_t i = 0; i < views->size(); ++i) {
    json::Path ofViews = path.field(key::views),
               at = ofViews.index(i); // a path refers to its parent
    const json::Array *dims = (*views)[i].getAsArray();
    if (!dims || dims->empty())
      return fail(at, "expected an array of the dimensions of a view");
    TicketedView &view = kernel.ticketed.emplace_back();
    bool read = forEachObject(*dims, at, [&](const json::Object &dim, json::Path ofDim) {
      GridDim &tiles = view.emplace_back();
      return readExtent(dim, ofDim, tiles.extent) &&
             readInteger(dim.get(key::divisor), ofDim.field(key::divisor), 1, kMaxExtent,
                         "expected an integer from 1 to 2147483647", tiles.divisor);
    });
    if (!read)
      return false;
  }
  return true;
}

/// Their number is a launch's: they come last.
void KernelReader::placeTickets() {
  for (LaunchParameter &parameter : kernel.parameters) {
    if (parameter.kind != ParameterKind::Tickets)
      continue;
    kernel.workspaceBytes = llvm::alignTo(kernel.workspaceBytes, kWorkspaceAlignment);
    parameter.workspaceOffset = kernel.workspaceBytes;
  }
}

bool KernelReader::readParameter(const json::Object &object, json::Path path,
                                 LaunchParameter &parameter) {
  std::string kind, type;
  if (!readString(object, key::kind, path, kind))
    return false;
  if (kind == kinds::tensorMap) {
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
  if (kind == kinds::pointer) {
    parameter.kind = ParameterKind::Pointer;
    parameter.bytes = 8;
    return readArgumentName(object, path, /*wantsView=*/true, parameter.argument);
  }
  if (kind == kinds::scalar) {
    parameter.kind = ParameterKind::Scalar;
    if (!readArgumentName(object, path, /*wantsView=*/false, parameter.argument))
      return false;
    parameter.bytes = kernel.arguments[parameter.argument].type->bytes;
    return true;
  }

  if (kind == kinds::workspace)
    return readWorkspace(object, path, ParameterKind::Workspace, parameter);
  if (kind == kinds::tickets)
    return readTickets(object, path, parameter);
  if (kind == kinds::timeline)
    return readWorkspace(object, path, ParameterKind::Timeline, parameter);

  if (kind != kinds::dim && kind != kinds::stride)
    return fail(path.field(key::kind), "expected \"tensor_map\", \"pointer\", \"dim\", \"stride\", "
                                       "\"scalar\", \"workspace\", \"tickets\" or \"timeline\"");
  if (!readString(object, key::type, path, type))
    return false;
  if (type != "i32" && type != "i64")
    return fail(path.field(key::type), "expected i32 or i64");
  parameter.bytes = type == "i32" ? 4 : 8;
  if (kind == kinds::dim) {
    parameter.kind = ParameterKind::Dim;
    return readDimName(object, key::dim, path, parameter.dim);
  }
  parameter.kind = ParameterKind::Stride;
  if (!readArgumentName(object, path, /*wantsView=*/true, parameter.argument))
    return false;
  int64_t dim;
  if (!readInteger(object.get(key::dim), path.field(key::dim), 0,
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
  placeTickets();
  if (read && kernel.parameterBytes > kMaxParameterBytes)
    return fail(path, "more than 4096 bytes of parameters, the most a kernel takes");
  return read;
}

bool KernelReader::readPersistent(const json::Object &object, json::Path path) {
  if (!readFlag(object, key::persistent, path, kernel.persistent) ||
      !readFlag(object, key::flat, path, kernel.flat))
    return false;
  if ((kernel.persistent || kernel.flat) && kernel.cluster[1] * kernel.cluster[2] != 1)
    return fail(path.field(key::cluster),
                "the clusters of a persistent or flat kernel extend in x only");
  const json::Value *blocks = object.get(key::blocksPerMultiprocessor);
  int64_t count = 1;
  if (blocks && !readInteger(blocks, path.field(key::blocksPerMultiprocessor), 1, 32,
                             "expected an integer from 1 to 32", count))
    return false;
  kernel.blocksPerMultiprocessor = count;
  return true;
}

bool KernelReader::read(const json::Value &value, json::Path path) {
  const json::Object *object = readObject(value, path);
  if (!object || !readString(*object, key::name, path, kernel.name) ||
      !readString(*object, key::symbol, path, kernel.symbol))
    return false;
  const json::Array *sections[3];
  static constexpr StringRef kSections[] = {key::requirements, key::launchParameters, key::grid};
  for (unsigned i = 0; i < 3; ++i)
    if (!(sections[i] = readArray(*object, kSections[i], path)))
      return false;
  if (!readDims(*object, path) || !readArguments(*object, path) ||
      !readRequirements(*sections[0], path.field(kSections[0])) ||
      !readParameters(*sections[1], path.field(kSections[1])) ||
      !readGrid(*sections[2], path.field(kSections[2]), kernel.grid) || !checkDims(path))
    return false;

  int64_t sharedMemory;
  if (!readTriple(*object, key::block, path, 1024,
                  "expected three sizes, x, y and z, of at most 1024 threads in all",
                  kernel.block) ||
      !readTriple(*object, key::cluster, path, 16,
                  "expected three sizes, x, y and z, of at most 16 blocks in all",
                  kernel.cluster) ||
      !readInteger(object->get(key::sharedMemory), path.field(key::sharedMemory), 0, 1 << 20,
                   "expected a number of bytes", sharedMemory) ||
      !readPersistent(*object, path) || !readFlag(*object, key::pdl, path, kernel.pdl))
    return false;
  kernel.sharedMemory = sharedMemory;
  kernel.description = llvm::formatv("{0}", value).str();
  return true;
}

bool tessera::runtime::readKernel(const json::Value &value, json::Path path, KernelInfo &kernel) {
  return KernelReader(kernel).read(value, path);
}
