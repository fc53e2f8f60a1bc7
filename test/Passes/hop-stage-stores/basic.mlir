// Results leave through shared memory when the schedule says so.
//
// RUN: tessera-opt %S/../Inputs/small.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,overlap=1,store=tma},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-stage-stores))' | FileCheck %s
// RUN: tessera-opt %S/../Inputs/small.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,overlap=1,store=direct},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-stage-stores))' | FileCheck %s --check-prefix=DIRECT

// CHECK: %[[S:.*]] = hop.staging "o" : !hop.shared<tensor<128x64xbf16>, rows = 128>
// CHECK: hop.role @consumer warpgroups(2)
// CHECK-NEXT: ^bb0(%[[WG:.*]]: index):
// CHECK: %[[SHARE:.*]] = hop.slice %[[S]][%[[WG]]] : {{.*}} -> !hop.shared<tensor<64x64xbf16>, rows = 128>
// The copy of a tile before may still read the shared memory.
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.stage %{{.*}}, %[[SHARE]] : tensor<64x64xbf16, #hop.layout<accumulator>>
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.bulk_store %[[SHARE]], %{{.*}}[%[[ROW:.*]], %c0]
// The sums are of rank 1 and go from registers.
// CHECK-NEXT: tile.store %{{.*}}, %{{.*}}[%[[ROW]]] : tensor<64xf32, #hop.layout<row>>
// CHECK-NOT: tile.store

// DIRECT-NOT: hop.staging
// DIRECT-NOT: hop.bulk_store
// DIRECT: tile.store %{{.*}} : tensor<64x64xbf16, #hop.layout<accumulator>>
