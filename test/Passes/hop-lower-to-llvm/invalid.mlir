// What has no program, or has not been through the passes before.
// RUN: %cases %s | tessera-opt --hop-lower-to-llvm -split-input-file -verify-diagnostics

// FRAME
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    // HERE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
  }
}

// CASE
// expected-error@+1 {{has no shared-memory offsets; run hop-allocate-shared-memory first}}
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):

// CASE
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // expected-error@+1 {{has no offset in shared memory; run hop-allocate-shared-memory first}}
  %q = hop.buffer "q" : !hop.buffer<tensor<64x64xbf16>, 1>

// CASE
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // expected-error@+1 {{has no offset in shared memory}}
  %f = hop.barriers "f" count 1 : !hop.barriers<1>

// -----
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{uses a tile without a layout; run hop-assign-layouts first}}
    %a = arith.constant dense<0.0> : tensor<64xf32>
  }
}

// -----
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{cannot be lowered to machine code; run the passes before this one}}
    hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
  }
}

// -----
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 65536 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %s = hop.staging "s" at 0 : !hop.shared<tensor<512x64xbf16>, rows = 512>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{copies 512 rows at once, a bulk tensor copy moves 256; use smaller tiles}}
    hop.bulk_store %s, %x[%m, %c0] : !hop.shared<tensor<512x64xbf16>, rows = 512>, !tile.view<[M, 64], bf16>
  }
}

// FRAME
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // HERE
  }
}

// CASE
    %z = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    // expected-error@+1 {{mixes layouts}}
    %b = tile.broadcast %z axis 0 : tensor<64xf32, #hop.layout<row>> -> tensor<64x64xf32, #hop.layout<accumulator>>

// CASE
    %z = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<column>>
    // expected-error@+1 {{mixes layouts}}
    %b = tile.broadcast %z axis 1 : tensor<64xf32, #hop.layout<column>> -> tensor<64x64xf32, #hop.layout<accumulator>>

// CASE
    %z = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    // expected-error@+1 {{mixes layouts}}
    %b = tile.reduce max %z axis 0 : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64xf32, #hop.layout<column>>

// CASE
    %z = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    // expected-error@+1 {{mixes layouts}}
    %b = tile.reduce sum %z axis 0 : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64xf32, #hop.layout<column>>

// CASE
    %z = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row_partial>>
    // expected-error@+1 {{mixes layouts}}
    tile.store %z, %y[%m] : tensor<64xf32, #hop.layout<row_partial>>, !tile.view<[N], f32>

// -----
// Rows of an accumulator are in several warps, and the scan has no memory through which these meet.
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %z = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    // expected-error@+1 {{mixes layouts}}
    %b = tile.scan sum %z axis 0 : tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// -----
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %i = arith.constant 4294967296 : index
    // expected-error@+1 {{uses the index 4294967296; indices have 32 bits on the machine}}
    %j = arith.addi %m, %i : index
  }
}

// -----
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 8192 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %q = hop.buffer "q" at 0 : !hop.buffer<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %z = arith.constant 0 : i32
    %t = hop.slot %q[%z] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.mma_issue %t, %t : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %g = scf.for %i = %c0 to %m step %m iter_args(%a = %f) -> (!hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>) {
    // expected-error@+1 {{carries a flight; wait for products before a branch}}
      scf.yield %a : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    }
    %d = hop.mma_wait %g pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }
}

// FRAME
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // HERE
  }
}

// CASE
    %z = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    // expected-error@+1 {{computes on tiles of 16 or 8 bits; extend them with arith.extf, compute in f32 and round with arith.truncf}}
    %b = arith.addf %z, %z : tensor<64x64xbf16, #hop.layout<accumulator>>

// CASE
    // expected-error@+1 {{is a constant tile of different elements; build it from tile.iota}}
    %z = arith.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<8xf32, #hop.layout<column>>

// CASE
    %z = arith.constant dense<0.0> : tensor<64xf32, #hop.layout<row>>
    // expected-error@+1 {{cannot be lowered to machine code: no Hopper instruction sequence is known for it on}}
    %b = math.atan %z : tensor<64xf32, #hop.layout<row>>

// CASE
    %i = arith.constant 1 : i32
    // expected-error@+1 {{cannot be lowered to machine code}}
    %b:2 = arith.mului_extended %i, %i : i32

// CASE
    %z = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    // expected-error@+1 {{reduces }}
    %b = tile.reduce max %z axis 1 : tensor<64x64xbf16, #hop.layout<accumulator>> -> tensor<64xbf16, #hop.layout<row>>

// CASE
    %z = arith.constant dense<0.0> : tensor<64xbf16, #hop.layout<row>>
    // expected-error@+1 {{repeats elements of 16 or 8 bits; extend them with arith.extf first}}
    %b = tile.broadcast %z axis 1 : tensor<64xbf16, #hop.layout<row>> -> tensor<64x64xbf16, #hop.layout<accumulator>>

// CASE
    %z = arith.constant 0.0 : bf16
    // expected-error@+1 {{makes a tile of 16- or 8-bit elements; make it of f32 and round with arith.truncf}}
    %b = tile.splat %z : bf16 -> tensor<64x64xbf16, #hop.layout<accumulator>>

// -----
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 100], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 8192 : i64} {
^bb0(%x: !tile.view<[M, 100], bf16>, %m: index):
  %s = hop.staging "x" at 0 : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{writes rows of 100 elements, and bulk stores write 8 at a time; use store = direct}}
    hop.bulk_store %s, %x[%m, %c0] : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 100], bf16>
  }
}

// -----
// expected-error@+17 {{uses 18 named barriers, and a thread block has 16; use fewer warpgroups, or pingpong = false, which takes no turns}}
// expected-note@+16 {{barrier 0: start}}
// expected-note@+15 {{barrier 1: turn of a 0}}
// expected-note@+14 {{barrier 2: turn of a 1}}
// expected-note@+13 {{barrier 3: turn of a 2}}
// expected-note@+12 {{barrier 4: turn of a 3}}
// expected-note@+11 {{barrier 5: warpgroup of a 0}}
// expected-note@+10 {{barrier 6: warpgroup of a 1}}
// expected-note@+9 {{barrier 7: warpgroup of a 2}}
// expected-note@+8 {{barrier 8: warpgroup of a 3}}
// expected-note@+7 {{barrier 9: all of a}}
// expected-note@+6 {{barrier 10: turn of b 0}}
// expected-note@+5 {{barrier 11: turn of b 1}}
// expected-note@+4 {{barrier 12: turn of b 2}}
// expected-note@+3 {{barrier 13: turn of b 3}}
// expected-note@+2 {{barrier 14: warpgroup of b 0}}
// expected-note@+1 {{barrier 15: warpgroup of b 1}}
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%m: index):
  hop.role @a warpgroups(4) {
  ^bb0(%wg: index):
    hop.turn.start %wg
    hop.warpgroup_sync
    hop.role_sync
  }
  hop.role @b warpgroups(4) {
  ^bb0(%wg: index):
    hop.turn.start %wg
    hop.warpgroup_sync
  }
}

// -----
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{divides by 0}}
    %r = arith.remsi %m, %c0 : index
  }
}
