// Launches pass arguments by name, so that printing keeps names, in the custom and in the generic form.
// RUN: tessera-opt %s --canonicalize | FileCheck %s
// RUN: tessera-opt %s --mlir-print-op-generic | tessera-opt | FileCheck %s

// CHECK: tile.kernel @named(%x: !tile.view<[M, N], f16>, %row_scale.2: f32) grid(%m = M ceildiv 64, %second = N, %z = 3)
tile.kernel @named(%x: !tile.view<[M, N], f16>, %row_scale.2: f32) grid(%m = M ceildiv 64, %second = N, %z = 3) {
  // CHECK: tile.load %x[%m, %second]
  %t = tile.load %x[%m, %second] : !tile.view<[M, N], f16> -> tensor<64x64xf16>
  // CHECK: tile.splat %row_scale.2
  %a = tile.splat %row_scale.2 : f32 -> tensor<64x64xf32>
  // CHECK: tile.dot {{.*}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>{{$}}
  %d = tile.dot %t, %t, %a : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %r = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
  // CHECK: tile.store {{.*}}, %x[%m, %second]
  tile.store %r, %x[%m, %second] : tensor<64x64xf16>, !tile.view<[M, N], f16>
}

// Without names of the grid, as a pass may leave it.
// CHECK: tile.kernel @unnamed(%x: f32) grid(%arg0 = 4)
"tile.kernel"() <{sym_name = "unnamed", argument_types = [f32], argument_names = ["x"], grid = [#tile.grid_dim<4, 1>]}> ({
^bb0(%a: f32, %b: index):
  tile.return
}) : () -> ()
