//===- AttentionChoices.cpp - Kernels of ops, by variant and sizes --------===//

#include "AttentionChoices.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"

using namespace tessera;

using Key = llvm::SmallString<128>;

static Key makeKey(const char *variant, int32_t type, const AttentionSizes &sizes, bool storesLse) {
  Key key(variant);
  key.append(llvm::StringRef(reinterpret_cast<const char *>(sizes.data()), sizeof(sizes)));
  key.push_back(static_cast<char>(type));
  key.push_back(static_cast<char>(storesLse));
  return key;
}

std::optional<tessera_attention_choice> AttentionChoices::findKnown(const char *variant,
                                                                    int32_t type,
                                                                    const AttentionSizes &sizes,
                                                                    bool storesLse) const {
  Key key = makeKey(variant, type, sizes, storesLse);
  std::lock_guard<std::mutex> lock(mutex);
  auto found = choices.find(key);
  return found == choices.end() ? std::nullopt : std::optional(found->second);
}

std::optional<tessera_attention_choice> AttentionChoices::find(const char *variant, int32_t type,
                                                               const AttentionSizes &sizes,
                                                               bool storesLse, std::string &error) {
  if (auto known = findKnown(variant, type, sizes, storesLse))
    return known;
  // The resolver may wait for the compiler, and for Python's lock.
  tessera_attention_choice choice = {};
  if (!resolver || resolver(variant, type, sizes.data(), storesLse, &choice)) {
    // The text of a source would bury the reason.
    llvm::StringRef name(variant);
    error = name.contains('\n') ? "there is no kernel for these functions of scores and masks"
                                : ("there is no kernel for '" + name + "'").str();
    if (choice.error)
      error.append(": ").append(choice.error);
    return std::nullopt;
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (choice.is_final)
    choices[makeKey(variant, type, sizes, storesLse)] = choice;
  return choice;
}

void AttentionChoices::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  choices.clear();
  ++generation;
}

tessera_argument tessera::makeInteger(int64_t value) {
  tessera_argument argument = {};
  argument.type = TESSERA_TYPE_SCALAR_I32;
  argument.scalar.i32 = static_cast<int32_t>(value);
  return argument;
}

tessera_argument tessera::makeFloat(double value) {
  tessera_argument argument = {};
  argument.type = TESSERA_TYPE_SCALAR_F32;
  argument.scalar.f32 = static_cast<float>(value);
  return argument;
}

bool tessera::appendExtras(int32_t extras, const AttentionExtras &values,
                           llvm::SmallVectorImpl<tessera_argument> &arguments) {
  if (extras & TESSERA_ATTENTION_SOFTCAP)
    arguments.push_back(makeFloat(values.softcap));
  if (extras & TESSERA_ATTENTION_ALIBI) {
    if (!values.slopes)
      return false;
    arguments.push_back(*values.slopes);
  }
  if (extras & TESSERA_ATTENTION_WINDOW)
    arguments.append({makeInteger(values.left), makeInteger(values.right)});
  return true;
}
