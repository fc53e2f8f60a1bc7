// Where no role can convert an operand.
// RUN: tessera-opt %s --tile-warp-specialize -split-input-file -verify-diagnostics

// No producer.
#s = #tile.schedule<producer = none, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = rows, transpose = 0, work = tiles>
!Q = !tile.view<[M, 64], bf16>
!View = !tile.view<[M, 64], f8E4M3FN>
!Out = !tile.view<[M, 64], f32>
// expected-error@+1 {{cannot have the roles of its schedule: operand b of a dot is converted on its way, by a role that gets tiles from a producer; use producer = operands}}
tile.kernel @k(%q: !Q, %x: !View, %z: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %a = tile.load %q[%m, %c0] : !Q -> tensor<128x64xbf16>
  %b8 = tile.load %x[%c0, %c0] : !View -> tensor<64x64xf8E4M3FN>
  %b = arith.extf %b8 : tensor<64x64xf8E4M3FN> to tensor<64x64xbf16>
  %s = tile.dot %a, %b : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
  tile.store %s, %z[%m, %c0] : tensor<128x64xf32>, !Out
}

// -----

// No sum for a reducer beside it.
#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = apart, transpose = 0, work = tiles>
!Q = !tile.view<[M, 64], bf16>
!View = !tile.view<[M, 64], f8E4M3FN>
!Out = !tile.view<[M, 64], f32>
// expected-error@+1 {{cannot have the roles of its schedule: no dot of a computed tile, beside other dots of a loop, has a result that only leaves by a store that adds it; use placement = rows}}
tile.kernel @k(%q: !Q, %x: !View, %z: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %a = tile.load %q[%m, %c0] : !Q -> tensor<128x64xbf16>
  %b8 = tile.load %x[%c0, %c0] : !View -> tensor<64x64xf8E4M3FN>
  %b = arith.extf %b8 : tensor<64x64xf8E4M3FN> to tensor<64x64xbf16>
  %s = tile.dot %a, %b : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
  tile.store %s, %z[%m, %c0] : tensor<128x64xf32>, !Out
}

// -----

// Nothing for a transposer beside it.
#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 208, placement = rows, transpose = 4, work = tiles>
!Q = !tile.view<[M, 64], bf16>
!View = !tile.view<[M, 64], f8E4M3FN>
!Out = !tile.view<[M, 64], f32>
// expected-error@+1 {{cannot have the roles of its schedule: no dot reads a loaded tile of 8-bit elements along its columns, beside a computed one; use transpose = 0}}
tile.kernel @k(%q: !Q, %x: !View, %z: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %a = tile.load %q[%m, %c0] : !Q -> tensor<128x64xbf16>
  %b8 = tile.load %x[%c0, %c0] : !View -> tensor<64x64xf8E4M3FN>
  %b = arith.extf %b8 : tensor<64x64xf8E4M3FN> to tensor<64x64xbf16>
  %s = tile.dot %a, %b : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
  tile.store %s, %z[%m, %c0] : tensor<128x64xf32>, !Out
}
