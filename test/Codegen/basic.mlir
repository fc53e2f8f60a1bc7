// RUN: tessera-translate --mlir-to-ptx %s | FileCheck %s
// RUN: tessera-translate --mlir-to-ptx --line-info=false %s | FileCheck %s --check-prefix=NOLINES

// The oldest toolkit that is supported assembles it, and ptxas optimises it (no `debug`).
// CHECK: .version 8.3
// CHECK: .target sm_90a{{$}}
// CHECK: .entry axpy(
// CHECK: .reqntid 128
// Products and sums are fused, whatever the flags say.
// CHECK: .loc 1 [[#@LINE+14]]
// CHECK: fma.rn.f32
// CHECK: .loc 1 [[#@LINE+14]]
// CHECK: st.global.b32
// CHECK: .file 1 "{{.*}}basic.mlir"

// NOLINES-NOT: .loc
// NOLINES-NOT: .file
llvm.func @axpy(%a: f32, %x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %vx = llvm.load %px : !llvm.ptr<1> -> f32
  %m = llvm.fmul %a, %vx : f32
  %s = llvm.fadd %m, %a : f32
  %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  llvm.store %s, %py : f32, !llvm.ptr<1>
  llvm.return
}
