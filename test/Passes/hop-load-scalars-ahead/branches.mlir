// Where a loop leaves few registers, scalars of its next iteration are loaded under its products, and those that are needed
// behind a branch under the product before it.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-load-scalars-ahead))' | FileCheck %s

!Acc = tensor<64x64xf32>
!Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
!Row = !tile.view<[M], f32>
!Index = !tile.view<[M], i32>

// CHECK-LABEL: hop.kernel @branch
hop.kernel @branch attributes {argument_names = ["l", "i"], argument_types = [!Row, !Index], grid = [], schedule = #tile.schedule<>} {
^bb0(%l: !Row, %i: !Index):
  %q = hop.pipe.create "q" : !Pipe
  hop.role @consumer warpgroups(1) registers(72) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = tile.dim "M"
    %a = hop.pipe.wait %q : !Pipe -> !Shared
    %before = hop.mma %a, %a : !Shared, !Shared -> !Acc
    %then = hop.mma %a, %a acc(%before : !Acc) : !Shared, !Shared -> !Acc
    %some = arith.cmpi sgt, %n, %c1 : index

    // CHECK: hop.mma
    // CHECK: %[[SOME:.*]] = arith.cmpi sgt
    // CHECK: %[[BOTH:.*]] = arith.andi %[[SOME]], %{{.*}} : i1
    // CHECK: %[[FIRST:.*]] = scf.if %[[BOTH]] -> (f32) {
    // CHECK-NEXT: tile.load
    // CHECK: %[[LIFTED:.*]] = scf.if %[[SOME]] -> (f32) {
    // CHECK-NEXT: tile.load
    // CHECK: hop.mma {{.*}} acc(
    // CHECK: scf.if %[[SOME]] -> (tensor<64x64xf32>) {
    // CHECK: tile.splat %[[LIFTED]]
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[FIRST]])
    // CHECK: hop.mma
    // CHECK: tile.load
    // CHECK-NEXT: arith.mulf
    %all = scf.if %some -> (!Acc) {
      %one = tile.load %l[%c1] : !Row -> f32
      %of_one = tile.splat %one : f32 -> !Acc
      %start = arith.mulf %then, %of_one : !Acc
      %s = hop.mma %a, %a acc(%start : !Acc) : !Shared, !Shared -> !Acc
      %sum = scf.for %j = %c1 to %n step %c1 iter_args(%old = %s) -> (!Acc) {
        %scale = tile.load %l[%j] : !Row -> f32
        %factor = tile.splat %scale : f32 -> !Acc
        %product = hop.mma %a, %a : !Shared, !Shared -> !Acc
        %new = arith.mulf %product, %factor : !Acc
        %both = arith.addf %old, %new : !Acc
        scf.yield %both : !Acc
      }
      scf.yield %sum : !Acc
    } else {
      scf.yield %then : !Acc
    }
    hop.pipe.release %q, %a : !Pipe, !Shared
    hop.pin %all : !Acc
  }
}

// The branch waits for memory: so would what is loaded before it.
// CHECK-LABEL: hop.kernel @condition_from_memory
hop.kernel @condition_from_memory attributes {argument_names = ["l", "i"], argument_types = [!Row, !Index], grid = [], schedule = #tile.schedule<>} {
^bb0(%l: !Row, %i: !Index):
  %q = hop.pipe.create "q" : !Pipe
  hop.role @consumer warpgroups(1) registers(72) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %count = tile.load %i[%c0] : !Index -> i32
    %zero = arith.constant 0 : i32
    %a = hop.pipe.wait %q : !Pipe -> !Shared
    %before = hop.mma %a, %a : !Shared, !Shared -> !Acc
    %some = arith.cmpi sgt, %count, %zero : i32
    // CHECK: hop.mma
    // CHECK-NOT: tile.load
    // CHECK: scf.if
    // CHECK-NEXT: tile.load
    %all = scf.if %some -> (!Acc) {
      %one = tile.load %l[%c0] : !Row -> f32
      %of_one = tile.splat %one : f32 -> !Acc
      %start = hop.mma %a, %a acc(%of_one : !Acc) : !Shared, !Shared -> !Acc
      %s = scf.for %j = %c0 to %c4 step %c1 iter_args(%old = %start) -> (!Acc) {
        %product = hop.mma %a, %a : !Shared, !Shared -> !Acc
        %both = arith.addf %old, %product : !Acc
        scf.yield %both : !Acc
      }
      scf.yield %s : !Acc
    } else {
      scf.yield %before : !Acc
    }
    hop.pipe.release %q, %a : !Pipe, !Shared
    hop.pin %all : !Acc
  }
}

// With registers to spare nothing crosses a branch, and the next scalar comes before the products.
// CHECK-LABEL: hop.kernel @spare
// CHECK-NOT: tile.load
// CHECK: scf.if %{{[^ ]*}} -> (tensor<64x64xf32>) {
// CHECK: tile.load
// CHECK: scf.for
// CHECK: tile.load
// CHECK: tile.splat
// CHECK: hop.mma
hop.kernel @spare attributes {argument_names = ["l", "i"], argument_types = [!Row, !Index], grid = [], schedule = #tile.schedule<>} {
^bb0(%l: !Row, %i: !Index):
  %q = hop.pipe.create "q" : !Pipe
  hop.role @consumer warpgroups(1) registers(80) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = tile.dim "M"
    %a = hop.pipe.wait %q : !Pipe -> !Shared
    %before = hop.mma %a, %a : !Shared, !Shared -> !Acc
    %then = hop.mma %a, %a acc(%before : !Acc) : !Shared, !Shared -> !Acc
    %some = arith.cmpi sgt, %n, %c1 : index

    %all = scf.if %some -> (!Acc) {
      %one = tile.load %l[%c1] : !Row -> f32
      %of_one = tile.splat %one : f32 -> !Acc
      %start = arith.mulf %then, %of_one : !Acc
      %s = hop.mma %a, %a acc(%start : !Acc) : !Shared, !Shared -> !Acc
      %sum = scf.for %j = %c1 to %n step %c1 iter_args(%old = %s) -> (!Acc) {
        %scale = tile.load %l[%j] : !Row -> f32
        %factor = tile.splat %scale : f32 -> !Acc
        %product = hop.mma %a, %a : !Shared, !Shared -> !Acc
        %new = arith.mulf %product, %factor : !Acc
        %both = arith.addf %old, %new : !Acc
        scf.yield %both : !Acc
      }
      scf.yield %sum : !Acc
    } else {
      scf.yield %then : !Acc
    }
    hop.pipe.release %q, %a : !Pipe, !Shared
    hop.pin %all : !Acc
  }
}
