// Which warps run which role, with how many registers, and who meets at which named barrier.
//
// RUN: tessera-opt %s --hop-lower-to-llvm | FileCheck %s

// Roles of one thread have a warp each of the warpgroup where the first of them stands; it gives registers back once. A
// role with more than its share of the launch takes some, one without `registers` keeps it.
// CHECK-LABEL: llvm.func @warps
// CHECK-SAME: nvvm.reqntid = array<i32: 512>
// CHECK-SAME: name = "all of b"
// CHECK-SAME: first_warp = 0 : i64, name = "a 0", warps = 4
// CHECK-SAME: first_warp = 4 : i64, name = "first", warps = 1
// CHECK-SAME: first_warp = 5 : i64, name = "second", warps = 1
// CHECK-SAME: first_warp = 8 : i64, name = "b 0", warps = 4
// CHECK-SAME: first_warp = 12 : i64, name = "b 1", warps = 4
// CHECK-NOT: setmaxnreg
// CHECK: setmaxnreg.dec.sync.aligned.u32 40
// CHECK-NOT: setmaxnreg
// CHECK: %[[C32:.*]] = llvm.mlir.constant(32 : i32)
// CHECK: llvm.icmp "ult" %[[T:.*]], %[[C32]]
// CHECK: elect.sync
// CHECK: %[[C64:.*]] = llvm.mlir.constant(64 : i32)
// CHECK: llvm.icmp "ult" %[[T]], %[[C64]]
// CHECK: elect.sync
// CHECK: setmaxnreg.inc.sync.aligned.u32 168
hop.kernel @warps attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%m: index):
  hop.role @a warpgroups(1) {
  ^bb0(%wg: index):
    hop.warpgroup_sync
  }
  hop.role @first elected registers(40) {
  ^bb0(%wg: index):
  }
  hop.role @b warpgroups(2) registers(168) {
  ^bb0(%wg: index):
    hop.warpgroup_sync
    hop.role_sync
  }
  hop.role @second elected registers(40) {
  ^bb0(%wg: index):
  }
}

// The barriers of a role do not depend on which of them it uses, as long as there are enough.
// CHECK-LABEL: llvm.func @gaps
// CHECK-SAME: {id = 0 : i64, name = "start"}, {id = 2 : i64, name = "warpgroup of a 0"}, {id = 6 : i64, name = "warpgroup of b 0"}, {id = 7 : i64, name = "warpgroup of b 1"}, {id = 8 : i64, name = "all of b"}
hop.kernel @gaps attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%m: index):
  hop.role @a warpgroups(1) {
  ^bb0(%wg: index):
    hop.warpgroup_sync
  }
  hop.role @b warpgroups(2) {
  ^bb0(%wg: index):
    hop.warpgroup_sync
    hop.role_sync
  }
}

// CHECK-LABEL: llvm.func @close
// CHECK-SAME: {id = 0 : i64, name = "start"}, {id = 1 : i64, name = "warpgroup of a 0"}
// CHECK-SAME: {id = 8 : i64, name = "warpgroup of a 7"}, {id = 9 : i64, name = "all of a"}
hop.kernel @close attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%m: index):
  hop.role @a warpgroups(8) {
  ^bb0(%wg: index):
    hop.warpgroup_sync
    hop.role_sync
  }
}

// What a single role asks for comes with the launch, and a multiprocessor has room for 5 blocks of 128 threads with 96.
// CHECK-LABEL: llvm.func @alone
// CHECK-SAME: nvvm.minctasm = 5 : i32
// CHECK-NOT: setmaxnreg
hop.kernel @alone attributes {argument_names = [], argument_types = [], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<persistent = none>, shared_bytes = 0 : i64} {
^bb0(%m: index):
  hop.role @a warpgroups(1) registers(96) {
  ^bb0(%wg: index):
    hop.warpgroup_sync
  }
}
