// Roles that decide so often without a tile of each other that no proof is found.
//
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-check-pipes))' -verify-diagnostics

!V = !tile.view<[M, 64], bf16>
!T = !hop.shared<tensor<64x64xbf16>, rows = 64>
!R1 = !hop.pipe<tensor<64x64xbf16>, 1>
!R17 = !hop.pipe<tensor<64x64xbf16>, 17>
// The producer decides 17 times before the consumer may follow: 2^17 ways.
// expected-error@+1 {{has roles that decide too often without a tile of each other for a proof that they go on; load and read within fewer conditionals}}
hop.kernel @many_ways attributes {argument_names = ["x"], argument_types = [!V],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !V, %m: index):
  %c0 = arith.constant 0 : index
  %more = arith.cmpi slt, %c0, %m : index
  %a = hop.pipe.create "a" : !R17
  %b = hop.pipe.create "b" : !R1
  hop.role @producer elected {
  ^bb0(%wg: index):
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    scf.if %more { hop.pipe.load %a, %x[%m, %c0] : !R17, !V }
    hop.pipe.load %b, %x[%m, %c0] : !R1, !V
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %last = hop.pipe.wait %b : !R1 -> !T
    hop.pipe.release %b, %last : !R1, !T
    scf.if %more {
      %t0 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t0 : !R17, !T
    }
    scf.if %more {
      %t1 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t1 : !R17, !T
    }
    scf.if %more {
      %t2 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t2 : !R17, !T
    }
    scf.if %more {
      %t3 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t3 : !R17, !T
    }
    scf.if %more {
      %t4 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t4 : !R17, !T
    }
    scf.if %more {
      %t5 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t5 : !R17, !T
    }
    scf.if %more {
      %t6 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t6 : !R17, !T
    }
    scf.if %more {
      %t7 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t7 : !R17, !T
    }
    scf.if %more {
      %t8 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t8 : !R17, !T
    }
    scf.if %more {
      %t9 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t9 : !R17, !T
    }
    scf.if %more {
      %t10 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t10 : !R17, !T
    }
    scf.if %more {
      %t11 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t11 : !R17, !T
    }
    scf.if %more {
      %t12 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t12 : !R17, !T
    }
    scf.if %more {
      %t13 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t13 : !R17, !T
    }
    scf.if %more {
      %t14 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t14 : !R17, !T
    }
    scf.if %more {
      %t15 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t15 : !R17, !T
    }
    scf.if %more {
      %t16 = hop.pipe.wait %a : !R17 -> !T
      hop.pipe.release %a, %t16 : !R17, !T
    }
  }
}
