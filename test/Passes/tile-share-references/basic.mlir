// Where rows have numbers in common, they refer to one, and what rows alone have leaves the loop with it.
//
// RUN: tessera-opt %s --tile-share-references | FileCheck %s
// RUN: tessera-opt %s --tile-share-references 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK-COUNT-3: remark: rows of a thread share a reference: what they have in common is added once for all
// REMARK: remark: each row has a reference of its own: no addend has numbers that rows have in common
// REMARK: remark: each row has a reference of its own: rows have all addends in common, and no element is left to add to
// REMARK: remark: each row has a reference of its own: it is taken away from no sum of tiles, or from several
// REMARK: remark: each row has a reference of its own: it is taken away from no sum of tiles, or from several

!X = !tile.view<[M, 32], f32>
!N = !tile.view<[N], f32>
!Row = tensor<64xf32>
!Col = tensor<32xf32>
!T = tensor<64x32xf32>
!I = tensor<64x32xi32>

// A number of each column: the reference less what rows have is shared, and follows from that for others.
// CHECK-LABEL: tile.kernel @columns
// CHECK-DAG:   %[[G:.*]] = tile.load %g
// CHECK-DAG:   %[[LARGEST:.*]] = tile.load %largest
// CHECK:       %[[OWN:.*]] = arith.subf %[[LARGEST]], %[[G]]
// CHECK:       %[[SHARED:.*]] = tile.reference %[[OWN]]
// CHECK:       %[[REFERENCE:.*]] = arith.addf %[[SHARED]], %[[G]]
// CHECK:       scf.for
// CHECK:         %[[N:.*]] = tile.broadcast %{{.*}} axis 0
// CHECK:         %[[X:.*]] = arith.mulf
// CHECK:         %[[OFCOLUMNS:.*]] = arith.mulf %[[N]]
// CHECK:         %[[SHAREDS:.*]] = tile.broadcast %[[SHARED]] axis 1
// CHECK:         %[[LESS:.*]] = arith.subf %[[OFCOLUMNS]], %[[SHAREDS]]
// CHECK:         %[[SUM:.*]] = arith.addf %[[X]], %[[LESS]]
// CHECK:         math.exp2 %[[SUM]]
// CHECK:       tile.store %[[REFERENCE]], %y
tile.kernel @columns(%x: !X, %n: !N, %g: !N, %largest: !N, %y: !N, %o: !X) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = tile.dim "N"
  %two = arith.constant dense<2.0> : !T
  %of_rows = tile.load %g[%c0] : !N -> !Row
  %own = tile.load %largest[%c0] : !N -> !Row
  %reference = tile.reference %own : !Row
  %less = arith.subf %of_rows, %reference : !Row
  scf.for %j = %c0 to %end step %c1 {
    %t = tile.load %x[%j, %c0] : !X -> !T
    %of_column = tile.load %n[%j] : !N -> !Col
    %columns = tile.broadcast %of_column axis 0 : !Col -> !T
    %rows = tile.broadcast %less axis 1 : !Row -> !T
    %scaled = arith.mulf %t, %two : !T
    %a = arith.addf %scaled, %rows : !T
    %b = arith.mulf %columns, %two : !T
    %e = arith.addf %b, %a : !T
    %p = math.exp2 %e : !T
    tile.store %p, %o[%j, %c0] : !T, !X
  }
  tile.store %reference, %y[%c0] : !Row, !N
}

// The same of what is a function of the distance of row and column.
// CHECK-LABEL: tile.kernel @distances
// CHECK:       %[[SHARED:.*]] = tile.reference %{{.*}}
// CHECK:       %[[AWAY:.*]] = math.sqrt
// CHECK:       %[[SHAREDS:.*]] = tile.broadcast %[[SHARED]] axis 1
// CHECK:       %[[LESS:.*]] = arith.subf %[[AWAY]], %[[SHAREDS]]
// CHECK:       arith.addf %{{.*}}, %[[LESS]]
// CHECK:       tile.store %[[SHARED]], %y
tile.kernel @distances(%x: !X, %largest: !N, %y: !N) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %own = tile.load %largest[%c0] : !N -> !Row
  %reference = tile.reference %own : !Row
  %t = tile.load %x[%c0, %c0] : !X -> !T
  %q = tile.iota %c0 axis 0 : !I
  %k = tile.iota %c0 axis 1 : !I
  %distance = arith.subi %q, %k : !I
  %away = arith.sitofp %distance : !I to !T
  %root = math.sqrt %away : !T
  %rows = tile.broadcast %reference axis 1 : !Row -> !T
  %a = arith.subf %t, %rows : !T
  %e = arith.addf %a, %root : !T
  tile.store %e, %x[%c0, %c0] : !T, !X
  tile.store %reference, %y[%c0] : !Row, !N
}

// A reference that only exponents have goes with them.
// CHECK-LABEL: tile.kernel @alone
// CHECK:       %[[OWN:.*]] = tile.load %largest
// CHECK:       %[[SHARED:.*]] = tile.reference %[[OWN]]
// CHECK-NOT:   tile.reference
// CHECK:       tile.store
tile.kernel @alone(%x: !X, %n: !N, %largest: !N) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %own = tile.load %largest[%c0] : !N -> !Row
  %reference = tile.reference %own : !Row
  %t = tile.load %x[%c0, %c0] : !X -> !T
  %of_column = tile.load %n[%c0] : !N -> !Col
  %columns = tile.broadcast %of_column axis 0 : !Col -> !T
  %rows = tile.broadcast %reference axis 1 : !Row -> !T
  %a = arith.subf %t, %rows : !T
  %e = arith.addf %a, %columns : !T
  tile.store %e, %x[%c0, %c0] : !T, !X
}

// Nothing in common; elements that are all made of columns; a reference that is added, and one that two sums have.
// CHECK-LABEL: tile.kernel @stays
// CHECK-NOT:   tile.reference
tile.kernel @stays(%x: !X, %n: !N, %largest: !N) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %own = tile.load %largest[%c0] : !N -> !Row
  %t = tile.load %x[%c0, %c0] : !X -> !T
  %of_column = tile.load %n[%c0] : !N -> !Col
  %columns = tile.broadcast %of_column axis 0 : !Col -> !T
  %reference = tile.reference %own : !Row
  %rows = tile.broadcast %reference axis 1 : !Row -> !T
  %a = arith.subf %t, %rows : !T
  tile.store %a, %x[%c0, %c0] : !T, !X
  %reference1 = tile.reference %own : !Row
  %rows1 = tile.broadcast %reference1 axis 1 : !Row -> !T
  %a1 = arith.subf %columns, %rows1 : !T
  tile.store %a1, %x[%c0, %c0] : !T, !X
  %reference2 = tile.reference %own : !Row
  %rows2 = tile.broadcast %reference2 axis 1 : !Row -> !T
  %a2 = arith.addf %t, %rows2 : !T
  %e2 = arith.addf %a2, %columns : !T
  tile.store %e2, %x[%c0, %c0] : !T, !X
  %reference3 = tile.reference %own : !Row
  %rows3 = tile.broadcast %reference3 axis 1 : !Row -> !T
  %a3 = arith.subf %t, %rows3 : !T
  %e3 = arith.addf %a3, %columns : !T
  tile.store %e3, %x[%c0, %c0] : !T, !X
  %f3 = arith.subf %columns, %rows3 : !T
  tile.store %f3, %x[%c0, %c0] : !T, !X
}
