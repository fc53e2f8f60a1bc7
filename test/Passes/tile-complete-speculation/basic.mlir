// Each region gets what stands before and after the speculation.
//
// RUN: tessera-opt %S/../Inputs/speculation.mlir --tile-complete-speculation --canonicalize | FileCheck %s
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-complete-speculation | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: tile.kernel @guess
// CHECK-NOT:   tile.load
// CHECK:       tile.speculate {
// CHECK:         tile.load %{{.*}} : {{.*}}[M, 64]
// CHECK:         %[[B0:.*]] = tile.load %{{.*}} : {{.*}}[N, 64]
// CHECK:         %[[S:.*]] = scf.for
// CHECK:         %[[VALID:.*]] = arith.cmpf ole
// CHECK:         tile.store %[[S]],
// CHECK-NEXT:    tile.yield_if %[[VALID]] : tensor<64xi1>
// CHECK:       } exact {
// CHECK:         tile.load %{{.*}} : {{.*}}[M, 64]
// CHECK:         %[[E:.*]] = scf.for
// CHECK:         tile.store %[[E]],
// CHECK-NEXT:    tile.yield{{$}}
// CHECK-NEXT:  }
// CHECK-NEXT: }

// NONE-NOT: tile.speculate
