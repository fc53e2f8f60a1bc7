// The order of a rotated step, what crosses from step to step, and the guard.
//
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-choose-schedule --tile-overlap | FileCheck %s --check-prefix=FULL
// RUN: tessera-opt %S/../Inputs/causal.mlir --tile-choose-schedule --tile-overlap | FileCheck %s --check-prefix=CAUSAL
// RUN: tessera-opt %S/../Inputs/window.mlir --tile-choose-schedule --tile-overlap | FileCheck %s --check-prefix=WINDOW
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=overlap=1 --tile-choose-schedule --tile-overlap | FileCheck %s --check-prefix=OFF
// RUN: tessera-opt %s --tile-overlap 2>&1 | FileCheck %s

// Extents are at least 1, so ceildiv(SK, 128) is too, and no guard is needed.
// FULL: tile.kernel @attention_fwd({{.*}}, %[[KARG:[a-z0-9]+]]: !tile.view<[B, HK, SK, 128], bf16>, %[[VARG:[a-z0-9]+]]: !tile.view<[B, HK, SK, 128], bf16>, %{{.*}}
// FULL-NOT:    scf.if
// FULL:        %[[Q:.*]] = tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[ROW:.*]], %{{.*}}]
// FULL:        %[[N:.*]] = arith.ceildivui
// FULL:        %[[COL0:.*]] = arith.muli
// FULL:        tile.load %[[KARG]][%{{.*}}, %{{.*}}, %[[COL0]], %{{.*}}]
// FULL:        tile.dot %[[Q]],
// FULL:        %[[P0:.*]] = arith.truncf
// FULL:        %[[SECOND:.*]] = arith.addi %{{.*}}, %[[ONE:.*]] : index
// FULL:        %[[LOOP:.*]]:4 = scf.for %[[J:.*]] = %[[SECOND]] to %[[N]] step %[[ONE]] iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}}, %[[P:.*]] = %[[P0]])
// FULL-NEXT:     %[[COL:.*]] = arith.muli %[[J]]
// FULL-NEXT:     %[[K:.*]] = tile.load %[[KARG]][%{{.*}}, %{{.*}}, %[[COL]], %{{.*}}]
// FULL-NEXT:     %[[KT:.*]] = tile.transpose %[[K]]
// FULL-NEXT:     %[[S:.*]] = tile.dot %[[Q]], %[[KT]] :
// FULL-NEXT:     %[[BEFORE:.*]] = arith.subi %[[J]], %[[ONE]]
// FULL-NEXT:     %[[LAST:.*]] = arith.muli %[[BEFORE]]
// FULL-NEXT:     %[[V:.*]] = tile.load %[[VARG]][%{{.*}}, %{{.*}}, %[[LAST]], %{{.*}}]
// FULL-NEXT:     %[[PV:.*]] = tile.dot %[[P]], %[[V]], %[[O]] :
// FULL:          arith.select %{{.*}}, %[[S]],
// FULL:          %[[EXP:.*]] = math.exp2 %{{.*}} : tensor<128x128xf32>
// FULL:          %[[SCALED:.*]] = arith.mulf %[[PV]], %{{.*}} : tensor<128x128xf32>
// FULL-NEXT:     %[[NEXT:.*]] = arith.truncf %[[EXP]]
// FULL-NEXT:     scf.yield %{{.*}}, %{{.*}}, %[[SCALED]], %[[NEXT]]
// FULL:        }
// FULL-NEXT:   %[[END:.*]] = arith.subi %[[N]], %[[ONE]]
// FULL-NEXT:   %[[COLN:.*]] = arith.muli %[[END]]
// FULL-NEXT:   %[[VLAST:.*]] = tile.load %[[VARG]][%{{.*}}, %{{.*}}, %[[COLN]], %{{.*}}]
// FULL-NEXT:   %[[DONE:.*]] = tile.dot %[[LOOP]]#3, %[[VLAST]], %[[LOOP]]#2
// FULL:        arith.divf %[[DONE]],
// FULL:        tile.store %[[LOOP]]#1,

// A causal tile may see no key: the loop may run zero times. Both loads stand first in the source; that of V moves
// to its dot, one step later.
// CAUSAL: tile.kernel @causal({{.*}}, %[[KARG:[a-z0-9]+]]: !tile.view<[H, SK, 64], f16>, %[[VARG:[a-z0-9]+]]: !tile.view<[H, SK, 64], f16>, %{{.*}}
// CAUSAL:        %[[SOME:.*]] = arith.cmpi slt, %[[C0:.*]], %[[N:.*]] : index
// CAUSAL-NEXT:   %[[R:.*]]:3 = scf.if %[[SOME]]
// CAUSAL-NOT:    tile.load %[[VARG]]
// CAUSAL:          scf.for
// CAUSAL:            tile.load %[[KARG]]
// CAUSAL-NEXT:       tile.transpose
// CAUSAL-NEXT:       tile.dot
// CAUSAL:            tile.load %[[VARG]]
// CAUSAL-NEXT:       tile.dot
// CAUSAL:          }
// CAUSAL:          tile.load %[[VARG]]
// CAUSAL-NEXT:     %[[O:.*]] = tile.dot
// CAUSAL-NEXT:     scf.yield %{{.*}}, %{{.*}}, %[[O]]
// CAUSAL:        } else {
// CAUSAL-NEXT:     scf.yield %{{.*}}, %{{.*}}, %{{.*}}

// Without a rescale the accumulator itself goes around, and the index of V is made anew.
// WINDOW: tile.kernel @window({{.*}}, %[[KARG:[a-z0-9]+]]: !tile.view<[S, 64], f16>, %[[VARG:[a-z0-9]+]]: !tile.view<[S, 64], f16>, %{{.*}}
// WINDOW:       scf.if
// WINDOW:         scf.for %[[J:.*]] = %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[W:.*]] = %{{.*}})
// WINDOW:           tile.load %[[KARG]][%[[J]],
// WINDOW:           %[[COL:.*]] = arith.subi %[[J]], %c32
// WINDOW:           tile.load %[[VARG]][%[[COL]],
// WINDOW-NEXT:      %[[NEXT:.*]] = tile.dot %[[W]], %{{.*}}, %[[ACC]]
// WINDOW:           scf.yield %[[NEXT]], %{{.*}}

// OFF:     scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) ->
// OFF-NOT: scf.for

// The running sum %i is read by stage 1 although stage 0 makes it, so it is kept twice: as it is for this
// iteration and as it was for the one before. The second loop has nothing to overlap and stays.
// CHECK-LABEL: tile.kernel @carried
// CHECK:       scf.for %{{.*}} iter_args(%[[I:.*]] = %{{.*}}, %[[OLD:.*]] = %c0, %[[ACC:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}})
// CHECK:         %[[V:.*]] = tile.load %{{.*}}[%[[OLD]],
// CHECK-NEXT:    %[[D:.*]] = tile.dot %[[P]], %[[V]], %[[ACC]]
// CHECK:         %[[NEXT:.*]] = arith.addi %[[I]],
// CHECK:         scf.yield %[[NEXT]], %[[I]], %[[D]], %{{.*}}
// CHECK:       scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}})
// CHECK-NEXT:    tile.load
// CHECK-NEXT:    tile.dot
// CHECK-NEXT:    scf.yield
tile.kernel @carried(%x: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %i0, %sum = scf.for %j = %c0 to %n step %c64 iter_args(%i = %c0, %acc = %zero) -> (index, tensor<64x64xf32>) {
    %k = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %s = tile.dot %q, %k : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = math.absf %s : tensor<64x64xf32>
    %ph = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load %x[%i, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %ph, %v, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %next = arith.addi %i, %c64 : index
    scf.yield %next, %d : index, tensor<64x64xf32>
  }
  %more = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %sum) -> (tensor<64x64xf32>) {
    %k = tile.load %x[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %d = tile.dot %q, %k, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %more, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}

// A chain of three: the second and the third dot, and the work between them, are one stage. A result that the
// stages do not touch passes through.
// CHECK-LABEL: tile.kernel @chain
// CHECK-SAME:    (%[[A:[a-z0-9]+]]: !tile.view<[N, 64], f16>, %[[B:[a-z0-9]+]]: !tile.view<[N, 64], f16>, %[[C:[a-z0-9]+]]: !tile.view<[N, 64], f16>,
// CHECK:       scf.for
// CHECK:         tile.load %[[A]]
// CHECK-NEXT:    tile.dot
// CHECK-NEXT:    arith.subi
// CHECK-NEXT:    tile.load %[[B]]
// CHECK-NEXT:    tile.dot
// CHECK-NEXT:    math.tanh
// CHECK-NEXT:    arith.truncf
// CHECK-NEXT:    tile.load %[[C]]
// CHECK-NEXT:    tile.dot
// CHECK-NEXT:    math.absf
// CHECK-NEXT:    arith.truncf
// CHECK-NEXT:    scf.yield
tile.kernel @chain(%a: !tile.view<[N, 64], f16>, %b: !tile.view<[N, 64], f16>, %c: !tile.view<[N, 64], f16>,
    %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 2> {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %y[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %sum = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %at = tile.load %a[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %bt = tile.load %b[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %ct = tile.load %c[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %s = tile.dot %q, %at : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = math.absf %s : tensor<64x64xf32>
    %ph = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
    %t = tile.dot %ph, %bt : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %u = math.tanh %t : tensor<64x64xf32>
    %uh = arith.truncf %u : tensor<64x64xf32> to tensor<64x64xf16>
    %d = tile.dot %uh, %ct, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
