// Loads of operands of products of f32 (tf32) round them, as an operand does that a converter makes of f32; f32 for sums is loaded as it is.
//
// RUN: tessera-opt %s --tile-override-schedule=schedule=consumers=1,persistent=none --tile-choose-schedule --tile-warp-specialize --canonicalize --cse | FileCheck %s
// RUN: tessera-opt %s --tile-override-schedule=schedule=consumers=1,persistent=none --tile-choose-schedule --tile-warp-specialize --hop-insert-mbarriers \
// RUN:   | FileCheck %s --check-prefix=COPIES

// CHECK-DAG: hop.pipe.load %{{.*}}, %[[X:[a-z0-9]+]][%{{.*}}] tf32 : !hop.pipe<tensor<64x64xf32>
// CHECK-DAG: hop.pipe.load %{{.*}}, %{{.*}}[%{{.*}}] tf32 : !hop.pipe<tensor<32x64xf32>
// CHECK-DAG: hop.pipe.load %{{.*}}, %{{.*}}[%{{.*}}] : !hop.pipe<tensor<64x64xf32>
// CHECK: hop.stage %{{.*}}, %{{.*}} tf32 : tensor<{{.*}}xf32>
// COPIES-DAG: hop.bulk_load %{{.*}} tf32 : !tile.view<[M, 64], f32>
// COPIES-DAG: hop.bulk_load %{{.*}} tf32 : !tile.view<[32, 64], f32>
// COPIES-DAG: hop.bulk_load %{{.*}}[%{{[a-z0-9_]+}}] : !tile.view<[64, 64], f32>
!X = !tile.view<[M, 64], f32>
tile.kernel @k(%x: !X, %y: !tile.view<[32, 64], f32>, %w: !tile.view<[64, 64], f32>, %z: !tile.view<[M, 32], f32>, %u: !X) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %a = tile.load %x[%row, %c0] : !X -> tensor<64x64xf32>
  %b = tile.load %y[%c0, %c0] : !tile.view<[32, 64], f32> -> tensor<32x64xf32>
  %bt = tile.transpose %b : tensor<32x64xf32> -> tensor<64x32xf32>
  %d = tile.dot %a, %bt precision tf32 : tensor<64x64xf32>, tensor<64x32xf32> -> tensor<64x32xf32>
  tile.store %d, %z[%row, %c0] : tensor<64x32xf32>, !tile.view<[M, 32], f32>
  // Converted on its way.
  %c = tile.load %w[%c0, %c0] : !tile.view<[64, 64], f32> -> tensor<64x64xf32>
  %third = arith.constant dense<0.333> : tensor<64x64xf32>
  %scaled = arith.mulf %c, %third : tensor<64x64xf32>
  %st = tile.transpose %scaled : tensor<64x64xf32> -> tensor<64x64xf32>
  %e = tile.dot %a, %st precision tf32 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  tile.store %e, %u[%row, %c0] : tensor<64x64xf32>, !X
}
