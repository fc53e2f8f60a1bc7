// Tickets of tiles that grid points add to, along the one grid index on which the place does not depend.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-ticket-sums),canonicalize,cse)' -split-input-file | FileCheck %s

// All grid points come to all tiles. A ticket is between two grid points: the higher index, or 0 at the ends. That of the one
// below is the own index, which is 0 where there is none.
!S = !tile.view<[B, M, 64], f32>
tile.kernel @all(%s: !S, %x: !tile.view<[N], f32>) grid(%n = N ceildiv 64, %b = B)
    fixed_sums schedule #tile.schedule<persistent = dynamic, order = ascending> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %j = %c0 to %m step %c64 {
    tile.store %t, %s[%b, %j, %c0] add : tensor<64x64xf32>, !S
  }
}
// CHECK-LABEL: @all
// CHECK-DAG: %[[NEXT:.*]] = arith.addi %n, %c1
// CHECK-DAG: %[[COUNT:.*]] = arith.ceildivui %{{.*}}, %c64
// CHECK-DAG: %[[COMES:.*]] = arith.cmpi slt, %[[NEXT]], %[[COUNT]]
// CHECK: scf.for %[[J:.*]] =
// CHECK-DAG: %[[TO:.*]] = arith.select %[[COMES]], %[[NEXT]], %c0
// CHECK-DAG: %[[PLACE:.*]] = arith.divui %[[J]], %c64
// CHECK-DAG: %[[OF_B:.*]] = arith.muli %b, %{{.*}}
// CHECK-DAG: %[[TICKET:.*]] = arith.addi %[[OF_B]], %[[PLACE]]
// CHECK: tile.store %{{.*}} add ticket %[[TICKET]] from %n to %[[TO]] : tensor<64x64xf32>

// -----

// Two blocks of a cluster make sums together: a ticket is between two pairs, whose second block may be past the end of the grid.
// A tile has one for each block that adds to it.
!View = !tile.view<[M, 256], bf16>
!Sums = !tile.view<[M, 256], f32>
!Tile = tensor<128x256xbf16>
!Part = tensor<64x256xbf16>
!S    = tensor<128x64xf32>
!P    = tensor<128x64xbf16>
tile.kernel @pairs(%x: !View, %y: !Sums, %z: !View) grid(%m = M ceildiv 128)
    fixed_sums schedule #tile.schedule<store = writer, persistent = dynamic, order = ascending, cluster = exchange, placement = apart> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim "M"
  %first = arith.muli %m, %c128 : index
  %a = tile.load %x[%first, %c0] : !View -> !Tile
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %sum = scf.for %j = %c0 to %rows step %c64 iter_args(%old = %zero) -> (tensor<128x256xf32>) {
    %b = tile.load %x[%j, %c0] : !View -> !Part
    %b_t = tile.transpose %b : !Part -> tensor<256x64xbf16>
    %s = tile.dot %a, %b_t : !Tile, tensor<256x64xbf16> -> !S
    %p = arith.truncf %s : !S to !P
    %new = tile.dot %p, %b, %old : !P, !Part -> tensor<128x256xf32>
    %p_t = tile.transpose %p : !P -> tensor<64x128xbf16>
    %c = tile.dot %p_t, %a : tensor<64x128xbf16>, !Tile -> tensor<64x256xf32>
    tile.store %c, %y[%j, %c0] add : tensor<64x256xf32>, !Sums
    scf.yield %new : tensor<128x256xf32>
  }
  %out = arith.truncf %sum : tensor<128x256xf32> to !Tile
  tile.store %out, %z[%first, %c0] : !Tile, !View
}
// CHECK-LABEL: @pairs
// CHECK-DAG: %[[PAIR:.*]] = arith.divui %m, %c2
// CHECK-DAG: %[[LEADER:.*]] = arith.muli %[[PAIR]], %c2
// CHECK-DAG: %[[NEXT_LEADER:.*]] = arith.addi %[[LEADER]], %c2
// CHECK-DAG: %[[COMES:.*]] = arith.cmpi slt, %[[NEXT_LEADER]], %{{.*}}
// CHECK: scf.for %[[J:[^ ]*]] =
// CHECK-DAG: %[[NEXT:.*]] = arith.addi %{{.*}}, %c1
// CHECK-DAG: %[[TO:.*]] = arith.select %[[COMES]], %[[NEXT]], %c0
// CHECK-DAG: %[[PLACE:.*]] = arith.divui %[[J]], %c64
// CHECK-DAG: %[[TICKET:.*]] = arith.muli %[[PLACE]], %c2
// CHECK: tile.store %{{.*}} add ticket %[[TICKET]] from %[[PAIR]] to %[[TO]] : tensor<64x256xf32>

// -----

// Loops begin later for higher indices, and the highest goes first: the one before comes where its loop has begun, and
// the one behind has begun before this one.
!S = !tile.view<[H, M, 64], f32>
tile.kernel @triangle(%s: !S, %x: !tile.view<[HK], f32>) grid(%n = M ceildiv 64, %hk = HK) requires(HK divides H)
    fixed_sums schedule #tile.schedule<persistent = dynamic, order = descending> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %h = tile.dim "H"
  %hks = tile.dim "HK"
  %group = arith.divui %h, %hks : index
  %first_head = arith.muli %hk, %group : index
  %blocks = arith.ceildivui %m, %c64 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %g = %c0 to %group step %c1 {
    %head = arith.addi %first_head, %g : index
    scf.for %j = %n to %blocks step %c1 {
      %row = arith.muli %j, %c64 : index
      tile.store %t, %s[%head, %row, %c0] add : tensor<64x64xf32>, !S
    }
  }
}
// CHECK-LABEL: @triangle
// CHECK: %[[NEXT:.*]] = arith.addi %n, %c1
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[NEXT]]
// CHECK: scf.for
// CHECK: scf.for %[[J:.*]] = %n
// CHECK-DAG: %[[REACHED:.*]] = arith.cmpi sle, %[[NEXT]], %[[J]]
// CHECK-DAG: %[[BEFORE:.*]] = arith.andi %[[EXISTS]], %[[REACHED]]
// CHECK-DAG: %[[FROM:.*]] = arith.select %[[BEFORE]], %[[NEXT]], %c0
// CHECK-NOT: arith.cmpi
// CHECK: tile.store %{{.*}} add ticket %{{.*}} from %[[FROM]] to %n :

// A kernel that adds nothing takes any order.
tile.kernel @nothing() grid(%m = 4) fixed_sums schedule #tile.schedule<persistent = none, order = linear> {
}
// CHECK-LABEL: @nothing

// -----

// One grid point adds to each tile: nobody waits.
!S = !tile.view<[M, 64], f32>
tile.kernel @own(%s: !S) grid(%n = M ceildiv 64) fixed_sums schedule #tile.schedule<persistent = none, order = linear> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %n, %c64 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
}
// CHECK-LABEL: @own
// CHECK: tile.store %{{.*}} add : tensor<64x64xf32>

// In turn, the highest first and the lowest first: then the loop goes from its end, and the ticket comes from the other side.
!H = tensor<64x64xbf16>
tile.kernel @turns(%s: !S, %y: !S, %x: !tile.view<[64, 64], bf16>) grid(%n = M ceildiv 64)
    fixed_sums schedule #tile.schedule<persistent = dynamic, order = turns> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %blocks = arith.ceildivui %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %at = tile.load %x[%c0, %c0] : !tile.view<[64, 64], bf16> -> !H
  %total = scf.for %j = %n to %blocks step %c1 iter_args(%old = %zero) -> (tensor<64x64xf32>) {
    %row = arith.muli %j, %c64 : index
    %new = tile.dot %at, %at, %old : !H, !H -> tensor<64x64xf32>
    %part = tile.dot %at, %at : !H, !H -> tensor<64x64xf32>
    tile.store %part, %s[%row, %c0] add : tensor<64x64xf32>, !S
    scf.yield %new : tensor<64x64xf32>
  }
  %own = arith.muli %n, %c64 : index
  tile.store %total, %y[%own, %c0] : tensor<64x64xf32>, !S
}
// CHECK-LABEL: @turns
// CHECK: %[[DOWN:.*]] = tile.walks_down
// CHECK: %[[NEXT:.*]] = arith.addi %n, %c1
// CHECK: %[[IS_ABOVE:.*]] = arith.cmpi slt, %[[NEXT]]
// CHECK: scf.for %[[I:.*]] = %n to %[[BLOCKS:.*]] step
// CHECK: %[[J:.*]] = tile.walk %[[I]] from %n to %[[BLOCKS]] down %[[DOWN]]
// CHECK: arith.muli %[[J]], %c64
// CHECK-DAG: %[[BEGINS:.*]] = arith.cmpi sle, %[[NEXT]], %[[J]]
// CHECK-DAG: %[[COMES:.*]] = arith.andi %[[IS_ABOVE]], %[[BEGINS]]
// CHECK-DAG: %[[ABOVE:.*]] = arith.select %[[COMES]], %[[NEXT]], %c0
// CHECK-DAG: %[[FROM:.*]] = arith.select %[[DOWN]], %n, %[[ABOVE]]
// CHECK-DAG: %[[TO:.*]] = arith.select %[[DOWN]], %[[ABOVE]], %n
// CHECK: tile.store %{{.*}} add ticket %{{.*}} from %[[FROM]] to %[[TO]]

// Which sections turn is the grid's: the last one of many makes the same of a loop.
tile.kernel @last_turns(%s: !S) grid(%n = M ceildiv 64) fixed_sums schedule #tile.schedule<persistent = dynamic, order = last_turns> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %blocks = arith.ceildivui %m, %c64 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %j = %n to %blocks step %c1 {
    %row = arith.muli %j, %c64 : index
    tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
  }
}
// CHECK-LABEL: @last_turns
// CHECK: %[[DOWN:.*]] = tile.walks_down
// CHECK: %[[J:.*]] = tile.walk %{{.*}} from %n to %{{.*}} down %[[DOWN]]
// CHECK-DAG: %[[FROM:.*]] = arith.select %[[DOWN]], %n, %[[ABOVE:.*]] : index
// CHECK-DAG: %[[TO:.*]] = arith.select %[[DOWN]], %[[ABOVE]], %n
// CHECK: tile.store %{{.*}} add ticket %{{.*}} from %[[FROM]] to %[[TO]]

// -----

// Tiles are gone over by parts of four, from the last part on, all heads of a part before the next one. A tile says which part it
// is in, so that no part comes to a tile of another one. Grid points begin together, and leave at their own first tile: what the
// outer loop says follows from that.
!S = !tile.view<[H, M, 64], f32>
tile.kernel @parts(%s: !S) grid(%n = M ceildiv 64)
    fixed_sums schedule #tile.schedule<persistent = dynamic, order = ascending> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %heads = tile.dim "H"
  %blocks = arith.ceildivui %m, %c64 : index
  %parts = arith.ceildivui %blocks, %c4 : index
  %own = arith.divui %n, %c4 : index
  %seen = arith.subi %parts, %own : index
  %last = arith.subi %parts, %c1 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %i = %c0 to %seen step %c1 {
    %part = arith.subi %last, %i : index
    %begin = arith.muli %part, %c4 : index
    %end = arith.addi %begin, %c4 : index
    %from = arith.maxsi %begin, %n : index
    %to = arith.minsi %end, %blocks : index
    scf.for %h = %c0 to %heads step %c1 {
      scf.for %j = %from to %to step %c1 {
        %row = arith.muli %j, %c64 : index
        tile.store %t, %s[%h, %row, %c0] add : tensor<64x64xf32>, !S
      }
    }
  }
}
// CHECK-LABEL: @parts
// CHECK: %[[NEXT:.*]] = arith.addi %n, %c1
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[NEXT]]
// CHECK: scf.for
// CHECK-NOT: arith.cmpi
// CHECK: scf.for
// CHECK-NOT: arith.cmpi
// CHECK: scf.for %[[J:.*]] =
// CHECK-DAG: %[[REACHED:.*]] = arith.cmpi sle, %[[NEXT]], %[[J]]
// CHECK-DAG: %[[COMES:.*]] = arith.andi %[[EXISTS]], %[[REACHED]]
// CHECK-DAG: %[[TO:.*]] = arith.select %[[COMES]], %[[NEXT]], %c0
// CHECK: tile.store %{{.*}} add ticket %{{.*}} from %n to %[[TO]]

// -----

// An outer loop that ends earlier than the inner one says is asked too.
!S = !tile.view<[M, 64], f32>
tile.kernel @fewer_parts(%s: !S) grid(%n = M ceildiv 64)
    fixed_sums schedule #tile.schedule<persistent = dynamic, order = ascending> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %blocks = arith.ceildivui %m, %c64 : index
  %parts = arith.ceildivui %blocks, %c4 : index
  %seen = arith.subi %parts, %n : index
  %last = arith.subi %parts, %c1 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %i = %c0 to %seen step %c1 {
    %part = arith.subi %last, %i : index
    %begin = arith.muli %part, %c4 : index
    %end = arith.addi %begin, %c4 : index
    %from = arith.maxsi %begin, %n : index
    scf.for %j = %from to %end step %c1 {
      %row = arith.muli %j, %c64 : index
      tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
    }
  }
}
// CHECK-LABEL: @fewer_parts
// CHECK: %[[NEXT:.*]] = arith.addi %n, %c1
// CHECK: %[[SEEN:.*]] = arith.subi %{{.*}}, %[[NEXT]]
// CHECK: scf.for %[[I:.*]] =
// CHECK: scf.for %[[J:.*]] =
// CHECK-DAG: arith.cmpi sle, %[[NEXT]], %[[J]]
// CHECK-DAG: arith.cmpi slt, %[[I]], %[[SEEN]]

// From the last tile on: all begin together.
tile.kernel @down(%s: !S) grid(%n = M ceildiv 64)
    fixed_sums schedule #tile.schedule<persistent = dynamic, order = ascending> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = tile.dim "M"
  %blocks = arith.ceildivui %m, %c64 : index
  %seen = arith.subi %blocks, %n : index
  %last = arith.subi %blocks, %c1 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  scf.for %i = %c0 to %seen step %c1 {
    %j = arith.subi %last, %i : index
    %row = arith.muli %j, %c64 : index
    tile.store %t, %s[%row, %c0] add : tensor<64x64xf32>, !S
  }
}
// CHECK-LABEL: @down
// CHECK: %[[NEXT:.*]] = arith.addi %n, %c1
// CHECK: %[[SEEN:.*]] = arith.subi %{{.*}}, %[[NEXT]]
// CHECK: scf.for %[[I:.*]] =
// CHECK-DAG: arith.cmpi slt, %[[I]], %[[SEEN]]
// CHECK: tile.store %{{.*}} add ticket %{{.*}} from %n to
