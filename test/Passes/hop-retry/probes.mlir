// The first tiles of a long launch decide whether those behind them run in the fast program.
//
// RUN: tessera-opt %S/../Inputs/speculation.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=dynamic,order=linear},tile.kernel(tile-choose-schedule,tile-complete-speculation),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-stage-stores,hop-persistent,hop-retry,hop-check-pipes,canonicalize,cse))" | FileCheck %s
// RUN: tessera-opt %S/../Inputs/speculation.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=static,order=linear},tile.kernel(tile-choose-schedule,tile-complete-speculation),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-stage-stores,hop-persistent,hop-retry))" | FileCheck %s --check-prefix=STATIC

// CHECK: %[[LIST:.*]] = hop.buffer "retry.list"
// CHECK: %[[DOUBTED:.*]] = hop.buffer "retry.doubted" zeroed : !hop.buffer<tensor<1xi32>, 3>
// CHECK: %[[MEET:.*]] = hop.barriers "retry.meet" count 129
// CHECK: %[[JUDGED:.*]] = hop.barriers "retry.judged" count 129
// CHECK: %[[TILES:.*]] = hop.pipe.create "tiles"
// CHECK: hop.role @producer
// How long a launch is: of as many tiles for each block as have so many steps together, and of some.
// CHECK:   %[[BLOCK:.*]] = hop.block_index
// CHECK:   %[[ROWS:.*]] = tile.dim "N"
// CHECK:   %[[STEPS:.*]] = arith.addi %{{.*}}, %c1
// CHECK:   %[[BLOCKS:.*]] = hop.block_count
// CHECK:   %[[ROUNDS:.*]] = arith.ceildivui %c400, %[[STEPS]]
// CHECK:   %[[MOST:.*]] = arith.maxui %[[ROUNDS]], %c4
// CHECK:   %[[LEAST:.*]] = arith.muli %[[BLOCKS]], %[[MOST]]
// CHECK:   %[[LAST:.*]] = arith.subi %[[LEAST]], %c1
// CHECK:   %[[LONG:.*]] = arith.cmpi slt, %[[LAST]], %[[TOTAL:.*]] : index
// The blocks begin with the last number first, and a phase that has room for one tile.
// CHECK:   %[[HIGHEST:.*]] = arith.subi %[[BLOCKS]], %c1
// CHECK:   %[[TURNED:.*]] = arith.subi %[[HIGHEST]], %[[BLOCK]]
// CHECK:   %[[FIRST:.*]] = arith.select %[[LONG]], %[[TURNED]], %[[BLOCK]]
// CHECK:   %[[PLACE:.*]] = arith.select %[[LONG]], %c511, %c0
// CHECK:   scf.while (%{{.*}} = %[[FIRST]], %{{.*}} = %c0_i32, %[[START:.*]] = %[[PLACE]])
// CHECK:     ^bb0(%{{.*}}: index, %[[PARITY:.*]]: i32, %[[START:.*]]: index):
// CHECK:     %[[PHASE:.*]]:2 = scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %[[START]])
// Nothing is asked in the loop over tiles.
// CHECK-NOT:   hop.probes.verdict
// CHECK:       hop.next_tile
// CHECK:     hop.barrier.wait %[[MEET]]
// CHECK:     %[[DOUBT:.*]] = hop.slot_load %[[DOUBTED]][%[[PARITY]]]
// CHECK:     %[[IS_FIRST:.*]] = arith.cmpi eq, %[[START]], %c511
// CHECK:     scf.if %[[IS_FIRST]] {
// CHECK:       %[[IS_PROBE:.*]] = arith.cmpi ult, %[[BLOCK]], %c32
// CHECK:       %[[OWN:.*]] = hop.slot_load %[[DOUBTED]][%[[PARITY]]]
// CHECK:       %[[FAILS:.*]] = hop.probes.verdict %[[OWN]] if %[[IS_PROBE]] count 32 share 8 looks 131072
// CHECK:       hop.slot_store %[[FAILS]], %[[DOUBTED]][%c2_i32]
// CHECK:       hop.barrier.arrive %[[JUDGED]]
// CHECK:       hop.barrier.wait %[[JUDGED]]
// CHECK:     %[[VERDICT:.*]] = hop.slot_load %[[DOUBTED]][%c2_i32]
// CHECK:     %[[EXACT:.*]] = arith.cmpi ne, %[[VERDICT]], %c0_i32
// The exact program runs for the list, and then for the numbers behind it.
// CHECK:     %[[BEHIND:.*]] = scf.if %{{.*}} -> (index) {
// CHECK:       scf.while (%{{.*}} = %[[START]], %{{.*}} = %[[PHASE]]#0)
// CHECK:         arith.andi %[[EXACT]], %{{.*}} : i1
// CHECK:         hop.slot_load %[[LIST]]
// CHECK:         hop.pipe.load
// CHECK:         scf.if %{{.*}} -> (index)
// CHECK:           %[[DRAWN:.*]] = hop.next_tile
// CHECK:           hop.pipe.put %[[TILES]]
// CHECK:     scf.yield %[[BEHIND]], %{{.*}}, %c0
// CHECK:   hop.reset_tiles
// CHECK: hop.role @consumer
// CHECK-NOT: hop.probes.verdict
// CHECK:     hop.flag
// CHECK:     hop.pipe.get %[[TILES]]
// CHECK:     hop.barrier.wait %[[MEET]]
// CHECK:     hop.barrier.wait %[[JUDGED]]
// CHECK:     scf.if %{{.*}} -> (index)
// CHECK:         scf.if %{{.*}} -> (index)
// CHECK:           hop.pipe.get %[[TILES]]

// STATIC: hop.role
// STATIC-NOT: hop.probes
