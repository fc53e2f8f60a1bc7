// A mark before each stage; a stage that equals another has its number; one is entered once.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-instrument-timeline{blocks=2 first=7 events=16}))' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-instrument-timeline))' | FileCheck %s --check-prefix=DEFAULTS

#acc = #hop.layout<accumulator>
!Tile = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Acc = tensor<64x64xf32, #acc>
!Flight = !hop.flight<!Acc>

// DEFAULTS: hop.timeline blocks 4 from 0 events 1024 stages

// CHECK: hop.timeline blocks 2 from 7 events 16 stages
// CHECK-SAME: [#hop.stage<wait, "k.empty", file = "k.tile", line = 1, column = 7>,
// CHECK-SAME:  #hop.stage<load, "k", file = "k.tile", line = 2, column = 7>,
// CHECK-SAME:  #hop.stage<turn, "turn", file = "k.tile", line = 3, column = 7>,
// CHECK-SAME:  #hop.stage<wait, "k.full", file = "k.tile", line = 4, column = 7>,
// CHECK-SAME:  #hop.stage<issue, "k x k", file = "k.tile", line = 5, column = 7>,
// CHECK-SAME:  #hop.stage<issue, "registers x k", file = "k.tile", line = 6, column = 7>,
// CHECK-SAME:  #hop.stage<finish, "k x k", file = "k.tile", line = 5, column = 7, products = 4>,
// CHECK-SAME:  #hop.stage<compute, "exp2, addf", file = "k.tile", line = 8, column = 7>,
// CHECK-SAME:  #hop.stage<finish, "registers x k", file = "k.tile", line = 6, column = 7, products = 5>,
// CHECK-SAME:  #hop.stage<store, "y", file = "k.tile", line = 9, column = 7>]
hop.kernel @stages attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[M, 64], f32>, %m: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : !Acc
  %a = arith.constant dense<0.0> : tensor<64x64xbf16, #acc>
  %k = hop.buffer "k" : !hop.buffer<tensor<64x64xbf16>, 2>
  %full = hop.barriers "k.full" count 1 : !hop.barriers<2>
  %empty = hop.barriers "k.empty" count 1 : !hop.barriers<2>
  // CHECK: hop.role @producer
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK: scf.for %[[J:[^ ]*]] =
    scf.for %j = %c0 to %m step %c1 {
      // CHECK-NEXT: hop.mark 0 at %[[J]] : index
      // CHECK-NEXT: hop.barrier.wait
      hop.barrier.wait %empty[%i0], %i0 : !hop.barriers<2> loc("k.tile":1:7)
      %slot = hop.slot %k[%i0] : !hop.buffer<tensor<64x64xbf16>, 2> -> !Tile
      // CHECK: hop.mark 1 at %[[J]] : index
      hop.bulk_load %x[%j, %c0], %slot, %full[%i0] : !tile.view<[M, 64], bf16>, !Tile, !hop.barriers<2> loc("k.tile":2:7)
      // CHECK-NEXT: hop.bulk_load
    }
    // CHECK: scf.while
    // CHECK: do
    // CHECK: ^bb0
    // CHECK-NEXT: hop.mark 0{{$}}
    %flag = arith.constant true
    scf.while (%again = %flag, %n = %i0) : (i1, i32) -> (i1, i32) {
      scf.condition(%again) %again, %n : i1, i32
    } do {
    ^bb0(%again: i1, %n: i32):
      hop.barrier.wait %empty[%i0], %i0 : !hop.barriers<2> loc("k.tile":1:7)
      scf.yield %again, %n : i1, i32
    }
  }
  // CHECK: hop.role @consumer
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    // CHECK: scf.for %[[J:[^ ]*]] =
    %sum = scf.for %j = %c0 to %m step %c1 iter_args(%acc = %zero) -> (!Acc) {
      // CHECK-NEXT: hop.mark 2 at %[[J]]
      // CHECK-NEXT: hop.turn.wait
      hop.turn.wait %wg loc("k.tile":3:7)
      // Addresses belong to the stage before them.
      // CHECK-NEXT: arith.muli
      %row = arith.muli %j, %c1 : index
      // CHECK-NEXT: hop.mark 3 at %[[J]]
      hop.barrier.wait %full[%i0], %i0 : !hop.barriers<2> loc("k.tile":4:7)
      // CHECK: hop.slot
      %slot = hop.slot %k[%i0] : !hop.buffer<tensor<64x64xbf16>, 2> -> !Tile
      // CHECK-NEXT: hop.mark 4 at %[[J]]
      %f = hop.mma_issue %slot, %slot : !Tile, !Tile -> !Flight loc("k.tile":5:7)
      // CHECK-NEXT: %[[F:[^ ]*]] = hop.mma_issue
      // CHECK-NEXT: hop.mark 5 at %[[J]]
      %g = hop.mma_issue %a, %slot acc(%acc : !Acc) : tensor<64x64xbf16, #acc>, !Tile -> !Flight loc("k.tile":6:7)
      // CHECK-NEXT: hop.mma_issue
      // CHECK-NEXT: hop.turn.pass
      hop.turn.pass %wg
      // CHECK-NEXT: hop.mark 6 at %[[J]]
      // CHECK-NEXT: hop.mma_wait %[[F]]
      %s = hop.mma_wait %f pending 1 : !Flight -> !Acc loc("k.tile":7:7)
      // CHECK-NEXT: hop.mark 7 at %[[J]]
      // CHECK-NEXT: math.exp2
      %e = math.exp2 %s : !Acc loc("k.tile":8:7)
      // CHECK-NEXT: arith.addf
      %d = arith.addf %e, %e : !Acc
      // CHECK-NEXT: hop.mark 8 at %[[J]]
      // CHECK-NEXT: hop.mma_wait
      %o = hop.mma_wait %g pending 0 : !Flight -> !Acc
      // CHECK-NEXT: scf.yield
      scf.yield %o : !Acc
    }
    // CHECK: hop.mark 9{{$}}
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: tile.store
    // CHECK-NOT: hop.mark
    tile.store %sum, %y[%m, %c0] : !Acc, !tile.view<[M, 64], f32> loc("k.tile":9:7)
    tile.store %sum, %y[%c0, %c0] : !Acc, !tile.view<[M, 64], f32> loc("k.tile":9:7)
  }
}

// What finds a bound is a stage, with the load in it.
// CHECK-LABEL: hop.kernel @bounds
// CHECK: [#hop.stage<load, "starts", file = "k.tile", line = 1, column = 7>]
// CHECK: hop.role @producer
// CHECK: hop.mark 0
// CHECK-NEXT: tile.reduce_range
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.yield
hop.kernel @bounds attributes {argument_names = ["starts"], argument_types = [!tile.view<[M], i32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%starts: !tile.view<[M], i32>, %m: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
    %least = tile.reduce_range min %i to 64 -> i32 {
      %start = tile.load %starts[%i] : !tile.view<[M], i32> -> i32
      tile.yield %start : i32
    } loc("k.tile":1:7)
  }
}

// So are places that lanes find.
// CHECK-LABEL: hop.kernel @lanes
// CHECK: [#hop.stage<load, "table", file = "k.tile", line = 1, column = 7>]
// CHECK: hop.role @producer
// CHECK: hop.mark 0
// CHECK-NEXT: hop.in_lanes
// CHECK-NOT: hop.mark
hop.kernel @lanes attributes {argument_names = ["table"], argument_types = [!tile.view<[M], i32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%table: !tile.view<[M], i32>, %m: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
    %found = hop.in_lanes {
    ^bb0(%i: index):
      %entry = tile.load %table[%i] : !tile.view<[M], i32> -> i32
      %place = arith.index_cast %entry : i32 to index
      hop.yield %place : index
    } : vector<8xindex> loc("k.tile":1:7)
  }
}

// What one lane does begins with a wait, before which a mark may stand.
// CHECK-LABEL: hop.kernel @one_lane
// CHECK: hop.one_lane {
// CHECK-NEXT: hop.mark {{[0-9]+}}
// CHECK-NEXT: hop.barrier.wait
hop.kernel @one_lane attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %zero = arith.constant 0 : i32
  %empty = hop.barriers "x.empty" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %found = hop.in_lanes {
    ^bb0(%i: index):
      hop.yield %i : index
    } : vector<8xindex>
    hop.one_lane {
      hop.barrier.wait %empty[%zero], %zero : !hop.barriers<1>
    }
  }
}
