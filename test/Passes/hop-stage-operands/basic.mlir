// Computed operands of products in shared memory: of those that are transposed, which tiles share a buffer.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-operands),canonicalize)' | FileCheck %s

// Tiles of one shape share a buffer when they are not needed together, in different branches too; others do not.
// CHECK-LABEL: hop.kernel @buffers
// CHECK: %[[A:.*]] = hop.staging "operand" : !hop.shared<tensor<64x128xbf16>, rows = 64>
// CHECK: %[[B:.*]] = hop.staging "operand" : !hop.shared<tensor<64x128xbf16>, rows = 64>
// CHECK: %[[C:.*]] = hop.staging "operand" : !hop.shared<tensor<64x128xf16>, rows = 64>
// CHECK-NOT: hop.staging
hop.kernel @buffers attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %v = hop.staging "v" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %w = hop.staging "w" : !hop.shared<tensor<64x64xf16>, rows = 64>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    // CHECK: hop.role
    // CHECK-DAG: %[[SA:.*]] = hop.slice %[[A]][
    // CHECK-DAG: %[[SB:.*]] = hop.slice %[[B]][
    // CHECK-DAG: %[[SC:.*]] = hop.slice %[[C]][
    %x = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    %p = arith.truncf %x : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    // CHECK: hop.stage %{{.*}}, %[[SA]]
    %y = math.exp2 %x : tensor<64x64xf32, #hop.layout<accumulator>>
    %q = arith.truncf %y : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    // CHECK: hop.stage %{{.*}}, %[[SB]]
    // CHECK: hop.mma %[[SA]],
    %d0 = hop.mma %p, %v {transpose_a} : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    // CHECK: hop.mma %[[SB]],
    %d1 = hop.mma %q, %v acc(%d0 : tensor<64x64xf32, #hop.layout<accumulator>>) {transpose_a} : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %r = arith.truncf %d1 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xf16, #hop.layout<accumulator>>
    // CHECK: hop.stage %{{.*}}, %[[SC]]
    // CHECK: hop.mma %[[SC]],
    %d2 = hop.mma %r, %w acc(%d1 : tensor<64x64xf32, #hop.layout<accumulator>>) {transpose_a} : tensor<64x64xf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %first = arith.cmpi eq, %wg, %c0 : index
    // CHECK: scf.if {{.*}} -> (tensor<64x64xf32, #hop.layout<accumulator>>) {
    %d3, %p3 = scf.if %first -> (tensor<64x64xf32, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>) {
      %s = arith.truncf %d2 : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
      // CHECK: hop.stage %{{.*}}, %[[SA]]
      scf.yield %d2, %s : tensor<64x64xf32, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>
    } else {
      %e = math.exp2 %d2 : tensor<64x64xf32, #hop.layout<accumulator>>
      %s = arith.truncf %e : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
      // CHECK: hop.stage %{{.*}}, %[[SA]]
      scf.yield %e, %s : tensor<64x64xf32, #hop.layout<accumulator>>, tensor<64x64xbf16, #hop.layout<accumulator>>
    }
    // CHECK: hop.mma %[[SA]],
    %d4 = hop.mma %p3, %v acc(%d3 : tensor<64x64xf32, #hop.layout<accumulator>>) {transpose_a} : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    // In the loop %t of the iteration is made while %p3 is read in each.
    // CHECK: scf.for
    %d5 = scf.for %i = %c0 to %c4 step %c1 iter_args(%d = %d4) -> (tensor<64x64xf32, #hop.layout<accumulator>>) {
      %t = arith.truncf %d : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
      // CHECK: hop.stage %{{.*}}, %[[SB]]
      // CHECK: hop.mma %[[SB]],
      %g = hop.mma %t, %v acc(%d : tensor<64x64xf32, #hop.layout<accumulator>>) {transpose_a} : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
      // CHECK: hop.mma %[[SA]],
      %h = hop.mma %p3, %v acc(%g : tensor<64x64xf32, #hop.layout<accumulator>>) {transpose_a} : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
      scf.yield %h : tensor<64x64xf32, #hop.layout<accumulator>>
    }
    hop.doubt %first : i1
  }
}

// A constant stands outside of the role, and is written before what multiplies it.
// CHECK-LABEL: hop.kernel @constant
// CHECK: %[[A:.*]] = hop.staging "operand"
// CHECK: hop.role
// CHECK: %[[S:.*]] = hop.slice %[[A]][
// CHECK-NEXT: hop.stage %{{.*}}, %[[S]]
// CHECK-NEXT: hop.warpgroup_sync
// CHECK: hop.mma %[[S]],
hop.kernel @constant attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %v = hop.staging "v" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %ones = arith.constant dense<1.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %d = hop.mma %ones, %v {transpose_a} : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %x = tile.reduce max %d axis 1 : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64xf32, #hop.layout<row>>
    %y = arith.cmpf ogt, %x, %x : tensor<64xf32, #hop.layout<row>>
    hop.doubt %y : tensor<64xi1, #hop.layout<row>>
  }
}
