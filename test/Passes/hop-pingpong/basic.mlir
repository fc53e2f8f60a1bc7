// Turns of two consumers around the products of a loop.
//
// RUN: tessera-opt %S/../Inputs/small.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,overlap=2,pingpong=true},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-async-mma,hop-pingpong))' | FileCheck %s
// RUN: tessera-opt %S/../Inputs/small.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,overlap=1,pingpong=true},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-async-mma,hop-pingpong))' | FileCheck %s --check-prefix=BACK
// RUN: tessera-opt %S/../Inputs/small.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,overlap=2,pingpong=false},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-async-mma,hop-pingpong))' | FileCheck %s --check-prefix=NONE

// With both products together a turn lies within an iteration.
// CHECK: hop.role @consumer
// CHECK-NEXT: ^bb0(%[[WG:.*]]: index):
// CHECK-NEXT: hop.turn.start %[[WG]]
// CHECK-NOT: hop.turn
// CHECK: scf.for
// CHECK: hop.turn.wait %[[WG]]
// CHECK-NEXT: hop.mma_issue
// CHECK: hop.mma_issue
// CHECK-NEXT: hop.turn.pass %[[WG]]
// CHECK-NOT: hop.turn

// With the work between them it lasts from the second product to the first of the next iteration.
// BACK: hop.turn.start %[[WG:.*]]
// BACK: hop.turn.wait %[[WG]]
// BACK-NEXT: scf.for
// BACK: hop.mma_issue
// BACK-NEXT: hop.turn.pass %[[WG]]
// BACK: math.exp2
// BACK: hop.turn.wait %[[WG]]
// BACK-NEXT: hop.mma_issue
// BACK: }
// BACK-NEXT: hop.turn.pass %[[WG]]

// NONE-NOT: hop.turn
// NONE: hop.mma_issue
// NONE-NOT: hop.turn
