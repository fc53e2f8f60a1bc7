// Each role's program becomes the body of a loop over tiles; the order says which tile a number means.
//
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=static,order=linear},tile.kernel(tile-choose-schedule),tile-warp-specialize,hop.kernel(hop-persistent))" | FileCheck %s --check-prefix=STATIC
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=dynamic,order=descending},tile.kernel(tile-choose-schedule),tile-warp-specialize,hop.kernel(hop-persistent))" | FileCheck %s --check-prefix=DYNAMIC
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=none},tile.kernel(tile-choose-schedule),tile-warp-specialize,hop.kernel(hop-persistent))" | FileCheck %s --check-prefix=NONE
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=dynamic,order=descending,cluster=2},tile.kernel(tile-choose-schedule),tile-warp-specialize,hop.kernel(hop-persistent))" | FileCheck %s --check-prefix=CLUSTER
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=dynamic,order=descending,section=8},tile.kernel(tile-choose-schedule),tile-warp-specialize,hop.kernel(hop-persistent))" | FileCheck %s --check-prefix=SECTION

// STATIC: hop.role @producer
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
// STATIC: hop.role @consumer
// STATIC: scf.while
// STATIC: tile.store
// STATIC: scf.yield
// STATIC-NOT: hop.next_tile

// DYNAMIC: %[[NUMBERS:.*]] = hop.pipe.create "tiles" : !hop.pipe<tensor<1xi32>, 2>
// DYNAMIC: hop.role @producer
// DYNAMIC: scf.while
// DYNAMIC: %[[BLOCKS:.*]] = hop.block_count
// DYNAMIC: arith.muli %c2{{.*}}, %[[BLOCKS]]
// Last index first, within a section of the other indices.
// DYNAMIC: %[[LAST:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// As late as can be: a block that waits in line for its next tile holds it up.
// DYNAMIC-NOT: hop.next_tile
// DYNAMIC: hop.pipe.load
// DYNAMIC: %[[NEXT:.*]] = hop.next_tile
// DYNAMIC: %[[VALUE:.*]] = arith.index_cast %[[NEXT]] : index to i32
// DYNAMIC: hop.pipe.put %[[NUMBERS]], %[[VALUE]]
// DYNAMIC: scf.yield %[[NEXT]]
// DYNAMIC: hop.reset_tiles
// DYNAMIC: hop.role @consumer
// DYNAMIC: scf.while
// DYNAMIC: tile.store
// DYNAMIC: %[[GOT:.*]] = hop.pipe.get %[[NUMBERS]]
// DYNAMIC: %[[TAKEN:.*]] = arith.index_cast %[[GOT]] : i32 to index
// DYNAMIC: scf.yield %[[TAKEN]]
// DYNAMIC-NOT: hop.reset_tiles

// As many of the other indices as have eight tiles for each thread block.
// SECTION: %[[BLOCKS:.*]] = hop.block_count
// SECTION: %[[TILES:.*]] = arith.muli %c8{{.*}}, %[[BLOCKS]]
// SECTION: %[[FITTING:.*]] = arith.divui %[[TILES]]
// SECTION: arith.maxui %{{.*}}, %[[FITTING]]

// NONE-NOT: scf.while
// NONE-NOT: hop.block_index

// A number stands for the two tiles of a cluster. One producer fetches it, and all take it from the pipe.
// CLUSTER: %[[NUMBERS:.*]] = hop.pipe.create "tiles" multicast : !hop.pipe<tensor<1xi32>, 2>
// CLUSTER: hop.role @producer
// CLUSTER: %[[BLOCK:.*]] = hop.block_index
// CLUSTER: %[[FIRST:.*]] = arith.divui %[[BLOCK]], %c2{{.*}} : index
// CLUSTER: scf.while (%{{.*}} = %[[FIRST]])
// CLUSTER: %[[TILES:.*]] = arith.ceildivui
// CLUSTER: arith.ceildivui %[[TILES]], %c2
// CLUSTER: arith.subi
// CLUSTER: %[[RANK:.*]] = hop.cluster_rank
// CLUSTER: %[[START:.*]] = arith.muli %{{.*}}, %c2
// CLUSTER: arith.addi %[[START]], %[[RANK]]
// CLUSTER: %[[NEXT:.*]] = hop.next_tile
// CLUSTER: %[[VALUE:.*]] = arith.index_cast %[[NEXT]] : index to i32
// CLUSTER: hop.pipe.put %[[NUMBERS]], %[[VALUE]]
// CLUSTER: %[[GOT:.*]] = hop.pipe.get %[[NUMBERS]]
// CLUSTER: %[[TAKEN:.*]] = arith.index_cast %[[GOT]] : i32 to index
// CLUSTER: scf.yield %[[TAKEN]]
// CLUSTER: hop.reset_tiles
// CLUSTER: hop.role @consumer
// CLUSTER: hop.pipe.get %[[NUMBERS]]
