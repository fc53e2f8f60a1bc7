// Each pipe of rows that come in runs is filled by a thread of its own, which finds where runs lie. Consumers wait as for any load.
//
// RUN: tessera-opt %s --tile-choose-schedule --tile-warp-specialize | FileCheck %s

!Cache = !tile.view<[PAGES, 16, 64], bf16>
!Table = !tile.view<[N], i32>
!Q = !tile.view<[M, 64], bf16>
!O = !tile.view<[M, 64], f32>

// CHECK-LABEL: hop.kernel @pages
// CHECK:       %[[Q:.*]] = hop.pipe.create "q"
// CHECK:       %[[K:.*]] = hop.pipe.create "k"
// CHECK:       %[[V:.*]] = hop.pipe.create "v"
// CHECK:       hop.role @producer0 elected
// CHECK:         hop.pipe.load %[[Q]],
// CHECK:         scf.for
// CHECK:           hop.pipe.load %[[V]], %{{.*}} run 16 with(%{{.*}} : index) {
// CHECK:             tile.load
// CHECK:             hop.yield %{{.*}}, %{{.*}}, %{{.*}} : index, index, index
// CHECK:       hop.role @producer1 elected
// CHECK-NOT:     %[[Q]],
// CHECK:         hop.pipe.load %[[K]], %{{.*}} run 16 with(%{{.*}} : index) {
// CHECK:       hop.role @consumer
// CHECK-NOT:     tile.load
// CHECK:         hop.pipe.wait %[[K]]
// CHECK:         hop.pipe.wait %[[V]]
tile.kernel @pages(%q: !Q, %k: !Cache, %v: !Cache, %table: !Table, %o: !O) grid(%m = M ceildiv 128)
    schedule #tile.schedule<speculate = false, overlap = 1> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %n = tile.dim "N"
  %blocks = arith.ceildivsi %n, %c4 : index
  %row = arith.muli %m, %c128 : index
  %qt = tile.load %q[%row, %c0] : !Q -> tensor<128x64xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %sum = scf.for %j = %c0 to %blocks step %c1 iter_args(%old = %zero) -> (tensor<128x64xf32>) {
    %kt = tile.gather_runs %k[%c0, %c0, %c0] run 16 with (%j : index) {
    ^bb0(%i: index, %own: index):
      %first = arith.muli %own, %c4 : index
      %number = arith.addi %first, %i : index
      %entry = tile.load %table[%number] : !Table -> i32
      %page = arith.index_cast %entry : i32 to index
      tile.yield %page, %c0, %c16 : index, index, index
    } : !Cache -> tensor<64x64xbf16>
    %k_t = tile.transpose %kt : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %s = tile.dot %qt, %k_t : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
    %vt = tile.gather_runs %v[%c0, %c0, %c0] run 16 with (%j : index) {
    ^bb0(%i: index, %own: index):
      %first = arith.muli %own, %c4 : index
      %number = arith.addi %first, %i : index
      %entry = tile.load %table[%number] : !Table -> i32
      %page = arith.index_cast %entry : i32 to index
      tile.yield %page, %c0, %c16 : index, index, index
    } : !Cache -> tensor<64x64xbf16>
    %new = tile.dot %p, %vt, %old : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %new : tensor<128x64xf32>
  }
  tile.store %sum, %o[%row, %c0] : tensor<128x64xf32>, !O
}
