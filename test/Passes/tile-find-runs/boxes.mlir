// Rows of a tile that all follow each other are loaded and stored at once, up to where they end.
//
// RUN: tessera-opt %s --tile-find-runs -split-input-file -verify-diagnostics | FileCheck %s

!Flat = !tile.view<[B, ROWS, 64], bf16>
!Out = !tile.view<[B, ROWS, 64], f32>

// CHECK-LABEL: tile.kernel @sequences
// CHECK-DAG:   %[[ROWS:.*]] = tile.dim "ROWS"
// CHECK-DAG:   %[[T:.*]] = arith.maxsi
// CHECK:       %[[COUNT:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:       %[[PAST:.*]] = arith.addi %[[T]], %[[COUNT]] : index
// CHECK:       %[[END:.*]] = arith.minsi %[[PAST]], %{{.*}} : index
// CHECK:       %[[ROW:.*]] = tile.row %[[T]] below %[[END]]
// CHECK:       tile.load %k[%b, %[[ROW]], %c0] : !tile.view<[B, ROWS, 64], bf16> -> tensor<64x64xbf16>
// CHECK-NOT:   tile.gather
// CHECK:       %[[OWN:.*]] = tile.row
// CHECK:       tile.store %{{.*}}, %o[%b, %[[OWN]], %c0] : tensor<64x64xf32>, !tile.view<[B, ROWS, 64], f32>
// CHECK-NOT:   tile.scatter
tile.kernel @sequences(%k: !Flat, %starts: !tile.view<[N], i32>, %ends: !tile.view<[N], i32>, %o: !Out) grid(%n = N, %b = B) {
  %c0 = arith.constant 0 : index
  %none = arith.constant dense<-1> : tensor<64xi32>
  %start32 = tile.load %starts[%n] : !tile.view<[N], i32> -> i32
  %end32 = tile.load %ends[%n] : !tile.view<[N], i32> -> i32
  %any = arith.index_cast %start32 : i32 to index
  %t = arith.maxsi %any, %c0 : index
  %all = tile.iota %t axis 0 : tensor<64xi32>
  %past = tile.splat %end32 : i32 -> tensor<64xi32>
  %own = arith.cmpi slt, %all, %past : tensor<64xi32>
  %rows = arith.select %own, %all, %none : tensor<64xi1>, tensor<64xi32>
  // expected-remark @below {{moves all rows at once, as they follow each other up to their end}}
  %kt = tile.gather %k[%b, %c0, %c0] rows %rows : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  %k_t = tile.transpose %kt : tensor<64x64xbf16> -> tensor<64x64xbf16>
  %products = tile.dot %kt, %k_t : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  // expected-remark @below {{moves all rows at once, as they follow each other up to their end}}
  tile.scatter %products, %o[%b, %c0, %c0] rows %rows : tensor<64x64xf32>, !Out, tensor<64xi32>
}

// -----

!Flat = !tile.view<[ROWS, 64], bf16>

// Without an end it is that of the view, and the first row may lie anywhere.
// CHECK-LABEL: tile.kernel @without_end
// CHECK-NOT:   tile.row
// CHECK:       tile.load %k[%{{.*}}, %c0]
// CHECK:       tile.store %{{.*}}, %o[%{{.*}}, %c0]
tile.kernel @without_end(%k: !Flat, %from: i32, %o: !Flat) grid(%n = ROWS ceildiv 64) {
  %c0 = arith.constant 0 : index
  %start = arith.index_cast %from : i32 to index
  %rows = tile.iota %start axis 0 : tensor<64xi32>
  // expected-remark @below {{moves all rows at once, as they follow each other}}
  %x = tile.gather %k[%c0, %c0] rows %rows : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  // expected-remark @below {{moves all rows at once, as they follow each other}}
  tile.scatter %x, %o[%c0, %c0] rows %rows : tensor<64x64xbf16>, !Flat, tensor<64xi32>
}

!Row = !tile.view<[ROWS], f32>

// Rows before the view, where those that end are boxes of a map in which they would lie elsewhere; elements, which have no box.
// CHECK-LABEL: tile.kernel @as_they_are
// CHECK:       tile.gather
// CHECK:       tile.scatter
// CHECK:       tile.gather
// CHECK:       tile.scatter
tile.kernel @as_they_are(%k: !Flat, %g: !Row, %from: i32, %past: i32, %o: !Flat, %p: !Row) grid(%n = ROWS ceildiv 64) {
  %c0 = arith.constant 0 : index
  %none = arith.constant dense<-1> : tensor<64xi32>
  %start = arith.index_cast %from : i32 to index
  %all = tile.iota %start axis 0 : tensor<64xi32>
  %ends = tile.splat %past : i32 -> tensor<64xi32>
  %own = arith.cmpi slt, %all, %ends : tensor<64xi32>
  %rows = arith.select %own, %all, %none : tensor<64xi1>, tensor<64xi32>
  %x = tile.gather %k[%c0, %c0] rows %rows : !Flat, tensor<64xi32> -> tensor<64x64xbf16>
  tile.scatter %x, %o[%c0, %c0] rows %rows : tensor<64x64xbf16>, !Flat, tensor<64xi32>
  %e = tile.gather %g[%c0] rows %rows : !Row, tensor<64xi32> -> tensor<64xf32>
  tile.scatter %e, %p[%c0] rows %rows : tensor<64xf32>, !Row, tensor<64xi32>
}
