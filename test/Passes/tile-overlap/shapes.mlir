// Which iteration each part of a step works on, and in which order, for every shape of the pipeline.
//
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=overlap=3 --tile-choose-schedule --tile-overlap --canonicalize | FileCheck %s --check-prefix=THREE
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=overlap=scaled --tile-choose-schedule --tile-overlap --canonicalize | FileCheck %s --check-prefix=BEFORE
// RUN: tessera-opt %S/../Inputs/attention.mlir --tile-override-schedule=schedule=overlap=3 --tile-choose-schedule --tile-overlap --canonicalize --tile-split-loops | FileCheck %s --check-prefix=SPLIT
// RUN: tessera-opt %s --tile-overlap --canonicalize | FileCheck %s

// Algorithm 4: PV of j - 2 and QK of j in flight under the softmax of j - 1. The two products of the prologue's K
// come before the loop; the one block of a short sequence has a program without a loop.
// THREE: tile.kernel @attention_fwd({{.*}}, %[[KARG:[a-z0-9]+]]: !tile.view<[B, HK, SK, 128], bf16>, %[[VARG:[a-z0-9]+]]: !tile.view<[B, HK, SK, 128], bf16>, %{{.*}}
// THREE:        %[[N:.*]] = arith.ceildivui
// THREE:        %[[TWO:.*]] = arith.cmpi sgt, %[[N]], %c1
// THREE-NEXT:   scf.if %[[TWO]]
// THREE:          %[[K0:.*]] = tile.load %[[KARG]][%{{.*}}, %{{.*}}, %c0, %c0]
// THREE:          %[[S0:.*]] = tile.dot
// THREE:          %[[K1:.*]] = tile.load %[[KARG]][%{{.*}}, %{{.*}}, %c128, %c0]
// THREE:          %[[S1:.*]] = tile.dot
// THREE:          arith.select %{{.*}}, %[[S0]],
// THREE-NOT:      tile.load %[[VARG]]
// THREE:          scf.for %[[J:.*]] = %c2 to %[[N]] {{.*}} %[[S:[a-z0-9]+]] = %[[S1]], %[[O:[a-z0-9]+]] = %{{[a-z0-9_]+}}, %[[P:[a-z0-9]+]] = %{{[a-z0-9_]+}}) ->
// THREE:            %[[JV:.*]] = arith.subi %[[J]], %c2
// THREE-NEXT:       %[[VCOL:.*]] = arith.muli %[[JV]], %c128
// THREE-NEXT:       %[[V:.*]] = tile.load %[[VARG]][%{{.*}}, %{{.*}}, %[[VCOL]], %{{.*}}]
// THREE-NEXT:       %[[PV:.*]] = tile.dot %[[P]], %[[V]], %[[O]]
// THREE-NEXT:       %[[KCOL:.*]] = arith.muli %[[J]], %c128
// THREE-NEXT:       tile.load %[[KARG]][%{{.*}}, %{{.*}}, %[[KCOL]], %{{.*}}]
// THREE-NEXT:       tile.transpose
// THREE-NEXT:       %[[NEXT:.*]] = tile.dot
// THREE-NEXT:       %[[JS:.*]] = arith.subi %[[J]], %c1
// THREE-NEXT:       %[[COL:.*]] = arith.muli %[[JS]], %c128
// THREE-NEXT:       tile.iota %[[COL]] axis 1
// THREE:            arith.select %{{.*}}, %[[S]],
// THREE:            math.exp2
// THREE:            %[[SCALED:.*]] = arith.mulf %[[PV]],
// THREE-NEXT:       %[[PN:.*]] = arith.truncf
// THREE-NEXT:       scf.yield %{{.*}}, %{{.*}}, %[[NEXT]], %[[SCALED]], %[[PN]]
// THREE:          tile.load %[[VARG]]
// THREE-NEXT:     tile.dot
// THREE:          math.exp2
// THREE:          tile.load %[[VARG]]
// THREE-NEXT:     tile.dot
// THREE-NOT:      scf.for
// THREE:        } else {
// THREE:          scf.if
// THREE:            tile.load %[[KARG]]
// THREE:            tile.load %[[VARG]]
// THREE-NOT:    scf.for

// Scaled under QK: the factor of a row crosses, not its broadcast.
// BEFORE:      scf.for {{.*}} %[[O:[a-z0-9]+]] = %cst{{[a-z0-9_]*}}, %[[A:[a-z0-9]+]] = %{{[a-z0-9_]+}}, %[[P:[a-z0-9]+]] = %{{[a-z0-9_]+}}) -> (tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>, tensor<128xf32>, tensor<128x128xbf16>)
// BEFORE:        tile.dot
// BEFORE-NEXT:   %[[ALL:.*]] = tile.broadcast %[[A]]
// BEFORE-NEXT:   %[[SCALED:.*]] = arith.mulf %[[O]], %[[ALL]]
// BEFORE:        %[[PV:.*]] = tile.dot %[[P]], %{{.*}}, %[[SCALED]]
// BEFORE:        %[[NEXT:.*]] = arith.truncf
// BEFORE-NEXT:   scf.yield %{{.*}}, %{{.*}}, %[[PV]], %{{.*}}, %[[NEXT]]

// The mask is that of iteration j - 1: the loop without one ends a step later.
// SPLIT:       %[[SHIFTED:.*]] = arith.addi %c128{{.*}}, %{{.*}}
// SPLIT:       arith.floordivsi %[[SHIFTED]], %c128
// SPLIT:       scf.for
// SPLIT-NOT:     arith.select
// SPLIT:         scf.yield
// SPLIT:       scf.for
// SPLIT:         arith.select

// A counter that stage 1 makes from the one of the iteration before, and stage 2 reads, is kept as often as steps lie
// between. What a stage makes of the induction variable is not kept at all.
// CHECK-LABEL: tile.kernel @carried
// CHECK:       scf.for %[[J:.*]] = %c128 to %{{.*}} step %c64 iter_args(%[[I1:.*]] = %c64, %[[I2:.*]] = %c0,
// CHECK:         tile.load %{{.*}}[%[[I2]], %{{.*}}]
// CHECK:         tile.load %{{.*}}[%[[J]], %{{.*}}]
// CHECK:         %[[I0:.*]] = arith.addi %[[I1]], %c64
// CHECK:         scf.yield %[[I0]], %[[I1]],
tile.kernel @carried(%x: !tile.view<[N, 64], f16>, %y: !tile.view<[M, 64], f16>, %z: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 64) schedule #tile.schedule<overlap = 3> {
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
  tile.store %sum, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
}
