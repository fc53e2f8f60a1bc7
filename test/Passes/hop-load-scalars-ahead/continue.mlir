// Where loops leave few registers, one that goes on where another ends takes over what that one loaded last.
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-load-scalars-ahead))' | FileCheck %s

!Acc = tensor<64x64xf32>
!Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
!Row = !tile.view<[M], f32>

// Where neither loop runs nothing is loaded before them; where the first does not, the first element of the second is.
// CHECK-LABEL: hop.kernel @goes_on
// CHECK: %[[LAST:.*]] = tile.dim "M"
// The third begins where the second ends, which ends where it began if it does not run.
// CHECK: %[[THIRD:.*]] = scf.if
// CHECK-NEXT: tile.load %{{.*}}[%[[LAST]]]
// CHECK: %[[MIDDLE:.*]] = arith.minsi
// CHECK: %[[LATER:.*]] = arith.cmpi slt, %[[MIDDLE]], %[[LAST]]
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[C0:.*]], %[[MIDDLE]]
// CHECK: %[[ANY:.*]] = arith.ori %[[RUNS]], %[[LATER]]
// CHECK: %[[PLACE:.*]] = arith.select %[[RUNS]], %[[C0]], %[[MIDDLE]]
// CHECK: %[[FIRST:.*]] = scf.if %[[ANY]]
// CHECK-NEXT: tile.load %{{.*}}[%[[PLACE]]]
// CHECK: %[[END:.*]] = arith.maxsi %[[MIDDLE]], %[[LAST]] : index
// CHECK: %[[ONE:.*]]:2 = scf.for %{{.*}} = %[[C0]] to %[[MIDDLE]] {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[FIRST]])
// CHECK: arith.cmpi slt, %{{.*}}, %[[END]]
// CHECK: tile.load
// CHECK-NOT: tile.load
// CHECK: scf.for %{{.*}} = %[[MIDDLE]] to %[[LAST]] {{.*}} iter_args(%{{.*}} = %[[ONE]]#0, %{{.*}} = %[[ONE]]#1)
// CHECK: arith.cmpi slt, %{{.*}}, %[[LAST]]
// CHECK: scf.for %{{.*}} = %[[LAST]] to {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[THIRD]])
hop.kernel @goes_on attributes {argument_names = ["l"], argument_types = [!Row], grid = [], schedule = #tile.schedule<>} {
^bb0(%l: !Row):
  %q = hop.pipe.create "q" : !Pipe
  hop.role @consumer warpgroups(1) registers(72) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %last = tile.dim "M"
    %middle = arith.minsi %last, %c9 : index
    %end = arith.addi %last, %c1 : index
    %a = hop.pipe.wait %q : !Pipe -> !Shared
    %zero = arith.constant dense<0.0> : !Acc
    %one = scf.for %j = %c0 to %middle step %c1 iter_args(%old = %zero) -> (!Acc) {
      %scale = tile.load %l[%j] : !Row -> f32
      %factor = tile.splat %scale : f32 -> !Acc
      %product = hop.mma %a, %a : !Shared, !Shared -> !Acc
      %new = arith.mulf %product, %factor : !Acc
      %both = arith.addf %old, %new : !Acc
      scf.yield %both : !Acc
    }
    %two = scf.for %j = %middle to %last step %c1 iter_args(%old = %one) -> (!Acc) {
      %scale = tile.load %l[%j] : !Row -> f32
      %factor = tile.splat %scale : f32 -> !Acc
      %product = hop.mma %a, %a : !Shared, !Shared -> !Acc
      %new = arith.mulf %product, %factor : !Acc
      %both = arith.addf %old, %new : !Acc
      scf.yield %both : !Acc
    }
    %three = scf.for %j = %last to %end step %c1 iter_args(%old = %two) -> (!Acc) {
      %scale = tile.load %l[%j] : !Row -> f32
      %factor = tile.splat %scale : f32 -> !Acc
      %product = hop.mma %a, %a : !Shared, !Shared -> !Acc
      %new = arith.mulf %product, %factor : !Acc
      %both = arith.addf %old, %new : !Acc
      scf.yield %both : !Acc
    }
    hop.pipe.release %q, %a : !Pipe, !Shared
    hop.pin %three : !Acc
  }
}

// FRAME
hop.kernel @NAME attributes {argument_names = ["l", "m"], argument_types = [!Row, !Row], grid = [], schedule = #tile.schedule<>} {
^bb0(%l: !Row, %m: !Row):
  %q = hop.pipe.create "q" : !Pipe
  hop.role @consumer warpgroups(1) registers(72) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %last = tile.dim "M"
    %middle = arith.subi %last, %c2 : index
    %a = hop.pipe.wait %q : !Pipe -> !Shared
    %zero = arith.constant dense<0.0> : !Acc
    %one = scf.for %j = %c0 to %middle step %c1 iter_args(%old = %zero) -> (!Acc) {
      %scale = tile.load %l[%j] : !Row -> f32
      %factor = tile.splat %scale : f32 -> !Acc
      %product = hop.mma %a, %a : !Shared, !Shared -> !Acc
      %new = arith.mulf %product, %factor : !Acc
      %both = arith.addf %old, %new : !Acc
      scf.yield %both : !Acc
    }
    // HERE
      %factor = tile.splat %scale : f32 -> !Acc
      %product = hop.mma %a, %a : !Shared, !Shared -> !Acc
      %new = arith.mulf %product, %factor : !Acc
      %both = arith.addf %old, %new : !Acc
      scf.yield %both : !Acc
    }
    hop.pipe.release %q, %a : !Pipe, !Shared
    hop.pin %two : !Acc
  }
}

// CASE other_view
// A loop that loads from another view begins with a load of its own.
// CHECK-LABEL: hop.kernel @other_view
// CHECK: scf.if
// CHECK-NEXT: tile.load
// CHECK: scf.if
// CHECK-NEXT: tile.load %{{.*}}[%[[PLACE:.*]]] :
// CHECK: scf.for
    %two = scf.for %j = %middle to %last step %c1 iter_args(%old = %one) -> (!Acc) {
      %scale = tile.load %m[%j] : !Row -> f32

// CASE other_element
// So does one that loads other elements,
// CHECK-LABEL: hop.kernel @other_element
// CHECK: scf.if
// CHECK-NEXT: tile.load
// CHECK: scf.if
// CHECK-NEXT: tile.load %{{.*}}[%[[PLACE:.*]]] :
// CHECK: scf.for
    %two = scf.for %j = %middle to %last step %c1 iter_args(%old = %one) -> (!Acc) {
      %place = arith.addi %j, %c1 : index
      %scale = tile.load %l[%place] : !Row -> f32

// CASE wider_step
// one with larger steps, as the last one of the loop before may not end where it begins,
// CHECK-LABEL: hop.kernel @wider_step
// CHECK: scf.if
// CHECK-NEXT: tile.load
// CHECK: scf.if
// CHECK-NEXT: tile.load %{{.*}}[%[[PLACE:.*]]] :
// CHECK: scf.for
    %two = scf.for %j = %middle to %last step %c2 iter_args(%old = %one) -> (!Acc) {
      %scale = tile.load %l[%j] : !Row -> f32

// CASE elsewhere
// and one that begins elsewhere.
// CHECK-LABEL: hop.kernel @elsewhere
// CHECK: scf.if
// CHECK-NEXT: tile.load
// CHECK: scf.if
// CHECK-NEXT: tile.load %{{.*}}[%[[PLACE:.*]]] :
// CHECK: scf.for
    %two = scf.for %j = %c1 to %last step %c1 iter_args(%old = %one) -> (!Acc) {
      %scale = tile.load %l[%j] : !Row -> f32
