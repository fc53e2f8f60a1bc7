// Grids that a launch may have to have in x alone.
//
// RUN: tessera-opt %s --pass-pipeline="builtin.module(hop.kernel(hop-flatten-grid),canonicalize,cse)" | FileCheck %s

// The number of blocks in x says whether a block divides its number.
// CHECK-LABEL: hop.kernel @three
// CHECK: ^bb0({{.*}}, %[[M:[^ ]*]]: index, %[[H:[^ ]*]]: index, %[[B:[^ ]*]]: index):
// CHECK: hop.role @rows
// CHECK-DAG: %[[ROWS:.*]] = tile.dim "M"
// CHECK-DAG: %[[TILES:.*]] = arith.ceildivui %[[ROWS]], %c64
// CHECK-DAG: %[[BLOCKS:.*]] = hop.block_count
// CHECK: %[[FLAT:.*]] = arith.cmpi ne, %[[BLOCKS]], %[[TILES]]
// CHECK: %[[PLACE:.*]]:3 = scf.if %[[FLAT]]
// CHECK-DAG: %[[FIRST:.*]] = arith.remui %[[M]], %[[TILES]]
// CHECK-DAG: %[[REST:.*]] = arith.divui %[[M]], %[[TILES]]
// CHECK-DAG: %[[HEADS:.*]] = tile.dim "H"
// CHECK-DAG: %[[SECOND:.*]] = arith.remui %[[REST]], %[[HEADS]]
// CHECK-DAG: %[[THIRD:.*]] = arith.divui %[[REST]], %[[HEADS]]
// CHECK: scf.yield %[[FIRST]], %[[SECOND]], %[[THIRD]]
// CHECK: } else {
// CHECK: scf.yield %[[M]], %[[H]], %[[B]]
// CHECK: %[[ROW:.*]] = arith.muli %[[PLACE]]#0,
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[PLACE]]#2, %[[PLACE]]#1, %[[ROW]],
// What a role does not use it does not compute.
// CHECK: hop.role @second
// CHECK: scf.if %{{.*}} -> (index) {
// CHECK-NOT: tile.dim "H"
// CHECK: hop.role @none
// CHECK-NOT: hop.block_count
hop.kernel @three attributes {argument_names = ["y"], argument_types = [!tile.view<[B, H, M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"H", 1>, #tile.grid_dim<"B", 1>],
    schedule = #tile.schedule<persistent = none>} {
^bb0(%y: !tile.view<[B, H, M, 64], f32>, %m: index, %h: index, %b: index):
  %p = hop.pipe.create "y" : !hop.pipe<tensor<64x64xf32>, 1>
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %row = arith.muli %m, %c64 : index
    %t = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    tile.store %t, %y[%b, %h, %row, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[B, H, M, 64], f32>
  }
  hop.role @second elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %row = arith.muli %m, %c64 : index
    hop.pipe.load %p, %y[%c0, %c0, %row, %c0] : !hop.pipe<tensor<64x64xf32>, 1>, !tile.view<[B, H, M, 64], f32>
  }
  hop.role @none warpgroups(1) {
  ^bb0(%wg: index):
  }
}

// In x there are whole clusters.
// CHECK-LABEL: hop.kernel @cluster
// CHECK: %[[TILES:.*]] = arith.ceildivui
// CHECK: %[[CLUSTERS:.*]] = arith.ceildivui %[[TILES]], %c4
// CHECK: %[[BLOCKS:.*]] = arith.muli %[[CLUSTERS]], %c4
// CHECK: %[[LAUNCHED:.*]] = hop.block_count
// CHECK: arith.cmpi ne, %[[LAUNCHED]], %[[BLOCKS]]
hop.kernel @cluster attributes {argument_names = ["y"], argument_types = [!tile.view<[B, M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"B", 1>],
    schedule = #tile.schedule<persistent = none, cluster = 4>} {
^bb0(%y: !tile.view<[B, M, 64], f32>, %m: index, %b: index):
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    tile.store %t, %y[%b, %m, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[B, M, 64], f32>
  }
}

// Grids that always fit, of one dimension and of constants, and of kernels that walk over them.
// CHECK-NOT: hop.block_count
hop.kernel @one attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 1>], schedule = #tile.schedule<persistent = none>} {
^bb0(%y: !tile.view<[M, 64], f32>, %m: index):
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    tile.store %t, %y[%m, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[M, 64], f32>
  }
}
hop.kernel @constant attributes {argument_names = ["y"], argument_types = [!tile.view<[131070, M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<131070, 2>], schedule = #tile.schedule<persistent = none>} {
^bb0(%y: !tile.view<[131070, M, 64], f32>, %m: index, %b: index):
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    tile.store %t, %y[%b, %m, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[131070, M, 64], f32>
  }
}
hop.kernel @walks attributes {argument_names = ["y"], argument_types = [!tile.view<[B, M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"B", 1>], schedule = #tile.schedule<persistent = static>} {
^bb0(%y: !tile.view<[B, M, 64], f32>, %m: index, %b: index):
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    tile.store %t, %y[%b, %m, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[B, M, 64], f32>
  }
}

// A constant that does not fit.
// CHECK-LABEL: hop.kernel @large
// CHECK: hop.block_count
hop.kernel @large attributes {argument_names = ["y"], argument_types = [!tile.view<[131072, M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<131072, 2>], schedule = #tile.schedule<persistent = none>} {
^bb0(%y: !tile.view<[131072, M, 64], f32>, %m: index, %b: index):
  hop.role @rows warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = arith.constant dense<1.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    tile.store %t, %y[%b, %m, %c0] : tensor<64x64xf32, #hop.layout<accumulator>>, !tile.view<[131072, M, 64], f32>
  }
}
