//===- Pictures.cpp - Pictures of the masks of a source -------------------===//

#include "lib/Explain/Pictures.h"
#include "lib/Explain/MaskPicture.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Support/Npy.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::explain;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using tile::EntryOpInterface;
using tile::KernelOp;
namespace json = llvm::json;

using Extents = llvm::StringMap<int64_t>;

/// The extent, unless the request has another, of a dimension that is cut into tiles or loops.
static constexpr int64_t kDefaultLength = 2048;

/// What a caller launches: the sequences, and the kernels that none of them launches.
static SmallVector<EntryOpInterface> getOuterEntries(ModuleOp source) {
  llvm::DenseSet<Operation *> launched;
  source.walk([&](tile::LaunchOp op) { launched.insert(op.getKernelOp()); });
  SmallVector<EntryOpInterface> entries = tile::getEntries(source);
  llvm::erase_if(entries, [&](EntryOpInterface entry) { return launched.contains(entry); });
  return entries;
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

namespace {
/// Looks at what the kernels of an entry do with its dimensions.
class DefaultExtents {
public:
  explicit DefaultExtents(EntryOpInterface entry) : entry(entry) {}
  Extents find(int64_t length);

private:
  void visitKernel(KernelOp kernel, llvm::function_ref<StringRef(StringRef)> rename);

  EntryOpInterface entry;
  llvm::StringSet<> tiled, single;
  Extents bounds;
};
} // namespace

void DefaultExtents::visitKernel(KernelOp kernel, llvm::function_ref<StringRef(StringRef)> rename) {
  for (unsigned i = 0; i < kernel.getGridRank(); ++i)
    if (auto name = dyn_cast<StringAttr>(kernel.getGridDim(i).getExtent()))
      (kernel.getGridDim(i).getDivisor() > 1 ? tiled : single).insert(rename(name.getValue()));
  std::optional<ArrayAttr> requirements = kernel.getRequirements();
  for (Attribute requirement : requirements ? requirements->getValue() : ArrayRef<Attribute>()) {
    if (auto atMost = dyn_cast<tile::AtMostAttr>(requirement)) {
      bounds[rename(atMost.getDim().getValue())] = atMost.getBound();
      continue;
    }
    auto divides = dyn_cast<tile::DividesAttr>(requirement);
    if (!divides)
      continue;
    StringRef divisor = rename(divides.getDivisor().getValue()),
              dividend = rename(divides.getDividend().getValue());
    if (single.contains(divisor) || single.contains(dividend)) {
      single.insert(divisor);
      single.insert(dividend);
    }
  }
}

Extents DefaultExtents::find(int64_t length) {
  if (auto kernel = dyn_cast<KernelOp>(*entry))
    visitKernel(kernel, [](StringRef name) { return name; });
  for (auto launch : entry->getRegion(0).getOps<tile::LaunchOp>()) {
    llvm::StringMap<StringRef> outer;
    for (auto [operand, argument] :
         llvm::zip(launch.getOperands(), launch.getKernelOp().getBody().getArguments())) {
      auto takes = dyn_cast<tile::ViewType>(argument.getType());
      for (int64_t i = 0; takes && i < takes.getRank(); ++i)
        outer[takes.getDimName(i)] = cast<tile::ViewType>(operand.getType()).getDimName(i);
    }
    visitKernel(launch.getKernelOp(), [&](StringRef name) { return outer.lookup(name); });
  }
  Extents extents;
  for (StringRef name : entry.getDimNames()) {
    bool isOne = single.contains(name) && !tiled.contains(name);
    int64_t extent = isOne ? 1 : length;
    auto bound = bounds.find(name);
    extents[name] = bound == bounds.end() ? extent : std::min(extent, bound->second);
  }
  return extents;
}

Extents tessera::explain::getDefaultExtents(EntryOpInterface entry, int64_t length) {
  return DefaultExtents(entry).find(length);
}

/// Refuses extents that no entry has, and too few for one that has some.
static Error checkShape(ArrayRef<EntryOpInterface> entries, const Extents &extents) {
  llvm::StringSet<> known;
  for (EntryOpInterface entry : entries)
    for (StringRef name : entry.getDimNames()) {
      known.insert(name);
      if (!extents.contains(name))
        return createStringError("--shape: '" + entry.getSymName() + "' needs the extent of " +
                                 name + " too");
    }
  for (const auto &[name, extent] : extents)
    if (!known.contains(name))
      return createStringError("--shape: there is no dimension '" + name + "'");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The number of the argument of an entry that has this name and is, or is not, a view.
static std::optional<unsigned> findArgument(EntryOpInterface entry, StringRef name, bool isView) {
  for (unsigned i = 0; i < entry.getNumArguments(); ++i)
    if (entry.getArgumentName(i) == name &&
        isa<tile::ViewType>(entry.getArgument(i).getType()) == isView)
      return i;
  return std::nullopt;
}

static Expected<double> readScalar(EntryOpInterface entry, unsigned index, StringRef text) {
  Type type = entry.getArgument(index).getType();
  double value;
  int64_t integer;
  bool isFloat = isa<FloatType>(type);
  if (isFloat ? text.getAsDouble(value) : text.getAsInteger(10, integer))
    return createStringError("--set: '" + entry.getArgumentName(index) + "' is " +
                             (isFloat ? "a number" : "an integer") + ", got '" + text + "'");
  return isFloat ? value : static_cast<double>(integer);
}

static Expected<HostTensor> readView(EntryOpInterface entry, unsigned index, StringRef path,
                                     const Launch &launch) {
  Expected<HostTensor> tensor = readNpy(path);
  if (!tensor)
    return tensor;
  auto view = cast<tile::ViewType>(entry.getArgument(index).getType());
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < view.getRank(); ++i)
    shape.push_back(getExtent(view, i, launch));
  auto describe = [](int64_t extent) { return std::to_string(extent); };
  if (tensor->shape != shape)
    return createStringError("--input: '" + entry.getArgumentName(index) + "' is [" +
                             llvm::join(llvm::map_range(shape, describe), ", ") +
                             "] in this picture, and the array has another shape; give --shape");
  if (tensor->holdsIntegers)
    if (std::optional<int64_t> lost = tensor->convertToDoubles())
      return createStringError("--input: '" + entry.getArgumentName(index) + "' has the element " +
                               Twine(*lost) +
                               "; pictures compute with doubles, which hold integers up to 2^53");
  for (double &element : tensor->data)
    element = roundToType(view.getElementType(), element);
  return tensor;
}

/// The values of a kernel's arguments, by the names that a caller gives them.
static Expected<MaskInputs> readInputs(EntryOpInterface entry, const PictureRequest &request,
                                       const Launch &launch) {
  MaskInputs inputs;
  for (const auto &[name, text] : request.scalars)
    if (std::optional<unsigned> index = findArgument(entry, name, /*isView=*/false)) {
      Expected<double> value = readScalar(entry, *index, text);
      if (!value)
        return value.takeError();
      inputs.scalars[name] = *value;
    }
  for (const auto &[name, path] : request.inputs)
    if (std::optional<unsigned> index = findArgument(entry, name, /*isView=*/true)) {
      Expected<HostTensor> tensor = readView(entry, *index, path, launch);
      if (!tensor)
        return tensor.takeError();
      inputs.views[name] = std::move(*tensor);
    }
  return inputs;
}

/// Of the values that a sequence is given, those that a launch passes on, by the kernel's names.
static MaskInputs passInputs(tile::LaunchOp launch, const MaskInputs &inputs) {
  auto sequence = cast<tile::SequenceOp>(launch->getParentOp());
  KernelOp kernel = launch.getKernelOp();
  MaskInputs passed;
  for (auto [i, operand] : llvm::enumerate(launch.getOperands())) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument)
      continue;
    StringRef outer = sequence.getArgumentName(argument.getArgNumber());
    if (auto found = inputs.scalars.find(outer); found != inputs.scalars.end())
      passed.scalars[kernel.getArgumentName(i)] = found->second;
    if (auto found = inputs.views.find(outer); found != inputs.views.end())
      passed.views[kernel.getArgumentName(i)] = found->second;
  }
  return passed;
}

/// Refuses values of arguments that no entry has.
static Error checkNames(ArrayRef<EntryOpInterface> entries, StringRef option,
                        ArrayRef<std::pair<std::string, std::string>> values, bool areViews) {
  for (const auto &value : values) {
    StringRef name = value.first;
    if (llvm::none_of(entries, [&](EntryOpInterface entry) {
          return findArgument(entry, name, areViews).has_value();
        }))
      return createStringError(option + ": there is no " + (areViews ? "view" : "scalar") + " '" +
                               name + "'");
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Pictures
//===----------------------------------------------------------------------===//

static json::Object drawKernel(KernelOp kernel, const Launch &launch, const MaskInputs &inputs) {
  json::Object shape;
  for (const auto &[name, extent] : launch.dims)
    shape[name.str()] = extent;
  json::Object picture{{"shape", std::move(shape)}, {"grid", json::Array(launch.grid)}};
  Expected<std::vector<MaskPicture>> masks = drawMasks(kernel, launch, inputs);
  if (!masks) {
    picture["problem"] = toString(masks.takeError());
    return picture;
  }
  // Loops of which one repeats another have one picture.
  json::Array list;
  for (const MaskPicture &mask : *masks)
    if (json::Value value = toJSON(mask, kernel); !llvm::is_contained(list, value))
      list.push_back(std::move(value));
  picture["masks"] = std::move(list);
  return picture;
}

/// Draws the kernels of an entry, each as its first launch has it.
static Error drawEntry(EntryOpInterface entry, const Extents &extents,
                       const PictureRequest &request,
                       std::map<std::string, json::Object> &pictures) {
  std::string error;
  FailureOr<Launch> launch;
  {
    ErrorCapture errors(entry->getContext());
    launch = resolveLaunch(entry, extents);
    error = errors.getFirst();
  }
  if (failed(launch)) {
    if (!request.shape.empty())
      return createStringError("--shape: " + error);
    for (KernelOp kernel : tile::getKernels(entry))
      pictures[kernel.getSymName().str()] = json::Object{{"problem", error + "; give --shape"}};
    return Error::success();
  }
  Expected<MaskInputs> inputs = readInputs(entry, request, *launch);
  if (!inputs)
    return inputs.takeError();
  if (auto kernel = dyn_cast<KernelOp>(*entry))
    pictures[kernel.getSymName().str()] = drawKernel(kernel, *launch, *inputs);
  for (auto op : entry->getRegion(0).getOps<tile::LaunchOp>())
    // The launch of the sequence has resolved it already.
    if (auto name = op.getKernelOp().getSymName().str(); !pictures.count(name))
      pictures[name] =
          drawKernel(op.getKernelOp(), *resolveLaunch(op, *launch), passInputs(op, *inputs));
  return Error::success();
}

Expected<std::map<std::string, json::Object>>
tessera::explain::drawPictures(ModuleOp source, const PictureRequest &request) {
  SmallVector<EntryOpInterface> entries = getOuterEntries(source);
  Extents given;
  for (const auto &[name, extent] : request.shape)
    if (!given.try_emplace(name, extent).second)
      return createStringError("--shape: " + name + " is given twice");
  if (!given.empty())
    if (Error error = checkShape(entries, given))
      return std::move(error);
  if (Error error = checkNames(entries, "--set", request.scalars, /*areViews=*/false))
    return std::move(error);
  if (Error error = checkNames(entries, "--input", request.inputs, /*areViews=*/true))
    return std::move(error);
  std::map<std::string, json::Object> pictures;
  for (EntryOpInterface entry : entries)
    if (Error error =
            drawEntry(entry, given.empty() ? getDefaultExtents(entry, kDefaultLength) : given,
                      request, pictures))
      return std::move(error);
  return pictures;
}
