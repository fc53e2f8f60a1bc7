//===- Refusal.h - Of what kind an error is -------------------------------===//
//
// An error that refuses a program which is right carries its kind, for whoever
// tries something else then.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_REFUSAL_H
#define TESSERA_DIALECTS_TILE_REFUSAL_H

#include "mlir/IR/Diagnostics.h"
#include "tessera/RefusalKind.h"

namespace tessera {

/// Gives `error` a kind.
void setRefusalKind(mlir::InFlightDiagnostic &error, RefusalKind kind);

/// That which `setRefusalKind` gave it.
RefusalKind getRefusalKind(mlir::Diagnostic &error);

} // namespace tessera

#endif // TESSERA_DIALECTS_TILE_REFUSAL_H
