// Factors of products: scalars meet what rows or columns have a number of, and not the tile. Sums that are added to memory have
// scalars behind them.
//
// RUN: tessera-opt %s --tile-inline-functions --canonicalize --cse | FileCheck %s
// RUN: tessera-opt %s --tile-inline-functions --canonicalize --cse --tile-carry-sums | FileCheck %s --check-prefix=CARRIED

!Logs = !tile.view<[M], f32>

func.func @score(%x: f32, %scale: f32, %gain: f32, %q: i32, %k: i32) -> f32 {
  %logs = tile.argument "logs" : !Logs
  %total = tile.argument "total" : !tile.view<[1], f32>
  %c0 = arith.constant 0 : index
  %log2e = arith.constant 1.5 : f32
  %qi = arith.index_cast %q : i32 to index
  %ki = arith.index_cast %k : i32 to index
  %log = tile.load %logs[%qi] : !Logs -> f32
  %other = tile.load %logs[%ki] : !Logs -> f32
  %f = arith.mulf %gain, %log : f32
  %s = arith.mulf %x, %scale : f32
  %y = arith.mulf %s, %f : f32
  %pair = arith.mulf %log, %other : f32
  %z = arith.mulf %pair, %y : f32
  %ds = arith.mulf %s, %log : f32
  %opposite = arith.negf %ds : f32
  tile.store %opposite, %total[%c0] add : f32, !tile.view<[1], f32>
  %e = arith.mulf %z, %log2e : f32
  func.return %e : f32
}

// CHECK-LABEL: tile.kernel @k
// CHECK-DAG:     %[[COLUMNS:.*]] = tile.load %logs[%c0] : !tile.view<[M], f32> -> tensor<32xf32>
// CHECK-DAG:     %[[SCALARS:.*]] = arith.mulf %scale, %gain : f32
// CHECK-DAG:     %[[ALL:.*]] = arith.mulf %[[SCALARS]], %{{.*}} : f32
// CHECK-DAG:     %[[MINUS:.*]] = arith.negf %scale : f32
// CHECK:         scf.for
// CHECK:           %[[X:.*]] = tile.load %x
// CHECK:           %[[ROWS:.*]] = tile.load %logs[%{{.*}}] : !tile.view<[M], f32> -> tensor<64xf32>
// CHECK-DAG:       %[[OF_ROWS:.*]] = tile.broadcast %[[ROWS]] axis 1
// CHECK-DAG:       %[[OF_COLUMNS:.*]] = tile.broadcast %[[COLUMNS]] axis 0
// CHECK-DAG:       %[[SQUARES:.*]] = arith.mulf %[[ROWS]], %[[ROWS]] : tensor<64xf32>
// CHECK-DAG:       %[[LEFT:.*]] = arith.mulf %[[X]], %[[OF_COLUMNS]] : tensor<64x32xf32>
// CHECK-DAG:       %[[ADDED:.*]] = arith.mulf %[[X]], %[[OF_ROWS]] : tensor<64x32xf32>
// CHECK-DAG:       %[[FACTORS:.*]] = arith.mulf %[[SQUARES]], %{{.*}} : tensor<64xf32>
// CHECK-DAG:       %[[REPEATED:.*]] = tile.broadcast %[[FACTORS]] axis 1
// CHECK:           arith.mulf %[[LEFT]], %[[REPEATED]] : tensor<64x32xf32>
// CHECK:           %[[SUMS:.*]] = tile.reduce sum %[[ADDED]] axis 1
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %[[SUMS]], %{{.*}} : tensor<64xf32>
// CHECK-NEXT:      tile.scatter_add %[[SCALED]], %total[%c0]

// CARRIED:         %[[MINUS:.*]] = arith.negf %scale : f32
// CARRIED:         %[[ALL:.*]] = scf.for {{.*}} iter_args(%[[OLD:.*]] = %{{.*}}) -> (tensor<64xf32>)
// CARRIED:           %[[SUMS:.*]] = tile.reduce sum
// CARRIED:           %[[NEW:.*]] = arith.addf %[[OLD]], %[[SUMS]]
// CARRIED:           scf.yield %[[NEW]]
// CARRIED:         %[[FACTOR:.*]] = tile.splat %[[MINUS]] : f32 -> tensor<64xf32>
// CARRIED-NEXT:    %[[TOTAL:.*]] = arith.mulf %[[ALL]], %[[FACTOR]]
// CARRIED-NEXT:    tile.scatter_add %[[TOTAL]], %total[%c0]
tile.kernel @k(%x: !tile.view<[N, 32], f32>, %y: !tile.view<[N, 32], f32>, %scale: f32, %gain: f32) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = tile.dim "N"
  scf.for %j = %c0 to %end step %c1 {
    %t = tile.load %x[%j, %c0] : !tile.view<[N, 32], f32> -> tensor<64x32xf32>
    %q = tile.iota %j axis 0 : tensor<64x32xi32>
    %k = tile.iota %c0 axis 1 : tensor<64x32xi32>
    %s = tile.map @score(%t, %scale, %gain, %q, %k) : (tensor<64x32xf32>, f32, f32, tensor<64x32xi32>, tensor<64x32xi32>) -> tensor<64x32xf32>
    tile.store %s, %y[%j, %c0] : tensor<64x32xf32>, !tile.view<[N, 32], f32>
  }
}
