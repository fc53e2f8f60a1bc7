// Bounds by what rows load are found by a role of its own, which hands them to all others through a pipe: one of 64 bits in
// halves. Both programs of a speculation find theirs. Without a producer each role finds its own.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s
// RUN: sed -e 's/producer = operands/producer = none/' -e 's/consumer_registers = 232/consumer_registers = 240/' %s | \
// RUN:   tessera-opt --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s --check-prefix=ALONE
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize)' -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAYS
// SAYS: remark: is found by a role of its own for all others, which get it as 'bounds', in 6 slots of 32 bits

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = true, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 32, consumer_registers = 232, placement = rows, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Sums = !tile.view<[M, 64], f32>
!Tile = tensor<128x64xbf16>
!Acc  = tensor<128x64xf32>
tile.kernel @k(%x: !View, %y: !Sums, %starts: !tile.view<[M], i32>, %ends: !tile.view<[M], i64>) grid(%m = M ceildiv 128) schedule #s {
  tile.speculate {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant dense<0.0> : !Acc
    %row = arith.muli %m, %c128 : index
    %least = tile.reduce_range min %i to 128 -> i32 {
      %at = arith.addi %row, %i : index
      %start = tile.load %starts[%at] : !tile.view<[M], i32> -> i32
      tile.yield %start : i32
    }
    %first = arith.index_cast %least : i32 to index
    %most = tile.reduce_range max %i to 128 -> i64 {
      %at = arith.addi %row, %i : index
      %end = tile.load %ends[%at] : !tile.view<[M], i64> -> i64
      tile.yield %end : i64
    }
    %past = arith.index_cast %most : i64 to index
    %a = tile.load %x[%row, %c0] : !View -> !Tile
    %r = scf.for %j = %first to %past step %c1 iter_args(%acc = %zero) -> !Acc {
      %col = arith.muli %j, %c64 : index
      %b = tile.load %x[%col, %c0] : !View -> tensor<64x64xbf16>
      %s = tile.dot %a, %b, %acc : !Tile, tensor<64x64xbf16> -> !Acc
      scf.yield %s : !Acc
    }
    %fits = arith.cmpf ole, %r, %zero : !Acc
    tile.store %r, %y[%row, %c0] : !Acc, !Sums
    tile.yield_if %fits : tensor<128x64xi1>
  } exact {
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %row = arith.muli %m, %c128 : index
    %zero = arith.constant dense<0.0> : !Acc
    tile.store %zero, %y[%row, %c0] : !Acc, !Sums
    tile.yield
  }
}

// CHECK: %[[BOUNDS:.*]] = hop.pipe.create "bounds" : !hop.pipe<tensor<1xi32>, 6>
// CHECK: hop.role @producer elected registers(32)
// CHECK: hop.attempt
// CHECK-DAG: %[[LEAST:.*]] = hop.pipe.get %[[BOUNDS]]
// CHECK-DAG: arith.index_cast %[[LEAST]] : i32 to index
// CHECK: %[[LOW32:.*]] = hop.pipe.get %[[BOUNDS]]
// CHECK: %[[LOW:.*]] = arith.extui %[[LOW32]] : i32 to i64
// CHECK: %[[HIGH32:.*]] = hop.pipe.get %[[BOUNDS]]
// CHECK: %[[HIGH:.*]] = arith.extui %[[HIGH32]] : i32 to i64
// CHECK: %[[UP:.*]] = arith.shli %[[HIGH]], %c32_i64
// CHECK: %[[MOST:.*]] = arith.ori %[[LOW]], %[[UP]]
// CHECK: arith.index_cast %[[MOST]] : i64 to index
// CHECK: hop.pipe.load
// CHECK: scf.for
// CHECK-NOT: tile.reduce_range
// CHECK: hop.role @finder elected registers(32)
// CHECK: %[[FOUND:.*]] = tile.reduce_range min
// CHECK: %[[WIDE:.*]] = tile.reduce_range max
// CHECK: hop.pipe.put %[[BOUNDS]], %[[FOUND]]
// CHECK: %[[UPPER:.*]] = arith.shrui %[[WIDE]], %c32_i64
// CHECK: %[[FIRST_HALF:.*]] = arith.trunci %[[WIDE]] : i64 to i32
// CHECK: hop.pipe.put %[[BOUNDS]], %[[FIRST_HALF]]
// CHECK: %[[OTHER_HALF:.*]] = arith.trunci %[[UPPER]] : i64 to i32
// CHECK: hop.pipe.put %[[BOUNDS]], %[[OTHER_HALF]]
// CHECK-NOT: scf.for
// CHECK: hop.role @consumer warpgroups(2) registers(232)
// CHECK-COUNT-3: hop.pipe.get %[[BOUNDS]]
// CHECK-NOT: tile.reduce_range

// ALONE-NOT: hop.pipe.create "bounds"
// ALONE: hop.role @consumer
// ALONE: tile.reduce_range min
// ALONE: tile.reduce_range max
