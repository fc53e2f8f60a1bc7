// A pass names the fields that it reads and that the schedule does not set.
//
// RUN: not tessera-opt %s --tile-overlap 2>&1 | FileCheck %s --check-prefix=OVERLAP
// RUN: not tessera-opt %s --tile-polynomial-exp 2>&1 | FileCheck %s --check-prefix=POLYNOMIAL
// RUN: not tessera-opt %s --tile-even-loops 2>&1 | FileCheck %s --check-prefix=EVEN
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-prefetch))' 2>&1 | FileCheck %s --check-prefix=PREFETCH
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-stores))' 2>&1 | FileCheck %s --check-prefix=STORES
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-persistent))' 2>&1 | FileCheck %s --check-prefix=PERSISTENT
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-pingpong))' 2>&1 | FileCheck %s --check-prefix=TURNS
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-pin-work))' 2>&1 | FileCheck %s --check-prefix=PIN
// RUN: not tessera-opt %s --hop-lower-to-llvm 2>&1 | FileCheck %s --check-prefix=LOWER

// OVERLAP: :[[@LINE+3]]:1: error: has a schedule without overlap; run tile-choose-schedule first
// POLYNOMIAL: :[[@LINE+2]]:1: error: has a schedule without polynomial_exp; run
// EVEN: :[[@LINE+1]]:1: error: has a schedule without producer; run
tile.kernel @tile() grid(%m = 4) schedule #tile.schedule<cluster = 2> {
}

// PREFETCH: :[[@LINE+6]]:1: error: has a schedule without producer; run
// STORES: :[[@LINE+5]]:1: error: has a schedule without store, placement; run
// PERSISTENT: :[[@LINE+4]]:1: error: has a schedule without persistent; run
// TURNS: :[[@LINE+3]]:1: error: has a schedule without pingpong; run
// PIN: :[[@LINE+2]]:1: error: has a schedule without work; run
// LOWER: :[[@LINE+1]]:1: error: has a schedule without persistent; run
hop.kernel @hop attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<4, 1>],
    schedule = #tile.schedule<>, shared_bytes = 0 : i64} {
^bb0(%m: index):
}
