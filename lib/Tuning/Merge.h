//===- Merge.h - From measurements to the database ------------------------===//

#ifndef TESSERA_LIB_TUNING_MERGE_H
#define TESSERA_LIB_TUNING_MERGE_H

#include "lib/Tuning/Session.h"

namespace tessera::tuning {

/// Contestants whose times differ by less, as a fraction, are equally fast: the one with the fewest
/// changes wins.
inline constexpr double kTie = 0.005;

/// The shapes of `target` that are in one class.
struct ClassShapes {
  std::string name;
  std::vector<size_t> shapes;
};
std::vector<ClassShapes> groupShapes(const Target &target, const Device &device);

/// The number of the contestant that is fastest over some shapes, by `chooseWinner`; that of all
/// contestants when none was timed on each.
size_t findWinner(const Target &target, llvm::ArrayRef<size_t> shapes);

/// The contestant that is the model's choice where shapes were measured: the first of all, and of a
/// kernel of a sequence the first that ran them, as the tiles may have been chosen for another
/// kernel before.
const Contestant &getModelChoice(const Target &target, llvm::ArrayRef<size_t> shapes);

/// The entries that a measured session is worth: the winner of each class of each target, once for
/// the target's parameters and once for each of its `also`. A class without a winner has none.
std::vector<Entry> makeEntries(const Session &session);

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_MERGE_H
