//===- OperandsInFlight.cpp - Registers that products in flight read ------===//
//
// The lowering writes products and waits as assembly texts (EmitMma.cpp), which are told apart by
// their instructions here. A group of products is complete when a wait leaves no more groups in
// flight than were committed after it.
//
//===----------------------------------------------------------------------===//

#include "lib/Codegen/OperandsInFlight.h"
#include "lib/Codegen/AssemblyText.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

namespace tessera {

static bool isProduct(const llvm::Instruction &instruction) {
  return assemblyOf(instruction).contains("wgmma.mma_async");
}

static bool isOfProducts(const llvm::Instruction &instruction) {
  return assemblyOf(instruction).contains("wgmma.");
}

/// How many groups a wait leaves in flight; nothing of another instruction.
static std::optional<unsigned> groupsLeftBy(const llvm::Instruction &instruction) {
  llvm::StringRef rest = assemblyOf(instruction).split("wgmma.wait_group.sync.aligned ").second;
  unsigned groups;
  return rest.consumeInteger(10, groups) ? std::nullopt : std::optional(groups);
}

/// The instructions that make the registers of A which `product` reads: of its 32-bit operands all
/// but the last, which is B's descriptor. A in shared memory has a descriptor too, and copies that
/// the text itself makes are nobody else's.
static llvm::SmallVector<llvm::Instruction *> registersOfA(llvm::CallBase &product) {
  llvm::SmallVector<llvm::Value *> words;
  for (llvm::Value *operand : product.args())
    if (operand->getType()->isIntegerTy(32))
      words.push_back(operand);
  if (words.size() <= 2 || assemblyOf(product).contains("mov.b32 a0,"))
    return {};
  words.pop_back();
  llvm::SmallVector<llvm::Instruction *> made;
  for (llvm::Value *word : words)
    if (auto *instruction = llvm::dyn_cast<llvm::Instruction>(word))
      made.push_back(instruction);
  return made;
}

/// `value` without changes of its type, which no instruction is needed for.
static const llvm::Value *rootOf(const llvm::Value *value) {
  while (auto *cast = llvm::dyn_cast<llvm::BitCastInst>(value))
    value = cast->getOperand(0);
  return value;
}

/// Whether the two roots are one register, as the code generator makes of what is equal, in a block
/// and behind it: the same operations, `depth` of them at most, on the same values.
static bool areSame(const llvm::Value *a, const llvm::Value *b, unsigned depth = 8) {
  auto *first = llvm::dyn_cast<llvm::Instruction>(a),
       *second = llvm::dyn_cast<llvm::Instruction>(b);
  if (a == b || !first || !second || depth == 0)
    return a == b;
  return !llvm::isa<llvm::PHINode>(first) && !first->mayReadOrWriteMemory() &&
         first->isSameOperationAs(second) &&
         llvm::all_of(llvm::zip_equal(first->operands(), second->operands()), [&](auto operands) {
           return areSame(rootOf(std::get<0>(operands).get()), rootOf(std::get<1>(operands).get()),
                          depth - 1);
         });
}

namespace {
/// What may run while a product is in flight.
class Flight {
public:
  Flight(const llvm::CallBase &product, const llvm::Instruction &read)
      : product(product), root(rootOf(&read)) {}

  /// Whether an instruction other than products and their waits may read the register before the
  /// product is known to be complete.
  bool isReadElsewhere() {
    follow(std::next(product.getIterator()), {commits(product), 0});
    while (!found && !paths.empty()) {
      auto [block, state] = paths.pop_back_val();
      follow(block->begin(), state);
    }
    return found;
  }

private:
  /// Whether the group of the product is committed, and how many groups after it.
  using State = std::pair<bool, unsigned>;
  static constexpr unsigned kMostGroups = 16;

  static bool commits(const llvm::Instruction &instruction) {
    return assemblyOf(instruction).contains("wgmma.commit_group");
  }

  bool reads(const llvm::Instruction &instruction) const {
    return !llvm::isa<llvm::PHINode, llvm::BitCastInst>(instruction) &&
           !isOfProducts(instruction) &&
           llvm::any_of(instruction.operand_values(),
                        [&](const llvm::Value *operand) { return areSame(rootOf(operand), root); });
  }

  /// Goes from `start` to the end of its block, or to where the product is complete or the register
  /// is written again.
  void follow(llvm::BasicBlock::const_iterator start, State state) {
    const llvm::BasicBlock *block = start->getParent();
    for (const llvm::Instruction &instruction : llvm::make_range(start, block->end())) {
      if (&instruction == root)
        return;
      if (reads(instruction)) {
        found = true;
        return;
      }
      if (std::optional<unsigned> left = groupsLeftBy(instruction);
          left && state.first && state.second >= *left)
        return;
      if (commits(instruction))
        state = {true, std::min(state.second + state.first, kMostGroups)};
    }
    for (const llvm::BasicBlock *next : llvm::successors(block))
      if (seen.insert({next, 2 * state.second + state.first}).second)
        paths.push_back({next, state});
  }

  const llvm::CallBase &product;
  const llvm::Value *root;
  bool found = false;
  llvm::SmallVector<std::pair<const llvm::BasicBlock *, State>> paths;
  llvm::DenseSet<std::pair<const llvm::BasicBlock *, unsigned>> seen;
};
} // namespace

/// Lets products and their waits have a register of their own that is a copy of `made`.
static void copyForProducts(llvm::Instruction &made) {
  llvm::IRBuilder<> builder(made.getContext());
  builder.SetInsertPoint(*made.getInsertionPointAfterDef());
  llvm::Type *word = builder.getInt32Ty();
  // As assembly, since LLVM would see through any other copy.
  auto *move =
      llvm::InlineAsm::get(llvm::FunctionType::get(word, {word}, false), "mov.b32 $0, $1;", "=r,r",
                           /*hasSideEffects=*/false);
  llvm::Value *copy = builder.CreateCall(move, {&made});
  made.replaceUsesWithIf(copy, [](llvm::Use &use) {
    return isOfProducts(*llvm::cast<llvm::Instruction>(use.getUser()));
  });
}

void keepOperandsApart(llvm::Module &module) {
  llvm::SmallSetVector<llvm::Instruction *, 16> shared;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (isProduct(instruction))
        for (llvm::Instruction *made : registersOfA(llvm::cast<llvm::CallBase>(instruction)))
          if (!shared.contains(made) &&
              Flight(llvm::cast<llvm::CallBase>(instruction), *made).isReadElsewhere())
            shared.insert(made);
  for (llvm::Instruction *made : shared)
    copyForProducts(*made);
}

} // namespace tessera
