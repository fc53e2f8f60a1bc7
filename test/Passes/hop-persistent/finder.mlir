// Where the role that loads waits for what another one makes of a tile's number, the other one takes the numbers, ahead of it.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-persistent))' | FileCheck %s

// CHECK: %[[NUMBERS:.*]] = hop.pipe.create "tiles"
// CHECK: hop.role @producer
// CHECK: scf.while
// CHECK-NOT: hop.next_tile
// CHECK: hop.pipe.load
// CHECK: hop.pipe.get %[[NUMBERS]]
// CHECK-NOT: hop.reset_tiles
// CHECK: hop.role @finder
// CHECK: hop.pipe.put
// CHECK: %[[DRAWN:.*]] = hop.next_tile
// CHECK: %[[SENT:.*]] = arith.index_cast %[[DRAWN]]
// CHECK: hop.pipe.put %[[NUMBERS]], %[[SENT]]
// CHECK-NEXT: scf.yield %[[DRAWN]]
// CHECK: hop.reset_tiles
// CHECK: hop.role @consumer
// CHECK: hop.pipe.get %[[NUMBERS]]
!X = !tile.view<[M, 64], bf16>
!Pipe = !hop.pipe<tensor<64x64xbf16>, 2>
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!X], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<persistent = dynamic, order = linear, section = 2>} {
^bb0(%x: !X, %m: index):
  %bounds = hop.pipe.create "bounds" : !hop.pipe<tensor<1xi32>, 2>
  %xp = hop.pipe.create "x" : !Pipe
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %bound = hop.pipe.get %bounds : !hop.pipe<tensor<1xi32>, 2>
    %row = arith.index_cast %bound : i32 to index
    hop.pipe.load %xp, %x[%row, %c0] : !Pipe, !X
  }
  hop.role @finder elected {
  ^bb0(%wg: index):
    %number = arith.index_cast %m : index to i32
    hop.pipe.put %bounds, %number : !hop.pipe<tensor<1xi32>, 2>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %bound = hop.pipe.get %bounds : !hop.pipe<tensor<1xi32>, 2>
    %t = hop.pipe.wait %xp : !Pipe -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %xp, %t : !Pipe, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}
