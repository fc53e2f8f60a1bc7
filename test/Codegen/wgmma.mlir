// REQUIRES: ptxas
// RUN: tessera-translate --mlir-to-cubin --ptxas=%ptxas --ptxas-log %s | FileCheck %s
// RUN: tessera-translate --mlir-to-ptx %s | FileCheck %s --check-prefix=PTX

// One dot with its wait tied to the accumulators: nothing to complain about.
// CHECK-NOT: (C75
// CHECK: Compiling entry function 'dot'
// CHECK: 0 bytes spill stores
// CHECK: Used {{[0-9]+}} registers

// PTX: wgmma.fence.sync.aligned
// PTX: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
// PTX: wgmma.commit_group.sync.aligned
// PTX: wgmma.wait_group.sync.aligned 0
!acc = !llvm.struct<(f32, f32, f32, f32)>
llvm.func @dot(%a: i64, %b: i64, %out: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
  %zero = llvm.mlir.zero : !acc
  nvvm.wgmma.fence.aligned
  %d = nvvm.wgmma.mma_async %a, %b, %zero, #nvvm.shape<m = 64, n = 8, k = 16>,
      D [<f32>, <zero>], A [<bf16>, <one>, <row>], B [<bf16>, <one>, <col>] : !acc -> !acc
  nvvm.wgmma.commit.group.sync.aligned
  %0 = llvm.extractvalue %d[0] : !acc
  %1 = llvm.extractvalue %d[1] : !acc
  %2 = llvm.extractvalue %d[2] : !acc
  %3 = llvm.extractvalue %d[3] : !acc
  %w = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3"
      %0, %1, %2, %3 : (f32, f32, f32, f32) -> !acc
  %r = llvm.extractvalue %w[3] : !acc
  llvm.store %r, %out : f32, !llvm.ptr<1>
  llvm.return
}
