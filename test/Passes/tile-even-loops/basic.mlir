// Loops that run longer in some blocks of a cluster load as many tiles in all of them; others stay as they are.
//
// RUN: tessera-opt %s --tile-even-loops -split-input-file -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --tile-even-loops --canonicalize --cse -split-input-file -o /dev/null

#two = #tile.schedule<producer = operands, cluster = 2>

// The bound grows with %m: the last tile of the cluster has most blocks of y, and the grid may end before it. What does
// not depend on %m is not computed again.
// CHECK-LABEL: tile.kernel @grows
// CHECK-SAME:  grid(%[[M:.*]] = M ceildiv 64, %[[B:.*]] = N)
// CHECK:       %[[N:.*]] = tile.dim "N"
// CHECK:       %[[SEEN:.*]] = arith.minsi %{{.*}}, %[[N]]
// CHECK:       %[[OWN:.*]] = arith.ceildivsi %[[SEEN]], %c32
// CHECK:       tile.load %x[%{{.*}}] pipe 0
// CHECK:       tile.load %y[%c0, %c0] pipe 1 alike
// CHECK:       %[[CLUSTER:.*]] = arith.divui %[[M]], %[[C2:.*]] : index
// CHECK:       %[[FIRST:.*]] = arith.muli %[[CLUSTER]], %[[C2]] : index
// CHECK:       %[[NEXT:.*]] = arith.addi %[[FIRST]], %{{.*}} : index
// CHECK:       %[[COUNT:.*]] = arith.ceildivui %{{.*}}, %{{.*}} : index
// CHECK:       %[[END:.*]] = arith.subi %[[COUNT]], %{{.*}} : index
// CHECK:       %[[LAST:.*]] = arith.minui %[[NEXT]], %[[END]] : index
// CHECK:       %[[ROW:.*]] = arith.muli %[[LAST]], %c64 : index
// CHECK:       %[[BELOW:.*]] = arith.addi %[[ROW]], %c64 : index
// CHECK:       %[[MOST:.*]] = arith.minsi %[[BELOW]], %[[N]] : index
// CHECK:       %[[ALL:.*]] = arith.ceildivsi %[[MOST]], %c32 : index
// CHECK:       %[[BOUND:.*]] = tile.common_bound %[[OWN]] loads %[[ALL]]
// CHECK:       scf.for %{{.*}} = %c0 to %[[BOUND]] step %c1
// CHECK:         tile.load %y[%{{.*}}, %c0] pipe 1 alike
// CHECK:         tile.load %x[%{{.*}}, %c0] pipe 2
// CHECK:       }
// CHECK:       %[[D0:.*]] = arith.subi %[[ALL]], %c0 : index
// CHECK:       %[[S0:.*]] = arith.maxsi %[[D0]], %{{.*}} : index
// CHECK:       %[[I0:.*]] = arith.ceildivsi %[[S0]], %c1 : index
// CHECK:       %[[D1:.*]] = arith.subi %[[OWN]], %c0 : index
// CHECK:       %[[S1:.*]] = arith.maxsi %[[D1]], %{{.*}} : index
// CHECK:       %[[I1:.*]] = arith.ceildivsi %[[S1]], %c1 : index
// CHECK:       %[[REST:.*]] = arith.subi %[[I0]], %[[I1]] : index
// CHECK-NEXT:  tile.skip_loads [1, 2] times %[[REST]]
tile.kernel @grows(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64, %b = N) schedule #two {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %below = arith.addi %row, %c64 : index
  %seen = arith.minsi %below, %n : index
  %blocks = arith.ceildivsi %seen, %c32 : index
  %a = tile.load %x[%row, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %first = tile.load %y[%c0, %c0] pipe 1 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %start = tile.dot %a, %first : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  // expected-remark@+1 {{loop loads as many tiles in all 2 blocks of a cluster as in the one where it is longest}}
  %sum = scf.for %j = %c0 to %blocks step %c1 iter_args(%s = %start) -> tensor<64x64xf32> {
    %col = arith.muli %j, %c32 : index
    %t = tile.load %y[%col, %c0] pipe 1 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    // What a block loads for itself is loaded as often.
    %at = arith.addi %row, %col : index
    %o = tile.load %x[%at, %c0] pipe 2 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %o, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// The bound falls with %m: the first tile of the cluster has most.
// CHECK-LABEL: tile.kernel @falls
// CHECK-SAME:  grid(%[[M:.*]] = M ceildiv 64)
// CHECK:       %[[N:.*]] = tile.dim "N"
// CHECK:       %[[OWN:.*]] = arith.subi %[[N]], %[[M]] : index
// CHECK:       %[[CLUSTER:.*]] = arith.divui %[[M]], %[[C4:.*]] : index
// CHECK:       %[[FIRST:.*]] = arith.muli %[[CLUSTER]], %[[C4]] : index
// CHECK-NEXT:  %[[MOST:.*]] = arith.subi %[[N]], %[[FIRST]] : index
// CHECK-NEXT:  tile.common_bound %[[OWN]] loads %[[MOST]]
// CHECK:       tile.skip_loads [1] times
tile.kernel @falls(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<producer = operands, cluster = 4> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %end = arith.subi %n, %m : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %x[%row, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // expected-remark@+1 {{loop loads as many tiles in all 4 blocks}}
  %sum = scf.for %j = %c0 to %end step %c64 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %t = tile.load %y[%j, %c0] pipe 1 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// A loop that runs alike in all blocks needs nothing but the mark; one that comes to other places stays, and so does
// everything in a program without a producer or without a cluster.
// CHECK-LABEL: tile.kernel @same
// CHECK-NOT:   tile.common_bound
// CHECK:       scf.for
// CHECK-NEXT:    tile.load %y[%{{.*}}] pipe 1 alike
// CHECK-NOT:   tile.skip_loads
tile.kernel @same(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<producer = operands, cluster = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %x[%row, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %t = tile.load %y[%j, %c0] pipe 1 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
// CHECK-LABEL: tile.kernel @backward
// CHECK-NOT:   alike
// CHECK-NOT:   tile.common_bound
tile.kernel @backward(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<producer = operands, cluster = 2> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = arith.muli %m, %m : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %x[%row, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %c0 to %m step %c1 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %col = arith.subi %m, %j : index
    %t = tile.load %y[%col, %c0] pipe 1 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
// CHECK-LABEL: tile.kernel @consumers_load
// CHECK-NOT:   alike
// CHECK-NOT:   tile.common_bound
tile.kernel @consumers_load(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<producer = none, cluster = 2> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %x[%m, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %c0 to %m step %c1 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %t = tile.load %y[%j, %c0] pipe 1 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
// CHECK-LABEL: tile.kernel @alone
// CHECK-NOT:   alike
// CHECK-NOT:   tile.common_bound
tile.kernel @alone(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<cluster = 1> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %x[%m, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %c0 to %m step %c1 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %t = tile.load %y[%j, %c0] pipe 1 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// Neighbours have one quotient of the index by a multiple of their number, from which both may start; a quotient by
// another number differs within some clusters.
// CHECK-LABEL: tile.kernel @starts_together
// CHECK-NOT:   tile.common_bound
// CHECK:       tile.load %y[%{{.*}}, %c0] pipe 1 alike
// CHECK:       tile.load %y[%{{.*}}, %c0] pipe 2 alike
// CHECK:       tile.load %y[%{{.*}}, %c0] pipe 3 :
// CHECK:       tile.load %y[%{{.*}}, %c0] pipe 4 :
// CHECK-NOT:   tile.skip_loads
tile.kernel @starts_together(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<producer = operands, cluster = 2> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pair = arith.divui %m, %c2 : index
  %start = arith.muli %pair, %c2 : index
  %four = arith.divui %m, %c4 : index
  %three = arith.divui %m, %c3 : index
  %inverse = arith.divui %c4, %m : index
  %a = tile.load %x[%row, %c0] pipe 0 : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %s1 = scf.for %j = %start to %n step %c1 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %t = tile.load %y[%j, %c0] pipe 1 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %s2 = scf.for %j = %four to %n step %c1 iter_args(%s = %s1) -> tensor<64x64xf32> {
    %t = tile.load %y[%j, %c0] pipe 2 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %s3 = scf.for %j = %three to %n step %c1 iter_args(%s = %s2) -> tensor<64x64xf32> {
    %t = tile.load %y[%j, %c0] pipe 3 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %s4 = scf.for %j = %inverse to %n step %c1 iter_args(%s = %s3) -> tensor<64x64xf32> {
    %t = tile.load %y[%j, %c0] pipe 4 : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %s4, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
