// RUN: tessera-opt %s --tile-cut-dots -split-input-file | FileCheck %s

!Q = tensor<64x512xbf16>
!S = tensor<64x64xf32>
!O = tensor<64x512xf32>
!Row = tensor<64xf32>

// One loaded tile is the second operand of two products: a part of it serves both. A factor of rows stays whole, one of columns has
// parts, and so have constants, numbers of columns, and what is stored.
// CHECK-LABEL: tile.kernel @latent
// CHECK-DAG: %[[C256:.*]] = arith.constant 256 : index
// CHECK-DAG: %[[Q0:.*]] = tile.load %[[Q:.*]][%[[ROW:.*]], %[[C0:.*]]] : {{.*}} -> tensor<64x256xbf16>
// CHECK: tile.load %[[Q]][%[[ROW]], %[[AT:.*]]] : {{.*}} -> tensor<64x256xbf16>
// CHECK: %[[OUT:.*]]:2 = scf.for {{.*}} iter_args(%[[A0:.*]] = %{{.*}}, %[[A1:.*]] = %{{.*}}) -> (tensor<64x256xf32>, tensor<64x256xf32>)
// CHECK: %[[K0:.*]] = tile.load
// CHECK: %[[K1:.*]] = tile.load
// CHECK: %[[T0:.*]] = tile.transpose %[[K0]] : tensor<64x256xbf16> -> tensor<256x64xbf16>
// CHECK: %[[T1:.*]] = tile.transpose %[[K1]]
// CHECK: %[[X0:.*]] = tile.dot %[[Q0]], %[[T0]] : tensor<64x256xbf16>, tensor<256x64xbf16> -> tensor<64x64xf32>
// CHECK: %[[X1:.*]] = tile.dot %{{.*}}, %[[T1]], %[[X0]]
// CHECK: arith.truncf %[[X1]]
// CHECK: %[[ALL:.*]] = tile.broadcast %{{.*}} axis 1 : tensor<64xf32> -> tensor<64x256xf32>
// CHECK: arith.mulf %[[A0]], %[[ALL]]
// CHECK: arith.mulf %[[A1]]
// CHECK: tile.dot %{{.*}}, %[[K0]], %{{.*}} -> tensor<64x256xf32>
// CHECK: tile.dot %{{.*}}, %[[K1]], %{{.*}} -> tensor<64x256xf32>
// CHECK: scf.yield %{{.*}}, %{{.*}} : tensor<64x256xf32>, tensor<64x256xf32>
// CHECK: %[[FIRST:.*]] = tile.reduce max %[[OUT]]#0 axis 1 : tensor<64x256xf32> -> tensor<64xf32>
// CHECK: %[[SECOND:.*]] = tile.reduce max %[[OUT]]#1 axis 1
// CHECK: %[[MAX:.*]] = arith.maxnumf %[[FIRST]], %[[SECOND]]
// CHECK: tile.store %[[MAX]]
// CHECK: %[[BIAS:.*]] = tile.load %{{.*}}[%{{.*}}] : {{.*}} -> tensor<256xf32>
// CHECK: tile.iota {{.*}} axis 1 : tensor<64x256xi32>
// CHECK: tile.store %{{.*}} box [1, 64, 256] : tensor<64x256xf32>
// CHECK: tile.store %{{.*}} box [1, 64, 256] : tensor<64x256xf32>
tile.kernel @latent(%q: !tile.view<[M, 512], bf16>, %k: !tile.view<[N, 576], bf16>, %bias: !tile.view<[512], f32>,
    %max: !tile.view<[M], f32>, %o: !tile.view<[B, M, 512], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !O
  %half = arith.constant dense<0.5> : !Row
  %limit = arith.constant dense<300> : tensor<64x512xi32>
  %qt = tile.load %q[%row, %c0] : !tile.view<[M, 512], bf16> -> !Q
  %acc = scf.for %j = %c0 to %n step %c64 iter_args(%old = %zero) -> (!O) {
    %kt = tile.load %k[%j, %c0] : !tile.view<[N, 576], bf16> -> !Q
    %t = tile.transpose %kt : !Q -> tensor<512x64xbf16>
    %x = tile.dot %qt, %t : !Q, tensor<512x64xbf16> -> !S
    %p = arith.truncf %x : !S to tensor<64x64xbf16>
    %factor = tile.broadcast %half axis 1 : !Row -> !O
    %scaled = arith.mulf %old, %factor : !O
    %new = tile.dot %p, %kt, %scaled : tensor<64x64xbf16>, !Q -> !O
    scf.yield %new : !O
  }
  %largest = tile.reduce max %acc axis 1 : !O -> !Row
  tile.store %largest, %max[%row] : !Row, !tile.view<[M], f32>
  %b = tile.load %bias[%c0] : !tile.view<[512], f32> -> tensor<512xf32>
  %bs = tile.broadcast %b axis 0 : tensor<512xf32> -> !O
  %sum = arith.addf %acc, %bs : !O
  %columns = tile.iota %c0 axis 1 : tensor<64x512xi32>
  %is_kept = arith.cmpi slt, %columns, %limit : tensor<64x512xi32>
  %kept = arith.select %is_kept, %sum, %zero : tensor<64x512xi1>, !O
  tile.store %kept, %o[%c0, %row, %c0] box [1, 64, 512] : !O, !tile.view<[B, M, 512], f32>
}

// A branch hands both parts on.
// CHECK-LABEL: tile.kernel @branch
// CHECK: %[[D0:.*]] = tile.dot {{.*}} -> tensor<64x256xf32>
// CHECK: %[[D1:.*]] = tile.dot {{.*}} -> tensor<64x256xf32>
// CHECK: scf.if %{{.*}} -> (tensor<64x256xf32>, tensor<64x256xf32>)
// CHECK: scf.yield %[[D0]], %[[D1]]
// CHECK: scf.yield %cst, %{{.*}} : tensor<64x256xf32>, tensor<64x256xf32>
tile.kernel @branch(%a: !tile.view<[M, 64], bf16>, %b: !tile.view<[64, 512], bf16>, %o: !tile.view<[M, 512], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x512xf32>
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 512], bf16> -> tensor<64x512xbf16>
  %d = tile.dot %at, %bt : tensor<64x64xbf16>, tensor<64x512xbf16> -> tensor<64x512xf32>
  %is_late = arith.cmpi sgt, %m, %c64 : index
  %x = scf.if %is_late -> (tensor<64x512xf32>) {
    scf.yield %d : tensor<64x512xf32>
  } else {
    scf.yield %zero : tensor<64x512xf32>
  }
  tile.store %x, %o[%row, %c0] : tensor<64x512xf32>, !tile.view<[M, 512], f32>
}

// A warpgroup holds 64 rows of it, which several instructions multiply: nothing changes.
// CHECK-LABEL: tile.kernel @whole
// CHECK: tile.dot {{.*}} -> tensor<64x384xf32>
// CHECK-NOT: tile.dot
tile.kernel @whole(%a: !tile.view<[M, 64], bf16>, %b: !tile.view<[64, 384], bf16>, %o: !tile.view<[M, 384], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 384], bf16> -> tensor<64x384xbf16>
  %d = tile.dot %at, %bt : tensor<64x64xbf16>, tensor<64x384xbf16> -> tensor<64x384xf32>
  tile.store %d, %o[%row, %c0] : tensor<64x384xf32>, !tile.view<[M, 384], f32>
}

// A sum over what is cut has parts of its other operand too, where that is made anew.
// CHECK-LABEL: tile.kernel @ones
// CHECK: %[[ONES0:.*]] = arith.constant dense<1.0{{.*}}> : tensor<64x256xbf16>
// CHECK: %[[ONES1:.*]] = arith.constant dense<1.0{{.*}}> : tensor<64x256xbf16>
// CHECK: %[[S0:.*]] = tile.dot %[[ONES0]], %{{.*}} : tensor<64x256xbf16>, tensor<256x64xbf16> -> tensor<64x64xf32>
// CHECK: %[[S1:.*]] = tile.dot %[[ONES1]], %{{.*}}, %[[S0]]
// CHECK: tile.store %[[S1]]
tile.kernel @ones(%k: !tile.view<[N, 512], bf16>, %p: !tile.view<[N, 64], bf16>, %o: !tile.view<[64, 512], f32>,
    %s: !tile.view<[64, 64], f32>) grid(%m = N ceildiv 64) {
  %c0 = arith.constant 0 : index
  %ones = arith.constant dense<1.0> : tensor<64x512xbf16>
  %kt = tile.load %k[%m, %c0] : !tile.view<[N, 512], bf16> -> tensor<64x512xbf16>
  %pt = tile.load %p[%m, %c0] : !tile.view<[N, 64], bf16> -> tensor<64x64xbf16>
  %t = tile.transpose %kt : tensor<64x512xbf16> -> tensor<512x64xbf16>
  %sums = tile.dot %ones, %t : tensor<64x512xbf16>, tensor<512x64xbf16> -> tensor<64x64xf32>
  %d = tile.dot %pt, %kt : tensor<64x64xbf16>, tensor<64x512xbf16> -> tensor<64x512xf32>
  tile.store %d, %o[%c0, %c0] : tensor<64x512xf32>, !tile.view<[64, 512], f32>
  tile.store %sums, %s[%c0, %c0] : tensor<64x64xf32>, !tile.view<[64, 64], f32>
}

// Rows that numbers name are gathered in parts, by the same numbers.
// CHECK-LABEL: tile.kernel @named
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C256:.*]] = arith.constant 256 : index
// CHECK-DAG: %[[ROWS:.*]] = tile.load
// CHECK-DAG: tile.gather %[[B:.*]][%[[C0]], %[[C0]]] rows %[[ROWS]] : {{.*}} -> tensor<64x256xbf16>
// CHECK: %[[NEXT:.*]] = arith.addi %[[C0]], %[[C256]]
// CHECK: tile.gather %[[B]][%[[C0]], %[[NEXT]]] rows %[[ROWS]] : {{.*}} -> tensor<64x256xbf16>
tile.kernel @named(%a: !tile.view<[M, 64], bf16>, %list: !tile.view<[64], i32>, %b: !tile.view<[N, 512], bf16>,
    %o: !tile.view<[M, 512], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %rows = tile.load %list[%c0] : !tile.view<[64], i32> -> tensor<64xi32>
  %at = tile.load %a[%m, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %bt = tile.gather %b[%c0, %c0] rows %rows : !tile.view<[N, 512], bf16>, tensor<64xi32> -> tensor<64x512xbf16>
  %d = tile.dot %at, %bt : tensor<64x64xbf16>, tensor<64x512xbf16> -> tensor<64x512xf32>
  tile.store %d, %o[%m, %c0] : tensor<64x512xf32>, !tile.view<[M, 512], f32>
}

// What a speculation hands on is cut in both of its regions.
// CHECK-LABEL: tile.kernel @speculates
// CHECK: %[[OUT:.*]]:3 = tile.speculate -> tensor<64xf32>, tensor<64x256xf32>, tensor<64x256xf32>
// CHECK: %[[A0:.*]] = tile.dot {{.*}} -> tensor<64x256xf32>
// CHECK: %[[A1:.*]] = tile.dot {{.*}} -> tensor<64x256xf32>
// CHECK: tile.yield_if %{{.*}}, %{{.*}}, %[[A0]], %[[A1]] : tensor<64xi1>, tensor<64xf32>, tensor<64x256xf32>, tensor<64x256xf32>
// CHECK: exact
// CHECK: %[[B0:.*]] = arith.addf
// CHECK: %[[B1:.*]] = arith.addf
// CHECK: tile.yield %{{.*}}, %[[B0]], %[[B1]] : tensor<64xf32>, tensor<64x256xf32>, tensor<64x256xf32>
// CHECK: tile.store %[[OUT]]#1
// CHECK: tile.store %[[OUT]]#2
tile.kernel @speculates(%a: !tile.view<[M, 64], bf16>, %b: !tile.view<[64, 512], bf16>, %limits: !tile.view<[M], f32>,
    %o: !tile.view<[M, 512], f32>, %s: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %at = tile.load %a[%m, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 512], bf16> -> tensor<64x512xbf16>
  %limit = tile.load %limits[%m] : !tile.view<[M], f32> -> tensor<64xf32>
  %sum, %acc = tile.speculate -> tensor<64xf32>, tensor<64x512xf32> {
    %x = tile.dot %at, %bt : tensor<64x64xbf16>, tensor<64x512xbf16> -> tensor<64x512xf32>
    %valid = arith.cmpf ole, %zero, %limit : tensor<64xf32>
    tile.yield_if %valid, %limit, %x : tensor<64xi1>, tensor<64xf32>, tensor<64x512xf32>
  } exact {
    %y = tile.dot %at, %bt : tensor<64x64xbf16>, tensor<64x512xbf16> -> tensor<64x512xf32>
    %z = arith.addf %y, %y : tensor<64x512xf32>
    tile.yield %zero, %z : tensor<64xf32>, tensor<64x512xf32>
  }
  tile.store %acc, %o[%m, %c0] : tensor<64x512xf32>, !tile.view<[M, 512], f32>
  tile.store %sum, %s[%m] : tensor<64xf32>, !tile.view<[M], f32>
}
