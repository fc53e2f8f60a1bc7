// Attention with a masked tail of keys, 128x128 tiles, D = 128.
tile.kernel @attention_fwd(%q: !tile.view<[B, H, SQ, 128], bf16>, %k: !tile.view<[B, HK, SK, 128], bf16>,
    %v: !tile.view<[B, HK, SK, 128], bf16>, %o: !tile.view<[B, H, SQ, 128], bf16>,
    %lse: !tile.view<[B, H, SQ], f32>, %scale: f32)
    grid(%m = SQ ceildiv 128, %h = H, %b = B) requires(HK divides H) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bm = arith.constant 128 : index
  %bn = arith.constant 128 : index
  %sk = tile.dim "SK"
  %heads = tile.dim "H"
  %kvheads = tile.dim "HK"
  %group = arith.divui %heads, %kvheads : index
  %hk = arith.divui %h, %group : index
  %row = arith.muli %m, %bm : index
  %qt = tile.load %q[%b, %h, %row, %c0] : !tile.view<[B, H, SQ, 128], bf16> -> tensor<128x128xbf16>
  %ninf = arith.constant dense<0xFF800000> : tensor<128xf32>
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %ozero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sninf = arith.constant dense<0xFF800000> : tensor<128x128xf32>
  %log2e = arith.constant 1.44269504 : f32
  %sl2 = arith.mulf %scale, %log2e : f32
  %sl2t = tile.splat %sl2 : f32 -> tensor<128x128xf32>
  %sl2r = tile.splat %sl2 : f32 -> tensor<128xf32>
  %n = arith.ceildivui %sk, %bn : index
  %mf, %lf, %of = scf.for %j = %c0 to %n step %c1 iter_args(%mi = %ninf, %l = %zero, %oacc = %ozero)
      -> (tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>) {
    %col = arith.muli %j, %bn : index
    %kt = tile.load %k[%b, %hk, %col, %c0] : !tile.view<[B, HK, SK, 128], bf16> -> tensor<128x128xbf16>
    %ktt = tile.transpose %kt : tensor<128x128xbf16> -> tensor<128x128xbf16>
    %s = tile.dot %qt, %ktt : tensor<128x128xbf16>, tensor<128x128xbf16> -> tensor<128x128xf32>
    %cols = tile.iota %col axis 1 : tensor<128x128xi32>
    %ski = arith.index_cast %sk : index to i32
    %lim = tile.splat %ski : i32 -> tensor<128x128xi32>
    %in = arith.cmpi slt, %cols, %lim : tensor<128x128xi32>
    %sm = arith.select %in, %s, %sninf : tensor<128x128xi1>, tensor<128x128xf32>
    %rm = tile.reduce max %sm axis 1 : tensor<128x128xf32> -> tensor<128xf32>
    %mn = arith.maxnumf %mi, %rm : tensor<128xf32>
    %ms = arith.mulf %mn, %sl2r : tensor<128xf32>
    %mb = tile.broadcast %ms axis 1 : tensor<128xf32> -> tensor<128x128xf32>
    %x = arith.mulf %sm, %sl2t : tensor<128x128xf32>
    %y = arith.subf %x, %mb : tensor<128x128xf32>
    %p = math.exp2 %y : tensor<128x128xf32>
    %ps = tile.reduce sum %p axis 1 : tensor<128x128xf32> -> tensor<128xf32>
    %mo = arith.mulf %mi, %sl2r : tensor<128xf32>
    %da = arith.subf %mo, %ms : tensor<128xf32>
    %al = math.exp2 %da : tensor<128xf32>
    %l1 = arith.mulf %l, %al : tensor<128xf32>
    %l2 = arith.addf %l1, %ps : tensor<128xf32>
    %alb = tile.broadcast %al axis 1 : tensor<128xf32> -> tensor<128x128xf32>
    %o1 = arith.mulf %oacc, %alb : tensor<128x128xf32>
    %ph = arith.truncf %p : tensor<128x128xf32> to tensor<128x128xbf16>
    %vt = tile.load %v[%b, %hk, %col, %c0] : !tile.view<[B, HK, SK, 128], bf16> -> tensor<128x128xbf16>
    %o2 = tile.dot %ph, %vt, %o1 : tensor<128x128xbf16>, tensor<128x128xbf16> -> tensor<128x128xf32>
    scf.yield %mn, %l2, %o2 : tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>
  }
  %lb = tile.broadcast %lf axis 1 : tensor<128xf32> -> tensor<128x128xf32>
  %on = arith.divf %of, %lb : tensor<128x128xf32>
  %oh = arith.truncf %on : tensor<128x128xf32> to tensor<128x128xbf16>
  tile.store %oh, %o[%b, %h, %row, %c0] : tensor<128x128xbf16>, !tile.view<[B, H, SQ, 128], bf16>
  tile.store %lf, %lse[%b, %h, %row] : tensor<128xf32>, !tile.view<[B, H, SQ], f32>
}
