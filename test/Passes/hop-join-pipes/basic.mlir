// Pipes of small tiles that are in step with a pipe of large ones, and pipes that are not.
//
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-join-pipes))' | FileCheck %s
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-join-pipes))' 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-join-pipes,hop-insert-mbarriers))' | FileCheck %s --check-prefix=PLACES

!Tiles = !hop.pipe<tensor<64x64xbf16>, 2>
!Rows = !hop.pipe<tensor<64xf32>, 2>
!More = !hop.pipe<tensor<64x64xbf16>, 3>
!Others = !hop.pipe<tensor<64xf32>, 3>
!Tile = !hop.shared<tensor<64x64xbf16>, rows = 64>
!Row = !hop.shared<tensor<64xf32>, rows = 64>

// The load of the rows goes behind that of the tile, past that of a third pipe.
// REMARK: remark: pipe 'r' goes with 'x': one barrier is told of both tiles
// CHECK-LABEL: hop.kernel @joined
// CHECK: %[[P:.*]] = hop.pipe.create "x"
// CHECK: %[[V:.*]] = hop.pipe.create "r" with %[[P]]
// CHECK: hop.pipe.load %[[P]]
// CHECK-NEXT: hop.pipe.load %[[V]]
// CHECK-NEXT: hop.pipe.load
// One barrier expects the bytes of both, one wait and one release, of each thread that reads rows, stand for both.
// PLACES-LABEL: hop.kernel @joined
// PLACES: %[[FULL:.*]] = hop.barriers "x.full" count 1
// PLACES: %[[EMPTY:.*]] = hop.barriers "x.empty" count 128
// PLACES: %[[ROWS:.*]] = hop.buffer "r"
// PLACES-NOT: "r.full"
// PLACES: hop.barrier.wait %[[EMPTY]][%[[I:.*]]],
// PLACES: hop.barrier.expect %[[FULL]][%[[I]]] bytes 8448
// PLACES: hop.bulk_load {{.*}}, %[[FULL]][%[[I]]]
// PLACES: %[[SLOT:.*]] = hop.slot %[[ROWS]][%[[I]]]
// PLACES-NEXT: hop.bulk_load {{.*}}, %[[SLOT]], %[[FULL]][%[[I]]]
// PLACES: hop.role @consumer
// PLACES: hop.barrier.wait %[[FULL]][%[[J:.*]]],
// PLACES: hop.slot %[[ROWS]][%[[J]]]
// PLACES: hop.barrier.arrive %[[EMPTY]][%[[J]]] all
hop.kernel @joined attributes {argument_names = ["x", "r"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[B, M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>, tessera.small_tile = 1363 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %r: !tile.view<[B, M], f32>, %m: index):
  %p = hop.pipe.create "x" : !Tiles
  %o = hop.pipe.create "o" : !Tiles
  %v = hop.pipe.create "r" : !Rows
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      hop.pipe.load %p, %x[%i, %c0] : !Tiles, !tile.view<[M, 64], bf16>
      hop.pipe.load %o, %x[%i, %c0] : !Tiles, !tile.view<[M, 64], bf16>
      hop.pipe.load %v, %r[%c0, %i] : !Rows, !tile.view<[B, M], f32>
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %t = hop.pipe.wait %p : !Tiles -> !Tile
      %s = hop.pipe.wait %o : !Tiles -> !Tile
      %u = hop.pipe.wait %v : !Rows -> !Row
      %f = hop.fetch %u : !Row -> tensor<64xf32, #hop.layout<column>>
      hop.pipe.release %v, %u : !Rows, !Row
      hop.pipe.release %o, %s : !Tiles, !Tile
      hop.pipe.release %p, %t : !Tiles, !Tile
    }
  }
}

// FRAME
hop.kernel @NAME attributes {argument_names = ["x", "r"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[B, M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>, tessera.small_tile = 1363 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %r: !tile.view<[B, M], f32>, %m: index):
  // HERE
}

// CASE first
// Where the rows come first, the load and the wait of the tile move up to theirs.
// REMARK: remark: pipe 'r' goes with 'x': one barrier is told of both tiles
// CHECK-LABEL: hop.kernel @first
// CHECK: %[[P:.*]] = hop.pipe.create "x"
// CHECK: %[[V:.*]] = hop.pipe.create "r" with %[[P]]
// CHECK: hop.pipe.load %[[P]]
// CHECK-NEXT: hop.pipe.load %[[V]]
// CHECK: hop.pipe.wait %[[P]]
// CHECK-NEXT: hop.pipe.wait %[[V]]
  %v = hop.pipe.create "r" : !Rows
  %p = hop.pipe.create "x" : !Tiles
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      hop.pipe.load %v, %r[%c0, %i] : !Rows, !tile.view<[B, M], f32>
      hop.pipe.load %p, %x[%i, %c0] : !Tiles, !tile.view<[M, 64], bf16>
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %u = hop.pipe.wait %v : !Rows -> !Row
      %f = hop.fetch %u : !Row -> tensor<64xf32, #hop.layout<column>>
      hop.pipe.release %v, %u : !Rows, !Row
      %t = hop.pipe.wait %p : !Tiles -> !Tile
      hop.pipe.release %p, %t : !Tiles, !Tile
    }
  }

// CASE third
// A third pipe stands between: the producer would wait for its slot in another order.
// CHECK-LABEL: hop.kernel @third
// CHECK-NOT: with
  %v = hop.pipe.create "r" : !Rows
  %o = hop.pipe.create "o" : !More
  %p = hop.pipe.create "x" : !Tiles
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      hop.pipe.load %v, %r[%c0, %i] : !Rows, !tile.view<[B, M], f32>
      hop.pipe.load %o, %x[%i, %c0] : !More, !tile.view<[M, 64], bf16>
      hop.pipe.load %p, %x[%i, %c0] : !Tiles, !tile.view<[M, 64], bf16>
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %u = hop.pipe.wait %v : !Rows -> !Row
      %f = hop.fetch %u : !Row -> tensor<64xf32, #hop.layout<column>>
      hop.pipe.release %v, %u : !Rows, !Row
      %s = hop.pipe.wait %o : !More -> !Tile
      %t = hop.pipe.wait %p : !Tiles -> !Tile
      hop.pipe.release %o, %s : !More, !Tile
      hop.pipe.release %p, %t : !Tiles, !Tile
    }
  }

// CASE last
// The rows are given back last, and the tile would be with them.
// CHECK-LABEL: hop.kernel @last
// CHECK-NOT: with
  %p = hop.pipe.create "x" : !Tiles
  %v = hop.pipe.create "r" : !Rows
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      hop.pipe.load %p, %x[%i, %c0] : !Tiles, !tile.view<[M, 64], bf16>
      hop.pipe.load %v, %r[%c0, %i] : !Rows, !tile.view<[B, M], f32>
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %t = hop.pipe.wait %p : !Tiles -> !Tile
      %u = hop.pipe.wait %v : !Rows -> !Row
      %f = hop.fetch %u : !Row -> tensor<64xf32, #hop.layout<column>>
      hop.pipe.release %p, %t : !Tiles, !Tile
      hop.pipe.release %v, %u : !Rows, !Row
    }
  }

// CASE ahead
// Its next slot is read ahead.
// CHECK-LABEL: hop.kernel @ahead
// CHECK-NOT: with
  %p = hop.pipe.create "x" : !Tiles
  %v = hop.pipe.create "r" : !Rows
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      hop.pipe.load %p, %x[%i, %c0] : !Tiles, !tile.view<[M, 64], bf16>
      hop.pipe.load %v, %r[%c0, %i] : !Rows, !tile.view<[B, M], f32>
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %a = hop.pipe.peek %p : !Tiles -> !Tile
      %t = hop.pipe.wait %p : !Tiles -> !Tile
      %u = hop.pipe.wait %v : !Rows -> !Row
      %f = hop.fetch %u : !Row -> tensor<64xf32, #hop.layout<column>>
      hop.pipe.release %v, %u : !Rows, !Row
      hop.pipe.release %p, %t : !Tiles, !Tile
    }
  }

// CASE slots
// Other numbers of slots get out of step.
// CHECK-LABEL: hop.kernel @slots
// CHECK-NOT: with
  %p = hop.pipe.create "x" : !Tiles
  %v = hop.pipe.create "r" : !Others
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      hop.pipe.load %p, %x[%i, %c0] : !Tiles, !tile.view<[M, 64], bf16>
      hop.pipe.load %v, %r[%c0, %i] : !Others, !tile.view<[B, M], f32>
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %t = hop.pipe.wait %p : !Tiles -> !Tile
      %u = hop.pipe.wait %v : !Others -> !Row
      %f = hop.fetch %u : !Row -> tensor<64xf32, #hop.layout<column>>
      hop.pipe.release %v, %u : !Others, !Row
      hop.pipe.release %p, %t : !Tiles, !Tile
    }
  }

// END
// Who waits for the larger tile would wait for the bytes of the other one for longer than a wait takes.
// CHECK-LABEL: hop.kernel @between
// CHECK-NOT: with
hop.kernel @between attributes {argument_names = ["x", "r"], argument_types = [!tile.view<[M, 128], bf16>, !tile.view<[M, 16], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>, tessera.small_tile = 1363 : i64} {
^bb0(%x: !tile.view<[M, 128], bf16>, %r: !tile.view<[M, 16], bf16>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x128xbf16>, 2>
  %v = hop.pipe.create "r" : !hop.pipe<tensor<64x16xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      hop.pipe.load %p, %x[%i, %c0] : !hop.pipe<tensor<64x128xbf16>, 2>, !tile.view<[M, 128], bf16>
      hop.pipe.load %v, %r[%i, %c0] : !hop.pipe<tensor<64x16xbf16>, 2>, !tile.view<[M, 16], bf16>
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %t = hop.pipe.wait %p : !hop.pipe<tensor<64x128xbf16>, 2> -> !hop.shared<tensor<64x128xbf16>, rows = 64>
      %u = hop.pipe.wait %v : !hop.pipe<tensor<64x16xbf16>, 2> -> !hop.shared<tensor<64x16xbf16>, rows = 64>
      hop.pipe.release %v, %u : !hop.pipe<tensor<64x16xbf16>, 2>, !hop.shared<tensor<64x16xbf16>, rows = 64>
      hop.pipe.release %p, %t : !hop.pipe<tensor<64x128xbf16>, 2>, !hop.shared<tensor<64x128xbf16>, rows = 64>
    }
  }
}

// No small tile.
// CHECK-LABEL: hop.kernel @large
// CHECK-NOT: with
// CHECK-LABEL: end
hop.kernel @large attributes {argument_names = ["x", "r"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[B, M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>, tessera.small_tile = 1363 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %r: !tile.view<[B, M], f32>, %m: index):
  %p = hop.pipe.create "x" : !Tiles
  %o = hop.pipe.create "o" : !Tiles
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      hop.pipe.load %p, %x[%i, %c0] : !Tiles, !tile.view<[M, 64], bf16>
      hop.pipe.load %o, %x[%i, %c0] : !Tiles, !tile.view<[M, 64], bf16>
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %t = hop.pipe.wait %p : !Tiles -> !Tile
      %s = hop.pipe.wait %o : !Tiles -> !Tile
      hop.pipe.release %o, %s : !Tiles, !Tile
      hop.pipe.release %p, %t : !Tiles, !Tile
    }
  }
}

// FRAME
// HERE
^bb0(%x: !tile.view<[M, 64], bf16>, %r: !tile.view<[B, M], f32>, %m: index):
  %v = hop.pipe.create "r" : !Rows
  %p = hop.pipe.create "x" : !Tiles
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      hop.pipe.load %v, %r[%c0, %i] : !Rows, !tile.view<[B, M], f32>
      hop.pipe.load %p, %x[%i, %c0] : !Tiles, !tile.view<[M, 64], bf16>
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %m step %m {
      %u = hop.pipe.wait %v : !Rows -> !Row
      %f = hop.fetch %u : !Row -> tensor<64xf32, #hop.layout<column>>
      hop.pipe.release %v, %u : !Rows, !Row
      %t = hop.pipe.wait %p : !Tiles -> !Tile
      hop.pipe.release %p, %t : !Tiles, !Tile
    }
  }
}

// CASE less
// REMARK-NOT: remark
module @end {}

// The rows have 256 bytes. Which tiles are small is what the choice of the schedule says.
// CHECK-LABEL: hop.kernel @less
// CHECK-NOT: " with
hop.kernel @less attributes {argument_names = ["x", "r"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[B, M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>, tessera.small_tile = 255 : i64} {

// CASE unsaid
// CHECK-LABEL: hop.kernel @unsaid
// CHECK-NOT: " with
hop.kernel @unsaid attributes {argument_names = ["x", "r"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[B, M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
