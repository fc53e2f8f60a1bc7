// The layout of every tile of a consumer.
// RUN: tessera-opt %S/../Inputs/small.mlir --tile-choose-schedule=schedule=overlap=1 --tile-warp-specialize --canonicalize --cse \
// RUN:   --pass-pipeline='builtin.module(tile-choose-schedule{schedule=overlap=1},tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts),canonicalize,cse)' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-assign-layouts))' | FileCheck %s --check-prefix=KINDS
