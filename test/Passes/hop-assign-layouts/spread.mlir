// The blocks of a cluster have a tile together: warpgroups of all of them share its columns, those of a block side by side.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-assign-layouts))' | FileCheck %s

!View = !tile.view<[M, 8192], f32>
// CHECK-LABEL: hop.kernel @k
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!View], grid = [#tile.grid_dim<"M", 1>],
    schedule = #tile.schedule<cluster = 4>, spread} {
^bb0(%x: !View, %m: index):
  // CHECK: %[[E:.*]] = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 12>
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // CHECK: tile.load {{.*}} -> tensor<1x8192xf32, #hop.layout<registers = [4:(0, 1)], lanes = [32:(0, 4)], warps = [4:(0, 128)], warpgroups = [2:(0, 512), 4:(0, 1024)]>>
    %t = tile.load %x[%m, %c0] : !View -> tensor<1x8192xf32>
    // CHECK: %[[P:.*]] = tile.reduce sum
    // CHECK: hop.combine sum %[[P]] through %[[E]]
    %sum = tile.reduce sum %t axis 1 : tensor<1x8192xf32> -> tensor<1xf32>
    %all = tile.broadcast %sum axis 1 : tensor<1xf32> -> tensor<1x8192xf32>
    %u = arith.divf %t, %all : tensor<1x8192xf32>
    tile.store %u, %x[%m, %c0] : tensor<1x8192xf32>, !View
  }
}
