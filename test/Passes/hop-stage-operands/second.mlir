// Second operands in registers: wgmma reads them from shared memory, so that each warpgroup writes its rows there and all meet.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-operands))' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-stage-operands,hop-async-mma,hop-insert-proxy-fences))' | FileCheck %s --check-prefix=ASYNC

!Bf = tensor<64x64xbf16, #hop.layout<accumulator>>
!F = tensor<64x64xf32, #hop.layout<accumulator>>
!Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>

// One warpgroup meets by itself, and reads one tile as it is and transposed.
// CHECK-LABEL: hop.kernel @alone
// CHECK: %[[S:.*]] = hop.staging "operand" : !hop.shared<tensor<64x64xbf16>, rows = 64>
// CHECK-NOT: hop.staging
// CHECK: %[[T:.*]] = arith.truncf
// CHECK-NEXT: hop.stage %[[T]], %{{.*}} :
// CHECK-NEXT: hop.warpgroup_sync
// CHECK-NOT: hop.role_sync
// CHECK: hop.mma %{{.*}}, %[[S]] {transpose_b}
// CHECK: hop.mma %{{.*}}, %[[S]] acc(
hop.kernel @alone attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %a = hop.staging "a" : !Shared
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %x = arith.constant dense<1.0> : !F
    %y = math.exp2 %x : !F
    %t = arith.truncf %y : !F to !Bf
    %d = hop.mma %a, %t {transpose_b} : !Shared, !Bf -> !F
    %e = hop.mma %a, %t acc(%d : !F) : !Shared, !Bf -> !F
    %valid = arith.cmpf ogt, %e, %e : !F
    hop.doubt %valid : tensor<64x64xi1, #hop.layout<accumulator>>
  }
}

// Two warpgroups have 64 rows each of 128, and multiply all. A state that a loop carries has one buffer: the threads meet when the
// products of the step before have read it, and when all have written. What they write comes behind a fence.
// CHECK-LABEL: hop.kernel @together
// CHECK: %[[S:.*]] = hop.staging "operand" : !hop.shared<tensor<128x64xbf16>, rows = 128>
// CHECK-NOT: hop.staging
// CHECK: hop.role
// CHECK: %[[OWN:.*]] = hop.slice %[[S]][%{{.*}}] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
// CHECK: scf.for
// CHECK: arith.truncf
// CHECK-NEXT: hop.role_sync
// CHECK-NEXT: hop.stage %{{.*}}, %[[OWN]] :
// CHECK-NEXT: hop.role_sync
// CHECK: hop.mma %{{.*}}, %[[S]] acc(
// ASYNC-LABEL: hop.kernel @together
// ASYNC: scf.for
// ASYNC: hop.role_sync
// ASYNC-NEXT: hop.stage
// ASYNC-NEXT: hop.proxy_fence
// ASYNC-NEXT: hop.role_sync
// ASYNC: hop.mma_issue
// ASYNC: math.exp2
// The second tile of the step goes to the same buffer: the products that read the first one end before the threads meet.
// ASYNC: hop.mma_wait %{{.*}} pending 0
// ASYNC-NEXT: hop.role_sync
// ASYNC-NEXT: hop.stage
// ASYNC-NEXT: hop.proxy_fence
// ASYNC-NEXT: hop.role_sync
hop.kernel @together attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %a = hop.staging "a" : !hop.shared<tensor<64x128xbf16>, rows = 64>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %x = arith.constant dense<1.0> : !F
    %d = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %x) -> (!F) {
      %t = arith.truncf %s : !F to !Bf
      %n = hop.mma %a, %t acc(%s : !F) : !hop.shared<tensor<64x128xbf16>, rows = 64>, !Bf -> !F
      %e = math.exp2 %s : !F
      %u = arith.truncf %e : !F to !Bf
      %o = hop.mma %a, %u acc(%e : !F) : !hop.shared<tensor<64x128xbf16>, rows = 64>, !Bf -> !F
      %next = arith.addf %n, %o : !F
      scf.yield %next : !F
    }
    %valid = arith.cmpf ogt, %d, %d : !F
    hop.doubt %valid : tensor<64x64xi1, #hop.layout<accumulator>>
  }
}

// A warpgroup that contracts its own rows reads its own rows of the second operand, or the columns that go with them.
// CHECK-LABEL: hop.kernel @sums
// CHECK-DAG: %[[S:.*]] = hop.staging "operand" : !hop.shared<tensor<128x64xbf16>, rows = 128>
// CHECK-DAG: %[[W:.*]] = hop.staging "operand" : !hop.shared<tensor<128x128xbf16>, rows = 128>
// CHECK: hop.role
// CHECK-DAG: %[[ROWS:.*]] = hop.slice %[[S]][%{{.*}}] : {{.*}} -> !hop.shared<tensor<64x64xbf16>, rows = 128>
// CHECK-DAG: %[[COLUMNS:.*]] = hop.slice %[[W]][%{{.*}}] : {{.*}} -> !hop.shared<tensor<128x64xbf16>, rows = 128>
// CHECK: hop.mma %{{.*}}, %[[ROWS]] :
// CHECK: hop.mma %{{.*}}, %[[COLUMNS]] {transpose_b} :
hop.kernel @sums attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %x = arith.constant dense<1.0> : !F
    %y = math.exp2 %x : !F
    %t = arith.truncf %y : !F to !Bf
    %d = hop.mma %t, %t {transpose_a} : !Bf, !Bf -> !F
    %wide = arith.constant dense<1.0> : tensor<64x128xf32, #hop.layout<accumulator>>
    %e = math.exp2 %wide : tensor<64x128xf32, #hop.layout<accumulator>>
    %w = arith.truncf %e : tensor<64x128xf32, #hop.layout<accumulator>> to tensor<64x128xbf16, #hop.layout<accumulator>>
    %f = hop.mma %t, %w {transpose_a, transpose_b} : !Bf, tensor<64x128xbf16, #hop.layout<accumulator>>
      -> tensor<64x128xf32, #hop.layout<accumulator>>
    %valid = arith.cmpf ogt, %d, %d : !F
    hop.doubt %valid : tensor<64x64xi1, #hop.layout<accumulator>>
    %valid2 = arith.cmpf ogt, %f, %f : tensor<64x128xf32, #hop.layout<accumulator>>
    hop.doubt %valid2 : tensor<64x128xi1, #hop.layout<accumulator>>
  }
}
