// Tiles in chunks of 128 bytes: a copy brings each chunk, from its own column on, and one instruction multiplies all columns.
// Where there are no registers for that, instructions take whole chunks, but for the last one.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-stage-stores,hop-async-mma,hop-insert-mbarriers,hop-insert-proxy-fences,hop-allocate-shared-memory),canonicalize,cse,hop-lower-to-llvm)' 2>/dev/null | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-choose-schedule),tile-override-schedule{schedule=consumers=4,consumer_registers=112},tile.kernel(tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-stage-stores,hop-async-mma,hop-insert-mbarriers,hop-insert-proxy-fences,hop-allocate-shared-memory),canonicalize,cse,hop-lower-to-llvm)' 2>/dev/null | FileCheck %s --check-prefix=PARTS
//
// CHECK: box = [64, 32]
// CHECK-SAME: swizzle = "128B"
// 32 rows of B in three chunks of 64 columns.
// CHECK: mbarrier.arrive.expect_tx{{.*}}
// CHECK-COUNT-3: cp.async.bulk.tensor.2d.shared::cluster.global
// CHECK: m64n160k16.f32.bf16.bf16
// PARTS: m64n128k16.f32.bf16.bf16
// PARTS: m64n32k16.f32.bf16.bf16
tile.kernel @product(%a: !tile.view<[M, 32], bf16>, %b: !tile.view<[K, L], bf16>, %c: !tile.view<[M, L], f32>)
    grid(%m = M ceildiv 256) requires(L <= 160) schedule #tile.schedule<consumers = 2, persistent = none> {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 256 : index
  %row = arith.muli %m, %bm : index
  %bt = tile.load %b[%c0, %c0] : !tile.view<[K, L], bf16> -> tensor<32x160xbf16>
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 32], bf16> -> tensor<256x32xbf16>
  %ct = tile.dot %at, %bt : tensor<256x32xbf16>, tensor<32x160xbf16> -> tensor<256x160xf32>
  tile.store %ct, %c[%row, %c0] : tensor<256x160xf32>, !tile.view<[M, L], f32>
}
