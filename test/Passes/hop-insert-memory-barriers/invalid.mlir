// What no barrier of threads orders, or none may.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-insert-memory-barriers))' -split-input-file -verify-diagnostics

!CT = !tile.view<[M, 64], bf16>
!T = tensor<64x64xbf16, #hop.layout<accumulator>>
!S = !hop.shared<tensor<64x64xbf16>, rows = 64>

hop.kernel @bulk attributes {argument_names = ["c"], argument_types = [!CT], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%c: !CT, %m: index):
  %s = hop.staging "c" : !S
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %row = arith.muli %m, %c64 : index
    // A load before the copy is complete when the warpgroup has met.
    %x = tile.load %c[%row, %c0] : !CT -> !T
    hop.stage %x, %s : !T, !S
    hop.warpgroup_sync
    // expected-note@+1 {{here}}
    hop.bulk_store %s, %c[%row, %c0] : !S, !CT
    // expected-error@+1 {{may touch elements that the same grid point touches before; nothing orders bulk stores with other stores and loads; use store = direct}}
    %y = tile.load %c[%row, %c0] : !CT -> !T
  }
}

// -----

!CT = !tile.view<[M, 64], f32>
!F = tensor<64x64xf32, #hop.layout<accumulator>>

hop.kernel @turns attributes {argument_names = ["c"], argument_types = [!CT], grid = [#tile.grid_dim<1, 1>], schedule = #tile.schedule<>} {
^bb0(%c: !CT, %m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %z = arith.constant dense<0.0> : !F
    %share = arith.muli %wg, %c64 : index
    scf.for %j = %c0 to %c8 step %c1 {
      %row = arith.addi %j, %share : index
      // expected-note@+2 {{here}}
      // expected-error@+1 {{may touch elements that the same grid point touches before; in a loop the 2 consumer warpgroups do not wait for each other; use consumers = 1, or store to another view}}
      tile.store %z, %c[%row, %c0] : !F, !CT
    }
  }
}

// -----

// Blocks that have tiles together do not wait for each other's stores.
!View = !tile.view<[M, 1024], f32>
!Row = tensor<1x1024xf32, #hop.layout<registers = [4:(0, 1)], lanes = [32:(0, 4)], warps = [4:(0, 128)], warpgroups = [2:(0, 512)]>>
hop.kernel @spread attributes {argument_names = ["x"], argument_types = [!View], grid = [#tile.grid_dim<"M", 1>],
    schedule = #tile.schedule<cluster = 2>, spread} {
^bb0(%x: !View, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %t = tile.load %x[%m, %c0] : !View -> !Row
    // expected-note@+1 {{here}}
    tile.store %t, %x[%m, %c0] : !Row, !View
    // expected-error@+1 {{may touch elements that the same grid point touches before; the blocks of a cluster do not wait for each other; use cluster = 1}}
    %u = tile.load %x[%m, %c4] : !View -> !Row
  }
}

// -----

// A barrier of a block's threads does not change that.
!View = !tile.view<[M, 1024], f32>
!Row = tensor<1x1024xf32, #hop.layout<registers = [4:(0, 1)], lanes = [32:(0, 4)], warps = [4:(0, 128)], warpgroups = [2:(0, 512)]>>
hop.kernel @spread_synced attributes {argument_names = ["x"], argument_types = [!View], grid = [#tile.grid_dim<"M", 1>],
    schedule = #tile.schedule<cluster = 2>, spread} {
^bb0(%x: !View, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %t = tile.load %x[%m, %c0] : !View -> !Row
    // expected-note@+1 {{here}}
    tile.store %t, %x[%m, %c0] : !Row, !View
    hop.warpgroup_sync
    // expected-error@+1 {{may touch elements that the same grid point touches before; the blocks of a cluster do not wait for each other; use cluster = 1}}
    %u = tile.load %x[%m, %c4] : !View -> !Row
  }
}
