// A load of runs is a loop over them, which finds the next one while a run is copied: whole, row by row where it ends early, or from
// before the view where none of it is there. The first one is found before the wait.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-insert-mbarriers))' | FileCheck %s

!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @k attributes {argument_names = ["x", "t"], argument_types = [!tile.view<[P, 16, 64], bf16>, !tile.view<[N], i32>],
    grid = [#tile.grid_dim<"N", 4>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[P, 16, 64], bf16>, %t: !tile.view<[N], i32>, %m: index):
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %p = hop.pipe.create "p" : !R
  // CHECK: hop.role @producer
  hop.role @producer elected {
  ^bb0(%wg: index):
    // CHECK: tile.load %{{.*}}[%{{.*}}] : !tile.view<[N], i32> -> i32
    // CHECK: hop.barrier.wait
    // CHECK: hop.barrier.expect %{{.*}} bytes 8192
    // CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[PAGE:.*]] = %{{.*}}, %[[ROW:.*]] = %{{.*}}, %[[COUNT:.*]] = %{{.*}}) -> (index, index, index)
    // CHECK:   tile.load %{{.*}}[%{{.*}}] : !tile.view<[N], i32> -> i32
    // CHECK:   %[[WHOLE:.*]] = arith.cmpi sge, %[[COUNT]], %{{.*}} : index
    // CHECK:   %[[NONE:.*]] = arith.cmpi sle, %[[COUNT]], %{{.*}} : index
    // CHECK:   scf.if
    // CHECK:     arith.select %[[WHOLE]], %{{.*}}, %c-16{{.*}} : index
    // CHECK:     hop.bulk_load %{{.*}} rows 16 row %{{.*}} :
    // CHECK:   } else {
    // CHECK:     scf.for %[[R:.*]] =
    // CHECK:       %[[THERE:.*]] = arith.cmpi slt, %[[R]], %[[COUNT]] : index
    // CHECK:       arith.select %[[THERE]], %{{.*}}, %c-1{{.*}} : index
    // CHECK:       hop.bulk_load %{{.*}} rows 1 row %{{.*}} :
    // CHECK:   scf.yield
    hop.pipe.load %p, %x[%c0, %c0, %c0] run 16 with (%m : index) {
    ^bb0(%i: index, %own: index):
      %first = arith.muli %own, %c4 : index
      %number = arith.addi %first, %i : index
      %entry = tile.load %t[%number] : !tile.view<[N], i32> -> i32
      %page = arith.index_cast %entry : i32 to index
      hop.yield %page, %c0, %c9 : index, index, index
    } : !R, !tile.view<[P, 16, 64], bf16>
  }
  hop.role @reads warpgroups(1) {
  ^bb0(%wg: index):
    %s = hop.pipe.wait %p : !R -> !T
    hop.pipe.release %p, %s : !R, !T
  }
}
