//===- DeviceArguments.cpp - Arguments in the form devices take -----------===//

#include "tools/tessera/DeviceArguments.h"
#include "lib/Support/Json.h"
#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace tessera;

static const ElementType &elementOf(tile::EntryOpInterface kernel, unsigned argument) {
  return getElementType(cast<tile::ViewType>(kernel.getArgument(argument).getType()));
}

std::vector<char> tessera::encodeTensor(const HostTensor &tensor, tile::EntryOpInterface kernel,
                                        unsigned argument) {
  const ElementType &type = elementOf(kernel, argument);
  std::vector<char> storage(tensor.data.size() * type.bytes);
  for (size_t i = 0; i < tensor.data.size(); ++i)
    tensor.encode(i, type, &storage[i * type.bytes]);
  return storage;
}

void tessera::decodeTensor(ArrayRef<char> storage, tile::EntryOpInterface kernel, unsigned argument,
                           HostTensor &tensor) {
  const ElementType &type = elementOf(kernel, argument);
  for (size_t i = 0; i < tensor.data.size(); ++i)
    tensor.decode(i, type, &storage[i * type.bytes]);
}

runtime::Argument tessera::describeArgument(Type type, const KernelArgument &value) {
  runtime::Argument argument = {};
  if (auto view = dyn_cast<tile::ViewType>(type)) {
    const HostTensor &tensor = *std::get<HostTensor *>(value);
    argument.type = getElementType(view).type;
    argument.shape = tensor.shape.data();
    argument.strides = tensor.strides.data();
    argument.rank = static_cast<int32_t>(tensor.shape.size());
  } else if (const double *real = std::get_if<double>(&value)) {
    setScalar(*tile::findScalarType(type), *real, argument);
  } else {
    setScalar(*tile::findScalarType(type), std::get<int64_t>(value), argument);
  }
  return argument;
}

Schedules tessera::readSchedules(const runtime::BundleInfo &bundle, MLIRContext *context) {
  Schedules schedules;
  for (const runtime::KernelInfo &info : bundle.kernels) {
    llvm::json::Value kernel = cantFail(parseJson(info.description));
    StringRef text = kernel.getAsObject()->getString("schedule").value_or("");
    schedules.ofKernels[info.name] =
        dyn_cast_or_null<tile::ScheduleAttr>(parseAttribute(text, context));
  }
  for (const runtime::SequenceInfo &sequence : bundle.sequences)
    if (!sequence.steps.empty())
      schedules.firstKernels[sequence.name] = bundle.kernels[sequence.steps.front().kernel].name;
  return schedules;
}

tile::ScheduleAttr Schedules::find(const std::string &kernel) const {
  auto sequence = firstKernels.find(kernel);
  auto found = ofKernels.find(sequence == firstKernels.end() ? kernel : sequence->second);
  return found == ofKernels.end() ? tile::ScheduleAttr() : found->second;
}
