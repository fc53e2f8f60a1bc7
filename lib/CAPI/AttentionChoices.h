//===- AttentionChoices.h - Kernels of ops, by variant and sizes -*- C++ -*-===//

#ifndef TESSERA_CAPI_ATTENTIONCHOICES_H
#define TESSERA_CAPI_ATTENTIONCHOICES_H

#include "tessera-c/Attention.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

namespace tessera {

/// B, H, SQ, D, HK, SK, DV.
using AttentionSizes = std::array<int64_t, 7>;

/// The final choices of a resolver. Calls may come from any thread.
class AttentionChoices {
public:
  void setResolver(tessera_attention_resolver newResolver) { resolver = newResolver; }
  /// None when there is nothing, with the reason in `error`.
  std::optional<tessera_attention_choice> find(const char *variant, int32_t type,
                                               const AttentionSizes &sizes, bool storesLse,
                                               std::string &error);
  /// The same without asking the resolver: only what it has found and called final.
  std::optional<tessera_attention_choice>
  findKnown(const char *variant, int32_t type, const AttentionSizes &sizes, bool storesLse) const;
  void clear();
  /// Another one after each `clear`.
  unsigned getGeneration() const { return generation; }

private:
  tessera_attention_resolver resolver = nullptr;
  std::atomic<unsigned> generation = 0;
  mutable std::mutex mutex; ///< guards `choices`
  llvm::StringMap<tessera_attention_choice> choices;
};

/// What follows q, k, v, o, lse (if it is stored) and scale in a launch.
struct AttentionExtras {
  double softcap;
  const tessera_argument *slopes; ///< null when there are none
  int64_t left, right;
};

tessera_argument makeFloat(double value);
tessera_argument makeInteger(int64_t value);

/// Appends what `extras` of tessera_attention_extras ask for; false when slopes are missing.
bool appendExtras(int32_t extras, const AttentionExtras &values,
                  llvm::SmallVectorImpl<tessera_argument> &arguments);

} // namespace tessera

#endif // TESSERA_CAPI_ATTENTIONCHOICES_H
