// What no role of its own can sum up.
// RUN: tessera-opt %s --tile-warp-specialize -split-input-file -verify-diagnostics

// Without such a sum.
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = tma, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 128], bf16>
!Sums = !tile.view<[M, 128], f32>
// expected-error@+1 {{cannot have the roles of its schedule: no dot of a computed tile, beside other dots of a loop, has a result that only leaves by a store that adds it; use placement = rows}}
tile.kernel @k(%x: !View, %y: !Sums, %z: !Sums) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> tensor<128x128xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> tensor<64x128xbf16>
    %b_t = tile.transpose %b : tensor<64x128xbf16> -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
    %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
    %new = tile.dot %p, %b, %old : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    scf.yield %new : tensor<128x128xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<128x128xf32>, !Sums
}

// -----

// The result is stored elsewhere too.
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = tma, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 128], bf16>
!Sums = !tile.view<[M, 128], f32>
// expected-error@+1 {{cannot have the roles of its schedule: no dot of a computed tile, beside other dots of a loop, has a result that only leaves by a store that adds it; use placement = rows}}
tile.kernel @k(%x: !View, %y: !Sums, %z: !Sums) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> tensor<128x128xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> tensor<64x128xbf16>
    %b_t = tile.transpose %b : tensor<64x128xbf16> -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
    %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
    %new = tile.dot %p, %b, %old : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    %p_t = tile.transpose %p : tensor<128x64xbf16> -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, tensor<128x128xbf16> -> tensor<64x128xf32>
    tile.store %c, %y[%j, %c0] add : tensor<64x128xf32>, !Sums
    tile.store %c, %z[%j, %c0] : tensor<64x128xf32>, !Sums
    scf.yield %new : tensor<128x128xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<128x128xf32>, !Sums
}

// -----

// No producer.
#s = #tile.schedule<producer = none, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = tma, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 128], bf16>
!Sums = !tile.view<[M, 128], f32>
// expected-error@+1 {{cannot have the roles of its schedule: a reducer gets tiles from a producer; use producer = operands or placement = rows}}
tile.kernel @k(%x: !View, %y: !Sums, %z: !Sums) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> tensor<128x128xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> tensor<64x128xbf16>
    %b_t = tile.transpose %b : tensor<64x128xbf16> -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
    %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
    %new = tile.dot %p, %b, %old : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    %p_t = tile.transpose %p : tensor<128x64xbf16> -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, tensor<128x128xbf16> -> tensor<64x128xf32>
    tile.store %c, %y[%j, %c0] add : tensor<64x128xf32>, !Sums
    scf.yield %new : tensor<128x128xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<128x128xf32>, !Sums
}

// -----

// A writer, for sums that no bulk copy can add.
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = writer, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 128], bf16>
!Sums = !tile.view<[M, 128], f32>
// expected-error@+1 {{cannot have the roles of its schedule: a reducer has sums that cannot leave in bulk, which a writer takes; use store = direct or placement = rows}}
tile.kernel @k(%x: !View, %y: !Sums, %z: !Sums) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> tensor<128x128xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> tensor<64x128xbf16>
    %b_t = tile.transpose %b : tensor<64x128xbf16> -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
    %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
    %new = tile.dot %p, %b, %old : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    %p_t = tile.transpose %p : tensor<128x64xbf16> -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, tensor<128x128xbf16> -> tensor<64x128xf32>
    tile.store %c, %y[%j, %m] add : tensor<64x128xf32>, !Sums
    scf.yield %new : tensor<128x128xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<128x128xf32>, !Sums
}

// -----

// Rotated loops.
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 2, polynomial_exp = 0, pingpong = false, speculate = false, store = tma, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = apart, transpose = 0, work = tiles>
!View = !tile.view<[M, 128], bf16>
!Sums = !tile.view<[M, 128], f32>
// expected-error@+1 {{cannot have the roles of its schedule: a reducer takes the operands of its dots in their own steps; use overlap = 1 or placement = rows}}
tile.kernel @k(%x: !View, %y: !Sums, %z: !Sums) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> tensor<128x128xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x128xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> tensor<64x128xbf16>
    %b_t = tile.transpose %b : tensor<64x128xbf16> -> tensor<128x64xbf16>
    %s = tile.dot %a, %b_t : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
    %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
    %new = tile.dot %p, %b, %old : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
    %p_t = tile.transpose %p : tensor<128x64xbf16> -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, tensor<128x128xbf16> -> tensor<64x128xf32>
    tile.store %c, %y[%j, %c0] add : tensor<64x128xf32>, !Sums
    scf.yield %new : tensor<128x128xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<128x128xf32>, !Sums
}
