// Attention with a causal mask (bottom-right aligned) and a masked tail: keys after the diagonal are not visited.
tile.kernel @causal(%q: !tile.view<[H, SQ, 64], f16>, %k: !tile.view<[H, SK, 64], f16>, %v: !tile.view<[H, SK, 64], f16>,
    %o: !tile.view<[H, SQ, 64], f16>) grid(%m = SQ ceildiv 64, %h = H) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %sq = tile.dim "SQ"
  %sk = tile.dim "SK"
  %row = arith.muli %m, %c64 : index
  %shift = arith.subi %sk, %sq : index
  %diagonal = arith.addi %row, %shift : index
  %below = arith.addi %diagonal, %c64 : index
  %below_some = arith.maxsi %below, %c0 : index
  %seen = arith.minsi %below_some, %sk : index
  %blocks = arith.ceildivsi %seen, %c32 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %low = arith.constant dense<-1.0e30> : tensor<64xf32>
  %masked = arith.constant dense<0xFF800000> : tensor<64x32xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %qt = tile.load %q[%h, %row, %c0] : !tile.view<[H, SQ, 64], f16> -> tensor<64x64xf16>
  %max, %sum, %acc = scf.for %j = %c0 to %blocks step %c1 iter_args(%mi = %low, %li = %zero, %oi = %none)
      -> (tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>) {
    %col = arith.muli %j, %c32 : index
    %kt = tile.load %k[%h, %col, %c0] : !tile.view<[H, SK, 64], f16> -> tensor<32x64xf16>
    %vt = tile.load %v[%h, %col, %c0] : !tile.view<[H, SK, 64], f16> -> tensor<32x64xf16>
    %ktt = tile.transpose %kt : tensor<32x64xf16> -> tensor<64x32xf16>
    %all = tile.dot %qt, %ktt : tensor<64x64xf16>, tensor<64x32xf16> -> tensor<64x32xf32>
    %cols = tile.iota %col axis 1 : tensor<64x32xi32>
    %sk32 = arith.index_cast %sk : index to i32
    %end = tile.splat %sk32 : i32 -> tensor<64x32xi32>
    %inside = arith.cmpi slt, %cols, %end : tensor<64x32xi32>
    %last = tile.iota %diagonal axis 0 : tensor<64x32xi32>
    %before = arith.cmpi sle, %cols, %last : tensor<64x32xi32>
    %visible = arith.andi %inside, %before : tensor<64x32xi1>
    %s = arith.select %visible, %all, %masked : tensor<64x32xi1>, tensor<64x32xf32>
    %ms = tile.reduce max %s axis 1 : tensor<64x32xf32> -> tensor<64xf32>
    %mn = arith.maxnumf %mi, %ms : tensor<64xf32>
    %mb = tile.broadcast %mn axis 1 : tensor<64xf32> -> tensor<64x32xf32>
    %d = arith.subf %s, %mb : tensor<64x32xf32>
    %p = math.exp2 %d : tensor<64x32xf32>
    %ps = tile.reduce sum %p axis 1 : tensor<64x32xf32> -> tensor<64xf32>
    %da = arith.subf %mi, %mn : tensor<64xf32>
    %alpha = math.exp2 %da : tensor<64xf32>
    %l1 = arith.mulf %li, %alpha : tensor<64xf32>
    %l2 = arith.addf %l1, %ps : tensor<64xf32>
    %ab = tile.broadcast %alpha axis 1 : tensor<64xf32> -> tensor<64x64xf32>
    %o1 = arith.mulf %oi, %ab : tensor<64x64xf32>
    %ph = arith.truncf %p : tensor<64x32xf32> to tensor<64x32xf16>
    %o2 = tile.dot %ph, %vt, %o1 : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %mn, %l2, %o2 : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
  }
  %lb = tile.broadcast %sum axis 1 : tensor<64xf32> -> tensor<64x64xf32>
  %on = arith.divf %acc, %lb : tensor<64x64xf32>
  %oh = arith.truncf %on : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %oh, %o[%h, %row, %c0] : tensor<64x64xf16>, !tile.view<[H, SQ, 64], f16>
}
