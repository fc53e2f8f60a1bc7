// The layout of every tile of a consumer.
// RUN: tessera-opt %S/../Inputs/small.mlir \
// RUN:   --pass-pipeline='builtin.module(tile-override-schedule{schedule=persistent=none,outer_stages=1,overlap=1},tile.kernel(tile-choose-schedule),tile-warp-specialize,canonicalize,cse,hop.kernel(hop-assign-layouts),canonicalize,cse)' \
// RUN:   | FileCheck %s --check-prefix=ATTENTION
// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-assign-layouts),canonicalize,cse)' | FileCheck %s

// The sum of the rows stays partial through the loop and is made whole once, after it.
// ATTENTION: scf.for {{.*}} -> (tensor<64x64xf32, #hop.layout<accumulator>>, tensor<64xf32, #hop.layout<row_partial>>)
// ATTENTION: tile.reduce sum {{.*}} -> tensor<64xf32, #hop.layout<row_partial>>
// ATTENTION-NOT: hop.convert_layout
// ATTENTION: scf.yield
// ATTENTION: %[[SUM:.*]] = hop.convert_layout sum {{.*}} -> tensor<64xf32, #hop.layout<row>>
// ATTENTION-NOT: hop.convert_layout
// ATTENTION: tile.broadcast %[[SUM]] axis 1
// ATTENTION: tile.store %[[SUM]]

// CHECK-LABEL: hop.kernel @k
hop.kernel @k attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], f32>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[N], f32>, %m: index):
  %pipe = hop.pipe.create "b" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %ab = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %product = hop.mma %ab, %ab : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
    hop.pipe.release %pipe, %ab : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %int = arith.constant dense<1> : tensor<64xi32>
    %int2 = arith.constant dense<2> : tensor<64xi32>
    // A tile that is broadcast along axis 0 follows the columns.
    // CHECK: %[[BIAS:.*]] = tile.load {{.*}} -> tensor<64xf32, #hop.layout<column>>
    // CHECK: tile.broadcast %[[BIAS]] axis 0 : tensor<64xf32, #hop.layout<column>> -> tensor<64x64xf32, #hop.layout<accumulator>>
    %bias = tile.load %y[%c0] : !tile.view<[N], f32> -> tensor<64xf32>
    %b = tile.broadcast %bias axis 0 : tensor<64xf32> -> tensor<64x64xf32>
    // A constant has the layout that each use wants: zero is a partial sum too.
    // CHECK: tile.reduce max {{.*}} -> tensor<64xf32, #hop.layout<row>>
    %max = tile.reduce max %b axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    // Rows of integers are carried whole, whatever the loop does with them.
    // CHECK: scf.for {{.*}} -> (tensor<64xf32, #hop.layout<row_partial>>, tensor<64xi32, #hop.layout<row>>, tensor<64xi32, #hop.layout<row>>)
    %sum, %i0, %j0 = scf.for %t = %c0 to %m step %c1 iter_args(%s = %max, %i = %int, %j = %int2) -> (tensor<64xf32>, tensor<64xi32>, tensor<64xi32>) {
      // CHECK: %[[R:.*]] = tile.reduce sum {{.*}} -> tensor<64xf32, #hop.layout<row_partial>>
      %r = tile.reduce sum %b axis 1 : tensor<64x64xf32> -> tensor<64xf32>
      // A factor of a partial sum is a row value as it is.
      // CHECK: %[[F:.*]] = hop.row_factor %{{.*}} : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<row_partial>>
      // CHECK: %[[S:.*]] = arith.mulf %{{.*}}, %[[F]] : tensor<64xf32, #hop.layout<row_partial>>
      %scaled = arith.mulf %s, %max : tensor<64xf32>
      // CHECK: arith.addf %[[S]], %[[R]] : tensor<64xf32, #hop.layout<row_partial>>
      %next = arith.addf %scaled, %r : tensor<64xf32>
      scf.yield %next, %j, %i : tensor<64xf32>, tensor<64xi32>, tensor<64xi32>
    }
    // CHECK: %[[WHOLE:.*]] = hop.convert_layout sum %{{.*}} : tensor<64xf32, #hop.layout<row_partial>> -> tensor<64xf32, #hop.layout<row>>
    // CHECK: math.log %[[WHOLE]] : tensor<64xf32, #hop.layout<row>>
    %log = math.log %sum : tensor<64xf32>
    tile.store %log, %y[%c0] : tensor<64xf32>, !tile.view<[N], f32>
    %ij = arith.subi %i0, %j0 : tensor<64xi32>
    %f = arith.sitofp %ij : tensor<64xi32> to tensor<64xf32>
    tile.store %f, %y[%c0] : tensor<64xf32>, !tile.view<[N], f32>

    // A maximum stays each thread's own, as every number is one.
    // CHECK: %[[MOST:.*]] = tile.reduce maximum {{.*}} -> tensor<64xf32, #hop.layout<row>>
    // CHECK: %[[FLOOR:.*]] = math.floor %[[MOST]]
    // CHECK: %[[START:.*]] = hop.convert_layout maximum %[[FLOOR]] : tensor<64xf32, #hop.layout<row>> -> tensor<64xf32, #hop.layout<row_partial>>
    %most = tile.reduce maximum %b axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    %rounded = math.floor %most : tensor<64xf32>
    %low = arith.constant dense<-1.0> : tensor<64xf32>
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[START]], %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<64xf32, #hop.layout<row_partial>>, tensor<64xf32, #hop.layout<row_partial>>, tensor<64xf32, #hop.layout<row>>)
    %m1, %m2, %m3 = scf.for %t = %c0 to %m step %c1 iter_args(%a1 = %rounded, %a2 = %low, %a3 = %low) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
      // CHECK: tile.reduce maximum {{.*}} -> tensor<64xf32, #hop.layout<row_partial>>
      %r1 = tile.reduce maximum %b axis 1 : tensor<64x64xf32> -> tensor<64xf32>
      %n1 = arith.maximumf %a1, %r1 : tensor<64xf32>
      // CHECK: tile.reduce min {{.*}} -> tensor<64xf32, #hop.layout<row_partial>>
      %r2 = tile.reduce min %b axis 1 : tensor<64x64xf32> -> tensor<64xf32>
      %n2 = arith.minnumf %a2, %r2 : tensor<64xf32>
      // But not where each iteration needs it whole.
      // CHECK: arith.maxnumf {{.*}} : tensor<64xf32, #hop.layout<row>>
      %r3 = tile.reduce max %b axis 1 : tensor<64x64xf32> -> tensor<64xf32>
      %n3 = arith.maxnumf %a3, %r3 : tensor<64xf32>
      %d3 = arith.subf %n3, %a3 : tensor<64xf32>
      tile.store %d3, %y[%c0] : tensor<64xf32>, !tile.view<[N], f32>
      // CHECK-NOT: hop.convert_layout
      scf.yield %n1, %n2, %n3 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
    }
    // CHECK: %[[M1:.*]] = hop.convert_layout maximum %{{.*}}#0 : tensor<64xf32, #hop.layout<row_partial>> -> tensor<64xf32, #hop.layout<row>>
    // CHECK: %[[M2:.*]] = hop.convert_layout min %{{.*}}#1 : tensor<64xf32, #hop.layout<row_partial>> -> tensor<64xf32, #hop.layout<row>>
    // CHECK: arith.subf %[[M1]], %[[M2]]
    %m12 = arith.subf %m1, %m2 : tensor<64xf32>
    tile.store %m12, %y[%c0] : tensor<64xf32>, !tile.view<[N], f32>
    tile.store %m3, %y[%c0] : tensor<64xf32>, !tile.view<[N], f32>
  }
}

// A scf.while takes rows whole.
// CHECK-LABEL: hop.kernel @while
hop.kernel @while attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], f32>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[N], f32>, %m: index):
  %pipe = hop.pipe.create "b" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %ab = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %product = hop.mma %ab, %ab : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
    hop.pipe.release %pipe, %ab : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %bias = tile.load %y[%c0] : !tile.view<[N], f32> -> tensor<64xf32>
    %b = tile.broadcast %bias axis 0 : tensor<64xf32> -> tensor<64x64xf32>
    %first = tile.reduce sum %b axis 1 : tensor<64x64xf32> -> tensor<64xf32>
    // CHECK: scf.while (%{{.*}} = %{{.*}}, %[[S:.*]] = %{{.*}}) : (index, tensor<64xf32, #hop.layout<row>>) -> index
    %n = scf.while (%i = %c0, %s = %first) : (index, tensor<64xf32>) -> index {
      tile.store %s, %y[%i] : tensor<64xf32>, !tile.view<[N], f32>
      %more = arith.cmpi slt, %i, %m : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      // CHECK: scf.yield %{{.*}}, %{{.*}} : index, tensor<64xf32, #hop.layout<row>>
      %next = tile.reduce sum %b axis 1 : tensor<64x64xf32> -> tensor<64xf32>
      %j = arith.addi %i, %c1 : index
      scf.yield %j, %next : index, tensor<64xf32>
    }
  }
}

// Without products warps have rows of their own as far as there are rows; the others meet.
// CHECK-LABEL: hop.kernel @no_products
// CHECK: %[[EXCHANGE:.*]] = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 8>
hop.kernel @no_products attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 512], f16>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 2>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 512], f16>, %y: !tile.view<[N], f32>, %m: index):
  hop.role @consumer warpgroups(2) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // CHECK: tile.load {{.*}} -> tensor<2x1024xf16, #hop.layout<registers = [8:(0, 1)], lanes = [32:(0, 8)], warps = [2:(1, 0), 2:(0, 256)], warpgroups = [2:(0, 512)]>>
    %t = tile.load %x[%m, %c0] : !tile.view<[M, 512], f16> -> tensor<2x1024xf16>
    %a = arith.extf %t : tensor<2x1024xf16> to tensor<2x1024xf32>
    // CHECK: %[[PARTS:.*]] = tile.reduce sum {{.*}} -> tensor<2xf32, #hop.layout<lanes = [32:0], warps = [2:1, 2:0], warpgroups = [2:0], partial>>
    // CHECK: hop.combine sum %[[PARTS]] through %[[EXCHANGE]]
    %r = tile.reduce sum %a axis 1 : tensor<2x1024xf32> -> tensor<2xf32>
    // CHECK: tile.store {{.*}} : tensor<2xf32, #hop.layout<lanes = [32:0], warps = [2:1, 2:0], warpgroups = [2:0]>>
    tile.store %r, %y[%m] : tensor<2xf32>, !tile.view<[N], f32>
  }
}

// Columns of an accumulator: the warps of a warpgroup have other rows.
// CHECK-LABEL: hop.kernel @columns
// CHECK: hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 256>
hop.kernel @columns attributes {argument_names = ["x", "y"], argument_types = [!tile.view<[M, 64], f32>, !tile.view<[N], f32>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[N], f32>, %m: index):
  %pipe = hop.pipe.create "b" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %b = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s = hop.mma %b, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
    hop.pipe.release %pipe, %b : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // CHECK: tile.reduce max {{.*}} -> tensor<64xf32, #hop.layout<registers = [2:1], lanes = [4:2, 8:0], warps = [4:0], partial>>
    // CHECK: hop.combine max
    %r = tile.reduce max %s axis 0 : tensor<64x64xf32> -> tensor<64xf32>
    tile.store %r, %y[%m] : tensor<64xf32>, !tile.view<[N], f32>
  }
}

// Columns of an accumulator are in one warp each, rows in four: what these combined of 16 rows goes through shared memory.
// CHECK-LABEL: hop.kernel @scans
// CHECK-DAG: %[[TILES:.*]] = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 256>
// CHECK-DAG: %[[ROWS:.*]] = hop.buffer "exchange" : !hop.buffer<tensor<1xi32>, 4>
hop.kernel @scans attributes {argument_names = ["x", "y", "z"],
    argument_types = [!tile.view<[M, 64], f32>, !tile.view<[N], i32>, !tile.view<[N], f32>], grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f32>, %y: !tile.view<[N], i32>, %z: !tile.view<[N], f32>, %m: index):
  %pipe = hop.pipe.create "b" : !hop.pipe<tensor<64x64xbf16>, 1>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %b = hop.pipe.wait %pipe : !hop.pipe<tensor<64x64xbf16>, 1> -> !hop.shared<tensor<64x64xbf16>, rows = 64>
    %s = hop.mma %b, %b : !hop.shared<tensor<64x64xbf16>, rows = 64>, !hop.shared<tensor<64x64xbf16>, rows = 64> -> tensor<64x64xf32>
    hop.pipe.release %pipe, %b : !hop.pipe<tensor<64x64xbf16>, 1>, !hop.shared<tensor<64x64xbf16>, rows = 64>
    // CHECK: tile.scan maximum {{.*}} axis 1 exclusive
    %along = tile.scan maximum %s axis 1 exclusive : tensor<64x64xf32>
    // CHECK: hop.scan sum {{.*}} axis 0 reverse through %[[TILES]]
    %down = tile.scan sum %along axis 0 reverse : tensor<64x64xf32>
    tile.store %down, %x[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
    %lengths = tile.load %y[%m] : !tile.view<[N], i32> -> tensor<64xi32>
    // CHECK: hop.scan sum {{.*}} axis 0 exclusive through %[[ROWS]] : tensor<64xi32, #hop.layout<row>>
    %starts = tile.scan sum %lengths axis 0 exclusive : tensor<64xi32>
    tile.store %starts, %y[%m] : tensor<64xi32>, !tile.view<[N], i32>
    // CHECK: tile.scan sum {{.*}} axis 0 : tensor<64xf32, #hop.layout<column>>
    %columns = tile.load %z[%m] : !tile.view<[N], f32> -> tensor<64xf32>
    %sums = tile.scan sum %columns axis 0 : tensor<64xf32>
    %all = tile.broadcast %sums axis 0 : tensor<64xf32> -> tensor<64x64xf32>
    %both = arith.addf %all, %down : tensor<64x64xf32>
    tile.store %both, %x[%m, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
  }
}

// What products make of an operand that is read transposed has its rows in pairs, around a loop too, and so has what is computed of
// it; the other product has not. What is transposed to be stored has the axes exchanged.
// CHECK-LABEL: hop.kernel @pairs
// CHECK: hop.fetch %{{.*}} transposed : {{.*}} -> tensor<64x64xf8E4M3FN, #hop.layout<row_pairs>>
// CHECK: arith.extf {{.*}} to tensor<64x64xf16, #hop.layout<row_pairs>>
// CHECK: hop.fetch %{{.*}} : {{.*}} -> tensor<64x64xf8E4M3FN, #hop.layout<accumulator8>>
// CHECK: %[[X:.*]] = hop.mma {{.*}} -> tensor<64x16xf32, #hop.layout<accumulator>>
// CHECK: hop.mma {{.*}} acc(%{{.*}} : tensor<64x16xf32, #hop.layout<row_pairs>>)
// CHECK: %[[O:.*]] = tile.transpose %{{.*}} : tensor<64x16xf32, #hop.layout<row_pairs>> -> tensor<16x64xf32, #hop.layout<registers = [2:(1, 0), 2:(0, 1)], lanes = [4:(2, 0), 8:(0, 2)], warps = [4:(0, 16)]>>
// CHECK: tile.store %[[O]]
hop.kernel @pairs attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 16>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f32>, %m: index):
  %bytes = hop.staging "bytes" : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x16xf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : tensor<64x16xf32>
    %two = arith.constant dense<2.0> : tensor<64x16xf32>
    %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%old = %zero) -> (tensor<64x16xf32>) {
      %t = hop.fetch %bytes transposed : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> tensor<64x64xf8E4M3FN>
      %a = arith.extf %t : tensor<64x64xf8E4M3FN> to tensor<64x64xf16>
      %k = hop.fetch %bytes : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> tensor<64x64xf8E4M3FN>
      %wide = arith.extf %k : tensor<64x64xf8E4M3FN> to tensor<64x64xf16>
      %s = hop.mma %wide, %b : tensor<64x64xf16>, !hop.shared<tensor<64x16xf16>, rows = 64> -> tensor<64x16xf32>
      %h = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %scaled = arith.mulf %old, %two : tensor<64x16xf32>
      %new = hop.mma %a, %h acc(%scaled : tensor<64x16xf32>) : tensor<64x64xf16>, tensor<64x16xf16> -> tensor<64x16xf32>
      scf.yield %new : tensor<64x16xf32>
    }
    %o = tile.transpose %sum : tensor<64x16xf32> -> tensor<16x64xf32>
    tile.store %o, %x[%m, %c0] : tensor<16x64xf32>, !tile.view<[M, 64], f32>
  }
}

// Sums, numbers and places of such rows are in pairs too, and a scan has the layout of its tile; numbers of columns stay as they are.
// CHECK-LABEL: hop.kernel @numbers
// CHECK: %[[S:.*]] = hop.mma {{.*}} -> tensor<64x16xf32, #hop.layout<row_pairs>>
// CHECK: %[[T:.*]] = tile.scan sum %[[S]] axis 1 : tensor<64x16xf32, #hop.layout<row_pairs>>
// CHECK: tile.reduce max %[[T]] axis 1 : tensor<64x16xf32, #hop.layout<row_pairs>> -> tensor<64xf32, #hop.layout<registers = [2:1], lanes = [4:0, 8:2], warps = [4:16]>>
// CHECK: tile.reduce max %[[T]] axis 0 : tensor<64x16xf32, #hop.layout<row_pairs>> -> tensor<16xf32, #hop.layout<registers = [2:1], lanes = [4:2, 8:0], warps = [4:0], partial>>
// CHECK: %[[ROWS:.*]] = tile.iota %{{.*}} axis 0 : tensor<64xi32, #hop.layout<registers = [2:1], lanes = [4:0, 8:2], warps = [4:16]>>
// CHECK: tile.scatter %{{.*}} rows %[[ROWS]]
hop.kernel @numbers attributes {argument_names = ["x"], argument_types = [!tile.view<[M, 64], f32>],
    grid = [#tile.grid_dim<"M", 16>], schedule = #tile.schedule<>} {
^bb0(%x: !tile.view<[M, 64], f32>, %m: index):
  %bytes = hop.staging "bytes" : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>
  %b = hop.staging "b" : !hop.shared<tensor<64x16xf16>, rows = 64>
  hop.role @consumer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %t = hop.fetch %bytes transposed : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> tensor<64x64xf8E4M3FN>
    %a = arith.extf %t : tensor<64x64xf8E4M3FN> to tensor<64x64xf16>
    %s = hop.mma %a, %b : tensor<64x64xf16>, !hop.shared<tensor<64x16xf16>, rows = 64> -> tensor<64x16xf32>
    %sums = tile.scan sum %s axis 1 : tensor<64x16xf32>
    %of_row = tile.reduce max %sums axis 1 : tensor<64x16xf32> -> tensor<64xf32>
    %of_column = tile.reduce max %sums axis 0 : tensor<64x16xf32> -> tensor<16xf32>
    %more = tile.broadcast %of_row axis 1 : tensor<64xf32> -> tensor<64x16xf32>
    %others = tile.broadcast %of_column axis 0 : tensor<16xf32> -> tensor<64x16xf32>
    %both = arith.addf %more, %others : tensor<64x16xf32>
    %rows = tile.iota %c0 axis 0 : tensor<64xi32>
    tile.scatter %both, %x[%c0, %c0] rows %rows : tensor<64x16xf32>, !tile.view<[M, 64], f32>, tensor<64xi32>
  }
}
