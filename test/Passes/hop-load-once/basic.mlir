// A tile that is the same for all tiles of the grid is loaded before the loop over them, by a producer or by one thread of
// those that compute. Others stay in the loop, and a remark says why.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-load-once))' -verify-diagnostics | FileCheck %s

!R = !tile.view<[64, 64], bf16>
!X = !tile.view<[M, 64], bf16>
!Pipe = !hop.pipe<tensor<64x64xbf16>, 1>
!Two = !hop.pipe<tensor<64x64xbf16>, 2>
!Shared = !hop.shared<tensor<64x64xbf16>, rows = 64>

// CHECK-LABEL: hop.kernel @roles
hop.kernel @roles attributes {argument_names = ["r", "x"], argument_types = [!R, !X], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%r: !R, %x: !X, %m: index):
  %pr = hop.pipe.create "r" : !Pipe
  %px = hop.pipe.create "x" : !Two
  // CHECK: hop.role @producer
  // CHECK: %[[C0:.*]] = arith.constant 0
  // CHECK: hop.pipe.load %[[PR:[^,]*]], %{{.*}}[%[[C0]], %[[C0]]]
  // CHECK: scf.while
  // CHECK: hop.pipe.load %[[PX:[^,]*]]
  hop.role @producer elected {
  ^bb0(%wg: index):
    %first = hop.block_index
    %n = tile.dim "M"
    scf.while (%i = %first) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      %c0 = arith.constant 0 : index
      hop.pipe.load %px, %x[%i, %c0] : !Two, !X
      // expected-remark@+1 {{is loaded once for all tiles of a thread block}}
      hop.pipe.load %pr, %r[%c0, %c0] : !Pipe, !R
      %step = hop.block_count
      %next = arith.addi %i, %step : index
      scf.yield %next : index
    }
  }
  // CHECK: hop.role @consumer
  // CHECK: %[[R:.*]] = hop.pipe.wait %[[PR]]
  // CHECK: scf.while
  // CHECK: %[[X:.*]] = hop.pipe.wait %[[PX]]
  // CHECK: hop.mma %[[X]], %[[R]]
  // CHECK: hop.pipe.release %[[PX]], %[[X]]
  // CHECK: }
  // CHECK: hop.pipe.release %[[PR]], %[[R]]
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %first = hop.block_index
    %n = tile.dim "M"
    scf.while (%i = %first) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      %xt = hop.pipe.wait %px : !Two -> !Shared
      %rt = hop.pipe.wait %pr : !Pipe -> !Shared
      %d = hop.mma %xt, %rt : !Shared, !Shared -> tensor<64x64xf32>
      hop.pipe.release %pr, %rt : !Pipe, !Shared
      hop.pipe.release %px, %xt : !Two, !Shared
      %step = hop.block_count
      %next = arith.addi %i, %step : index
      scf.yield %next : index
    }
  }
}

// CHECK-LABEL: hop.kernel @one_role
hop.kernel @one_role attributes {argument_names = ["r", "x"], argument_types = [!R, !X], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%r: !R, %x: !X, %m: index):
  %pr = hop.pipe.create "r" : !Pipe
  // CHECK: %[[ELECTED:.*]] = hop.elected
  // CHECK: scf.if %[[ELECTED]] {
  // CHECK-NEXT: hop.pipe.load
  // CHECK: hop.pipe.wait
  // CHECK: scf.while
  // CHECK-NOT: hop.pipe
  // CHECK: scf.yield
  // CHECK: hop.pipe.release
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %first = hop.block_index
    %n = tile.dim "M"
    scf.while (%i = %first) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      %c0 = arith.constant 0 : index
      %elected = hop.elected %wg
      scf.if %elected {
        // expected-remark@+1 {{is loaded once for all tiles of a thread block}}
        hop.pipe.load %pr, %r[%c0, %c0] : !Pipe, !R
      }
      %rt = hop.pipe.wait %pr : !Pipe -> !Shared
      hop.pipe.release %pr, %rt : !Pipe, !Shared
      %step = hop.block_count
      %next = arith.addi %i, %step : index
      scf.yield %next : index
    }
  }
}

// What the kernel stores, what comes through a pipe with others, and what is read under a condition only.
// CHECK-LABEL: hop.kernel @kept_in_the_loop
// CHECK: scf.while
// CHECK-COUNT-4: hop.pipe.load
hop.kernel @kept_in_the_loop attributes {argument_names = ["r", "s", "x", "y"], argument_types = [!R, !R, !R, !tile.view<[64, 64], f32>], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%r: !R, %s: !R, %x: !R, %y: !tile.view<[64, 64], f32>, %m: index):
  %stored = hop.pipe.create "stored" : !Pipe
  %shared = hop.pipe.create "shared" : !Pipe
  %sometimes = hop.pipe.create "sometimes" : !Pipe
  hop.role @producer elected {
  ^bb0(%wg: index):
    %first = hop.block_index
    %n = tile.dim "M"
    scf.while (%i = %first) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      %c0 = arith.constant 0 : index
      // expected-remark@+1 {{is the same for all tiles, and loaded for each: the kernel stores to its view}}
      hop.pipe.load %stored, %r[%c0, %c0] : !Pipe, !R
      // expected-remark@+1 {{is the same for all tiles, and loaded for each: other tiles come through its pipe}}
      hop.pipe.load %shared, %s[%c0, %c0] : !Pipe, !R
      hop.pipe.load %shared, %s[%i, %c0] : !Pipe, !R
      // expected-remark@+1 {{is the same for all tiles, and loaded for each: it is not read in each turn of the loop over tiles}}
      hop.pipe.load %sometimes, %x[%c0, %c0] : !Pipe, !R
      %step = hop.block_count
      %next = arith.addi %i, %step : index
      scf.yield %next : index
    }
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %first = hop.block_index
    %n = tile.dim "M"
    %c0 = arith.constant 0 : index
    scf.while (%i = %first) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      %a = hop.pipe.wait %stored : !Pipe -> !Shared
      hop.pipe.release %stored, %a : !Pipe, !Shared
      %b = hop.pipe.wait %shared : !Pipe -> !Shared
      hop.pipe.release %shared, %b : !Pipe, !Shared
      %c = hop.pipe.wait %shared : !Pipe -> !Shared
      hop.pipe.release %shared, %c : !Pipe, !Shared
      %is_first = arith.cmpi eq, %i, %c0 : index
      scf.if %is_first {
        %d = hop.pipe.wait %sometimes : !Pipe -> !Shared
        hop.pipe.release %sometimes, %d : !Pipe, !Shared
      }
      %tile = arith.constant dense<0.0> : tensor<64x64xbf16>
      tile.store %tile, %r[%c0, %c0] : tensor<64x64xbf16>, !R
      %step = hop.block_count
      %next = arith.addi %i, %step : index
      scf.yield %next : index
    }
  }
}
