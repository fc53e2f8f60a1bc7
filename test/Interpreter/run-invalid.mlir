// Each mistake on the command line of `tessera run` is explained, with exit code 2; a kernel that fails gives 1.
// RUN: rm -rf %t && mkdir %t
// RUN: not tessera run %s 2>&1 | FileCheck %s --check-prefix=KERNEL
// KERNEL: tessera: the source has several kernels; give --kernel copy or outside
// RUN: not tessera run %s --kernel nothing 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: --kernel: the source has no kernel 'nothing'; it has copy, outside
// RUN: not tessera run %s --kernel copy --set a=1 2>&1 | FileCheck %s --check-prefix=DIM
// DIM: kernel 'copy' needs the extent of M, N; give --shape M=N or an --input that has it
// RUN: not tessera run %s --kernel copy --shape M=4,N=4,X=4 2>&1 | FileCheck %s --check-prefix=EXTRA
// EXTRA: --shape: kernel 'copy' has no dimension 'X'{{.*}}; it has M, N
// RUN: not tessera run %s --kernel copy --shape M=4,N=-4 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: --shape: N is an integer of at least 0, got '-4'
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 --shape N=5 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: --shape N=5 makes N = 5, but --shape N=4 makes it 4
// RUN: not tessera run %s --kernel copy --shape M=4,N=1000000000000 --set a=1 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: the views take {{[0-9.]+}} GiB on the host, which has {{[0-9.]+}} GiB; use smaller dimensions
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 2>&1 | FileCheck %s --check-prefix=SCALAR
// SCALAR: kernel 'copy' needs its scalar 'a'; give --set a=VALUE
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 --set a=x 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: --set: 'a' is a number, got 'x'
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 --set b=1 2>&1 | FileCheck %s --check-prefix=SET
// SET: --set: kernel 'copy' has no scalar 'b'{{.*}}; it has a
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 --set a=1 --output x=%t/x.npy 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: --output: the kernel does not store 'x'
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 --set a=1 --input y=%t/x.npy 2>&1 | FileCheck %s --check-prefix=INPUT
// INPUT: --input: the kernel only stores 'y'
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 --set a=1 --input x=%t/x.npy 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: x.npy: cannot be read: No such file or directory
// RUN: tessera run %s --kernel copy --shape M=4,N=8 --set a=1 --output y=%t/y.npy
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 --set a=1 --input x=%t/y.npy 2>&1 | FileCheck %s --check-prefix=SHAPE
// SHAPE: --input x={{.*}}y.npy makes N = 8, but --shape N=4 makes it 4; the argument is !tile.view<[M, N], {{.*}}>
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 --set a=1 --order x=1,0 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: --order: 'x' takes a permutation of 0 to 1 that ends with 1 (the innermost dimension is contiguous), slowest dimension first; got '1,0'
// RUN: not tessera run %s --kernel copy --shape M=4,N=3 --set a=1 2>&1 | FileCheck %s --check-prefix=DIVIDES
// DIVIDES: run-invalid.mlir:[[#]]:1: error: requires that M divides N, got M = 4 and N = 3
// RUN: not tessera run %s --kernel copy --shape M=2,N=4 --set a=1 2>&1 | FileCheck %s --check-prefix=MULTIPLE
// MULTIPLE: run-invalid.mlir:[[#]]:1: error: requires that 4 divides M, got M = 2
// RUN: not tessera run %s --kernel copy --shape M=4,N=12 --set a=1 2>&1 | FileCheck %s --check-prefix=BOUND
// BOUND: run-invalid.mlir:[[#]]:1: error: requires that N is at most 8, got 12
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 --set a=0 2>&1 | FileCheck %s --check-prefix=ABOVE
// ABOVE: run-invalid.mlir:[[#]]:1: error: argument 'a' is 0; the kernel takes finite numbers above 1e-30
// RUN: not tessera run %s --kernel copy --shape M=4,N=4 --set a=1e39 2>&1 | FileCheck %s --check-prefix=FINITE
// FINITE: run-invalid.mlir:[[#]]:1: error: argument 'a' is inf; the kernel takes finite numbers above 1e-30
// RUN: not tessera run %s --kernel copy --shape M=4 --schedule overlap=1 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// SCHEDULE: --schedule changes nothing at --level bound; give --level scheduled
// RUN: not tessera run %s --kernel copy --device cuda --precision exact 2>&1 | FileCheck %s --check-prefix=DEVICE
// DEVICE: --level and --precision are options of --device interp
// RUN: not tessera run %s --kernel outside --shape M=3,N=4 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: run-invalid.mlir:[[#]]:8: error: index 0 is 3 at grid point (3), outside the extent 3 of dimension 0

tile.kernel @copy(%x: !tile.view<[M, N], f32>, %y: !tile.view<[M, N], f32>, %a: f32)
    grid(%i = 1) requires(M divides N, 4 divides M, N <= 8, a > 1.0e-30) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<[M, N], f32> -> tensor<4x4xf32>
  tile.store %t, %y[%c0, %c0] : tensor<4x4xf32>, !tile.view<[M, N], f32>
}

tile.kernel @outside(%x: !tile.view<[M, N], f32>) grid(%i = 4) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : !tile.view<[M, N], f32> -> tensor<4xf32>
}
