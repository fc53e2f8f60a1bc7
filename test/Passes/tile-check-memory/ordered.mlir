// Loads and stores of one view that no dot's tile keeps apart: the pass says nothing.
// RUN: tessera-opt %s --tile-check-memory -split-input-file -verify-diagnostics

!AT = !tile.view<[M, 64], bf16>
!FT = !tile.view<[M, 64], f32>
!A = tensor<64x64xbf16>
!F = tensor<64x64xf32>

// Other rows, as many as the tile has; and a tile that is stored after it was loaded.
tile.kernel @other_rows(%a: !AT, %c: !FT) grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %m, %c128 : index
  %next = arith.addi %row, %c64 : index
  %a0 = tile.load %a[%row, %c0] : !AT -> !A
  %x = tile.dot %a0, %a0 : !A, !A -> !F
  %y = arith.truncf %x : !F to !A
  tile.store %y, %a[%row, %c0] : !A, !AT
  %a1 = tile.load %a[%next, %c0] : !AT -> !A
  %z = tile.dot %a1, %a1 : !A, !A -> !F
  tile.store %z, %c[%row, %c0] : !F, !FT
}

// A loop that writes back each tile that it has loaded, and comes to no place twice.

tile.kernel @in_place(%a: !AT, %b: !tile.view<[64, 64], bf16>) grid(%m = M ceildiv 512) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  %first = arith.muli %m, %c512 : index
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 64], bf16> -> !A
  scf.for %j = %c0 to %c8 step %c1 {
    %off = arith.muli %j, %c64 : index
    %row = arith.addi %first, %off : index
    %at = tile.load %a[%row, %c0] : !AT -> !A
    %x = tile.dot %at, %bt : !A, !A -> !F
    %y = arith.truncf %x : !F to !A
    tile.store %y, %a[%row, %c0] : !A, !AT
  }
}

// -----

// The block behind those of the loop, whose number is known at launch only; extents bound the rest.
!AT = !tile.view<[B, M, 64], bf16>
!A = tensor<64x64xbf16>
!F = tensor<64x64xf32>

tile.kernel @behind_the_loop(%a: !AT, %b: !tile.view<[64, 64], bf16>) grid(%h = B) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "M"
  %blocks = arith.ceildivsi %n, %c64 : index
  %last = arith.subi %blocks, %c1 : index
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 64], bf16> -> !A
  scf.for %j = %c0 to %last step %c1 {
    %row = arith.muli %j, %c64 : index
    %y = arith.constant dense<0.0> : !A
    tile.store %y, %a[%h, %row, %c0] : !A, !AT
  }
  %row = arith.muli %last, %c64 : index
  %at = tile.load %a[%h, %row, %c0] : !AT -> !A
  %x = tile.dot %at, %bt : !A, !A -> !F
  %y = arith.truncf %x : !F to !A
  tile.store %y, %a[%h, %row, %c0] : !A, !AT
}

// Loads into registers are the consumers' own, and so is their order.
!FT = !tile.view<[M, 64], f32>

tile.kernel @registers(%a: !tile.view<[M, 64], bf16>, %c: !FT) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], bf16> -> !A
  %x = tile.dot %at, %at : !A, !A -> !F
  tile.store %x, %c[%row, %c0] : !F, !FT
  %y = tile.load %c[%row, %c0] : !FT -> !F
  %z = arith.addf %x, %y : !F
  tile.store %z, %c[%row, %c0] : !F, !FT
}

// -----

// One of two branches runs, and one of two halves of a head by its digit.
!AT = !tile.view<[M, 64], bf16>
!A = tensor<64x64xbf16>
!F = tensor<64x64xf32>

tile.kernel @branches(%a: !AT, %c: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %m, %c128 : index
  %is_first = arith.cmpi eq, %m, %c0 : index
  %zero = arith.constant dense<0.0> : !A
  %x = scf.if %is_first -> !F {
    %at = tile.load %a[%row, %c0] : !AT -> !A
    %y = tile.dot %at, %at : !A, !A -> !F
    scf.yield %y : !F
  } else {
    tile.store %zero, %a[%row, %c0] : !A, !AT
    %y = arith.constant dense<0.0> : !F
    scf.yield %y : !F
  }
  tile.store %x, %c[%row, %c0] : !F, !tile.view<[M, 64], f32>
}
