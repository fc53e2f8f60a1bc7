//===- Loops.cpp - Natural loops of machine code --------------------------===//

#include "lib/Inspect/Sass.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;
using namespace tessera::sass;

namespace {
/// Basic blocks, in the order of their instructions; block 0 is the entry.
class Graph {
public:
  explicit Graph(const Function &function);

  struct Block {
    size_t begin, end; ///< instructions
    SmallVector<unsigned, 2> successors, predecessors;
  };

  ArrayRef<Block> getBlocks() const { return blocks; }
  /// Whether every way from the entry to `b` leads through `a`; both can be reached.
  bool dominates(unsigned a, unsigned b) const {
    while (b > 0 && position[b] > position[a])
      b = dominator[b];
    return a == b;
  }
  bool isReached(unsigned block) const { return position[block] != unreached; }

private:
  static constexpr unsigned unreached = ~0u;
  void findBlocks(const Function &function);
  void connect(const Function &function);
  void findDominators();

  std::vector<Block> blocks;
  std::vector<unsigned> blockOf;             ///< by instruction
  std::vector<unsigned> position, dominator; ///< by block: place in reverse postorder; parent
};
} // namespace

static bool endsBlock(const Instruction &instruction) {
  StringRef name = instruction.getMnemonic();
  return instruction.target || name == "EXIT" || name == "RET" || name == "BRX";
}

/// A guard, or a predicate among the operands of a branch, lets it fall through.
static bool fallsThrough(const Instruction &instruction) {
  return !endsBlock(instruction) || !instruction.guard.empty() ||
         (instruction.target && !StringRef(instruction.operands).starts_with("`("));
}

Graph::Graph(const Function &function) {
  findBlocks(function);
  connect(function);
  findDominators();
}

void Graph::findBlocks(const Function &function) {
  size_t count = function.instructions.size();
  BitVector begins(count + 1);
  begins.set(0);
  for (auto [i, instruction] : enumerate(function.instructions)) {
    if (instruction.target)
      begins.set(*instruction.target);
    if (endsBlock(instruction))
      begins.set(i + 1);
  }
  for (size_t i = 0; i < count; ++i) {
    if (begins[i])
      blocks.push_back({i, i, {}, {}});
    blocks.back().end = i + 1;
    blockOf.push_back(blocks.size() - 1);
  }
}

void Graph::connect(const Function &function) {
  auto addEdge = [&](unsigned from, unsigned to) {
    blocks[from].successors.push_back(to);
    blocks[to].predecessors.push_back(from);
  };
  for (unsigned i = 0; i < blocks.size(); ++i) {
    const Instruction &last = function.instructions[blocks[i].end - 1];
    if (last.target)
      addEdge(i, blockOf[*last.target]);
    if (fallsThrough(last) && i + 1 < blocks.size())
      addEdge(i, i + 1);
  }
}

/// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
void Graph::findDominators() {
  position.assign(blocks.size(), unreached);
  dominator.assign(blocks.size(), 0);
  SmallVector<unsigned> order;
  BitVector seen(blocks.size());
  SmallVector<std::pair<unsigned, unsigned>> stack = {{0, 0}};
  seen.set(0);
  while (!stack.empty()) {
    auto &[block, next] = stack.back();
    if (next == blocks[block].successors.size()) {
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    unsigned successor = blocks[block].successors[next++];
    if (!seen.test(successor)) {
      seen.set(successor);
      stack.emplace_back(successor, 0);
    }
  }
  std::reverse(order.begin(), order.end());
  for (auto [i, block] : enumerate(order))
    position[block] = i;
  auto meet = [&](unsigned a, unsigned b) {
    while (a != b)
      (position[a] > position[b] ? a : b) = dominator[position[a] > position[b] ? a : b];
    return a;
  };
  BitVector known(blocks.size());
  known.set(0);
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned block : ArrayRef(order).drop_front()) {
      std::optional<unsigned> parent;
      for (unsigned predecessor : blocks[block].predecessors)
        if (known.test(predecessor))
          parent = parent ? meet(*parent, predecessor) : predecessor;
      changed |= !known.test(block) || dominator[block] != *parent;
      dominator[block] = *parent;
      known.set(block);
    }
  }
}

namespace {
struct BlockLoop {
  unsigned header, latch; ///< the last block with a back edge
  BitVector blocks;
};
} // namespace

/// Adds what reaches the latch without passing the header.
static void addBody(const Graph &graph, BlockLoop &loop, unsigned latch) {
  SmallVector<unsigned> work = {latch};
  while (!work.empty()) {
    unsigned block = work.pop_back_val();
    if (loop.blocks.test(block))
      continue;
    loop.blocks.set(block);
    append_range(work, graph.getBlocks()[block].predecessors);
  }
}

static std::vector<BlockLoop> findLoops(const Graph &graph) {
  std::vector<BlockLoop> loops;
  for (unsigned header = 0; header < graph.getBlocks().size(); ++header) {
    BlockLoop loop{header, 0, BitVector(graph.getBlocks().size())};
    loop.blocks.set(header);
    bool isLoop = false;
    for (unsigned latch : graph.getBlocks()[header].predecessors) {
      if (!graph.isReached(latch) || !graph.dominates(header, latch))
        continue;
      addBody(graph, loop, latch);
      loop.latch = std::max(loop.latch, latch);
      isLoop = true;
    }
    if (isLoop)
      loops.push_back(std::move(loop));
  }
  return loops;
}

static Loop toLoop(const Graph &graph, const BlockLoop &blockLoop) {
  Loop loop;
  for (unsigned block : blockLoop.blocks.set_bits()) {
    bool isInLine = block >= blockLoop.header && block <= blockLoop.latch;
    for (size_t i = graph.getBlocks()[block].begin; i < graph.getBlocks()[block].end; ++i)
      (isInLine ? loop.body : loop.outOfLine).push_back(i);
  }
  return loop;
}

std::vector<Loop> tessera::sass::findMainLoops(const Function &function) {
  if (function.instructions.empty())
    return {};
  Graph graph(function);
  std::vector<BlockLoop> loops = findLoops(graph);
  auto count = [&](const BlockLoop &loop, auto predicate) {
    size_t found = 0;
    for (unsigned block : loop.blocks.set_bits())
      for (size_t i = graph.getBlocks()[block].begin; i < graph.getBlocks()[block].end; ++i)
        found += predicate(function.instructions[i].getMnemonic());
    return found;
  };
  auto hasProducts = [&](const BlockLoop &loop) {
    return count(loop, [](StringRef name) { return name.ends_with("GMMA"); }) != 0;
  };
  auto works = [&](const BlockLoop &loop) { return count(loop, isArithmetic) != 0; };
  bool anyProducts = llvm::any_of(loops, hasProducts);
  llvm::erase_if(loops, [&](const BlockLoop &loop) {
    return anyProducts ? !hasProducts(loop) : !works(loop);
  });
  std::vector<Loop> main;
  for (const BlockLoop &loop : loops) {
    bool isInnermost = llvm::none_of(loops, [&](const BlockLoop &other) {
      return other.header != loop.header && loop.blocks.test(other.header);
    });
    if (isInnermost)
      main.push_back(toLoop(graph, loop));
  }
  return main;
}
