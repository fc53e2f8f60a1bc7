//===- HopTypes.cpp - Types and layouts of the hop dialect ----------------===//

#include "dialects/Hop/Hop.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::hop;

LogicalResult PipeType::verify(function_ref<InFlightDiagnostic()> emitError, RankedTensorType tile,
                               int64_t slots) {
  if (slots < 1)
    return emitError() << "a pipe has at least one slot, got " << slots;
  return success();
}

std::optional<LayoutKind> hop::getLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return std::nullopt;
  if (auto layout = dyn_cast_or_null<LayoutKindAttr>(tensor.getEncoding()))
    return layout.getValue();
  return std::nullopt;
}

RankedTensorType hop::withLayout(RankedTensorType type, LayoutKind kind) {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               LayoutKindAttr::get(type.getContext(), kind));
}
