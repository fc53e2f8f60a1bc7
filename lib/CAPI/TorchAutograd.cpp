//===- TorchAutograd.cpp - Functions of autograd around calls -------------===//
//
// The forward and the backward of a torch.autograd.Function, past PyTorch's dispatcher. PyTorch has
// no interface for functions of autograd that are built apart from it: Python has the function, and
// calls these.
//
//===----------------------------------------------------------------------===//

#include "TorchDirect.h"

#include "llvm/ADT/SmallVectorExtras.h"

using namespace tessera;

//===----------------------------------------------------------------------===//
// Calls that follow each other
//===----------------------------------------------------------------------===//

namespace {

/// What calls are given and give, in the order of tessera_torch_stage. Owns what they give.
class Places {
public:
  explicit Places(size_t count) : objects(count, Interpreter::get().none) {}

  void *&operator[](size_t place) { return objects[place]; }
  void *get(int32_t place) const { return place < 0 ? Interpreter::get().none : objects[place]; }
  llvm::SmallVector<void *, 16> list(llvm::ArrayRef<int32_t> places) const {
    return llvm::map_to_vector<16>(places, [&](int32_t place) { return get(place); });
  }
  void add(const tessera_torch_direct::Results &results) {
    for (const Object &result : results) {
      owned.push_back(result);
      objects.push_back(result.get());
    }
  }
  bool hasAll(llvm::ArrayRef<int32_t> places) const {
    return llvm::all_of(
        places, [&](int32_t place) { return place < static_cast<int32_t>(objects.size()); });
  }

private:
  llvm::SmallVector<void *, 32> objects;
  llvm::SmallVector<Object, 12> owned;
};

/// Calls of one set of numbers.
class Chain {
public:
  Chain(const tessera_torch_stage *given, size_t count) {
    for (const tessera_torch_stage &each : llvm::ArrayRef(given, count))
      stages.push_back({each.direct, {each.tensors, each.tensors + each.count}});
  }

  bool readNumbers(void *tuple, CallNumbers &read) const {
    return stages.front().direct->readNumbers(tuple, read);
  }
  /// Adds what the calls give to `places`; false when another way is to be gone.
  bool run(Places &places, const CallNumbers &numbers) const {
    for (const Stage &stage : stages) {
      if (!places.hasAll(stage.tensors))
        return false;
      auto results = stage.direct->run(places.list(stage.tensors), numbers);
      if (!results)
        return false;
      places.add(*results);
    }
    return true;
  }

private:
  struct Stage {
    tessera_torch_direct *direct;
    std::vector<int32_t> tensors;
  };
  llvm::SmallVector<Stage, 2> stages;
};

} // namespace

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

struct tessera_torch_forward {
  explicit tessera_torch_forward(const tessera_torch_forward_options &given)
      : options(given), chain(given.stages, given.stage_count),
        kept(given.kept, given.kept + given.kept_count),
        results(given.results, given.results + given.result_count) {}

  bool readOwnNumbers() { return chain.readNumbers(options.numbers, numbers.emplace()); }
  void *run(llvm::ArrayRef<void *> arguments) const;

private:
  bool compute(Places &places, void *given) const;
  void *runOther(llvm::ArrayRef<void *> arguments) const;

  const tessera_torch_forward_options options;
  const Chain chain;
  const std::vector<int32_t> kept, results;
  std::optional<CallNumbers> numbers; ///< none where they are an input
};

tessera_torch_forward *tessera_torch_forward_create(const tessera_torch_forward_options *options) {
  auto made = std::make_unique<tessera_torch_forward>(*options);
  return options->numbers && !made->readOwnNumbers() ? nullptr : made.release();
}

void *tessera_torch_forward::runOther(llvm::ArrayRef<void *> arguments) const {
  Object all = makeTuple(arguments);
  return all ? Interpreter::get().call(options.other, all.get(), nullptr) : nullptr;
}

/// `given` are the numbers that are an input.
bool tessera_torch_forward::compute(Places &places, void *given) const {
  CallNumbers read;
  if (!numbers && !chain.readNumbers(given, read))
    return false;
  return chain.run(places, numbers ? *numbers : read) && places.hasAll(kept) &&
         places.hasAll(results);
}

void *tessera_torch_forward::run(llvm::ArrayRef<void *> arguments) const {
  const Interpreter &python = Interpreter::get();
  size_t first = numbers ? 1 : 2, count = options.input_count;
  // Without a first tensor the other one says what is missing.
  if (arguments.size() <= first || arguments.size() > first + count)
    return runOther(arguments);
  void *context = arguments[0], *given = numbers ? nullptr : arguments[1];
  Places places(count);
  for (auto [i, tensor] : llvm::enumerate(arguments.drop_front(first)))
    places[i] = tensor;
  if (!compute(places, given))
    return runOther(arguments);
  llvm::SmallVector<void *, 16> keeping = places.list(kept);
  while (!keeping.empty() && keeping.back() == python.none)
    keeping.pop_back();
  Object saved = makeTuple(keeping);
  bool isSeveral = results.size() > 1;
  if (!saved || python.setAttribute(context, options.to_save, saved.get()) ||
      (given && python.setAttribute(context, options.kept_numbers, given)) ||
      (isSeveral && python.setAttribute(context, options.materialize_grads, options.never)))
    return nullptr;
  if (isSeveral)
    return makeTuple(places.list(results)).release();
  void *result = places.get(results.front());
  python.incrementReferences(result);
  return result;
}

void *tessera_torch_apply_forward(void *self, void *const *arguments, intptr_t count) {
  void *forward = Interpreter::get().intAsPointer(self);
  return forward ? static_cast<tessera_torch_forward *>(forward)->run({arguments, size_t(count)})
                 : nullptr;
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

struct tessera_torch_backward {
  explicit tessera_torch_backward(const tessera_torch_backward_options &given)
      : keptCount(given.kept_count), resultCount(given.result_count),
        chain(given.stages, given.stage_count),
        gradients(given.gradients, given.gradients + given.input_count) {}

  /// Null where the op is to be called.
  void *run(void *saved, void *ofResults, void *given) const;

private:
  const int32_t keptCount, resultCount;
  const Chain chain;
  const std::vector<int32_t> gradients;
};

tessera_torch_backward *
tessera_torch_backward_create(const tessera_torch_backward_options *options) {
  return new tessera_torch_backward(*options);
}

void *tessera_torch_backward::run(void *saved, void *ofResults, void *given) const {
  const Interpreter &python = Interpreter::get();
  CallNumbers numbers;
  intptr_t count = python.tupleSize(ofResults), savedCount = python.tupleSize(saved);
  if (savedCount < 0 || savedCount > keptCount || count < 1 || count > resultCount ||
      python.tupleItem(ofResults, 0) == python.none || !chain.readNumbers(given, numbers))
    return nullptr;
  Places places(keptCount + resultCount);
  for (intptr_t i = 0; i < savedCount; ++i)
    places[i] = python.tupleItem(saved, i);
  for (intptr_t i = 0; i < count; ++i)
    places[keptCount + i] = python.tupleItem(ofResults, i);
  if (!chain.run(places, numbers) || !places.hasAll(gradients))
    return nullptr;
  return makeTuple(places.list(gradients)).release();
}

void *tessera_torch_apply_backward(void *self, void *const *arguments, intptr_t count) {
  const Interpreter &python = Interpreter::get();
  void *backward;
  if (count == 3 && python.readAddress(self, backward) && backward)
    if (void *gradients = static_cast<tessera_torch_backward *>(backward)->run(
            arguments[0], arguments[1], arguments[2]))
      return gradients;
  python.clearError();
  python.incrementReferences(python.none);
  return python.none;
}
