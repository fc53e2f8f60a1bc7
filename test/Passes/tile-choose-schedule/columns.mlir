// RUN: tessera-opt %s --tile-choose-schedule | FileCheck %s

// One accumulator of two consumers: each has half of its columns, and both read A. With other placements nothing is cut.
// CHECK-LABEL: tile.kernel @divided
// CHECK: scf.for {{.*}} iter_args(%[[L:.*]] = %{{.*}}, %[[R:.*]] = %{{.*}}) -> (tensor<128x128xf32>, tensor<128x128xf32>)
// CHECK: %[[A:.*]] = tile.load %{{.*}} -> tensor<128x64xbf16>
// CHECK: %[[B0:.*]] = tile.load %{{.*}} -> tensor<64x128xbf16>
// CHECK: %[[B1:.*]] = tile.load %{{.*}} -> tensor<64x128xbf16>
// CHECK: tile.dot %[[A]], %[[B0]], %[[L]]
// CHECK: tile.dot %[[A]], %[[B1]], %[[R]]
// CHECK-LABEL: tile.kernel @of_rows
// CHECK: tile.dot {{.*}} -> tensor<128x256xf32>
tile.kernel @divided(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[K, 256], bf16>, %o: !tile.view<[M, 256], f32>) grid(%m = M ceildiv 128)
    schedule #tile.schedule<placement = divided, consumers = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %k = tile.dim "K"
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %d = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) {
    %at = tile.load %a[%m, %i] : !tile.view<[M, K], bf16> -> tensor<128x64xbf16>
    %bt = tile.load %b[%i, %c0] : !tile.view<[K, 256], bf16> -> tensor<64x256xbf16>
    %next = tile.dot %at, %bt, %acc : tensor<128x64xbf16>, tensor<64x256xbf16> -> tensor<128x256xf32>
    scf.yield %next : tensor<128x256xf32>
  }
  tile.store %d, %o[%m, %c0] : tensor<128x256xf32>, !tile.view<[M, 256], f32>
}
tile.kernel @of_rows(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[K, 256], bf16>, %o: !tile.view<[M, 256], f32>) grid(%m = M ceildiv 128)
    schedule #tile.schedule<placement = rows, consumers = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %k = tile.dim "K"
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %d = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) {
    %at = tile.load %a[%m, %i] : !tile.view<[M, K], bf16> -> tensor<128x64xbf16>
    %bt = tile.load %b[%i, %c0] : !tile.view<[K, 256], bf16> -> tensor<64x256xbf16>
    %next = tile.dot %at, %bt, %acc : tensor<128x64xbf16>, tensor<64x256xbf16> -> tensor<128x256xf32>
    scf.yield %next : tensor<128x256xf32>
  }
  tile.store %d, %o[%m, %c0] : tensor<128x256xf32>, !tile.view<[M, 256], f32>
}

// Columns that are rows of what is loaded have the end of these.
// CHECK-LABEL: tile.kernel @ended
// CHECK: %[[ROW:.*]] = tile.row %{{.*}} below %[[END:.*]]
// CHECK: tile.load %{{.*}}[%[[ROW]], %c0] {{.*}} -> tensor<64x64xbf16>
// CHECK: %[[MOVED:.*]] = arith.addi %{{.*}}, %c64
// CHECK: %[[OWN:.*]] = tile.row %[[MOVED]] below %[[END]]
// CHECK: tile.load %{{.*}}[%[[OWN]], %c0] {{.*}} -> tensor<64x64xbf16>
tile.kernel @ended(%a: !tile.view<[64, 64], bf16>, %b: !tile.view<[K, 64], bf16>, %o: !tile.view<[64, 128], f32>, %n: index) grid(%m = 1)
    schedule #tile.schedule<placement = divided, consumers = 2> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %k = tile.dim "K"
  %end = arith.minsi %n, %k : index
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %at = tile.load %a[%c0, %c0] : !tile.view<[64, 64], bf16> -> tensor<64x64xbf16>
  %d = scf.for %i = %c0 to %k step %c128 iter_args(%acc = %zero) -> (tensor<64x128xf32>) {
    %row = tile.row %i below %end
    %bt = tile.load %b[%row, %c0] : !tile.view<[K, 64], bf16> -> tensor<128x64xbf16>
    %b_t = tile.transpose %bt : tensor<128x64xbf16> -> tensor<64x128xbf16>
    %next = tile.dot %at, %b_t, %acc : tensor<64x64xbf16>, tensor<64x128xbf16> -> tensor<64x128xf32>
    scf.yield %next : tensor<64x128xf32>
  }
  tile.store %d, %o[%c0, %c0] : tensor<64x128xf32>, !tile.view<[64, 128], f32>
}
