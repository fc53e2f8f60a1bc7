// What a writer cannot store.
// RUN: tessera-opt %s --tile-warp-specialize -split-input-file -verify-diagnostics

#s = #tile.schedule<producer = none, consumers = 2, stages = 2, outer_stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = writer, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = rows, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Acc = tensor<128x64xf32>
// expected-error@+1 {{cannot have the roles of its schedule: store = writer needs a producer, beside which the writer runs; use producer = operands or store = tma}}
tile.kernel @k(%x: !View, %y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> tensor<128x64xbf16>
  %b = tile.load %x[%c0, %c0] : !View -> tensor<64x64xbf16>
  %s = tile.dot %a, %b : tensor<128x64xbf16>, tensor<64x64xbf16> -> !Acc
  tile.store %s, %y[%first, %c0] : !Acc, !tile.view<[M, 64], f32>
}

// -----

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = writer, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = rows, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Acc = tensor<128x64xf32>
tile.kernel @k(%x: !View, %y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> tensor<128x64xbf16>
  %b = tile.load %x[%c0, %c0] : !View -> tensor<64x64xbf16>
  %s = tile.dot %a, %b : tensor<128x64xbf16>, tensor<64x64xbf16> -> !Acc
  %row = arith.subi %c0, %first : index
  // expected-error@+1 {{stores at indices that are not known to be 0 or more, where no bulk store can start; use store = direct}}
  tile.store %s, %y[%row, %c0] : !Acc, !tile.view<[M, 64], f32>
}

// -----

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = writer, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = rows, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Acc = tensor<128x64xf32>
tile.kernel @k(%x: !View, %y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> tensor<128x64xbf16>
  %b = tile.load %x[%c0, %c0] : !View -> tensor<64x64xbf16>
  %s = tile.dot %a, %b : tensor<128x64xbf16>, tensor<64x64xbf16> -> !Acc
  // expected-note@+1 {{stored here}}
  tile.store %s, %y[%first, %c0] : !Acc, !tile.view<[M, 64], f32>
  // expected-error@+1 {{may touch elements that the same grid point stores before; a writer stores while the program goes on (store = writer); use store = direct}}
  %t = tile.load %y[%first, %c0] : !tile.view<[M, 64], f32> -> !Acc
}

// -----

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = writer, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = rows, transpose = 0, work = tiles>
!Acc = tensor<128x64xf32>
tile.kernel @k(%y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %first = arith.muli %m, %c128 : index
  %one = arith.constant dense<1.0> : !Acc
  // expected-error@+1 {{is of a kernel that needs no dot for what it stores, whose warpgroups have no rows to hand to a writer; use store = direct}}
  tile.store %one, %y[%first, %c0] : !Acc, !tile.view<[M, 64], f32>
}
