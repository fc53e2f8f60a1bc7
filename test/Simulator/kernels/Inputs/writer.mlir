// Y = -X through a role that only writes: two warpgroups compute rows into slots of a pipe, and go on while one thread
// stores them. A third role, of one thread, loads what they compute from.
!V = !tile.view<[M, 64], bf16>
!Pipe = !hop.pipe<tensor<128x64xbf16>, 2>
!Slot = !hop.shared<tensor<128x64xbf16>, rows = 128>
!Part = !hop.shared<tensor<64x64xbf16>, rows = 128>
!Tile = tensor<64x64xbf16, #hop.layout<accumulator>>
!Wide = tensor<64x64xf32, #hop.layout<accumulator>>
hop.kernel @negate attributes {argument_names = ["x", "y"], argument_types = [!V, !V], grid = [#tile.grid_dim<1, 1>],
    schedule = #tile.schedule<persistent = none>} {
^bb0(%x: !V, %y: !V, %point: index):
  %results = hop.pipe.create "results" : !Pipe
  hop.role @writer elected registers(24) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %m = tile.dim "M"
    scf.for %row = %c0 to %m step %c128 {
      %slot = hop.pipe.wait %results : !Pipe -> !Slot
      hop.bulk_store %slot, %y[%row, %c0] : !Slot, !V
      hop.pipe.release %results, %slot : !Pipe, !Slot
    }
  }
  hop.role @rows warpgroups(2) registers(240) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %m = tile.dim "M"
    %first = arith.muli %wg, %c64 : index
    scf.for %row = %c0 to %m step %c128 {
      %mine = arith.addi %row, %first : index
      %t = tile.load %x[%mine, %c0] : !V -> !Tile
      %wide = arith.extf %t : !Tile to !Wide
      %negated = arith.negf %wide : !Wide
      %n = arith.truncf %negated : !Wide to !Tile
      %slot = hop.pipe.acquire %results : !Pipe -> !Slot
      %part = hop.slice %slot[%wg] : !Slot -> !Part
      hop.stage %n, %part : !Tile, !Part
      JOIN
      hop.pipe.commit %results, %slot : !Pipe, !Slot
    }
  }
}
