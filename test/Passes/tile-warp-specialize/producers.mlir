// Pipes divided among roles that load.
//
// RUN: tessera-opt %S/../Inputs/small.mlir --tile-override-schedule=schedule=persistent=none,outer_stages=1,overlap=1,stages=3 --tile-choose-schedule --tile-warp-specialize=producers=2 --canonicalize --cse \
// RUN:   | FileCheck %s
// RUN: tessera-opt %S/../Inputs/small.mlir --tile-override-schedule=schedule=persistent=none,outer_stages=1,overlap=1,stages=3 --tile-choose-schedule --tile-warp-specialize=producers=4 --canonicalize --cse \
// RUN:   | FileCheck %s --check-prefix=FOUR
// RUN: tessera-opt %S/../Inputs/small.mlir --tile-override-schedule=schedule=persistent=none,outer_stages=1,overlap=1,stages=3,producer=none --tile-choose-schedule --tile-warp-specialize=producers=2 \
// RUN:   --canonicalize --cse | FileCheck %s --check-prefix=ALONE
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=dynamic,outer_stages=1,overlap=1,stages=3},tile.kernel(tile-choose-schedule),tessera-hop{producers=2},tessera-barriers)' \
// RUN:   | FileCheck %s --check-prefix=WHOLE
// RUN: not tessera-opt %S/../Inputs/small.mlir --tile-warp-specialize=producers=5 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not tessera-opt %S/../Inputs/small.mlir --tile-warp-specialize=producers=0 2>&1 | FileCheck %s --check-prefix=NONE

// Pipes in turn; each role has the loop that its own loads need.
// CHECK: %[[Q:.*]] = hop.pipe.create "q"
// CHECK: %[[K:.*]] = hop.pipe.create "k"
// CHECK: %[[V:.*]] = hop.pipe.create "v"
// CHECK: hop.role @producer0 elected registers(24)
// CHECK: hop.pipe.load %[[Q]]
// CHECK: scf.for
// CHECK: hop.pipe.load %[[V]]
// CHECK: hop.role @producer1 elected registers(24)
// CHECK-NOT: hop.pipe.load %[[Q]]
// CHECK: scf.for
// CHECK-NEXT: hop.pipe.load %[[K]]
// CHECK-NEXT: }
// CHECK: hop.role @consumer warpgroups(2) registers(240)

// There are three pipes.
// FOUR: hop.role @producer2 elected
// FOUR-NOT: elected

// ALONE: hop.role @consumer warpgroups(2)
// ALONE-NOT: elected registers

// The first role that loads fetches the number of the next tile, and the others read it: a release of the second role's
// thread, and one of each thread of the consumers.
// WHOLE: hop.barriers "tiles.empty" count 257
// WHOLE: hop.role @producer0
// WHOLE: hop.next_tile
// WHOLE: hop.reset_tiles
// WHOLE: hop.role @producer1
// WHOLE-NOT: hop.next_tile
// WHOLE: hop.slot_load
// WHOLE: hop.role @consumer
// WHOLE: hop.slot_load

// MANY: error: producers = 5: the roles that load share one warpgroup, a warp each; use 1 to 4
// NONE: error: producers = 0: the roles that load share one warpgroup, a warp each; use 1 to 4
