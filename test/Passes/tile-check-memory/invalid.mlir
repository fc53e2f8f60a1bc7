// Loads that nothing holds back until a store of the same elements has been made.
// RUN: tessera-opt %s --tile-check-memory -split-input-file -verify-diagnostics

!AT = !tile.view<[M, 64], bf16>
!A = tensor<64x64xbf16>
!F = tensor<64x64xf32>

tile.kernel @operand(%a: !AT, %c: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %at = tile.load %a[%row, %c0] : !AT -> !A
  %x = tile.dot %at, %at : !A, !A -> !F
  %y = arith.truncf %x : !F to !A
  // expected-note@+1 {{the store}}
  tile.store %y, %a[%row, %c0] : !A, !AT
  // expected-error@+1 {{may load elements of 'a' that this grid point stores before; tiles for dots are loaded ahead of the rest of the program, which no store holds back. Keep the stored value as a tile, or do the rest in a kernel of its own}}
  %a2 = tile.load %a[%row, %c0] : !AT -> !A
  %r = tile.dot %a2, %at : !A, !A -> !F
  tile.store %r, %c[%row, %c0] : !F, !tile.view<[M, 64], f32>
}

// -----

// One row of the tile before.
!AT = !tile.view<[M, 64], bf16>
!A = tensor<64x64xbf16>
!F = tensor<64x64xf32>

tile.kernel @overlapping(%a: !AT, %c: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %m, %c128 : index
  %next = arith.addi %row, %c63 : index
  %zero = arith.constant dense<0.0> : !A
  // expected-note@+1 {{the store}}
  tile.store %zero, %a[%row, %c0] : !A, !AT
  // expected-error@+1 {{may load elements of 'a' that this grid point stores before}}
  %at = tile.load %a[%next, %c0] : !AT -> !A
  %r = tile.dot %at, %at : !A, !A -> !F
  tile.store %r, %c[%row, %c0] : !F, !tile.view<[M, 64], f32>
}

// -----

// What one iteration stores the next one loads.
!AT = !tile.view<[M, 64], bf16>
!A = tensor<64x64xbf16>
!F = tensor<64x64xf32>

tile.kernel @next_iteration(%a: !AT) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c8 step %c1 {
    %row = arith.muli %j, %c64 : index
    %next = arith.addi %row, %c64 : index
    // expected-error@+1 {{may load elements of 'a' that this grid point stores before, in another iteration of a loop; tiles for dots}}
    %at = tile.load %a[%row, %c0] : !AT -> !A
    %x = tile.dot %at, %at : !A, !A -> !F
    %y = arith.truncf %x : !F to !A
    // expected-note@+1 {{the store}}
    tile.store %y, %a[%next, %c0] : !A, !AT
  }
}

// -----

// A scalar decides how many tiles are loaded.
!AT = !tile.view<[M, 64], bf16>
!FT = !tile.view<[M, 64], f32>
!A = tensor<64x64xbf16>
!F = tensor<64x64xf32>

tile.kernel @bound(%a: !AT, %c: !FT) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %at = tile.load %a[%row, %c0] : !AT -> !A
  %x = tile.dot %at, %at : !A, !A -> !F
  // expected-note@+1 {{the store}}
  tile.store %x, %c[%row, %c0] : !F, !FT
  // expected-error@+2 {{may load elements of 'c' that this grid point stores before; loads of tiles for dots depend on it, and run apart from the rest of the program}}
  // expected-error@+1 {{may load elements of 'c' that this grid point stores later}}
  %l = tile.load %c[%row, %c0] : !FT -> f32
  %li = arith.fptosi %l : f32 to i32
  %n = arith.index_cast %li : i32 to index
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%z = %x) -> !F {
    %k = arith.muli %j, %c64 : index
    %q = tile.load %a[%k, %c0] : !AT -> !A
    %z1 = tile.dot %at, %q, %z : !A, !A -> !F
    scf.yield %z1 : !F
  }
  // expected-note@+1 {{the store}}
  tile.store %r, %c[%row, %c0] : !F, !FT
}

// -----

// Such a scalar, overwritten before the program that loads has read it.
!AT = !tile.view<[M, 64], bf16>
!CT = !tile.view<[M], f32>
!A = tensor<64x64xbf16>
!F = tensor<64x64xf32>
!R = tensor<64xf32>

tile.kernel @overwritten(%a: !AT, %c: !CT) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-error@+1 {{may load elements of 'c' that this grid point stores later; loads of tiles for dots depend on it, and run apart from the rest of the program. Store to a view of its own, or do the rest in a kernel of its own}}
  %l = tile.load %c[%row] : !CT -> f32
  %li = arith.fptosi %l : f32 to i32
  %k = arith.index_cast %li : i32 to index
  %at = tile.load %a[%k, %c0] : !AT -> !A
  %x = tile.dot %at, %at : !A, !A -> !F
  %r = tile.reduce max %x axis 1 : !F -> !R
  // expected-note@+1 {{the store}}
  tile.store %r, %c[%row] : !R, !CT
}

// -----

// A list that is overwritten before the threads that gather by it have read it.
!AT = !tile.view<[M, 64], bf16>
!List = !tile.view<[M], i32>
!A = tensor<64x64xbf16>
!F = tensor<64x64xf32>

tile.kernel @overwritten_list(%a: !AT, %list: !List, %c: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-error@+1 {{may load elements of 'list' that this grid point stores later; loads of tiles for dots depend on it, and run apart from the rest of the program. Store to a view of its own, or do the rest in a kernel of its own}}
  %n = tile.load %list[%row] : !List -> tensor<64xi32>
  %at = tile.gather %a[%c0, %c0] rows %n : !AT, tensor<64xi32> -> !A
  %x = tile.dot %at, %at : !A, !A -> !F
  %none = arith.constant dense<0> : tensor<64xi32>
  // expected-note@+1 {{the store}}
  tile.store %none, %list[%row] : tensor<64xi32>, !List
  tile.store %x, %c[%row, %c0] : !F, !tile.view<[M, 64], f32>
}
