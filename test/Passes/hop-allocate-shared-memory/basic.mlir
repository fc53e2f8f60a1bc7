// Offsets of buffers, staging and mbarriers.
//
// RUN: tessera-opt %S/../Inputs/small.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,overlap=1,store=tma,stages=2},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-stage-stores,hop-async-mma,hop-pingpong,hop-insert-mbarriers,hop-allocate-shared-memory),canonicalize,cse)' | FileCheck %s --check-prefix=ATTENTION
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-allocate-shared-memory))' | FileCheck %s

// Results leave through the slot of the queries, which the products of the same consumer have read.
// ATTENTION: shared_bytes = 49232
// ATTENTION-DAG: hop.buffer "q" at 0 :
// ATTENTION-DAG: hop.buffer "k" at 16384 :
// ATTENTION-DAG: hop.buffer "v" at 32768 :
// ATTENTION-DAG: hop.barriers "q.full" count 1 at 49152
// ATTENTION-DAG: hop.barriers "v.empty" count 2 at 49216
// ATTENTION: hop.staging "o" at 0 :

// Buffers start at the repeat of their swizzle: 8 rows of 32, 64 or 128 bytes.
// CHECK-LABEL: hop.kernel @swizzles
// CHECK-SAME: shared_bytes = 3096
// CHECK: hop.buffer "a" at 0
// CHECK: hop.buffer "b" at 512
// CHECK: hop.buffer "c" at 2048
// CHECK: hop.barriers "f" count 1 at 3072 : !hop.barriers<3>
hop.kernel @swizzles attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %a = hop.buffer "a" : !hop.buffer<tensor<8x16xbf16>, 1>
  %b = hop.buffer "b" : !hop.buffer<tensor<8x32xbf16>, 2>
  %c = hop.buffer "c" : !hop.buffer<tensor<8x64xbf16>, 1>
  %f = hop.barriers "f" count 1 : !hop.barriers<3>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
  }
}

// CHECK-LABEL: hop.kernel @reused
// CHECK: hop.buffer "q" at 0
// CHECK: hop.staging "o" at 0 :
hop.kernel @reused attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %q = hop.buffer "q" : !hop.buffer<tensor<128x64xbf16>, 1>
  %k = hop.buffer "k" : !hop.buffer<tensor<64x64xbf16>, 1>
  %s = hop.staging "o" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %z = arith.constant 0 : i32
    %sl = hop.slot %q[%z] : !hop.buffer<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %me = hop.slice %sl[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %so = hop.slice %s[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %ks = hop.slot %k[%z] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %me, %ks : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    hop.stage %t, %so : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
  }
}

// Not while a product that reads the slot may be in flight.
// CHECK-LABEL: hop.kernel @flying
// CHECK: hop.staging "o" at 24576 :
hop.kernel @flying attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %q = hop.buffer "q" : !hop.buffer<tensor<128x64xbf16>, 1>
  %k = hop.buffer "k" : !hop.buffer<tensor<64x64xbf16>, 1>
  %s = hop.staging "o" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %z = arith.constant 0 : i32
    %sl = hop.slot %q[%z] : !hop.buffer<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %me = hop.slice %sl[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %so = hop.slice %s[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %ks = hop.slot %k[%z] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %me, %ks : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    hop.stage %t, %so : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// Not when two consumers read all of it.
// CHECK-LABEL: hop.kernel @shared
// CHECK: hop.staging "o" at 24576 :
hop.kernel @shared attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %q = hop.buffer "q" : !hop.buffer<tensor<128x64xbf16>, 1>
  %k = hop.buffer "k" : !hop.buffer<tensor<64x64xbf16>, 1>
  %s = hop.staging "o" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %z = arith.constant 0 : i32
    %sl = hop.slot %q[%z] : !hop.buffer<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %me = hop.slice %sl[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %so = hop.slice %s[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %ks = hop.slot %k[%z] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %sl, %ks : !hop.shared<tensor<128x64xbf16>, rows = 128>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<128x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<128x64xf32, #hop.layout<accumulator>>> -> tensor<128x64xf32, #hop.layout<accumulator>>
    hop.stage %t, %so : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
  }
}

// Not when nothing reads it: its copy may land at any time.
// CHECK-LABEL: hop.kernel @unread
// CHECK: hop.staging "o" at 24576 :
hop.kernel @unread attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %q = hop.buffer "q" : !hop.buffer<tensor<128x64xbf16>, 1>
  %k = hop.buffer "k" : !hop.buffer<tensor<64x64xbf16>, 1>
  %s = hop.staging "o" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %so = hop.slice %s[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    hop.stage %t, %so : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
  }
}

// Not a second time.
// CHECK-LABEL: hop.kernel @taken
// CHECK: hop.staging "o" at 0 :
// CHECK: hop.staging "o2" at 24576 :
hop.kernel @taken attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %q = hop.buffer "q" : !hop.buffer<tensor<128x64xbf16>, 1>
  %k = hop.buffer "k" : !hop.buffer<tensor<64x64xbf16>, 1>
  %s = hop.staging "o" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  %s2 = hop.staging "o2" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %z = arith.constant 0 : i32
    %sl = hop.slot %q[%z] : !hop.buffer<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %me = hop.slice %sl[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %so = hop.slice %s[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %ks = hop.slot %k[%z] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %me, %ks : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    hop.stage %t, %so : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
  }
}

// What a product reads has memory of its own: the queries are still needed when it is written.
// CHECK-LABEL: hop.kernel @operand
// CHECK: hop.buffer "q" at 0
// CHECK: hop.staging "operand" at 16384 :
hop.kernel @operand attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %q = hop.buffer "q" : !hop.buffer<tensor<128x64xbf16>, 1>
  %s = hop.staging "operand" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %z = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %sl = hop.slot %q[%z] : !hop.buffer<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %me = hop.slice %sl[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %so = hop.slice %s[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    scf.for %i = %c0 to %m step %c1 {
      %f = hop.mma_issue %me, %so : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.shared<tensor<64x64xbf16>, rows = 128> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
      %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
      hop.stage %t, %so : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
    }
  }
}

// What warps exchange is read in runs of 16 bytes, other values one by one.
// CHECK-LABEL: hop.kernel @exchanges
// CHECK: hop.buffer "numbers" at 0
// CHECK: hop.buffer "exchange" at 16
// CHECK: hop.buffer "exchange" at 32
hop.kernel @exchanges attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  %numbers = hop.buffer "numbers" : !hop.buffer<tensor<1xi32>, 2>
  %of_scan = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 4>
  %of_all = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 4>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %gates = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    %sums = hop.scan sum %gates axis 0 through %of_scan : tensor<64xf32, #hop.layout<row>>, !hop.buffer<tensor<1xi32>, 4>
    %all = hop.combine_all sum %sums through %of_all : tensor<64xf32, #hop.layout<row>>, !hop.buffer<tensor<1xi32>, 4> -> f32
  }
}
