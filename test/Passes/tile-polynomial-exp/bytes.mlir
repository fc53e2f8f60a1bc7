// Exponents of 8-bit products are less precise than a polynomial of third degree, which serves although the sum stays f32.
//
// RUN: tessera-opt %s --tile-polynomial-exp -verify-diagnostics | FileCheck %s

!K = !tile.view<[N, 64], f8E4M3FN>
!Tile = tensor<64x64xf8E4M3FN>
!S = tensor<64x64xf32>
!Row = tensor<64xf32>

tile.kernel @bytes(%a: !K, %k: !K, %l: !tile.view<[N], f32>) grid(%i = N ceildiv 64) schedule #tile.schedule<polynomial_exp = 5> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %i, %c64 : index
  %n = tile.dim "N"
  %two = arith.constant dense<2.0> : !S
  %zeros = arith.constant dense<0.0> : !Row
  %at = tile.load %a[%row, %c0] : !K -> !Tile
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%old = %zeros) -> (!Row) {
    %kt = tile.load %k[%j, %c0] : !K -> !Tile
    %k_t = tile.transpose %kt : !Tile -> !Tile
    %s = tile.dot %at, %k_t : !Tile, !Tile -> !S
    %x = arith.mulf %s, %two : !S
    // CHECK: math.exp2 %{{[^ ]+}} {tile.polynomial = 5 : i64} : tensor<64x64xf32>
    // expected-remark @+1 {{5 of 16 exponentials are polynomials}}
    %p = math.exp2 %x : !S
    %r = tile.reduce sum %p axis 1 : !S -> !Row
    %new = arith.addf %old, %r : !Row
    scf.yield %new : !Row
  }
  tile.store %sum, %l[%row] : !Row, !tile.view<[N], f32>
}
