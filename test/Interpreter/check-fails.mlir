// --check compares with the exact result: f16 that overflows where doubles do not has infinities out of place.
// RUN: not tessera run %s --check | FileCheck %s
// CHECK: y: max error {{.*}}: FAILED
// CHECK-NEXT: 4 elements are not finite, NaN or infinite as they should be; first [0]: expected finite, got +inf
// CHECK-NEXT: so are 4 of the same computation in the kernel's precision

tile.kernel @overflow(%y: !tile.view<[4], f16>) grid(%i = 1) {
  %c0 = arith.constant 0 : index
  %big = arith.constant dense<60000.0> : tensor<4xf16>
  %t = arith.addf %big, %big : tensor<4xf16>
  tile.store %t, %y[%c0] : tensor<4xf16>, !tile.view<[4], f16>
}
