// What `tessera run` saves is what the kernel stored, whatever the storage order, and can be an input again.
// RUN: rm -rf %t && mkdir %t
// RUN: tessera run %s --kernel double --shape M=2,N=3,K=4 --seed 3 --output y=%t/a.npy | FileCheck %s
// RUN: tessera run %s --kernel double --shape M=2,N=3,K=4 --seed 3 --order x=1,0,2 --order y=1,0,2 --output y=%t/b.npy
// RUN: cmp %t/a.npy %t/b.npy
// RUN: tessera run %s --kernel double --input x=%t/a.npy --output y=%t/c.npy
// RUN: not cmp %t/a.npy %t/c.npy
// RUN: %python %S/Inputs/npy_ratio.py %t/a.npy %t/c.npy 2 --shape 2,3,4
// RUN: tessera run %s --kernel double --shape M=2,N=3,K=4 --seed 4 --output y=%t/d.npy
// RUN: not cmp %t/a.npy %t/d.npy
// CHECK: y: f16 [2, 3, 4], largest magnitude {{[0-9.]+}}, 0 NaN, 0 infinite

// Elements that no grid point stores stay NaN; the kernel in double rounds nothing.
// RUN: tessera run %s --kernel half_stored --shape N=8 | FileCheck %s --check-prefix=HALF
// HALF: y: f32 [8], largest magnitude 0.333333, 4 NaN, 0 infinite
// RUN: tessera run %s --kernel half_stored --shape N=8 --check | FileCheck %s --check-prefix=ERROR
// ERROR: y: max error {{[1-9.]+}}e-09 (kernel precision {{[1-9.]+}}e-09), relative Frobenius error {{.*}}: ok
// RUN: tessera run %s --kernel half_stored --shape N=8 --check --precision exact | FileCheck %s --check-prefix=EXACT
// EXACT: y: max error 0.000e+00 (kernel precision {{[1-9.]+}}e-09), relative Frobenius error 0.000e+00

tile.kernel @double(%x: !tile.view<[M, N, K], f16>, %y: !tile.view<[M, N, K], f16>) grid(%n = N ceildiv 2, %m = M) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %row = arith.muli %n, %c2 : index
  %t = tile.load %x[%m, %row, %c0] : !tile.view<[M, N, K], f16> -> tensor<2x8xf16>
  %s = arith.addf %t, %t : tensor<2x8xf16>
  tile.store %s, %y[%m, %row, %c0] : tensor<2x8xf16>, !tile.view<[M, N, K], f16>
}

tile.kernel @half_stored(%y: !tile.view<[N], f32>) grid(%i = 1) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %three = arith.constant dense<3.0> : tensor<4xf32>
  %t = arith.divf %one, %three : tensor<4xf32>
  tile.store %t, %y[%c0] : tensor<4xf32>, !tile.view<[N], f32>
}
