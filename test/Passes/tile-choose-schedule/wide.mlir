// Tiles of whole rows whose length a launch says lie in chunks of 128 bytes, where these are fewer.
//
// RUN: tessera-opt %s -split-input-file --tile-choose-schedule 2>/dev/null | FileCheck %s
// RUN: tessera-opt %s -split-input-file --tile-choose-schedule --tile-choose-schedule 2>/dev/null | FileCheck %s
// RUN: tessera-opt %s -split-input-file --tile-choose-schedule 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK-COUNT-2: remark: rows of this view may begin amid sectors of memory: its tiles lie in shared memory in chunks of 128 bytes, which are the fewest
// REMARK-NOT: remark: rows of this view may begin

// CHECK-LABEL: tile.kernel @product
// CHECK: tile.load %{{.*}} pipe 0 wide : !tile.view<[M, K], bf16> -> tensor<128x96xbf16>
// CHECK: tile.load %{{.*}} pipe 1 wide : !tile.view<[N, K], bf16> -> tensor<64x96xbf16>
tile.kernel @product(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[N, K], bf16>, %c: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 128) requires(K <= 96) {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 128 : index
  %row = arith.muli %m, %bm : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, K], bf16> -> tensor<128x96xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[N, K], bf16> -> tensor<64x96xbf16>
  %bt_t = tile.transpose %bt : tensor<64x96xbf16> -> tensor<96x64xbf16>
  %ct = tile.dot %at, %bt_t : tensor<128x96xbf16>, tensor<96x64xbf16> -> tensor<128x64xf32>
  tile.store %ct, %c[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
}

// Not where launches may have longer rows, of which other tiles have the rest; where the tile begins elsewhere; where the
// source says how long rows are; of 8 bits.
// CHECK-LABEL: tile.kernel @longer
// CHECK-NOT: wide
tile.kernel @longer(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[N, K], bf16>, %c: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 128) requires(K <= 104) {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 128 : index
  %row = arith.muli %m, %bm : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, K], bf16> -> tensor<128x96xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[N, K], bf16> -> tensor<64x96xbf16>
  %bt_t = tile.transpose %bt : tensor<64x96xbf16> -> tensor<96x64xbf16>
  %ct = tile.dot %at, %bt_t : tensor<128x96xbf16>, tensor<96x64xbf16> -> tensor<128x64xf32>
  tile.store %ct, %c[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
}

// CHECK-LABEL: tile.kernel @any
// CHECK-NOT: wide
tile.kernel @any(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[N, K], bf16>, %c: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 128 : index
  %row = arith.muli %m, %bm : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, K], bf16> -> tensor<128x96xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[N, K], bf16> -> tensor<64x96xbf16>
  %bt_t = tile.transpose %bt : tensor<64x96xbf16> -> tensor<96x64xbf16>
  %ct = tile.dot %at, %bt_t : tensor<128x96xbf16>, tensor<96x64xbf16> -> tensor<128x64xf32>
  tile.store %ct, %c[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
}

// CHECK-LABEL: tile.kernel @elsewhere
// CHECK-NOT: wide
tile.kernel @elsewhere(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[N, 96], bf16>, %c: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 128) requires(K <= 96) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %bm = arith.constant 128 : index
  %row = arith.muli %m, %bm : index
  %at = tile.load %a[%row, %c8] : !tile.view<[M, K], bf16> -> tensor<128x96xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[N, 96], bf16> -> tensor<64x96xbf16>
  %bt_t = tile.transpose %bt : tensor<64x96xbf16> -> tensor<96x64xbf16>
  %ct = tile.dot %at, %bt_t : tensor<128x96xbf16>, tensor<96x64xbf16> -> tensor<128x64xf32>
  tile.store %ct, %c[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
}

// CHECK-LABEL: tile.kernel @bytes
// CHECK-NOT: wide
tile.kernel @bytes(%a: !tile.view<[M, K], f8E4M3FN>, %b: !tile.view<[N, K], f8E4M3FN>, %c: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 128) requires(K <= 96) {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 128 : index
  %row = arith.muli %m, %bm : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, K], f8E4M3FN> -> tensor<128x96xf8E4M3FN>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[N, K], f8E4M3FN> -> tensor<64x96xf8E4M3FN>
  %bt_t = tile.transpose %bt : tensor<64x96xf8E4M3FN> -> tensor<96x64xf8E4M3FN>
  %ct = tile.dot %at, %bt_t : tensor<128x96xf8E4M3FN>, tensor<96x64xf8E4M3FN> -> tensor<128x64xf32>
  tile.store %ct, %c[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
}

// Nor where there is no room for two slots of what a loop loads.
// CHECK-LABEL: tile.kernel @large
// CHECK-SAME: stages = 2,
// CHECK-NOT: wide
tile.kernel @large(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[N, K], bf16>, %d: !tile.view<[N, K], bf16>,
                   %c: !tile.view<[M, 128], f32>)
    grid(%m = M ceildiv 128) requires(K <= 160) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bm = arith.constant 128 : index
  %row = arith.muli %m, %bm : index
  %n = tile.dim "N"
  %steps = arith.ceildivui %n, %bm : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %at = tile.load %a[%row, %c0] : !tile.view<[M, K], bf16> -> tensor<128x160xbf16>
  %sum = scf.for %j = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %col = arith.muli %j, %bm : index
    %bt = tile.load %b[%col, %c0] : !tile.view<[N, K], bf16> -> tensor<128x160xbf16>
    %bt_t = tile.transpose %bt : tensor<128x160xbf16> -> tensor<160x128xbf16>
    %next = tile.dot %at, %bt_t, %acc : tensor<128x160xbf16>, tensor<160x128xbf16> -> tensor<128x128xf32>
    %dt = tile.load %d[%col, %c0] : !tile.view<[N, K], bf16> -> tensor<128x160xbf16>
    %dt_t = tile.transpose %dt : tensor<128x160xbf16> -> tensor<160x128xbf16>
    %last = tile.dot %at, %dt_t, %next : tensor<128x160xbf16>, tensor<160x128xbf16> -> tensor<128x128xf32>
    scf.yield %last : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] : tensor<128x128xf32>, !tile.view<[M, 128], f32>
}
