// The tile dialect: what the author of a kernel writes.

#ifndef TESSERA_DIALECTS_TILE_TILEDIALECT_TD
#define TESSERA_DIALECTS_TILE_TILEDIALECT_TD

include "mlir/IR/DialectBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::tessera::tile";
  let summary = "Kernels as sequential programs over tiles";
  let description = [{
    A kernel is a sequential program over tiles plus a schedule that is data. A tile is a value: a builtin
    `tensor` of static shape, so `arith`, `math` and `scf` serve as they are. This dialect adds what they
    lack: the kernel with its grid and schedule, views of global tensors, load and store, dot with f32
    accumulation, reduce, broadcast, splat, transpose and iota. No thread, barrier, buffer, layout or
    register appears here.

    A grid point runs the kernel body once, from top to bottom; grid points run in no particular order and
    may not communicate. Floating-point `arith` and `math` operations may be contracted (`a * b + c` rounded
    once), and f32 values below the smallest normal number may be flushed to zero. `arith.sitofp` of an index
    tile to f32 is exact up to 2^24 and within a unit in the last place beyond. Divisions and functions of
    `math` have the errors that [the language](../language.md#exactness) lists, and those of the machine's
    approximations with `fastmath<afn>`. Exponentials that the schedule computes by polynomials are within 2^-21
    where results of f32 are made of them otherwise than through a rounding to 16 bits.

    These attributes are on operations of other dialects, and one is on kernels; the verifier refuses them elsewhere and with
    other values:

    | attribute | on | value |
    |---|---|---|
    | `tile.overridable` | `func.func` | a unit: a source that imports this one may define the function again |
    | `tile.gradient_of` | `func.func` | a function's name: this one is its gradient, which `tile-differentiate` writes where it has no body |
    | `tile.with_respect_to` | beside `tile.gradient_of` | an array of names: the gradient is that of these arguments of the kernel, and is added to memory |
    | `tile.zero_sum_over` | beside `tile.with_respect_to` | an i64, the number of an argument: over its values the cotangents of the results sum to 0 |
    | `tile.parameters` | the module | a dictionary: the values of the source's parameters |
    | `tile.boundary` | `scf.for` | a unit: the loop runs only iterations at the boundary of a mask |
    | `tile.polynomial` | `math.exp2`, `math.exp` of f32 | an i64, 1 to 16: how many of 16 elements are polynomials |
    | `tile.few_tiles` | `tile.kernel` | a unit: launches have hardly more tiles than the GPU has multiprocessors, as the class of shapes says |
    | `tile.polynomial_precise` | beside `tile.polynomial` | a unit: its polynomials are for results that stay f32 |
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"
  ];
  let discardableAttrs = (ins
    "::mlir::UnitAttr":$overridable, "::mlir::FlatSymbolRefAttr":$gradient_of, "::mlir::ArrayAttr":$with_respect_to,
    "::mlir::IntegerAttr":$zero_sum_over,
    "::mlir::DictionaryAttr":$parameters, "::mlir::UnitAttr":$boundary, "::mlir::IntegerAttr":$polynomial, "::mlir::UnitAttr":$polynomial_precise,
    "::mlir::UnitAttr":$few_tiles);
  let hasOperationAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

#endif // TESSERA_DIALECTS_TILE_TILEDIALECT_TD
