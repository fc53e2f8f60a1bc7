// What a role writes part by part, of shared tiles alone, two blocks make half each. What only a part is made of goes with it.
// RUN: tessera-opt %s -split-input-file --pass-pipeline="builtin.module(hop.kernel(hop-cluster))" -verify-diagnostics | FileCheck %s

!S = !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>
!SH = !hop.shared<tensor<32x64xf8E4M3FN>, rows = 64>
!D = !hop.shared<tensor<64x64xbf16>, rows = 64>
!DH = !hop.shared<tensor<32x64xbf16>, rows = 64>
!R8 = !hop.pipe<tensor<64x64xf8E4M3FN>, 2>
!R = !hop.pipe<tensor<64x64xbf16>, 1>
!L = tensor<32x64xf8E4M3FN, #hop.layout<registers = [16:(0, 1)], lanes = [8:(1, 0), 4:(0, 16)], warps = [4:(8, 0)]>>
!B = tensor<32x64xbf16, #hop.layout<registers = [16:(0, 1)], lanes = [8:(1, 0), 4:(0, 16)], warps = [4:(8, 0)]>>
// CHECK-LABEL: hop.kernel @made
hop.kernel @made attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f8E4M3FN>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"B", 1>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], f8E4M3FN>, %m: index, %b: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: "stored" multicast
  // expected-remark@+1 {{'stored' is loaded once for the 2 blocks of a cluster}}
  %p = hop.pipe.create "stored" : !R8
  // CHECK: "made" multicast
  // expected-remark@+1 {{'made' is made once for the 2 blocks of a cluster}}
  %q = hop.pipe.create "made" : !R
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %p, %x[%b, %c0] : !R8, !tile.view<[M, 64], f8E4M3FN>
  }
  hop.role @converter warpgroups(1) {
  ^bb0(%wg: index):
    // CHECK: %[[FROM:.*]] = hop.pipe.wait
    // CHECK: %[[RANK:.*]] = hop.cluster_rank
    // CHECK: %[[TO:.*]] = hop.pipe.acquire
    // CHECK: %[[IS0:.*]] = arith.cmpi eq, %[[RANK]], %c0
    // CHECK-NEXT: scf.if %[[IS0]] {
    // CHECK-NEXT:   hop.slice %[[FROM]][%c0]
    // CHECK-NEXT:   hop.slice %[[TO]][%c0]
    // CHECK-NEXT:   hop.fetch
    // CHECK-NEXT:   arith.extf
    // CHECK-NEXT:   hop.stage
    // CHECK-NEXT: }
    // CHECK: %[[IS1:.*]] = arith.cmpi eq, %[[RANK]], %c1
    // CHECK-NEXT: scf.if %[[IS1]] {
    // CHECK:        hop.stage
    // CHECK-NEXT: }
    // CHECK-NEXT: hop.warpgroup_sync
    // CHECK-NEXT: hop.pipe.commit
    %s = hop.pipe.wait %p : !R8 -> !S
    %t = hop.pipe.acquire %q : !R -> !D
    %s0 = hop.slice %s[%c0] : !S -> !SH
    %t0 = hop.slice %t[%c0] : !D -> !DH
    %f0 = hop.fetch %s0 : !SH -> !L
    %w0 = arith.extf %f0 : !L to !B
    hop.stage %w0, %t0 : !B, !DH
    %s1 = hop.slice %s[%c1] : !S -> !SH
    %t1 = hop.slice %t[%c1] : !D -> !DH
    %f1 = hop.fetch %s1 : !SH -> !L
    %w1 = arith.extf %f1 : !L to !B
    hop.stage %w1, %t1 : !B, !DH
    hop.warpgroup_sync
    hop.pipe.commit %q, %t : !R, !D
    hop.pipe.release %p, %s : !R8, !S
  }
}

// Not what a role makes of tiles of its own block, or in one piece.
// CHECK-LABEL: hop.kernel @own
hop.kernel @own attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f8E4M3FN>],
    grid = [#tile.grid_dim<"M", 64>, #tile.grid_dim<"B", 1>], schedule = #tile.schedule<cluster = 2>} {
^bb0(%x: !tile.view<[M, 64], f8E4M3FN>, %m: index, %b: index):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark@+1 {{'shared' is loaded once for the 2 blocks of a cluster}}
  %k = hop.pipe.create "shared" : !R8
  // expected-remark@+1 {{'stored' is loaded by each block of a cluster: its place depends on the first grid index}}
  %p = hop.pipe.create "stored" : !R8
  // CHECK: "made" : !hop.pipe
  // expected-remark@+1 {{'made' is loaded by each block of a cluster: the role that makes it reads 'stored', of which each block has its own}}
  %q = hop.pipe.create "made" : !R
  // CHECK: "whole" : !hop.pipe
  // expected-remark@+1 {{'whole' is loaded by each block of a cluster: no load fills it, nor are its tiles written in parts of which two blocks make half each}}
  %w = hop.pipe.create "whole" : !R
  hop.role @producer elected {
  ^bb0(%wg: index):
    hop.pipe.load %k, %x[%b, %c0] : !R8, !tile.view<[M, 64], f8E4M3FN>
    hop.pipe.load %p, %x[%m, %c0] : !R8, !tile.view<[M, 64], f8E4M3FN>
  }
  hop.role @converter warpgroups(1) {
  ^bb0(%wg: index):
    %s = hop.pipe.wait %p : !R8 -> !S
    %t = hop.pipe.acquire %q : !R -> !D
    %s0 = hop.slice %s[%c0] : !S -> !SH
    %t0 = hop.slice %t[%c0] : !D -> !DH
    %f0 = hop.fetch %s0 : !SH -> !L
    %w0 = arith.extf %f0 : !L to !B
    hop.stage %w0, %t0 : !B, !DH
    %t1 = hop.slice %t[%c1] : !D -> !DH
    hop.stage %w0, %t1 : !B, !DH
    hop.warpgroup_sync
    hop.pipe.commit %q, %t : !R, !D
    hop.pipe.release %p, %s : !R8, !S
  }
  hop.role @other warpgroups(1) {
  ^bb0(%wg: index):
    %v = arith.constant dense<1.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %t = hop.pipe.acquire %w : !R -> !D
    hop.stage %v, %t : tensor<64x64xbf16, #hop.layout<accumulator>>, !D
    hop.warpgroup_sync
    hop.pipe.commit %w, %t : !R, !D
  }
}
