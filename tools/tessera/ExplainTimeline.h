//===- ExplainTimeline.h - The timeline of an explanation -----------------===//

#ifndef TESSERA_TOOLS_TESSERA_EXPLAINTIMELINE_H
#define TESSERA_TOOLS_TESSERA_EXPLAINTIMELINE_H

#include "tools/tessera/RunKernel.h"
#include "llvm/Support/JSON.h"

namespace tessera {

/// What a page shows of a timeline: `shape`, and `launches`, each with `kernel`, `summary` and
/// `svg`, or a `problem` in place of the latter; or a `problem` in place of the launches.
struct ExplainedTimeline {
  llvm::json::Object data;
  int code = 0; ///< an exit code
};

/// Runs a kernel or a sequence on the simulator, compiled and run as the options say, and draws
/// what it did. Where `run` has no shape, with one that suits the kernel.
ExplainedTimeline explainTimeline(RunOptions run, CompileOptions compile);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_EXPLAINTIMELINE_H
