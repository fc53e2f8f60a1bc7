// A fence after each run of writes to shared memory that the async proxy reads.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-insert-proxy-fences))' | FileCheck %s

// One fence for two writes before one barrier.
// CHECK-LABEL: hop.kernel @run
// CHECK: hop.stage
// CHECK-NEXT: hop.stage
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NOT: hop.proxy_fence
hop.kernel @run attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %s2 = hop.staging "s2" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.stage %t, %s2 : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.warpgroup_sync
    hop.bulk_store %s, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
    hop.bulk_store %s2, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
  }
}

// One for each of two runs.
// CHECK-LABEL: hop.kernel @two
// CHECK-COUNT-2: hop.proxy_fence
// CHECK-NOT: hop.proxy_fence
hop.kernel @two attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %s2 = hop.staging "s2" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.warpgroup_sync
    hop.bulk_store %s, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
    hop.stage %t, %s2 : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.warpgroup_sync
    hop.bulk_store %s2, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
  }
}

// Before a product that reads what was written, and at the end of a loop's body.
// CHECK-LABEL: hop.kernel @product
// CHECK: hop.stage
// CHECK-NEXT: hop.proxy_fence
// CHECK: hop.mma_issue
// CHECK: scf.for
// CHECK: hop.stage
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: }
hop.kernel @product attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %s2 = hop.staging "s2" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    scf.for %i = %c0 to %m step %m {
      hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }
  }
}

// None where nothing is written.
// CHECK-LABEL: hop.kernel @none
// CHECK-NOT: hop.proxy_fence
hop.kernel @none attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %s2 = hop.staging "s2" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    hop.warpgroup_sync
    hop.bulk_store %s, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
  }
}

// An arrival at an mbarrier hands the writes on too.
// CHECK-LABEL: hop.kernel @arrival
// CHECK: hop.stage
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive
hop.kernel @arrival attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %full = hop.barriers "full" count 128 : !hop.barriers<1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : i32
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.barrier.arrive %full[%c0] all : !hop.barriers<1>
  }
}

// A copy may not write a slot that threads still read.
// CHECK-LABEL: hop.kernel @given_back
// CHECK: hop.fetch
// CHECK-NEXT: hop.fetch
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive
// CHECK-NEXT: hop.barrier.arrive
hop.kernel @given_back attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %empty = hop.barriers "empty" count 128 : !hop.barriers<2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = hop.fetch %s : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
    %b = hop.fetch %s : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
    hop.barrier.arrive %empty[%c0] all : !hop.barriers<2>
    hop.barrier.arrive %empty[%c1] all : !hop.barriers<2>
  }
}

// What a product has taken is read. Columns of it are not all.
// CHECK-LABEL: hop.kernel @taken
// CHECK-NOT: hop.proxy_fence
// CHECK: hop.barrier.arrive
// CHECK: hop.fetch
// CHECK-NOT: hop.barrier.arrive
// CHECK: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive
hop.kernel @taken attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %few = hop.staging "few" : !hop.shared<tensor<32x64xbf16>, rows = 32>
  %wide = hop.staging "wide" : !hop.shared<tensor<64x64xf32>, rows = 64>
  %empty = hop.barriers "empty" count 128 : !hop.barriers<1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : i32
    %a = hop.fetch %s : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
    %f = hop.mma_issue %a, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    hop.barrier.arrive %empty[%c0] all : !hop.barriers<1>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %b = hop.fetch %wide : !hop.shared<tensor<64x64xf32>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %half = hop.columns %b[0] : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64x32xf32, #hop.layout<accumulator>>
    %half16 = arith.truncf %half : tensor<64x32xf32, #hop.layout<accumulator>> to tensor<64x32xbf16, #hop.layout<accumulator>>
    %g = hop.mma_issue %half16, %few : tensor<64x32xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<32x64xbf16>, rows = 32> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    hop.barrier.arrive %empty[%c0] all : !hop.barriers<1>
    %e = hop.mma_wait %g pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}
