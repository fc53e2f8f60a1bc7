// A fence after each run of writes to shared memory that the async proxy reads.
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-insert-proxy-fences))' | FileCheck %s

// FRAME
hop.kernel @NAME attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %s = hop.staging "s" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %s2 = hop.staging "s2" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    // HERE
  }
}

// CASE run
// One fence for two writes before one barrier.
// CHECK-LABEL: hop.kernel @run
// CHECK: hop.stage
// CHECK-NEXT: hop.stage
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NOT: hop.proxy_fence
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.stage %t, %s2 : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.warpgroup_sync
    hop.bulk_store %s, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
    hop.bulk_store %s2, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>

// CASE two
// One for each of two runs.
// CHECK-LABEL: hop.kernel @two
// CHECK-COUNT-2: hop.proxy_fence
// CHECK-NOT: hop.proxy_fence
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.warpgroup_sync
    hop.bulk_store %s, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
    hop.stage %t, %s2 : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.warpgroup_sync
    hop.bulk_store %s2, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>

// CASE product
// Before a product that reads what was written, and at the end of a loop's body.
// CHECK-LABEL: hop.kernel @product
// CHECK: hop.stage
// CHECK-NEXT: hop.proxy_fence
// CHECK: hop.mma_issue
// CHECK: scf.for
// CHECK: hop.stage
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: }
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %s, %s : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    scf.for %i = %c0 to %m step %m {
      hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }

// CASE none
// None where nothing is written.
// CHECK-LABEL: hop.kernel @none
// CHECK-NOT: hop.proxy_fence
    hop.warpgroup_sync
    hop.bulk_store %s, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>

// END
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

// FRAME
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %rows = hop.buffer "rows" at 0 : !hop.buffer<tensor<64x64xbf16>, 1>
  %full = hop.barriers "full" count 1 : !hop.barriers<1>
  %empty = hop.barriers "empty" count 128 : !hop.barriers<1>
  %other = hop.barriers "other" count 128 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %i = arith.constant 0 : i32
    hop.barrier.wait %empty[%i], %i : !hop.barriers<1>
    %s = hop.slot %rows[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.bulk_load %x[%m, %c0], %s, %full[%i] : !tile.view<[M, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<1>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i = arith.constant 0 : i32
    %s = hop.slot %rows[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.barrier.wait %full[%i], %i : !hop.barriers<1>
    %a = hop.fetch %s : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
    // HERE
  }
}

// CASE given_back
// A bulk copy may not write a slot that threads still read. Another barrier does not give it back.
// CHECK-LABEL: hop.kernel @given_back
// CHECK: hop.role @consumer
// CHECK: hop.fetch
// CHECK-NEXT: hop.barrier.arrive %{{.*}} all
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive
    hop.barrier.arrive %other[%i] all : !hop.barriers<1>
    hop.barrier.arrive %empty[%i] all : !hop.barriers<1>

// CASE taken
// A product that takes what was read has waited for it.
// CHECK-LABEL: hop.kernel @taken
// CHECK: hop.role @consumer
// CHECK: hop.fetch
// CHECK-NOT: hop.proxy_fence
// CHECK: hop.barrier.arrive
    %f = hop.mma_issue %a, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    hop.barrier.arrive %empty[%i] all : !hop.barriers<1>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>

// CASE later
// So an arrival waits for such a product, where nothing else waits in between.
// CHECK-LABEL: hop.kernel @later
// CHECK: hop.role @consumer
// CHECK: hop.fetch
// CHECK-NEXT: hop.mma_issue
// CHECK-NEXT: hop.barrier.arrive
// CHECK-NOT: hop.proxy_fence
    hop.barrier.arrive %empty[%i] all : !hop.barriers<1>
    %f = hop.mma_issue %a, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>

// CASE not_later
// Not past a wait, for which the copy may be needed.
// CHECK-LABEL: hop.kernel @not_later
// CHECK: hop.role @consumer
// CHECK: hop.fetch
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive
// CHECK-NEXT: hop.barrier.wait
    hop.barrier.arrive %empty[%i] all : !hop.barriers<1>
    hop.barrier.wait %other[%i], %i : !hop.barriers<1>
    %f = hop.mma_issue %a, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>

// FRAME
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!tile.view<[M], f32>], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M], f32>, %m: index):
  %numbers = hop.buffer "numbers" at 0 : !hop.buffer<tensor<64xf32>, 1>
  %full = hop.barriers "full" count 1 : !hop.barriers<1>
  %empty = hop.barriers "empty" count 128 : !hop.barriers<1>
  %other = hop.barriers "other" count 128 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %i = arith.constant 0 : i32
    hop.barrier.wait %empty[%i], %i : !hop.barriers<1>
    %s = hop.slot %numbers[%i] : !hop.buffer<tensor<64xf32>, 1> -> !hop.shared<tensor<64xf32>, rows = 64>
    hop.bulk_load %x[%m], %s, %full[%i] : !tile.view<[M], f32>, !hop.shared<tensor<64xf32>, rows = 64>, !hop.barriers<1>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %i = arith.constant 0 : i32
    %scores = arith.constant dense<0.5> : tensor<64x64xf32, #hop.layout<accumulator>>
    %s = hop.slot %numbers[%i] : !hop.buffer<tensor<64xf32>, 1> -> !hop.shared<tensor<64xf32>, rows = 64>
    hop.barrier.wait %full[%i], %i : !hop.barriers<1>
    %a = hop.fetch %s : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<64xf32, #hop.layout<column>>
    hop.barrier.arrive %empty[%i] all : !hop.barriers<1>
    %all = tile.broadcast %a axis 0 : tensor<64xf32, #hop.layout<column>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %e = arith.addf %all, %scores : tensor<64x64xf32, #hop.layout<accumulator>>
    %p = math.exp2 %e : tensor<64x64xf32, #hop.layout<accumulator>>
    // HERE
  }
}

// CASE summed
// A sum of something made of each number has waited for all of them, and the arrival waits for the sum.
// CHECK-LABEL: hop.kernel @summed
// CHECK: hop.role @consumer
// CHECK: hop.fetch
// CHECK-NOT: hop.proxy_fence
// CHECK: %[[SUM:.*]] = tile.reduce sum
// CHECK-NEXT: hop.barrier.arrive %{{.*}} all : !hop.barriers<1> after %[[SUM]] : tensor<64xf32, #hop.layout<row_partial>>
// CHECK-NOT: hop.proxy_fence
    hop.barrier.arrive %other[%i] all : !hop.barriers<1>
    %sum = tile.reduce sum %p axis 1 : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64xf32, #hop.layout<row_partial>>

// CASE summed_across
// Sums over the rows are of one number each, of which a thread's first one says nothing of the others.
// CHECK-LABEL: hop.kernel @summed_across
// CHECK: hop.role @consumer
// CHECK: hop.fetch
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive %{{[0-9a-z]+}}[%{{[0-9a-z_]+}}] all : !hop.barriers<1>{{$}}
    %sum = tile.reduce sum %p axis 0 : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64xf32, #hop.layout<column>>

// CASE summed_behind_wait
// Not past a wait.
// CHECK-LABEL: hop.kernel @summed_behind_wait
// CHECK: hop.role @consumer
// CHECK: hop.fetch
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive %{{[0-9a-z]+}}[%{{[0-9a-z_]+}}] all : !hop.barriers<1>{{$}}
    hop.barrier.wait %other[%i], %i : !hop.barriers<1>
    %sum = tile.reduce sum %p axis 1 : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64xf32, #hop.layout<row_partial>>

// FRAME
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %rows = hop.buffer "rows" at 0 : !hop.buffer<tensor<64x64xbf16>, 1>
  %full = hop.barriers "full" count 1 : !hop.barriers<1>
  %empty = hop.barriers "empty" count 128 : !hop.barriers<1>
  %other = hop.barriers "other" count 128 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %i = arith.constant 0 : i32
    hop.barrier.wait %empty[%i], %i : !hop.barriers<1>
    %s = hop.slot %rows[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.bulk_load %x[%m, %c0], %s, %full[%i] : !tile.view<[M, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<1>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i = arith.constant 0 : i32
    %s = hop.slot %rows[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.barrier.wait %full[%i], %i : !hop.barriers<1>
    // HERE
  }
}

// CASE behind_loop
// Read in a loop, given back behind it, and the other way round.
// CHECK-LABEL: hop.kernel @behind_loop
// CHECK: hop.role @consumer
// CHECK: scf.for
// CHECK-NEXT: hop.fetch
// CHECK: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive
    scf.for %j = %c0 to %m step %c1 {
      %a = hop.fetch %s : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
    }
    hop.barrier.arrive %empty[%i] all : !hop.barriers<1>

// CASE around_loop
// CHECK-LABEL: hop.kernel @around_loop
// CHECK: hop.role @consumer
// CHECK: scf.for
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive
// CHECK-NEXT: hop.fetch
    scf.for %j = %c0 to %m step %c1 {
      hop.barrier.arrive %empty[%i] all : !hop.barriers<1>
      %a = hop.fetch %s : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
    }

// CASE in_branch
// One branch takes what was read before, and the other does not.
// CHECK-LABEL: hop.kernel @in_branch
// CHECK: hop.role @consumer
// CHECK: scf.if
// CHECK: hop.mma_issue
// CHECK: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive
    %a = hop.fetch %s : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
    %is = arith.cmpi eq, %wg, %c0 : index
    scf.if %is {
      %f = hop.mma_issue %a, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
      %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    }
    hop.barrier.arrive %empty[%i] all : !hop.barriers<1>

// END
// What threads write is no bulk copy.
// CHECK-LABEL: hop.kernel @by_threads
// CHECK-NOT: hop.proxy_fence
// CHECK: hop.barrier.arrive
hop.kernel @by_threads attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<4, 1>], schedule = #tile.schedule<>} {
^bb0(%m: index):
  %rows = hop.buffer "rows" at 0 : !hop.buffer<tensor<64x64xbf16>, 1>
  %empty = hop.barriers "empty" count 128 : !hop.barriers<1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %i = arith.constant 0 : i32
    %s = hop.slot %rows[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %a = hop.fetch %s : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
    hop.barrier.arrive %empty[%i] all : !hop.barriers<1>
  }
}

// Lanes that store nothing of a vector have waited for nothing.
// CHECK-LABEL: hop.kernel @stored
// CHECK: hop.role @consumer
// CHECK: hop.fetch
// CHECK-NEXT: tile.store
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive

hop.kernel @stored attributes {argument_names = ["x", "w", "o"], argument_types = [!tile.view<[M, 64], f32>, !tile.view<[M, 64], f32>, !tile.view<[M, 64], f32>], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f32>, %w: !tile.view<[M, 64], f32>, %o: !tile.view<[M, 64], f32>, %m: index):
  %rows = hop.buffer "rows" at 0 : !hop.buffer<tensor<64xf32>, 1>
  %full = hop.barriers "full" count 1 : !hop.barriers<1>
  %empty = hop.barriers "empty" count 128 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %i = arith.constant 0 : i32
    hop.barrier.wait %empty[%i], %i : !hop.barriers<1>
    %s = hop.slot %rows[%i] : !hop.buffer<tensor<64xf32>, 1> -> !hop.shared<tensor<64xf32>, rows = 64>
    hop.bulk_load %x[%m, %c0], %s, %full[%i] : !tile.view<[M, 64], f32>, !hop.shared<tensor<64xf32>, rows = 64>, !hop.barriers<1>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %i = arith.constant 0 : i32
    %s = hop.slot %rows[%i] : !hop.buffer<tensor<64xf32>, 1> -> !hop.shared<tensor<64xf32>, rows = 64>
    hop.barrier.wait %full[%i], %i : !hop.barriers<1>
    %a = hop.fetch %s : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<64xf32, #hop.layout<column>>
    tile.store %a, %w[%m, %c0] : tensor<64xf32, #hop.layout<column>>, !tile.view<[M, 64], f32>
    hop.barrier.arrive %empty[%i] all : !hop.barriers<1>
    %t = tile.broadcast %a axis 0 : tensor<64xf32, #hop.layout<column>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    tile.store %t, %o[%m, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[M, 64], f32>
  }
}
