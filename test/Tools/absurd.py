# Absurd sources: each compiles to PTX, or is refused with exit code 3 and an error at a line of the source. None crashes,
# hangs or says nothing.
#
# RUN: mkdir -p %t
# RUN: %python %s %t

import pathlib
import re
import subprocess
import sys

WORK = pathlib.Path(sys.argv[1])

HEAD = """tile.kernel @k(%x: !tile.view<[M, 64], f16>, %y: !tile.view<[N, 64], f16>, %z: !tile.view<[M, 64], f32>, %s: f32)
    grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %n = tile.dim "N"
  %row = arith.muli %m, %c128 : index
  %a = tile.load %x[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
"""
DOT = """  %d = tile.dot %a, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
"""
STORE = """  tile.store %d, %z[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
"""


def kernel(body, head=HEAD, store=STORE):
    return head + body + store + "}\n"


def many_scalars(count):
    """A kernel with so many arguments."""
    return kernel(DOT).replace("%s: f32", ", ".join(f"%s{i}: f32" for i in range(count)))


def product(rows, columns, depth):
    """A kernel that is one product of whole views."""
    return f"""tile.kernel @k(%x: !tile.view<[M, {depth}], f16>, %y: !tile.view<[{depth}, {columns}], f16>,
    %z: !tile.view<[M, {columns}], f32>) grid(%m = M ceildiv {rows}) {{
  %c0 = arith.constant 0 : index
  %rows = arith.constant {rows} : index
  %row = arith.muli %m, %rows : index
  %a = tile.load %x[%row, %c0] : !tile.view<[M, {depth}], f16> -> tensor<{rows}x{depth}xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<[{depth}, {columns}], f16> -> tensor<{depth}x{columns}xf16>
  %d = tile.dot %a, %b : tensor<{rows}x{depth}xf16>, tensor<{depth}x{columns}xf16> -> tensor<{rows}x{columns}xf32>
  tile.store %d, %z[%row, %c0] : tensor<{rows}x{columns}xf32>, !tile.view<[M, {columns}], f32>
}}
"""


def nested_functions(count, loops):
    """A kernel that calls the last of `count` functions, each with a call of the one before in `loops` loops."""
    text = "func.func @f0() {\n  func.return\n}\n"
    for i in range(1, count):
        text += f"func.func @f{i}(){{\n  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
        text += "".join(f"  scf.for %i{n} = %c0 to %c1 step %c1 {{\n" for n in range(loops))
        text += f"  func.call @f{i - 1}() : () -> ()\n" + "  }\n" * loops + "  func.return\n}\n"
    return text + kernel(f"  func.call @f{count - 1}() : () -> ()\n" + DOT)


# Name: the source and what the error says, or None where it compiles.
CASES = {
    # Shapes.
    "tile 17x3": (product(17, 3, 16), "a multiple of 64 rows, .*; got 17x3; 64x8 or 24x64 would work"),
    "17 rows": (product(17, 64, 64), "a multiple of 64 rows"),
    "3 columns": (product(64, 3, 64), "a multiple of 8 columns .*; got 3; 8 would work"),
    "8 columns": (product(64, 8, 64), "rows are a multiple of 32 bytes"),
    "depth 8": (product(64, 64, 8), "contracts a multiple of 16 .*; got 8; 16 would work"),
    "depth 1024": (product(64, 64, 1024), "no schedule of this kernel fits the machine"),
    "1024 columns": (product(64, 1024, 64), "no schedule of this kernel fits the machine"),
    "300 columns": (product(64, 300, 64), "a multiple of 8 columns .*; got 300; 304 would work"),
    "304 columns": (product(64, 304, 16), None),
    "320 columns": (product(64, 320, 64), None),
    "296 columns": (product(64, 296, 16), "rows are a multiple of 32 bytes"),
    "no columns": (product(64, 0, 64), "a static extent of a view is at least 1"),
    "no rows": (product(0, 64, 64), "the divisor of a grid extent is at least 1"),
    "512 rows": (product(512, 16, 16), "a bulk tensor copy moves 256"),
    "mismatched dot": (
        kernel("  %d = tile.dot %b, %a : tensor<64x64xf16>, tensor<128x64xf16> -> tensor<64x64xf32>\n", store=""),
        r"contracts dimension 1 of a \(64\) with dimension 0 of b \(128\), which differ",
    ),
    "mixed types": (
        kernel("""  %e = arith.extf %b : tensor<64x64xf16> to tensor<64x64xf32>
  %f = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xbf16>
  %d = tile.dot %a, %f : tensor<128x64xf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
"""),
        "operands have one element type",
    ),
    # Operands.
    "computed second operand": (
        kernel("""  %e = arith.addf %b, %b : tensor<64x64xf16>
  %d = tile.dot %a, %e : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
"""),
        "computes on tiles of 16 or 8 bits",
    ),
    "operand also stored": (
        kernel(DOT + "  tile.store %a, %x[%row, %c0] : tensor<128x64xf16>, !tile.view<[M, 64], f16>\n"),
        "uses a loaded tile that is also an operand of a dot",
    ),
    "operand transposed twice": (
        kernel("""  %bt = tile.transpose %b : tensor<64x64xf16> -> tensor<64x64xf16>
  %btt = tile.transpose %bt : tensor<64x64xf16> -> tensor<64x64xf16>
  %d = tile.dot %a, %btt : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
"""),
        None,
    ),
    "both operands one tile": (
        kernel("""  %e = tile.load %x[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  %g = tile.dot %e, %e : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  tile.store %g, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
""", store=""),
        None,
    ),
    "no dot": (kernel("", store="  tile.store %zero, %z[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>\n"),
               None),
    "selected view": (
        kernel("""  %first = arith.cmpi slt, %n, %c64 : index
  %v = arith.select %first, %x, %x : !tile.view<[M, 64], f16>
  %e = tile.load %v[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %d = tile.dot %e, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
"""),
        "takes its view straight from the kernel's arguments",
    ),
    # Control flow.
    "cyclic yield": (
        kernel("""  %one = arith.constant dense<1.0> : tensor<128x64xf32>
  %p, %q, %d = scf.for %i = %c0 to %n step %c64 iter_args(%u = %zero, %v = %one, %w = %zero)
      -> (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>) {
    %e = tile.load %y[%i, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %f = tile.dot %a, %e, %u : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    scf.yield %v, %w, %f : tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>
  }
"""),
        "|needs .* registers",
    ),
    "cyclic yield of rows": (
        kernel("""  %rz = arith.constant dense<0.0> : tensor<128xf32>
  %ro = arith.constant dense<1.0> : tensor<128xf32>
  %iz = arith.constant dense<0> : tensor<128xi32>
  %io = tile.iota %c0 axis 0 : tensor<128xi32>
  %p, %q, %k1, %k2, %f = scf.for %i = %c0 to %n step %c64
      iter_args(%u = %rz, %v = %ro, %s1 = %iz, %s2 = %io, %w = %zero)
      -> (tensor<128xf32>, tensor<128xf32>, tensor<128xi32>, tensor<128xi32>, tensor<128x64xf32>) {
    %e = tile.load %y[%i, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %g = tile.dot %a, %e, %w : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    scf.yield %v, %u, %s2, %s1, %g : tensor<128xf32>, tensor<128xf32>, tensor<128xi32>, tensor<128xi32>, tensor<128x64xf32>
  }
  %kf = arith.sitofp %k1 : tensor<128xi32> to tensor<128xf32>
  %pk = arith.addf %p, %kf : tensor<128xf32>
  %pb = tile.broadcast %pk axis 1 : tensor<128xf32> -> tensor<128x64xf32>
  %d = arith.mulf %f, %pb : tensor<128x64xf32>
"""),
        None,
    ),
    "yield of itself": (
        kernel("""  %l = scf.for %i = %c0 to %n step %c1 iter_args(%u = %zero) -> (tensor<128x64xf32>) {
    scf.yield %u : tensor<128x64xf32>
  }
  %d = tile.dot %a, %b, %l : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
"""),
        None,
    ),
    "nested loops": (
        kernel("""  %d = scf.for %i = %c0 to %n step %c64 iter_args(%u = %zero) -> (tensor<128x64xf32>) {
    %l = scf.for %j = %c0 to %i step %c64 iter_args(%v = %u) -> (tensor<128x64xf32>) {
      %e = tile.load %y[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
      %f = tile.dot %a, %e, %v : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
      scf.yield %f : tensor<128x64xf32>
    }
    %e2 = tile.load %y[%i, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %f2 = tile.dot %a, %e2, %l : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    scf.yield %f2 : tensor<128x64xf32>
  }
"""),
        None,
    ),
    "dot in a conditional": (
        kernel("""  %big = arith.cmpi sgt, %n, %c64 : index
  %d = scf.if %big -> (tensor<128x64xf32>) {
    %e = tile.load %y[%c64, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %f = tile.dot %a, %e : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    scf.yield %f : tensor<128x64xf32>
  } else {
    scf.yield %zero : tensor<128x64xf32>
  }
"""),
        None,
    ),
    "load in a while loop": (
        kernel("""  %w:2 = scf.while (%i = %c0, %u = %zero) : (index, tensor<128x64xf32>) -> (index, tensor<128x64xf32>) {
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i, %u : index, tensor<128x64xf32>
  } do {
  ^bb0(%i: index, %u: tensor<128x64xf32>):
    %e = tile.load %y[%i, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %f = tile.dot %a, %e, %u : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    %next = arith.addi %i, %c64 : index
    scf.yield %next, %f : index, tensor<128x64xf32>
  }
  %d = arith.addf %w#1, %w#1 : tensor<128x64xf32>
"""),
        "scf.for and scf.if|control flow is scf.for",
    ),
    "while loop of scalars": (
        kernel("""  %w = scf.while (%i = %c1) : (index) -> (index) {
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i : index
  } do {
  ^bb0(%i: index):
    %next = arith.addi %i, %i : index
    scf.yield %next : index
  }
  %e = tile.load %y[%w, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %e : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
"""),
        "control flow is scf.for and scf.if",
    ),
    "no iterations": (
        kernel("""  %d = scf.for %i = %c64 to %c0 step %c1 iter_args(%u = %zero) -> (tensor<128x64xf32>) {
    %f = tile.dot %a, %b, %u : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    scf.yield %f : tensor<128x64xf32>
  }
"""),
        None,
    ),
    "step of 0": (
        kernel("""  %d = scf.for %i = %c0 to %n step %c0 iter_args(%u = %zero) -> (tensor<128x64xf32>) {
    %f = tile.dot %a, %b, %u : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    scf.yield %f : tensor<128x64xf32>
  }
"""),
        None,
    ),
    "unsigned loop over i64": (
        kernel("""  %n64 = arith.index_cast %n : index to i64
  %z64 = arith.constant 0 : i64
  %s64 = arith.constant 64 : i64
  %d = scf.for unsigned %i = %z64 to %n64 step %s64 iter_args(%u = %zero) -> (tensor<128x64xf32>) : i64 {
    %j = arith.index_cast %i : i64 to index
    %e = tile.load %y[%j, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
    %f = tile.dot %a, %e, %u : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
    scf.yield %f : tensor<128x64xf32>
  }
"""),
        None,
    ),
    # Scalars and elements.
    "i64 and index scalars": (
        kernel("""  %i = arith.index_cast %n : index to i64
  %big = arith.constant 4294967296 : i64
  %sum = arith.addi %i, %big : i64
  %f = arith.sitofp %sum : i64 to f32
  %t = tile.splat %f : f32 -> tensor<128x64xf32>
  %d = tile.dot %a, %b, %t : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
"""),
        None,
    ),
    "index beyond 32 bits": (
        kernel("""  %huge = arith.constant 4294967296 : index
  %at = arith.addi %row, %huge : index
  %e = tile.load %x[%at, %c0] : !tile.view<[M, 64], f16> -> tensor<128x64xf16>
  %d = tile.dot %e, %b : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
"""),
        "uses the index 4294967296; indices have 32 bits on the machine",
    ),
    "huge float": (
        kernel("  %h = arith.constant dense<1.0e300> : tensor<128x64xf32>\n"
               "  %d = tile.dot %a, %b, %h : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>\n"),
        None,
    ),
    "tile of indices": (
        kernel(DOT.replace("%d", "%f") + """  %i = tile.iota %c0 axis 1 : tensor<128x64xi32>
  %j = arith.index_cast %i : tensor<128x64xi32> to tensor<128x64xindex>
  %k2 = arith.addi %j, %j : tensor<128x64xindex>
  %l = arith.index_cast %k2 : tensor<128x64xindex> to tensor<128x64xi32>
  %g = arith.sitofp %l : tensor<128x64xi32> to tensor<128x64xf32>
  %d = arith.addf %f, %g : tensor<128x64xf32>
"""),
        "tiles in registers have a static shape and elements",
    ),
    "tile of i16": (
        kernel(DOT.replace("%d", "%f") + """  %i = arith.constant dense<3> : tensor<128x64xi16>
  %n16 = arith.fptosi %f : tensor<128x64xf32> to tensor<128x64xi16>
  %j = arith.addi %n16, %i : tensor<128x64xi16>
  %g = arith.sitofp %j : tensor<128x64xi16> to tensor<128x64xf32>
  %d = arith.addf %f, %g : tensor<128x64xf32>
"""),
        "tiles in registers have a static shape and elements",
    ),
    "tile of i64": (
        kernel(DOT.replace("%d", "%f") + """  %i = tile.iota %c0 axis 1 : tensor<128x64xi32>
  %w = arith.extsi %i : tensor<128x64xi32> to tensor<128x64xi64>
  %j = arith.muli %w, %w : tensor<128x64xi64>
  %g = arith.sitofp %j : tensor<128x64xi64> to tensor<128x64xf32>
  %d = arith.addf %f, %g : tensor<128x64xf32>
"""),
        None,
    ),
    "tile of f64": (
        kernel(DOT.replace("%d", "%f") + """  %w = arith.extf %f : tensor<128x64xf32> to tensor<128x64xf64>
  %j = arith.mulf %w, %w : tensor<128x64xf64>
  %d = arith.truncf %j : tensor<128x64xf64> to tensor<128x64xf32>
"""),
        "tiles in registers have a static shape and elements",
    ),
    "rank 3": (
        kernel(DOT.replace("%d", "%f") + """  %w = tile.splat %s : f32 -> tensor<4x4x4xf32>
  %v = arith.addf %w, %w : tensor<4x4x4xf32>
  %r = arith.negf %v : tensor<4x4x4xf32>
  %d = arith.addf %f, %f : tensor<128x64xf32>
"""),
        None,
    ),
    "17 rows of rank 1": (
        kernel(DOT + """  %r = tile.load %lse[%row] : !tile.view<[M], f32> -> tensor<17xf32>
  %t = arith.addf %r, %r : tensor<17xf32>
  tile.store %t, %lse[%row] : tensor<17xf32>, !tile.view<[M], f32>
""", head=HEAD.replace("%s: f32", "%lse: !tile.view<[M], f32>")),
        "a tile of 17 rows cannot be divided|makes a tile of 17 rows",
    ),
    "store of one constant": (
        kernel(DOT + """  %r = arith.constant dense<1.0> : tensor<1xf32>
  tile.store %r, %lse[%row] : tensor<1xf32>, !tile.view<[M], f32>
""", head=HEAD.replace("%s: f32", "%lse: !tile.view<[M], f32>")),
        "a tile of 1 rows cannot be divided|makes a tile of 1 rows",
    ),
    "unsigned mask": (
        kernel(DOT.replace("%d", "%f") + """  %i = tile.iota %c0 axis 1 : tensor<128x64xi32>
  %n32 = arith.index_cast %n : index to i32
  %lim = tile.splat %n32 : i32 -> tensor<128x64xi32>
  %in = arith.cmpi ult, %i, %lim : tensor<128x64xi32>
  %d = arith.select %in, %f, %zero : tensor<128x64xi1>, tensor<128x64xf32>
"""),
        None,
    ),
    "index tile used in two branches": (
        kernel(DOT.replace("%d", "%f") + """  %i = tile.iota %n axis 1 : tensor<128x64xi32>
  %big = arith.cmpi sgt, %n, %c64 : index
  %g = scf.if %big -> (tensor<128x64xf32>) {
    %t = arith.sitofp %i : tensor<128x64xi32> to tensor<128x64xf32>
    scf.yield %t : tensor<128x64xf32>
  } else {
    %t = arith.uitofp %i : tensor<128x64xi32> to tensor<128x64xf32>
    scf.yield %t : tensor<128x64xf32>
  }
  %d = arith.addf %f, %g : tensor<128x64xf32>
"""),
        None,
    ),
    "constant of different elements": (
        kernel(DOT.replace("%d", "%f") + """  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]> : tensor<8xf32>
  %w2 = tile.broadcast %w axis 0 : tensor<8xf32> -> tensor<128x8xf32>
  %r = tile.reduce max %w2 axis 1 : tensor<128x8xf32> -> tensor<128xf32>
  %rb = tile.broadcast %r axis 1 : tensor<128xf32> -> tensor<128x64xf32>
  %d = arith.addf %f, %rb : tensor<128x64xf32>
"""),
        "is a constant tile of different elements",
    ),
    "row constant of different elements": (
        kernel(DOT.replace("%d", "%f") + """  %w = arith.constant dense<[""" + ", ".join(f"{i}.0" for i in range(128)) + """]> : tensor<128xf32>
  %wb = tile.broadcast %w axis 1 : tensor<128xf32> -> tensor<128x64xf32>
  %d = arith.mulf %f, %wb : tensor<128x64xf32>
"""),
        "is a constant tile of different elements; build it from tile.iota",
    ),
    "reduction along rows": (
        kernel(DOT + """  %r = tile.reduce sum %d axis 0 : tensor<128x64xf32> -> tensor<64xf32>
  tile.store %r, %z[%row, %c0] : tensor<64xf32>, !tile.view<[M, 64], f32>
"""),
        None,
    ),
    "rows as columns": (
        kernel(DOT.replace("%d", "%f") + """  %half = tile.load %z[%c0, %c0] : !tile.view<[M, 64], f32> -> tensor<64xf32>
  %cb = tile.broadcast %half axis 0 : tensor<64xf32> -> tensor<128x64xf32>
  %rb = tile.broadcast %half axis 1 : tensor<64xf32> -> tensor<64x64xf32>
  tile.store %rb, %z[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>
  %d = arith.addf %f, %cb : tensor<128x64xf32>
"""),
        "needs a (rank-1 )?tile both",
    ),
    "unknown function": (
        kernel(DOT.replace("%d", "%f") + "  %d = math.atan2 %f, %f : tensor<128x64xf32>\n"),
        "'math.atan2' op has no instructions on the machine, whatever the schedule; instead: a polynomial",
    ),
    "two results": (
        kernel(DOT.replace("%d", "%f") + """  %i = tile.iota %n axis 1 : tensor<128x64xi32>
  %lo, %hi = arith.mului_extended %i, %i : tensor<128x64xi32>
  %g = arith.sitofp %hi : tensor<128x64xi32> to tensor<128x64xf32>
  %d = arith.addf %f, %g : tensor<128x64xf32>
"""),
        "cannot be lowered to machine code",
    ),
    "16-bit arithmetic": (
        kernel(DOT.replace("%d", "%f") + """  %h = arith.truncf %f : tensor<128x64xf32> to tensor<128x64xf16>
  %h2 = arith.addf %h, %h : tensor<128x64xf16>
  %d = arith.extf %h2 : tensor<128x64xf16> to tensor<128x64xf32>
"""),
        "computes on tiles of 16 or 8 bits",
    ),
    "address out of a tile": (
        kernel(DOT.replace("%d", "%f") + """  %i = builtin.unrealized_conversion_cast %f : tensor<128x64xf32> to index
  %e = tile.load %y[%i, %c0] : !tile.view<[N, 64], f16> -> tensor<64x64xf16>
  %d = tile.dot %a, %e, %f : tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
"""),
        "the address of a load depends on the elements of this tile",
    ),
    # Launches.
    "950 scalars": (many_scalars(950), None),
    "1,100 scalars": (many_scalars(1100), r"takes [0-9]+ bytes of launch parameters, and a launch has 4096: [0-9]+ of tensor maps, "
                      "4400 of scalars and"),
    # Functions.
    "calls of calls": (nested_functions(100, 0), "with this call of 'f[0-9]+' there are calls nested more than 64 levels deep"),
    "loops of calls": (nested_functions(50, 10), "with this call of 'f2[0-9]' there are regions nested more than 256 levels deep"),
    "no functions called": (nested_functions(1, 1), None),
    "branch in a function": ("func.func @f() {\n  cf.br ^bb1\n^bb1:\n  func.return\n}\n" + kernel(DOT), "cf.br"),
    # Text.
    "empty file": ("", "has no kernel"),
    "only a comment": ("// nothing\n", "has no kernel"),
    "unknown dialect": (kernel('  %u = "mystery.op"() : () -> f32\n' + DOT), "unregistered dialect"),
    "unknown operation": (kernel("  %u = tile.conv %a : tensor<128x64xf16>\n" + DOT), "tile.conv"),
    "operation after the terminator": (kernel(DOT, store="  tile.return\n" + STORE), "return|terminator"),
    "unfinished": (kernel(DOT)[:-2], "this '{' has no '}'"),
    "value from nowhere": (kernel("  %d = arith.addf %nothing, %zero : tensor<128x64xf32>\n"), "there is no value '%nothing'"),
    "two kernels of one name": (kernel(DOT) + kernel(DOT), "redefinition of symbol"),
    "the name of the shared memory": (kernel(DOT).replace("@k(", "@tessera_shared("), "redefinition of symbol named 'tessera_shared'"),
    "a name with a space": (kernel(DOT).replace("@k(", '@"a b"('), "is named 'a b'; the names of kernels have"),
    "no arguments": ("tile.kernel @k() grid(%m = 4) {\n}\n", "stores nothing"),
    "a name of the assembler": (kernel(DOT).replace("@k(", "@a.b("), "is named 'a.b'; the names of kernels have"),
    "nul bytes": ("\0\0\0", "a source is text, and this is a NUL byte"),
}


def check(name, source, expected):
    """Returns what is wrong with how the compiler takes `source`, or nothing."""
    path = WORK / (re.sub(r"\W", "-", name) + ".tile")
    path.write_text(source)
    command = ["tessera", "compile", str(path), "--emit", "ptx", "-o", str(path.with_suffix(".ptx"))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "does not end"
    if done.returncode == 0:
        if expected is not None and not expected.startswith("|"):
            return "compiles, and should not"
        return None if ".entry" in path.with_suffix(".ptx").read_text() else "gives no PTX"
    if done.returncode != 3:
        return f"exit code {done.returncode}: {done.stderr[-600:]}"
    if expected is None:
        return f"is refused: {done.stderr[:600]}"
    # That there is no kernel is said of the file.
    place = "" if expected == "has no kernel" else r":\d+:\d+"
    errors = re.findall(re.escape(str(path)) + place + r": error: (.+)", done.stderr)
    if not any(re.search(expected.removeprefix("|"), error) for error in errors):
        return f"no located error says {expected!r}: {done.stderr[:600]}"
    return None


failures = [f"{name}: {wrong}" for name, (source, expected) in CASES.items() if (wrong := check(name, source, expected))]
sys.exit("\n".join(failures) or 0)
