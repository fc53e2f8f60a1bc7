// Sums for which no order is found, and grids whose blocks could wait for ever.
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(tile.kernel(tile-ticket-sums))' -split-input-file -verify-diagnostics

!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = static, order = linear>
// expected-error@+1 {{has sums in a fixed order, in which a thread block could wait for one that has not started; use persistent = dynamic, with which a block draws its number when it starts, or leave fixed_sums out}}
tile.kernel @not_drawn(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  tile.store %t, %s[%c0, %c0] add : tensor<64x64xf32>, !S
}

// -----
!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = none, order = linear>
// expected-error@+1 {{has sums in a fixed order, in which a thread block could wait for one that has not started}}
tile.kernel @not_resident(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  tile.store %t, %s[%c0, %c0] add : tensor<64x64xf32>, !S
}

// -----
!S = !tile.view<[M], f32>
#s = #tile.schedule<persistent = dynamic, order = linear>
tile.kernel @rows(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64xf32>
  // expected-error@+1 {{adds no tile of rank 2, and a ticket is for a tile that one copy adds; leave fixed_sums out}}
  tile.store %t, %s[%c0] add : tensor<64xf32>, !S
}

// -----
!S = !tile.view<[M], f32>
#s = #tile.schedule<persistent = dynamic, order = linear>
tile.kernel @elements(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64xf32>
  // expected-error@+1 {{adds element by element, and a ticket is for a tile that one copy adds; leave fixed_sums out}}
  tile.scatter_add %t, %s[%c0] : tensor<64xf32>, !S, index
}

// -----
!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = dynamic, order = linear>
tile.kernel @overlapping(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64, %m = M ceildiv 32) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %row = arith.muli %m, %c32 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  // expected-error@+1 {{adds tiles that are not known to begin at multiples of their 64 rows, so that two may overlap; leave fixed_sums out}}
  tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
}

// -----
!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = dynamic, order = linear>
tile.kernel @twice(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64, %m = M ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  // expected-error@+1 {{is not the only store to its view, and a tile has one ticket; leave fixed_sums out}}
  tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
  tile.store %t, %s[%c0, %c0] add : tensor<64x64xf32>, !S
}

// -----
// Two heads may be one.
!S = !tile.view<[H, 64], f32>
#s = #tile.schedule<persistent = dynamic, order = linear>
tile.kernel @mixed(%s: !S, %x: !tile.view<[N, A, B], f32>) grid(%n = N ceildiv 64, %a = A, %b = B) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %both = arith.addi %a, %b : index
  %row = arith.muli %both, %c64 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  // expected-error@+1 {{adds at an index that is not known to be another one for each grid point and iteration: a sum of those times constants, or n a + b with b from 0 up to n; leave fixed_sums out}}
  tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
}

// -----
!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = dynamic, order = linear>
tile.kernel @several(%s: !S, %x: !tile.view<[N, B], f32>) grid(%n = N ceildiv 64, %b = B) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  // expected-error@+1 {{is added to by grid points that differ in several grid indices, and an order follows one; leave fixed_sums out}}
  tile.store %t, %s[%c0, %c0] add : tensor<64x64xf32>, !S
}

// FRAME
!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = dynamic, order = linear>
tile.kernel @NAME(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  // HERE
}

// CASE again
  %c1 = arith.constant 1 : index
  %m = tile.dim "M"
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %j = %c0 to %m step %c1 {
    // expected-error@+1 {{adds to the same tile in each iteration of a loop around it; add up there, and store the sum behind the loop; leave fixed_sums out}}
    tile.store %t, %s[%c0, %c0] add : tensor<64x64xf32>, !S
  }

// CASE condition
  %c2 = arith.constant 2 : index
  %rest = arith.remui %n, %c2 : index
  %even = arith.cmpi eq, %rest, %c0 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.if %even {
    // expected-error@+1 {{stands where a condition decides which grid points add; move the sum out, or let the bounds of a loop decide; leave fixed_sums out}}
    tile.store %t, %s[%c0, %c0] add : tensor<64x64xf32>, !S
  }

// CASE gaps
// Grid points 0 and 2 come to a tile, and 1 does not.
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %first = arith.remui %n, %c2 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %j = %first to %m step %c1 {
    %row = arith.muli %j, %c64 : index
    // expected-error@+1 {{stands in a loop whose bounds are not known to move in one direction as the grid index grows, so that the grid point before another at a tile is not known; leave fixed_sums out}}
    tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
  }

// CASE steps
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %j = %n to %m step %c2 {
    %row = arith.muli %j, %c64 : index
    // expected-error@+1 {{stands in a loop that begins elsewhere for each grid point and has another step than 1, so that the grid point before another at a tile is not known; leave fixed_sums out}}
    tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
  }

// -----
// expected-error@+1 {{has sums in any order, and order = turns is for sums in a fixed one; write fixed_sums in its head, or use order = ascending}}
tile.kernel @any(%s: !tile.view<[M, 64], f32>) grid(%n = M ceildiv 64)
    schedule #tile.schedule<persistent = dynamic, order = turns> {
}

// -----
// expected-error@+1 {{has sums in any order, and order = last_turns is for sums in a fixed one; write fixed_sums in its head, or use order = ascending}}
tile.kernel @any(%s: !tile.view<[M, 64], f32>) grid(%n = M ceildiv 64)
    schedule #tile.schedule<persistent = dynamic, order = last_turns> {
}

// -----
// All grid points begin together.
!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = dynamic, order = turns>
tile.kernel @together(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %j = %c0 to %m step %c1 {
    %row = arith.muli %j, %c64 : index
    // expected-error@+1 {{adds in no loop that begins later as the first grid index grows and ends at the same step, and with order = turns a loop may begin at its end; use order = descending or ascending}}
    tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
  }
}

// -----
// What is subtracted from an iteration's sum is another value from the other end.
!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = dynamic, order = turns>
tile.kernel @no_sum(%s: !S, %y: !S) grid(%n = M ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  // expected-error@+1 {{hands on a value to which an iteration does more than add a product, and with order = turns a loop may begin at its end; use order = descending or ascending}}
  %last = scf.for %j = %n to %m step %c1 iter_args(%old = %t) -> (tensor<64x64xf32>) {
    %row = arith.muli %j, %c64 : index
    tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
    %new = arith.subf %t, %old : tensor<64x64xf32>
    scf.yield %new : tensor<64x64xf32>
  }
  tile.store %last, %y[%c0, %c0] : tensor<64x64xf32>, !S
}

// -----
// The last iteration's store is the one that stays.
!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = dynamic, order = last_turns>
tile.kernel @stores(%s: !S, %y: !S) grid(%n = M ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %j = %n to %m step %c1 {
    %row = arith.muli %j, %c64 : index
    tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
    // expected-error@+1 {{may be of elements that another iteration stores, and with order = last_turns a loop may begin at its end; use order = descending or ascending}}
    tile.store %t, %y[%c0, %c0] : tensor<64x64xf32>, !S
  }
}

// FRAME
!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = dynamic, order = linear>
tile.kernel @NAME(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %i = %c0 to %m step %c1 {
    // HERE
    scf.for %j = %begin to %end step %c1 {
      %row = arith.muli %j, %c64 : index
      // expected-error@+1 {{stands in a loop that sets the bounds of another one, and two of its iterations are not known to come to different tiles: bounds within s c and s c + s, for an s that is constant and a c that is another one for each iteration and the same one for all grid points; leave fixed_sums out}}
      tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
    }
  }
}

// CASE overlapping_parts
// Two iterations of the outer loop have 60 tiles in common.
    %part = arith.addi %i, %c0 : index
    %begin = arith.muli %part, %c4 : index
    %end = arith.addi %begin, %c64 : index

// CASE same_part
// Two iterations have one part.
    %part = arith.divui %i, %c4 : index
    %begin = arith.muli %part, %c4 : index
    %end = arith.addi %begin, %c4 : index

// CASE own_part
// Another grid point comes to the same tile in another iteration.
    %part = arith.addi %i, %n : index
    %begin = arith.muli %part, %c4 : index
    %end = arith.addi %begin, %c4 : index

// -----
// A bound that an iteration hands on cannot be computed for a neighbour.
!S = !tile.view<[M, 64], f32>
#s = #tile.schedule<persistent = dynamic, order = linear>
tile.kernel @handed_on(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64) fixed_sums schedule #s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  %last = scf.for %i = %c0 to %m step %c1 iter_args(%old = %n) -> (index) {
    %from = arith.maxsi %old, %n : index
    scf.for %j = %from to %m step %c1 {
      %row = arith.muli %j, %c64 : index
      // expected-error@+1 {{stands in a loop whose bounds are not known to move in one direction as the grid index grows}}
      tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
    }
    %new = arith.addi %old, %c1 : index
    scf.yield %new : index
  }
}
