// RUN: tessera-opt %s --tile-choose-schedule -split-input-file -verify-diagnostics
// What no schedule makes machine code of is refused before schedules are tried, with what to write instead.

tile.kernel @missing(%x: !tile.view<[M, 1024], f32>, %y: !tile.view<[M, 1024], f32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 1024], f32> -> tensor<1x1024xf32>
  // expected-error@+1 {{'math.powf' op has no instructions on the machine, whatever the schedule; instead: math.exp2 of y times math.log2 of x}}
  %p = math.powf %t, %t : tensor<1x1024xf32>
  tile.store %p, %y[%m, %c0] : tensor<1x1024xf32>, !tile.view<[M, 1024], f32>
}

// -----

tile.kernel @narrow(%x: !tile.view<[M, 1024], bf16>, %y: !tile.view<[M, 1024], bf16>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 1024], bf16> -> tensor<1x1024xbf16>
  // expected-error@+1 {{'arith.addf' op computes on tiles of 16 or 8 bits; extend them with arith.extf, compute in f32 and round with arith.truncf}}
  %p = arith.addf %t, %t : tensor<1x1024xbf16>
  tile.store %p, %y[%m, %c0] : tensor<1x1024xbf16>, !tile.view<[M, 1024], bf16>
}
