// Pipes as buffers and mbarriers, and the places that the roles count.
//
// RUN: tessera-opt %S/../Inputs/small.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,overlap=1,stages=2,pingpong=false},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-stage-stores,hop-async-mma,hop-pingpong,hop-insert-mbarriers),canonicalize,cse)' | FileCheck %s
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-insert-mbarriers),cse)' | FileCheck %s --check-prefix=PLACES

// FRAME
hop.kernel @NAME attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // HERE
}

// CASE one
// Full is completed by the copy, empty by an arrival of each consumer, or of each of their threads where the loop with
// the product, which joins the warps, may have no iteration.
// CHECK: %[[QF:.*]] = hop.barriers "q.full" count 1 : !hop.barriers<1>
// CHECK: hop.barriers "q.empty" count 256 : !hop.barriers<1>
// CHECK: %[[KB:.*]] = hop.buffer "k" : !hop.buffer<tensor<64x64xbf16>, 2>
// CHECK: %[[KF:.*]] = hop.barriers "k.full" count 1 : !hop.barriers<2>
// CHECK: %[[KE:.*]] = hop.barriers "k.empty" count 2 : !hop.barriers<2>
// CHECK-NOT: hop.pipe
// A producer starts at parity 1: the first slots are empty without a release.
// CHECK: hop.role @producer
// CHECK: scf.for {{.*}} iter_args(%[[PARITY:.*]] = %c1_i32, %[[I:.*]] = %c0_i32, %{{.*}} = %c1_i32, %{{.*}} = %c0_i32)
// CHECK-NEXT: hop.barrier.wait %[[KE]][%[[I]]], %[[PARITY]]
// CHECK-NEXT: hop.barrier.expect %[[KF]][%[[I]]] bytes 8192
// CHECK-NEXT: %[[SLOT:.*]] = hop.slot %[[KB]][%[[I]]]
// CHECK-NEXT: hop.bulk_load %{{.*}}, %[[SLOT]], %[[KF]][%[[I]]]
// With two slots the parity flips when slot 1 is left.
// CHECK-NEXT: %[[P1:.*]] = arith.xori %[[PARITY]], %[[I]]
// CHECK-NEXT: %[[I1:.*]] = arith.xori %[[I]], %c1_i32
// CHECK: scf.yield %[[P1]], %[[I1]],
// CHECK: hop.role @consumer
// CHECK: hop.barrier.wait %[[QF]][%c0_i32], %c0_i32
// CHECK: scf.for {{.*}} %[[RP:[^ ]+]] = %c0_i32, %[[RI:[^ ]+]] = %c0_i32, %{{[^ ]+}} = %c0_i32, %{{[^ ]+}} = %c0_i32)
// CHECK-NEXT: hop.barrier.wait %[[KF]][%[[RI]]], %[[RP]]
// CHECK: hop.mma_wait
// CHECK-NEXT: hop.barrier.arrive %[[KE]][%[[RI]]]
// With one slot there is no index, and the parity alone flips.
// PLACES-LABEL: hop.kernel @one
// PLACES: scf.for {{.*}} iter_args(%[[P:.*]] = %c1_i32) -> (i32) {
// PLACES: hop.barrier.wait %{{.*}}[%c0_i32], %[[P]]
// PLACES: %[[Q:.*]] = arith.xori %[[P]], %c1_i32
// PLACES: scf.yield %[[Q]]
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }

// CASE three
// With three the index wraps and the parity flips with it.
// PLACES-LABEL: hop.kernel @three
// PLACES: scf.for {{.*}} iter_args(%[[P:.*]] = %c0_i32, %[[I:.*]] = %c0_i32) -> (i32, i32) {
// PLACES: hop.barrier.wait %{{.*}}[%[[I]]], %[[P]]
// PLACES: %[[NEXT:.*]] = arith.addi %[[I]], %c1_i32
// PLACES: %[[WRAPS:.*]] = arith.cmpi eq, %[[NEXT]], %c3_i32
// PLACES: %[[FLIP:.*]] = arith.extui %[[WRAPS]]
// PLACES: %[[P1:.*]] = arith.xori %[[P]], %[[FLIP]]
// PLACES: %[[I1:.*]] = arith.select %[[WRAPS]], %c0_i32, %[[NEXT]]
// PLACES: scf.yield %[[P1]], %[[I1]]
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 3>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 3> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
      hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 3>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }
  }
  hop.role @filler elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 3>, !tile.view<[M, 64], bf16>
  }

// CASE conditional
// A conditional without an else gets one, in which the place stays; what follows goes on from either.
// PLACES-LABEL: hop.kernel @conditional
// PLACES: %[[R:.*]] = scf.if %{{.*}} -> (i32) {
// PLACES: hop.barrier.wait %{{.*}}[%c0_i32], %c0_i32
// PLACES: %[[N:.*]] = arith.xori %c0_i32, %c1_i32
// PLACES: scf.yield %[[N]]
// PLACES: } else {
// PLACES-NEXT: scf.yield %c0_i32
// PLACES: hop.barrier.wait %{{.*}}[%c0_i32], %[[R]]
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %some = arith.cmpi sgt, %m, %c0 : index
    scf.if %some {
      %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
      hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }
    %u = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %p, %u : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
  hop.role @filler elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
  }

// CASE nested
// Results of a conditional and a loop come before the places, which pass through both.
// PLACES-LABEL: hop.kernel @nested
// PLACES: %{{.*}}:3 = scf.for {{.*}} -> (index, i32, i32) {
// PLACES: %[[R:.*]]:3 = scf.if %{{.*}} -> (index, i32, i32) {
// PLACES: scf.yield %[[R]]#0, %[[R]]#1, %[[R]]#2
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %r = scf.for %i = %c0 to %m step %m iter_args(%a = %c0) -> (index) {
      %some = arith.cmpi sgt, %i, %a : index
      %b = scf.if %some -> (index) {
        %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
        hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
        scf.yield %i : index
      } else {
        scf.yield %a : index
      }
      scf.yield %b : index
    }
    %n = arith.index_cast %r : index to i32
    %k = arith.sitofp %n : i32 to f32
    %s = tile.splat %k : f32 -> tensor<64xf32, #hop.layout<row>>
    tile.store %s, %y[%c0] : tensor<64xf32, #hop.layout<row>>, !tile.view<[N], f32>
  }
  hop.role @filler elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
  }

// FRAME
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @rows warpgroups(2) {
  ^bb0(%wg: index):
    %t = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %s = hop.pipe.acquire %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.stage %t, %s : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // HERE
    hop.pipe.commit %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
  hop.role @writer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %s = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.bulk_store %s, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
    hop.pipe.release %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
  hop.role @reader warpgroups(1) {
  ^bb0(%wg: index):
    %s = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.warpgroup_sync
    hop.pipe.release %p, %s : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// CASE written
// A slot that threads write: full is completed by each of them, or by one of each warpgroup where they have met; empty by
// the thread of one reader and by one of the warpgroup of the other.
// PLACES-LABEL: hop.kernel @written
// PLACES: %[[FULL:.*]] = hop.barriers "x.full" count 256
// PLACES: %[[EMPTY:.*]] = hop.barriers "x.empty" count 2
// PLACES: hop.role @rows
// PLACES: hop.barrier.wait %[[EMPTY]][%c0_i32], %c1_i32
// PLACES: hop.stage
// PLACES-NEXT: hop.barrier.arrive %[[FULL]][%c0_i32] all
// PLACES: hop.role @writer
// PLACES: hop.barrier.wait %[[FULL]][%c0_i32], %c0_i32
// PLACES: hop.barrier.arrive %[[EMPTY]][%c0_i32] all
// PLACES: hop.role @reader
// PLACES: hop.barrier.arrive %[[EMPTY]][%c0_i32] :

// CASE joined
// PLACES-LABEL: hop.kernel @joined
// PLACES: %[[FULL:.*]] = hop.barriers "x.full" count 2
// PLACES: hop.stage
// PLACES-NEXT: hop.warpgroup_sync
// PLACES-NEXT: hop.barrier.arrive %[[FULL]][%c0_i32] :
    hop.warpgroup_sync

// END
// Each thread reads a row of values for itself, and gives the slot back for itself.
// PLACES-LABEL: hop.kernel @fetched
// PLACES: %[[EMPTY:.*]] = hop.barriers "l.empty" count 256
// PLACES: hop.fetch
// PLACES-NEXT: hop.pin
// PLACES: hop.barrier.arrive %[[EMPTY]][{{.*}}] all
hop.kernel @fetched attributes {argument_names = ["l"], argument_types = [!tile.view<[B, M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%l: !tile.view<[B, M], f32>, %m: index):
  %p = hop.pipe.create "l" : !hop.pipe<tensor<64xf32>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %p, %l[%c0, %m] : !hop.pipe<tensor<64xf32>, 2>, !tile.view<[B, M], f32>
  }
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %p : !hop.pipe<tensor<64xf32>, 2> -> !hop.shared<tensor<64xf32>, rows = 64>
    %r = hop.fetch %t : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<64xf32, #hop.layout<column>>
    hop.pin %r : tensor<64xf32, #hop.layout<column>>
    hop.pipe.release %p, %t : !hop.pipe<tensor<64xf32>, 2>, !hop.shared<tensor<64xf32>, rows = 64>
  }
}
