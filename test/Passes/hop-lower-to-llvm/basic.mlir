// The program of one thread.
//
// RUN: tessera-opt %S/../Inputs/small.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,overlap=1,store=tma,stages=2},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-stage-stores,hop-async-mma,hop-pingpong,hop-insert-mbarriers,hop-insert-proxy-fences,hop-allocate-shared-memory),canonicalize,cse,hop-lower-to-llvm)' | FileCheck %s
// RUN: tessera-opt %S/../Inputs/gemm.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,stages=2},tile.kernel(tile-choose-schedule,tile-overlap),canonicalize,cse,tile-warp-specialize,canonicalize,cse, \
// RUN:   hop.kernel(hop-assign-layouts),canonicalize,cse,hop.kernel(hop-stage-stores,hop-async-mma,hop-pingpong,hop-insert-mbarriers,hop-insert-proxy-fences,hop-allocate-shared-memory),canonicalize,cse,hop-lower-to-llvm)' | FileCheck %s --check-prefix=GEMM
// RUN: tessera-opt %s --hop-lower-to-llvm | FileCheck %s --check-prefix=TILES

// Tensor maps come first and by value; the launch description and the promise of no spills are on the function.
// CHECK: llvm.mlir.global external @tessera_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK: llvm.func @small(%{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// CHECK-SAME: nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 384>
// CHECK-SAME: box = [64, 128, 1]
// CHECK-SAME: swizzle = "128B"
// CHECK-SAME: shared_memory = 49232
// CHECK-SAME: tessera.no_spills
// CHECK-COUNT-4: prefetch.tensormap
// CHECK-COUNT-10: mbarrier.init
// CHECK: fence.mbarrier_init
// CHECK: bar.sync 0
// CHECK: setmaxnreg.dec.sync.aligned.u32 24
// CHECK: elect.sync
// CHECK: mbarrier.try_wait.parity
// CHECK: mbarrier.arrive.expect_tx
// CHECK: cp.async.bulk.tensor.3d.shared::cluster.global
// CHECK: setmaxnreg.inc.sync.aligned.u32 240
// A product from shared memory: both operands K-major, from 0; then one whose A is in registers and B is not transposed.
// CHECK: wgmma.fence.sync.aligned{{.*}}m64n64k16.f32.bf16.bf16 {{{[^}]*}}}, da, db, none, 1, 1, 0, 0;{{.*}}, da, db, all, 1, 1, 0, 0;{{.*}}wgmma.commit_group
// CHECK: bar.arrive $0, 256;
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: mbarrier.arrive.release.cta
// CHECK: llvm.nvvm.ff2bf16x2.rn
// CHECK: bar.sync $0, 256;
// CHECK: m64n64k16.f32.bf16.bf16 {{{[^}]*}}}, {{{[^}]*}}}, db, all, 1, 1, 1;
// CHECK: wgmma.wait_group.sync.aligned 0;
// The sum over the quads, staging with stmatrix, and the copy by one thread.
// CHECK: shfl.sync.bfly.f32
// CHECK: stmatrix.sync.aligned.m8n8.x4
// CHECK: fence.proxy.async.shared::cta
// CHECK: bar.sync $0, 128;
// A slice of the rows goes chunk by chunk.
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta
// CHECK: cp.async.bulk.commit_group
// CHECK: st.global.b32
// CHECK: llvm.return

// A row of B that is no whole number of chunks of a known extent is copied chunk by chunk.
// GEMM: setmaxnreg.dec
// GEMM: cp.async.bulk.tensor.2d.shared::cluster.global
// GEMM-COUNT-4: cp.async.bulk.tensor.2d.shared::cluster.global
// GEMM-NOT: cp.async.bulk
// GEMM: m64n256k16.f32.f16.f16 {{{[^}]*}}}, da, db, all, 1, 1, 0, 1;
// GEMM: st.global.v4.b32

hop.kernel @tiles attributes {argument_names = ["x", "y", "n"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>, i32],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %n: i32, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %col = arith.constant 8 : index
    // One load for each element; a column tile is held by all rows.
    // TILES-LABEL: llvm.func @tiles
    // TILES-COUNT-16: ld.global.b32
    // TILES-NOT: ld.global
    %bias = tile.load %y[%c0] : !tile.view<[N], f32> -> tensor<64xf32, #hop.layout<column>>
    %b = tile.broadcast %bias axis 0 : tensor<64xf32, #hop.layout<column>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    // A signed comparison of index tiles is one difference and immediates, an unsigned one compares the indices. With an
    // argument, which may be any number, the difference does not wrap.
    // TILES: %[[DIFF:.*]] = llvm.sub
    // TILES: llvm.icmp "sge" %[[DIFF]],
    // TILES: %[[NEAREST:.*]] = llvm.intr.ssub.sat
    // TILES: llvm.icmp "slt" %[[NEAREST]],
    // TILES-COUNT-8: llvm.icmp "ult"
    %i = tile.iota %m axis 1 : tensor<64x64xi32, #hop.layout<accumulator>>
    %j = tile.iota %c0 axis 1 : tensor<64x64xi32, #hop.layout<accumulator>>
    %k = tile.splat %n : i32 -> tensor<64x64xi32, #hop.layout<accumulator>>
    %behind = arith.cmpi sge, %i, %j : tensor<64x64xi32, #hop.layout<accumulator>>
    %before = arith.cmpi slt, %i, %k : tensor<64x64xi32, #hop.layout<accumulator>>
    %less = arith.andi %behind, %before : tensor<64x64xi1, #hop.layout<accumulator>>
    %below = arith.cmpi ult, %j, %k : tensor<64x64xi32, #hop.layout<accumulator>>
    %both = arith.andi %less, %below : tensor<64x64xi1, #hop.layout<accumulator>>
    // TILES: llvm.select
    %z = arith.constant dense<0.0> : tensor<64x64xf32, #hop.layout<accumulator>>
    %s = arith.select %both, %b, %z : tensor<64x64xi1, #hop.layout<accumulator>>, tensor<64x64xf32, #hop.layout<accumulator>>
    // TILES: llvm.intr.maxnum
    // TILES: shfl.sync.bfly.f32
    %max = tile.reduce max %s axis 1 : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64xf32, #hop.layout<row>>
    // With NaN as the largest. Where no element can have its sign set, the order of the bits as integers is that of the
    // numbers, and one instruction of the machine takes three of those.
    // TILES-COUNT-31: llvm.intr.maximum
    // TILES: shfl.sync.bfly.f32
    // TILES-COUNT-32: llvm.bitcast {{.*}} : f32 to i32
    // TILES-COUNT-14: llvm.intr.smax
    // TILES: llvm.bitcast {{.*}} : i32 to f32
    // TILES: llvm.intr.maximum
    // TILES-NOT: shfl.sync
    // TILES: llvm.fadd
    %maximum = tile.reduce maximum %s axis 1 : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64xf32, #hop.layout<row>>
    %squares = arith.mulf %s, %s : tensor<64x64xf32, #hop.layout<accumulator>>
    %masked = arith.select %both, %squares, %z : tensor<64x64xi1, #hop.layout<accumulator>>, tensor<64x64xf32, #hop.layout<accumulator>>
    %largest = tile.reduce maximum %masked axis 1 : tensor<64x64xf32, #hop.layout<accumulator>> -> tensor<64xf32, #hop.layout<row_partial>>
    %maximum_parts = hop.convert_layout maximum %maximum : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<row_partial>>
    %parts = arith.addf %largest, %maximum_parts : tensor<64xf32, #hop.layout<row_partial>>
    // One lane of each quad stores a row.
    // TILES-COUNT-2: st.global.b32
    tile.store %max, %y[%c0] : tensor<64xf32, #hop.layout<row>>, !tile.view<[N], f32>
    // TILES: shfl.sync.bfly.f32
    // TILES: llvm.intr.maximum
    %whole = hop.convert_layout maximum %parts : tensor<64xf32, #hop.layout<row_partial>> -> tensor<64xf32, #hop.layout<row>>
    tile.store %whole, %y[%c0] : tensor<64xf32, #hop.layout<row>>, !tile.view<[N], f32>
    // 8 columns a unit once the quad has exchanged its parts.
    // TILES: shfl.sync.bfly
    // TILES-COUNT-4: st.global.v4.b32
    %h = arith.truncf %s : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
    tile.store %h, %x[%m, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    // An index tile becomes f32 by one conversion and additions; it is written out in each branch that computes on it
    // otherwise.
    // TILES: %[[BASE:.*]] = llvm.sitofp
    // TILES-NOT: llvm.sitofp
    // TILES-COUNT-15: llvm.fadd %[[BASE]],
    // TILES-COUNT-32: llvm.uitofp
    %some = arith.cmpi sgt, %m, %c0 : index
    %g = scf.if %some -> (tensor<64x64xf32, #hop.layout<accumulator>>) {
      %f = arith.sitofp %i : tensor<64x64xi32, #hop.layout<accumulator>> to tensor<64x64xf32, #hop.layout<accumulator>>
      scf.yield %f : tensor<64x64xf32, #hop.layout<accumulator>>
    } else {
      %f = arith.uitofp %i : tensor<64x64xi32, #hop.layout<accumulator>> to tensor<64x64xf32, #hop.layout<accumulator>>
      scf.yield %f : tensor<64x64xf32, #hop.layout<accumulator>>
    }
    // A scalar is loaded by every thread. A hyperbolic tangent is made of an exponential and a reciprocal, unless an
    // approximation will do.
    // TILES: "ld.global.b32 $0, [$1];"
    // TILES: llvm.intr.exp2
    // TILES: rcp.approx.ftz.f
    // TILES: llvm.intr.tanh({{.*}}) {fastmathFlags = #llvm.fastmath<contract, afn>}
    %e0 = tile.load %y[%m] : !tile.view<[N], f32> -> f32
    %e1 = math.tanh %e0 : f32
    %e2 = math.tanh %e1 fastmath<afn> : f32
    %es = tile.splat %e2 : f32 -> tensor<64xf32, #hop.layout<row>>
    tile.store %es, %y[%c0] : tensor<64xf32, #hop.layout<row>>, !tile.view<[N], f32>
    // The unsigned loop compares so.
    // TILES-COUNT-2: st.global.b32
    // TILES: llvm.icmp "ult"
    scf.for unsigned %t = %c0 to %m step %col {
      %e = arith.addf %g, %b : tensor<64x64xf32, #hop.layout<accumulator>>
      %eh = arith.truncf %e : tensor<64x64xf32, #hop.layout<accumulator>> to tensor<64x64xbf16, #hop.layout<accumulator>>
      tile.store %eh, %x[%t, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
    }
  }
}
