//===- SchedulePasses.h - The passes that choose schedules ----------------===//

#ifndef TESSERA_PASSES_SCHEDULE_SCHEDULEPASSES_H
#define TESSERA_PASSES_SCHEDULE_SCHEDULEPASSES_H

#include "dialects/Tile/Tile.h"
#include "mlir/Pass/Pass.h"

namespace tessera {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Schedule/SchedulePasses.h.inc"

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_SCHEDULEPASSES_H
