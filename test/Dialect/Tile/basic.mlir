// The op examples of the dialect's documentation are parsed by test/Docs; here, what printing keeps and drops.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --mlir-print-op-generic | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.kernel @copy(%{{.*}}: !tile.view<[M, 64], f16>, %{{.*}}: !tile.view<[M, 64], f16>)
// CHECK-SAME: grid(%{{.*}} = M ceildiv 64)
tile.kernel @copy(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[M, 64], f16>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // CHECK: %[[T:.*]] = tile.load %{{.*}}[%{{.*}}, %{{.*}}] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %t = tile.load %x[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // CHECK: tile.store %[[T]], %{{.*}} : tensor<64x64xf16>, !tile.view<[M, 64], f16>
  tile.store %t, %y[%row, %c0] : tensor<64x64xf16>, !tile.view<[M, 64], f16>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] : !tile.view<[M, 64], f16> -> f16
  %e = tile.load %x[%row, %c0] : !tile.view<[M, 64], f16> -> f16
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] site 1 pipe 2 alike : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %marked = tile.load %x[%row, %c0] site 1 pipe 2 alike : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] pipe 2 ahead : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %kept = tile.load %x[%row, %c0] pipe 2 ahead : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] pipe 3 alike wide : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %chunks = tile.load %x[%row, %c0] pipe 3 alike wide : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // CHECK: %[[OWN:.*]] = tile.row %{{.*}} below %{{.*}}
  %own = tile.row %row below %m
  // CHECK: tile.load %{{.*}}[%[[OWN]], %{{.*}}]
  %ended = tile.load %x[%own, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // CHECK: math.exp2 %{{.*}} {tile.polynomial = 16 : i64, tile.polynomial_precise} : f32
  %f = arith.constant 1.0 : f32
  %p = math.exp2 %f {tile.polynomial = 16 : i64, tile.polynomial_precise} : f32
  // CHECK: tile.common_bound %{{.*}} loads %{{.*}}{{$}}
  %n = tile.common_bound %m loads %row
  // CHECK: tile.skip_loads [1, 2] times %{{.*}}
  tile.skip_loads [1, 2] times %n
  // CHECK-NOT: tile.return
  tile.return
}

#s = #tile.schedule<consumers = 2, overlap = 2>
// CHECK-LABEL: tile.kernel @scheduled
// CHECK-SAME: grid(%{{.*}} = M ceildiv 64, %{{.*}} = H) requires(HK divides H)
// CHECK-SAME: schedule {{.*}}
tile.kernel @scheduled(%x: !tile.view<[H, M, 64], f16>, %y: !tile.view<[HK, M, 64], f16>)
    grid(%m = M ceildiv 64, %h = H) requires(HK divides H) schedule #s {
}

// CHECK-LABEL: tile.kernel @bounded_scalar(
// CHECK-SAME: requires(scale > 1.000000e-30, M <= 64)
tile.kernel @bounded_scalar(%x: !tile.view<[M], f32>, %scale: f32)
    grid(%i = M) requires(scale > 1.0e-30, M <= 64) {
}

// CHECK-LABEL: tile.kernel @boxes(
// CHECK-SAME: requires(8 * HK divides H, HK divides H, 16 divides M, M <= 4096)
tile.kernel @boxes(%q: !tile.view<[H, M, 64], f16>, %k: !tile.view<[HK, 64], f16>, %l: !tile.view<[H, M], f32>)
    grid(%m = M ceildiv 16) requires(8 * HK divides H, 1 * HK divides H, 16 divides M, M <= 4096) {
  %c0 = arith.constant 0 : index
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] box [8, 16, 64] : !tile.view<[H, M, 64], f16> -> tensor<128x64xf16>
  %t = tile.load %q[%c0, %m, %c0] box [8, 16, 64] : !tile.view<[H, M, 64], f16> -> tensor<128x64xf16>
  // CHECK: tile.iota %{{.*}} axis 0 period 16 : tensor<128x64xi32>
  %i = tile.iota %m axis 0 period 16 : tensor<128x64xi32>
  // CHECK: %[[L:.*]] = tile.load %{{.*}} box [8, 16] : !tile.view<[H, M], f32> -> tensor<128xf32>
  %s = tile.load %l[%c0, %m] box [8, 16] : !tile.view<[H, M], f32> -> tensor<128xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] box [8, 16, 64] : tensor<128x64xf16>, !tile.view<[H, M, 64], f16>
  tile.store %t, %q[%c0, %m, %c0] box [8, 16, 64] : tensor<128x64xf16>, !tile.view<[H, M, 64], f16>
  // CHECK: tile.store %[[L]], %{{.*}}[%{{.*}}, %{{.*}}] box [8, 16] : tensor<128xf32>, !tile.view<[H, M], f32>
  tile.store %s, %l[%c0, %m] box [8, 16] : tensor<128xf32>, !tile.view<[H, M], f32>
}

// What calls a function that returns a row is a load or a store once it is inlined.
// CHECK-LABEL: func.func @row_of
func.func @row_of(%t: index, %end: index) -> index {
  // CHECK: %[[ROW:.*]] = tile.row %{{.*}} below %{{.*}}
  %row = tile.row %t below %end
  // CHECK: return %[[ROW]]
  func.return %row : index
}
