// Kernels that cannot be divided into roles, and why.
// RUN: %cases %s | tessera-opt --tile-warp-specialize -split-input-file -verify-diagnostics

#s = #tile.schedule<producer = operands, consumers = 2, stages = 2, overlap = 1>
// expected-error@+1 {{has a schedule without outer_stages, polynomial_exp, pingpong, speculate, store, persistent, order, section, cluster, producer_registers, consumer_registers, placement, transpose, work; run tile-choose-schedule first}}
tile.kernel @schedule(%x: !tile.view<[M, 64], f16>) grid(%m = M) schedule #s {
}

// -----
#s = #tile.schedule<producer = operands, consumers = 2, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  // expected-note@+1 {{loaded here; load it a second time for this use}}
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  // expected-error@+1 {{uses a loaded tile that is also an operand of a dot, and so lies in shared memory}}
  %e = arith.extf %b : tensor<64x64xf16> to tensor<64x64xf32>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 2, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  // expected-note@+1 {{loaded here}}
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %t = tile.transpose %b : tensor<64x64xf16> -> tensor<64x64xf16>
  // expected-error@+1 {{uses a loaded tile that is also an operand of a dot}}
  tile.store %t, %y[%c0, %c0] : tensor<64x64xf16>, !tile.view<[N, 64], f16>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 1, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x16xf16>
  // expected-error@+1 {{feeds a dot, so its rows are a multiple of 32 bytes and their number one of 8; got 'tensor<16x8xf16>'}}
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<16x8xf16>
  %d = tile.dot %a, %b : tensor<128x16xf16>, tensor<16x8xf16> -> tensor<128x8xf32>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 2, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  // expected-error@+1 {{shares a pipe with loads of 'tensor<128x64xf16>', but loads 'tensor<64x64xf16>'}}
  %b = tile.load %y[%c0, %c0] pipe 0 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 2, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  // expected-error@+1 {{the address of a load depends on the elements of this tile; a producer has no tiles in registers}}
  %i = tile.iota %c0 axis 0 : tensor<128x64xi32>
  %at = builtin.unrealized_conversion_cast %i : tensor<128x64xi32> to index
  %e = tile.load %y[%at, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %f = tile.dot %a, %e, %d : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 1, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  // expected-error@+1 {{holds a load; loads stand in scf.for and scf.if}}
  %w:2 = scf.while (%i = %c0, %u = %zero) : (index, tensor<128x64xf32>) -> (index, tensor<128x64xf32>) {
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i, %u : index, tensor<128x64xf32>
  } do {
  ^bb0(%i: index, %u: tensor<128x64xf32>):
    %e = tile.load %y[%i, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %f = tile.dot %a, %e, %u : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    %next = arith.addi %i, %c64 : index
    scf.yield %next, %f : index, tensor<128x64xf32>
  }
}

// -----
#s = #tile.schedule<producer = operands, consumers = 1, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  // expected-error@+1 {{is not supported in a kernel; control flow is scf.for and scf.if}}
  %w = scf.while (%i = %c64) : (index) -> index {
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i : index
  } do {
  ^bb0(%i: index):
    %next = arith.addi %i, %i : index
    scf.yield %next : index
  }
}

// -----
#s = #tile.schedule<producer = operands, consumers = 2, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %c = tile.load %y[%c64, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  // expected-error@+1 {{transposes a tile that no dot reads as it is: for arithmetic it is in registers, where one warpgroup transposes what it loads for arithmetic alone or stores, and others the operands of dots}}
  %t = tile.transpose %c : tensor<64x64xf16> -> tensor<64x64xf16>
  // expected-note@+1 {{read here; compute with the tile as it is and make the transposed product, B^T A^T for A B}}
  %f = arith.extf %t : tensor<64x64xf16> to tensor<64x64xf32>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 1, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  // expected-error@+1 {{transposes a tile that no dot reads as it is}}
  %t = tile.transpose %d : tensor<128x64xf32> -> tensor<64x128xf32>
  // expected-note@+1 {{read here}}
  %f = arith.negf %t : tensor<64x128xf32>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 2, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = divided, transpose = 0, work = tiles>
// expected-error@+1 {{cannot have the roles of its schedule: consumers with different dots do not go with operand b of a dot that consumers compute together; use placement = rows}}
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = arith.constant dense<1.0> : tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 1, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = apart, transpose = 0, work = tiles>
// expected-error@+1 {{cannot have the roles of its schedule: no dot of a computed tile, beside other dots of a loop, has a result that only leaves by a store that adds it; use placement = rows}}
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = arith.constant dense<1.0> : tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
}

// FRAME
#s = #tile.schedule<producer = operands, consumers = 2, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  // HERE
}

// CASE
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  // expected-error@+1 {{is a constant tile of different elements; build it from tile.iota}}
  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>

// CASE
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %one = arith.constant dense<1.0> : tensor<1xf32>
  // expected-error@+1 {{a tile of 1 rows cannot be divided among 2 consumer warpgroups; choose consumers that divide it}}
  tile.store %one, %l[%c0] : tensor<1xf32>, !tile.view<[N], f32>

// CASE
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  // expected-error@+1 {{a tile of 17 rows cannot be divided among 2 consumer warpgroups}}
  %r = tile.load %l[%c0] : !tile.view<[N], f32> -> tensor<17xf32>
  tile.store %r, %l[%c0] : tensor<17xf32>, !tile.view<[N], f32>

// CASE
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %r = tile.load %l[%c0] : !tile.view<[N], f32> -> tensor<128xf32>
  %cb = tile.broadcast %r axis 0 : tensor<128xf32> -> tensor<128x128xf32>
  %rb = tile.broadcast %r axis 1 : tensor<128xf32> -> tensor<128x64xf32>
  // expected-error@+1 {{needs a tile both divided by rows among the consumer warpgroups and whole in each of them; use consumers = 1, or compute it twice}}
  %x1 = arith.addf %d, %rb : tensor<128x64xf32>

// CASE
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  // expected-error@+1 {{reduces along rows that are divided among the consumer warpgroups; use consumers = 1}}
  %r = tile.reduce max %d axis 0 : tensor<128x64xf32> -> tensor<64xf32>

// CASE
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<128x64xf16>
  %a = tile.load %x[%c0, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %w = tile.load %y[%c64, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %s = tile.dot %a, %w : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
  %t = tile.transpose %p : tensor<128x64xf16> -> tensor<64x128xf16>
  %d = tile.dot %t, %b : tensor<64x128xf16>, tensor<128x64xf16> -> tensor<64x64xf32>
  // expected-error@+1 {{takes a partial sum, of which each of the 2 consumer warpgroups has the part of its rows: it may be scaled by a number, added to another partial sum, or carried by a loop, and only a store that adds it to memory (tile.store ... add) resolves it; use one, or consumers = 1}}
  tile.store %d, %z[%c0, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>

// CASE
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<128x64xf16>
  %a = tile.load %x[%c0, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %w = tile.load %y[%c64, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %s = tile.dot %a, %w : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
  %t = tile.transpose %p : tensor<128x64xf16> -> tensor<64x128xf16>
  %d = tile.dot %t, %b : tensor<64x128xf16>, tensor<128x64xf16> -> tensor<64x64xf32>
  // expected-error@+1 {{computes with a partial sum, of which each of the 2 consumer warpgroups has a part: it may be scaled by a number or added to another one; add it to memory (tile.store ... add) and go on in a kernel of its own, or use consumers = 1}}
  %e = math.exp2 %d : tensor<64x64xf32>
  tile.store %e, %z[%c0, %c0] add : tensor<64x64xf32>, !tile.view<[M, 64], f32>

// CASE
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<128x64xf16>
  %a = tile.load %x[%c0, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %w = tile.load %y[%c64, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %s = tile.dot %a, %w : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
  %t = tile.transpose %p : tensor<128x64xf16> -> tensor<64x128xf16>
  %d = tile.dot %t, %b : tensor<64x128xf16>, tensor<128x64xf16> -> tensor<64x64xf32>
  %ones = arith.constant dense<1.0> : tensor<64x64xf32>
  // expected-error@+1 {{starts a partial sum with a tile that is not zero, and each of the 2 consumer warpgroups would add it; start with zero and add the tile to memory by itself, or use consumers = 1}}
  %e = tile.dot %t, %b, %ones : tensor<64x128xf16>, tensor<128x64xf16> -> tensor<64x64xf32>
  tile.store %e, %z[%c0, %c0] add : tensor<64x64xf32>, !tile.view<[M, 64], f32>

// -----
#s = #tile.schedule<producer = operands, consumers = 2, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = writer, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<128x64xf16>
  %a = tile.load %x[%c0, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %w = tile.load %y[%c64, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %s = tile.dot %a, %w : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
  %t = tile.transpose %p : tensor<128x64xf16> -> tensor<64x128xf16>
  %d = tile.dot %t, %b : tensor<64x128xf16>, tensor<128x64xf16> -> tensor<64x64xf32>
  // expected-error@+1 {{adds a partial sum, of which each consumer warpgroup has a part, and a writer takes one tile for all of them; use store = direct, or consumers = 1}}
  tile.store %d, %z[%c0, %c0] add : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 1, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %l: !tile.view<[N], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  // expected-note@+1 {{this tile keeps its slot}}
  %b = tile.load %y[%c0, %c0] pipe 7 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  // expected-error@+1 {{needs 2 slots of 'y' at once, and it has 1; use outer_stages = 2}}
  %e = tile.load %y[%c64, %c0] pipe 7 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %e : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %f = tile.dot %a, %b, %d : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
}

// -----
// Shares of 64 rows of a box whose rows come in 24.
#s = #tile.schedule<producer = operands, consumers = 3, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 160, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @box(%x: !tile.view<[H, M, 64], f16>, %y: !tile.view<[64, 64], f16>, %z: !tile.view<[H, M, 64], f32>) grid(%m = M ceildiv 24) schedule #s {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %m, %c0] box [8, 24, 64] : !tile.view<[H, M, 64], f16> -> tensor<192x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<192x64xf16>, tensor<64x64xf16> -> tensor<192x64xf32>
  // expected-error@+1 {{has rows that 3 consumer warpgroups cannot divide: the 64 of each would cut a dimension of the box unevenly; choose extents that divide or are divided by them, or other consumers}}
  tile.store %d, %z[%c0, %m, %c0] box [8, 24, 64] : tensor<192x64xf32>, !tile.view<[H, M, 64], f32>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 3, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 160, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @period(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[64, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 24) schedule #s {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<192x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<192x64xf16>, tensor<64x64xf16> -> tensor<192x64xf32>
  // expected-error@+1 {{has rows that 3 consumer warpgroups cannot divide: the 64 of each would cut a dimension of the tile that it repeats along unevenly}}
  %i = tile.iota %m axis 0 period 24 : tensor<192x64xi32>
  %f = arith.sitofp %i : tensor<192x64xi32> to tensor<192x64xf32>
  %e = arith.addf %d, %f : tensor<192x64xf32>
  tile.store %e, %z[%m, %c0] : tensor<192x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// A tile that each consumer loads its share of.
#s = #tile.schedule<producer = operands, consumers = 3, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 160, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @load(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[64, 64], f16>, %z: !tile.view<[M, 64], f32>, %w: !tile.view<[H, M, 64], f32>) grid(%m = M ceildiv 24) schedule #s {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<192x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<192x64xf16>, tensor<64x64xf16> -> tensor<192x64xf32>
  // expected-error@+1 {{has rows that 3 consumer warpgroups cannot divide: the 64 of each would cut a dimension of the box unevenly}}
  %f = tile.load %w[%c0, %m, %c0] box [8, 24, 64] : !tile.view<[H, M, 64], f32> -> tensor<192x64xf32>
  %e = arith.addf %d, %f : tensor<192x64xf32>
  tile.store %e, %z[%m, %c0] : tensor<192x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// Tiles to skip that nobody loads.
#s = #tile.schedule<producer = none, consumers = 1, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 2, placement = rows, transpose = 0, work = tiles>
tile.kernel @no_producer(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[64, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %b = tile.load %y[%c0, %c0] pipe 1 : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  // expected-error@+1 {{skips tiles that a producer loads for other grid points, and producer = none has none; use producer = operands}}
  tile.skip_loads [1] times %m
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
#s = #tile.schedule<producer = operands, consumers = 1, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 2, placement = rows, transpose = 0, work = tiles>
tile.kernel @no_pipe(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[64, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) schedule #s {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %b = tile.load %y[%c0, %c0] pipe 1 : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  // expected-error@+1 {{skips tiles of loads of pipe 7, of which the kernel has none}}
  tile.skip_loads [7] times %m
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// A load that a mask decides about.
#s = #tile.schedule<producer = operands, consumers = 2, stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, producer_registers = 24, consumer_registers = 240, outer_stages = 1, persistent = none, order = linear, section = 4, cluster = 1, placement = rows, transpose = 0, work = tiles>
tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 128) schedule #s {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] pipe 1 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  // expected-error@+1 {{the address of a load depends on the elements of this tile; a producer has no tiles in registers}}
  %large = arith.cmpf ogt, %d, %zero : tensor<128x64xf32>
  %some = tile.any %large : tensor<128x64xi1>
  %at = arith.index_castui %some : i1 to index
  %e = tile.load %y[%at, %c0] pipe 2 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %f = tile.dot %a, %e, %d : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  tile.store %f, %z[%m, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
}
