// Reads that are under way where a loop begins again.
// RUN: %cases %s | tessera-opt --pass-pipeline='builtin.module(hop.kernel(hop-insert-proxy-fences))' | FileCheck %s

// FRAME
hop.kernel @NAME attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %rows1 = hop.buffer "rows1" at 0 : !hop.buffer<tensor<64x64xbf16>, 1>
  %rows2 = hop.buffer "rows2" at 8192 : !hop.buffer<tensor<64x64xbf16>, 1>
  %rows3 = hop.buffer "rows3" at 16384 : !hop.buffer<tensor<64x64xbf16>, 1>
  %full = hop.barriers "full" count 1 : !hop.barriers<1>
  %empty1 = hop.barriers "empty1" count 128 : !hop.barriers<1>
  %empty2 = hop.barriers "empty2" count 128 : !hop.barriers<1>
  %empty3 = hop.barriers "empty3" count 128 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %i = arith.constant 0 : i32
    %s1 = hop.slot %rows1[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s2 = hop.slot %rows2[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s3 = hop.slot %rows3[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.barrier.wait %empty1[%i], %i : !hop.barriers<1>
    hop.bulk_load %x[%m, %c0], %s1, %full[%i] : !tile.view<[M, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<1>
    hop.barrier.wait %empty2[%i], %i : !hop.barriers<1>
    hop.bulk_load %x[%m, %c0], %s2, %full[%i] : !tile.view<[M, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<1>
    hop.barrier.wait %empty3[%i], %i : !hop.barriers<1>
    hop.bulk_load %x[%m, %c0], %s3, %full[%i] : !tile.view<[M, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<1>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i = arith.constant 0 : i32
    %s1 = hop.slot %rows1[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s2 = hop.slot %rows2[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s3 = hop.slot %rows3[%i] : !hop.buffer<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // HERE
  }
}

// CASE round
// A read of the iteration before, here of the first rows, has a fence put before the second arrival. That leaves the read of the
// second rows to the arrival that begins the next iteration.
// CHECK-LABEL: hop.kernel @round
// CHECK: hop.role @consumer
// CHECK: scf.for
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive
    scf.for %j = %c0 to %m step %c1 {
      hop.barrier.arrive %empty2[%i] all : !hop.barriers<1>
      %c = hop.fetch %s3 : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
      hop.barrier.arrive %empty1[%i] all : !hop.barriers<1>
      %b = hop.fetch %s2 : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
      hop.barrier.arrive %empty3[%i] all : !hop.barriers<1>
      %a = hop.fetch %s1 : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
    }

// CASE around_tiles
// What the body of a loop reads comes to its condition.
// CHECK-LABEL: hop.kernel @around_tiles
// CHECK: hop.role @consumer
// CHECK: scf.while
// CHECK-NEXT: hop.proxy_fence
// CHECK-NEXT: hop.barrier.arrive
    %r = scf.while (%j = %c0) : (index) -> index {
      hop.barrier.arrive %empty1[%i] all : !hop.barriers<1>
      %more = arith.cmpi ult, %j, %m : index
      scf.condition(%more) %j : index
    } do {
    ^bb0(%j: index):
      %a = hop.fetch %s1 : !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xbf16, #hop.layout<accumulator>>
      %n = arith.addi %j, %c1 : index
      scf.yield %n : index
    }
