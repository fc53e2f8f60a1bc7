//===- Json.h - Stages in JSON --------------------------------------------===//

#ifndef TESSERA_LIB_TIMELINE_JSON_H
#define TESSERA_LIB_TIMELINE_JSON_H

#include "lib/Timeline/Timeline.h"

namespace tessera::timeline {

/// A stage as bundles and timelines have it.
bool fromJSON(const llvm::json::Value &value, Stage &stage, llvm::json::Path path);

} // namespace tessera::timeline

#endif // TESSERA_LIB_TIMELINE_JSON_H
