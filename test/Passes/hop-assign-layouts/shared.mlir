// Tiles that a role takes from shared memory and writes there, without a product: 16 neighbours a thread, and lanes that are
// rows of one repeat of the swizzle. Where rows are short, 8 neighbours.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-assign-layouts))' -split-input-file -verify-diagnostics | FileCheck %s

!Bytes = !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>
!Words = !hop.shared<tensor<64x128xbf16>, rows = 64>
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %from = hop.pipe.create "from" : !hop.pipe<tensor<64x128xf8E4M3FN>, 2>
  %to = hop.pipe.create "to" : !hop.pipe<tensor<64x128xbf16>, 2>
  hop.role @converter warpgroups(1) {
  ^bb0(%wg: index):
    %slot = hop.pipe.wait %from : !hop.pipe<tensor<64x128xf8E4M3FN>, 2> -> !Bytes
    %own = hop.pipe.acquire %to : !hop.pipe<tensor<64x128xbf16>, 2> -> !Words
    // CHECK: hop.fetch {{.*}} -> tensor<64x128xf8E4M3FN, #hop.layout<registers = [16:(0, 1)], lanes = [8:(1, 0), 4:(0, 16)], warps = [4:(8, 0)]>>
    %narrow = hop.fetch %slot : !Bytes -> tensor<64x128xf8E4M3FN>
    %wide = arith.extf %narrow : tensor<64x128xf8E4M3FN> to tensor<64x128xbf16>
    hop.stage %wide, %own : tensor<64x128xbf16>, !Words
    hop.pipe.commit %to, %own : !hop.pipe<tensor<64x128xbf16>, 2>, !Words
    hop.pipe.release %from, %slot : !hop.pipe<tensor<64x128xf8E4M3FN>, 2>, !Bytes
  }
}

// -----

!Bytes = !hop.shared<tensor<96x96xf8E4M3FN>, rows = 96>
!Words = !hop.shared<tensor<96x96xf16>, rows = 96>
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %from = hop.pipe.create "from" : !hop.pipe<tensor<96x96xf8E4M3FN>, 2>
  %to = hop.pipe.create "to" : !hop.pipe<tensor<96x96xf16>, 2>
  hop.role @converter warpgroups(1) {
  ^bb0(%wg: index):
    %slot = hop.pipe.wait %from : !hop.pipe<tensor<96x96xf8E4M3FN>, 2> -> !Bytes
    %own = hop.pipe.acquire %to : !hop.pipe<tensor<96x96xf16>, 2> -> !Words
    // CHECK: hop.fetch {{.*}} -> tensor<96x96xf8E4M3FN, #hop.layout<registers = [8:(0, 1)], lanes = [8:(1, 0), 4:(0, 8)], warps = [4:(8, 0)]>>
    %narrow = hop.fetch %slot : !Bytes -> tensor<96x96xf8E4M3FN>
    %wide = arith.extf %narrow : tensor<96x96xf8E4M3FN> to tensor<96x96xf16>
    hop.stage %wide, %own : tensor<96x96xf16>, !Words
    hop.pipe.commit %to, %own : !hop.pipe<tensor<96x96xf16>, 2>, !Words
    hop.pipe.release %from, %slot : !hop.pipe<tensor<96x96xf8E4M3FN>, 2>, !Bytes
  }
}

// -----

!Bytes = !hop.shared<tensor<48x64xf8E4M3FN>, rows = 48>
hop.kernel @k attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<"M", 2>],
    schedule = #tile.schedule<>} {
^bb0(%m: index):
  %from = hop.pipe.create "from" : !hop.pipe<tensor<48x64xf8E4M3FN>, 2>
  // expected-error@+1 {{128 threads that take tiles from shared memory cannot share 48x64 ones; multiples of 32 rows and 32 columns would work}}
  hop.role @converter warpgroups(1) {
  ^bb0(%wg: index):
    %slot = hop.pipe.wait %from : !hop.pipe<tensor<48x64xf8E4M3FN>, 2> -> !Bytes
    %narrow = hop.fetch %slot : !Bytes -> tensor<48x64xf8E4M3FN>
    hop.pipe.release %from, %slot : !hop.pipe<tensor<48x64xf8E4M3FN>, 2>, !Bytes
  }
}
