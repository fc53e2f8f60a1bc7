// A loop with products hands a scalar that it loads from one iteration to the next; others are loaded as early as their
// block allows. What the kernel stores to, what has no simple address, and loops without products stay as they are.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-load-scalars-ahead))' -verify-diagnostics | FileCheck %s

!Acc = tensor<64x64xf32>
!Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
!Row = !tile.view<[M], f32>
!Index = !tile.view<[M], i32>

// CHECK-LABEL: hop.kernel @k
hop.kernel @k attributes {argument_names = ["l", "y", "i"], argument_types = [!Row, !Row, !Index], grid = [], schedule = #tile.schedule<>} {
^bb0(%l: !Row, %y: !Row, %i: !Index):
  %q = hop.pipe.create "q" : !Pipe
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // CHECK: %[[N:.*]] = tile.dim "M"
    // CHECK: %[[C0:.*]] = arith.constant 0 : index
    // CHECK: arith.cmpi slt, %[[C0]], %[[N]] : index
    // CHECK: %[[FIRST:.*]] = scf.if %{{.*}} -> (f32) {
    // CHECK-NEXT: %[[ELEMENT:.*]] = tile.load %[[L:.*]][%[[C0]]]
    // CHECK-NEXT: scf.yield %[[ELEMENT]]
    // CHECK: %[[C5:.*]] = arith.constant 5 : index
    // CHECK-NEXT: tile.load %[[L]][%[[C5]]]
    // CHECK: hop.pipe.wait
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = tile.dim "M"
    %a = hop.pipe.wait %q : !Pipe -> !Shared
    %zero = arith.constant dense<0.0> : !Acc
    %c5 = arith.constant 5 : index
    %early = tile.load %l[%c5] : !Row -> f32
    %start = tile.splat %early : f32 -> !Acc
    %before = hop.mma %a, %a acc(%start : !Acc) : !Shared, !Shared -> !Acc

    // CHECK: scf.for %[[J:.*]] = %[[C0]] to %[[N]] step %[[C1:[^ ]*]] iter_args(%{{.*}} = %{{.*}}, %[[SCALE:.*]] = %[[FIRST]])
    // CHECK: %[[NEXT:.*]] = arith.addi %[[J]], %[[C1]]
    // CHECK: %[[AGAIN:.*]] = arith.cmpi slt, %{{.*}}, %[[N]]
    // CHECK: %[[PLACE:.*]] = arith.select %[[AGAIN]], %[[NEXT]], %[[J]]
    // CHECK: %[[AHEAD:.*]] = tile.load %[[L]][%[[PLACE]]]
    // CHECK: hop.mma
    // CHECK: tile.splat %[[SCALE]]
    // CHECK: scf.yield %{{.*}}, %[[AHEAD]]
    %sum = scf.for %j = %c0 to %n step %c1 iter_args(%old = %before) -> (!Acc) {
      %scale = tile.load %l[%j] : !Row -> f32
      %s = hop.mma %a, %a : !Shared, !Shared -> !Acc
      %factor = tile.splat %scale : f32 -> !Acc
      %scaled = arith.mulf %s, %factor : !Acc
      %new = arith.addf %old, %scaled : !Acc
      scf.yield %new : !Acc
    }

    // The view is stored to.
    // CHECK: scf.for %[[J:.*]] = {{.*}} iter_args(%[[OLD:[^ ]*]] = %{{[^ ,]*}})
    // CHECK-NEXT: tile.load %{{.*}}[%[[J]]]
    %more = scf.for %j = %c0 to %n step %c1 iter_args(%old = %sum) -> (!Acc) {
      %scale = tile.load %y[%j] : !Row -> f32
      %factor = tile.splat %scale : f32 -> !Acc
      %new = hop.mma %a, %a acc(%factor : !Acc) : !Shared, !Shared -> !Acc
      scf.yield %new : !Acc
    }

    // An index that comes from memory is carried; what it leads to is not.
    %most = scf.for %j = %c0 to %n step %c1 iter_args(%old = %more) -> (!Acc) {
      %page = tile.load %i[%j] : !Index -> i32
      %place = arith.index_cast %page : i32 to index
      // expected-remark @+1 {{loads a scalar in the iteration that uses it: its address takes more than index arithmetic on the induction variable}}
      %scale = tile.load %l[%place] : !Row -> f32
      %factor = tile.splat %scale : f32 -> !Acc
      %new = hop.mma %a, %a acc(%factor : !Acc) : !Shared, !Shared -> !Acc
      scf.yield %new : !Acc
    }
    hop.pipe.release %q, %a : !Pipe, !Shared
    %row = tile.reduce sum %most axis 1 : !Acc -> tensor<64xf32>
    tile.store %row, %y[%c0] : tensor<64xf32>, !Row
  }
}

// A bound that comes from memory is not branched on, and nothing waits for it before the product: the first scalar is loaded
// behind that, from the first place where there is none.
// CHECK-LABEL: hop.kernel @bound_from_memory
hop.kernel @bound_from_memory attributes {argument_names = ["l", "i"], argument_types = [!Row, !Index], grid = [], schedule = #tile.schedule<>} {
^bb0(%l: !Row, %i: !Index):
  %q = hop.pipe.create "q" : !Pipe
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = hop.pipe.wait %q : !Pipe -> !Shared
    // CHECK: %[[COUNT:.*]] = tile.load %{{.*}} : !tile.view<[M], i32> -> i32
    // CHECK-NOT: tile.load
    // CHECK: %[[BEFORE:.*]] = hop.mma
    // CHECK: %[[N:.*]] = arith.index_cast %[[COUNT]] : i32 to index
    // CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[C1:[^ ]*]], %[[N]]
    // CHECK: %[[PLACE:.*]] = arith.select %[[ANY]], %[[C1]], %{{.*}} : index
    // CHECK-NEXT: %[[FIRST:.*]] = tile.load %{{.*}}[%[[PLACE]]] : !tile.view<[M], f32> -> f32
    // CHECK: scf.for %{{.*}} = %[[C1]] to %[[N]] {{.*}} iter_args(%{{.*}} = %[[BEFORE]], %{{.*}} = %[[FIRST]])
    %count = tile.load %i[%c0] : !Index -> i32
    %before = hop.mma %a, %a : !Shared, !Shared -> !Acc
    %n = arith.index_cast %count : i32 to index
    %sum = scf.for %j = %c1 to %n step %c1 iter_args(%old = %before) -> (!Acc) {
      %scale = tile.load %l[%j] : !Row -> f32
      %factor = tile.splat %scale : f32 -> !Acc
      %new = hop.mma %a, %a acc(%factor : !Acc) : !Shared, !Shared -> !Acc
      %both = arith.addf %old, %new : !Acc
      scf.yield %both : !Acc
    }
    hop.pipe.release %q, %a : !Pipe, !Shared
    hop.pin %sum : !Acc
  }
}
