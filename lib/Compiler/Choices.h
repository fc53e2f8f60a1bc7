//===- Choices.h - Where parameters and schedules come from ---------------===//
//
// What a compilation takes is given, the source's, a rule's, measured, or the model's. Reports say
// which, and where what rules chose does not compile, an error says which rules chose.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_COMPILER_CHOICES_H
#define TESSERA_LIB_COMPILER_CHOICES_H

#include "lib/Compiler/Pipeline.h"
#include "lib/Compiler/Tuned.h"
#include "lib/Source/Source.h"
#include "llvm/Support/JSON.h"

namespace tessera {

/// The origin of each parameter and each field of the schedule of `kernel`, which has the fields
/// that are set before the model chooses: {"parameters": {"BN": "rules.json:12"}, "schedule":
/// {"stages": "model"}}. `choices` are of reading the source, `asked` is what the options set, and
/// `tuned` what the database has for the kernel, if anything.
llvm::json::Object describeOrigins(tile::KernelOp kernel, llvm::ArrayRef<Choice> choices,
                                   llvm::ArrayRef<ScheduleOverride> asked,
                                   const TunedKernel *tuned);

/// What is chosen for a source with the parameters, extents, GPU and rules of `options`, before it
/// is compiled: {"parameters": {"BN": {"value": "128", "origin": "rules.json:12",
/// "allowed": ["64", "128"]}}, "schedules": {"kernel": {"value": "stages = 2", "origin": ...}},
/// "form": {"value": "other.tile", "origin":
/// ...}, "instead": [{"BN": "64"}]}, where rules choose another source, and what parameters take
/// where registers or shared memory are short. "extents": [[["ge", "SQ", 512], true]] has the
/// comparisons of extents that decided: with others that compare so all else is the same. Errors
/// are as of reading the source.
struct Resolution {
  CompileStatus status = CompileStatus::Success;
  llvm::json::Object choices;
};
Resolution resolve(llvm::StringRef source, llvm::StringRef fileName, const CompileOptions &options,
                   const DiagnosticHandler &handler);

/// Says, after the errors of a compilation, which rules chose what it compiled: an error at the
/// likeliest of them, with the others in notes. Does nothing where no rule did, or where the caller
/// gives a parameter that rules choose.
void reportRules(mlir::ModuleOp source, llvm::ArrayRef<Choice> choices,
                 const CompileOptions &options);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_CHOICES_H
