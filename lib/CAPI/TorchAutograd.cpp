//===- TorchAutograd.cpp - Functions of autograd around calls -------------===//
//
// The forward and the backward of a torch.autograd.Function, past PyTorch's dispatcher. PyTorch has
// no interface for functions of autograd that are built apart from it: Python has the function, and
// calls these.
//
//===----------------------------------------------------------------------===//

#include "TorchDirect.h"

using namespace tessera;

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

struct tessera_torch_forward {
  tessera_torch_forward_options options;
  std::optional<CallNumbers> numbers; ///< none where they are an input

  void *run(llvm::ArrayRef<void *> arguments) const;
  std::optional<tessera_torch_direct::Results> compute(llvm::ArrayRef<void *> tensors,
                                                       void *given) const;
  void *runOther(llvm::ArrayRef<void *> arguments) const;
};

tessera_torch_forward *tessera_torch_forward_create(const tessera_torch_forward_options *options) {
  std::optional<CallNumbers> numbers;
  if (options->numbers && !options->direct->readNumbers(options->numbers, numbers.emplace()))
    return nullptr;
  return new tessera_torch_forward{*options, numbers};
}

void *tessera_torch_forward::runOther(llvm::ArrayRef<void *> arguments) const {
  Object all = makeTuple(arguments);
  return all ? Interpreter::get().call(options.other, all.get(), nullptr) : nullptr;
}

/// Output and LSE, or nothing; `given` are the numbers that are an input.
std::optional<tessera_torch_direct::Results>
tessera_torch_forward::compute(llvm::ArrayRef<void *> tensors, void *given) const {
  tensors = tensors.take_front(options.call_count);
  if (numbers)
    return options.direct->run(tensors, *numbers);
  CallNumbers read;
  if (options.direct->readNumbers(given, read))
    return options.direct->run(tensors, read);
  return std::nullopt;
}

void *tessera_torch_forward::run(llvm::ArrayRef<void *> arguments) const {
  const Interpreter &python = Interpreter::get();
  size_t first = numbers ? 1 : 2;
  if (arguments.size() < first + 3)
    return runOther(arguments); // which says what is missing
  void *context = arguments[0], *given = numbers ? nullptr : arguments[1];
  llvm::ArrayRef<void *> tensors = arguments.drop_front(first);
  std::optional<tessera_torch_direct::Results> results = compute(tensors, given);
  if (!results || results->size() != 2)
    return runOther(arguments);
  const Object &out = (*results)[0], &lse = (*results)[1];
  llvm::SmallVector<void *, 12> kept = {tensors[0], tensors[1], tensors[2], out.get(), lse.get()};
  for (auto [i, tensor] : llvm::enumerate(tensors.drop_front(3)))
    if (int32_t place = i + 3; place < options.kept_count || place >= options.call_count)
      if (tensor != python.none)
        kept.push_back(tensor);
  Object saved = makeTuple(kept);
  if (!saved || python.setAttribute(context, options.to_save, saved.get()) ||
      (given && python.setAttribute(context, options.kept_numbers, given)) ||
      (options.returns_lse &&
       python.setAttribute(context, options.materialize_grads, options.never)))
    return nullptr;
  return options.returns_lse ? makeTuple({out.get(), lse.get()}).release() : Object(out).release();
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
      : options(given), learned(given.learned, given.learned + given.learned_count) {}

  /// Null where the op is to be called.
  void *run(void *saved, void *gradient, void *ofLse, void *given) const;

private:
  tessera_torch_backward_options options;
  std::vector<int32_t> learned;
};

tessera_torch_backward *
tessera_torch_backward_create(const tessera_torch_backward_options *options) {
  return new tessera_torch_backward(*options);
}

void *tessera_torch_backward::run(void *saved, void *gradient, void *ofLse, void *given) const {
  const Interpreter &python = Interpreter::get();
  intptr_t count = python.tupleSize(saved);
  CallNumbers numbers;
  if (count < 5 || gradient == python.none || !options.direct->readNumbers(given, numbers))
    return nullptr;
  auto get = [&](intptr_t index) { return python.tupleItem(saved, index); };
  llvm::SmallVector<void *, 12> tensors = {get(0), get(1), get(2), get(3), gradient, get(4), ofLse};
  for (intptr_t i = 5; i < count; ++i)
    tensors.push_back(get(i));
  std::optional<tessera_torch_direct::Results> results = options.direct->run(tensors, numbers);
  if (!results || results->size() != 3 + learned.size())
    return nullptr;
  llvm::SmallVector<void *, 12> gradients(options.input_count, python.none);
  for (int i = 0; i < 3; ++i)
    gradients[options.first + i] = (*results)[i].get();
  for (auto [i, place] : llvm::enumerate(learned))
    gradients[place] = (*results)[3 + i].get();
  return makeTuple(gradients).release();
}

void *tessera_torch_apply_backward(void *self, void *const *arguments, intptr_t count) {
  const Interpreter &python = Interpreter::get();
  void *backward;
  if (count == 4 && python.readAddress(self, backward) && backward)
    if (void *gradients = static_cast<tessera_torch_backward *>(backward)->run(
            arguments[0], arguments[1], arguments[2], arguments[3]))
      return gradients;
  python.clearError();
  python.incrementReferences(python.none);
  return python.none;
}
