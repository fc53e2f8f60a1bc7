// Divisions by what may be above 2^126 scale their operands, and angles lose their turns before a sine; with afn, and
// where a constant says so, neither. Logarithms of 1 and a small number are polynomials.
// RUN: tessera-opt %s --hop-lower-to-llvm | FileCheck %s

hop.kernel @k attributes {argument_names = ["y", "a"], argument_types = [!tile.view<[N], f32>, f32],
    grid = [#tile.grid_dim<"N", 1>], schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%y: !tile.view<[N], f32>, %a: f32, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %one = arith.constant 1.0 : f32
    %three = arith.constant 3.0 : f32
    %large = arith.constant 0x7F000000 : f32
    // CHECK: %[[X:.*]] = llvm.bitcast
    %x = tile.load %y[%m] : !tile.view<[N], f32> -> f32
    // CHECK: %[[Q:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full.ftz"(%[[X]], %{{.*}}) : (f32, f32) -> f32
    %q = arith.divf %x, %a : f32
    // CHECK: llvm.fdiv %{{.*}}, %[[Q]] {fastmathFlags = #llvm.fastmath<contract, afn>}
    %r = arith.divf %one, %q : f32
    // CHECK: llvm.fdiv %{{.*}} {fastmathFlags = #llvm.fastmath<contract, afn>}
    %third = arith.divf %r, %three : f32
    // CHECK: llvm.nvvm.div.full.ftz
    %small = arith.divf %third, %large : f32
    // CHECK: llvm.fdiv %{{.*}} {fastmathFlags = #llvm.fastmath<contract, afn>}
    %s = arith.divf %small, %a fastmath<afn> : f32
    // CHECK: %[[ROUNDED:.*]] = llvm.call_intrinsic "llvm.nvvm.fma.rn.f"
    // CHECK: %[[TURNS:.*]] = llvm.fadd %[[ROUNDED]],
    // CHECK: %[[LESS:.*]] = llvm.call_intrinsic "llvm.nvvm.fma.rn.f"(%[[TURNS]],
    // CHECK: %[[ANGLE:.*]] = llvm.call_intrinsic "llvm.nvvm.fma.rn.f"(%[[TURNS]], %{{.*}}, %[[LESS]])
    // CHECK: %[[SIN:.*]] = llvm.intr.sin(%[[ANGLE]]) {fastmathFlags = #llvm.fastmath<contract, afn>}
    %sin = math.sin %s : f32
    // CHECK: %[[COS:.*]] = llvm.intr.cos(%{{.*}}) {fastmathFlags = #llvm.fastmath<contract, afn>}
    %cos = math.cos %sin : f32
    // CHECK-NEXT: llvm.intr.sin(%[[COS]]) {fastmathFlags = #llvm.fastmath<contract, afn>}
    %fast = math.sin %cos fastmath<afn> : f32
    // CHECK: %[[FAST_LOG2:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"
    // CHECK: %[[LOG:.*]] = llvm.fmul %[[FAST_LOG2]],
    %log = math.log %fast : f32
    // CHECK: %[[SUM:.*]] = llvm.fadd %[[LOG]],
    // CHECK: %[[SUM_LOG2:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"(%[[SUM]])
    // CHECK: %[[FAR:.*]] = llvm.fmul %[[SUM_LOG2]],
    // CHECK-COUNT-6: llvm.intr.fma(%{{.*}}, %[[LOG]], %{{.*}})
    // CHECK: %[[NEAR:.*]] = llvm.fmul %{{.*}}, %[[LOG]]
    // CHECK: %[[LOG1P:.*]] = llvm.select %{{.*}}, %[[NEAR]], %[[FAR]]
    %log1p = math.log1p %log : f32
    // CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"(%[[LOG1P]])
    // CHECK-NOT: llvm.intr.fma
    %log2 = math.log2 %log1p : f32
    %t = tile.splat %log2 : f32 -> tensor<64xf32, #hop.layout<row>>
    tile.store %t, %y[%m] : tensor<64xf32, #hop.layout<row>>, !tile.view<[N], f32>
    // All threads of the role meet at one barrier.
    // CHECK: "bar.sync $0, 128;"
    hop.role_sync
  }
}
