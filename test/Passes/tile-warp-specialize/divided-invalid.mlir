// What consumers with different dots cannot be.
// RUN: %cases %s | tessera-opt --tile-warp-specialize -split-input-file -verify-diagnostics

// One accumulator in the loop.
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = divided, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
!S    = tensor<64x64xf32>
// expected-error@+1 {{its loops carry 1 accumulators of dots, of which each of 2 consumers or more wants one; use placement = rows}}
tile.kernel @k(%x: !View, %y: !View, %z: !View, %w: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %s1, %s2 = scf.for %j = %c0 to %rows step %c64 iter_args(%old1 = %zero, %old2 = %zero) -> (!S, !S) {
    %b = tile.load %x[%j, %c0] : !View -> !Tile
    %s = tile.dot %a, %b : !Tile, !Tile -> !S
    %p = arith.truncf %s : !S to !Tile
    %new1 = tile.dot %p, %b, %old1 : !Tile, !Tile -> !S
    %new2 = arith.addf %old2, %s : !S
    scf.yield %new1, %new2 : !S, !S
  }
  %t1 = arith.truncf %s1 : !S to !Tile
  %t2 = arith.truncf %s2 : !S to !Tile
  tile.store %t1, %z[%first, %c0] : !Tile, !View
  tile.store %t2, %w[%first, %c0] : !Tile, !View
}

// FRAME
// HERE
tile.kernel @k(%x: !View, %y: !View, %z: !View, %w: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %s1, %s2 = scf.for %j = %c0 to %rows step %c64 iter_args(%old1 = %zero, %old2 = %zero) -> (!S, !S) {
    %b = tile.load %x[%j, %c0] : !View -> !Tile
    %s = tile.dot %a, %b : !Tile, !Tile -> !S
    %p = arith.truncf %s : !S to !Tile
    %new1 = tile.dot %p, %b, %old1 : !Tile, !Tile -> !S
    %new2 = tile.dot %p, %a, %old2 : !Tile, !Tile -> !S
    scf.yield %new1, %new2 : !S, !S
  }
  %t1 = arith.truncf %s1 : !S to !Tile
  %t2 = arith.truncf %s2 : !S to !Tile
  tile.store %t1, %z[%first, %c0] : !Tile, !View
  tile.store %t2, %w[%first, %c0] : !Tile, !View
}

// CASE
// No producer.
#s = #tile.schedule<producer = none, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = divided, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
!S    = tensor<64x64xf32>
// expected-error@+1 {{cannot have the roles of its schedule: consumers with different dots get tiles from a producer; use producer = operands or placement = rows}}

// CASE
// Rotated loops.
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 2, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = divided, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
!S    = tensor<64x64xf32>
// expected-error@+1 {{cannot have the roles of its schedule: consumers with different dots take the operands of their dots in their own steps; use overlap = 1 or placement = rows}}

// CASE
// A writer.
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = writer, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = divided, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
!S    = tensor<64x64xf32>
// expected-error@+1 {{cannot have the roles of its schedule: consumers with different dots store their results themselves; use store = tma or direct, or placement = rows}}

// -----
// A statistic of columns crosses.
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = divided, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
!S    = tensor<64x64xf32>
tile.kernel @k(%x: !View, %y: !View, %z: !View, %w: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %s1, %s2 = scf.for %j = %c0 to %rows step %c64 iter_args(%old1 = %zero, %old2 = %zero) -> (!S, !S) {
    %b = tile.load %x[%j, %c0] : !View -> !Tile
    %s = tile.dot %a, %b : !Tile, !Tile -> !S
    %p = arith.truncf %s : !S to !Tile
    %new1 = tile.dot %p, %b, %old1 : !Tile, !Tile -> !S
    // expected-error@+1 {{is made by one consumer and needed by another one (placement = divided), and a vector goes from one to the other as f32, one for each row, a multiple of 64 of them; use placement = rows}}
    %max = tile.reduce max %s axis 0 : !S -> tensor<64xf32>
    %more = arith.mulf %max, %max : tensor<64xf32>
    %more_s = tile.broadcast %more axis 0 : tensor<64xf32> -> !S
    %less = arith.subf %s, %more_s : !S
    %less_t = arith.truncf %less : !S to !Tile
    %new0 = tile.dot %less_t, %b, %new1 : !Tile, !Tile -> !S
    %g = tile.dot %a, %a : !Tile, !Tile -> !S
    %max_s = tile.broadcast %max axis 0 : tensor<64xf32> -> !S
    %scaled = arith.mulf %g, %max_s : !S
    %q = arith.truncf %scaled : !S to !Tile
    %new2 = tile.dot %q, %a, %old2 : !Tile, !Tile -> !S
    scf.yield %new0, %new2 : !S, !S
  }
  %t1 = arith.truncf %s1 : !S to !Tile
  %t2 = arith.truncf %s2 : !S to !Tile
  tile.store %t1, %z[%first, %c0] : !Tile, !View
  tile.store %t2, %w[%first, %c0] : !Tile, !View
}

// -----
// Each accumulator has a dot of its own, and nothing is left for a third consumer.
#s = #tile.schedule<producer = all, consumers = 3, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = divided, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
!S    = tensor<64x64xf32>
// expected-error@+1 {{its loops carry 2 accumulators of dots, and no dot that a consumer beside theirs could have leads to several of them; use 2 consumers or fewer}}
tile.kernel @k(%x: !View, %y: !View, %z: !View, %w: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %s1, %s2 = scf.for %j = %c0 to %rows step %c64 iter_args(%old1 = %zero, %old2 = %zero) -> (!S, !S) {
    %b = tile.load %x[%j, %c0] : !View -> !Tile
    %new1 = tile.dot %a, %b, %old1 : !Tile, !Tile -> !S
    %new2 = tile.dot %b, %a, %old2 : !Tile, !Tile -> !S
    scf.yield %new1, %new2 : !S, !S
  }
  %t1 = arith.truncf %s1 : !S to !Tile
  %t2 = arith.truncf %s2 : !S to !Tile
  tile.store %t1, %z[%first, %c0] : !Tile, !View
  tile.store %t2, %w[%first, %c0] : !Tile, !View
}

// -----
// Both store to one view.
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = divided, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
!S    = tensor<64x64xf32>
tile.kernel @k(%x: !View, %y: !View, %z: !View, %w: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : !S
  %s1, %s2 = scf.for %j = %c0 to %rows step %c64 iter_args(%old1 = %zero, %old2 = %zero) -> (!S, !S) {
    %b = tile.load %x[%j, %c0] : !View -> !Tile
    %s = tile.dot %a, %b : !Tile, !Tile -> !S
    %p = arith.truncf %s : !S to !Tile
    %new1 = tile.dot %p, %b, %old1 : !Tile, !Tile -> !S
    %new2 = tile.dot %p, %a, %old2 : !Tile, !Tile -> !S
    scf.yield %new1, %new2 : !S, !S
  }
  %t1 = arith.truncf %s1 : !S to !Tile
  %t2 = arith.truncf %s2 : !S to !Tile
  // expected-error@+1 {{stores to what another role touches, and roles have no order in memory (placement = divided); use placement = rows}}
  tile.store %t1, %z[%first, %c0] : !Tile, !View
  tile.store %t2, %z[%first, %c0] : !Tile, !View
}

// -----
// Registers of three consumers, and registers of each of two that run one program.
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = [224, 192, 24], placement = divided, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
// expected-error@+1 {{has registers for 3 consumers of different programs, and 2 of these; use as many numbers for consumer_registers}}
tile.kernel @k(%x: !View, %z: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  tile.store %a, %z[%first, %c0] : !Tile, !View
}

// -----
#s = #tile.schedule<producer = all, consumers = 2, stages = 2, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = none, order = linear, section = 1, cluster = 1, producer_registers = 24, consumer_registers = [224, 192], placement = rows, transpose = 0, work = tiles>
!View = !tile.view<[M, 64], bf16>
!Tile = tensor<64x64xbf16>
// expected-error@+1 {{has registers for 2 consumers of different programs, and consumers of one program; use one number for consumer_registers}}
tile.kernel @k(%x: !View, %z: !View) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %first = arith.muli %m, %c64 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  tile.store %a, %z[%first, %c0] : !Tile, !View
}
