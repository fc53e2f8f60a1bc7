// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s -mlir-print-op-generic | tessera-opt | FileCheck %s

tile.kernel @copy(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %at = arith.muli %m, %c64 : index
  %t = tile.load %x[%at, %c0] : !tile.view<[M, 64], f32> -> tensor<64x64xf32>
  tile.store %t, %y[%at, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// CHECK:      tile.sequence @copies(%in: !tile.view<[B, 64], f32>, %out: !tile.view<[B, 64], f32>) dims(N = 2 * B ceildiv 3, "a b" = N) {
// CHECK-NEXT:   %kept = tile.workspace : !tile.view<[B, 64], f32>
// CHECK-NEXT:   %other = tile.workspace zeroed : !tile.view<["a b", 64], f32>
// CHECK-NEXT:   tile.launch @copy(%in, %kept) : !tile.view<[B, 64], f32>, !tile.view<[B, 64], f32>
// CHECK-NEXT:   tile.launch @copy(%kept, %out) : !tile.view<[B, 64], f32>, !tile.view<[B, 64], f32>
// CHECK-NEXT: }
tile.sequence @copies(%in: !tile.view<[B, 64], f32>, %out: !tile.view<[B, 64], f32>)
    dims(N = 2 * B ceildiv 3, "a b" = N) {
  %kept = tile.workspace : !tile.view<[B, 64], f32>
  %other = tile.workspace zeroed : !tile.view<["a b", 64], f32>
  tile.launch @copy(%in, %kept) : !tile.view<[B, 64], f32>, !tile.view<[B, 64], f32>
  tile.launch @copy(%kept, %out) : !tile.view<[B, 64], f32>, !tile.view<[B, 64], f32>
}

// Names of dimensions are those of the kernel in the kernel; an integer of the sequence may be a name there.
// CHECK: tile.sequence @integers
tile.sequence @integers(%in: !tile.view<[128, 64], f32>, %out: !tile.view<[128, 64], f32>) {
  tile.launch @copy(%in, %out) : !tile.view<[128, 64], f32>, !tile.view<[128, 64], f32>
}
