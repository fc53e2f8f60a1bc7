// A product in flight keeps the registers that it multiplies. One that begins in new registers waits for it where there are not
// enough of both: 64 of %old, 16 of %p, 32 of the new one and 24 are 136.
//
// RUN: sed 's/REGISTERS/128/' %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-async-mma))' | FileCheck %s --check-prefixes=CHECK,FEW
// RUN: sed 's/REGISTERS/136/' %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-async-mma))' | FileCheck %s --check-prefixes=CHECK,ENOUGH

!acc = tensor<64x128xf32, #hop.layout<accumulator>>
!s = tensor<64x64xf32, #hop.layout<accumulator>>
!p = tensor<64x64xbf16, #hop.layout<accumulator>>
!tile = !hop.shared<tensor<64x64xbf16>, rows = 64>
!wide = !hop.shared<tensor<64x128xbf16>, rows = 64>

// CHECK-LABEL: hop.kernel @sums
// CHECK: scf.for
// CHECK: %[[H:.*]] = hop.mma_issue %[[P:.*]], %{{.*}} acc(
// FEW-NEXT: %[[NEW:.*]] = hop.mma_wait %[[H]] keep %[[P]] pending 0
// FEW-NEXT: %[[G:.*]] = hop.mma_issue
// FEW-NEXT: %[[S:.*]] = hop.mma_wait %[[G]] pending 0
// ENOUGH-NEXT: %[[G:.*]] = hop.mma_issue
// ENOUGH-NEXT: hop.mma_wait %[[H]], %[[G]] keep %[[P]] pending 0
hop.kernel @sums attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f32>, %m: index):
  %a = hop.staging "a" : !tile
  %b = hop.staging "b" : !wide
  hop.role @consumer warpgroups(1) registers(REGISTERS) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : !acc
    %one = arith.constant dense<1.0> : !p
    %sum, %last = scf.for %i = %c0 to %m step %m iter_args(%old = %zero, %p = %one) -> (!acc, !p) {
      %new = hop.mma %p, %b acc(%old : !acc) : !p, !wide -> !acc
      %s = hop.mma %a, %a {transpose_b} : !tile, !tile -> !s
      %e = math.exp2 %s : !s
      %q = arith.truncf %e : !s to !p
      scf.yield %new, %q : !acc, !p
    }
    tile.store %sum, %x[%m, %m] : !acc, !tile.view<[M, 64], f32>
  }
}
