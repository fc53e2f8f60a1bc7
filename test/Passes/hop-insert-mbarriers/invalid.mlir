// Places at which slots cannot be counted.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(hop.kernel(hop-insert-mbarriers))'

hop.kernel @attempt attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.attempt {
      // expected-error@+1 {{is part of a hop.attempt; run hop-retry first}}
      hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
    } exact {
      hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
    }
  }
}

// -----

hop.kernel @condition attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<1xi32>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    scf.while : () -> () {
      // expected-error@+1 {{stands where slots cannot be counted: in the condition of scf.while; move it into a role, a scf.for, a scf.if or the body of a scf.while}}
      %v = hop.pipe.get %p : !hop.pipe<tensor<1xi32>, 2>
      %c0 = arith.constant 0 : i32
      %more = arith.cmpi ne, %v, %c0 : i32
      scf.condition(%more)
    } do {
      scf.yield
    }
  }
}

// -----

hop.kernel @outside attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  // expected-error@+1 {{stands outside of a role}}
  %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
}

// -----

hop.kernel @value attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : i32
    // expected-error@+1 {{takes a pipe of values, tensor<1xi32>, got '!hop.pipe<tensor<64x64xbf16>, 2>'}}
    hop.pipe.put %p, %c0 : !hop.pipe<tensor<64x64xbf16>, 2>
  }
}

// -----

hop.kernel @unread attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-error@+1 {{is read by no role, so that nobody gives its slots back; wait for its tiles and release them, or remove it}}
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
  }
}

// -----

hop.kernel @unfilled attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  // expected-error@+1 {{is filled by no role; load or put what its readers wait for, or remove it}}
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @twice attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{is filled by @first and @second, whose fills have no order; use a pipe for each}}
  %p = hop.pipe.create "p" : !hop.pipe<tensor<64x64xbf16>, 2>
  hop.role @first elected {
  ^bb0(%wg: index):
    hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
  }
  // expected-note@+1 {{the second role}}
  hop.role @second elected {
  ^bb0(%wg: index):
    hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %u = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    hop.pipe.release %p, %u : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

// A pipe goes with another one in each block that fills or reads it.
hop.kernel @led attributes {argument_names = ["x", "r"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[B, M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %r: !tile.view<[B, M], f32>, %m: index):
  // expected-note@+1 {{the other pipe}}
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  %v = hop.pipe.create "r" with %p : !hop.pipe<tensor<64x64xbf16>, 2> : !hop.pipe<tensor<64xf32>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{is of a pipe that goes with another one, of which nothing like it stands before it in this block}}
    hop.pipe.load %v, %r[%c0, %m] : !hop.pipe<tensor<64xf32>, 2>, !tile.view<[B, M], f32>
  }
}

// -----

// A thread fills it: its place would be counted nowhere.
hop.kernel @put attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  %v = hop.pipe.create "r" with %p : !hop.pipe<tensor<64x64xbf16>, 2> : !hop.pipe<tensor<1xi32>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : i32
    // expected-error@+1 {{is of a pipe that goes with another one, which only hop.pipe.load fills and only hop.pipe.wait reads; leave out with}}
    hop.pipe.put %v, %c0 : !hop.pipe<tensor<1xi32>, 2>
  }
}

// -----

// The release of the other pipe gives both slots back, and this one is read behind it.
hop.kernel @late attributes {argument_names = ["x", "r"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[B, M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %r: !tile.view<[B, M], f32>, %m: index):
  // expected-note@+1 {{the other pipe}}
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  %v = hop.pipe.create "r" with %p : !hop.pipe<tensor<64x64xbf16>, 2> : !hop.pipe<tensor<64xf32>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
    hop.pipe.load %v, %r[%c0, %m] : !hop.pipe<tensor<64xf32>, 2>, !tile.view<[B, M], f32>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %u = hop.pipe.wait %v : !hop.pipe<tensor<64xf32>, 2> -> !hop.shared<tensor<64xf32>, rows = 64>
    hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %f = hop.fetch %u : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<64xf32, #hop.layout<column>>
    // expected-error@+1 {{gives a slot back that goes with one of another pipe, which has been given back before it; release this one first, in the same block}}
    hop.pipe.release %v, %u : !hop.pipe<tensor<64xf32>, 2>, !hop.shared<tensor<64xf32>, rows = 64>
  }
}

// -----

// Nothing says up to where the slot is read.
hop.kernel @kept attributes {argument_names = ["x", "r"], argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[B, M], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %r: !tile.view<[B, M], f32>, %m: index):
  %p = hop.pipe.create "x" : !hop.pipe<tensor<64x64xbf16>, 2>
  %v = hop.pipe.create "r" with %p : !hop.pipe<tensor<64x64xbf16>, 2> : !hop.pipe<tensor<64xf32>, 2>
  hop.role @producer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    hop.pipe.load %p, %x[%m, %c0] : !hop.pipe<tensor<64x64xbf16>, 2>, !tile.view<[M, 64], bf16>
    hop.pipe.load %v, %r[%c0, %m] : !hop.pipe<tensor<64xf32>, 2>, !tile.view<[B, M], f32>
  }
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xbf16>, 2> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    // expected-error@+1 {{takes a slot that goes with one of another pipe and is given back with it; release this one before the other}}
    %u = hop.pipe.wait %v : !hop.pipe<tensor<64xf32>, 2> -> !hop.shared<tensor<64xf32>, rows = 64>
    hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xbf16>, 2>, !hop.shared<tensor<64x64xbf16>, rows = 64>
  }
}

// -----

hop.kernel @apart attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<cluster = exchange>} {
^bb0(%x: !tile.view<[M, 64], bf16>, %m: index):
  %ds = hop.pipe.create "ds" exchanged : !hop.pipe<tensor<128x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %t = arith.constant dense<1.0> : tensor<64x64xbf16, #hop.layout<accumulator>>
    %s = hop.pipe.acquire %ds : !hop.pipe<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    %mine = hop.slice %s[%wg] : !hop.shared<tensor<128x64xbf16>, rows = 128> -> !hop.shared<tensor<64x64xbf16>, rows = 128>
    hop.stage %t, %mine : tensor<64x64xbf16, #hop.layout<accumulator>>, !hop.shared<tensor<64x64xbf16>, rows = 128>
    // expected-error@+1 {{hands a tile to the other block of a cluster before the threads that write it have met; put hop.warpgroup_sync before it}}
    hop.pipe.commit %ds, %s : !hop.pipe<tensor<128x64xbf16>, 1>, !hop.shared<tensor<128x64xbf16>, rows = 128>
  }
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %t = hop.pipe.wait %ds : !hop.pipe<tensor<128x64xbf16>, 1> -> !hop.shared<tensor<128x64xbf16>, rows = 128>
    hop.warpgroup_sync
    hop.pipe.release %ds, %t : !hop.pipe<tensor<128x64xbf16>, 1>, !hop.shared<tensor<128x64xbf16>, rows = 128>
  }
}
