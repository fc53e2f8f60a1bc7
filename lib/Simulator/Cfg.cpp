//===- Cfg.cpp - Where divergent branches reconverge ----------------------===//
//
// Immediate post-dominators over basic blocks, by the iterative algorithm of Cooper, Harvey and
// Kennedy on the reversed control-flow graph. A virtual exit block joins every ret, exit and trap.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Decoder.h"

using namespace tessera::sim::detail;

void tessera::sim::detail::computeReconvergence(Program &p) {
  unsigned n = p.insts.size();
  // Handlers that end a block set target >= 0 (bra), a branch table (brx), or leave (ret): the
  // decoder marks them.
  auto isLeave = [&](const Inst &i) { return i.flags & FlagLeaves; };
  auto isBranch = [&](const Inst &i) { return i.target >= 0 || (i.flags & FlagTable); };
  std::vector<int> blockOf(n, -1);
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
  std::vector<unsigned> start;
  for (unsigned i = 0; i < n; ++i) {
    if (leader[i])
      start.push_back(i);
    blockOf[i] = start.size() - 1;
  }
  unsigned blocks = start.size(), exit = blocks;
  std::vector<llvm::SmallVector<unsigned, 2>> succ(blocks + 1), pred(blocks + 1);
  for (unsigned b = 0; b < blocks; ++b) {
    unsigned last = (b + 1 < blocks ? start[b + 1] : n) - 1;
    const Inst &inst = p.insts[last];
    bool conditional = inst.guard.reg >= 0;
    if (isLeave(inst)) {
      succ[b].push_back(exit);
    } else if (inst.flags & FlagTable) {
      for (int32_t t : p.branchTables[inst.aux])
        succ[b].push_back(blockOf[t]);
    } else if (inst.target >= 0) {
      succ[b].push_back(blockOf[inst.target]);
    }
    if (!(isBranch(inst) || isLeave(inst)) || conditional)
      succ[b].push_back(last + 1 < n ? blockOf[last + 1] : exit);
  }
  for (unsigned b = 0; b <= blocks; ++b)
    for (unsigned t : succ[b])
      pred[t].push_back(b);

  // Post-order of the reversed graph from the exit.
  std::vector<int> number(blocks + 1, -1);
  std::vector<unsigned> order;
  std::vector<std::pair<unsigned, unsigned>> stack{{exit, 0}};
  std::vector<bool> visited(blocks + 1, false);
  visited[exit] = true;
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
  std::vector<int> idom(blocks + 1, -1);
  idom[exit] = exit;
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      unsigned b = *it;
      if (b == exit)
        continue;
      int best = -1;
      for (unsigned t : succ[b]) {
        if (idom[t] < 0)
          continue;
        if (best < 0) {
          best = t;
          continue;
        }
        int x = best, y = t;
        while (x != y) {
          while (number[x] < number[y])
            x = idom[x];
          while (number[y] < number[x])
            y = idom[y];
        }
        best = x;
      }
      if (best != idom[b]) {
        idom[b] = best;
        changed = true;
      }
    }
  }
  for (unsigned b = 0; b < blocks; ++b) {
    unsigned last = (b + 1 < blocks ? start[b + 1] : n) - 1;
    Inst &inst = p.insts[last];
    if (!isBranch(inst))
      continue;
    // A loop without exit never reaches the exit block: its lanes simply never join.
    inst.reconverge = idom[b] < 0 || unsigned(idom[b]) == exit ? -1 : int(start[idom[b]]);
    // Lanes that would only meet to exit exit on their own, as ptxas has it.
    if (inst.reconverge >= 0 && isLeave(p.insts[inst.reconverge]) &&
        p.insts[inst.reconverge].guard.reg < 0)
      inst.reconverge = -1;
  }
}
