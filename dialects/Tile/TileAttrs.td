// Attributes of the tile dialect: grid, requirements and the schedule.

#ifndef TESSERA_DIALECTS_TILE_TILEATTRS_TD
#define TESSERA_DIALECTS_TILE_TILEATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "dialects/Tile/TileDialect.td"

def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "How tile.reduce combines elements", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>,
    I32EnumAttrCase<"maximum", 3>, I32EnumAttrCase<"minimum", 4>]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_StoreKind : I32EnumAttr<"StoreKind", "How a tile of results reaches global memory", [
    I32EnumAttrCase<"direct", 0>, I32EnumAttrCase<"tma", 1>]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_StagingKind : I32EnumAttr<"StagingKind", "Whose shared memory holds results on their way", [
    I32EnumAttrCase<"own", 0>, I32EnumAttrCase<"shared", 1>]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_OperandKind : I32EnumAttr<"OperandKind", "Where a computed tile is that a dot multiplies", [
    I32EnumAttrCase<"registers", 0>, I32EnumAttrCase<"shared", 1>]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_PersistentKind : I32EnumAttr<"PersistentKind", "How thread blocks get the tiles of the grid", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Static", 1, "static">,
    I32EnumAttrCase<"Dynamic", 2, "dynamic">]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_OrderKind : I32EnumAttr<"OrderKind", "In which order the tiles of the grid run", [
    I32EnumAttrCase<"Linear", 0, "linear">, I32EnumAttrCase<"Ascending", 1, "ascending">,
    I32EnumAttrCase<"Descending", 2, "descending">]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_JoinKind : I32EnumAttr<"JoinKind", "On which side of the dot before it work on a later dot's operand stands", [
    I32EnumAttrCase<"Before", 0, "before">, I32EnumAttrCase<"After", 1, "after">]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_GridDimAttr : AttrDef<Tile_Dialect, "GridDim"> {
  let mnemonic = "grid_dim";
  let summary = "The number of grid points along one dimension: ceil(extent / divisor)";
  let description = [{
    `extent` is a StringAttr naming a run-time dimension of the kernel's views or an i64 IntegerAttr;
    `divisor` is the tile size along it, at least 1.
  }];
  let parameters = (ins "::mlir::Attribute":$extent, "int64_t":$divisor);
  let assemblyFormat = "`<` $extent `,` $divisor `>`";
  let genVerifyDecl = 1;
}

def Tile_DividesAttr : AttrDef<Tile_Dialect, "Divides"> {
  let mnemonic = "divides";
  let summary = "A launch requirement: `factor` times the extent `divisor` divides the extent `dividend`";
  let parameters = (ins "::mlir::StringAttr":$divisor, "::mlir::StringAttr":$dividend,
                        DefaultValuedParameter<"int64_t", "1">:$factor);
  let assemblyFormat = "`<` $divisor `,` $dividend (`,` $factor^)? `>`";
  let genVerifyDecl = 1;
}

def Tile_ScheduleAttr : AttrDef<Tile_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "How the compiler runs a kernel on the machine";
  let description = [{
    Every field is optional; `tile-choose-schedule` fills in what is absent, and `--schedule` of the command
    line overrides what is written. A schedule never changes what a kernel computes, except for the order of
    floating-point accumulation and, with `polynomial_exp`, the last bits of numbers that are rounded to 16 bits.

    | field | values | meaning |
    |---|---|---|
    | `warp_specialize` | bool | loads run in a warpgroup of their own (FlashAttention-3, section 3.1) |
    | `consumers` | 1..4 | warpgroups that compute; the rows of the tile are divided among them |
    | `stages` | 1..8, or a list | slots of the pipes of tiles that are loaded in a loop: one number for all, or `[3, 2]` with one for each, in the order of the program |
    | `overlap` | 1..3 | iterations that a step of the loop works on. 1: each dot waits before the next operation (Algorithm 1); 2: the later dots of an iteration run under the elementwise work of the next (Algorithm 2); 3: and the first dots of the one after that do too (Algorithm 4) |
    | `lead` | 0, 1 | iterations by which the dots that need no other dot run ahead of the work on their results: with 1, two of those results live in registers (S double-buffered). 0 with `overlap = 1`, 1 with `overlap = 3` |
    | `rescale` | before, after | where what a later dot accumulates onto is scaled: before that dot, in its step, or after the dot of the iteration before it. `after` takes later dots in a step of their own: `overlap = 2, lead = 0` or `overlap = 3` |
    | `pack` | before, after | likewise, where the computed operand of a later dot is rounded. Before, it crosses to the step of the dot unrounded, in twice the registers |
    | `operands` | registers, shared | where the computed first operand of a dot is (P of attention) while the dot runs. `shared` takes memory of the thread block, and the registers are free |
    | `polynomial_exp` | 0..16 | of 16 exponentials, how many are polynomials (FMA pipes) and not special functions, where the results are only rounded to 16 bits and summed (`tile-polynomial-exp`) |
    | `pin_waits` | bool | work that the program has before a wait for a dot stays before it, under the dot, where the assembler would move the wait up |
    | `pingpong` | bool | consumer warpgroups take turns at issuing dots (section 3.1, Figure 1) |
    | `split` | bool | iterations that need no mask run in a loop without one, and masks outside of loops are jumped over where no element needs them |
    | `speculate` | bool | the fast region of a `tile.speculate` runs first; false: the exact one alone |
    | `store` | direct, tma | results go from registers, or through shared memory and a bulk tensor store |
    | `staging` | own, shared | with `store = tma`, where in shared memory results are on their way: in memory of their own, or in slots that the loads of the tile that is read last (V of attention) lend at the end of each tile of the grid, until the copy has read them (FlashAttention-3, section 3.1). `shared` takes `warp_specialize = true` |
    | `persistent` | none, static, dynamic | a thread block for each tile of the grid; one for each multiprocessor that takes every n-th tile; or that takes the next tile from a counter |
    | `order` | linear, ascending, descending | which tile is the n-th: the first grid dimension fastest; or slowest, from its first or from its last index, within a section of the other indices. `descending` is longest first for a causal mask. With `persistent = none` the order is the launch's: `linear` |
    | `section` | 1, 2, 4, 8, 16 | in an order that is not linear, how many tiles a thread block has in a section: so many of the other grid indices run together |
    | `cluster` | 1, 2, 4 | thread blocks that work together on tiles that neighbour in the first grid dimension; a tile that all of them load comes from global memory once, each block loading its part for all (TMA multicast). 1: each block by itself |
    | `outer_stages` | 1, 2 | slots of the pipes of tiles that are loaded once for each tile of the grid |
    | `l2_hints` | bool | copies and stores tell the L2 cache what is read again (K and V of attention) and what is not (Q, O) |
    | `pdl` | bool | programmatic dependent launch: the launch may begin while the one before it in the stream ends, and waits for its results where it first needs memory |
    | `producer_registers`, `consumer_registers` | multiples of 8 in 24..256 | registers per thread of each role (PTX `setmaxnreg`). `setmaxnreg` divides what the launch gives the block: a thread of the producer and one of each consumer have at most 496, 504, 512 and 480 together, with 1 to 4 consumers, and the producer no more than a thread starts with (248, 168, 128 and 96) |

    ```mlir
    #tile.schedule<consumers = 2, stages = 2, overlap = 2, pingpong = true>
    ```
  }];
  let parameters = (ins
    OptionalParameter<"std::optional<bool>">:$warpSpecialize,
    OptionalParameter<"std::optional<int64_t>">:$consumers,
    OptionalParameter<"std::optional<::tessera::tile::StageCounts>">:$stages,
    OptionalParameter<"std::optional<int64_t>">:$outerStages,
    OptionalParameter<"std::optional<int64_t>">:$overlap,
    OptionalParameter<"std::optional<int64_t>">:$lead,
    OptionalParameter<"std::optional<::tessera::tile::JoinKind>">:$rescale,
    OptionalParameter<"std::optional<::tessera::tile::JoinKind>">:$pack,
    OptionalParameter<"std::optional<::tessera::tile::OperandKind>">:$operands,
    OptionalParameter<"std::optional<int64_t>">:$polynomialExp,
    OptionalParameter<"std::optional<bool>">:$pinWaits,
    OptionalParameter<"std::optional<bool>">:$pingpong,
    OptionalParameter<"std::optional<bool>">:$split,
    OptionalParameter<"std::optional<bool>">:$speculate,
    OptionalParameter<"std::optional<::tessera::tile::StoreKind>">:$store,
    OptionalParameter<"std::optional<::tessera::tile::StagingKind>">:$staging,
    OptionalParameter<"std::optional<::tessera::tile::PersistentKind>">:$persistent,
    OptionalParameter<"std::optional<::tessera::tile::OrderKind>">:$order,
    OptionalParameter<"std::optional<int64_t>">:$section,
    OptionalParameter<"std::optional<int64_t>">:$cluster,
    OptionalParameter<"std::optional<bool>">:$l2Hints,
    OptionalParameter<"std::optional<bool>">:$pdl,
    OptionalParameter<"std::optional<int64_t>">:$producerRegisters,
    OptionalParameter<"std::optional<int64_t>">:$consumerRegisters);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Parses "consumers=2,overlap=1"; reports the bad field and what would work through `emitError`.
    static ::mlir::FailureOr<ScheduleAttr>
    parseText(::mlir::MLIRContext *context, ::llvm::StringRef text,
              ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError);
    /// This schedule with each field that `other` sets taken from `other`.
    ScheduleAttr overriddenBy(ScheduleAttr other) const;
    /// True when no field is absent.
    bool isComplete() const;
  }];
}

#endif // TESSERA_DIALECTS_TILE_TILEATTRS_TD
