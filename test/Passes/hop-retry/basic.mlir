// The fast program of every tile, a meeting of all roles, and the exact program of those in doubt.
//
// RUN: tessera-opt %S/../Inputs/speculation.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=static,order=linear},tile.kernel(tile-choose-schedule,tile-complete-speculation),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-stage-stores,hop-persistent,hop-retry))" | FileCheck %s --check-prefix=STATIC
// RUN: tessera-opt %S/../Inputs/speculation.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=none,order=linear},tile.kernel(tile-choose-schedule,tile-complete-speculation),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-stage-stores,hop-persistent,hop-retry))" | FileCheck %s --check-prefix=NONE
// RUN: tessera-opt %S/../Inputs/attention.mlir --pass-pipeline="builtin.module(tile-override-schedule{schedule=overlap=1,persistent=static,order=linear},tile.kernel(tile-choose-schedule,tile-complete-speculation),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts,hop-stage-stores,hop-persistent,hop-retry))" | FileCheck %s --check-prefix=PLAIN

// STATIC-DAG: %[[LIST:.*]] = hop.buffer "retry.list" zeroed : !hop.buffer<tensor<1xi32>, 512>
// STATIC-DAG: %[[DOUBTED:.*]] = hop.buffer "retry.doubted" zeroed : !hop.buffer<tensor<1xi32>, 2>
// 128 threads of the consumer and one of the producer.
// STATIC-DAG: %[[MEET:.*]] = hop.barriers "retry.meet" count 129
// Both regions fill the slots of one pipe for B.
// STATIC-DAG: %[[A:.*]] = hop.pipe.create "a"
// STATIC-DAG: %[[B:.*]] = hop.pipe.create "b"
// STATIC-NOT: hop.pipe.create
// STATIC: hop.role @producer
// STATIC:   scf.while (%{{.*}} = %{{.*}}, %[[PARITY:.*]] = %{{.*}}) : (index, i32)
// STATIC:     scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (index, index)
// STATIC:       arith.cmpi ult, %{{.*}}, %{{.*}} : index
// STATIC:       hop.pipe.load %[[A]]
// STATIC:       hop.pipe.load %[[B]]
// STATIC:     hop.barrier.arrive %[[MEET]][%{{.*}}] all
// STATIC:     hop.barrier.wait %[[MEET]]
// STATIC:     hop.slot_load %[[DOUBTED]]
// STATIC:     scf.if
// STATIC:       scf.while
// STATIC:         hop.slot_load %[[LIST]]
// STATIC:         scf.if
// STATIC:           hop.pipe.load %[[A]]
// STATIC:           hop.pipe.load %[[B]]
// STATIC:       hop.barrier.arrive %[[MEET]]
// STATIC:       hop.barrier.arrive %[[MEET]]
// STATIC: hop.role @consumer
// STATIC:     hop.flag %[[VALID:.*]], %{{.*}}, %[[LIST]]
// STATIC:     hop.flag %[[VALID]], %{{.*}}, %[[DOUBTED]]
// STATIC:     tile.store
// STATIC:     hop.barrier.wait %[[MEET]]
// STATIC:           tile.store
// STATIC:       hop.elected
// STATIC:       hop.slot_store %{{.*}}, %[[DOUBTED]]
// STATIC:       hop.slot_store %{{.*}}, %[[LIST]]
// STATIC-NOT: hop.attempt

// A block with one tile keeps no list.
// NONE-NOT: retry.list
// NONE-NOT: scf.while
// NONE: hop.role @consumer
// NONE:   hop.flag %{{.*}}, %{{.*}}, %[[DOUBTED:.*]][
// NONE:   tile.store
// NONE:   hop.barrier.wait
// NONE:   hop.slot_load %[[DOUBTED]]
// NONE:   scf.if
// NONE:     tile.store

// PLAIN-NOT: retry
