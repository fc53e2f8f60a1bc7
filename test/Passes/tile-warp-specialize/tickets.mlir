// Tickets go with the copies of a reducer; sums that leave from registers cannot wait for theirs.
// RUN: tessera-opt %s --tile-warp-specialize -split-input-file | FileCheck %s
// RUN: sed 's/store = tma/store = direct/' %s | not tessera-opt --tile-warp-specialize 2>&1 | FileCheck %s --check-prefix=DIRECT
// RUN: sed 's/store = tma/store = writer/' %s | tessera-opt --tile-warp-specialize | FileCheck %s --check-prefix=WRITER
// DIRECT: error: waits for its ticket (fixed_sums), which one thread does that copies in bulk; use store = writer, placement = apart with store = tma, or leave fixed_sums out

#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = tma, persistent = dynamic, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 128], bf16>
!Sums = !tile.view<[M, 128], f32>
tile.kernel @k(%x: !View, %y: !Sums, %z: !Sums) grid(%m = M ceildiv 128) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> tensor<128x128xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> tensor<64x128xbf16>
    %b_t = tile.transpose %b : tensor<64x128xbf16> -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
    %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
    %new = tile.dot %p, %b, %old : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    %p_t = tile.transpose %p : tensor<128x64xbf16> -> tensor<64x128xbf16>
    %part = tile.dot %p_t, %a : tensor<64x128xbf16>, tensor<128x128xbf16> -> tensor<64x128xf32>
    tile.store %part, %y[%j, %c0] add ticket %j from %m to %c0 : tensor<64x128xf32>, !Sums
    scf.yield %new : tensor<128x128xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<128x128xf32>, !Sums
}

// CHECK: hop.role @reducer
// CHECK: scf.for %[[J:.*]] =
// CHECK: hop.mma
// CHECK-NEXT: hop.ticket.wait %{{.*}}[%[[J]]] tile [64, 128] is %{{.*}} : !tile.view
// CHECK-NEXT: tile.store %{{.*}} add : tensor<64x64xf32>
// CHECK: hop.mma
// CHECK-NOT: hop.ticket.wait
// CHECK: tile.store %{{.*}} add : tensor<64x64xf32>
// CHECK: hop.ticket.pass %{{.*}}[%[[J]]] tile [64, 128] to %
// CHECK: hop.role @consumer
// CHECK-NOT: hop.ticket

// A writer waits for the ticket of the tile, and adds the parts that the reducer hands it one after the other.
// WRITER: %[[PARTS:.*]] = hop.pipe.create "y.1" : !hop.pipe<tensor<64x64xf32>, 2>
// WRITER: hop.role @writer elected registers(24)
// WRITER: scf.for %[[J:.*]] =
// WRITER: %[[FIRST:.*]] = hop.pipe.wait %[[PARTS]]
// WRITER-NEXT: hop.ticket.wait %{{.*}}[%[[J]]] tile [64, 128] is %{{.*}} : !tile.view
// WRITER-NEXT: hop.bulk_store %[[FIRST]], %{{.*}}[%[[J]], %{{.*}}] add
// WRITER: hop.pipe.release %[[PARTS]], %[[FIRST]]
// WRITER: %[[SECOND:.*]] = hop.pipe.wait %[[PARTS]]
// WRITER-NOT: hop.ticket.wait
// WRITER: hop.bulk_store %[[SECOND]], %{{.*}}[%[[J]], %{{.*}}] add
// WRITER: hop.pipe.release %[[PARTS]], %[[SECOND]]
// WRITER: hop.ticket.pass %{{.*}}[%[[J]]] tile [64, 128] to %
// WRITER: hop.role @reducer
// WRITER-NOT: hop.ticket
// WRITER: %[[PART:.*]] = hop.mma
// WRITER: %[[SLOT:.*]] = hop.pipe.acquire %[[PARTS]]
// WRITER-NEXT: hop.stage %[[PART]], %[[SLOT]]
// WRITER-NEXT: hop.warpgroup_sync
// WRITER-NEXT: hop.pipe.commit %[[PARTS]], %[[SLOT]]
// WRITER: hop.mma
// WRITER: hop.pipe.commit %[[PARTS]]
// WRITER: hop.role @consumer
// WRITER-NOT: hop.ticket
// WRITER-NOT: hop.pipe.acquire %[[PARTS]]
