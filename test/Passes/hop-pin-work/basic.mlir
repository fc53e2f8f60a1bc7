// Work that stays before a product, where the registers of both would be too many.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-pin-work))' --split-input-file | FileCheck %s

!acc = tensor<64x128xf32, #hop.layout<accumulator>>
!s = tensor<64x64xf32, #hop.layout<accumulator>>
!p = tensor<64x64xbf16, #hop.layout<accumulator>>
!row = tensor<64xf32, #hop.layout<column>>
!tile = !hop.shared<tensor<64x64xbf16>, rows = 64>
!wide = !hop.shared<tensor<64x128xbf16>, rows = 64>

// 64 registers of %sum, 16 of %p, 32 of %dp, 16 that %s has more than %p, and 24: 152.
// CHECK-LABEL: hop.kernel @tight
// CHECK: %[[P:.*]] = arith.truncf
// CHECK-NEXT: hop.pin %[[P]]
// CHECK-NEXT: tile.broadcast
// CHECK-NEXT: hop.mma_issue
// CHECK-NOT: hop.pin
hop.kernel @tight attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<work = tiles>} {
^bb0(%x: !tile.view<[M, 64], f32>, %m: index):
  %a = hop.staging "a" : !tile
  %b = hop.staging "b" : !wide
  hop.role @producer elected registers(24) {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(2) registers(144) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : !acc
    %row = arith.constant dense<0.0> : !row
    %sum = scf.for %i = %c0 to %m step %m iter_args(%old = %zero) -> (!acc) {
      %f = hop.mma_issue %a, %a : !tile, !tile -> !hop.flight<!s>
      %s = hop.mma_wait %f pending 0 : !hop.flight<!s> -> !s
      %e = math.exp2 %s : !s
      %p = arith.truncf %e : !s to !p
      %start = tile.broadcast %row axis 0 : !row -> !s
      %g = hop.mma_issue %a, %a acc(%start : !s) {transpose_b} : !tile, !tile -> !hop.flight<!s>
      %h = hop.mma_issue %p, %b acc(%old : !acc) : !p, !wide -> !hop.flight<!acc>
      %dp, %new = hop.mma_wait %g, %h keep %p pending 0 : !hop.flight<!s>, !hop.flight<!acc> keep !p -> !s, !acc
      scf.yield %new : !acc
    }
    tile.store %sum, %x[%m, %m] : !acc, !tile.view<[M, 64], f32>
  }
}

// Enough registers; and a product that waits for the work by itself.
// CHECK-LABEL: hop.kernel @roomy
// CHECK-NOT: hop.pin
hop.kernel @roomy attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<work = tiles>} {
^bb0(%x: !tile.view<[M, 64], f32>, %m: index):
  %a = hop.staging "a" : !tile
  %b = hop.staging "b" : !wide
  hop.role @producer elected registers(24) {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(1) registers(152) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : !acc
    %sum = scf.for %i = %c0 to %m step %m iter_args(%old = %zero) -> (!acc) {
      %f = hop.mma_issue %a, %a : !tile, !tile -> !hop.flight<!s>
      %s = hop.mma_wait %f pending 0 : !hop.flight<!s> -> !s
      %e = math.exp2 %s : !s
      %p = arith.truncf %e : !s to !p
      %g = hop.mma_issue %a, %a {transpose_b} : !tile, !tile -> !hop.flight<!s>
      %h = hop.mma_issue %p, %b acc(%old : !acc) : !p, !wide -> !hop.flight<!acc>
      %dp, %new = hop.mma_wait %g, %h keep %p pending 0 : !hop.flight<!s>, !hop.flight<!acc> keep !p -> !s, !acc
      scf.yield %new : !acc
    }
    tile.store %sum, %x[%m, %m] : !acc, !tile.view<[M, 64], f32>
  }
  hop.role @other warpgroups(1) registers(72) {
  ^bb0(%wg: index):
    %f = hop.mma_issue %a, %a : !tile, !tile -> !hop.flight<!s>
    %s = hop.mma_wait %f pending 0 : !hop.flight<!s> -> !s
    %p = arith.truncf %s : !s to !p
    %h = hop.mma_issue %p, %b : !p, !wide -> !hop.flight<!acc>
    %o = hop.mma_wait %h keep %p pending 0 : !hop.flight<!acc> keep !p -> !acc
    tile.store %o, %x[%m, %m] : !acc, !tile.view<[M, 64], f32>
  }
}

// The step before has waited for the tile that this one begins with.
// CHECK-LABEL: hop.kernel @step
// CHECK: %[[P:.*]] = arith.truncf
// CHECK-NEXT: hop.pin %[[P]]
// CHECK-NEXT: tile.broadcast
// CHECK-NEXT: hop.mma_issue
// CHECK-NOT: hop.pin
hop.kernel @step attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<overlap = lead, work = tiles>} {
^bb0(%x: !tile.view<[M, 64], f32>, %m: index):
  %a = hop.staging "a" : !tile
  %b = hop.staging "b" : !wide
  hop.role @producer elected registers(24) {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(2) registers(144) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : !acc
    %row = arith.constant dense<0.0> : !row
    %none = arith.constant dense<0.0> : !s
    %sum, %last = scf.for %i = %c0 to %m step %m iter_args(%old = %zero, %s = %none) -> (!acc, !s) {
      %e = math.exp2 %s : !s
      %p = arith.truncf %e : !s to !p
      %start = tile.broadcast %row axis 0 : !row -> !s
      %g = hop.mma_issue %a, %a acc(%start : !s) {transpose_b} : !tile, !tile -> !hop.flight<!s>
      %h = hop.mma_issue %p, %b acc(%old : !acc) : !p, !wide -> !hop.flight<!acc>
      %dp, %new = hop.mma_wait %g, %h keep %p pending 0 : !hop.flight<!s>, !hop.flight<!acc> keep !p -> !s, !acc
      scf.yield %new, %dp : !acc, !s
    }
    tile.store %sum, %x[%m, %m] : !acc, !tile.view<[M, 64], f32>
  }
}

// A product of %p ends before the one that has no room: what waits for that is made before the former. 64 registers of %sum, 16
// of %w, 32 of %dp, 16 that %s has more than %w, and 24: 152.
// CHECK-LABEL: hop.kernel @before
// CHECK: %[[W:.*]] = arith.truncf
// CHECK: %[[P:.*]] = arith.truncf
// CHECK-NEXT: hop.pin %[[W]], %[[P]]
// CHECK-NEXT: %[[H:.*]] = hop.mma_issue %[[P]]
// CHECK-NEXT: hop.mma_wait %[[H]]
// CHECK-NEXT: hop.mma_issue
// CHECK-NOT: hop.pin
hop.kernel @before attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<work = tiles>} {
^bb0(%x: !tile.view<[M, 64], f32>, %m: index):
  %a = hop.staging "a" : !tile
  %b = hop.staging "b" : !wide
  hop.role @producer elected registers(24) {
  ^bb0(%wg: index):
  }
  hop.role @consumer warpgroups(2) registers(144) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : !acc
    %sum = scf.for %i = %c0 to %m step %m iter_args(%old = %zero) -> (!acc) {
      %f = hop.mma_issue %a, %a : !tile, !tile -> !hop.flight<!s>
      %s = hop.mma_wait %f pending 0 : !hop.flight<!s> -> !s
      %e = math.exp2 %s : !s
      %n = math.absf %s : !s
      %w = arith.truncf %n : !s to !p
      %p = arith.truncf %e : !s to !p
      %h = hop.mma_issue %p, %b acc(%old : !acc) : !p, !wide -> !hop.flight<!acc>
      %new = hop.mma_wait %h keep %p pending 0 : !hop.flight<!acc> keep !p -> !acc
      %g = hop.mma_issue %a, %a {transpose_b} : !tile, !tile -> !hop.flight<!s>
      %dp = hop.mma_wait %g pending 0 : !hop.flight<!s> -> !s
      %x1 = arith.extf %w : !p to !s
      %x2 = arith.mulf %x1, %dp : !s
      %x3 = arith.truncf %x2 : !s to !p
      %k = hop.mma_issue %x3, %b acc(%new : !acc) : !p, !wide -> !hop.flight<!acc>
      %last = hop.mma_wait %k keep %x3 pending 0 : !hop.flight<!acc> keep !p -> !acc
      scf.yield %last : !acc
    }
    tile.store %sum, %x[%m, %m] : !acc, !tile.view<[M, 64], f32>
  }
}
