// Loads that are written twice stay two, and copies of one load become one.
//
// RUN: tessera-opt %s --tile-inline-functions | FileCheck %s
// RUN: tessera-opt %s --tile-inline-functions --cse | FileCheck %s --check-prefix=CSE

func.func @first(%x: !tile.view<[M, 64], f16>) -> tensor<64x64xf16> {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  func.return %t : tensor<64x64xf16>
}

// CHECK-LABEL: tile.kernel @k
// CHECK: %[[A:.*]] = tile.load %x[%{{.*}}] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
// CHECK: %[[B:.*]] = tile.load %x[%{{.*}}] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
// CHECK: %[[C:.*]] = tile.load %x[%{{.*}}] site 1 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
// Of another type or view, at one place each.
// CHECK: tile.load %x[%{{.*}}] : !tile.view<[M, 64], f16> -> tensor<64xf16>
// CHECK: tile.load %y[%{{.*}}] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
// CHECK: arith.addf %[[A]], %[[B]]
// CSE: %[[A:.*]] = tile.load %x[%c0, %c0] : {{.*}} -> tensor<64x64xf16>
// CSE: %[[C:.*]] = tile.load %x[%c0, %c0] site 1
// CSE: arith.addf %[[A]], %[[A]]
// CSE: arith.mulf %{{.*}}, %[[C]]
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[M, 64], f16>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = func.call @first(%x) : (!tile.view<[M, 64], f16>) -> tensor<64x64xf16>
  %b = func.call @first(%x) : (!tile.view<[M, 64], f16>) -> tensor<64x64xf16>
  %c = tile.load %x[%c0, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %r = tile.load %x[%c0, %c0] : !tile.view<[M, 64], f16> -> tensor<64xf16>
  %o = tile.load %y[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %d = arith.addf %a, %b : tensor<64x64xf16>
  %e = arith.mulf %d, %c : tensor<64x64xf16>
  %f = arith.addf %e, %o : tensor<64x64xf16>
  %rb = tile.broadcast %r axis 1 : tensor<64xf16> -> tensor<64x64xf16>
  %g = arith.addf %f, %rb : tensor<64x64xf16>
  tile.store %g, %y[%m, %c0] : tensor<64x64xf16>, !tile.view<[M, 64], f16>
}
