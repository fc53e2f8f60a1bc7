// Masks outside of loops, and the conditions under which they are jumped over.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-guard-masks),canonicalize,cse)' --split-input-file --verify-diagnostics | FileCheck %s

!acc = tensor<64x32xf32, #hop.layout<accumulator>>
!ints = tensor<64x32xi32, #hop.layout<accumulator>>
!bits = tensor<64x32xi1, #hop.layout<accumulator>>

// The end of K: column %col + 31 is the last one of the tile.
// CHECK-LABEL: hop.kernel @tail
// CHECK-NEXT: ^bb0(%{{.*}}: !tile.view<[M, 32], f32>, %[[COL:.*]]: index):
// CHECK: %[[FILL:.*]] = arith.constant dense<0xFF800000>
// CHECK: %[[X:.*]] = math.exp2
// CHECK: %[[END:.*]] = tile.dim "M"
// CHECK: %[[LAST:.*]] = arith.addi %[[COL]], %c32 : index
// CHECK: %[[EXCESS:.*]] = arith.subi %[[LAST]], %[[END]] : index
// CHECK: %[[HOLDS:.*]] = arith.cmpi sle, %[[EXCESS]], %c0 : index
// CHECK: %[[S:.*]] = scf.if %[[HOLDS]] -> (tensor<64x32xf32, #hop.layout<accumulator>>) {
// CHECK-NEXT: scf.yield %[[X]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[COLS:.*]] = tile.iota %[[COL]] axis 1
// CHECK-NEXT: %[[ENDS:.*]] = tile.splat
// CHECK-NEXT: %[[IN:.*]] = arith.cmpi slt, %[[COLS]], %[[ENDS]]
// CHECK-NEXT: %[[MASKED:.*]] = arith.select %[[IN]], %[[X]], %[[FILL]]
// CHECK-NEXT: scf.yield %[[MASKED]]
// CHECK: tile.store %[[S]]
hop.kernel @tail attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 32], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 32], f32>, %col: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %f = arith.constant 1.0 : f32
    %ones = tile.splat %f : f32 -> !acc
    %x = math.exp2 %ones : !acc
    %minus_inf = arith.constant dense<0xFF800000> : !acc
    %end = tile.dim "M"
    %end_i32 = arith.index_cast %end : index to i32
    %cols = tile.iota %col axis 1 : !ints
    %ends = tile.splat %end_i32 : i32 -> !ints
    %in = arith.cmpi slt, %cols, %ends : !ints
    %s = arith.select %in, %x, %minus_inf : !bits, !acc
    tile.store %s, %y[%col, %c0] : !acc, !tile.view<[M, 32], f32>
  }
}

// Of a condition that combines several each is jumped over for itself; what depends on data stays.
// CHECK-LABEL: hop.kernel @window
// CHECK-NEXT: ^bb0(%{{.*}}: !tile.view<[M, 32], f32>, %[[COL:.*]]: index):
// CHECK: hop.role
// CHECK-NEXT: ^bb0(%[[WG:.*]]: index):
// CHECK: %[[ROW:.*]] = arith.muli %[[WG]], %[[COL]] : index
// CHECK: %[[DATA:.*]] = arith.cmpf
// CHECK: %[[KEPT:.*]] = arith.select %[[DATA]], %{{.*}}, %[[FILL:.*]] :
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %c63, %[[COL]] : index
// CHECK-NEXT: %[[BEFORE:.*]] = arith.addi %[[LEFT]], %[[ROW]] : index
// CHECK-NEXT: %[[STARTED:.*]] = arith.cmpi sle, %[[BEFORE]], %c0 : index
// CHECK-NEXT: %[[FIRST:.*]] = scf.if %[[STARTED]]
// CHECK-NEXT: scf.yield %[[KEPT]]
// CHECK: arith.cmpi sge
// CHECK-NEXT: arith.select %{{.*}}, %[[KEPT]], %[[FILL]]
// CHECK: %[[RIGHT:.*]] = arith.addi %[[COL]], %c31 : index
// CHECK-NEXT: %[[AFTER:.*]] = arith.subi %[[RIGHT]], %[[ROW]] : index
// CHECK-NEXT: %[[ENDED:.*]] = arith.cmpi sle, %[[AFTER]], %c0 : index
// CHECK-NEXT: scf.if %[[ENDED]]
// CHECK-NEXT: scf.yield %[[FIRST]]
// CHECK: arith.cmpi sle
// CHECK-NEXT: arith.select %{{.*}}, %[[FIRST]], %[[FILL]]
hop.kernel @window attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 32], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 32], f32>, %col: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %minus_inf = arith.constant dense<0xFF800000> : !acc
    %f = arith.constant 1.0 : f32
    %x = tile.splat %f : f32 -> !acc
    %e = math.exp2 %x : !acc
    %row = arith.muli %wg, %col : index
    %cols = tile.iota %col axis 1 : !ints
    %rows = tile.iota %row axis 0 : !ints
    %not_before = arith.cmpi sge, %cols, %rows : !ints
    %not_after = arith.cmpi sle, %cols, %rows : !ints
    %positive = arith.cmpf ogt, %e, %x : !acc
    %inside = arith.andi %not_before, %not_after : !bits
    %in = arith.andi %positive, %inside : !bits
    // expected-remark@+1 {{mask applied to every tile: it holds values that are not comparisons of integers}}
    %s = arith.select %in, %e, %minus_inf : !bits, !acc
    tile.store %s, %y[%col, %c0] : !acc, !tile.view<[M, 32], f32>
  }
}

// The fill may be the true arm: then it is left out where every condition of a disjunction is false.
// CHECK-LABEL: hop.kernel @outside
// CHECK-NEXT: ^bb0(%{{.*}}: !tile.view<[M, 32], f32>, %[[COL:.*]]: index):
// CHECK: hop.role
// CHECK-NEXT: ^bb0(%[[WG:.*]]: index):
// CHECK: %[[LAST:.*]] = arith.addi %[[COL]], %c32 : index
// CHECK: %[[EXCESS:.*]] = arith.subi %[[LAST]], %[[WG]] : index
// CHECK: %[[BELOW:.*]] = arith.cmpi sle, %[[EXCESS]], %c0 : index
// CHECK: scf.if %[[BELOW]]
// CHECK: arith.cmpi sge
// CHECK: arith.select %{{.*}}, %[[FILL:.*]], %{{.*}} :
// CHECK: %[[SHORT:.*]] = arith.subi %c7, %[[COL]] : index
// CHECK: %[[ABOVE:.*]] = arith.cmpi sle, %[[SHORT]], %c0 : index
// CHECK: scf.if %[[ABOVE]]
// CHECK: arith.cmpi slt
// CHECK: arith.select %{{.*}}, %[[FILL]], %{{.*}} :
hop.kernel @outside attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 32], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 32], f32>, %col: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zeros = arith.constant dense<0.0> : !acc
    %f = arith.constant 1.0 : f32
    %x = tile.splat %f : f32 -> !acc
    %e = math.exp2 %x : !acc
    %cols = tile.iota %col axis 1 : !ints
    %rows = tile.iota %wg axis 0 : !ints
    %past = arith.cmpi sge, %cols, %rows : !ints
    %m = arith.constant dense<7> : !ints
    %before = arith.cmpi slt, %cols, %m : !ints
    %out = arith.ori %past, %before : !bits
    %s = arith.select %out, %zeros, %e : !bits, !acc
    tile.store %s, %y[%col, %c0] : !acc, !tile.view<[M, 32], f32>
  }
}

// Loops keep their masks, and so does what has no arm to fall back to, or is an equality that cannot be analysed.
// CHECK-LABEL: hop.kernel @kept
// CHECK-NOT: scf.if
// CHECK-COUNT-3: arith.select
// CHECK-NOT: scf.if
hop.kernel @kept attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 32], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 32], f32>, %col: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %minus_inf = arith.constant dense<0xFF800000> : !acc
    %f = arith.constant 1.0 : f32
    %x = tile.splat %f : f32 -> !acc
    %e = math.exp2 %x : !acc
    %g = math.exp2 %e : !acc
    %rows = tile.iota %wg axis 0 : !ints
    scf.for %j = %c0 to %col step %c1 {
      %cols = tile.iota %j axis 1 : !ints
      %in = arith.cmpi sle, %cols, %rows : !ints
      %s = arith.select %in, %e, %minus_inf : !bits, !acc
      tile.store %s, %y[%j, %c0] : !acc, !tile.view<[M, 32], f32>
    }
    %cols = tile.iota %col axis 1 : !ints
    %in = arith.cmpi sle, %cols, %rows : !ints
    %t = arith.select %in, %e, %g : !bits, !acc
    tile.store %t, %y[%col, %c0] : !acc, !tile.view<[M, 32], f32>
    %on = arith.cmpi eq, %cols, %rows : !ints
    %squares = arith.muli %cols, %cols : !ints
    %near = arith.cmpi slt, %squares, %rows : !ints
    %either = arith.xori %on, %near : !bits
    // expected-remark@+1 {{mask applied to every tile: it combines comparisons by an exclusive or}}
    %u = arith.select %either, %e, %minus_inf : !bits, !acc
    tile.store %u, %y[%col, %c1] : !acc, !tile.view<[M, 32], f32>
  }
}

// The numbers that a condition compares, of a loop or a product, are not computed again beside it.
// CHECK-LABEL: hop.kernel @numbers
// CHECK: %[[LOOP:.*]]:2 = scf.for
// CHECK: scf.if
// CHECK: } else {
// CHECK-NOT: scf.for
// CHECK: %[[IN:.*]] = arith.cmpi slt
// CHECK-NOT: scf.for
// CHECK: %[[OVER:.*]] = arith.cmpf ogt, %[[LOOP]]#1
// CHECK: %[[EITHER:.*]] = arith.ori %[[IN]], %[[OVER]]
// CHECK: arith.select %[[EITHER]], %[[LOOP]]#0
hop.kernel @numbers attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 32], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 32], f32>, %col: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %f = arith.constant 1.0 : f32
    %ones = tile.splat %f : f32 -> !acc
    %minus_inf = arith.constant dense<0xFF800000> : !acc
    %end = tile.dim "M"
    %end_i32 = arith.index_cast %end : index to i32
    %x:2 = scf.for %i = %c0 to %end step %c1 iter_args(%a = %ones, %b = %minus_inf) -> (!acc, !acc) {
      %a_next = math.exp2 %b : !acc
      %b_next = arith.addf %a, %ones : !acc
      scf.yield %a_next, %b_next : !acc, !acc
    }
    %cols = tile.iota %col axis 1 : !ints
    %ends = tile.splat %end_i32 : i32 -> !ints
    %in = arith.cmpi slt, %cols, %ends : !ints
    %over = arith.cmpf ogt, %x#1, %ones : !acc
    %either = arith.ori %in, %over : !bits
    %s = arith.select %either, %x#0, %minus_inf : !bits, !acc
    tile.store %s, %y[%col, %c0] : !acc, !tile.view<[M, 32], f32>
  }
}

// Where a scalar says that no element needs the mask, what is compared is jumped over; its load begins before.
// CHECK-LABEL: hop.kernel @loaded
// CHECK: ^bb0(%{{.*}}: !tile.view<[M, 32], f32>, %[[IDS:.*]]: !tile.view<[B, M], i32>, %[[COL:.*]]: index):
// CHECK: %[[X:.*]] = math.exp2
// CHECK: %[[OWN:.*]] = tile.load %[[IDS]][%{{.*}}, %[[COL]]]
// CHECK: %[[S:.*]] = scf.if %{{.*}} -> (tensor<64x32xf32, #hop.layout<accumulator>>) {
// CHECK-NEXT: scf.yield %[[X]]
// CHECK-NEXT: } else {
// CHECK-NOT: tile.load
// CHECK: tile.broadcast %[[OWN]] axis 0
// CHECK: arith.cmpi eq
// CHECK: tile.store %[[S]]
!columns = tensor<32xi32, #hop.layout<column>>
hop.kernel @loaded attributes {argument_names = ["y", "ids"], argument_types = [!tile.view<[M, 32], f32>, !tile.view<[B, M], i32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 32], f32>, %ids: !tile.view<[B, M], i32>, %col: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %f = arith.constant 1.0 : f32
    %ones = tile.splat %f : f32 -> !acc
    %x = math.exp2 %ones : !acc
    %minus_inf = arith.constant dense<0xFF800000> : !acc
    %end = tile.dim "M"
    %is_whole = arith.cmpi sge, %col, %end : index
    %whole = tile.splat %is_whole : i1 -> !bits
    %own = tile.load %ids[%c0, %col] : !tile.view<[B, M], i32> -> !columns
    %all = tile.broadcast %own axis 0 : !columns -> !ints
    %cols = tile.iota %col axis 1 : !ints
    %same = arith.cmpi eq, %cols, %all : !ints
    %seen = arith.ori %whole, %same : !bits
    %s = arith.select %seen, %x, %minus_inf : !bits, !acc
    tile.store %s, %y[%col, %c0] : !acc, !tile.view<[M, 32], f32>
  }
}

// Of a mask in two parts, each jumped over by itself, the one that loads loads where it is needed.
// CHECK-LABEL: hop.kernel @parts
// CHECK: ^bb0(%{{.*}}: !tile.view<[M, 32], f32>, %[[IDS:.*]]: !tile.view<[B, M], i32>, %[[COL:.*]]: index):
// CHECK: %[[X:.*]] = math.exp2
// CHECK-NOT: tile.load
// CHECK: scf.if
// CHECK: scf.if
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK: %[[OWN:.*]] = tile.load %[[IDS]][%{{.*}}, %[[COL]]]
// CHECK: tile.broadcast %[[OWN]] axis 0
// CHECK: arith.cmpi eq
hop.kernel @parts attributes {argument_names = ["y", "ids"], argument_types = [!tile.view<[M, 32], f32>, !tile.view<[B, M], i32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 32], f32>, %ids: !tile.view<[B, M], i32>, %col: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c9 = arith.constant 9 : index
    %f = arith.constant 1.0 : f32
    %ones = tile.splat %f : f32 -> !acc
    %x = math.exp2 %ones : !acc
    %minus_inf = arith.constant dense<0xFF800000> : !acc
    %end = tile.dim "M"
    %is_whole = arith.cmpi sge, %col, %end : index
    %is_placed = arith.cmpi sge, %col, %c9 : index
    %whole = tile.splat %is_whole : i1 -> !bits
    %placed = tile.splat %is_placed : i1 -> !bits
    %own = tile.load %ids[%c0, %col] : !tile.view<[B, M], i32> -> !columns
    %all = tile.broadcast %own axis 0 : !columns -> !ints
    %cols = tile.iota %col axis 1 : !ints
    %rows = tile.iota %c0 axis 0 : !ints
    %same = arith.cmpi eq, %cols, %all : !ints
    %before = arith.cmpi sle, %cols, %rows : !ints
    %by_place = arith.ori %whole, %before : !bits
    %by_data = arith.ori %placed, %same : !bits
    %seen = arith.andi %by_place, %by_data : !bits
    %s = arith.select %seen, %x, %minus_inf : !bits, !acc
    tile.store %s, %y[%col, %c0] : !acc, !tile.view<[M, 32], f32>
  }
}

// A comparison with what is loaded is jumped over where a scalar says so; behind the branch the scalar is known.
// CHECK-LABEL: hop.kernel @by_scalar
// CHECK: %[[X:.*]] = math.exp2
// CHECK: %[[HOLDS:.*]] = arith.cmpi sle
// CHECK: %[[S:.*]] = scf.if %[[HOLDS]] -> (tensor<64x32xf32, #hop.layout<accumulator>>) {
// CHECK-NEXT: scf.yield %[[X]]
// CHECK-NEXT: } else {
// CHECK-NOT: arith.ori
// CHECK: %[[BEHIND:.*]] = arith.cmpi sge
// CHECK-NEXT: %[[MASKED:.*]] = arith.select %[[BEHIND]], %[[X]]
// CHECK-NEXT: scf.yield %[[MASKED]]
// CHECK: tile.store %[[S]]
hop.kernel @by_scalar attributes {argument_names = ["y", "starts"], argument_types = [!tile.view<[M, 32], f32>, !tile.view<[M], i32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 32], f32>, %starts: !tile.view<[M], i32>, %col: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %f = arith.constant 1.0 : f32
    %ones = tile.splat %f : f32 -> !acc
    %x = math.exp2 %ones : !acc
    %minus_inf = arith.constant dense<0xFF800000> : !acc
    %own = tile.load %starts[%col] : !tile.view<[M], i32> -> tensor<64xi32, #hop.layout<row>>
    %largest = tile.load %starts[%wg] : !tile.view<[M], i32> -> i32
    %bound = arith.index_cast %largest : i32 to index
    %excess = arith.subi %bound, %col : index
    %holds = arith.cmpi sle, %excess, %c0 : index
    %all = tile.splat %holds : i1 -> !bits
    %start = tile.broadcast %own axis 1 : tensor<64xi32, #hop.layout<row>> -> !ints
    %cols = tile.iota %col axis 1 : !ints
    %behind = arith.cmpi sge, %cols, %start : !ints
    %seen = arith.ori %all, %behind : !bits
    %s = arith.select %seen, %x, %minus_inf : !bits, !acc
    tile.store %s, %y[%col, %c0] : !acc, !tile.view<[M, 32], f32>
  }
}

// A scalar says which of two masks holds: each is computed behind a branch. With another scalar for the second one both are.
// CHECK-LABEL: hop.kernel @either
// CHECK: %[[WHOLE:.*]] = arith.cmpi sle, %[[COL:.*]], %[[END:.*]] : index
// CHECK: scf.if
// CHECK: } else {
// CHECK-NEXT: %[[S:.*]] = scf.if %[[WHOLE]]
// CHECK-NOT: arith.cmpi sge
// CHECK: %[[FIRST:.*]] = arith.cmpi slt
// CHECK-NEXT: %[[A:.*]] = arith.select %[[FIRST]]
// CHECK-NEXT: scf.yield %[[A]]
// CHECK-NEXT: } else {
// CHECK-NOT: arith.cmpi slt
// CHECK: %[[SECOND:.*]] = arith.cmpi sge
// CHECK-NEXT: %[[B:.*]] = arith.select %[[SECOND]]
// CHECK-NEXT: scf.yield %[[B]]
// CHECK: scf.yield %[[S]]
// CHECK: scf.if
// CHECK: } else {
// CHECK-NOT: scf.if
// CHECK: arith.ori
hop.kernel @either attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 32], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 32], f32>, %col: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %f = arith.constant 1.0 : f32
    %ones = tile.splat %f : f32 -> !acc
    %x = math.exp2 %ones : !acc
    %minus_inf = arith.constant dense<0xFF800000> : !acc
    %end = tile.dim "M"
    %end_i32 = arith.index_cast %end : index to i32
    %cols = tile.iota %col axis 1 : !ints
    %ends = tile.splat %end_i32 : i32 -> !ints
    %is_whole = arith.cmpi sle, %col, %end : index
    %is_other = arith.cmpi sgt, %col, %end : index
    %is_first = arith.cmpi sgt, %col, %c0 : index
    %whole = tile.splat %is_whole : i1 -> !bits
    %other = tile.splat %is_other : i1 -> !bits
    %first = tile.splat %is_first : i1 -> !bits
    %before = arith.cmpi slt, %cols, %ends : !ints
    %behind = arith.cmpi sge, %cols, %ends : !ints
    %a = arith.andi %whole, %before : !bits
    %b = arith.andi %behind, %other : !bits
    %c = arith.andi %behind, %first : !bits
    %in = arith.ori %a, %b : !bits
    %s = arith.select %in, %x, %minus_inf : !bits, !acc
    tile.store %s, %y[%col, %c0] : !acc, !tile.view<[M, 32], f32>
    %in_both = arith.ori %a, %c : !bits
    %t = arith.select %in_both, %x, %minus_inf : !bits, !acc
    tile.store %t, %y[%c0, %c0] : !acc, !tile.view<[M, 32], f32>
  }
}
