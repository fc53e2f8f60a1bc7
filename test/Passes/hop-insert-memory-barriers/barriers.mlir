// Threads meet between accesses of one element by different ones, and nowhere else.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-insert-memory-barriers))' -split-input-file | FileCheck %s

!CT = !tile.view<[M, 64], f32>
!F = tensor<64x64xf32, #hop.layout<accumulator>>

// CHECK-LABEL: hop.kernel @same_place
// CHECK-NOT: _sync
hop.kernel @same_place attributes {argument_names = ["c"], argument_types = [!CT], grid = [#tile.grid_dim<"M", 128>], schedule = #tile.schedule<>} {
^bb0(%c: !CT, %m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %z = arith.constant dense<0.0> : !F
    %first = arith.muli %m, %c128 : index
    %share = arith.muli %wg, %c64 : index
    %row = arith.addi %first, %share : index
    %x = tile.load %c[%row, %c0] : !CT -> !F
    tile.store %z, %c[%row, %c0] : !F, !CT
    tile.store %x, %c[%row, %c0] : !F, !CT
  }
}

// CHECK-LABEL: hop.kernel @shifted
hop.kernel @shifted attributes {argument_names = ["c"], argument_types = [!CT], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%c: !CT, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %z = arith.constant dense<0.0> : !F
    %row = arith.muli %m, %c64 : index
    // CHECK: tile.store %{{.*}}[%c1, %c0]
    // CHECK-NEXT: hop.warpgroup_sync
    // CHECK-NEXT: tile.store %{{.*}}[%[[ROW:.*]], %c0]
    // The barrier that is there serves both.
    // CHECK-NEXT: %[[X:.*]] = tile.load %{{.*}}[%[[ROW]], %c0]
    // CHECK-NOT: _sync
    tile.store %z, %c[%c1, %c0] : !F, !CT
    tile.store %z, %c[%row, %c0] : !F, !CT
    %x = tile.load %c[%row, %c0] : !CT -> !F
    tile.store %x, %c[%row, %c0] : !F, !CT
  }
}

// Rows of the other warpgroup.

// CHECK-LABEL: hop.kernel @of_all
hop.kernel @of_all attributes {argument_names = ["c"], argument_types = [!CT], grid = [#tile.grid_dim<"M", 128>], schedule = #tile.schedule<>} {
^bb0(%c: !CT, %m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %z = arith.constant dense<0.0> : !F
    %first = arith.muli %m, %c128 : index
    %share = arith.muli %wg, %c64 : index
    %row = arith.addi %first, %share : index
    // CHECK: tile.store
    // CHECK-NEXT: hop.role_sync
    // CHECK-NEXT: tile.load %{{.*}} -> f32
    // CHECK-NEXT: hop.role_sync
    // CHECK-NEXT: tile.store
    tile.store %z, %c[%row, %c0] : !F, !CT
    %l = tile.load %c[%first, %c0] : !CT -> f32
    tile.store %z, %c[%row, %c0] : !F, !CT
    // CHECK-NEXT: }
  }
}

// One lane of a quad stores a row's element and all four load it; pairs of 16 bits change lanes on their way.
!LT = !tile.view<[M], f32>
!OT = !tile.view<[M, 64], bf16>
!R = tensor<64xf32, #hop.layout<row>>
!O = tensor<64x64xbf16, #hop.layout<accumulator>>

// CHECK-LABEL: hop.kernel @lanes
hop.kernel @lanes attributes {argument_names = ["l", "o"], argument_types = [!LT, !OT], grid = [#tile.grid_dim<"M", 128>], schedule = #tile.schedule<>} {
^bb0(%l: !LT, %o: !OT, %m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %r = arith.constant dense<0.0> : !R
    %z = arith.constant dense<0.0> : !O
    %first = arith.muli %m, %c128 : index
    %share = arith.muli %wg, %c64 : index
    %row = arith.addi %first, %share : index
    // CHECK: scf.for
    // CHECK-NEXT: hop.warpgroup_sync
    // CHECK-NEXT: tile.store %{{.*}} : tensor<64xf32
    // CHECK-NEXT: hop.warpgroup_sync
    // CHECK-NEXT: tile.load %{{.*}} -> tensor<64xf32
    // CHECK-NEXT: }
    scf.for %j = %c0 to %c4 step %c1 {
      tile.store %r, %l[%row] : !R, !LT
      %s = tile.load %l[%row] : !LT -> !R
    }
    // CHECK-NEXT: tile.store %{{.*}} : tensor<64x64xbf16
    // CHECK-NEXT: hop.warpgroup_sync
    // CHECK-NEXT: tile.load %{{.*}} -> tensor<64x64xbf16
    tile.store %z, %o[%row, %c0] : !O, !OT
    %x = tile.load %o[%row, %c0] : !OT -> !O
  }
}

// -----

// Without products warpgroups share a tile, and a place in the view says which thread has it.
!CT = !tile.view<[M, 4096], bf16>
!F = tensor<1x2048xbf16, #hop.layout<registers = [8:(0, 1)], lanes = [32:(0, 8)], warps = [4:(0, 256)], warpgroups = [2:(0, 1024)]>>

// CHECK-LABEL: hop.kernel @own_elements
// CHECK-NOT: _sync
// CHECK-LABEL: hop.kernel @moved
hop.kernel @own_elements attributes {argument_names = ["c"], argument_types = [!CT], grid = [#tile.grid_dim<"M", 1>], schedule = #tile.schedule<>} {
^bb0(%c: !CT, %m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c2048 = arith.constant 2048 : index
    %c4096 = arith.constant 4096 : index
    scf.for %col = %c0 to %c4096 step %c2048 {
      %x = tile.load %c[%m, %col] : !CT -> !F
      tile.store %x, %c[%m, %col] : !F, !CT
    }
    scf.for %col = %c0 to %c4096 step %c2048 {
      %x = tile.load %c[%m, %col] : !CT -> !F
      tile.store %x, %c[%m, %col] : !F, !CT
    }
  }
}

// Eight columns on, they are another thread's.
hop.kernel @moved attributes {argument_names = ["c"], argument_types = [!CT], grid = [#tile.grid_dim<"M", 1>], schedule = #tile.schedule<>} {
^bb0(%c: !CT, %m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %x = tile.load %c[%m, %c8] : !CT -> !F
    // CHECK: hop.role_sync
    tile.store %x, %c[%m, %c0] : !F, !CT
  }
}
