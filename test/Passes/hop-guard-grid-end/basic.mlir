// What the thread blocks past the end of the grid do.
//
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,cluster=2,persistent=none},tile.kernel(tile-choose-schedule),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-cluster,hop-guard-grid-end))" | FileCheck %s --check-prefix=SMALL
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=none},tile.kernel(tile-choose-schedule),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-cluster,hop-guard-grid-end))" | FileCheck %s --check-prefix=ALONE
// RUN: tessera-opt %s --pass-pipeline="builtin.module(hop.kernel(hop-guard-grid-end))" | FileCheck %s

// SMALL: ^bb0({{.*}}, %[[M:[^ ]*]]: index):
// SMALL: hop.role @producer
// SMALL: %[[COUNT:.*]] = arith.ceildivui
// SMALL: %[[LAST:.*]] = arith.subi %[[COUNT]], %{{.*}}
// SMALL: %[[MINE:.*]] = arith.minui %[[M]], %[[LAST]]
// SMALL: arith.muli %[[MINE]],
// SMALL-NOT: %[[M]],
// SMALL: hop.role @consumer
// SMALL: arith.minui %[[M]]
// SMALL: %[[INSIDE:.*]] = arith.cmpi ule, %[[M]], %{{.*}} : index
// SMALL-NEXT: scf.if %[[INSIDE]] {
// SMALL-NEXT: tile.store
// SMALL-NEXT: }
// SMALL: arith.cmpi ule, %[[M]], %{{.*}} : index
// SMALL-NEXT: scf.if
// SMALL-NEXT: tile.store

// ALONE-NOT: arith.minui

// Six tiles are three clusters: no block is past the end.
// CHECK-LABEL: hop.kernel @whole
// CHECK-NOT: arith.minui
hop.kernel @whole attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<350, 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "x" multicast : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %p, %x[%c0, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
  }
}

// What a block makes for the other one of its cluster too is stored past the end as well.
// CHECK-LABEL: hop.kernel @exchanged
// CHECK: hop.stage
// CHECK-NOT: scf.if
// CHECK: hop.bulk_store %{{.*}} add exchanged
// CHECK: scf.if
// CHECK-NEXT: hop.bulk_store
hop.kernel @exchanged attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], f32>, %m: index):
  %staging = hop.staging "x" : !hop.shared<tensor<64x64xf32>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    hop.stage %t, %staging : tensor<64x64xf32, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xf32>, rows = 64>
    hop.warpgroup_sync
    hop.bulk_store %staging, %x[%c0, %c0] add exchanged : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
    hop.bulk_store %staging, %x[%c0, %c0] add : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
  }
}

// A load of what any role stores, in bulk too, gives zeros past the end; other loads stay.
// CHECK-LABEL: hop.kernel @inPlace
// CHECK: hop.role @consumer
// CHECK: %[[IN:.*]] = arith.cmpi ule
// CHECK-NEXT: %[[OLD:.*]] = scf.if %[[IN]] -> (tensor<64x64xbf16, #hop.layout<accumulator>>) {
// CHECK-NEXT: %[[LOADED:.*]] = tile.load %{{.*}}[%{{.*}}] : !tile.view<[M, 64], bf16>
// CHECK-NEXT: scf.yield %[[LOADED]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK-NEXT: scf.yield %[[ZERO]]
// CHECK: hop.stage %[[OLD]],
// CHECK: scf.if
// CHECK-NEXT: hop.bulk_store
// CHECK: }
// CHECK-NOT: scf.if
// CHECK: tile.load %{{.*}} : !tile.view<[N, 64], bf16>
hop.kernel @inPlace attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N, 64], bf16>, %m: index):
  %staging = hop.staging "x" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %row = arith.muli %m, %c64 : index
    %old = tile.load %x[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16, #hop.layout<accumulator>>
    hop.stage %old, %staging : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.warpgroup_sync
    hop.bulk_store %staging, %x[%row, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
    %other = tile.load %y[%c0, %c0] : !tile.view<[N, 64], bf16> -> tensor<64x64xbf16, #hop.layout<accumulator>>
  }
}
