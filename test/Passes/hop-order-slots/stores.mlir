// The slot of a copy is given back behind the next copy of the same pipe, in roles of one thread.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-order-slots))' -split-input-file -verify-diagnostics | FileCheck %s

!S = !tile.view<[M, 96], f32>
!Three = !hop.pipe<tensor<64x32xf32>, 3>
!Shared = !hop.shared<tensor<64x32xf32>, rows = 64>

// CHECK-LABEL: hop.kernel @parts
// CHECK: %[[P:.*]] = hop.pipe.create "p"
// CHECK: %[[A:.*]] = hop.pipe.wait %[[P]]
// CHECK-NEXT: hop.bulk_store %[[A]], %{{.*}} add in_flight 1 :
// CHECK-NEXT: %[[B:.*]] = hop.pipe.wait %[[P]]
// CHECK-NEXT: arith.addi
// CHECK-NEXT: hop.bulk_store %[[B]], %{{.*}} add in_flight 1 :
// CHECK-NEXT: hop.pipe.release %[[P]], %[[A]]
// CHECK-NEXT: %[[C:.*]] = hop.pipe.wait %[[P]]
// CHECK-NEXT: hop.bulk_store %[[C]], %{{.*}} add in_flight 1 :
// CHECK-NEXT: hop.pipe.release %[[P]], %[[B]]
// CHECK-NEXT: hop.bulk_read_wait
// CHECK-NEXT: hop.pipe.release %[[P]], %[[C]]
// CHECK-NEXT: hop.bulk_store_wait
hop.kernel @parts attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %p = hop.pipe.create "p" : !Three
  hop.role @writer elected {
  ^bb0(%wg: index):
    %a = hop.pipe.wait %p : !Three -> !Shared
    hop.bulk_store %a, %s[%m, %c0] add : !Shared, !S
    // expected-remark @below {{is given back behind the next copy, which begins while this one reads the slot}}
    hop.pipe.release %p, %a : !Three, !Shared
    %b = hop.pipe.wait %p : !Three -> !Shared
    %column = arith.addi %c0, %c32 : index
    // expected-note @below {{the next copy}}
    hop.bulk_store %b, %s[%m, %column] add : !Shared, !S
    // expected-remark @below {{is given back behind the next copy, which begins while this one reads the slot}}
    hop.pipe.release %p, %b : !Three, !Shared
    %c = hop.pipe.wait %p : !Three -> !Shared
    // expected-note @below {{the next copy}}
    hop.bulk_store %c, %s[%m, %c64] add : !Shared, !S
    hop.pipe.release %p, %c : !Three, !Shared
    hop.bulk_store_wait
  }
}

// -----

!S = !tile.view<[M, 96], f32>
!Three = !hop.pipe<tensor<64x32xf32>, 3>
!Two = !hop.pipe<tensor<64x32xf32>, 2>
!Shared = !hop.shared<tensor<64x32xf32>, rows = 64>

// Of two slots none would be left for who fills them. And who fills several pipes may need a slot of the one before
// it comes to that of the other, and who waits for a ticket may do so for long.
// CHECK-LABEL: hop.kernel @kept
// CHECK-NOT: in_flight
hop.kernel @kept attributes {argument_names = ["s"], argument_types = [!S], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%s: !S, %m: index):
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %two = hop.pipe.create "two" : !Two
  %p = hop.pipe.create "p" : !Three
  %q = hop.pipe.create "q" : !Three
  hop.role @writer elected {
  ^bb0(%wg: index):
    %a = hop.pipe.wait %two : !Two -> !Shared
    hop.bulk_store %a, %s[%m, %c0] add : !Shared, !S
    hop.pipe.release %two, %a : !Two, !Shared
    %b = hop.pipe.wait %two : !Two -> !Shared
    hop.bulk_store %b, %s[%m, %c32] add : !Shared, !S
    hop.pipe.release %two, %b : !Two, !Shared
    %c = hop.pipe.wait %p : !Three -> !Shared
    hop.bulk_store %c, %s[%m, %c64] add : !Shared, !S
    hop.pipe.release %p, %c : !Three, !Shared
    %d = hop.pipe.wait %q : !Three -> !Shared
    hop.bulk_store %d, %s[%m, %c0] add : !Shared, !S
    hop.pipe.release %q, %d : !Three, !Shared
    %e = hop.pipe.wait %q : !Three -> !Shared
    hop.ticket.wait %s[%m] tile [64, 96] is %c0 : !S
    hop.bulk_store %e, %s[%m, %c32] add : !Shared, !S
    hop.pipe.release %q, %e : !Three, !Shared
  }
}
