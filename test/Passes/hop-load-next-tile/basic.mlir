// Scalars that each tile loads by its number are loaded for the next tile, behind the last product of this one and the number;
// not from what the kernel stores to, nor by what another load or the program gives.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-load-next-tile))' | FileCheck %s

!Acc = tensor<64x64xf32>
!Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
!Row = !tile.view<[M], f32>
!Index = !tile.view<[M], i32>

// CHECK-LABEL: hop.kernel @k
// CHECK: ^bb0(%[[L:.*]]: !tile.view<[M], f32>, %[[Y:.*]]: !tile.view<[M], f32>, %[[I:.*]]: !tile.view<[M], i32>)
hop.kernel @k attributes {argument_names = ["l", "y", "i"], argument_types = [!Row, !Row, !Index], grid = [], schedule = #tile.schedule<>} {
^bb0(%l: !Row, %y: !Row, %i: !Index):
  %q = hop.pipe.create "q" : !Pipe
  %tiles = hop.pipe.create "tiles" : !hop.pipe<tensor<1xi32>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // CHECK: %[[FIRST:.*]] = hop.block_index
    // CHECK: %[[N0:.*]] = tile.dim "M"
    // CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[FIRST]], %[[N0]]
    // CHECK: %[[SLOPE0:.*]] = scf.if %[[ANY]] -> (f32) {
    // CHECK: %[[PLACE0:.*]] = arith.divui %[[FIRST]], %{{.*}} : index
    // CHECK: %[[LOADED0:.*]] = tile.load %[[L]][%[[PLACE0]]]
    // CHECK: scf.yield %[[LOADED0]]
    // CHECK: } else {
    // CHECK: %[[NUMBER0:.*]] = scf.if %{{.*}} -> (i32) {
    // CHECK: scf.while (%{{.*}} = %[[FIRST]], %{{.*}} = %[[SLOPE0]], %{{.*}} = %[[NUMBER0]]) : (index, f32, i32) -> (index, f32, i32) {
    %first = hop.block_index
    scf.while (%n = %first) : (index) -> index {
      %all = tile.dim "M"
      %more = arith.cmpi slt, %n, %all : index
      // CHECK: scf.condition(%{{.*}}) %{{.*}}, %{{.*}}, %{{.*}} : index, f32, i32
      scf.condition(%more) %n : index
    } do {
    // CHECK: ^bb0(%[[NOW:.*]]: index, %[[SLOPE:.*]]: f32, %[[NUMBER:.*]]: i32):
    ^bb0(%n: index):
      // CHECK-NOT: tile.load %[[L]]
      // CHECK: tile.load %[[Y]]
      // CHECK-NEXT: %[[INDIRECT:.*]] = arith.index_cast %[[NUMBER]]
      // CHECK-NEXT: tile.load %[[L]][%[[INDIRECT]]]
      // CHECK: tile.splat %[[SLOPE]]
      %c2 = arith.constant 2 : index
      %place = arith.divui %n, %c2 : index
      %slope = tile.load %l[%place] : !Row -> f32
      %stored = tile.load %y[%n] : !Row -> f32
      %number = tile.load %i[%place] site 1 : !Index -> i32
      %from_memory = arith.index_cast %number : i32 to index
      %indirect = tile.load %l[%from_memory] : !Row -> f32
      %start = tile.splat %slope : f32 -> !Acc
      %a = hop.pipe.wait %q : !Pipe -> !Shared
      // CHECK: hop.mma_issue
      %f = hop.mma_issue %a, %a acc(%start : !Acc) : !Shared, !Shared -> !hop.flight<!Acc>
      // CHECK: %[[GOT:.*]] = hop.pipe.get
      %got = hop.pipe.get %tiles : !hop.pipe<tensor<1xi32>, 2>
      // CHECK-NEXT: %[[NEXT:.*]] = arith.index_cast %[[GOT]]
      // CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %{{.*}}
      // CHECK: %[[THERE:.*]] = arith.select %[[MORE]], %{{.*}}, %[[NOW]]
      // CHECK: %[[PLACE:.*]] = arith.divui %[[THERE]]
      // CHECK: %[[AHEAD:.*]] = tile.load %[[L]][%[[PLACE]]]
      // CHECK: hop.mma_wait
      %r = hop.mma_wait %f pending 0 : !hop.flight<!Acc> -> !Acc
      hop.pipe.release %q, %a : !Pipe, !Shared
      %sum = arith.addf %stored, %indirect : f32
      tile.store %sum, %y[%n] : f32, !Row
      %next = arith.index_cast %got : i32 to index
      // CHECK: scf.yield %{{.*}}, %[[AHEAD]], %{{.*}} : index, f32, i32
      scf.yield %next : index
    }
  }
}

// Whether there is another tile is not known before.
// CHECK-LABEL: hop.kernel @unknown
// CHECK: scf.while (%{{.*}} = %{{.*}}) : (index) -> index {
hop.kernel @unknown attributes {argument_names = ["l", "i"], argument_types = [!Row, !Index], grid = [], schedule = #tile.schedule<>} {
^bb0(%l: !Row, %i: !Index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %first = hop.block_index
    %all = tile.dim "M"
    scf.while (%n = %first) : (index) -> index {
      %number = tile.load %i[%first] : !Index -> i32
      %end = arith.index_cast %number : i32 to index
      %more = arith.cmpi slt, %n, %end : index
      scf.condition(%more) %n : index
    } do {
    ^bb0(%n: index):
      %slope = tile.load %l[%n] : !Row -> f32
      %start = tile.splat %slope : f32 -> !Acc
      hop.pin %start : !Acc
      %next = arith.addi %n, %all : index
      scf.yield %next : index
    }
  }
}
