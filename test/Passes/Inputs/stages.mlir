// Loops whose stages exchange more than an accumulator and a weight.

// A value of stage 0 from the iteration before, read by stage 1: the second load trails the first by a block.
tile.kernel @carried(%x: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %i0, %sum = scf.for %j = %c0 to %n step %c16 iter_args(%i = %c16, %acc = %zero) -> (index, tensor<64x64xf32>) {
    %k = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<16x64xf16>
    %kt = tile.transpose %k : tensor<16x64xf16> -> tensor<64x16xf16>
    %s = tile.dot %q, %kt : tensor<64x64xf16>, tensor<64x16xf16> -> tensor<64x16xf32>
    %p = math.absf %s : tensor<64x16xf32>
    %ph = arith.truncf %p : tensor<64x16xf32> to tensor<64x16xf16>
    %v = tile.load %x[%i, %c0] : !tile.view<[N, 64], f16> -> tensor<16x64xf16>
    %d = tile.dot %ph, %v, %acc : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>
    scf.yield %j, %d : index, tensor<64x64xf32>
  }
  tile.store %sum, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// Iter_args that are handed on: %b is the accumulator of an iteration earlier, %c that of two earlier, and the loop
// starts above 0.
tile.kernel @shifted(%x: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %one = arith.constant dense<1.0> : tensor<64x64xf32>
  %two = arith.constant dense<2.0> : tensor<64x64xf32>
  %half = arith.constant dense<0.5> : tensor<64x64xf32>
  %q = tile.load %y[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %ra, %rb, %rc = scf.for %j = %c16 to %n step %c16 iter_args(%a = %zero, %b = %one, %c = %two)
      -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
    %k = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<16x64xf16>
    %v = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<16x64xf16>
    %kt = tile.transpose %k : tensor<16x64xf16> -> tensor<64x16xf16>
    %s = tile.dot %q, %kt : tensor<64x64xf16>, tensor<64x16xf16> -> tensor<64x16xf32>
    %p = math.tanh %s : tensor<64x16xf32>
    %ph = arith.truncf %p : tensor<64x16xf32> to tensor<64x16xf16>
    %old = arith.addf %b, %c : tensor<64x64xf32>
    %part = arith.mulf %old, %half : tensor<64x64xf32>
    %sum = arith.addf %a, %part : tensor<64x64xf32>
    %d = tile.dot %ph, %v, %sum : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>
    %e = arith.mulf %d, %half : tensor<64x64xf32>
    scf.yield %e, %a, %b : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
  %rab = arith.addf %ra, %rb : tensor<64x64xf32>
  %r = arith.subf %rab, %rc : tensor<64x64xf32>
  tile.store %r, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// Three dots in a chain, and a row sum beside them.
tile.kernel @chain(%x: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %q = tile.load %y[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum, %l = scf.for %j = %c0 to %n step %c16 iter_args(%acc = %zero, %li = %zeros) -> (tensor<64x64xf32>, tensor<64xf32>) {
    %at = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<16x64xf16>
    %bt = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<16x64xf16>
    %ct = tile.load %y[%j, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
    %atr = tile.transpose %at : tensor<16x64xf16> -> tensor<64x16xf16>
    %s = tile.dot %q, %atr : tensor<64x64xf16>, tensor<64x16xf16> -> tensor<64x16xf32>
    %p = math.absf %s : tensor<64x16xf32>
    %ps = tile.reduce sum %p axis 1 : tensor<64x16xf32> -> tensor<64xf32>
    %ln = arith.addf %li, %ps : tensor<64xf32>
    %ph = arith.truncf %p : tensor<64x16xf32> to tensor<64x16xf16>
    %t = tile.dot %ph, %bt : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>
    %u = math.tanh %t : tensor<64x64xf32>
    %uh = arith.truncf %u : tensor<64x64xf32> to tensor<64x64xf16>
    %lb = tile.broadcast %li axis 1 : tensor<64xf32> -> tensor<64x64xf32>
    %base = arith.addf %acc, %lb : tensor<64x64xf32>
    %d = tile.dot %uh, %ct, %base : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d, %ln : tensor<64x64xf32>, tensor<64xf32>
  }
  %lb1 = tile.broadcast %l axis 1 : tensor<64xf32> -> tensor<64x64xf32>
  %r = arith.addf %sum, %lb1 : tensor<64x64xf32>
  tile.store %r, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
