// C = A * B with 128x256 tiles, K in steps of 64.
tile.kernel @gemm(%a: !tile.view<[M, K], f16>, %b: !tile.view<[K, N], f16>, %c: !tile.view<[M, N], f16>)
    grid(%i = M ceildiv 128, %j = N ceildiv 256) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %k = tile.dim "K"
  %row = arith.muli %i, %c128 : index
  %col = arith.muli %j, %c256 : index
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %sum = scf.for %x = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) {
    %at = tile.load %a[%row, %x] : !tile.view<[M, K], f16> -> tensor<128x64xf16>
    %bt = tile.load %b[%x, %col] : !tile.view<[K, N], f16> -> tensor<64x256xf16>
    %next = tile.dot %at, %bt, %acc : tensor<128x64xf16>, tensor<64x256xf16> -> tensor<128x256xf32>
    scf.yield %next : tensor<128x256xf32>
  }
  %half = arith.truncf %sum : tensor<128x256xf32> to tensor<128x256xf16>
  tile.store %half, %c[%row, %col] : tensor<128x256xf16>, !tile.view<[M, N], f16>
}
