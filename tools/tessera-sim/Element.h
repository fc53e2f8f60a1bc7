//===- Element.h - Elements of a launch's buffers ---------------*- C++ -*-===//
#ifndef TESSERA_TOOLS_SIM_ELEMENT_H
#define TESSERA_TOOLS_SIM_ELEMENT_H

#include "lib/Simulator/Simulator.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace tessera::sim {

enum class Coding { Unknown, Unsigned, Signed, F16, BF16, F32, F64, E4M3, E5M2 };

struct ElementType {
  unsigned bytes;
  const char *npy; ///< its name in a file of numpy
  Coding coding;
  std::optional<TensorElement> inMaps; ///< what it is in a tensor map

  bool isFloat() const { return coding > Coding::Signed; }
};

/// The type of a name: "f32", "bf16", ...; of no bytes for another text.
ElementType findElementType(llvm::StringRef name);

double decodeElement(const uint8_t *bytes, ElementType type);
/// The bits of the nearest value.
uint64_t encodeElement(double value, ElementType type);

} // namespace tessera::sim

#endif // TESSERA_TOOLS_SIM_ELEMENT_H
