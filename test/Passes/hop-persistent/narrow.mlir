// With order = narrow the grid dimension of the smaller extent changes fastest. A launch decides which that is.
// RUN: tessera-opt %s --split-input-file --pass-pipeline="builtin.module(hop.kernel(hop-persistent,canonicalize,cse))" -verify-diagnostics | FileCheck %s

// CHECK-LABEL: hop.kernel @both
// CHECK: scf.while
// CHECK: ^bb0(%[[NUMBER:[a-z0-9]+]]: index):
// CHECK-DAG: %[[ROWS:.*]] = arith.ceildivui %[[M:.*]], %c128
// CHECK-DAG: %[[COLUMNS:.*]] = arith.ceildivui %[[N:.*]], %c256
// CHECK: %[[TALL:.*]] = arith.cmpi ugt, %[[M]], %[[N]] : index
// CHECK: %[[INNER:.*]] = arith.select %[[TALL]], %[[COLUMNS]], %[[ROWS]] : index
// CHECK-DAG: %[[FAST:.*]] = arith.remui %[[NUMBER]], %[[INNER]]
// CHECK-DAG: %[[SLOW:.*]] = arith.divui %[[NUMBER]], %[[INNER]]
// CHECK-DAG: %[[ROW:.*]] = arith.select %[[TALL]], %[[SLOW]], %[[FAST]] : index
// CHECK-DAG: %[[COLUMN:.*]] = arith.select %[[TALL]], %[[FAST]], %[[SLOW]] : index
// CHECK: hop.l2_prefetch %{{.*}}[%[[ROW]]], 1
// CHECK: hop.l2_prefetch %{{.*}}[%[[COLUMN]]], 1
hop.kernel @both attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M], f32>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 128>, #tile.grid_dim<"N", 256>],
    schedule = #tile.schedule<persistent = static, order = narrow, section = 2, cluster = 1>} {
^bb0(%x: !tile.view<[M], f32>, %y: !tile.view<[N], f32>, %m: index, %n: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.l2_prefetch %x[%m], 1 : !tile.view<[M], f32>
    hop.l2_prefetch %y[%n], 1 : !tile.view<[N], f32>
  }
}

// -----

// expected-error@+1 {{has a grid of 1 dimensions, and order = narrow is for one of two}}
hop.kernel @one attributes {argument_names = ["x"], argument_types = [!tile.view<[M], f32>], grid = [#tile.grid_dim<"M", 128>],
    schedule = #tile.schedule<persistent = static, order = narrow, section = 2, cluster = 1>} {
^bb0(%x: !tile.view<[M], f32>, %m: index):
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.l2_prefetch %x[%m], 1 : !tile.view<[M], f32>
  }
}
