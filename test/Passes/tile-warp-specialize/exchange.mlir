// With cluster = exchange the blocks of a cluster make the sums of both together. A slot of the operand's pipe has the tiles of both.
// The producer loads half of the columns of the other block's second operand, and the reducer makes half of the columns, of two
// products. They leave 32 columns at a time.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile-warp-specialize,canonicalize,cse)' | FileCheck %s

#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = tma, persistent = none, order = linear, section = 1, cluster = exchange, producer_registers = 24, consumer_registers = 208, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 256], bf16>
!Sums = !tile.view<[M, 256], f32>
!Tile = tensor<128x256xbf16>
!Part = tensor<64x256xbf16>
!S    = tensor<128x64xf32>
!P    = tensor<128x64xbf16>
tile.kernel @k(%x: !View, %y: !Sums, %z: !View) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x256xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<256x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<256x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x256xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x256xf32>
    tile.store %c, %y[%j, %c0] add exchanged : tensor<64x256xf32>, !Sums
    scf.yield %new : tensor<128x256xf32>
  }
  %out = arith.truncf %sum : tensor<128x256xf32> to !Tile
  tile.store %out, %z[%first, %c0] : !Tile, !View
}

// CHECK: ^bb0({{.*}}, %[[M:[^ ]*]]: index):
// CHECK-DAG: %[[A:.*]] = hop.pipe.create "x" : !hop.pipe<tensor<128x256xbf16>, 1>
// CHECK-DAG: %[[THEIRS:.*]] = hop.pipe.create "x.theirs" : !hop.pipe<tensor<128x128xbf16>, 1>
// CHECK-DAG: %[[OPERAND:.*]] = hop.pipe.create "y.operand" exchanged : !hop.pipe<tensor<256x64xbf16>, 1>
// CHECK: hop.role @producer elected
// CHECK: hop.pipe.load %[[A]], %{{.*}}[%{{.*}}, %{{.*}}]
// CHECK: %[[OTHER:.*]] = arith.xori %[[M]], %{{.*}} : index
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[OTHER]], %{{.*}} : index
// CHECK: %[[THERE:.*]] = arith.muli %[[OTHER]], %{{.*}} : index
// CHECK: %[[ROW:.*]] = arith.select %[[EXISTS]], %[[THERE]], %c-128 : index
// CHECK: %[[RANK:.*]] = hop.cluster_rank
// CHECK: %[[HALF:.*]] = arith.muli %[[RANK]], %c128 : index
// CHECK: hop.pipe.load %[[THEIRS]], %{{.*}}[%[[ROW]], %[[HALF]]]
// CHECK: hop.role @reducer warpgroups(1)
// CHECK-DAG: %[[ALL:.*]] = hop.pipe.wait %[[A]]
// CHECK-DAG: %[[OF_OTHER:.*]] = hop.pipe.wait %[[THEIRS]]
// CHECK: scf.for
// CHECK: %[[SLOT:.*]] = hop.pipe.wait %[[OPERAND]]
// CHECK-DAG: %[[P0:.*]] = hop.slice %[[SLOT]][%c0] : !hop.shared<tensor<256x64xbf16>, rows = 256> -> !hop.shared<tensor<128x64xbf16>, rows = 256>
// CHECK-DAG: %[[P1:.*]] = hop.slice %[[SLOT]][%c1]
// CHECK: %[[R:.*]] = hop.cluster_rank
// CHECK: %[[FIRST:.*]] = arith.muli %[[R]], %c2 : index
// CHECK: %[[OWN:.*]] = hop.slice %[[ALL]][%[[FIRST]]] : {{.*}} -> !hop.shared<tensor<128x64xbf16>, rows = 128>
// CHECK: %[[D0:.*]] = hop.mma %[[P0]], %[[OWN]] {transpose_a}
// CHECK: %[[ITS:.*]] = hop.slice %[[OF_OTHER]][%c0] : {{.*}} -> !hop.shared<tensor<128x64xbf16>, rows = 128>
// CHECK: %[[D1:.*]] = hop.mma %[[P1]], %[[ITS]] acc(%[[D0]] : {{.*}}) {transpose_a}
// CHECK: %[[AT:.*]] = arith.muli %[[R]], %c128 : index
// CHECK: %[[LEFT:.*]] = hop.columns %[[D1]][0] : tensor<64x64xf32> -> tensor<64x32xf32>
// CHECK: tile.store %[[LEFT]], %{{.*}}[%{{.*}}, %[[AT]]] add exchanged : tensor<64x32xf32>
// CHECK: %[[RIGHT:.*]] = hop.columns %[[D1]][1]
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %c32 : index
// CHECK: tile.store %[[RIGHT]], %{{.*}}[%{{.*}}, %[[NEXT]]] add exchanged : tensor<64x32xf32>
// CHECK-COUNT-2: hop.mma
// CHECK: %[[THIRD:.*]] = arith.addi %[[AT]], %c64 : index
// CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %[[THIRD]]] add exchanged : tensor<64x32xf32>
// CHECK: hop.role @consumer warpgroups(2)
// CHECK: %[[TO:.*]] = hop.pipe.acquire %[[OPERAND]]
// CHECK: %[[MINE:.*]] = hop.slice %[[TO]][%{{.*}}] : !hop.shared<tensor<256x64xbf16>, rows = 256> -> !hop.shared<tensor<64x64xbf16>, rows = 256>
// CHECK: hop.stage %{{.*}}, %[[MINE]]
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.pipe.commit %[[OPERAND]], %[[TO]]
