// The first tiles of a launch decide whether those behind them run in the fast program.
//
// RUN: tessera-opt %S/../Inputs/speculation.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=dynamic,order=linear},tile.kernel(tile-choose-schedule,tile-complete-speculation),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-stage-stores,hop-persistent,hop-retry,hop-check-pipes))" | FileCheck %s
// RUN: tessera-opt %S/../Inputs/speculation.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=static,order=linear},tile.kernel(tile-choose-schedule,tile-complete-speculation),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-stage-stores,hop-persistent,hop-retry))" | FileCheck %s --check-prefix=STATIC

// Each warp of the consumer reports.
// CHECK: %[[PROBES:.*]] = hop.probes count 32 share 8 reports 4
// CHECK: %[[TILES:.*]] = hop.pipe.create "tiles"
// CHECK: hop.role @producer
// A marked number ends both loops of the fast program.
// CHECK:   scf.while
// CHECK:     arith.cmpi sge
// CHECK:     scf.while
// CHECK:       arith.cmpi sge
// CHECK:       %[[NEXT:.*]] = hop.next_tile
// CHECK:       %[[FAILS:.*]] = hop.probes.verdict %[[PROBES]] if
// CHECK:       %[[MARKED:.*]] = arith.ori %[[NEXT]]
// CHECK:       %[[AFTER:.*]] = arith.select %{{.*}}, %[[MARKED]], %[[NEXT]]
// CHECK:       %[[NUMBER:.*]] = arith.index_cast %[[AFTER]]
// CHECK:       hop.pipe.put %[[TILES]], %[[NUMBER]]
// CHECK:     hop.barrier.wait
// The exact program runs for the list, and then for the numbers behind it.
// CHECK:     %[[BEHIND:.*]] = scf.if %{{.*}} -> (index)
// CHECK:       scf.while
// CHECK:         hop.slot_load
// CHECK:         scf.if
// CHECK:           hop.pipe.load
// CHECK:         scf.if %{{.*}} -> (index)
// CHECK:         else
// CHECK:           %[[DRAWN:.*]] = hop.next_tile
// CHECK-NOT:       hop.probes.verdict
// CHECK:           %[[EXACT:.*]] = arith.ori %[[DRAWN]]
// CHECK:           %[[DREW:.*]] = arith.index_cast %[[EXACT]]
// CHECK:           hop.pipe.put %[[TILES]], %[[DREW]]
// CHECK:     scf.yield %[[BEHIND]]
// CHECK: hop.reset_tiles
// CHECK: hop.role @consumer
// CHECK:     hop.flag %[[VALID:.*]], %{{.*}}, %{{.*}}
// CHECK:     hop.probes.report %[[PROBES]], %{{.*}} of %{{.*}} if
// CHECK:     hop.pipe.get %[[TILES]]
// CHECK:     hop.barrier.wait
// CHECK:     scf.if %{{.*}} -> (index)
// CHECK:         scf.if %{{.*}} -> (index)
// CHECK:         else
// CHECK:           hop.pipe.get %[[TILES]]

// STATIC: hop.role
// STATIC-NOT: hop.probes
