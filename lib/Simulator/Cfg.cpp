//===- Cfg.cpp - Where divergent branches reconverge ----------------------===//
//
// Immediate post-dominators over basic blocks, by the iterative algorithm of Cooper, Harvey and
// Kennedy on the reversed control-flow graph. A virtual exit block joins every ret, exit and trap.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Decoder.h"
#include "llvm/ADT/STLExtras.h"

using namespace tessera::sim::detail;

namespace {

// Instructions that end a block have a target (bra), a branch table (brx), or leave (ret): the
// decoder marks them.
bool isLeave(const Inst &inst) { return inst.flags & FlagLeaves; }
bool isBranch(const Inst &inst) { return inst.target >= 0 || (inst.flags & FlagTable); }

/// The basic blocks of a program, the exit behind them.
class FlowGraph {
public:
  explicit FlowGraph(const Program &program) : p(program), blockOf(p.insts.size()) {
    findBlocks();
    succ.resize(exit() + 1);
    pred.resize(exit() + 1);
    for (unsigned b = 0; b < exit(); ++b)
      connect(b);
    for (unsigned b = 0; b <= exit(); ++b)
      for (unsigned t : succ[b])
        pred[t].push_back(b);
    orderFromExit();
  }

  unsigned exit() const { return start.size(); }
  unsigned firstOf(unsigned block) const { return start[block]; }
  unsigned lastOf(unsigned block) const {
    return (block + 1 < exit() ? start[block + 1] : p.insts.size()) - 1;
  }
  /// The immediate post-dominator of each block; -1 where no way leads to the exit.
  std::vector<int> findPostDominators() const;

private:
  void findBlocks();
  void connect(unsigned block);
  void orderFromExit();
  unsigned findCommon(const std::vector<int> &idom, unsigned x, unsigned y) const;

  const Program &p;
  std::vector<unsigned> start; ///< the first instruction of each block
  std::vector<unsigned> blockOf;
  std::vector<llvm::SmallVector<unsigned, 2>> succ, pred;
  /// Post-order of the reversed graph from the exit, and the place of each block in it.
  std::vector<unsigned> order;
  std::vector<int> number;
};

void FlowGraph::findBlocks() {
  unsigned n = p.insts.size();
  std::vector<bool> leader(n + 1, false);
  leader[0] = true;
  for (unsigned i = 0; i < n; ++i) {
    const Inst &inst = p.insts[i];
    if (!isBranch(inst) && !isLeave(inst))
      continue;
    leader[i + 1] = true;
    if (inst.flags & FlagTable)
      for (int32_t t : p.branchTables[inst.aux])
        leader[t] = true;
    else if (inst.target >= 0)
      leader[inst.target] = true;
  }
  for (unsigned i = 0; i < n; ++i) {
    if (leader[i])
      start.push_back(i);
    blockOf[i] = start.size() - 1;
  }
}

void FlowGraph::connect(unsigned b) {
  unsigned last = lastOf(b);
  const Inst &inst = p.insts[last];
  if (isLeave(inst)) {
    succ[b].push_back(exit());
  } else if (inst.flags & FlagTable) {
    for (int32_t t : p.branchTables[inst.aux])
      succ[b].push_back(blockOf[t]);
  } else if (inst.target >= 0) {
    succ[b].push_back(blockOf[inst.target]);
  }
  bool isConditional = inst.guard.reg >= 0;
  if (!(isBranch(inst) || isLeave(inst)) || isConditional)
    succ[b].push_back(last + 1 < p.insts.size() ? blockOf[last + 1] : exit());
}

void FlowGraph::orderFromExit() {
  number.assign(exit() + 1, -1);
  std::vector<std::pair<unsigned, unsigned>> stack{{exit(), 0}};
  std::vector<bool> visited(exit() + 1, false);
  visited[exit()] = true;
  while (!stack.empty()) {
    auto &[b, next] = stack.back();
    if (next < pred[b].size()) {
      unsigned q = pred[b][next++];
      if (!visited[q]) {
        visited[q] = true;
        stack.push_back({q, 0});
      }
      continue;
    }
    number[b] = order.size();
    order.push_back(b);
    stack.pop_back();
  }
}

/// The nearest block that post-dominates both.
unsigned FlowGraph::findCommon(const std::vector<int> &idom, unsigned x, unsigned y) const {
  while (x != y) {
    while (number[x] < number[y])
      x = idom[x];
    while (number[y] < number[x])
      y = idom[y];
  }
  return x;
}

std::vector<int> FlowGraph::findPostDominators() const {
  std::vector<int> idom(exit() + 1, -1);
  idom[exit()] = exit();
  bool changed = true;
  while (changed) {
    changed = false;
    for (unsigned b : llvm::reverse(order)) {
      if (b == exit())
        continue;
      int best = -1;
      for (unsigned t : succ[b])
        if (idom[t] >= 0)
          best = best < 0 ? t : findCommon(idom, best, t);
      changed |= best != idom[b];
      idom[b] = best;
    }
  }
  return idom;
}

} // namespace

void tessera::sim::detail::computeReconvergence(Program &p) {
  FlowGraph graph(p);
  std::vector<int> idom = graph.findPostDominators();
  for (unsigned b = 0; b < graph.exit(); ++b) {
    Inst &inst = p.insts[graph.lastOf(b)];
    if (!isBranch(inst))
      continue;
    // A loop without exit never reaches the exit block: its lanes simply never join.
    bool meets = idom[b] >= 0 && unsigned(idom[b]) != graph.exit();
    inst.reconverge = meets ? int(graph.firstOf(idom[b])) : -1;
    // Lanes that would only meet to exit exit on their own, as ptxas has it.
    if (meets && isLeave(p.insts[inst.reconverge]) && p.insts[inst.reconverge].guard.reg < 0)
      inst.reconverge = -1;
  }
}
