// Rows that numbers name go to a dot through a pipe that all threads of the producer fill. What else is loaded comes by copies
// of one of them. The numbers are the producer's alone.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s
// RUN: sed 's/producer = operands/producer = none/' %s | not tessera-opt --pass-pipeline='builtin.module(tile-warp-specialize)' 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: cannot have the roles of its schedule: the threads of a producer gather what dots read: producer = none has none; use producer = operands
// RUN: sed 's/store = direct/store = writer/; s/consumer_registers = 224/consumer_registers = 208/' %s | tessera-opt --pass-pipeline='builtin.module(tile-warp-specialize)' | FileCheck %s --check-prefix=WRITER
// A writer has a warp of a warpgroup of its own, as all of the producer's gather.
// WRITER: hop.role @producer warpgroups(1) registers(56)
// WRITER: hop.role @writer elected registers(32)
// WRITER: hop.role @consumer warpgroups(2) registers(208)

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 56, consumer_registers = 224, placement = rows, transpose = 0, work = tiles>
!Table = !tile.view<[V, 64], bf16>
!List = !tile.view<[M], i32>
!Out = !tile.view<[M, 64], f32>
// CHECK: %[[A:.*]] = hop.pipe.create "x" : !hop.pipe<tensor<128x64xbf16>, 1>
// CHECK: %[[B:.*]] = hop.pipe.create "y" : !hop.pipe<tensor<64x64xbf16>, 2>
// CHECK: hop.role @producer warpgroups(1) registers(56)
// CHECK: %[[N:.*]] = tile.load %{{.*}} -> tensor<128xi32>
// CHECK: %[[S:.*]] = hop.pipe.acquire %[[A]]
// CHECK-NEXT: hop.gather %[[S]], %{{.*}}[%c0, %c0] rows %[[N]] :
// CHECK-NEXT: hop.pipe.commit %[[A]], %[[S]]
// CHECK: scf.for
// CHECK: hop.elected
// CHECK-NEXT: scf.if
// CHECK-NEXT: hop.pipe.load %[[B]]
// CHECK: hop.role @consumer warpgroups(2) registers(224)
// CHECK-NOT: tile.load
// CHECK: %[[T:.*]] = hop.pipe.wait %[[A]]
// CHECK: %[[MINE:.*]] = hop.slice %[[T]]
// CHECK: hop.mma %[[MINE]]
tile.kernel @k(%x: !Table, %y: !Table, %list: !List, %z: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %m, %c128 : index
  %rows = tile.dim "V"
  %numbers = tile.load %list[%row] : !List -> tensor<128xi32>
  %a = tile.gather %x[%c0, %c0] rows %numbers : !Table, tensor<128xi32> -> tensor<128x64xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x64xf32>) {
    %b = tile.load %y[%j, %c0] : !Table -> tensor<64x64xbf16>
    %new = tile.dot %a, %b, %old : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %new : tensor<128x64xf32>
  }
  tile.store %sum, %z[%row, %c0] : tensor<128x64xf32>, !Out
}
