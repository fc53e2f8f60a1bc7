//===- Bundle.cpp - Kernels with what a launch needs ----------------------===//

#include "lib/Compiler/Bundle.h"
#include "lib/Codegen/EmitPTX.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/LowerToLLVM/KernelAttributes.h"
#include "tessera/BundleKeys.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace json = llvm::json;

namespace tessera {

//===----------------------------------------------------------------------===//
// Attributes to JSON
//===----------------------------------------------------------------------===//

static FailureOr<json::Value> integerToJSON(IntegerAttr attribute, Location loc) {
  if (attribute.getType().isSignlessInteger(1))
    return json::Value(attribute.getValue().getBoolValue());
  if (!attribute.getValue().isSignedIntN(64)) {
    emitError(loc) << "the integer " << attribute << " does not fit in 64 bits";
    return failure();
  }
  return json::Value(attribute.getValue().getSExtValue());
}

static FailureOr<json::Value> arrayToJSON(ArrayAttr attribute, Location loc) {
  json::Array array;
  for (Attribute element : attribute) {
    FailureOr<json::Value> value = toJSON(element, loc);
    if (failed(value))
      return failure();
    array.push_back(std::move(*value));
  }
  return json::Value(std::move(array));
}

static FailureOr<json::Value> dictionaryToJSON(DictionaryAttr attribute, Location loc) {
  json::Object object;
  for (NamedAttribute entry : attribute) {
    FailureOr<json::Value> value = toJSON(entry.getValue(), loc);
    if (failed(value))
      return failure();
    object[entry.getName().str()] = std::move(*value);
  }
  return json::Value(std::move(object));
}

static std::string typeName(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

FailureOr<json::Value> toJSON(Attribute attribute, Location loc) {
  using Result = FailureOr<json::Value>;
  return llvm::TypeSwitch<Attribute, Result>(attribute)
      .Case([&](IntegerAttr integer) { return integerToJSON(integer, loc); })
      .Case([&](ArrayAttr array) { return arrayToJSON(array, loc); })
      .Case([&](DictionaryAttr dictionary) { return dictionaryToJSON(dictionary, loc); })
      .Case([](StringAttr string) -> Result { return json::Value(string.str()); })
      .Case([](FloatAttr number) -> Result { return json::Value(number.getValueAsDouble()); })
      .Case([](TypeAttr type) -> Result { return json::Value(typeName(type.getValue())); })
      .Case([](DenseI64ArrayAttr array) -> Result {
        return json::Value(json::Array(array.asArrayRef()));
      })
      .Case([](DenseI32ArrayAttr array) -> Result {
        return json::Value(json::Array(array.asArrayRef()));
      })
      .Case([](UnitAttr) -> Result { return json::Value(true); })
      .Default([&](Attribute other) -> Result {
        emitError(loc)
            << "the description of a kernel holds " << other
            << ", which has no JSON form; use dictionaries, arrays, strings, numbers and "
               "types";
        return failure();
      });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static json::Object resourcesToJSON(const PtxasFunction &function) {
  return json::Object{{key::registers, function.registers},
                      {key::barriers, function.barriers},
                      {key::stackBytes, function.stackBytes},
                      {key::spillStoreBytes, function.spillStoreBytes},
                      {key::spillLoadBytes, function.spillLoadBytes}};
}

static FailureOr<json::Object> describeKernel(Operation *function, const PTXText &ptx,
                                              const PtxasLog *log) {
  auto dictionary = function->getAttrOfType<DictionaryAttr>(kernelAttrName);
  auto symbol = function->getAttrOfType<StringAttr>("sym_name");
  if (!dictionary || !symbol) {
    emitError(function->getLoc()) << "'" << kernelAttrName
                                  << "' must be a dictionary on an operation with a symbol name";
    return failure();
  }
  FailureOr<json::Value> value = toJSON(dictionary, function->getLoc());
  if (failed(value))
    return failure();
  json::Object kernel = std::move(*value->getAsObject());
  json::Object report;
  if (json::Object *given = kernel.getObject(key::report))
    report = std::move(*given);
  report[key::instructions] = ptx.counts(symbol.getValue()).toJSON();
  if (const PtxasFunction *resources = log ? log->find(symbol.getValue()) : nullptr)
    report[key::resources] = resourcesToJSON(*resources);
  kernel[key::report] = std::move(report);
  return kernel;
}

FailureOr<json::Array> describeKernels(ModuleOp module, const PTXText &ptx, const PtxasLog *log) {
  json::Array kernels;
  for (Operation &op : module.getOps()) {
    if (!op.hasAttr(kernelAttrName))
      continue;
    FailureOr<json::Object> kernel = describeKernel(&op, ptx, log);
    if (failed(kernel))
      return failure();
    kernels.push_back(std::move(*kernel));
  }
  return kernels;
}

json::Object completeReport(const json::Object &kernel) {
  json::Object report, shared;
  if (const json::Object *own = kernel.getObject(key::report))
    report = *own;
  auto copy = [&](StringRef from, json::Object &to, StringRef as) {
    if (const json::Value *value = kernel.get(from))
      to[as] = *value;
  };
  copy(key::sharedMemory, shared, key::bytes);
  copy(key::sharedMap, shared, "map");
  copy(key::barriers, shared, key::barriers);
  report[key::sharedMemory] = std::move(shared);
  copy(key::schedule, report, key::schedule);
  return report;
}

static json::Object describeImage(ImageKind kind, const Image &image) {
  return json::Object{{key::kind, kind == ImageKind::Cubin ? "cubin" : "ptx"},
                      {key::base64, llvm::encodeBase64(*image)}};
}

static bool hasWrappingStride(const json::Array &kernels) {
  for (const json::Value &kernel : kernels)
    for (const json::Value &parameter : *kernel.getAsObject()->getArray(key::launchParameters))
      if (const json::Array *dims = parameter.getAsObject()->getArray(key::dims))
        if (llvm::any_of(*dims,
                         [](const json::Value &dim) { return dim.getAsObject()->get(key::wraps); }))
          return true;
  return false;
}

static bool hasRoundingMap(const json::Array &kernels) {
  return llvm::any_of(kernels, [](const json::Value &kernel) {
    return llvm::any_of(
        *kernel.getAsObject()->getArray(key::launchParameters), [](const json::Value &parameter) {
          return parameter.getAsObject()->getString(key::element) == StringRef(elements::tf32);
        });
  });
}

/// What has none of these is for readers that know none too.
static int findVersion(bool hasImages, const json::Array &kernels, const json::Array &sequences,
                       const json::Array &choices) {
  if (hasWrappingStride(kernels) || hasRoundingMap(kernels))
    return 6;
  for (const json::Value &choice : choices)
    for (const json::Value &alternative : *choice.getAsObject()->getArray(key::alternatives))
      if (alternative.getAsObject()->get(key::sequence))
        return 5;
  return hasImages ? 4 : !choices.empty() ? 3 : sequences.empty() ? 1 : 2;
}

std::string writeBundle(json::Object parameters, ImageKind kind, ArrayRef<BundledKernel> kernels,
                        json::Array sequences, json::Array choices) {
  SmallVector<Image> images;
  json::Array described, further;
  for (const BundledKernel &kernel : kernels) {
    size_t number = llvm::find(images, kernel.image) - images.begin();
    if (number == images.size())
      images.push_back(kernel.image);
    json::Object entry = kernel.description;
    if (number)
      entry[key::image] = number;
    described.push_back(std::move(entry));
  }
  for (const Image &image : llvm::drop_begin(images))
    further.push_back(describeImage(kind, image));
  json::Object bundle{{key::format, "tessera-bundle"},
                      {key::version, findVersion(!further.empty(), described, sequences, choices)},
                      {key::target, targetName},
                      {key::parameters, std::move(parameters)},
                      {key::image, describeImage(kind, images.front())},
                      {key::kernels, std::move(described)}};
  if (!further.empty())
    bundle[key::furtherImages] = std::move(further);
  if (!sequences.empty())
    bundle[key::sequences] = std::move(sequences);
  if (!choices.empty())
    bundle[key::choices] = std::move(choices);
  return llvm::formatv("{0:2}\n", json::Value(std::move(bundle))).str();
}

} // namespace tessera
