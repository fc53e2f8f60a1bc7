// Which loads the blocks of a cluster share.
//
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,cluster=2,persistent=none},tile.kernel(tile-choose-schedule),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-cluster))" 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: tessera-opt %S/../Inputs/small.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=none},tile.kernel(tile-choose-schedule),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-cluster))" | FileCheck %s --check-prefix=ALONE
// RUN: tessera-opt %s -split-input-file --pass-pipeline="builtin.module(hop.kernel(hop-cluster))" -verify-diagnostics | FileCheck %s

// K and V are the same for neighbours along m, Q is not.
// SMALL: remark: 'k' is loaded once for the 2 blocks of a cluster
// SMALL: remark: 'v' is loaded once for the 2 blocks of a cluster
// SMALL: remark: 'q' is loaded by each block of a cluster: its place depends on the first grid index
// SMALL: hop.pipe.create "q" : !hop.pipe
// SMALL: hop.pipe.create "k" multicast : !hop.pipe
// SMALL: hop.pipe.create "v" multicast : !hop.pipe

// ALONE-NOT: multicast

// The upper bound of a loop changes how often a load in it runs, but nothing of a load after it, whose place is not
// carried out of the loop.
// CHECK-LABEL: hop.kernel @flow
hop.kernel @flow attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"B", 1>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index, %b: index):
  // CHECK: "in loop" : !hop.pipe
  // expected-remark@+1 {{'in loop' is loaded by each block of a cluster: the number of iterations of the loop around its load depends on the first grid index}}
  %p0 = hop.pipe.create "in loop" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "after" multicast : !hop.pipe
  // expected-remark@+1 {{'after' is loaded once for the 2 blocks of a cluster}}
  %p1 = hop.pipe.create "after" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "counted" : !hop.pipe
  // expected-remark@+1 {{'counted' is loaded by each block of a cluster: its place depends on the first grid index}}
  %p2 = hop.pipe.create "counted" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "carried" : !hop.pipe
  // expected-remark@+1 {{'carried' is loaded by each block of a cluster: its place depends on the first grid index}}
  %p3 = hop.pipe.create "carried" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "unchanged" multicast : !hop.pipe
  // expected-remark@+1 {{'unchanged' is loaded once for the 2 blocks of a cluster}}
  %p4 = hop.pipe.create "unchanged" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "perhaps" : !hop.pipe
  // expected-remark@+1 {{'perhaps' is loaded by each block of a cluster: the condition around its load depends on the first grid index}}
  %p5 = hop.pipe.create "perhaps" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "chosen" : !hop.pipe
  // expected-remark@+1 {{'chosen' is loaded by each block of a cluster: its place depends on the first grid index}}
  %p6 = hop.pipe.create "chosen" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "by other index" multicast : !hop.pipe
  // expected-remark@+1 {{'by other index' is loaded once for the 2 blocks of a cluster}}
  %p7 = hop.pipe.create "by other index" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "shifted" : !hop.pipe
  // expected-remark@+1 {{'shifted' is loaded by each block of a cluster: its place depends on the first grid index}}
  %p8 = hop.pipe.create "shifted" : !hop.pipe<tensor<64x64xbf16>, 1>
  // One load of two is not shared, so neither is.
  // CHECK: "twice" : !hop.pipe
  // expected-remark@+1 {{'twice' is loaded by each block of a cluster: its place depends on the first grid index}}
  %p9 = hop.pipe.create "twice" : !hop.pipe<tensor<64x64xbf16>, 1>
  // A half by the place of the block in its cluster.
  // CHECK: "by rank" : !hop.pipe
  // expected-remark@+1 {{'by rank' is loaded by each block of a cluster: its place depends on the first grid index}}
  %p10 = hop.pipe.create "by rank" : !hop.pipe<tensor<64x32xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %rank = hop.cluster_rank
    %half = arith.muli %rank, %c32 : index
    hop.pipe.load %p10, %x[%c0, %half] : !hop.pipe<tensor<64x32xbf16>, 1>, !tile.view<[M, 64], bf16>
    %last, %first = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c0, %f = %c0) -> (index, index) {
      hop.pipe.load %p0, %x[%i, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
      scf.yield %i, %f : index, index
    }
    hop.pipe.load %p1, %x[%c1, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    hop.pipe.load %p2, %x[%last, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    %n = tile.dim "M"
    scf.for %i = %c0 to %n step %c1 iter_args(%a = %m, %u = %c0) -> (index, index) {
      hop.pipe.load %p3, %x[%a, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
      hop.pipe.load %p4, %x[%u, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
      scf.yield %i, %i : index, index
    }
    %some = arith.cmpi sgt, %m, %c1 : index
    %c = scf.if %some -> (index) {
      hop.pipe.load %p5, %x[%c0, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
      scf.yield %c1 : index
    } else {
      scf.yield %c0 : index
    }
    hop.pipe.load %p6, %x[%c, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    %any = arith.cmpi sgt, %b, %c1 : index
    scf.if %any {
      hop.pipe.load %p7, %x[%b, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    }
    scf.for %i = %c0 to %n step %m {
      hop.pipe.load %p8, %x[%i, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    }
    hop.pipe.load %p9, %x[%c0, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    hop.pipe.load %p9, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
  }
}

// Loads that are marked as alike in all blocks may stand in loops that are not.
// CHECK-LABEL: hop.kernel @alike
hop.kernel @alike attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // CHECK: "marked" multicast : !hop.pipe
  // expected-remark@+1 {{'marked' is loaded once for the 2 blocks of a cluster}}
  %p0 = hop.pipe.create "marked" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "half" : !hop.pipe
  // expected-remark@+1 {{'half' is loaded by each block of a cluster: the number of iterations of the loop around its load depends on the first grid index}}
  %p1 = hop.pipe.create "half" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = tile.dim "M"
    scf.for %i = %c0 to %m step %c1 {
      hop.pipe.load %p0, %x[%i, %c0] alike : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
      hop.pipe.load %p1, %x[%i, %c0] alike : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    }
    scf.for %i = %m to %n step %c1 {
      hop.pipe.load %p0, %x[%i, %c0] alike : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
      hop.pipe.load %p1, %x[%c0, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    }
  }
}

// Rows in runs are shared where no run's place depends on the index: each block copies half of the runs, for both.
// CHECK-LABEL: hop.kernel @runs
hop.kernel @runs attributes {argument_names = ["x", "t"], argument_types = [!tile.view<[P, 16, 64], bf16>, !tile.view<[N], i32>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"B", 1>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[P, 16, 64], bf16>, %t: !tile.view<[N], i32>, %m: index, %b: index):
  // CHECK: "of all" multicast : !hop.pipe
  // expected-remark@+1 {{'of all' is loaded once for the 2 blocks of a cluster}}
  %p0 = hop.pipe.create "of all" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "own" : !hop.pipe
  // expected-remark@+1 {{'own' is loaded by each block of a cluster: its place depends on the first grid index}}
  %p1 = hop.pipe.create "own" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "own list" : !hop.pipe
  // expected-remark@+1 {{'own list' is loaded by each block of a cluster: its place depends on the first grid index}}
  %p2 = hop.pipe.create "own list" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "one" : !hop.pipe
  // expected-remark@+1 {{'one' is loaded by each block of a cluster: its 16 rows in runs of 16 are not divisible into 2 parts of whole runs; multiples of 32 rows would be}}
  %p3 = hop.pipe.create "one" : !hop.pipe<tensor<16x64xbf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    hop.pipe.load %p0, %x[%c0, %c0, %c0] run 16 with (%b : index) {
    ^bb0(%i: index, %from: index):
      %number = arith.addi %from, %i : index
      %entry = tile.load %t[%number] : !tile.view<[N], i32> -> i32
      %page = arith.index_cast %entry : i32 to index
      hop.yield %page, %c0, %c16 : index, index, index
    } : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[P, 16, 64], bf16>
    hop.pipe.load %p1, %x[%c0, %c0, %c0] run 16 with (%m : index) {
    ^bb0(%i: index, %from: index):
      %page = arith.addi %from, %i : index
      hop.yield %page, %c0, %c16 : index, index, index
    } : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[P, 16, 64], bf16>
    hop.pipe.load %p2, %x[%c0, %c0, %c0] run 16 {
    ^bb0(%i: index):
      %number = arith.addi %m, %i : index
      %entry = tile.load %t[%number] : !tile.view<[N], i32> -> i32
      %page = arith.index_cast %entry : i32 to index
      hop.yield %page, %c0, %c16 : index, index, index
    } : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[P, 16, 64], bf16>
    hop.pipe.load %p3, %x[%b, %c0, %c0] run 16 {
    ^bb0(%i: index):
      hop.yield %i, %c0, %c16 : index, index, index
    } : !hop.pipe<tensor<16x64xbf16>, 1>, !tile.view<[P, 16, 64], bf16>
  }
}

// A number that another role hands on depends on the index where it does there.
// CHECK-LABEL: hop.kernel @handed
hop.kernel @handed attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"B", 1>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index, %b: index):
  // expected-remark@+1 {{'own number' is loaded by each block of a cluster: no load fills it}}
  %p0 = hop.pipe.create "own number" : !hop.pipe<tensor<1xi32>, 1>
  // expected-remark@+1 {{'number' is loaded by each block of a cluster: no load fills it}}
  %p1 = hop.pipe.create "number" : !hop.pipe<tensor<1xi32>, 1>
  // CHECK: "own" : !hop.pipe
  // expected-remark@+1 {{'own' is loaded by each block of a cluster: the number of iterations of the loop around its load depends on the first grid index}}
  %p2 = hop.pipe.create "own" : !hop.pipe<tensor<64x64xbf16>, 1>
  // CHECK: "of all" multicast : !hop.pipe
  // expected-remark@+1 {{'of all' is loaded once for the 2 blocks of a cluster}}
  %p3 = hop.pipe.create "of all" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @finder elected {
  ^bb0(%wg: index):
    %own = arith.index_cast %m : index to i32
    hop.pipe.put %p0, %own : !hop.pipe<tensor<1xi32>, 1>
    %number = arith.index_cast %b : index to i32
    hop.pipe.put %p1, %number : !hop.pipe<tensor<1xi32>, 1>
  }
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %own_i32 = hop.pipe.get %p0 : !hop.pipe<tensor<1xi32>, 1>
    %own = arith.index_cast %own_i32 : i32 to index
    scf.for %i = %c0 to %own step %c1 {
      hop.pipe.load %p2, %x[%i, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    }
    %number_i32 = hop.pipe.get %p1 : !hop.pipe<tensor<1xi32>, 1>
    %number = arith.index_cast %number_i32 : i32 to index
    scf.for %i = %c0 to %number step %c1 {
      hop.pipe.load %p3, %x[%i, %c0] : !hop.pipe<tensor<64x64xbf16>, 1>, !tile.view<[M, 64], bf16>
    }
  }
}
