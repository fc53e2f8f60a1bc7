// A sum over a band of keys with a squared-ReLU weight, no rescaling: two dots with other work between them. A row r
// sees the columns r - 100 <= c <= r; blocks outside the band of the tile are not visited.
tile.kernel @window(%q: !tile.view<[S, 64], f16>, %k: !tile.view<[S, 64], f16>, %v: !tile.view<[S, 64], f16>,
    %o: !tile.view<[S, 64], f32>) grid(%m = S ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %m, %c64 : index
  %s = tile.dim "S"
  %left = arith.subi %row, %c128 : index
  %first = arith.maxsi %left, %c0 : index
  %past = arith.addi %row, %c64 : index
  %end = arith.minsi %past, %s : index
  %width = arith.constant dense<100> : tensor<64x32xi32>
  %none = arith.constant dense<0.0> : tensor<64x32xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %qt = tile.load %q[%row, %c0] : !tile.view<[S, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %col = %first to %end step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %kt = tile.load %k[%col, %c0] : !tile.view<[S, 64], f16> -> tensor<32x64xf16>
    %ktt = tile.transpose %kt : tensor<32x64xf16> -> tensor<64x32xf16>
    %all = tile.dot %qt, %ktt : tensor<64x64xf16>, tensor<64x32xf16> -> tensor<64x32xf32>
    %cols = tile.iota %col axis 1 : tensor<64x32xi32>
    %rows = tile.iota %row axis 0 : tensor<64x32xi32>
    %after = arith.cmpi sgt, %cols, %rows : tensor<64x32xi32>
    %reach = arith.addi %cols, %width : tensor<64x32xi32>
    %before = arith.cmpi slt, %reach, %rows : tensor<64x32xi32>
    %hidden = arith.ori %after, %before : tensor<64x32xi1>
    %x = arith.select %hidden, %none, %all : tensor<64x32xi1>, tensor<64x32xf32>
    %r = arith.maxnumf %x, %none : tensor<64x32xf32>
    %w = arith.mulf %r, %r : tensor<64x32xf32>
    %wh = arith.truncf %w : tensor<64x32xf32> to tensor<64x32xf16>
    %vt = tile.load %v[%col, %c0] : !tile.view<[S, 64], f16> -> tensor<32x64xf16>
    %next = tile.dot %wh, %vt, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %sum, %o[%row, %c0] : tensor<64x64xf32>, !tile.view<[S, 64], f32>
}
