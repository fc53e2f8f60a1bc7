// REQUIRES: ptxas
// RUN: not tessera-translate --mlir-to-cubin --ptxas=%ptxas --Xptxas=--maxrregcount=24 %s -o %t 2>&1 | FileCheck %s
// RUN: sed 's/, tessera.no_spills//' %s | tessera-translate --mlir-to-cubin --ptxas=%ptxas --Xptxas=--maxrregcount=24 -o %t 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNPROMISED
// RUN: sed 's/tessera.no_spills/tessera.no_spills, tessera.tolerated_spills = 4096/' %s \
// RUN:   | tessera-translate --mlir-to-cubin --ptxas=%ptxas --Xptxas=--maxrregcount=24 -o %t 2>&1 | FileCheck %s --check-prefix=TOLERATED
// TOLERATED-NOT: error:
// TOLERATED: remark: ptxas spills {{[1-9][0-9]*}} bytes of stores
// TOLERATED-NOT: error:

// A schedule that promised to fit makes a spill an error; one that somebody forced, a warning.
// CHECK: spills.mlir:[[#@LINE+5]]:{{[0-9]+}}: error: kernel 'many' does not fit in its registers: ptxas spills {{[1-9][0-9]*}} bytes of stores and {{[0-9]+}} bytes of loads per thread to local memory
// CHECK: note: use a smaller tile
// UNPROMISED-NOT: error:
// UNPROMISED: warning: kernel 'many' does not fit in its registers
!v = vector<64xf32>
llvm.func @many(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, tessera.no_spills} {
  %x = llvm.load volatile %in : !llvm.ptr<1> -> !v
  %s = llvm.fmul %x, %x : !v
  llvm.store volatile %x, %out : !v, !llvm.ptr<1>
  llvm.store volatile %s, %out : !v, !llvm.ptr<1>
  llvm.return
}
