// Products read f32 from shared memory along K alone: first operands go there too, and second ones with their columns as rows where
// these run along K. They are rounded.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-operands))' | FileCheck %s

!F = tensor<64x64xf32, #hop.layout<accumulator>>

// One tile as each operand, in either orientation: four buffers.
// CHECK-LABEL: hop.kernel @alone
// CHECK: %[[ALL:.*]] = hop.staging "operand" : !hop.shared<tensor<64x64xf32>, rows = 64>
// CHECK: %[[ALL_T:.*]] = hop.staging "operand" : !hop.shared<tensor<64x64xf32>, rows = 64>
// CHECK-COUNT-2: hop.staging "operand" : !hop.shared<tensor<64x64xf32>, rows = 64>
// CHECK-NOT: hop.staging
// CHECK-DAG: %[[OWN:.*]] = hop.slice %[[ALL]][
// CHECK-DAG: %[[OWN_T:.*]] = hop.slice %[[ALL_T]][
// CHECK: %[[T:.*]] = math.exp2
// CHECK-NEXT: hop.stage %[[T]], %[[AT:[a-z0-9]+]] transposed tf32 :
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.stage %[[T]], %[[A:[a-z0-9]+]] tf32 :
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.stage %[[T]], %[[OWN_T]] transposed tf32 :
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.stage %[[T]], %[[OWN]] tf32 :
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NEXT: hop.mma %[[A]], %[[ALL_T]] {transpose_b} :
// CHECK-NEXT: hop.mma %[[AT]], %[[ALL]] acc({{.*}}) {transpose_b} :
hop.kernel @alone attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %x = arith.constant dense<1.0> : !F
    %t = math.exp2 %x : !F
    %d = hop.mma %t, %t : !F, !F -> !F
    %e = hop.mma %t, %t acc(%d : !F) {transpose_a, transpose_b} : !F, !F -> !F
    %valid = arith.cmpf ogt, %e, %e : !F
    hop.doubt %valid : tensor<64x64xi1, #hop.layout<accumulator>>
  }
}

// Two warpgroups have 64 rows each. Those of a first operand are their own; of a second one that is written by columns each has 64
// columns of the whole, or multiplies those alone where the rows of the first are contracted.
// CHECK-LABEL: hop.kernel @together
// CHECK-DAG: %[[B:.*]] = hop.staging "operand" : !hop.shared<tensor<64x128xf32>, rows = 64>
// CHECK-DAG: %[[A:.*]] = hop.staging "operand" : !hop.shared<tensor<128x128xf32>, rows = 128>
// CHECK-DAG: %[[AT:.*]] = hop.staging "operand" : !hop.shared<tensor<64x128xf32>, rows = 64>
// CHECK: hop.role
// CHECK-DAG: %[[COLUMNS:.*]] = hop.slice %[[B]][%{{.*}}] : {{.*}} -> !hop.shared<tensor<64x64xf32>, rows = 64>
// CHECK-DAG: %[[ROWS:.*]] = hop.slice %[[A]][%{{.*}}] : {{.*}} -> !hop.shared<tensor<64x128xf32>, rows = 128>
// CHECK: hop.role_sync
// CHECK-NEXT: hop.stage %{{.*}}, %{{.*}} transposed tf32 :
// CHECK-NEXT: hop.role_sync
// CHECK: hop.mma %[[ROWS]], %[[B]] {transpose_b} : !hop.shared<tensor<64x128xf32>, rows = 128>, !hop.shared<tensor<64x128xf32>, rows = 64>
// CHECK: hop.mma %{{.*}}, %{{.*}} {transpose_b} : !hop.shared<tensor<64x64xf32>, rows = 64>, !hop.shared<tensor<64x64xf32>, rows = 64>
hop.kernel @together attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %x = arith.constant dense<1.0> : !F
    %t = math.exp2 %x : !F
    %wide = arith.constant dense<1.0> : tensor<64x128xf32, #hop.layout<accumulator>>
    %w = math.exp2 %wide : tensor<64x128xf32, #hop.layout<accumulator>>
    %d = hop.mma %w, %t : tensor<64x128xf32, #hop.layout<accumulator>>, !F -> !F
    %e = hop.mma %t, %t {transpose_a} : !F, !F -> !F
    %valid = arith.cmpf ogt, %d, %e : !F
    hop.doubt %valid : tensor<64x64xi1, #hop.layout<accumulator>>
  }
}
