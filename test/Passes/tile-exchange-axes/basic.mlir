// RUN: tessera-opt %s --tile-exchange-axes -split-input-file | FileCheck %s

!Q = tensor<16x128xbf16>
!K = tensor<64x128xbf16>
!S = tensor<16x64xf32>
!O = tensor<16x128xf32>
!Row = tensor<16xf32>
!QView = !tile.view<[M, 128], bf16>
!KView = !tile.view<[N, 128], bf16>
!OView = !tile.view<[M, 128], f32>

// Both products of a loop have their rows as columns, and so has what is between them. The transpose of a loaded tile goes away, and another
// one is transposed where it is read; a constant, a number of a row and a place have the other axis; the vectors stay.
// CHECK-LABEL: tile.kernel @attention
// CHECK: %[[Q:.*]] = tile.load %{{.*}} -> tensor<16x128xbf16>
// CHECK: scf.for {{.*}} -> (tensor<16xf32>, tensor<128x16xf32>)
// CHECK: %[[K:.*]] = tile.load %{{.*}} -> tensor<64x128xbf16>
// CHECK: %[[QT:.*]] = tile.transpose %[[Q]] : tensor<16x128xbf16> -> tensor<128x16xbf16>
// CHECK: %[[X:.*]] = tile.dot %[[K]], %[[QT]] : tensor<64x128xbf16>, tensor<128x16xbf16> -> tensor<64x16xf32>
// CHECK: tile.iota %{{.*}} axis 0 : tensor<64x16xi32>
// CHECK: arith.select {{.*}} : tensor<64x16xi1>, tensor<64x16xf32>
// CHECK: tile.reduce max %{{.*}} axis 0 : tensor<64x16xf32> -> tensor<16xf32>
// CHECK: tile.broadcast %{{.*}} axis 0 : tensor<16xf32> -> tensor<64x16xf32>
// CHECK: %[[P:.*]] = arith.truncf %{{.*}} : tensor<64x16xf32> to tensor<64x16xbf16>
// CHECK: %[[VT:.*]] = tile.transpose %{{.*}} : tensor<64x128xbf16> -> tensor<128x64xbf16>
// CHECK: tile.dot %[[VT]], %[[P]], %{{.*}} : tensor<128x64xbf16>, tensor<64x16xbf16> -> tensor<128x16xf32>
// CHECK: %[[BACK:.*]] = tile.transpose %{{.*}} : tensor<128x16xf32> -> tensor<16x128xf32>
// CHECK: tile.store %[[BACK]]
tile.kernel @attention(%q: !QView, %k: !KView, %v: !KView, %o: !OView, %max: !tile.view<[M], f32>) grid(%m = M ceildiv 16) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c16 : index
  %zero = arith.constant dense<0.0> : !O
  %none = arith.constant dense<0xFF800000> : !S
  %least = arith.constant dense<-1.0e30> : !Row
  %qt = tile.load %q[%row, %c0] : !QView -> !Q
  %most, %acc = scf.for %j = %c0 to %n step %c64 iter_args(%before = %least, %old = %zero) -> (!Row, !O) {
    %kt = tile.load %k[%j, %c0] : !KView -> !K
    %t = tile.transpose %kt : !K -> tensor<128x64xbf16>
    %x = tile.dot %qt, %t : !Q, tensor<128x64xbf16> -> !S
    %places = tile.iota %j axis 1 : tensor<16x64xi32>
    %n_i32 = arith.index_cast %n : index to i32
    %ends = tile.splat %n_i32 : i32 -> tensor<16x64xi32>
    %is_there = arith.cmpi slt, %places, %ends : tensor<16x64xi32>
    %e = arith.select %is_there, %x, %none : tensor<16x64xi1>, !S
    %own = tile.reduce max %e axis 1 : !S -> !Row
    %new = arith.maxnumf %before, %own : !Row
    %ref = tile.broadcast %new axis 1 : !Row -> !S
    %less = arith.subf %e, %ref : !S
    %w = math.exp2 %less : !S
    %p = arith.truncf %w : !S to tensor<16x64xbf16>
    %vt = tile.load %v[%j, %c0] : !KView -> !K
    %sum = tile.dot %p, %vt, %old : tensor<16x64xbf16>, !K -> !O
    scf.yield %new, %sum : !Row, !O
  }
  tile.store %acc, %o[%row, %c0] : !O, !OView
  tile.store %most, %max[%row] : !Row, !tile.view<[M], f32>
}

// -----

// What is loaded for arithmetic is transposed once, and the results of a speculation have one form.
// CHECK-LABEL: tile.kernel @scaled
// CHECK: %[[A:.*]] = tile.load %{{.*}} -> tensor<8x64xf16>
// CHECK: %[[AT:.*]] = tile.transpose %[[A]] : tensor<8x64xf16> -> tensor<64x8xf16>
// CHECK: arith.extf %[[AT]] : tensor<64x8xf16> to tensor<64x8xf32>
// CHECK: %[[H:.*]] = arith.truncf
// CHECK: tile.speculate -> tensor<64x8xf32>
// CHECK: tile.dot %{{.*}}, %[[H]] : tensor<64x64xf16>, tensor<64x8xf16> -> tensor<64x8xf32>
// CHECK: %[[OWN:.*]] = tile.reduce maximum %{{.*}} axis 0 : tensor<64x8xf32> -> tensor<8xf32>
// CHECK: arith.maximumf %{{.*}}, %[[OWN]]
tile.kernel @scaled(%a: !tile.view<[M, 64], f16>, %b: !tile.view<[64, 64], f16>, %c: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 8) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %row = arith.muli %m, %c8 : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<8x64xf16>
  %wide = arith.extf %at : tensor<8x64xf16> to tensor<8x64xf32>
  %twice = arith.addf %wide, %wide : tensor<8x64xf32>
  %h = arith.truncf %twice : tensor<8x64xf32> to tensor<8x64xf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %both = tile.speculate -> tensor<8x64xf32> {
    %x = tile.dot %h, %bt : tensor<8x64xf16>, tensor<64x64xf16> -> tensor<8x64xf32>
    %largest = tile.masked_max %zero, %x : tensor<8xf32>, tensor<8x64xf32>
    %holds = arith.cmpf ole, %largest, %zero : tensor<8xf32>
    tile.yield_if %holds, %x : tensor<8xi1>, tensor<8x64xf32>
  } exact {
    %x = tile.dot %h, %bt : tensor<8x64xf16>, tensor<64x64xf16> -> tensor<8x64xf32>
    tile.yield %x : tensor<8x64xf32>
  }
  tile.store %both, %c[%row, %c0] : tensor<8x64xf32>, !tile.view<[M, 64], f32>
}

// -----

// Nothing changes where rows are enough.
// CHECK-LABEL: tile.kernel @wide
// CHECK: tile.dot %{{.*}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
// CHECK-NEXT: tile.store
tile.kernel @wide(%a: !tile.view<[M, 64], f16>, %b: !tile.view<[64, 64], f16>, %c: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  %x = tile.dot %at, %bt : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %x, %c[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
