// RUN: tessera-opt %s --split-input-file --pass-pipeline="builtin.module(hop.kernel(hop-persistent))" -verify-diagnostics

// The producer fetches the numbers of tiles; without one there is nobody to do so.
// expected-error@+1 {{persistent = dynamic needs a producer, which fetches the next tile; use static with producer = none}}
hop.kernel @no_producer attributes {
    argument_names = ["x"], argument_types = [!tile.view<[M, 64], f16>], grid = [#tile.grid_dim<"M", 64>],
    schedule = #tile.schedule<producer = none, consumers = 1, stages = 1, outer_stages = 1, overlap = 1,
      pingpong = false, speculate = false, store = direct, persistent = dynamic, order = linear, section = 2, producer_registers = 24,
      consumer_registers = 240, placement = rows, transpose = 0, work = tiles>} {
^bb0(%x: !tile.view<[M, 64], f16>, %m: index):
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
  }
}

// -----

// Passes run alone on a schedule that is not complete.
// expected-error@+1 {{has a schedule without persistent; run tile-choose-schedule first}}
hop.kernel @no_field attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f16>, %m: index):
}

// -----

// expected-error@+1 {{has a schedule without order, section; run tile-choose-schedule first}}
hop.kernel @no_order attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<persistent = static>} {
^bb0(%x: !tile.view<[M, 64], f16>, %m: index):
}

// -----

// expected-error@+1 {{has no grid over whose tiles a thread block could walk}}
hop.kernel @no_grid attributes {argument_names = [], argument_types = [], grid = [],
    schedule = #tile.schedule<persistent = static, order = linear, section = 2>} {
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
  }
}
