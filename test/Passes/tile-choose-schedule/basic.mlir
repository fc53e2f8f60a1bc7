// What the model chooses for attention and GEMM, and what it says about the rest.
//
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-choose-schedule | FileCheck %s --check-prefix=ATTENTION
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=overlap=1,stages=1 --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-choose-schedule --tile-overlap --tile-split-loops --tile-override-schedule=schedule=overlap=1,pingpong=false --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=COPIES
// RUN: tessera-opt %S/../Inputs/gemm.mlir --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=GEMM
// RUN: tessera-opt %S/../Inputs/gemm.mlir --tile-override-schedule=schedule=store=tma --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=STAGED
// RUN: tessera-opt %S/../Inputs/gemm.mlir --tile-override-schedule=schedule=producer=none --tile-choose-schedule | FileCheck %s --check-prefix=ONE-ROLE
// RUN: tessera-opt %s --tile-choose-schedule | FileCheck %s
// RUN: tessera-opt %s --tile-choose-schedule --tile-choose-schedule | FileCheck %s

// ATTENTION: schedule #tile.schedule<producer = operands, consumers = 2, stages = 2, outer_stages = 2, overlap = 2, polynomial_exp = 0, pingpong = true, speculate = false, store = direct, persistent = dynamic, order = linear, section = 2, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = rows, transpose = 0, work = tiles>
// ATTENTION: tile.load %{{.*}} pipe 0
// ATTENTION: scf.for
// ATTENTION: tile.load %{{.*}} pipe 1
// ATTENTION: tile.load %{{.*}} pipe 2

// PLAIN: remark: schedule chosen: {{.*}} it takes 160 of 233 registers per consumer thread and 131176 bytes of shared memory (tiles 131072, staging of stores 0, mbarriers 64, numbers of tiles 40) of 232448
// PLAIN: schedule #tile.schedule<producer = operands, consumers = 2, stages = 1, outer_stages = 2, overlap = 1, polynomial_exp = 0, pingpong = true,

// The copies of a load that the rotation and the split make share one pipe.
// COPIES: remark: schedule chosen: {{.*}} and 196744 bytes of shared memory
// COPIES: remark: schedule chosen: {{.*}} it takes 186 of 233 registers per consumer thread and 196744 bytes of shared memory

// A ring for each tile, where they are asked for.
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=stages=[1,2],work=pinned --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=RINGS
// RINGS: remark: schedule chosen: {{.*}}stages = [1, 2],{{.*}} work = pinned{{.*}} and 163960 bytes of shared memory
// RUN: not tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=stages=[1,2,3] --tile-choose-schedule 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: no schedule of this kernel fits the machine with #tile.schedule<stages = [1, 2, 3]>
// MANY: note: this would work: #tile.schedule<{{.*}}stages = 2,
// MANY: note: stages = [1, 2, 3]: the kernel loads 2 tiles in loops, and the list has 3 numbers

// A causal mask makes the loops of neighbours run to different columns, of which the blocks of a cluster load the most.
// RUN: tessera-opt %S/../Inputs/causal.mlir --tile-override-schedule=schedule=cluster=2 --tile-choose-schedule | FileCheck %s --check-prefix=CAUSAL
// RUN: tessera-opt %S/../Inputs/causal.mlir --tile-override-schedule=schedule=cluster=4,overlap=1,stages=1 --tile-choose-schedule | FileCheck %s --check-prefix=CAUSAL
// CAUSAL: schedule #tile.schedule<producer = operands,{{.*}} cluster = {{[24]}},

// The first tiles of a window are short, as nothing is before the sequence: they come last.
// RUN: tessera-opt %S/../Inputs/window.mlir --tile-choose-schedule | FileCheck %s --check-prefix=WINDOW
// WINDOW: persistent = dynamic, order = descending,
// Where it reaches further past a tile than before it, the last ones are.
// RUN: sed '/subi/s/c128/c64/;/past =/s/c64/c128/' %S/../Inputs/window.mlir | tessera-opt --tile-choose-schedule | FileCheck %s --check-prefix=PAST
// RUN: sed '/subi/s/c128/c32/;/past =/s/c64/c128/' %S/../Inputs/window.mlir | tessera-opt --tile-choose-schedule | FileCheck %s --check-prefix=PAST-MORE
// PAST: persistent = dynamic, order = descending,
// PAST-MORE: persistent = dynamic, order = ascending,

// GEMM: remark: schedule rejected: overlap = 2: no dot of the loop reads what was computed from another dot of the same iteration
// GEMM: schedule #tile.schedule<producer = operands, consumers = 2, stages = 4, outer_stages = 1, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = static, order = narrow, section = 2, cluster = 1, producer_registers = 24, consumer_registers = 240, placement = rows, transpose = 0, work = tiles>

// STAGED: remark: schedule rejected: stages = 4, outer_stages = 1, store = tma: it takes 262272 bytes of shared memory (tiles 196608, staging of stores 65536, mbarriers 128), and a CTA can have 232448
// STAGED: schedule #tile.schedule<producer = operands, consumers = 2, stages = 3, {{.*}}store = tma,

// ONE-ROLE: schedule #tile.schedule<producer = none, consumers = 2, {{.*}}consumer_registers = 248, placement = rows, transpose = 0, work = tiles>

// What is written is kept. Three consumers need 160 registers, so the accumulator decides the columns:
// CHECK-LABEL: tile.kernel @three
// CHECK-SAME: schedule #tile.schedule<producer = operands, consumers = 3, stages = 2, outer_stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false, speculate = false, store = direct, persistent = static, order = linear, section = 2, cluster = 1, producer_registers = 32, consumer_registers = 160, placement = rows, transpose = 0, work = pinned>
tile.kernel @three(%a: !tile.view<[M, 64], f16>, %b: !tile.view<[64, N], f16>, %c: !tile.view<[M, N], f32>)
    grid(%i = M ceildiv 192) schedule #tile.schedule<stages = 2, work = pinned> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c192 = arith.constant 192 : index
  %n = tile.dim "N"
  %row = arith.muli %i, %c192 : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<192x64xf16>
  scf.for %x = %c0 to %n step %c128 {
    %bt = tile.load %b[%c0, %x] : !tile.view<[64, N], f16> -> tensor<64x128xf16>
    %d = tile.dot %at, %bt : tensor<192x64xf16>, tensor<64x128xf16> -> tensor<192x128xf32>
    tile.store %d, %c[%row, %x] : tensor<192x128xf32>, !tile.view<[M, N], f32>
  }
}

// No loop: nothing takes more than one slot.
// CHECK-LABEL: tile.kernel @straight
// CHECK-SAME: consumers = 4, stages = 1, outer_stages = 2, overlap = 1, polynomial_exp = 0, pingpong = false
tile.kernel @straight(%a: !tile.view<[M, 64], bf16>, %b: !tile.view<[64, 64], bf16>, %c: !tile.view<[M, 64], bf16>)
    grid(%i = M ceildiv 256) {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %row = arith.muli %i, %c256 : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<256x64xbf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, 64], bf16> -> tensor<64x64xbf16>
  %d = tile.dot %at, %bt : tensor<256x64xbf16>, tensor<64x64xbf16> -> tensor<256x64xf32>
  %r = arith.truncf %d : tensor<256x64xf32> to tensor<256x64xbf16>
  tile.store %r, %c[%row, %c0] : tensor<256x64xbf16>, !tile.view<[M, 64], bf16>
}
