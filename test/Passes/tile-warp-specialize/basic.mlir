// Roles and pipes of a kernel with two dependent dots, of a matrix product, and of loads that share a view.
//
// RUN: tessera-opt %S/../Inputs/small.mlir --tile-override-schedule=schedule=persistent=none,outer_stages=1,overlap=1,stages=3 --tile-choose-schedule --tile-warp-specialize --canonicalize --cse | FileCheck %s
// RUN: tessera-opt %S/../Inputs/small.mlir --tile-override-schedule=schedule=persistent=none,outer_stages=1,overlap=1,consumers=1,stages=1 --tile-choose-schedule --tile-warp-specialize --canonicalize --cse \
// RUN:   | FileCheck %s --check-prefix=ONE
// RUN: tessera-opt %S/../Inputs/small.mlir --tile-override-schedule=schedule=persistent=none,outer_stages=1,overlap=1,producer=none --tile-choose-schedule --tile-warp-specialize --canonicalize --cse \
// RUN:   | FileCheck %s --check-prefix=ALONE
// RUN: tessera-opt %S/../Inputs/small.mlir --tile-override-schedule=schedule=persistent=none,outer_stages=1,overlap=2 --tile-choose-schedule --tile-overlap --canonicalize --cse --tile-warp-specialize \
// RUN:   --canonicalize --cse | FileCheck %s --check-prefix=OVERLAP
// RUN: tessera-opt %S/../Inputs/gemm.mlir --tile-override-schedule=schedule=persistent=none,outer_stages=1 --tile-choose-schedule --tile-warp-specialize --canonicalize --cse | FileCheck %s --check-prefix=GEMM
// RUN: tessera-opt %S/../Inputs/causal.mlir --canonicalize --tile-override-schedule=schedule=persistent=none,outer_stages=1 --tile-choose-schedule --tile-overlap --tile-split-loops --canonicalize --cse \
// RUN:   --tile-warp-specialize | FileCheck %s --check-prefix=CAUSAL
// RUN: tessera-opt %S/../Inputs/causal.mlir --canonicalize --tile-override-schedule=schedule=persistent=none,outer_stages=1,overlap=1,cluster=2 --tile-choose-schedule --tile-even-loops \
// RUN:   --tile-warp-specialize --canonicalize --cse | FileCheck %s --check-prefix=EVEN
// RUN: tessera-opt %s --tile-override-schedule=schedule=persistent=none,outer_stages=1 --tile-choose-schedule --tile-warp-specialize --canonicalize --cse | FileCheck %s --check-prefix=VIEWS

// The tile outside the loop has one slot, those inside have a slot per stage.
// CHECK: %[[Q:.*]] = hop.pipe.create "q" : !hop.pipe<tensor<128x64xbf16>, 1>
// CHECK: %[[K:.*]] = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 3>
// CHECK: %[[V:.*]] = hop.pipe.create "v" : !hop.pipe<tensor<64x64xbf16>, 3>
// The producer keeps the loads and their loop, and nothing that is a tile.
// CHECK: hop.role @producer elected registers(24)
// CHECK-NOT: math.exp2
// CHECK: hop.pipe.load %[[Q]]
// CHECK: scf.for %[[J:.*]] = {{.*}} {
// CHECK-NEXT: hop.pipe.load %[[K]], %{{.*}}[%[[J]],
// CHECK-NEXT: hop.pipe.load %[[V]], %{{.*}}[%[[J]],
// CHECK-NEXT: }
// A consumer holds half of the rows; the loaded tile of keys is transposed by the product.
// CHECK: hop.role @consumer warpgroups(2) registers(240)
// CHECK-NEXT: ^bb0(%[[WG:.*]]: index):
// CHECK: %[[QT:.*]] = hop.pipe.wait %[[Q]]
// CHECK: scf.for {{.*}} -> (tensor<64x64xf32>, tensor<64xf32>) {
// CHECK: %[[KT:.*]] = hop.pipe.wait %[[K]]
// CHECK: %[[SHARE:.*]] = hop.slice %[[QT]][%[[WG]]] : {{.*}} -> !hop.shared<tensor<64x64xbf16>, rows = 128>
// CHECK: hop.mma %[[SHARE]], %[[KT]] {transpose_b}
// CHECK-NEXT: hop.pipe.release %[[K]], %[[KT]]
// CHECK: %[[P:.*]] = arith.truncf {{.*}} to tensor<64x64xbf16>
// CHECK: %[[VT:.*]] = hop.pipe.wait %[[V]]
// CHECK: hop.mma %[[P]], %[[VT]] acc(%{{.*}} : tensor<64x64xf32>) : tensor<64x64xbf16>, !hop.shared
// CHECK-NEXT: hop.pipe.release %[[V]], %[[VT]]
// CHECK: scf.yield
// The tile from outside is released after the loop that reads it.
// CHECK: }
// CHECK: hop.pipe.release %[[Q]], %[[QT]]
// Stores go to the consumer's own rows.
// CHECK: %[[OFFSET:.*]] = arith.muli %[[WG]], %c64
// CHECK: %[[MINE:.*]] = arith.addi %{{.*}}, %[[OFFSET]]
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[MINE]], %c0]
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[MINE]]] : tensor<64xf32>

// The producer loads for the block of the cluster whose loop is longest; a consumer runs its own loop and lets the rest
// pass, for which its warps meet so that one thread can release the slot.
// EVEN: %[[K:.*]] = hop.pipe.create "k"
// EVEN: %[[V:.*]] = hop.pipe.create "v"
// EVEN: hop.role @producer
// EVEN-NOT: tile.common_bound
// EVEN: %[[LAST:.*]] = arith.minui
// EVEN: arith.muli %[[LAST]], %c64
// EVEN: %[[ALL:.*]] = arith.ceildivsi
// EVEN: scf.for %{{.*}} = %c0 to %[[ALL]] step %c1 {
// EVEN: hop.pipe.load %[[K]], %{{.*}} alike
// EVEN: hop.pipe.load %[[V]], %{{.*}} alike
// EVEN-NEXT: }
// EVEN: hop.role @consumer
// EVEN-NOT: tile.common_bound
// EVEN: %[[OWN:.*]] = arith.ceildivsi
// EVEN: %[[MOST:.*]] = arith.ceildivsi
// EVEN: scf.for %{{.*}} = %c0 to %[[OWN]] step %c1 iter_args
// EVEN: hop.mma
// EVEN: scf.yield
// EVEN: %[[M:.*]] = arith.maxsi %[[MOST]], %c0
// EVEN: %[[O:.*]] = arith.maxsi %[[OWN]], %c0
// EVEN: %[[REST:.*]] = arith.subi %[[M]], %[[O]]
// EVEN: scf.for %{{.*}} = %c0 to %[[REST]] step %c1 {
// EVEN-NEXT: %[[KT:.*]] = hop.pipe.wait %[[K]]
// EVEN-NEXT: hop.warpgroup_sync
// EVEN-NEXT: hop.pipe.release %[[K]], %[[KT]]
// EVEN-NEXT: %[[VT:.*]] = hop.pipe.wait %[[V]]
// EVEN-NEXT: hop.warpgroup_sync
// EVEN-NEXT: hop.pipe.release %[[V]], %[[VT]]
// EVEN-NEXT: }
// EVEN-NOT: tile.skip_loads

// ONE: hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 1>
// ONE: hop.role @consumer warpgroups(1)
// ONE-NOT: hop.slice
// ONE: hop.mma %{{.*}}, %{{.*}} {transpose_b} : !hop.shared<tensor<128x64xbf16>, rows = 128>, {{.*}} -> tensor<128x64xf32>

// Without a producer one thread loads each tile where it is needed.
// ALONE-NOT: hop.role @producer
// ALONE: hop.role @consumer warpgroups(2) {
// ALONE: %[[E:.*]] = hop.elected
// ALONE: scf.if %[[E]] {
// ALONE-NEXT: hop.pipe.load %[[Q:[^,]+]], %{{.*}}[
// ALONE-NEXT: }
// ALONE-NEXT: hop.pipe.wait %[[Q]]
// ALONE: scf.for
// ALONE: scf.if
// ALONE: hop.pipe.load %[[K:[^,]+]], %{{.*}}[
// ALONE: hop.pipe.wait %[[K]]

// The copies that overlapping makes of a load share its pipe.
// OVERLAP-COUNT-3: hop.pipe.create
// OVERLAP-NOT: hop.pipe.create
// OVERLAP: hop.role @consumer

// GEMM: %[[A:.*]] = hop.pipe.create "a" : !hop.pipe<tensor<128x64xf16>, 4>
// GEMM: %[[B:.*]] = hop.pipe.create "b" : !hop.pipe<tensor<64x256xf16>, 4>
// GEMM: hop.mma %{{.*}}, %{{.*}} acc(%{{.*}} : tensor<64x256xf32>) : !hop.shared<tensor<64x64xf16>, rows = 128>, !hop.shared<tensor<64x256xf16>, rows = 64>
// GEMM-NEXT: hop.pipe.release %[[B]]
// GEMM-NEXT: hop.pipe.release %[[A]]

// Three loads of three views, however many loops the split makes; masks start at the consumer's first row.
// CAUSAL-COUNT-3: hop.pipe.create
// CAUSAL-NOT: hop.pipe.create
// CAUSAL: hop.role @producer
// CAUSAL-NOT: tensor<64x32xi1>
// CAUSAL: hop.role @consumer
// CAUSAL: scf.for
// CAUSAL: scf.for
// CAUSAL: tensor<64x32xi1>

// Two loads of one view have pipes of their own; a bias of the columns is whole in every consumer, one of the rows is divided.
// VIEWS: hop.pipe.create "x" : !hop.pipe<tensor<128x64xf16>, 1>
// VIEWS: hop.pipe.create "x.1" : !hop.pipe<tensor<64x64xf16>, 1>
// VIEWS: hop.role @consumer warpgroups(2)
// VIEWS-NEXT: ^bb0(%[[WG:.*]]: index):
// VIEWS: tile.load %{{.*}}[%c0] : !tile.view<[N], f32> -> tensor<64xf32>
// VIEWS: tile.broadcast %{{.*}} axis 0 : tensor<64xf32> -> tensor<64x64xf32>
// VIEWS: %[[OFFSET:.*]] = arith.muli %[[WG]], %c64
// VIEWS: %[[MINE:.*]] = arith.addi %{{.*}}, %[[OFFSET]]
// VIEWS: tile.load %{{.*}}[%[[MINE]]] : !tile.view<[M], f32> -> tensor<64xf32>
// VIEWS: tile.broadcast %{{.*}} axis 1 : tensor<64xf32> -> tensor<64x64xf32>
// An index tile along the rows starts at the consumer's own.
// VIEWS: tile.iota %[[MINE]] axis 0 : tensor<64x64xi32>
// VIEWS: tile.iota %c0 axis 1 : tensor<64x64xi32>
tile.kernel @views(%x: !tile.view<[M, 64], f16>, %rows: !tile.view<[M], f32>, %columns: !tile.view<[N], f32>,
    %y: !tile.view<[M, 64], f32>) grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %m, %c128 : index
  %a = tile.load %x[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %x[%c0, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %cs = tile.load %columns[%c0] : !tile.view<[N], f32> -> tensor<64xf32>
  %init = tile.broadcast %cs axis 0 : tensor<64xf32> -> tensor<128x64xf32>
  %d = tile.dot %a, %b, %init : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
  %rs = tile.load %rows[%row] : !tile.view<[M], f32> -> tensor<128xf32>
  %rb = tile.broadcast %rs axis 1 : tensor<128xf32> -> tensor<128x64xf32>
  %e = arith.addf %d, %rb : tensor<128x64xf32>
  %i = tile.iota %row axis 0 : tensor<128x64xi32>
  %j = tile.iota %c0 axis 1 : tensor<128x64xi32>
  %lower = arith.cmpi sle, %j, %i : tensor<128x64xi32>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %r = arith.select %lower, %e, %zero : tensor<128x64xi1>, tensor<128x64xf32>
  tile.store %r, %y[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
}
