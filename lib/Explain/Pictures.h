//===- Pictures.h - Pictures of the masks of a source ---------------------===//

#ifndef TESSERA_LIB_EXPLAIN_PICTURES_H
#define TESSERA_LIB_EXPLAIN_PICTURES_H

#include "dialects/Tile/Entries.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <string>
#include <vector>

namespace tessera::explain {

/// What pictures are drawn for.
struct PictureRequest {
  /// Extents of all named dimensions; empty for some that suit the source.
  std::vector<std::pair<std::string, int64_t>> shape;
  /// Values of scalar arguments, and .npy files for views, that masks depend on.
  std::vector<std::pair<std::string, std::string>> scalars, inputs;
};

/// Extents that suit a kernel or a sequence: 1 of each dimension whose elements have a grid point
/// each, as heads and batches do, and of those that must divide it, and `length` of others.
llvm::StringMap<int64_t> getDefaultExtents(tile::EntryOpInterface entry, int64_t length);

/// Of each kernel of `source`, a module as it is read, by its name: `shape`, and `masks` as
/// toJSON(MaskPicture) has them or a `problem`. An error says what is wrong with the request.
llvm::Expected<std::map<std::string, llvm::json::Object>>
drawPictures(mlir::ModuleOp source, const PictureRequest &request);

} // namespace tessera::explain

#endif // TESSERA_LIB_EXPLAIN_PICTURES_H
