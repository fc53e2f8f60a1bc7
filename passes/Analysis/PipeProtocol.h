//===- PipeProtocol.h - Whether roles can wait for each other for ever ----===//
//
// The proof that the pipes of a kernel have the slots that its roles need.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_PIPEPROTOCOL_H
#define TESSERA_PASSES_ANALYSIS_PIPEPROTOCOL_H

#include "dialects/Hop/Hop.h"

namespace tessera {

/// Refuses a pipe that nobody fills or nobody reads, or that two roles fill: their fills would have
/// no order.
mlir::LogicalResult checkUse(hop::PipeCreateOp pipe);

/// Refuses `kernel`, whose pipes are not yet mbarriers, when its roles can come to wait for each
/// other for ever.
mlir::LogicalResult checkPipes(hop::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_PIPEPROTOCOL_H
