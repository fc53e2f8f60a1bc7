//===- BundleReader.h - Reading the parts of a bundle -----------*- C++ -*-===//
//
// JSON members are read through llvm::json::Path, so that an error names where in the text it is.
// Every function returns false, or null, after it has reported to its path.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_BUNDLEREADER_H
#define TESSERA_LIB_RUNTIME_BUNDLEREADER_H

#include "lib/Runtime/Bundle.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"

#include <limits>

namespace tessera::runtime {

/// Extents, coordinates and grids are 32-bit numbers with a sign.
constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

bool fail(llvm::json::Path path, llvm::StringLiteral message);
const llvm::json::Object *readObject(const llvm::json::Value &value, llvm::json::Path path);
const llvm::json::Array *readArray(const llvm::json::Object &object, llvm::StringRef key,
                                   llvm::json::Path path);
bool readString(const llvm::json::Object &object, llvm::StringRef key, llvm::json::Path path,
                std::string &out);
/// `expected` says what the bounds are.
bool readInteger(const llvm::json::Value *value, llvm::json::Path path, int64_t low, int64_t high,
                 llvm::StringLiteral expected, int64_t &out);
/// Reads a field that is false when absent.
bool readFlag(const llvm::json::Object &object, llvm::StringRef name, llvm::json::Path path,
              bool &flag);
bool forEachObject(
    const llvm::json::Array &array, llvm::json::Path path,
    llvm::function_ref<bool(const llvm::json::Object &object, llvm::json::Path at)> function);

/// Reads what a kernel and a sequence have in common.
class SignatureReader {
public:
  explicit SignatureReader(Signature &signature) : signature(signature) {}

protected:
  bool readDims(const llvm::json::Object &object, llvm::json::Path path);
  bool readArguments(const llvm::json::Object &object, llvm::json::Path path);
  bool readExtentValue(const llvm::json::Value &value, llvm::json::Path path, Extent &extent);
  /// Reads "extent" of an object.
  bool readExtent(const llvm::json::Object &object, llvm::json::Path path, Extent &extent);
  /// Reads the grid of a kernel; dimensions that it does not have are 1.
  bool readGrid(const llvm::json::Array &array, llvm::json::Path path,
                std::array<GridDim, 3> &grid);
  /// Whether each dimension is one of an argument.
  bool checkDims(llvm::json::Path path);

  Signature &signature;

private:
  bool readScalarBound(const llvm::json::Object &object, llvm::json::Path path,
                       ArgumentInfo &argument);
  bool readArgument(const llvm::json::Object &object, llvm::json::Path path,
                    ArgumentInfo &argument);
};

bool readKernel(const llvm::json::Value &value, llvm::json::Path path, KernelInfo &kernel);
/// Reads a sequence of the kernels of `bundle`.
bool readSequence(const llvm::json::Value &value, llvm::json::Path path, const BundleInfo &bundle,
                  SequenceInfo &sequence);
/// Reads a choice among the kernels of `bundle`.
bool readChoice(const llvm::json::Value &value, llvm::json::Path path, const BundleInfo &bundle,
                ChoiceInfo &choice);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_BUNDLEREADER_H
