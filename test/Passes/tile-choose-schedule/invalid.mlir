// Kernels and schedules that the model refuses, with what would work.
//
// RUN: %cases %s | tessera-opt --tile-choose-schedule -split-input-file -verify-diagnostics
// RUN: not tessera-opt %S/../Inputs/gemm.mlir --tile-override-schedule=schedule=overlap=2 --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=OVERLAP
// RUN: not tessera-opt %S/../Inputs/gemm.mlir --tile-override-schedule=schedule=pingpong=true --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=PINGPONG
// RUN: not tessera-opt %S/../Inputs/gemm.mlir --tile-override-schedule=schedule=stages=8 --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: not tessera-opt %S/../Inputs/gemm.mlir --tile-override-schedule=schedule=consumers=3 --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=CONSUMERS
// RUN: not tessera-opt %S/../Inputs/gemm.mlir --tile-override-schedule=schedule=consumer_registers=256,producer=operands,consumers=2 --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: not tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=consumers=1 --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=persistent=none,order=descending --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=producer=none,order=descending --tile-choose-schedule | FileCheck %s --check-prefix=ORDERED
// RUN: not tessera-opt %S/../Inputs/causal.mlir --tile-override-schedule=schedule=cluster=2,stages=1 --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=AHEAD
// RUN: not tessera-opt %S/../Inputs/causal.mlir --tile-override-schedule=schedule=cluster=2,producer=none --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=PRODUCER
// RUN: not tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=pipes=1 --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=consumers=many --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=VALUE

// OVERLAP: error: no schedule of this kernel fits the machine with #tile.schedule<overlap = 2>
// OVERLAP: note: this would work: {{.*}}overlap = 1,
// OVERLAP: note: overlap = 2: no dot of the loop reads what was computed from another dot of the same iteration

// PINGPONG: note: this would work: {{.*}}pingpong = false,
// PINGPONG: note: producer = operands, overlap = 1, consumers = 2: ping-pong needs a loop with work between dependent dots, and the kernel has none
// PINGPONG: note: producer = operands, overlap = 1, consumers = 1: ping-pong takes two consumers or more that take turns

// STAGES: note: this would work: {{.*}}stages = 4,
// STAGES: note: stages = 8, outer_stages = 1, store = direct: it takes 393472 bytes of shared memory (tiles 393216, staging of stores 0, mbarriers 256), and a CTA can have 232448

// CONSUMERS: note: this would work: {{.*}}consumers = 2,
// CONSUMERS: 128 rows of a dot cannot be divided among 3 warpgroups in multiples of 64

// REGISTERS: note: this would work:
// REGISTERS: the warpgroups take 68608 registers (24 for each thread of the producer, 256 for each thread of the consumers in 2 warpgroups), and the launch gives the block 64512, 168 for each of 384 threads; use at most 240 for the consumers

// ORDER: note: this would work: {{.*}}persistent = {{static|dynamic}}, order = descending
// ORDER: the order of tiles is the launch's with persistent = none; use static or dynamic, or order = linear
// ORDERED: persistent = static, order = descending

// ONE: note: this would work: {{.*}}consumers = 2,
// ONE: note: producer = operands, overlap = 2, consumers = 1: a consumer thread needs 350 registers and can use 233 of its 240

// AHEAD: note: this would work: {{.*}}stages = {{[2-4]}},{{.*}}cluster = 2,
// AHEAD: note: stages = 1: in a cluster tiles are loaded up to 2 iterations ahead of a block whose loop is shorter, which takes stages = 2 or more; or use cluster = 1
// PRODUCER: note: this would work: #tile.schedule<producer = operands,{{.*}}cluster = 2,
// PRODUCER: note: producer = none, overlap = 2, consumers = 1: the loops around what a cluster loads together run longer in some of its blocks, which takes a producer that loads for all of them; use producer = operands or cluster = 1

// UNKNOWN: error: unknown schedule field 'pipes'; known are producer,
// VALUE: error: schedule field 'consumers' takes 1 to 4, got 'many'

// expected-error@+4 {{no schedule of this kernel fits the machine with #tile.schedule<producer = operands, stages = 2>}}
// expected-note@+3 {{producer = operands: it is about dots and the tiles that are loaded for them, and the kernel has no tile.dot; leave it out, or use producer = none}}
// expected-note@+2 {{stages = 2: it is about dots}}
// expected-note@+1 {{this would work: #tile.schedule<producer = none}}
tile.kernel @nodot(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[M, 64], f16>) grid(%m = M ceildiv 64)
    schedule #tile.schedule<producer = operands, stages = 2> {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  tile.store %t, %y[%m, %c0] : tensor<64x64xf16>, !tile.view<[M, 64], f16>
}

// -----
// expected-error@+2 {{no schedule of this kernel fits the machine with #tile.schedule<consumers = 2>}}
// expected-note@+1 {{consumers = 2: 256 threads that move 8 neighbours each cannot share 1x64 tiles; 1x2048 would work: what is outside of a view loads as 0 and is not stored}}
tile.kernel @narrow(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[M, 64], f16>) grid(%m = M)
    schedule #tile.schedule<consumers = 2> {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<1x64xf16>
  tile.store %t, %y[%m, %c0] : tensor<1x64xf16>, !tile.view<[M, 64], f16>
}

// -----
tile.kernel @large(%x: !tile.view<[M, 65536], f32>, %y: !tile.view<[M, 65536], f32>) grid(%m = M) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%m, %c0] : !tile.view<[M, 65536], f32> -> tensor<1x65536xf32>
  // expected-error@-3 {{no schedule of this kernel fits the machine}}
  // expected-note@-4 {{consumers = 1: a thread needs 534 registers and can use 241 of its 248}}
  // expected-note@-5 {{consumers = 2: a thread needs 278 registers}}
  // expected-note@-6 {{consumers = 3: 384 threads}}
  // expected-note@-7 {{consumers = 4: a thread needs 150 registers and can use 124 of its 128}}
  tile.store %t, %y[%m, %c0] : tensor<1x65536xf32>, !tile.view<[M, 65536], f32>
}

// -----
tile.kernel @rows(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[64, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 17) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<17x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  // expected-error@+1 {{a dot has a multiple of 64 rows, for wgmma is m64 and each warpgroup computes whole ones, or a multiple of 8 beside a multiple of 64 columns, for its transpose then has them as columns; got 17x64; 64x64 or 24x64 would work}}
  %d = tile.dot %a, %b : tensor<17x64xf16>, tensor<64x64xf16> -> tensor<17x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<17x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// Fewer rows are columns where these are a multiple of 64.
tile.kernel @few(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[64, 48], f16>, %z: !tile.view<[M, 48], f32>) grid(%m = M ceildiv 16) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<16x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 48], f16> -> tensor<64x48xf16>
  // expected-error@+1 {{for its transpose then has them as columns; got 16x48; 64x48 or 16x64 would work}}
  %d = tile.dot %a, %b : tensor<16x64xf16>, tensor<64x48xf16> -> tensor<16x48xf32>
  tile.store %d, %z[%m, %c0] : tensor<16x48xf32>, !tile.view<[M, 48], f32>
}

// -----
// What tile-exchange-axes left as it was.
tile.kernel @left(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[64, 64], f16>, %z: !tile.view<[M], f32>) grid(%m = M ceildiv 16) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<16x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x64xf16>
  // expected-error@+1 {{got 16x64, and something that goes with it has no such form (--remarks says what); 64x64 would work}}
  %d = tile.dot %a, %b : tensor<16x64xf16>, tensor<64x64xf16> -> tensor<16x64xf32>
  %all = tile.reduce_all sum %d : tensor<16x64xf32> -> f32
  tile.store %all, %z[%m] : f32, !tile.view<[M], f32>
}

// -----
tile.kernel @columns(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[64, 3], f16>, %z: !tile.view<[M, 3], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 3], f16> -> tensor<64x3xf16>
  // expected-error@+1 {{a dot has a multiple of 8 columns (wgmma n8 to n256); got 3; 8 would work}}
  %d = tile.dot %a, %b : tensor<64x64xf16>, tensor<64x3xf16> -> tensor<64x3xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x3xf32>, !tile.view<[M, 3], f32>
}

// -----
tile.kernel @depth(%x: !tile.view<[M, 72], f16>, %y: !tile.view<[72, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 72], f16> -> tensor<64x72xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[72, 64], f16> -> tensor<72x64xf16>
  // expected-error@+1 {{a dot of 16-bit elements contracts a multiple of 16 (wgmma k16); got 72; 80 would work}}
  %d = tile.dot %a, %b : tensor<64x72xf16>, tensor<72x64xf16> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
tile.kernel @computed_rows(%x: !tile.view<[M, 32], f16>, %y: !tile.view<[N, 64], f32>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 32], f16> -> tensor<64x32xf16>
  %l = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f32> -> tensor<32x64xf32>
  %l2 = tile.load %y[%m, %c0] : !tile.view<[N, 64], f32> -> tensor<32x64xf32>
  %e = arith.addf %l, %l2 : tensor<32x64xf32>
  %b = arith.truncf %e : tensor<32x64xf32> to tensor<32x64xf16>
  // expected-remark@+3 {{operand b is computed by those who multiply it, and goes through shared memory}}
  // expected-note@-4 {{is the second loaded tile}}
  // expected-error@+1 {{computes operand b in registers, which hold multiples of 64 rows of a tile; got 32x64; 64x64 would work}}
  %d = tile.dot %a, %b : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// No swizzle has rows of 48 bytes, as they are or transposed.
tile.kernel @computed_columns(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[64, 64], f16>, %z: !tile.view<[M, 24], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %l = tile.load %y[%c0, %c0] : !tile.view<[64, 64], f16> -> tensor<64x24xf16>
  %r = tile.load %y[%m, %c0] : !tile.view<[64, 64], f16> -> tensor<64x24xf16>
  %e = arith.addf %l, %r : tensor<64x24xf16>
  // expected-remark@+3 {{operand b is computed by those who multiply it, and goes through shared memory}}
  // expected-note@-3 {{is the second loaded tile}}
  // expected-error@+1 {{computes operand b, which goes through shared memory in rows of a multiple of 32 bytes; got 24 elements of 'f16'; 32 would work}}
  %d = tile.dot %a, %e : tensor<64x64xf16>, tensor<64x24xf16> -> tensor<64x24xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x24xf32>, !tile.view<[M, 24], f32>
}

// -----
tile.kernel @computed_bytes(%x: !tile.view<[M, 64], f8E4M3FN>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f8E4M3FN> -> tensor<64x64xf8E4M3FN>
  %a_t = tile.transpose %a : tensor<64x64xf8E4M3FN> -> tensor<64x64xf8E4M3FN>
  // expected-note@+1 {{is the result of a dot, for which no converter waits}}
  %p = tile.dot %a, %a_t : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
  %b = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf8E4M3FN>
  // expected-remark@+2 {{operand b is computed by those who multiply it, and goes through shared memory}}
  // expected-error@+1 {{computes operand b of 'f8E4M3FN', and computed operands go through shared memory with 16-bit elements alone; round to 16 bits}}
  %d = tile.dot %a, %b : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// Triangles that fill shared memory.
// expected-error@+5 {{no schedule of this kernel fits the machine}}
// expected-note@+4 {{overlap = 2: the kernel has no loop with dots}}
// expected-note@+3 {{it takes 294928 bytes of shared memory (tiles 32768, computed operands 262144, staging of stores 0, mbarriers 16), and a CTA can have 232448}}
// expected-note@+2 {{whatever the schedule, smaller tiles are needed}}
!Wide = tensor<256x256xf32>
tile.kernel @computed_bytes_in_all(%x: !tile.view<[M, 256], bf16>, %z: !tile.view<[M, 256], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 256], bf16> -> tensor<64x256xbf16>
  %i = tile.iota %c0 axis 0 : tensor<256x256xi32>
  %j = tile.iota %c0 axis 1 : tensor<256x256xi32>
  %upper = arith.cmpi sle, %i, %j : tensor<256x256xi32>
  %one = arith.constant dense<1.0> : !Wide
  %zero = arith.constant dense<0.0> : !Wide
  %t = arith.select %upper, %one, %zero : tensor<256x256xi1>, !Wide
  // expected-note@+1 {{is made of numbers, and of no loaded tile}}
  %t16 = arith.truncf %t : !Wide to tensor<256x256xbf16>
  %u = arith.select %upper, %zero, %one : tensor<256x256xi1>, !Wide
  // expected-note@+1 {{is made of numbers, and of no loaded tile}}
  %u16 = arith.truncf %u : !Wide to tensor<256x256xbf16>
  // expected-remark@+2 {{operand b is computed by those who multiply it, and goes through shared memory}}
  // expected-note@+1 {{operand b is computed, and takes 131072 bytes of shared memory for 256x256; 256x128 would take 65536}}
  %d = tile.dot %a, %t16 : tensor<64x256xbf16>, tensor<256x256xbf16> -> tensor<64x256xf32>
  // expected-remark@+2 {{operand b is computed by those who multiply it, and goes through shared memory}}
  // expected-note@+1 {{operand b is computed, and takes 131072 bytes of shared memory for 256x256; 256x128 would take 65536}}
  %e = tile.dot %a, %u16, %d : tensor<64x256xbf16>, tensor<256x256xbf16> -> tensor<64x256xf32>
  // expected-remark@+1 {{operand b is computed by those who multiply it, and goes through shared memory}}
  %f = tile.dot %a, %t16, %e : tensor<64x256xbf16>, tensor<256x256xbf16> -> tensor<64x256xf32>
  tile.store %f, %z[%m, %c0] : tensor<64x256xf32>, !tile.view<[M, 256], f32>
}

// -----
tile.kernel @computed_twice_transposed(%x: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // expected-note@+1 {{is the result of a dot, for which no converter waits}}
  %p = tile.dot %a, %a : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %b = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
  %t = tile.transpose %b : tensor<64x64xf16> -> tensor<64x64xf16>
  // expected-error@+1 {{transposes what is transposed; use the tile as it is computed}}
  %u = tile.transpose %t : tensor<64x64xf16> -> tensor<64x64xf16>
  // expected-remark@+1 {{operand b is computed by those who multiply it, and goes through shared memory}}
  %d = tile.dot %a, %u : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
tile.kernel @transposed_a(%x: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %b = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %a = arith.addf %b, %b : tensor<64x64xf16>
  %once = tile.transpose %a : tensor<64x64xf16> -> tensor<64x64xf16>
  // expected-error@+1 {{transposes what is transposed; use the tile as it is computed}}
  %at = tile.transpose %once : tensor<64x64xf16> -> tensor<64x64xf16>
  %d = tile.dot %at, %b : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// expected-error@+7 {{no schedule of this kernel fits the machine}}
// expected-note@+6 {{overlap = 2: the kernel has no loop with dots}}
// expected-note@+5 {{producer = operands, overlap = 1, consumers = 2: a consumer thread needs}}
// expected-note@+4 {{producer = operands, overlap = 1, consumers = 1: a consumer thread needs}}
// expected-note@+3 {{producer = none, overlap = 1, consumers = 2: a consumer thread needs}}
// expected-note@+2 {{producer = none, overlap = 1, consumers = 1: a consumer thread needs}}
// expected-note@+1 {{whatever the schedule, smaller tiles are needed}}
tile.kernel @wide(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[64, 1024], f16>, %z: !tile.view<[M, 1024], f32>) grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[64, 1024], f16> -> tensor<64x1024xf16>
  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x1024xf16> -> tensor<128x1024xf32>
  tile.store %d, %z[%m, %c0] : tensor<128x1024xf32>, !tile.view<[M, 1024], f32>
}

// -----
tile.kernel @empty(%x: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<0x64xf16>
  %b = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // expected-error@+1 {{got 0x64; 64x64 or 8x64 would work}}
  %d = tile.dot %a, %b : tensor<0x64xf16>, tensor<64x64xf16> -> tensor<0x64xf32>
  tile.store %d, %z[%m, %c0] : tensor<0x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// Three chunks of columns go to two blocks by rows, in parts of 8.
// expected-error@+2 {{no schedule of this kernel fits the machine}}
// expected-note@+1 {{cluster = 2: no tile is the same for neighbours in the first grid dimension (%x: its place depends on the first grid index; %y: 8 rows in 3 chunks of columns are not divisible into 2 parts of whole chunks or multiples of 8 rows); use cluster = 1}}
tile.kernel @parts(%x: !tile.view<[M, 192], f16>, %y: !tile.view<[8, 192], f16>, %z: !tile.view<[M, 8], f32>) grid(%m = M)
    schedule #tile.schedule<cluster = 2> {
  // expected-note@-2 {{this would work: }}
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 192], f16> -> tensor<64x192xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[8, 192], f16> -> tensor<8x192xf16>
  %t = tile.transpose %b : tensor<8x192xf16> -> tensor<192x8xf16>
  %d = tile.dot %a, %t : tensor<64x192xf16>, tensor<192x8xf16> -> tensor<64x8xf32>
  tile.store %d, %z[%m, %c0] : tensor<64x8xf32>, !tile.view<[M, 8], f32>
}

// -----
// 80 accumulators of 64x160 fit in the 112 registers of a consumer, but not in the 96 of the start.
#s = #tile.schedule<producer = operands, overlap = 1, consumers = 4>
// expected-error@+3 {{no schedule of this kernel fits the machine with #tile.schedule<producer = operands, consumers = 4, overlap = 1>}}
// expected-note@+2 {{ptxas wants 106 registers for the widest dot, and with 5 warpgroups a thread starts with 96}}
// expected-note@+1 {{this would work: #tile.schedule<producer = none, consumers = 4,}}
tile.kernel @wide(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, N], f32>)
    grid(%m = M ceildiv 256, %n = N ceildiv 160) schedule #s {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 256 : index
  %bn = arith.constant 160 : index
  %row = arith.muli %m, %bm : index
  %col = arith.muli %n, %bn : index
  %a = tile.load %x[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<256x64xf16>
  %b = tile.load %y[%col, %c0] : !tile.view<[N, 64], f16> -> tensor<160x64xf16>
  %b_t = tile.transpose %b : tensor<160x64xf16> -> tensor<64x160xf16>
  %d = tile.dot %a, %b_t : tensor<256x64xf16>, tensor<64x160xf16> -> tensor<256x160xf32>
  tile.store %d, %z[%row, %col] : tensor<256x160xf32>, !tile.view<[M, N], f32>
}

// FRAME
tile.kernel @NAME(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<cluster = 2> {
  // expected-note@-2 {{this would work: }}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = tile.dim "N"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %x[%m, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  // HERE
  tile.store %sum, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// CASE backward
// What the blocks of a cluster cannot be made to load alike.
// expected-error@+2 {{no schedule of this kernel fits the machine}}
// expected-note@+1 {{; %y: its place depends on the first grid index; a loop that walks from one place in all tiles would load alike); use cluster = 1}}
  %sum = scf.for %j = %c0 to %m step %c1 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %back = arith.subi %m, %j : index
    %t = tile.load %y[%back, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }

// CASE window
// expected-error@+2 {{no schedule of this kernel fits the machine}}
// expected-note@+1 {{; %y: the number of iterations of the loop around its load depends on the first grid index, and its first iteration does too; a loop that starts alike for all tiles would work); use cluster = 1}}
  %sum = scf.for %j = %m to %n step %c1 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %t = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }

// CASE waves
// expected-error@+2 {{no schedule of this kernel fits the machine}}
// expected-note@+1 {{; %y: the number of iterations of the loop around its load depends on the first grid index, and its upper bound neither only grows nor only falls with it); use cluster = 1}}
  %bound = arith.remui %m, %c8 : index
  %sum = scf.for %j = %c0 to %bound step %c1 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %t = tile.load %y[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }

// CASE chosen
// expected-error@+2 {{no schedule of this kernel fits the machine}}
// expected-note@+1 {{; %y: the number of iterations of the loop around its load depends on the first grid index, and its upper bound takes more than arithmetic); use cluster = 1}}
  %late = arith.cmpi sgt, %m, %c8 : index
  %bound = scf.if %late -> index {
    scf.yield %m : index
  } else {
    scf.yield %c8 : index
  }
  %sum = scf.for %j = %c0 to %bound step %c1 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %t = tile.load %y[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }

// CASE nested
// expected-error@+2 {{no schedule of this kernel fits the machine}}
// expected-note@+1 {{; %y: the number of iterations of the loop around its load depends on the first grid index, and its load is in a nested region of its body); use cluster = 1}}
  %sum = scf.for %j = %c0 to %m step %c1 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %more = arith.cmpi sgt, %n, %j : index
    %r = scf.if %more -> tensor<64x64xf32> {
      %t = tile.load %y[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
      %d = tile.dot %a, %t, %s : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    } else {
      scf.yield %s : tensor<64x64xf32>
    }
    scf.yield %r : tensor<64x64xf32>
  }

// -----
tile.kernel @again(%x: !tile.view<[M, 64], f16>) grid(%m = M ceildiv 64) {
  // expected-error@+1 {{is made by tile-overlap or tile-even-loops for the schedule of its kernel, which cannot be chosen again; start from the program before that pass}}
  %n = tile.common_bound %m loads %m
}

// -----
// The dot is dead code, and gone before this pass.
// expected-error@+1 {{stores nothing, so that nothing of it has to be computed; store a result with tile.store}}
tile.kernel @nothing(%x: !tile.view<[M, 64], f16>) grid(%m = M ceildiv 64) {
}

// -----
// A bulk copy starts at a multiple of 16 bytes.
tile.kernel @constant_column(%a: !tile.view<[M, 128], bf16>, %b: !tile.view<[64, 64], bf16>, %c: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{loads an operand of a dot from column 1; a bulk copy starts at a multiple of 8 elements of 'bf16' (16 bytes): take the column before it that is one, or multiply the index by 8 in the kernel}}
  %at = tile.load %a[%c0, %c1] : !tile.view<[M, 128], bf16> -> tensor<64x64xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 64], bf16> -> tensor<64x64xbf16>
  %d = tile.dot %at, %bt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %d, %c[%c0, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// So does a gathered row.
tile.kernel @row_length(%a: !tile.view<[M, 100], bf16>, %n: !tile.view<[M], i32>, %b: !tile.view<[64, 64], bf16>, %c: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %rows = tile.load %n[%c0] : !tile.view<[M], i32> -> tensor<64xi32>
  // expected-error@+1 {{gathers an operand of a dot from rows of 100 elements of 'bf16', and copies take 16 bytes at a time; rows padded to 104 elements would work, or their length as a dimension of the launch}}
  %at = tile.gather %a[%c0, %c0] rows %rows : !tile.view<[M, 100], bf16>, tensor<64xi32> -> tensor<64x64xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 64], bf16> -> tensor<64x64xbf16>
  %d = tile.dot %at, %bt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %d, %c[%c0, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// A carried column is a multiple where its first value and each step are: that of %k is, that of %b is not.
tile.kernel @carried_column(%a: !tile.view<[M, K], bf16>, %b: !tile.view<[64, K], bf16>, %c: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %d, %k, %l = scf.for %j = %c0 to %c8 step %c1 iter_args(%acc = %zero, %at_k = %c8, %at_l = %c8) -> (tensor<64x64xf32>, index, index) {
    %at = tile.load %a[%c0, %at_k] : !tile.view<[M, K], bf16> -> tensor<64x64xbf16>
    // expected-error@+1 {{loads an operand of a dot from column that is not known to be a multiple of 8}}
    %bt = tile.load %b[%c0, %at_l] : !tile.view<[64, K], bf16> -> tensor<64x64xbf16>
    %next = tile.dot %at, %bt, %acc : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %to_k = arith.addi %at_k, %c64 : index
    %to_l = arith.addi %at_l, %c2 : index
    scf.yield %next, %to_k, %to_l : tensor<64x64xf32>, index, index
  }
  tile.store %d, %c[%c0, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
tile.kernel @runs_of_no_dot(%x: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f16>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  // expected-error@+1 {{comes by bulk copies to shared memory, where dots read it, and feeds none; tile.gather loads rows into registers}}
  %t = tile.gather_runs %x[%c0, %c0] run 16 {
  ^bb0(%i: index):
    tile.yield %i, %c16 : index, index
  } : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  tile.store %t, %z[%m, %c0] : tensor<64x64xf16>, !tile.view<[M, 64], f16>
}

// -----
// Rows in runs that two blocks cannot share: of one run, and in a loop that runs longer in one of them.
// expected-error@+2 {{no schedule of this kernel fits the machine}}
// expected-note@+1 {{cluster = 2: no tile is the same for neighbours in the first grid dimension (%x: its place depends on the first grid index; %y: its 64 rows in runs of 64 are not divisible into 2 parts of whole runs; multiples of 128 rows would be; %w: the number of iterations of the loop around its load depends on the first grid index, and its rows are gathered; a loop that runs as often in all tiles would load alike); use cluster = 1}}
tile.kernel @shared_runs(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[P, 64, 64], f16>, %w: !tile.view<[P, 16, 64], f16>,
                         %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) schedule #tile.schedule<cluster = 2> {
  // expected-note@-2 {{this would work: }}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %row = arith.muli %m, %c64 : index
  %a = tile.load %x[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %b = tile.gather_runs %y[%c0, %c0, %c0] run 64 {
  ^bb0(%i: index):
    tile.yield %i, %c0, %c64 : index, index, index
  } : !tile.view<[P, 64, 64], f16> -> tensor<64x64xf16>
  %first = tile.dot %a, %b : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %all = scf.for %j = %c0 to %m step %c1 iter_args(%sum = %first) -> (tensor<64x64xf32>) {
    %c = tile.gather_runs %w[%j, %c0, %c0] run 16 {
    ^bb0(%i: index):
      tile.yield %i, %c0, %c16 : index, index, index
    } : !tile.view<[P, 16, 64], f16> -> tensor<64x64xf16>
    %next = tile.dot %a, %c, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %all, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// Rows that threads gather are shared in halves, by two blocks.
// expected-error@+2 {{no schedule of this kernel fits the machine}}
// expected-note@+1 {{cluster = 4: no tile is the same for neighbours in the first grid dimension (%x: its place depends on the first grid index; %y: its rows are gathered, in halves that two blocks send each other; use cluster = 2); use cluster = 1}}
tile.kernel @shared_lists(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[P, 64], f16>, %list: !tile.view<[64], i32>,
                          %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) schedule #tile.schedule<cluster = 4> {
  // expected-note@-2 {{this would work: }}
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %a = tile.load %x[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %rows = tile.load %list[%c0] : !tile.view<[64], i32> -> tensor<64xi32>
  %b = tile.gather %y[%c0, %c0] rows %rows : !tile.view<[P, 64], f16>, tensor<64xi32> -> tensor<64x64xf16>
  %d = tile.dot %a, %b : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %d, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// -----
// expected-error@+3 {{no schedule of this kernel fits the machine with #tile.schedule<cluster = 8>}}
// expected-note@+2 {{this would work: #tile.schedule<}}
// expected-note@+1 {{cluster = 8: so many blocks have tiles together, and those of dots are loaded for at most 4; use cluster = 4}}
tile.kernel @many_blocks(%a: !tile.view<[M, 64], bf16>, %b: !tile.view<[N, 64], bf16>, %c: !tile.view<[M, N], f32>)
    grid(%m = M ceildiv 64, %n = N ceildiv 64) schedule #tile.schedule<cluster = 8> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %col = arith.muli %n, %c64 : index
  %x = tile.load %a[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %y = tile.load %b[%col, %c0] : !tile.view<[N, 64], bf16> -> tensor<64x64xbf16>
  %d = tile.dot %x, %y : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %d, %c[%row, %col] : tensor<64x64xf32>, !tile.view<[M, N], f32>
}

// -----
// expected-error@+3 {{no schedule of this kernel fits the machine with #tile.schedule<cluster = 2>}}
// expected-note@+2 {{this would work: #tile.schedule<}}
// expected-note@+1 {{cluster = 2: no dot reads a loaded tile, which neighbours in the first grid dimension could share; use cluster = 1}}
tile.kernel @nothing_loaded(%z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) schedule #tile.schedule<cluster = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  // expected-note@+1 {{is made of numbers, and of no loaded tile}}
  %x = arith.constant dense<1.0> : tensor<64x64xf16>
  // expected-remark@+1 {{operand b is computed by those who multiply it, and goes through shared memory}}
  %d = tile.dot %x, %x : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %d, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
