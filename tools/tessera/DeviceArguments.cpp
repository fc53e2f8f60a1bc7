//===- DeviceArguments.cpp - Arguments in the form devices take -----------===//

#include "tools/tessera/DeviceArguments.h"
#include "lib/Interpreter/Numerics.h"
#include "lib/Support/Json.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace tessera;

static FloatType getElementType(tile::KernelOp kernel, unsigned argument) {
  Type type = kernel.getArgument(argument).getType();
  return cast<FloatType>(cast<tile::ViewType>(type).getElementType());
}

std::vector<char> tessera::encodeTensor(const HostTensor &tensor, tile::KernelOp kernel,
                                        unsigned argument) {
  FloatType type = getElementType(kernel, argument);
  unsigned bytes = type.getWidth() / 8;
  std::vector<char> storage(tensor.data.size() * bytes);
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    uint64_t bits = interp::encodeFloat(type, tensor.data[i]);
    if (bytes == 2)
      llvm::support::endian::write16le(&storage[i * 2], bits);
    else
      llvm::support::endian::write32le(&storage[i * 4], bits);
  }
  return storage;
}

void tessera::decodeTensor(ArrayRef<char> storage, tile::KernelOp kernel, unsigned argument,
                           HostTensor &tensor) {
  FloatType type = getElementType(kernel, argument);
  for (size_t i = 0; i < tensor.data.size(); ++i)
    tensor.data[i] = interp::decodeFloat(
        type, type.getWidth() == 16 ? llvm::support::endian::read16le(&storage[i * 2])
                                    : llvm::support::endian::read32le(&storage[i * 4]));
}

runtime::Argument tessera::describeArgument(Type type, const KernelArgument &value) {
  runtime::Argument argument = {};
  if (auto view = dyn_cast<tile::ViewType>(type)) {
    const HostTensor &tensor = *std::get<HostTensor *>(value);
    Type element = view.getElementType();
    argument.type = element.isF16()    ? TESSERA_TYPE_F16
                    : element.isBF16() ? TESSERA_TYPE_BF16
                                       : TESSERA_TYPE_F32;
    argument.shape = tensor.shape.data();
    argument.strides = tensor.strides.data();
    argument.rank = static_cast<int32_t>(tensor.shape.size());
  } else if (type.isF32()) {
    argument.type = TESSERA_TYPE_SCALAR_F32;
    argument.scalar.f32 = static_cast<float>(std::get<double>(value));
  } else if (type.isInteger(32)) {
    argument.type = TESSERA_TYPE_SCALAR_I32;
    argument.scalar.i32 = static_cast<int32_t>(std::get<int64_t>(value));
  } else {
    argument.type = TESSERA_TYPE_SCALAR_I64;
    argument.scalar.i64 = std::get<int64_t>(value);
  }
  return argument;
}

tile::ScheduleAttr tessera::readSchedule(StringRef description, MLIRContext *context) {
  llvm::json::Value kernel = cantFail(parseJson(description));
  StringRef text = kernel.getAsObject()->getString("schedule").value_or("");
  return dyn_cast_or_null<tile::ScheduleAttr>(parseAttribute(text, context));
}
