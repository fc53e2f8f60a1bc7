// Scalars that products do not need are computed under the products.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-async-mma,hop-fill-products))' --split-input-file | FileCheck %s

!acc = tensor<64x64xf32, #hop.layout<accumulator>>
!slot = !hop.shared<tensor<64x64xbf16>, rows = 64>

// The place of the result is computed under the product; the one that it reads at stays before it.
// CHECK-LABEL: hop.kernel @scalars
// CHECK: hop.role @consumer
// CHECK-NEXT: ^bb0(%[[WG:.*]]: index):
// CHECK: arith.divui %{{.*}}, %[[WG]] : index
// CHECK: hop.slice
// CHECK: hop.mma_issue
// CHECK-NEXT: tile.dim
// CHECK-NEXT: %[[Q:.*]] = arith.remui
// CHECK-NEXT: %[[ROW:.*]] = arith.addi %[[Q]]
// CHECK: hop.mma_wait
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[ROW]],
hop.kernel @scalars attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 64], f32>, %m: index):
  %qp = hop.pipe.create "q" : !hop.pipe<tensor<128x64xbf16>, 2>
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %end = tile.dim "M"
    %rest = arith.remui %m, %end : index
    %row = arith.addi %rest, %wg : index
    %slice = arith.divui %c0, %wg : index
    %q = hop.pipe.wait %qp : !hop.pipe<tensor<128x64xbf16>, 2> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    %mine = hop.slice %q[%slice] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %s = hop.mma %mine, %k {transpose_b} : !hop.shared<tensor<64x64xbf16>, rows = 128>, !slot -> !acc
    hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    %e = math.exp2 %s : !acc
    tile.store %e, %y[%row, %c0] : !acc, !tile.view<[M, 64], f32>
  }
}

// A scalar stays before a loop that needs it, and goes under the product behind the loop otherwise.
// CHECK-LABEL: hop.kernel @later
// CHECK: %[[N:.*]] = arith.muli
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[N]]
// CHECK: hop.mma_issue
// CHECK-NEXT: %[[ROW:.*]] = arith.addi
// CHECK: hop.pipe.wait
// CHECK-NOT: hop.mma_issue
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[ROW]],
hop.kernel @later attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 64], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %cp = hop.pipe.create "c" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %row = arith.addi %m, %wg : index
    %n = arith.muli %m, %m : index
    scf.for %j = %c0 to %n step %c1 {
      %t = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
      hop.pipe.release %kp, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    }
    %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    %s = hop.mma %k, %k {transpose_b} : !slot, !slot -> !acc
    hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    %c = hop.pipe.wait %cp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    hop.pipe.release %cp, %c : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    tile.store %s, %y[%row, %c0] : !acc, !tile.view<[M, 64], f32>
  }
}

// A bound of rows is loaded under the product, unless the kernel stores where it loads.
// CHECK-LABEL: hop.kernel @bounds
// CHECK: tile.reduce_range max
// CHECK: hop.mma_issue
// CHECK: tile.reduce_range min
// CHECK: hop.mma_wait
hop.kernel @bounds attributes {argument_names = ["y", "n", "o"],
    argument_types = [!tile.view<[M, 64], f32>, !tile.view<[M], i32>, !tile.view<[M], i32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 64], f32>, %n: !tile.view<[M], i32>, %o: !tile.view<[M], i32>, %m: index):
  %qp = hop.pipe.create "q" : !hop.pipe<tensor<64x64xbf16>, 2>
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %least = tile.reduce_range min %i to 64 -> i32 {
      %x = tile.load %n[%i] : !tile.view<[M], i32> -> i32
      tile.yield %x : i32
    }
    %largest = tile.reduce_range max %i to 64 -> i32 {
      %x = tile.load %o[%i] : !tile.view<[M], i32> -> i32
      tile.yield %x : i32
    }
    %sum = arith.addi %least, %largest : i32
    %row = arith.index_cast %sum : i32 to index
    %q = hop.pipe.wait %qp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    %s = hop.mma %q, %k {transpose_b} : !slot, !slot -> !acc
    hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    hop.pipe.release %qp, %q : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    tile.store %s, %y[%row, %c0] : !acc, !tile.view<[M, 64], f32>
    tile.store %sum, %o[%row] : i32, !tile.view<[M], i32>
  }
}
