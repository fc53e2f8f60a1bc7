// Rings that the blocks of a cluster fill together.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-insert-mbarriers))' | FileCheck %s

// One thread of each consumer warpgroup of each block releases a slot.
// CHECK-LABEL: hop.kernel @tiles
// CHECK: %[[KF:.*]] = hop.barriers "k.full" count 1 : !hop.barriers<2>
// CHECK: %[[KE:.*]] = hop.barriers "k.empty" count 6 : !hop.barriers<2>
// CHECK: %[[QE:.*]] = hop.barriers "q.empty" count 384 : !hop.barriers<1>
// CHECK: hop.role @producer
// The whole tile is expected, of which this block loads a part.
// CHECK: hop.barrier.expect %[[KF]][%[[I:.*]]] bytes 8192
// CHECK: hop.bulk_load %{{.*}}, %[[KF]][%[[I]]] multicast :
// CHECK: hop.bulk_load %{{.*}} : !tile.view
// In the end all slots of K are empty: the other blocks have released them. Those of Q are nobody else's.
// CHECK: hop.barrier.wait %[[KE]][%[[I1:.*]]], %[[P1:[^ ]*]]
// CHECK: %[[P2:.*]] = arith.xori %[[P1]], %[[I1]]
// CHECK: %[[I2:.*]] = arith.xori %[[I1]], %{{.*}}
// CHECK: hop.barrier.wait %[[KE]][%[[I2]]], %[[P2]]
// CHECK-NOT: hop.barrier.wait
// CHECK: hop.role @consumer
// CHECK: hop.barrier.wait %[[KF]]
// CHECK: hop.mma_wait
// CHECK: hop.barrier.arrive %[[KE]][%{{.*}}] blocks 2
// CHECK: hop.barrier.arrive %[[QE]][%{{.*}}] all :
hop.kernel @tiles attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %k = hop.pipe.create "k" multicast : !hop.pipe<tensor<64x64xbf16>, 2>
  %q = hop.pipe.create "q" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %k, %x[%c0, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
    hop.pipe.load %q, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
  }
  hop.role @consumer warpgroups(3) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %k : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %t, %t : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32>>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32>> -> tensor<64x64xf32>
    hop.pipe.release %k, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %u = hop.pipe.wait %q : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %q, %u : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// Without a producer the thread that loads waits in the end: the others do not know its place in the ring.
// CHECK-LABEL: hop.kernel @alone
// CHECK: %[[E:.*]] = hop.barriers "k.empty" count 256
// CHECK: hop.barrier.arrive %[[E]][%{{.*}}] all blocks 2
// CHECK: %[[ELECTED:.*]] = hop.elected
// CHECK: scf.if %[[ELECTED]] {
// CHECK-NEXT: hop.barrier.wait %[[E]]
hop.kernel @alone attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %k = hop.pipe.create "k" multicast : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %elected = hop.elected %wg
    scf.if %elected {
      hop.pipe.load %k, %x[%c0, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    }
    %t = hop.pipe.wait %k : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %k, %t : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// Tiles that threads write for both blocks: each warpgroup sends its rows and expects as many of the other block. Readers of both
// give a slot back, and in the end all are free.
// CHECK-LABEL: hop.kernel @exchange
// CHECK: %[[F:.*]] = hop.barriers "ds.full" count 2
// CHECK: %[[E:.*]] = hop.barriers "ds.empty" count 2
// CHECK: hop.role @consumer
// CHECK: hop.barrier.wait %[[E]]
// CHECK: %[[SLOT:.*]] = hop.slot
// CHECK: hop.stage
// CHECK-NEXT: hop.warpgroup_sync
// CHECK: %[[BELOW:.*]] = arith.addi %[[WG:.*]], %{{.*}} : index
// CHECK: %[[OWN:.*]] = hop.slice %[[SLOT]][%[[WG]]] : !hop.shared<tensor<256x64xbf16>, rows = 256> -> !hop.shared<tensor<64x64xbf16>, rows = 256>
// CHECK: %[[THEIRS:.*]] = hop.slice %[[SLOT]][%[[BELOW]]]
// CHECK: hop.exchange %[[OWN]], %[[THEIRS]], %[[F]][
// CHECK: %[[ELECTED:.*]] = hop.elected
// CHECK: scf.if %[[ELECTED]] {
// CHECK-NEXT: hop.barrier.wait %[[E]]
// CHECK: hop.role @reducer
// CHECK: hop.barrier.wait %[[F]]
// CHECK: hop.barrier.arrive %[[E]][%{{.*}}] blocks 2
hop.kernel @exchange attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = exchange>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %ds = hop.pipe.create "ds" exchanged : !hop.pipe<tensor<256x64xbf16>, 1>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %t = arith.constant dense<1.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %s = hop.pipe.acquire %ds : !hop.pipe<tensor<256x64xbf16>, 1> -> !hop.shared<tensor<256x64xbf16>, rows = 256>
    %mine = hop.slice %s[%wg] : !hop.shared<tensor<256x64xbf16>, rows = 256> -> !hop.shared<tensor<64x64xbf16>, rows = 256>
    hop.stage %t, %mine : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 256>
    hop.warpgroup_sync
    hop.pipe.commit %ds, %s : !hop.pipe<tensor<256x64xbf16>, 1>, !hop.shared<tensor<256x64xbf16>, rows = 256>
  }
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %ds : !hop.pipe<tensor<256x64xbf16>, 1> -> !hop.shared<tensor<256x64xbf16>, rows = 256>
    hop.warpgroup_sync
    hop.pipe.release %ds, %t : !hop.pipe<tensor<256x64xbf16>, 1>, !hop.shared<tensor<256x64xbf16>, rows = 256>
  }
}

// The first block writes a value for all, when all have read what was in the slot: the consumers' threads and one
// producer of each block.
// CHECK-LABEL: hop.kernel @values
// CHECK: %[[B:.*]] = hop.buffer "tiles"
// CHECK: %[[F:.*]] = hop.barriers "tiles.full" count 1
// CHECK: %[[E:.*]] = hop.barriers "tiles.empty" count 258
// CHECK: hop.role @producer
// CHECK: hop.barrier.expect %[[F]][%{{.*}}] bytes 4
// CHECK: %[[RANK:.*]] = hop.cluster_rank
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[RANK]], %{{.*}} : index
// CHECK-NEXT: scf.if %[[IS]] {
// CHECK-NEXT: hop.barrier.wait %[[E]]
// CHECK-NEXT: hop.slot_multicast %{{.*}}, %[[B]], %[[F]]
// CHECK-NEXT: }
// CHECK: hop.barrier.wait %[[F]][%{{.*}}], %{{.*}} cluster
// CHECK: hop.slot_load %[[B]]
// CHECK: hop.barrier.arrive %[[E]][%{{.*}}] all blocks 1
// Only the first block's barrier counts releases.
// CHECK: scf.if
// CHECK-NEXT: hop.barrier.wait %[[E]]
// CHECK: hop.role @consumer
// CHECK: hop.barrier.wait %[[F]][%{{.*}}], %{{.*}} cluster
// CHECK: hop.barrier.arrive %[[E]][%{{.*}}] all blocks 1
hop.kernel @values attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %n = hop.pipe.create "tiles" multicast : !hop.pipe<tensor<1xi32>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %zero = arith.constant 0 : i32
    hop.pipe.put %n, %zero : !hop.pipe<tensor<1xi32>, 2>
    %v = hop.pipe.get %n : !hop.pipe<tensor<1xi32>, 2>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %v = hop.pipe.get %n : !hop.pipe<tensor<1xi32>, 2>
  }
}
