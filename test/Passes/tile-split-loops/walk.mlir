// A loop that may go from its end has its masked iterations in front of the middle then, or behind it.
//
// RUN: tessera-opt %s --tile-split-loops --canonicalize --cse | FileCheck %s
// RUN: tessera-opt %s --tile-split-loops=split=false --canonicalize --cse | FileCheck %s --check-prefix=WHOLE

!C = tensor<64x64xi32>
!T = tensor<64x64xf32>

// Up, [%first, min(%first + 1, %n)) needs its mask; down, that many at the other end.
// CHECK-LABEL: tile.kernel @triangle
// CHECK: %[[DOWN:.*]] = tile.walks_down
// CHECK: %[[UP:.*]] = arith.minsi %{{.*}}, %[[N:.*]] : index
// CHECK: %[[TOTAL:.*]] = arith.addi %[[FIRST:.*]], %[[N]]
// CHECK: %[[EITHER:.*]] = arith.select %[[DOWN]], %[[FIRST]], %[[UP]]
// CHECK: %[[BEGIN:.*]] = arith.maxsi %[[EITHER]], %[[FIRST]]
// CHECK: %[[OTHER:.*]] = arith.subi %[[TOTAL]], %[[UP]]
// CHECK: %[[EITHER_END:.*]] = arith.select %[[DOWN]], %[[OTHER]], %[[N]]
// CHECK: %[[END:.*]] = arith.maxsi %[[EITHER_END]], %[[BEGIN]]
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %[[BEGIN]] step
// CHECK:   %[[BACK:.*]] = arith.subi %{{.*}}, %[[I]]
// CHECK:   %[[NONE:.*]] = arith.maxsi %[[BACK]], %c0
// CHECK:   %[[J:.*]] = arith.select %[[DOWN]], %[[NONE]], %[[I]]
// CHECK:   arith.muli %[[J]], %c64
// CHECK:   arith.cmpi slt
// CHECK:   arith.select {{.*}} tensor
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step
// CHECK-NOT: arith.cmpi slt
// CHECK: scf.for %{{.*}} = %[[END]] to %[[N]] step
// CHECK:   arith.cmpi slt
// CHECK:   arith.select {{.*}} tensor
// WHOLE-NOT: tile.walk %
// WHOLE: arith.select %{{.*}}, %{{.*}}, %{{.*}} : index
tile.kernel @triangle(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[M, 64], f32>, %n: index) grid(%m = M ceildiv 64)
    schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %key = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : !T
  %keys = tile.iota %key axis 0 : !C
  %down = tile.walks_down
  %sum = scf.for %i = %m to %n step %c1 iter_args(%old = %zero) -> (!T) {
    %j = tile.walk %i from %m to %n down %down
    %row = arith.muli %j, %c64 : index
    %t = tile.load %x[%row, %c0] : !tile.view<[M, 64], f32> -> !T
    %rows = tile.iota %row axis 1 : !C
    %hidden = arith.cmpi slt, %rows, %keys : !C
    %s = arith.select %hidden, %zero, %t : tensor<64x64xi1>, !T
    %new = arith.addf %old, %s : !T
    scf.yield %new : !T
  }
  tile.store %sum, %y[%key, %c0] : !T, !tile.view<[M, 64], f32>
}
