// The shape of attention without its softmax: two dependent dots, a row sum and the row's weight. 128x64 tiles.
tile.kernel @small(%q: !tile.view<[M, 64], bf16>, %k: !tile.view<[N, 64], bf16>, %v: !tile.view<[N, 64], bf16>,
    %o: !tile.view<[M, 64], bf16>, %l: !tile.view<[M], f32>) grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<128xf32>
  %qt = tile.load %q[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<128x64xbf16>
  %acc, %sum = scf.for %j = %c0 to %n step %c64 iter_args(%a = %zero, %s = %zeros) -> (tensor<128x64xf32>, tensor<128xf32>) {
    %kt = tile.load %k[%j, %c0] : !tile.view<[N, 64], bf16> -> tensor<64x64xbf16>
    %ktt = tile.transpose %kt : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %d = tile.dot %qt, %ktt : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %p = math.exp2 %d : tensor<128x64xf32>
    %r = tile.reduce sum %p axis 1 : tensor<128x64xf32> -> tensor<128xf32>
    %s1 = arith.addf %s, %r : tensor<128xf32>
    %ph = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
    %vt = tile.load %v[%j, %c0] : !tile.view<[N, 64], bf16> -> tensor<64x64xbf16>
    %a1 = tile.dot %ph, %vt, %a : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %a1, %s1 : tensor<128x64xf32>, tensor<128xf32>
  }
  %w = tile.broadcast %sum axis 1 : tensor<128xf32> -> tensor<128x64xf32>
  %x = arith.divf %acc, %w : tensor<128x64xf32>
  %h = arith.truncf %x : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %h, %o[%row, %c0] : tensor<128x64xbf16>, !tile.view<[M, 64], bf16>
  tile.store %sum, %l[%row] : tensor<128xf32>, !tile.view<[M], f32>
}
