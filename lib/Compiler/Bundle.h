//===- Bundle.h - Kernels with what a launch needs ------------------------===//
//
// A bundle is an image and a JSON description; see docs/bundle.md.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_COMPILER_BUNDLE_H
#define TESSERA_LIB_COMPILER_BUNDLE_H

#include "lib/Codegen/PTXText.h"
#include "lib/Codegen/PtxasLog.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <memory>

namespace tessera {

enum class ImageKind { Cubin, PTX };

/// The bytes of a cubin, or PTX text. Kernels that were assembled together share it.
using Image = std::shared_ptr<const std::string>;

/// A kernel of `describeKernels`, and where its code is.
struct BundledKernel {
  llvm::json::Object description;
  Image image;
};

/// `attribute` as JSON: dictionaries as objects, arrays and dense i32/i64 arrays as arrays,
/// strings and types as strings, integers, floats, i1 as booleans, unit as true. Anything else is
/// an error at `loc`.
mlir::FailureOr<llvm::json::Value> toJSON(mlir::Attribute attribute, mlir::Location loc);

/// Describes the kernels of a lowered module, in order: the attribute `tessera.kernel` of each
/// function that has it, with the number of instructions in its PTX added to "report" and, when
/// `log` is given, the resources that ptxas counted.
mlir::FailureOr<llvm::json::Array> describeKernels(mlir::ModuleOp module, const PTXText &ptx,
                                                   const PtxasLog *log);

/// What people ask of a kernel of `describeKernels`: its "report", with the schedule and what lies
/// where in shared memory, which its entry of a bundle has outside of the report.
llvm::json::Object completeReport(const llvm::json::Object &kernel);

/// Bundle text of kernels and their images. `parameters` are the values of the source's parameters
/// by name; `sequences` launch the kernels, `choices` one of several.
std::string writeBundle(llvm::json::Object parameters, ImageKind kind,
                        llvm::ArrayRef<BundledKernel> kernels, llvm::json::Array sequences,
                        llvm::json::Array choices);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_BUNDLE_H
