// What no role of its own can transpose.
// RUN: tessera-opt %s --tile-warp-specialize -split-input-file -verify-diagnostics

// Every tile is read along its rows.
#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 216, placement = rows, transpose = 4, work = tiles>
!View = !tile.view<[M, 64], f8E4M3FN>
!Out = !tile.view<[M, 64], f32>
!Tile = tensor<128x64xf8E4M3FN>
!Part = tensor<64x64xf8E4M3FN>
!S = tensor<128x64xf32>
// expected-error@+1 {{cannot have the roles of its schedule: no dot reads a loaded tile of 8-bit elements along its columns, beside a computed one; use transpose = 0}}
tile.kernel @k(%x: !View, %y: !View, %z: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (!S) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> !Part
    %new = tile.dot %a, %b_t, %old : !Tile, !Part -> !S
    scf.yield %new : !S
  }
  tile.store %sum, %z[%m, %c0] : !S, !Out
}

// -----

// No producer.
#s = #tile.schedule<producer = none, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 216, placement = rows, transpose = 4, work = tiles>
!View = !tile.view<[M, 64], f8E4M3FN>
!Out = !tile.view<[M, 64], f32>
!Tile = tensor<128x64xf8E4M3FN>
!Part = tensor<64x64xf8E4M3FN>
!S = tensor<128x64xf32>
// expected-error@+1 {{cannot have the roles of its schedule: a transposer gets tiles from a producer; use producer = operands or transpose = 0}}
tile.kernel @k(%x: !View, %y: !View, %z: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (!S) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> !Part
    %s = tile.dot %a, %b_t : !Tile, !Part -> !S
    %p = arith.truncf %s : !S to !Tile
    %v = tile.load %y[%j, %c0] : !View -> !Part
    %new = tile.dot %p, %v, %old : !Tile, !Part -> !S
    scf.yield %new : !S
  }
  tile.store %sum, %z[%m, %c0] : !S, !Out
}

// -----

// A reducer takes the registers.
#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 216, placement = apart, transpose = 4, work = tiles>
!View = !tile.view<[M, 64], f8E4M3FN>
!Out = !tile.view<[M, 64], f32>
!Tile = tensor<128x64xf8E4M3FN>
!Part = tensor<64x64xf8E4M3FN>
!S = tensor<128x64xf32>
// expected-error@+1 {{cannot have the roles of its schedule: no dot of a computed tile, beside other dots of a loop, has a result that only leaves by a store that adds it; use placement = rows}}
tile.kernel @k(%x: !View, %y: !View, %z: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (!S) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> !Part
    %s = tile.dot %a, %b_t : !Tile, !Part -> !S
    %p = arith.truncf %s : !S to !Tile
    %v = tile.load %y[%j, %c0] : !View -> !Part
    %new = tile.dot %p, %v, %old : !Tile, !Part -> !S
    scf.yield %new : !S
  }
  tile.store %sum, %z[%m, %c0] : !S, !Out
}

// -----

// A tile that is read both ways.
#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 216, placement = rows, transpose = 4, work = tiles>
!View = !tile.view<[M, 64], f8E4M3FN>
!Out = !tile.view<[M, 64], f32>
!Tile = tensor<128x64xf8E4M3FN>
!Part = tensor<64x64xf8E4M3FN>
!S = tensor<128x64xf32>
// expected-error@+1 {{cannot have the roles of its schedule: a tile that a dot reads along its columns is read as it is loaded too (line}}
tile.kernel @k(%x: !View, %y: !View, %z: !Out) grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %a = tile.load %x[%m, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (!S) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> !Part
    %s = tile.dot %a, %b_t : !Tile, !Part -> !S
    %p = arith.truncf %s : !S to !Tile
    %new = tile.dot %p, %b, %old : !Tile, !Part -> !S
    scf.yield %new : !S
  }
  tile.store %sum, %z[%m, %c0] : !S, !Out
}
