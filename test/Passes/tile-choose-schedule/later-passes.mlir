// What later passes would refuse is not chosen.
//
// RUN: tessera-opt %s -split-input-file --tile-choose-schedule 2>&1 | FileCheck %s
// RUN: not tessera-opt %s -split-input-file --tile-override-schedule=schedule=pingpong=true --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=TURNS

// The largest of each column is that of the rows of both warpgroups.
// CHECK: remark: schedule rejected: producer = operands, overlap = 1, consumers = 2: line [[#@LINE+16]]: reduces along rows that are divided among the consumer warpgroups; use consumers = 1
// CHECK: remark: schedule chosen: {{.*}}consumers = 1,
tile.kernel @transposed(%k: !tile.view<[S, 128], bf16>, %v: !tile.view<[S, 64], bf16>, %o: !tile.view<[G, 64], f32>)
    grid(%g = G) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %n = tile.dim "S"
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%s = %zero) -> (tensor<128x64xf32>) {
    %kt = tile.load %k[%j, %c0] : !tile.view<[S, 128], bf16> -> tensor<64x128xbf16>
    %vt = tile.load %v[%j, %c0] : !tile.view<[S, 64], bf16> -> tensor<64x64xbf16>
    %k_t = tile.transpose %kt : tensor<64x128xbf16> -> tensor<128x64xbf16>
    %d = tile.dot %k_t, %vt, %s : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  %most = tile.reduce max %r axis 0 : tensor<128x64xf32> -> tensor<64xf32>
  tile.store %most, %o[%g, %c0] : tensor<64xf32>, !tile.view<[G, 64], f32>
}

// -----

// Turns are those of a loop's steps, and this loop's steps hold another loop.
// TURNS: ping-pong needs work between dependent dots in a loop that holds no other loop
// CHECK: remark: schedule chosen: {{.*}}consumers = 2,{{.*}}pingpong = false,
tile.kernel @nested(%q: !tile.view<[M, 64], bf16>, %k: !tile.view<[M, 64], bf16>, %f: !tile.view<[M, 64], f32>, %o: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 128) schedule #tile.schedule<consumers = 2, overlap = 1> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %m, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %n = tile.dim "M"
  %qt = tile.load %q[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<128x64xbf16>
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x64xf32>) {
    %kt = tile.load %k[%j, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
    %k_t = tile.transpose %kt : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %s = tile.dot %qt, %k_t : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %t = scf.for %i = %c0 to %n step %c64 iter_args(%u = %s) -> (tensor<128x64xf32>) {
      %ft = tile.load %f[%i, %c0] : !tile.view<[M, 64], f32> -> tensor<128x64xf32>
      %e = arith.addf %u, %ft : tensor<128x64xf32>
      scf.yield %e : tensor<128x64xf32>
    }
    %p = math.exp2 %t : tensor<128x64xf32>
    %pt = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
    %a = tile.dot %pt, %kt, %acc : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %a : tensor<128x64xf32>
  }
  tile.store %r, %o[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
}
