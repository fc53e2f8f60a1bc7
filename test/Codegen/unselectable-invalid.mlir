// RUN: not tessera-translate --mlir-to-ptx %s 2>&1 | FileCheck %s

// What LLVM cannot select is an error, not an abort.
// CHECK: unselectable-invalid.mlir:{{[0-9]+}}:{{[0-9]+}}: error: LLVM's NVPTX backend cannot generate code for this module
llvm.func @log(%x: f32, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %y = llvm.intr.log2(%x) : (f32) -> f32
  llvm.store %y, %out : f32, !llvm.ptr<1>
  llvm.return
}
