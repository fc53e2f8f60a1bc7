// A sum that is fast while its terms are small: the input of tests of passes that know tile.speculate.

!A = !tile.view<[M, 64], f16>
!B = !tile.view<[N, 64], f16>
!C = !tile.view<[M, 64], f32>

tile.kernel @guess(%a: !A, %b: !B, %c: !C) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %limit = arith.constant dense<1024.0> : tensor<64xf32>
  %row = arith.muli %m, %c64 : index
  %n = tile.dim "N"
  %blocks = arith.ceildivui %n, %c64 : index
  %x = tile.load %a[%row, %c0] : !A -> tensor<64x64xf16>
  %sum = tile.speculate -> tensor<64x64xf32> {
    %b0 = tile.load %b[%c0, %c0] : !B -> tensor<64x64xf16>
    %first = tile.dot %x, %b0 : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %s = scf.for %j = %c1 to %blocks step %c1 iter_args(%acc = %first) -> (tensor<64x64xf32>) {
      %col = arith.muli %j, %c64 : index
      %y = tile.load %b[%col, %c0] : !B -> tensor<64x64xf16>
      %next = tile.dot %x, %y, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %most = tile.reduce max %s axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    %valid = arith.cmpf ole, %most, %limit : tensor<64xf32>
    tile.yield_if %valid, %s : tensor<64xi1>, tensor<64x64xf32>
  } exact {
    %s = scf.for %j = %c0 to %blocks step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %col = arith.muli %j, %c64 : index
      %y = tile.load %b[%col, %c0] : !B -> tensor<64x64xf16>
      %p = tile.dot %x, %y : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %next = arith.addf %acc, %p : tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    tile.yield %s : tensor<64x64xf32>
  }
  tile.store %sum, %c[%row, %c0] : tensor<64x64xf32>, !C
}
