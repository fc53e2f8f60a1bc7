// What the verifiers of the dialect refuse of pipes and slots.
// RUN: %cases %s | tessera-opt -allow-unregistered-dialect -split-input-file -verify-diagnostics

// expected-error@+1 {{expects parent op 'hop.kernel'}}
%p = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>

// FRAME
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  // HERE
}

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes the index of the warpgroup, the argument of the role around it}}
    hop.turn.start %m
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes the index of the warpgroup, the argument of the role around it}}
    hop.turn.wait %m
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes the index of the warpgroup, the argument of the role around it}}
    hop.turn.pass %m
  }

// CASE
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes the index of the warpgroup, the argument of the role around it}}
    %e = hop.elected %m
  }

// CASE
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c = arith.constant true
    %v = arith.select %c, %x, %x : !tile.view<[M, 64], bf16>
    // expected-error@+1 {{takes its view straight from the kernel's arguments}}
    hop.pipe.load %kp, %v[%m, %m] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
  }

// CASE
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes a view of rank 2 or more and one index per dimension of it; got 1 for}}
    hop.pipe.load %kp, %x[%m] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
  }

// CASE
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes a view of rank 2 or more and one index per dimension of it; got 1 for}}
    hop.pipe.load %kp, %y[%m] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[N], f32>
  }

// CASE
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xf16>, 1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    // expected-error@+1 {{copies 'tensor<64x64xf16>' from or to a view of 'bf16'}}
    hop.pipe.load %kp, %x[%m, %m] : !hop.pipe<tensor<64x64xf16>, 1>, !tile.view<[M, 64], bf16>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{copies 'tensor<64x64xf16>' from or to a view of 'bf16'}}
    hop.bulk_store %st, %x[%m, %m] : !hop.shared<tensor<64x64xf16>, rows = 64>, !tile.view<[M, 64], bf16>
  }

// CASE
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  %b = hop.barriers "b" count 1 : !hop.barriers<1>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c = arith.constant 0 : i32
    // expected-error@+1 {{takes a view of rank 2 or more and one index per dimension of it; got 3 for}}
    hop.bulk_load %x[%m, %m, %m], %st, %b[%c] : !tile.view<[M, 64], bf16>, !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.barriers<1>
  }

// CASE
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{gives the tile of a slot, '!hop.shared<tensor<64x64xbf16>, rows = 64>', got}}
    %t = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<32x64xbf16>, rows = 64>
  }

// CASE
  %b = hop.buffer "b" : !hop.buffer<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c = arith.constant 0 : i32
    // expected-error@+1 {{gives the tile of a slot, '!hop.shared<tensor<64x64xbf16>, rows = 64>', got}}
    %t = hop.slot %b[%c] : !hop.buffer<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
  }

// CASE
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes the result of a hop.pipe.wait on the same pipe}}
    hop.pipe.release %kp, %st : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }

// CASE
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %lp = hop.pipe.create "l" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{takes the result of a hop.pipe.wait on the same pipe}}
    hop.pipe.release %lp, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }

// CASE
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-note@+1 {{the product}}
    %f = hop.mma_issue %t, %t : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    // expected-error@+1 {{gives a slot away that a product in flight reads; wait for it first}}
    hop.pipe.release %kp, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %d = hop.mma_wait %f pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }

// CASE
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{gives the tile of a slot, '!hop.shared<tensor<64x64xbf16>, rows = 64>', got}}
    %t = hop.pipe.peek %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<32x64xbf16>, rows = 64>
  }

// CASE
// The step after this one takes the slot and gives it back.
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{is of a slot that a later wait gives back, and is read beyond its block}}
    %t = hop.pipe.peek %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    scf.for %i = %c0 to %m step %c1 {
      // expected-note@+1 {{the use}}
      %d = hop.mma %t, %t : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32, #hop.layout<accumulator>>
    }
  }

// CASE
// The loop carries the product in flight.
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error@+1 {{is of a slot that a later wait gives back, and is read beyond its block}}
    %t = hop.pipe.peek %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-note@+1 {{the use}}
    %f = hop.mma_issue %t, %t : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %g = scf.for %i = %c0 to %m step %c1 iter_args(%old = %f) -> (!hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>) {
      scf.yield %old : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    }
    %d = hop.mma_wait %g pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }

// CASE
  %kp = hop.pipe.create "k" : !hop.pipe<tensor<64x64xbf16>, 2>
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %kp : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %h = hop.slice %t[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-note@+1 {{the product}}
    %f = hop.mma_issue %h, %st : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    %g = hop.mma_issue %st, %st acc(%f : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>) : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>>
    // expected-error@+1 {{gives a slot away that a product in flight reads; wait for it first}}
    hop.pipe.release %kp, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %d = hop.mma_wait %g pending 0 : !hop.flight<tensor<64x64xf32, #hop.layout<accumulator>>> -> tensor<64x64xf32, #hop.layout<accumulator>>
  }

// -----
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 96], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 96], bf16>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x96xbf16, #tile.wide>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{takes parts in the chunks of 'tensor<64x96xbf16, #tile.wide>'}}
    %h = hop.slice %st[%wg] : !hop.shared<tensor<64x96xbf16, #tile.wide>, rows = 64> -> !hop.shared<tensor<32x96xbf16>, rows = 64>
  }
}

// -----
hop.kernel @k attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 96], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 96], bf16>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x96xbf16, #tile.wide>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // expected-error@+1 {{stores the columns of a tile alone, and chunks of 'tensor<64x96xbf16, #tile.wide>' may have others}}
    hop.bulk_store %st, %x[%m, %m] : !hop.shared<tensor<64x96xbf16, #tile.wide>, rows = 64>, !tile.view<[M, 96], bf16>
  }
}

// FRAME
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[N], f32>, %m: index):
  %st = hop.staging "o" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    // HERE
  }
}

// CASE
    // expected-error@+1 {{takes equal parts of its source}}
    %h = hop.slice %st[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<24x64xbf16>, rows = 64>

// CASE
    // expected-error@+1 {{takes equal parts of its source}}
    %h = hop.slice %st[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<32x64xbf16>, rows = 32>

// CASE
    // expected-error@+1 {{takes parts of rows or of columns, not of both}}
    %h = hop.slice %st[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<32x32xbf16>, rows = 64>

// CASE
    // expected-error@+1 {{takes rows in multiples of 8, got 4}}
    %h = hop.slice %st[%wg] : !hop.shared<tensor<64x64xbf16>, rows = 64> -> !hop.shared<tensor<4x64xbf16>, rows = 64>
