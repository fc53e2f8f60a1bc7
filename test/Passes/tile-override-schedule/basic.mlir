// Fields that are given replace those of every kernel; the others stay. Without any a kernel keeps what it has.

// RUN: tessera-opt %s --tile-override-schedule=schedule=stages=2,pingpong=false | FileCheck %s --check-prefix=SET
// RUN: tessera-opt %s --tile-override-schedule | FileCheck %s --check-prefix=NONE
// RUN: not tessera-opt %s --tile-override-schedule=schedule=stages=9 2>&1 | FileCheck %s --check-prefix=RANGE

// SET: tile.kernel @written({{.*}} schedule #tile.schedule<stages = 2, overlap = 1, pingpong = false>
// SET: tile.kernel @empty({{.*}} schedule #tile.schedule<stages = 2, pingpong = false>
// NONE: tile.kernel @written({{.*}} schedule #tile.schedule<stages = 3, overlap = 1>
// NONE: tile.kernel @empty({{.*}}ceildiv 64) {
// RANGE: error: schedule field 'stages' is 1 to 8, or a list of at most 8 such numbers, got 9

tile.kernel @written(%x: !tile.view<[M, 64], f16>) grid(%m = M ceildiv 64) schedule #tile.schedule<stages = 3, overlap = 1> {
}

tile.kernel @empty(%x: !tile.view<[M, 64], f16>) grid(%m = M ceildiv 64) {
}
