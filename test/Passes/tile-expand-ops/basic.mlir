// Products of f32 as products of terms, and places of the largest as a second reduction.
//
// RUN: tessera-opt %s --tile-expand-ops --cse | FileCheck %s

!V = !tile.view<[64, 64], f32>
!T = tensor<64x64xf32>
!Row = tensor<64xf32>
!Places = tensor<64xi32>

// CHECK-LABEL: tile.kernel @one
// CHECK:       %[[A:.*]] = arith.truncf %{{.*}} : tensor<64x64xf32> to tensor<64x64xf16>
// CHECK:       %[[B:.*]] = arith.truncf
// CHECK-NOT:   arith.subf
// CHECK:       tile.dot %[[A]], %[[B]] : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
tile.kernel @one(%x: !V, %y: !V) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !V -> !T
  %b = tile.load %y[%c0, %c0] : !V -> !T
  %c = tile.dot %a, %b precision f16 : !T, !T -> !T
  tile.store %c, %x[%c0, %c0] : !T, !V
}

// Tensor cores multiply f32 as tf32 by themselves.
// CHECK-LABEL: tile.kernel @words
// CHECK-NOT:   arith.{{[^c]}}
// CHECK:       tile.dot %{{.*}}, %{{.*}} precision tf32 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
tile.kernel @words(%x: !V, %y: !V) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !V -> !T
  %b = tile.load %y[%c0, %c0] : !V -> !T
  %c = tile.dot %a, %b precision tf32 : !T, !T -> !T
  tile.store %c, %x[%c0, %c0] : !T, !V
}

// The smallest products first, behind what is added to. Terms of what is transposed are transposed.
// CHECK-LABEL: tile.kernel @three
// CHECK:       %[[A:.*]] = tile.load %x
// CHECK:       %[[B:.*]] = tile.load %y
// CHECK:       %[[A1:.*]] = arith.truncf %[[A]] : tensor<64x64xf32> to tensor<64x64xbf16>
// CHECK:       %[[A1_WIDE:.*]] = arith.extf %[[A1]]
// CHECK:       %[[A_REST:.*]] = arith.subf %[[A]], %[[A1_WIDE]]
// CHECK:       %[[BS1:.*]] = arith.truncf %[[B]]
// CHECK:       %[[BS1_WIDE:.*]] = arith.extf %[[BS1]]
// CHECK:       %[[B_REST:.*]] = arith.subf %[[B]], %[[BS1_WIDE]]
// CHECK:       %[[B1:.*]] = tile.transpose %[[BS1]] : tensor<64x64xbf16> -> tensor<64x64xbf16>
// CHECK:       %[[A2:.*]] = arith.truncf %[[A_REST]]
// CHECK:       %[[A2_WIDE:.*]] = arith.extf %[[A2]]
// CHECK:       %[[A_LAST:.*]] = arith.subf %[[A_REST]], %[[A2_WIDE]]
// CHECK:       %[[BS2:.*]] = arith.truncf %[[B_REST]]
// CHECK:       %[[B2:.*]] = tile.transpose %[[BS2]]
// CHECK:       %[[A3:.*]] = arith.truncf %[[A_LAST]]
// CHECK:       %[[BS3:.*]] = arith.truncf
// CHECK:       %[[B3:.*]] = tile.transpose %[[BS3]]
// CHECK:       %[[P31:.*]] = tile.dot %[[A3]], %[[B1]], %[[A]] :
// CHECK:       %[[P22:.*]] = tile.dot %[[A2]], %[[B2]], %[[P31]] :
// CHECK:       %[[P13:.*]] = tile.dot %[[A1]], %[[B3]], %[[P22]] :
// CHECK:       %[[P21:.*]] = tile.dot %[[A2]], %[[B1]], %[[P13]] :
// CHECK:       %[[P12:.*]] = tile.dot %[[A1]], %[[B2]], %[[P21]] :
// CHECK:       %[[P11:.*]] = tile.dot %[[A1]], %[[B1]], %[[P12]] :
// CHECK:       tile.store %[[P11]]
tile.kernel @three(%x: !V, %y: !V) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !V -> !T
  %b = tile.load %y[%c0, %c0] : !V -> !T
  %b_t = tile.transpose %b : !T -> !T
  %c = tile.dot %a, %b_t, %a precision bf16x6 : !T, !T -> !T
  tile.store %c, %x[%c0, %c0] : !T, !V
}

// What is of 16 bits is one term: two products in place of three.
// CHECK-LABEL: tile.kernel @exact
// CHECK:       %[[B:.*]] = tile.load %y
// CHECK:       %[[A2:.*]] = arith.truncf %{{.*}} : tensor<64x64xf32> to tensor<64x64xbf16>
// CHECK:       %[[SMALL:.*]] = tile.dot %{{.*}}, %[[B]] :
// CHECK:       %[[ALL:.*]] = tile.dot %{{.*}}, %[[B]], %[[SMALL]] :
// CHECK-NOT:   tile.dot
// CHECK:       tile.store %[[ALL]]
tile.kernel @exact(%x: !V, %y: !tile.view<[64, 64], bf16>) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !V -> !T
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], bf16> -> tensor<64x64xbf16>
  %wide = arith.extf %b : tensor<64x64xbf16> to !T
  %c = tile.dot %a, %wide precision bf16x3 : !T, !T -> !T
  tile.store %c, %x[%c0, %c0] : !T, !V
}

// A second operand is cut once for all steps of the loops that do not change it, the first one where it is multiplied.
// CHECK-LABEL: tile.kernel @loop
// CHECK:       %[[B:.*]] = tile.load %y
// CHECK:       scf.for
// CHECK:         %[[OF_B:.*]] = arith.truncf %{{.*}} : tensor<64x64xf32> to tensor<64x64xf16>
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %
// CHECK:           %[[OF_A:.*]] = arith.truncf %[[A]] : tensor<64x64xf32> to tensor<64x64xf16>
// CHECK:           tile.dot %[[OF_A]], %[[OF_B]] :
tile.kernel @loop(%x: !V, %y: !V) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %loaded = tile.load %y[%c0, %c0] : !V -> !T
  scf.for %i = %c0 to %c3 step %c1 {
    %b = arith.addf %loaded, %loaded : !T
    %kept = arith.mulf %b, %b : !T
    %start = tile.load %x[%i, %c0] : !V -> !T
    %end = scf.for %j = %c0 to %c3 step %c1 iter_args(%a = %start) -> (!T) {
      %c = tile.dot %a, %kept precision f16 : !T, !T -> !T
      scf.yield %c : !T
    }
    tile.store %end, %x[%i, %c0] : !T, !V
  }
}

// CHECK-LABEL: tile.kernel @numbers
// CHECK:       %[[T:.*]] = tile.load
// CHECK:       %[[VALUE:.*]] = tile.reduce max %[[T]] axis 1
// CHECK:       %[[EACH:.*]] = tile.broadcast %[[VALUE]] axis 1
// CHECK:       %[[FOUND:.*]] = arith.cmpf oeq, %[[T]], %[[EACH]]
// CHECK-NOT:   arith.ori
// CHECK:       %[[ZEROTH:.*]] = arith.constant 1258291200 : index
// CHECK:       %[[PLACES:.*]] = tile.iota %[[ZEROTH]] axis 1 : tensor<64x64xi32>
// CHECK:       %[[FLOATS:.*]] = arith.bitcast %[[PLACES]]
// CHECK:       %[[NOWHERE:.*]] = arith.constant dense<0x7F800000> : tensor<64x64xf32>
// CHECK:       %[[OWN:.*]] = arith.select %[[FOUND]], %[[FLOATS]], %[[NOWHERE]]
// CHECK:       %[[LEAST:.*]] = tile.reduce min %[[OWN]] axis 1
// CHECK:       %[[BITS:.*]] = arith.bitcast %[[LEAST]] : tensor<64xf32> to tensor<64xi32>
// CHECK:       %[[PLACE:.*]] = arith.subi %[[BITS]], %{{.*}}
// CHECK:       %[[INDEX:.*]] = arith.select %{{.*}}, %{{.*}}, %[[PLACE]]
// CHECK:       tile.store %[[VALUE]], %y
// CHECK:       tile.store %[[INDEX]], %n
tile.kernel @numbers(%x: !V, %y: !tile.view<[64], f32>, %n: !tile.view<[64], i32>) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !V -> !T
  %value, %index = tile.reduce_index max %t axis 1 : !T -> !Row, !Places
  tile.store %value, %y[%c0] : !Row, !tile.view<[64], f32>
  tile.store %index, %n[%c0] : !Places, !tile.view<[64], i32>
}

// Where NaN wins, it is found too.
// CHECK-LABEL: tile.kernel @nan
// CHECK:       %[[EQUAL:.*]] = arith.cmpf oeq
// CHECK:       %[[NAN:.*]] = arith.cmpf uno, %[[T:.*]], %[[T]]
// CHECK:       %[[FOUND:.*]] = arith.ori %[[EQUAL]], %[[NAN]]
// CHECK:       arith.select %[[FOUND]]
tile.kernel @nan(%x: !V, %n: !tile.view<[64], i32>) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !V -> !T
  %value, %index = tile.reduce_index minimum %t axis 0 : !T -> !Row, !Places
  tile.store %index, %n[%c0] : !Places, !tile.view<[64], i32>
}
