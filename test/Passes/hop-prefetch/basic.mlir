// Loads ahead of their use, without a producer.
//
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,overlap=1,stages=2,producer=none},tile.kernel(tile-choose-schedule),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-prefetch),canonicalize,cse)' | FileCheck %s
// RUN: tessera-opt %S/../Inputs/gemm.mlir --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,stages=4,producer=none},tile.kernel(tile-choose-schedule),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-prefetch),canonicalize,cse)' | FileCheck %s --check-prefix=FOUR
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,overlap=2,stages=2,producer=none},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse,hop.kernel(hop-prefetch),canonicalize,cse)' | FileCheck %s --check-prefix=OVERLAP
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,overlap=2,stages=2,producer=none},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse,hop.kernel(hop-prefetch),canonicalize,cse,hop.kernel(hop-assign-layouts,hop-async-mma))' | FileCheck %s --check-prefix=FLIGHT
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,overlap=1,stages=2},tile.kernel(tile-choose-schedule),tile-warp-specialize,canonicalize,cse)' -o %t.mlir
// RUN: tessera-opt %t.mlir --pass-pipeline='builtin.module(hop.kernel(hop-prefetch))' | diff %t.mlir -

// Two slots, of which the role holds one: one iteration ahead. The tile from outside stays where it is.
// CHECK: scf.if
// CHECK-NEXT: hop.pipe.load %[[Q:[^,]+]], %{{.*}} : !hop.pipe<tensor<128x64xbf16>
// CHECK: hop.pipe.wait %[[Q]] :
// CHECK: hop.pipe.load %[[K:[^,]+]], %{{.*}}[%c0, %c0]
// CHECK: hop.pipe.load %[[V:[^,]+]], %{{.*}}[%c0, %c0]
// CHECK: scf.for %[[J:.*]] = %c0 to %[[N:.*]] step %c64
// CHECK: %[[NEXT:.*]] = arith.addi %[[J]], %c64
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %[[N]]
// CHECK: %[[BOTH:.*]] = arith.andi %{{.*}}, %[[MORE]]
// CHECK: scf.if %[[BOTH]] {
// CHECK-NEXT: hop.pipe.load %[[K]], %{{.*}}[%[[NEXT]], %c0]
// CHECK-NEXT: }
// CHECK-NEXT: hop.pipe.wait %[[K]]
// CHECK: scf.if %[[BOTH]] {
// CHECK-NEXT: hop.pipe.load %[[V]], %{{.*}}[%[[NEXT]], %c0]
// CHECK-NEXT: }
// CHECK-NEXT: hop.pipe.wait %[[V]]
// CHECK-NOT: hop.pipe.load

// Of four slots one is held and one left to the slowest warpgroup: two iterations ahead.
// FOUR: hop.pipe.load %[[A:[^,]+]], %{{.*}}[%{{.*}}, %c0]
// FOUR: hop.pipe.load %[[A]], %{{.*}}[%{{.*}}, %c64]
// FOUR: hop.pipe.load %[[B:[^,]+]], %{{.*}}[%c0, %{{.*}}]
// FOUR: hop.pipe.load %[[B]], %{{.*}}[%c64, %{{.*}}]
// FOUR: scf.for %[[J:.*]] = %c0 to
// FOUR: %[[TWO:.*]] = arith.addi %[[J]], %c128
// FOUR: hop.pipe.load %[[A]], %{{.*}}[%{{.*}}, %[[TWO]]]
// FOUR: hop.pipe.load %[[B]], %{{.*}}[%[[TWO]], %{{.*}}]
// FOUR-NOT: hop.pipe.load

// In a rotated loop the values of the iteration before are carried, so its next load is at this one's place.
// OVERLAP: scf.for %[[J:.*]] = %c64 to
// OVERLAP: %[[NEXT:.*]] = arith.addi %[[J]], %c64
// OVERLAP: hop.pipe.load %{{.*}}, %{{.*}}[%[[NEXT]], %c0]
// OVERLAP: hop.pipe.load %{{.*}}, %{{.*}}[%[[J]], %c0]
// OVERLAP: scf.yield

// The start of a load leaves products in flight that read no slot of its pipe.
// FLIGHT: scf.for
// FLIGHT: hop.mma_issue
// FLIGHT-NOT: hop.mma_wait
// FLIGHT: scf.if
// FLIGHT-NEXT: hop.pipe.load
// FLIGHT-NOT: hop.mma_wait
// FLIGHT: hop.mma_issue
