//===- Refusal.cpp - Of what kind an error is -----------------------------===//

#include "dialects/Tile/Refusal.h"

using namespace mlir;
using namespace tessera;

void tessera::setRefusalKind(InFlightDiagnostic &error, RefusalKind kind) {
  if (Diagnostic *diagnostic = error.getUnderlyingDiagnostic())
    diagnostic->getMetadata().push_back(DiagnosticArgument(static_cast<int64_t>(kind)));
}

RefusalKind tessera::getRefusalKind(Diagnostic &error) {
  for (const DiagnosticArgument &argument : error.getMetadata())
    if (argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::Integer)
      return static_cast<RefusalKind>(argument.getAsInteger());
  return RefusalKind::None;
}
