//===- Choice.h - Which of several kernels a launch takes -------*- C++ -*-===//

#ifndef TESSERA_LIB_RUNTIME_CHOICE_H
#define TESSERA_LIB_RUNTIME_CHOICE_H

#include "lib/Runtime/Bundle.h"

#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <mutex>

namespace tessera::runtime {

/// Takes the alternative of a choice whose expected time is the least, and remembers it by the
/// extents of a call. Any thread may ask.
class Chooser {
public:
  Chooser(const BundleInfo &bundle, const ChoiceInfo &choice);

  const ChoiceInfo &getInfo() const { return choice; }

  /// The position of the alternative for these extents, in the order of Signature::dims. Where no
  /// alternative takes them it is the first, whose checks say why.
  unsigned choose(llvm::ArrayRef<int64_t> dims);
  /// The same by the extents of arguments, which are not checked yet.
  unsigned choose(llvm::ArrayRef<Argument> arguments);
  /// The microseconds that a launch of an alternative should take; infinite where a kernel of it
  /// does not take these extents.
  double predict(unsigned alternative, llvm::ArrayRef<int64_t> dims) const;

private:
  /// Where an extent is found.
  struct Source {
    unsigned argument = 0, dim = 0;
  };
  struct Slot {
    llvm::SmallVector<int64_t, 8> dims;
    unsigned alternative = 0;
  };

  using Extents = llvm::SmallVector<double, 16>;

  const SequenceInfo *getSequence(const AlternativeInfo &alternative) const;
  double predictSequence(const SequenceInfo &sequence, unsigned alternative,
                         llvm::ArrayRef<int64_t> dims) const;
  unsigned findFastest(llvm::ArrayRef<int64_t> dims) const;

  const BundleInfo &bundle;
  const ChoiceInfo &choice;
  llvm::SmallVector<Source, 8> sources; ///< of each of Signature::dims
  /// Of the launches of the alternatives, of each behind those of the ones before.
  llvm::SmallVector<TimeModel, 4> models;
  llvm::SmallVector<unsigned, 4> firstModels; ///< of each alternative
  /// Whether an alternative and the one before are kernels that take the same extents.
  llvm::SmallVector<bool, 4> isTakenAlike;
  std::mutex mutex; ///< guards `slots`
  std::array<Slot, 256> slots;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_CHOICE_H
