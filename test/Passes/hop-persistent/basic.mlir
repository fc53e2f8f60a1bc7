// Each role's program becomes the body of a loop over tiles; the order says which tile a number means.
//
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline="builtin.module(tile-choose-schedule{schedule=overlap=1,persistent=static,order=linear},tile-warp-specialize,hop.kernel(hop-persistent))" | FileCheck %s --check-prefix=STATIC
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline="builtin.module(tile-choose-schedule{schedule=overlap=1,persistent=dynamic,order=descending},tile-warp-specialize,hop.kernel(hop-persistent))" | FileCheck %s --check-prefix=DYNAMIC
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline="builtin.module(tile-choose-schedule{schedule=overlap=1,persistent=none},tile-warp-specialize,hop.kernel(hop-persistent))" | FileCheck %s --check-prefix=NONE

// STATIC: hop.role producer
// STATIC: %[[FIRST:.*]] = hop.block_index
// STATIC: scf.while (%{{.*}} = %[[FIRST]])
// STATIC: %[[MORE:.*]] = arith.cmpi slt, %[[NUMBER:.*]], %{{.*}} : index
// STATIC: scf.condition(%[[MORE]]) %[[NUMBER]]
// STATIC: ^bb0(%[[TILE:.*]]: index):
// The first grid dimension changes fastest.
// STATIC: %[[M:.*]] = arith.remui %[[TILE]]
// STATIC: %[[ROW:.*]] = arith.muli %[[M]]
// STATIC: hop.pipe.load %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %[[ROW]],
// STATIC: %[[COUNT:.*]] = hop.block_count
// STATIC: %[[NEXT:.*]] = arith.addi %[[TILE]], %[[COUNT]]
// STATIC: scf.yield %[[NEXT]]
// STATIC: hop.role consumer
// STATIC: scf.while
// STATIC: tile.store
// STATIC: scf.yield
// STATIC-NOT: hop.next_tile

// DYNAMIC: %[[NUMBERS:.*]] = hop.pipe.create "tiles" : !hop.pipe<tensor<1xi32>, 2>
// DYNAMIC: hop.role producer
// DYNAMIC: scf.while
// Last index first, within a section of the other indices.
// DYNAMIC: %[[LAST:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// DYNAMIC: %[[NEXT:.*]] = hop.next_tile
// DYNAMIC: hop.pipe.load
// DYNAMIC: %[[VALUE:.*]] = arith.index_cast %[[NEXT]] : index to i32
// DYNAMIC: hop.pipe.put %[[NUMBERS]], %[[VALUE]]
// DYNAMIC: scf.yield %[[NEXT]]
// DYNAMIC: hop.reset_tiles
// DYNAMIC: hop.role consumer
// DYNAMIC: scf.while
// DYNAMIC: tile.store
// DYNAMIC: %[[GOT:.*]] = hop.pipe.get %[[NUMBERS]]
// DYNAMIC: %[[TAKEN:.*]] = arith.index_cast %[[GOT]] : i32 to index
// DYNAMIC: scf.yield %[[TAKEN]]
// DYNAMIC-NOT: hop.reset_tiles

// NONE-NOT: scf.while
// NONE-NOT: hop.block_index
