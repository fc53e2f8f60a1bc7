// RUN: tessera compile %s --kernel product --no-database --emit llvm -o - | FileCheck %s --check-prefix=PRODUCT
// RUN: tessera compile %s --kernel shared --no-database --emit llvm -o - | FileCheck %s --check-prefix=SHARED
// RUN: tessera compile %s --kernel gate --no-database --emit llvm -o - | FileCheck %s --check-prefix=GATE

// The machine's exponential has base 2. What its operand is multiplied with for that goes into the number that all elements are
// multiplied with: one product each, also for tanh.
// PRODUCT: %[[BASE:.*]] = llvm.mlir.constant(2.88539{{.*}} : f32)
// PRODUCT: %[[FACTOR:.*]] = llvm.fmul %arg{{[0-9]+}}, %[[BASE]]
// PRODUCT: %[[EXPONENT:.*]] = llvm.fmul %{{.*}}, %[[FACTOR]] {{.*}}<contract>
// PRODUCT: llvm.intr.exp2(%[[EXPONENT]])
// PRODUCT: rcp.approx.ftz.f
// PRODUCT: %[[FAR:.*]] = llvm.fsub
// Near 0 tanh is a polynomial in the same exponent.
// PRODUCT: %[[SQUARE:.*]] = llvm.fmul %[[EXPONENT]], %[[EXPONENT]]
// PRODUCT-COUNT-2: llvm.intr.fma(%{{.*}}, %[[SQUARE]], %{{.*}})
// PRODUCT: %[[NEAR:.*]] = llvm.fmul %{{.*}}, %[[EXPONENT]]
// PRODUCT: %[[SIZE:.*]] = llvm.intr.fabs(%[[EXPONENT]])
// PRODUCT: %[[IS_NEAR:.*]] = llvm.fcmp "olt" %[[SIZE]],
// PRODUCT: llvm.select %[[IS_NEAR]], %[[NEAR]], %[[FAR]]
tile.kernel @product(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[M, 64], f32>, %scale: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %t = tile.load %x[%row, %c0] : !tile.view<[M, 64], f32> -> tensor<64x64xf32>
  %f = tile.splat %scale : f32 -> tensor<64x64xf32>
  %s = arith.mulf %t, %f : tensor<64x64xf32>
  %e = math.tanh %s : tensor<64x64xf32>
  tile.store %e, %y[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// A product that is wanted for itself is what the exponential takes.
// SHARED: %[[SCALED:.*]] = llvm.fmul %{{.*}}, %arg{{[0-9]+}} {{.*}}<contract>
// SHARED: %[[EXPONENT:.*]] = llvm.fmul %[[SCALED]], %{{.*}} {{.*}}<contract>
// SHARED: %[[POWER:.*]] = llvm.intr.exp2(%[[EXPONENT]])
// SHARED: llvm.fadd %[[SCALED]], %[[POWER]]
tile.kernel @shared(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[M, 64], f32>, %scale: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %t = tile.load %x[%row, %c0] : !tile.view<[M, 64], f32> -> tensor<64x64xf32>
  %f = tile.splat %scale : f32 -> tensor<64x64xf32>
  %s = arith.mulf %t, %f : tensor<64x64xf32>
  %e = math.exp %s : tensor<64x64xf32>
  %sum = arith.addf %s, %e : tensor<64x64xf32>
  tile.store %sum, %y[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// A sigmoid takes a product, an exponential, a sum and a reciprocal.
// GATE: llvm.mlir.constant(-1.442695{{.*}} : f32)
// GATE: %[[BASE:.*]] = llvm.mlir.constant(-1.442695{{.*}} : f32)
// GATE-NEXT: %[[EXPONENT:.*]] = llvm.fmul %{{.*}}, %[[BASE]]
// GATE-NEXT: %[[POWER:.*]] = llvm.intr.exp2(%[[EXPONENT]])
// GATE: %[[SUM:.*]] = llvm.fadd %[[POWER]],
// GATE-NEXT: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[SUM]])
// GATE-NOT: llvm.select
// GATE: llvm.intr.exp2
tile.kernel @gate(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %t = tile.load %x[%row, %c0] : !tile.view<[M, 64], f32> -> tensor<64x64xf32>
  %g = tile.sigmoid %t : tensor<64x64xf32>
  tile.store %g, %y[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
