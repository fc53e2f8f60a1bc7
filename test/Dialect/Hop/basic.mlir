// Every operation and type of the dialect survives printing, as text and in the generic form.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --mlir-print-op-generic | tessera-opt | FileCheck %s

#schedule = #tile.schedule<consumers = 2, pingpong = true>
#tile = #hop.layout<accumulator>

// CHECK-LABEL: hop.kernel @pipes
hop.kernel @pipes attributes {
    argument_names = ["q", "k", "o", "s"],
    argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N, 64], bf16>, !tile.view<[M, 64], bf16>, f32],
    grid = [#tile.grid_dim<"M", 128>], requirements = [#tile.divides<"M", "N">, #tile.at_most<"N", 256>], schedule = #schedule} {
^bb0(%q: !tile.view<[M, 64], bf16>, %k: !tile.view<[N, 64], bf16>, %o: !tile.view<[M, 64], bf16>, %s: f32, %m: index):
  // CHECK: hop.pipe.create "q" : !hop.pipe<tensor<128x64xbf16>, 1>
  %qp = hop.pipe.create "q" : !hop.pipe<tensor<128x64xbf16>, 1>
  // CHECK: %[[K:.*]] = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  // CHECK: hop.staging "o" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  %st = hop.staging "o" : !hop.shared<tensor<128x64xbf16>, rows = 128>
  // CHECK: hop.role @producer elected registers(24) {
  hop.role @producer elected registers(24) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // CHECK: hop.pipe.load %[[K]], %{{.*}}[%{{.*}}, %{{.*}}] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[N, 64], bf16>
    hop.pipe.load %kp, %k[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[N, 64], bf16>
  }
  // CHECK: hop.role @consumer warpgroups(2) registers(240) {
  // CHECK-NEXT: ^bb0(%[[WG:.*]]: index):
  hop.role @consumer warpgroups(2) registers(240) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // CHECK: hop.turn.start %[[WG]]
    hop.turn.start %wg
    // CHECK: hop.elected %[[WG]]
    %elected = hop.elected %wg
    // CHECK: %[[QT:.*]] = hop.pipe.wait %{{.*}} : !hop.pipe<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %qt = hop.pipe.wait %qp : !hop.pipe<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    // CHECK: %[[SLICE:.*]] = hop.slice %[[QT]][%[[WG]]] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %qs = hop.slice %qt[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    // CHECK: hop.pipe.peek %[[K]] : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %next = hop.pipe.peek %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // CHECK: %[[KT:.*]] = hop.pipe.wait %[[K]]
    %kt = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // CHECK: hop.mma %[[SLICE]], %[[KT]] {transpose_b} : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %sync = hop.mma %qs, %kt {transpose_b} : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #tile>
    // CHECK: hop.turn.wait %[[WG]]
    hop.turn.wait %wg
    // CHECK: %[[F:.*]] = hop.mma_issue %[[SLICE]], %[[KT]] acc(%{{.*}} : tensor<64x64xf32, #hop.layout<accumulator>>) {transpose_b} : {{.*}} -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %f = hop.mma_issue %qs, %kt acc(%sync : tensor<64x64xf32, #tile>) {transpose_b} : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #tile>>
    %p = arith.truncf %sync : tensor<64x64xf32, #tile> to tensor<64x64xbf16, #tile>
    // CHECK: %[[G:.*]] = hop.mma_issue %[[P:.*]], %[[KT]] acc(%[[F]] : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>) {copies_a}
    %g = hop.mma_issue %p, %kt acc(%f : !hop.flight<tensor<64x64xf32, #tile>>) {copies_a} : tensor<64x64xbf16, #tile>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #tile>>
    // CHECK: hop.turn.pass %[[WG]]
    hop.turn.pass %wg
    // CHECK: %[[D:.*]] = hop.mma_wait %[[G]] keep %[[P]] pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> keep tensor<64x64xbf16, #hop.layout<accumulator>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %d = hop.mma_wait %g keep %p pending 0 : !hop.flight<tensor<64x64xf32, #tile>> keep tensor<64x64xbf16, #tile> -> tensor<64x64xf32, #tile>
    // CHECK: hop.pipe.release %[[K]], %[[KT]] : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %kp, %kt : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %r = tile.reduce sum %d axis 1 : tensor<64x64xf32, #tile> -> tensor<64xf32, #hop.layout<row_partial>>
    // CHECK: hop.convert_layout sum %{{.*}} : tensor<64xf32, #hop.layout<row_partial>> -> tensor<64xf32, #hop.layout<row>>
    %w = hop.convert_layout sum %r : tensor<64xf32, #hop.layout<row_partial>> -> tensor<64xf32, #hop.layout<row>>
    // CHECK: hop.row_factor %{{.*}} : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<row_partial>>
    %x = hop.row_factor %w : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<row_partial>>
    %h = arith.truncf %d : tensor<64x64xf32, #tile> to tensor<64x64xbf16, #tile>
    %so = hop.slice %st[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    // CHECK: hop.stage %{{.*}}, %[[SO:.*]] : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
    hop.stage %h, %so : tensor<64x64xbf16, #tile>, !hop.shared<tensor<64x64xbf16>, rows = 128>
    // CHECK: hop.proxy_fence
    hop.proxy_fence
    // CHECK: hop.warpgroup_sync
    hop.warpgroup_sync
    // CHECK: hop.bulk_store %[[SO]], %{{.*}}[%{{.*}}, %{{.*}}] : !hop.shared<tensor<64x64xbf16>, rows = 128>, !tile.view<[M, 64], bf16>
    hop.bulk_store %so, %o[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 128>, !tile.view<[M, 64], bf16>
  }
}

// CHECK-LABEL: hop.kernel @barriers
// CHECK-SAME: shared_bytes = 16400
hop.kernel @barriers attributes {argument_names = ["k"], argument_types = [!tile.view<[N, 64], bf16>],
    grid = [#tile.grid_dim<4, 1>], schedule = #schedule, shared_bytes = 16400 : i64} {
^bb0(%k: !tile.view<[N, 64], bf16>, %m: index):
  // CHECK: %[[B:.*]] = hop.buffer "k" at 0 : !hop.buffer<tensor<64x64xbf16>, 2>
  %b = hop.buffer "k" at 0 : !hop.buffer<tensor<64x64xbf16>, 2>
  // CHECK: %[[FULL:.*]] = hop.barriers "k.full" count 1 at 16384 : !hop.barriers<2>
  %full = hop.barriers "k.full" count 1 at 16384 : !hop.barriers<2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    // CHECK: hop.barrier.expect %[[FULL]][%{{.*}}] bytes 8192 : !hop.barriers<2>
    hop.barrier.expect %full[%zero] bytes 8192 : !hop.barriers<2>
    // CHECK: %[[SLOT:.*]] = hop.slot %[[B]][%{{.*}}] : !hop.buffer<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %t = hop.slot %b[%zero] : !hop.buffer<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // CHECK: hop.bulk_load %{{.*}}[%{{.*}}, %{{.*}}], %[[SLOT]], %[[FULL]][%{{.*}}] : !tile.view<[N, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<2>
    hop.bulk_load %k[%m, %c0], %t, %full[%zero] : !tile.view<[N, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<2>
    // CHECK: hop.barrier.wait %[[FULL]][%{{.*}}], %{{.*}} : !hop.barriers<2>
    hop.barrier.wait %full[%zero], %zero : !hop.barriers<2>
    // CHECK: hop.barrier.arrive %[[FULL]][%{{.*}}] : !hop.barriers<2>
    hop.barrier.arrive %full[%zero] : !hop.barriers<2>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // CHECK: arith.constant dense<0> : tensor<8xi32, #hop.layout<column>>
    %columns = arith.constant dense<0> : tensor<8xi32, #hop.layout<column>>
  }
}

// CHECK-LABEL: hop.kernel @cluster
hop.kernel @cluster attributes {argument_names = ["k"], argument_types = [!tile.view<[N, 64], bf16>],
    grid = [#tile.grid_dim<"N", 64>], schedule = #tile.schedule<cluster = exchange>} {
^bb0(%k: !tile.view<[N, 64], bf16>, %m: index):
  // CHECK: hop.pipe.create "k" multicast : !hop.pipe<tensor<64x64xbf16>, 2>
  %p = hop.pipe.create "k" multicast : !hop.pipe<tensor<64x64xbf16>, 2>
  // CHECK: hop.pipe.create "ds" exchanged : !hop.pipe<tensor<128x64xbf16>, 2>
  %ds = hop.pipe.create "ds" exchanged : !hop.pipe<tensor<128x64xbf16>, 2>
  %b = hop.buffer "k" : !hop.buffer<tensor<64x64xbf16>, 2>
  %v = hop.buffer "tiles" : !hop.buffer<tensor<1xi32>, 2>
  %full = hop.barriers "k.full" count 1 : !hop.barriers<2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    // CHECK: hop.cluster_rank
    %r = hop.cluster_rank
    %t = hop.slot %b[%zero] : !hop.buffer<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // CHECK: hop.bulk_load {{.*}} multicast : !tile.view
    hop.bulk_load %k[%r, %c0], %t, %full[%zero] multicast : !tile.view<[N, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<2>
    // CHECK: hop.barrier.wait %{{.*}}[%{{.*}}], %{{.*}} cluster : !hop.barriers<2>
    hop.barrier.wait %full[%zero], %zero cluster : !hop.barriers<2>
    // CHECK: hop.barrier.arrive %{{.*}}[%{{.*}}] blocks 2 : !hop.barriers<2>
    hop.barrier.arrive %full[%zero] blocks 2 : !hop.barriers<2>
    // CHECK: hop.barrier.arrive %{{.*}}[%{{.*}}] all blocks 1 : !hop.barriers<2>
    hop.barrier.arrive %full[%zero] all blocks 1 : !hop.barriers<2>
    // CHECK: hop.slot_multicast %{{.*}}, %{{.*}}, %{{.*}}[%{{.*}}] : !hop.buffer<tensor<1xi32>, 2>, !hop.barriers<2>
    hop.slot_multicast %zero, %v, %full[%zero] : !hop.buffer<tensor<1xi32>, 2>, !hop.barriers<2>
  }
}

// CHECK-LABEL: hop.kernel @exchange
hop.kernel @exchange attributes {argument_names = ["y"], argument_types = [!tile.view<[N, 64], f32>],
    grid = [#tile.grid_dim<"N", 64>], schedule = #tile.schedule<cluster = exchange>} {
^bb0(%y: !tile.view<[N, 64], f32>, %m: index):
  %b = hop.buffer "ds" : !hop.buffer<tensor<128x64xbf16>, 1>
  %st = hop.staging "y" : !hop.shared<tensor<64x64xf32>, rows = 64>
  %full = hop.barriers "ds.full" count 1 : !hop.barriers<1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = hop.slot %b[%zero] : !hop.buffer<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %own = hop.slice %t[%c0] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    %theirs = hop.slice %t[%c1] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    // CHECK: hop.columns %{{.*}}[1] : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64x32xf32, #hop.layout<accumulator>>
    %all = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    %right = hop.columns %all[1] : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64x32xf32, #hop.layout<accumulator>>
    // CHECK: hop.exchange %{{.*}}, %{{.*}}, %{{.*}}[%{{.*}}] : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.barriers<1>
    hop.exchange %own, %theirs, %full[%zero] : !hop.shared<tensor<64x64xbf16>, rows = 128>, !hop.barriers<1>
    // CHECK: hop.bulk_store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] add exchanged : !hop.shared
    hop.bulk_store %st, %y[%m, %c0] add exchanged : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[N, 64], f32>
  }
}

// CHECK-LABEL: hop.kernel @boxes
hop.kernel @boxes attributes {argument_names = ["x"], argument_types = [!tile.view<[H, M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[H, M, 64], bf16>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 1>
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %full = hop.barriers "x.full" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    // CHECK: hop.pipe.load %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] box [4, 16, 64] : !hop.pipe
    hop.pipe.load %kp, %x[%m, %m, %m] box [4, 16, 64] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[H, M, 64], bf16>
    // CHECK: hop.bulk_load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] box [4, 16, 64], %{{.*}}, %{{.*}}[%{{.*}}] : !tile.view
    hop.bulk_load %x[%m, %m, %m] box [4, 16, 64], %st, %full[%zero] : !tile.view<[H, M, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<1>
    // CHECK: hop.bulk_store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] box [4, 16, 64] : !hop.shared
    hop.bulk_store %st, %x[%m, %m, %m] box [4, 16, 64] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[H, M, 64], bf16>
  }
}

// CHECK-LABEL: hop.kernel @rows
hop.kernel @rows attributes {argument_names = ["l", "s"], argument_types = [!tile.view<[B, M], f32>, !tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<placement = apart, producer = all, transpose = 0, work = tiles>} {
^bb0(%l: !tile.view<[B, M], f32>, %s: !tile.view<[M, 64], f32>, %m: index):
  // CHECK: hop.pipe.create "l" : !hop.pipe<tensor<64xf32>, 2>
  %p = hop.pipe.create "l" : !hop.pipe<tensor<64xf32>, 2>
  %st = hop.staging "s" : !hop.shared<tensor<64x64xf32>, rows = 64>
  %bytes = hop.staging "bytes" : !hop.shared<tensor<32x64xf8E4M3FN>, rows = 32>
  %more = hop.staging "more" : !hop.shared<tensor<32x128xf8E4M3FN>, rows = 32>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // CHECK: hop.pipe.load %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : !hop.pipe<tensor<64xf32>, 2>, !tile.view<[B, M], f32>
    hop.pipe.load %p, %l[%c0, %m] : !hop.pipe<tensor<64xf32>, 2>, !tile.view<[B, M], f32>
  }
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = hop.pipe.wait %p : !hop.pipe<tensor<64xf32>, 2> -> !hop.shared<tensor<64xf32>, rows = 64>
    // CHECK: %[[ROW:.*]] = hop.fetch %{{.*}} : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<64xf32, #hop.layout<column>>
    %row = hop.fetch %t : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<64xf32, #hop.layout<column>>
    hop.pipe.release %p, %t : !hop.pipe<tensor<64xf32>, 2>, !hop.shared<tensor<64xf32>, rows = 64>
    // CHECK: hop.fetch %{{.*}} transposed : !hop.shared<tensor<32x64xf8E4M3FN>, rows = 32> -> tensor<64x32xf8E4M3FN, #hop.layout<row_pairs>>
    %columns = hop.fetch %bytes transposed : !hop.shared<tensor<32x64xf8E4M3FN>, rows = 32> -> tensor<64x32xf8E4M3FN, #hop.layout<row_pairs>>
    // CHECK: %[[PART:.*]] = hop.slice %{{.*}} : !hop.shared<tensor<32x128xf8E4M3FN>, rows = 32> -> !hop.shared<tensor<32x64xf8E4M3FN>, rows = 32>
    %part = hop.slice %more[%wg] : !hop.shared<tensor<32x128xf8E4M3FN>, rows = 32> -> !hop.shared<tensor<32x64xf8E4M3FN>, rows = 32>
    // CHECK: hop.fetch %[[PART]] transposed
    %others = hop.fetch %part transposed : !hop.shared<tensor<32x64xf8E4M3FN>, rows = 32> -> tensor<64x32xf8E4M3FN, #hop.layout<row_pairs>>
    // CHECK: hop.pin %[[ROW]] : tensor<64xf32, #hop.layout<column>>
    hop.pin %row : tensor<64xf32, #hop.layout<column>>
    // CHECK: hop.bulk_store %{{.*}} add in_flight 1 : !hop.shared
    hop.bulk_store %st, %s[%m, %c0] add in_flight 1 : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
    // CHECK-NEXT: hop.bulk_read_wait
    hop.bulk_read_wait
  }
}

// Places that lanes find, that of one of them, and what one lane does by itself.
// CHECK-LABEL: hop.kernel @lanes
hop.kernel @lanes attributes {argument_names = ["t"], argument_types = [!tile.view<[N], i32>], grid = [#tile.grid_dim<"N", 8>], schedule = #tile.schedule<>} {
^bb0(%t: !tile.view<[N], i32>, %m: index):
  %zero = arith.constant 0 : i32
  %empty = hop.barriers "x.empty" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK: %[[FOUND:.*]]:2 = hop.in_lanes {
    // CHECK: ^bb0(%[[I:.*]]: index):
    // CHECK:   hop.yield %{{.*}}, %[[I]] : index, index
    // CHECK: } : vector<8xindex>, vector<8xindex>
    %found:2 = hop.in_lanes {
    ^bb0(%i: index):
      %entry = tile.load %t[%i] : !tile.view<[N], i32> -> i32
      %place = arith.index_cast %entry : i32 to index
      hop.yield %place, %i : index, index
    } : vector<8xindex>, vector<8xindex>
    // CHECK: hop.of_lane %[[FOUND]]#1[%{{.*}}] : vector<8xindex>
    %own = hop.of_lane %found#1[%m] : vector<8xindex>
    // CHECK: hop.one_lane {
    // CHECK-NEXT: hop.barrier.wait
    // CHECK-NEXT: }
    hop.one_lane {
      hop.barrier.wait %empty[%zero], %zero : !hop.barriers<1>
    }
  }
}

// Stages of which everything is known about their places, some, and nothing.
// CHECK-LABEL: hop.kernel @timeline
hop.kernel @timeline attributes {argument_names = [], argument_types = [], grid = [], schedule = #schedule} {
  // CHECK: stages [#hop.stage<finish, "q x k", value = "s", file = "a.tile", line = 6, column = 8, products = 1, 2>,
  // CHECK-SAME: #hop.stage<store, "c", file = "a.tile", line = 9>, #hop.stage<issue, "q x k", line = 6, column = 8>, #hop.stage<turn, "turn">]
  hop.timeline blocks 1 from 0 events 8 stages [
    #hop.stage<finish, "q x k", value = "s", file = "a.tile", line = 6, column = 8, products = 1, 2>,
    #hop.stage<store, "c", file = "a.tile", line = 9>, #hop.stage<issue, "q x k", line = 6, column = 8>, #hop.stage<turn, "turn">]
}
