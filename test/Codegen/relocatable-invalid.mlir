// REQUIRES: ptxas
// RUN: tessera-translate --mlir-to-cubin --ptxas=%ptxas --Xptxas=-c %s -verify-diagnostics -o %t

// Code that is assembled for a later link can be called from elsewhere, so ptxas ignores setmaxnreg.
!acc = !llvm.struct<(f32, f32, f32, f32)>
// expected-error@below {{setmaxnreg is ignored because the code is relocatable}}
// expected-note@below {{remove -c and --compile-only}}
// expected-note@below {{ptxas says: (C7504)}}
llvm.func @dot(%a: i64, %b: i64, %out: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 1 : i32} {
  %zero = llvm.mlir.zero : !acc
  nvvm.setmaxregister increase 240
  nvvm.wgmma.fence.aligned
  %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>,
      D [<f32>, <zero>], A [<bf16>, <one>, <row>], B [<bf16>, <one>, <col>] : !acc -> !acc
  nvvm.wgmma.commit.group.sync.aligned
  %0 = llvm.extractvalue %d[0] : !acc
  %w = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,0" %0 : (f32) -> f32
  llvm.store %w, %out : f32, !llvm.ptr<1>
  llvm.return
}
