//===- WorkOrder.cpp - In which order a thread works through its tiles ----===//
//
// Only instructions of one block change places, and none passes a product, a barrier or a store.
//
//===----------------------------------------------------------------------===//

#include "lib/Codegen/WorkOrder.h"
#include "lib/Codegen/AssemblyText.h"
#include "passes/LowerToLLVM/KernelAttributes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include <map>
#include <queue>

namespace tessera {

namespace {
/// How an instruction goes with the others of its block.
enum class Place {
  Free,  ///< anywhere between what it takes and what takes it
  Kept,  ///< where it is; free ones may pass it
  Fixed, ///< where it is; what stands before it stays there
};

/// Orders the instructions of one block.
class BlockOrder {
public:
  explicit BlockOrder(llvm::BasicBlock &block) : block(block) {}
  void run();

private:
  void emit(llvm::Instruction *instruction);
  void flush();
  void findDependent();
  void release(llvm::Instruction *leaf);
  bool isPending(const llvm::Value *value) const { return pendingSet.contains(value); }

  llvm::BasicBlock &block;
  std::vector<llvm::Instruction *> pending, ordered;
  llvm::DenseSet<const llvm::Value *> pendingSet;
  llvm::DenseMap<const llvm::Instruction *, unsigned> numbers;
  /// The elements of accumulators that have been waited for since the last flush, by their number.
  std::map<unsigned, std::vector<llvm::Instruction *>> leaves;
  /// Of pending instructions that are made of such elements, how many operands that are made of
  /// them are to come.
  llvm::DenseMap<const llvm::Instruction *, unsigned> missing;
};
} // namespace

static bool isWait(const llvm::Instruction &instruction) {
  return assemblyOf(instruction).contains("wgmma.wait_group");
}

/// Which of the places an instruction has.
static Place placeOf(const llvm::Instruction &instruction) {
  if (instruction.isTerminator() || llvm::isa<llvm::PHINode>(instruction))
    return Place::Fixed;
  if (auto *intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      intrinsic && intrinsic->getCalledFunction()->getName().contains("nvvm.shfl"))
    return Place::Free;
  if (llvm::StringRef text = assemblyOf(instruction); !text.empty()) {
    auto *assembly =
        llvm::cast<llvm::InlineAsm>(llvm::cast<llvm::CallBase>(instruction).getCalledOperand());
    if (!assembly->hasSideEffects())
      return Place::Free;
    // Loads of elements and additions to memory, which no other instruction of the kernel reads.
    bool isGuarded = text.contains("@p");
    if (text.contains("ld.shared") || (isGuarded && text.contains("ld.global")) ||
        text.contains("red."))
      return Place::Free;
    if (isWait(instruction) || text.contains("ld.global"))
      return Place::Kept;
  }
  return instruction.mayHaveSideEffects() || instruction.mayReadOrWriteMemory() ? Place::Fixed
                                                                                : Place::Free;
}

/// Places `instruction`, which is pending, behind what it takes.
void BlockOrder::emit(llvm::Instruction *instruction) {
  std::vector<std::pair<llvm::Instruction *, unsigned>> path = {{instruction, 0}};
  pendingSet.erase(instruction);
  while (!path.empty()) {
    auto &[last, next] = path.back();
    if (next == last->getNumOperands()) {
      ordered.push_back(last);
      path.pop_back();
      continue;
    }
    llvm::Value *operand = last->getOperand(next++);
    if (isPending(operand)) {
      pendingSet.erase(operand);
      path.push_back({llvm::cast<llvm::Instruction>(operand), 0});
    }
  }
}

/// Finds out which pending instructions are made of leaves, and of how many such operands.
void BlockOrder::findDependent() {
  llvm::DenseSet<const llvm::Value *> dependent;
  for (auto &[number, elements] : leaves)
    dependent.insert(elements.begin(), elements.end());
  missing.clear();
  for (llvm::Instruction *instruction : pending) {
    if (!isPending(instruction))
      continue;
    llvm::DenseSet<const llvm::Value *> operands;
    for (const llvm::Value *operand : instruction->operand_values())
      if (dependent.contains(operand))
        operands.insert(operand);
    if (operands.empty())
      continue;
    missing[instruction] = operands.size();
    dependent.insert(instruction);
  }
}

/// Places what is made of `leaf` and of those before it.
void BlockOrder::release(llvm::Instruction *leaf) {
  auto later = [&](llvm::Instruction *a, llvm::Instruction *b) {
    return numbers.lookup(a) > numbers.lookup(b);
  };
  std::priority_queue<llvm::Instruction *, std::vector<llvm::Instruction *>, decltype(later)> ready(
      later);
  auto arrive = [&](llvm::Instruction *value) {
    llvm::DenseSet<llvm::User *> users(value->user_begin(), value->user_end());
    for (llvm::User *user : users) {
      auto entry = missing.find(llvm::cast<llvm::Instruction>(user));
      if (entry != missing.end() && --entry->second == 0)
        ready.push(llvm::cast<llvm::Instruction>(user));
    }
  };
  arrive(leaf);
  while (!ready.empty()) {
    llvm::Instruction *instruction = ready.top();
    ready.pop();
    if (isPending(instruction))
      emit(instruction);
    arrive(instruction);
  }
}

/// Places all that is pending.
void BlockOrder::flush() {
  findDependent();
  for (auto &[number, elements] : leaves)
    for (llvm::Instruction *leaf : elements)
      release(leaf);
  for (llvm::Instruction *instruction : pending)
    if (isPending(instruction))
      emit(instruction);
  pending.clear();
  leaves.clear();
}

void BlockOrder::run() {
  std::vector<llvm::Instruction *> all;
  for (llvm::Instruction &instruction : block) {
    numbers[&instruction] = all.size();
    all.push_back(&instruction);
  }
  for (llvm::Instruction *instruction : all) {
    auto *element = llvm::dyn_cast<llvm::ExtractValueInst>(instruction);
    auto *wait =
        element ? llvm::dyn_cast<llvm::Instruction>(element->getAggregateOperand()) : nullptr;
    if (wait && isWait(*wait) && wait->getParent() == &block) {
      leaves[element->getIndices().front()].push_back(element);
      ordered.push_back(element);
      continue;
    }
    Place place = placeOf(*instruction);
    if (place == Place::Free) {
      pending.push_back(instruction);
      pendingSet.insert(instruction);
      continue;
    }
    if (place == Place::Fixed)
      flush();
    for (llvm::Value *operand : instruction->operand_values())
      if (isPending(operand))
        emit(llvm::cast<llvm::Instruction>(operand));
    ordered.push_back(instruction);
  }
  flush();
  for (llvm::Instruction *instruction : ordered)
    if (!llvm::isa<llvm::PHINode>(instruction) && !instruction->isTerminator())
      instruction->moveBefore(block.getTerminator()->getIterator());
}

void orderWorkByElements(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (function.hasFnAttribute(elementOrderAttrName))
      for (llvm::BasicBlock &block : function)
        if (llvm::any_of(block, isWait))
          BlockOrder(block).run();
}

} // namespace tessera
