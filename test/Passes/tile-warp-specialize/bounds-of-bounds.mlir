// A bound that only others are found from stays with the finder: here a search in two steps, whose second one takes the first one's number.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize)' -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAYS
// SAYS: :[[@LINE+18]]:15: remark: is found by a role of its own for all others, which get it as 'bounds', in 2 slots of 32 bits

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 32, consumer_registers = 232, placement = rows, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Sums = !tile.view<[M, 64], f32>
!Tile = tensor<128x64xbf16>
!Acc  = tensor<128x64xf32>
tile.kernel @k(%x: !View, %y: !Sums, %starts: !tile.view<[B], i32>) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %near_i32 = tile.reduce_range max %i to 32 -> i32 {
    %at = arith.muli %i, %c32 : index
    %start = tile.load %starts[%at] : !tile.view<[B], i32> -> i32
    tile.yield %start : i32
  }
  %near = arith.index_cast %near_i32 : i32 to index
  %last_i32 = tile.reduce_range max %i to 32 -> i32 {
    %at = arith.addi %near, %i : index
    %start = tile.load %starts[%at] : !tile.view<[B], i32> -> i32
    tile.yield %start : i32
  }
  %row = arith.index_cast %last_i32 : i32 to index
  %a = tile.load %x[%row, %c0] : !View -> !Tile
  %b = tile.load %x[%c0, %c0] : !View -> tensor<64x64xbf16>
  %r = tile.dot %a, %b : !Tile, tensor<64x64xbf16> -> !Acc
  tile.store %r, %y[%row, %c0] : !Acc, !Sums
}

// CHECK: %[[BOUNDS:.*]] = hop.pipe.create "bounds" : !hop.pipe<tensor<1xi32>, 2>
// CHECK: hop.role @producer
// CHECK-COUNT-1: hop.pipe.get %[[BOUNDS]]
// CHECK-NOT: hop.pipe.get
// CHECK: hop.role @finder elected registers(32)
// CHECK: tile.reduce_range max
// CHECK: %[[LAST:.*]] = tile.reduce_range max
// CHECK: hop.pipe.put %[[BOUNDS]], %[[LAST]]
// CHECK-NOT: hop.pipe.put
// CHECK: hop.role @consumer
// CHECK-COUNT-1: hop.pipe.get %[[BOUNDS]]
// CHECK-NOT: {{hop.pipe.get|tile.reduce_range}}
