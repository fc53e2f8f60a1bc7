// What of a kernel is read again, and what is not.
//
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,l2_hints=true,store=tma,persistent=none},tile.kernel(tile-choose-schedule),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts),canonicalize,hop.kernel(hop-stage-stores,hop-cache-hints))" 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=none},tile.kernel(tile-choose-schedule),tile-warp-specialize,hop.kernel(hop-assign-layouts,hop-cache-hints))" | FileCheck %s --check-prefix=WITHOUT
// RUN: tessera-opt %s -split-input-file --pass-pipeline="builtin.module(hop.kernel(hop-cache-hints))" -verify-diagnostics | FileCheck %s

// SMALL: remark: load of 'q' is evict_first: no other tile of the grid loads it
// SMALL: remark: load of 'k' is evict_last: its place does not depend on the first grid index, so that neighbours load it too
// SMALL: remark: load of 'v' is evict_last
// SMALL: remark: store to 'o' is evict_first: no other tile of the grid stores there
// SMALL: remark: store to 'l' is evict_first
// SMALL: hop.pipe.load {{.*}}hop.cache = #hop.cache<evict_first>{{.*}}tensor<128x64xbf16>
// SMALL-COUNT-2: hop.pipe.load {{.*}}hop.cache = #hop.cache<evict_last>{{.*}}tensor<64x64xbf16>
// SMALL: hop.bulk_store {{.*}} {hop.cache = #hop.cache<evict_first>}
// SMALL: tile.store {{.*}} {hop.cache = #hop.cache<evict_first>}

// WITHOUT-NOT: hop.cache

// CHECK-LABEL: hop.kernel @flow
hop.kernel @flow attributes {argument_names = ["x"], argument_types = [!tile.view<[B, M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"B", 1>], schedule = #tile.schedule<l2_hints = true>} {
^bb0(%x: !tile.view<[B, M, 64], bf16>, %m: index, %b: index):
  // expected-remark@+1 {{load of 'tile' is evict_first: no other tile of the grid loads it}}
  %p0 = hop.pipe.create "tile" : !hop.pipe<tensor<64x64xbf16>, 1>
  // expected-remark@+1 {{load of 'wide' is left to the cache: its place depends on the first grid index, but tiles that differ in grid index 0 may overlap}}
  %p1 = hop.pipe.create "wide" : !hop.pipe<tensor<128x64xbf16>, 1>
  // expected-remark@+1 {{load of 'group' is left to the cache: its place depends on the first grid index, but tiles that differ in grid index 1 may overlap}}
  %p2 = hop.pipe.create "group" : !hop.pipe<tensor<64x64xbf16>, 1>
  // expected-remark@+1 {{load of 'again' is left to the cache: a loop loads it again from the same place}}
  %p3 = hop.pipe.create "again" : !hop.pipe<tensor<64x64xbf16>, 1>
  // expected-remark@+1 {{load of 'columns' is evict_first}}
  %p4 = hop.pipe.create "columns" : !hop.pipe<tensor<64x32xbf16>, 1>
  // expected-remark@+1 {{load of 'walk' is left to the cache: its place depends on the first grid index, but tiles that differ in grid index 0 may overlap}}
  %p5 = hop.pipe.create "walk" : !hop.pipe<tensor<64x64xbf16>, 1>
  // One load of two is the neighbours' too, and they have one policy.
  // expected-remark@+1 {{load of 'twice' is evict_last}}
  %p6 = hop.pipe.create "twice" : !hop.pipe<tensor<64x64xbf16>, 1>
  // expected-remark@+1 {{load of 'sum' is left to the cache: its place depends on the first grid index, but tiles that differ in grid index 0 may overlap}}
  %p7 = hop.pipe.create "sum" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %n = tile.dim "M"
    %row = arith.muli %m, %c64 : index
    %half = arith.divui %b, %c2 : index
    // Away from the end, and shifted, but still 64 rows apart.
    %back = arith.subi %n, %row : index
    %other = arith.addi %row, %b : index
    // CHECK: hop.pipe.load {{.*}} {hop.cache = #hop.cache<evict_first>}
    hop.pipe.load %p0, %x[%b, %back, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[B, M, 64], bf16>
    // CHECK-NEXT: hop.pipe.load {{.*}}] : !hop.pipe<tensor<128x64xbf16>, 1>
    hop.pipe.load %p1, %x[%b, %row, %c0] : !hop.pipe<tensor<128x64xbf16>, 1>, !tile.view<[B, M, 64], bf16>
    // CHECK-NEXT: hop.pipe.load {{.*}}] : !hop.pipe<tensor<64x64xbf16>, 1>
    hop.pipe.load %p2, %x[%half, %row, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[B, M, 64], bf16>
    // CHECK-NEXT: hop.pipe.load {{.*}}] : !hop.pipe<tensor<64x64xbf16>, 1>
    hop.pipe.load %p7, %x[%c0, %other, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[B, M, 64], bf16>
    scf.for %i = %c0 to %n step %c32 {
      hop.pipe.load %p3, %x[%b, %row, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[B, M, 64], bf16>
      hop.pipe.load %p4, %x[%b, %row, %i] : !hop.pipe<tensor<64x32xbf16>, 1>, !tile.view<[B, M, 64], bf16>
      %moved = arith.addi %row, %i : index
      hop.pipe.load %p5, %x[%b, %moved, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[B, M, 64], bf16>
    }
    hop.pipe.load %p6, %x[%b, %row, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[B, M, 64], bf16>
    hop.pipe.load %p6, %x[%b, %c0, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[B, M, 64], bf16>
  }
}

// -----

// Each of two warpgroups stores its share; shares of 64 rows meet when tiles are 64 rows apart.
// CHECK-LABEL: hop.kernel @stores
hop.kernel @stores attributes {argument_names = ["x", "y"],
    argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 128>], schedule = #tile.schedule<l2_hints = true>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[M, 64], bf16>, %m: index):
  hop.role consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %tile = arith.constant dense<0.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %share = arith.muli %wg, %c64 : index
    %row = arith.muli %m, %c128 : index
    %mine = arith.addi %row, %share : index
    %near = arith.muli %m, %c64 : index
    %meets = arith.addi %near, %share : index
    // CHECK: tile.store {{.*}} {hop.cache = #hop.cache<evict_first>}
    // expected-remark@+1 {{store to 'x' is evict_first: no other tile of the grid stores there}}
    tile.store %tile, %x[%mine, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    // CHECK-NEXT: tile.store {{.*}}] : tensor
    // expected-remark@+1 {{store to 'x' is left to the cache: tiles that differ in grid index 0 may store to the same place}}
    tile.store %tile, %x[%meets, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    scf.for %i = %c0 to %c4 step %c1 {
      // expected-remark@+1 {{store to 'y' is left to the cache: a loop stores to the same place again}}
      tile.store %tile, %y[%mine, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    }
  }
}

// -----

// Boxes of two heads and 32 rows: as far apart as they are wide, and not.
// CHECK-LABEL: hop.kernel @boxes
hop.kernel @boxes attributes {argument_names = ["x"], argument_types = [!tile.view<[H, M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 32>, #tile.grid_dim<"H", 2>], schedule = #tile.schedule<l2_hints = true>} {
^bb0(%x: !tile.view<[H, M, 64], bf16>, %m: index, %h: index):
  // expected-remark@+1 {{load of 'apart' is evict_first: no other tile of the grid loads it}}
  %p0 = hop.pipe.create "apart" : !hop.pipe<tensor<64x64xbf16>, 1>
  // expected-remark@+1 {{load of 'near' is left to the cache: its place depends on the first grid index, but tiles that differ in grid index 1 may overlap}}
  %p1 = hop.pipe.create "near" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role producer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %row = arith.muli %m, %c32 : index
    %heads = arith.muli %h, %c2 : index
    // CHECK: hop.pipe.load {{.*}} box [2, 32, 64] {hop.cache = #hop.cache<evict_first>}
    hop.pipe.load %p0, %x[%heads, %row, %c0] box [2, 32, 64] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[H, M, 64], bf16>
    // CHECK-NEXT: hop.pipe.load {{.*}} box [2, 32, 64] : !hop
    hop.pipe.load %p1, %x[%h, %row, %c0] box [2, 32, 64] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[H, M, 64], bf16>
  }
}
