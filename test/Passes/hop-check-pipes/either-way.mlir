// A conditional that one role alone has may stand around uses of a pipe that are the same on either way; where they are not, it may not.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-check-pipes))' --split-input-file --verify-diagnostics

!N = !hop.pipe<tensor<1xi32>, 2>
hop.kernel @either_way attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %more = arith.cmpi slt, %c0, %m : index
  %n = hop.pipe.create "n" : !N
  hop.role @producer elected {
  ^bb0(%wg: index):
    %number = arith.index_cast %m : index to i32
    hop.pipe.put %n, %number : !N
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %got = scf.if %more -> i32 {
      %a = hop.pipe.get %n : !N
      scf.yield %a : i32
    } else {
      %b = hop.pipe.get %n : !N
      scf.yield %b : i32
    }
  }
}

// -----

!N = !hop.pipe<tensor<1xi32>, 2>
hop.kernel @one_way attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %more = arith.cmpi slt, %c0, %m : index
  %n = hop.pipe.create "n" : !N
  hop.role @producer elected {
  ^bb0(%wg: index):
    %number = arith.index_cast %m : index to i32
    hop.pipe.put %n, %number : !N
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{stands around uses of 'n', and @producer has no such operation around its own; roles that are joined run the same loops and conditionals}}
    %got = scf.if %more -> i32 {
      %a = hop.pipe.get %n : !N
      %b = hop.pipe.get %n : !N
      scf.yield %b : i32
    } else {
      %b = hop.pipe.get %n : !N
      scf.yield %b : i32
    }
  }
}

// -----

// What one thread of a role does for all of them is what the role does on that way.
!X = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @of_one_thread attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  %more = arith.cmpi slt, %c0, %m : index
  %p = hop.pipe.create "x" : !X
  hop.role @producer warpgroups(1) registers(48) {
  ^bb0(%wg: index):
    scf.if %more {
    } else {
      %is_first = hop.elected %wg
      scf.if %is_first {
        hop.pipe.load %p, %x[%m, %c0] : !X, !tile.view<[M, 64], bf16>
      }
    }
  }
  hop.role @consumer warpgroups(1) registers(240) {
  ^bb0(%wg: index):
    scf.if %more {
    } else {
      %t = hop.pipe.wait %p : !X -> !hop.shared<tensor<64x64xbf16>, rows = 64>
      hop.pipe.release %p, %t : !X, !hop.shared<tensor<64x64xbf16>, rows = 64>
    }
  }
}
