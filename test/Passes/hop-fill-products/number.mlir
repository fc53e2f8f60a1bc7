// The number of the next tile is taken under the last product of this one.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-async-mma,hop-fill-products))' | FileCheck %s

!acc = tensor<64x64xf32, #hop.layout<accumulator>>
!slot = !hop.shared<tensor<64x64xbf16>, rows = 64>

// CHECK-LABEL: hop.kernel @number
// CHECK: hop.mma_issue
// CHECK-NEXT: hop.pipe.get
// CHECK-NEXT: hop.mma_wait
// CHECK-NOT: hop.pipe.get
hop.kernel @number attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 64], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %numbers = hop.pipe.create "tiles" : !hop.pipe<tensor<1xi32>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    %s = hop.mma %k, %k {transpose_b} : !slot, !slot -> !acc
    hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    tile.store %s, %y[%m, %c0] : !acc, !tile.view<[M, 64], f32>
    %next = hop.pipe.get %numbers : !hop.pipe<tensor<1xi32>, 2>
  }
}

// The producer sends the number after the load of what the epilogue adds, for which it may wait: the number is not taken
// before that tile is.
// CHECK-LABEL: hop.kernel @later
// CHECK: hop.mma_issue
// CHECK-NOT: hop.pipe.get
// CHECK: tile.store
// CHECK-NEXT: hop.pipe.get
hop.kernel @later attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 64], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %cp = hop.pipe.create "c" : !hop.pipe<tensor<64x64xbf16>, 2>
  %numbers = hop.pipe.create "tiles" : !hop.pipe<tensor<1xi32>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    %s = hop.mma %k, %k {transpose_b} : !slot, !slot -> !acc
    hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    %c = hop.pipe.wait %cp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    hop.pipe.release %cp, %c : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    tile.store %s, %y[%m, %c0] : !acc, !tile.view<[M, 64], f32>
    %next = hop.pipe.get %numbers : !hop.pipe<tensor<1xi32>, 2>
  }
}

// The producer sends the number after the loads for @other, which waits for what this role commits: the number is not taken before. A role that
// only stores what is committed holds nobody up.
// CHECK-LABEL: hop.kernel @committed
// CHECK: hop.role @consumer
// CHECK: hop.mma_issue
// CHECK-NOT: hop.pipe.get
// CHECK: hop.pipe.commit
// CHECK-NEXT: hop.pipe.get
// CHECK-NEXT: }
// CHECK: hop.role @stored
// CHECK: hop.mma_issue
// CHECK-NEXT: hop.pipe.get
// CHECK: hop.pipe.commit
hop.kernel @committed attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[M, 64], f32>, %m: index):
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %vp = hop.pipe.create "v" : !hop.pipe<tensor<64x64xbf16>, 2>
  %sp = hop.pipe.create "s" : !hop.pipe<tensor<64x64xf32>, 2>
  %tp = hop.pipe.create "t" : !hop.pipe<tensor<64x64xf32>, 2>
  %numbers = hop.pipe.create "tiles" : !hop.pipe<tensor<1xi32>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %number = arith.constant 1 : i32
    hop.pipe.load %kp, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
    hop.pipe.load %vp, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
    hop.pipe.put %numbers, %number : !hop.pipe<tensor<1xi32>, 2>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    %s = hop.mma %k, %k {transpose_b} : !slot, !slot -> !acc
    hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    %slot = hop.pipe.acquire %sp : !hop.pipe<tensor<64x64xf32>, 2> -> !hop.shared<tensor<64x64xf32>, rows = 64>
    hop.stage %s, %slot : !acc, !hop.shared<tensor<64x64xf32>, rows = 64>
    hop.pipe.commit %sp, %slot : !hop.pipe<tensor<64x64xf32>, 2>, !hop.shared<tensor<64x64xf32>, rows = 64>
    %next = hop.pipe.get %numbers : !hop.pipe<tensor<1xi32>, 2>
  }
  hop.role @stored warpgroups(1) {
  ^bb0(%wg: index):
    %k = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    %s = hop.mma %k, %k {transpose_b} : !slot, !slot -> !acc
    hop.pipe.release %kp, %k : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
    %slot = hop.pipe.acquire %tp : !hop.pipe<tensor<64x64xf32>, 2> -> !hop.shared<tensor<64x64xf32>, rows = 64>
    hop.stage %s, %slot : !acc, !hop.shared<tensor<64x64xf32>, rows = 64>
    hop.pipe.commit %tp, %slot : !hop.pipe<tensor<64x64xf32>, 2>, !hop.shared<tensor<64x64xf32>, rows = 64>
    %next = hop.pipe.get %numbers : !hop.pipe<tensor<1xi32>, 2>
  }
  hop.role @other warpgroups(1) {
  ^bb0(%wg: index):
    %s = hop.pipe.wait %sp : !hop.pipe<tensor<64x64xf32>, 2> -> !hop.shared<tensor<64x64xf32>, rows = 64>
    hop.pipe.release %sp, %s : !hop.pipe<tensor<64x64xf32>, 2>, !hop.shared<tensor<64x64xf32>, rows = 64>
    %v = hop.pipe.wait %vp : !hop.pipe<tensor<64x64xbf16>, 2> -> !slot
    hop.pipe.release %vp, %v : !hop.pipe<tensor<64x64xbf16>, 2>, !slot
  }
  hop.role @writer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = hop.pipe.wait %tp : !hop.pipe<tensor<64x64xf32>, 2> -> !hop.shared<tensor<64x64xf32>, rows = 64>
    hop.bulk_store %t, %y[%m, %c0] : !hop.shared<tensor<64x64xf32>, rows = 64>, !tile.view<[M, 64], f32>
    hop.pipe.release %tp, %t : !hop.pipe<tensor<64x64xf32>, 2>, !hop.shared<tensor<64x64xf32>, rows = 64>
  }
}
