// What is wrong with the assembler itself.

// RUN: not tessera-translate --mlir-to-cubin --ptxas=%t.absent %s 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: no usable ptxas: CUDA 12.3 or newer is needed. Looked in '{{.*}}.absent', which does not exist. Install a CUDA toolkit or, with pip, one of the packages nvidia-cuda-nvcc (CUDA 13) and nvidia-cuda-nvcc-cu12, or name the program with --ptxas

// RUN: env FAKE_RELEASE=12.2 not tessera-translate --mlir-to-cubin --ptxas=%S/Inputs/fake-ptxas %s 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: error: no usable ptxas: CUDA 12.3 or newer is needed. Found only {{.*}}fake-ptxas (of CUDA 12.2). Install

// RUN: not tessera-translate --mlir-to-cubin --ptxas=%S/Inputs/fake-ptxas %s 2>&1 | FileCheck %s --check-prefix=MUTE
// MUTE: error: no usable ptxas: {{.*}}fake-ptxas (does not say its version when run with --version)

// RUN: not tessera-translate --mlir-to-cubin --ptxas=%s %s 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: error: no usable ptxas: {{.*}}toolchain-invalid.mlir (not an executable file)

// RUN: env FAKE_RELEASE=13.0 FAKE_EXIT=3 not tessera-translate --mlir-to-cubin --ptxas=%S/Inputs/fake-ptxas %s 2>&1 | FileCheck %s --check-prefix=DIES
// DIES: error: ptxas failed with exit code 3 and no message of its own

// RUN: env FAKE_RELEASE=13.0 FAKE_EXIT=255 FAKE_LOG=%S/Inputs/syntax.log not tessera-translate --mlir-to-cubin \
// RUN:   --ptxas=%S/Inputs/fake-ptxas %s 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: toolchain-invalid.mlir:[[#@LINE+21]]:{{[0-9]+}}: error: ptxas: Unknown modifier '.foo' (line 26 of the PTX)
// SYNTAX: error: ptxas: Ptx assembly aborted due to errors
// SYNTAX-NOT: no message

// RUN: env FAKE_RELEASE=13.0 FAKE_NO_CODE=1 not tessera-translate --mlir-to-cubin --ptxas=%S/Inputs/fake-ptxas %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: ptxas succeeded but wrote no code{{$}}

// What is wrong with the kernel and not with the assembler.
// RUN: env FAKE_RELEASE=13.0 FAKE_EXIT=255 FAKE_LOG=%S/Inputs/registers.log not tessera-translate --mlir-to-cubin \
// RUN:   --ptxas=%S/Inputs/fake-ptxas %s 2>&1 | FileCheck %s --check-prefix=REGISTERS --implicit-check-not="no message" --implicit-check-not=aborted
// REGISTERS: error: {{.*}}an instruction needs more registers than a thread has
// REGISTERS: note: use a smaller tile, fewer consumers with more registers each, or overlap = 1
// REGISTERS: note: ptxas says: (C7602) Insufficient registers (128)

// Arguments are passed on, after what the compiler needs.
// RUN: env FAKE_RELEASE=12.3 FAKE_ARGUMENTS=1 tessera-translate --mlir-to-cubin --ptxas=%S/Inputs/fake-ptxas \
// RUN:   --Xptxas=-O2 --Xptxas=--verbose --ptxas-log %s | FileCheck %s --check-prefix=ARGUMENTS
// ARGUMENTS: arguments -arch=sm_90a -v -O2 --verbose {{[^ ]+}} -o {{[^ ]+}}
llvm.func @first(%out: !llvm.ptr<1>, %a: f32) attributes {nvvm.kernel} {
  %b = llvm.fmul %a, %a : f32
  llvm.store %b, %out : f32, !llvm.ptr<1>
  llvm.return
}
