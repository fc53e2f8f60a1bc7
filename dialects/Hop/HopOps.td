// Operations of the hop dialect: the kernel, its roles and the stages of a timeline. The others are in the files that
// this one includes.

#ifndef TESSERA_DIALECTS_HOP_HOPOPS_TD
#define TESSERA_DIALECTS_HOP_HOPOPS_TD

include "dialects/Hop/HopOpBase.td"
include "dialects/Hop/HopPipes.td"
include "dialects/Hop/HopProducts.td"
include "dialects/Hop/HopStores.td"
include "dialects/Hop/HopGrid.td"
include "dialects/Hop/HopBarriers.td"

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Hop_KernelOp : Hop_Op<"kernel", [
    IsolatedFromAbove, Symbol, SymbolTable, NoTerminator, SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "A kernel as roles of one thread block";
  let description = [{
    Arguments, grid and requirements are those of the `tile.kernel` it came from, and so are the block
    arguments: first the kernel's arguments, then the grid indices, 1 to 3 of them. The body declares pipes (later
    buffers and barriers) and then the roles, of at most 8 warpgroups in all. `schedule` says what the passes do;
    `shared_bytes` is how much shared memory a thread block has, once `hop-allocate-shared-memory` has run.

    Refused are roles that cannot have the registers they ask for, as setmaxnreg divides what the launch gives the block
    (PTX ISA 9.7.20.5), and a pipe, buffer or array of barriers that an operation takes from elsewhere than its
    declaration.

    With `spread` the blocks of a cluster run one grid point and have its tiles together: the digits of warpgroups of a layout
    count those of all blocks, the ones of a block first. With `parts` they run one grid point too, each a part of a range with
    tiles of its own (`hop.from_block`), and the last one of a cluster stores.

    ```mlir
    hop.kernel @copy attributes {argument_names = ["x", "y"],
        argument_types = [!tile.view<[M, 64], bf16>, !tile.view<[M, 64], bf16>],
        grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<consumers = 1>} {
    ^bb0(%x: !tile.view<[M, 64], bf16>, %y: !tile.view<[M, 64], bf16>, %m: index):
      hop.role @rows warpgroups(1) {
      ^bb0(%wg: index):
        %c0 = arith.constant 0 : index
        %c64 = arith.constant 64 : index
        %row = arith.muli %m, %c64 : index
        %t = tile.load %x[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16, #hop.layout<accumulator>>
        tile.store %t, %y[%row, %c0] : tensor<64x64xbf16, #hop.layout<accumulator>>, !tile.view<[M, 64], bf16>
      }
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeArrayAttr:$argument_types,
    StrArrayAttr:$argument_names,
    ArrayAttr:$grid,
    OptionalAttr<ArrayAttr>:$requirements,
    Tile_ScheduleAttr:$schedule,
    OptionalAttr<I64Attr>:$shared_bytes,
    UnitAttr:$spread, UnitAttr:$parts);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumArguments() { return getArgumentTypes().size(); }
    ::mlir::BlockArgument getArgument(unsigned i) { return getBody().getArgument(i); }
    ::mlir::BlockArgument getGridIndex(unsigned i) {
      return getBody().getArgument(getNumArguments() + i);
    }
    ::llvm::StringRef getArgumentName(unsigned i) {
      return ::llvm::cast<::mlir::StringAttr>(getArgumentNames()[i]).getValue();
    }
    /// Warpgroups of the thread block.
    int64_t getNumWarpgroups();
    /// Records of a timeline that a thread block makes: one of each warpgroup, and of each elected role.
    int64_t getNumRecords();
    /// The timeline that the kernel records; null when it records none.
    ::tessera::hop::TimelineOp getTimeline();
    /// Whether its launches have probes.
    bool hasProbes();
    /// Thread blocks of a cluster.
    int64_t getClusterSize();
    /// Whether a cluster runs one grid point.
    bool sharesPoint() { return getSpread() || getParts(); }
    /// Thread blocks that have each tile together.
    int64_t getTileBlocks() { return getSpread() ? getClusterSize() : 1; }
  }];
}

def Hop_RoleOp : Hop_Op<"role", [NoTerminator, SingleBlock, HasParent<"KernelOp">, Symbol]> {
  let summary = "A program of the thread block: of whole warpgroups, of whole warps, or of one elected thread";
  let description = [{
    With `warpgroups` the role runs on every thread of so many warpgroups, which no other role has; the block argument
    is the index of the warpgroup within the role. Tiles live in the registers of such a role.

    An `elected` role runs on one thread of a warp, which has no tiles: it starts copies and hands on scalars. With
    `warps` a role runs on every thread of 1 to 3 warps. It moves tiles within shared memory and has none in registers,
    whose layouts are those of warpgroups. All such roles of a kernel share one warpgroup, in their order: a warp for
    each elected one, so that there are at most 4 warps. It stands where the first of them does; the threads that no
    role has leave at once. The block argument is 0.

    `registers` is the number of registers of a thread: a multiple of 8 from 24 to 256 (PTX ISA 9.7.20.5, setmaxnreg).
    Where it is less than what the launch gives each thread, the warpgroup gives the rest back; where it is more, the
    warpgroup takes what others gave back. Without it the launch's share is kept. Roles that share a warpgroup say the
    same. A kernel with one role has them from its launch. Where all roles say theirs, a multiprocessor holds as many blocks
    at a time as they leave room for (PTX ISA 11.4.5, .minnctapersm).

    ```mlir
    hop.role @loads elected registers(24) {
    ^bb0(%wg: index):
    }
    hop.role @moves warps(3) registers(24) {
    ^bb0(%wg: index):
      hop.warpgroup_sync
    }
    hop.role @products warpgroups(2) registers(240) {
    ^bb0(%wg: index):
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$warpgroups, OptionalAttr<I64Attr>:$warps,
                       OptionalAttr<I64Attr>:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
    "$sym_name custom<RoleThreads>($warpgroups, $warps) (`registers` `(` $registers^ `)`)? "
    "attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// One thread runs it, and not whole warps.
    bool isElected() { return !getWarpgroups() && !getWarps(); }
    /// It has warps of the warpgroup that such roles share, and no warpgroups of its own.
    bool sharesWarpgroup() { return !getWarpgroups(); }
    /// Warpgroups that run it: 1 of a role that shares it.
    int64_t getNumWarpgroups() { return getWarpgroups().value_or(1); }
    /// Warps of each warpgroup that run it: 1 of an elected role.
    int64_t getNumWarps();
    /// Threads that run it.
    int64_t getNumThreads();
  }];
}

def Hop_ElectedOp : Hop_Op<"elected", [Pure, Hop_OnWarps]> {
  let summary = "True in one thread of the role's first warpgroup";
  let description = [{
    For roles that load their own tiles (`producer = none`): the thread that is elected starts the copies.
    Runs on all threads of the role. `warpgroup` is the argument of the role around it; another value is refused.

    ```mlir
    %elected = hop.elected %wg
    scf.if %elected {
      hop.pipe.load %k, %K[%row, %c0] : !hop.pipe<tensor<128x64xbf16>, 2>, !tile.view<[N, 64], bf16>
    }
    ```
  }];
  let arguments = (ins Index:$warpgroup);
  let results = (outs I1:$result);
  let assemblyFormat = "$warpgroup attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Speculation
//===----------------------------------------------------------------------===//

def Hop_AttemptOp : Hop_Op<"attempt", [NoTerminator, SingleBlock]> {
  let summary = "A role's program of a tile of the grid, in a fast form that may not hold and an exact one";
  let description = [{
    Every role of a kernel has it or none. The exact region runs too, in every role, when the predicate of a
    `hop.doubt` in the fast region was false in some thread of the thread block. `hop-retry` replaces it.

    ```mlir
    hop.attempt {
      hop.doubt %valid : tensor<64xi1, #hop.layout<row>>
    } exact {
      hop.warpgroup_sync
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$fast, SizedRegion<1>:$exact);
  let assemblyFormat = "attr-dict-with-keyword custom<SpeculationRegions>($fast, $exact)";
}

def Hop_DoubtOp : Hop_Op<"doubt", [Hop_OnWarps]> {
  let summary = "Asks for the exact program of this tile of the grid unless `valid` is true in every element";
  let description = [{
    In the fast region of a `hop.attempt`, on all threads of a role that is not elected. `valid` is an i1 or a tile of i1 of any
    layout; each thread looks at the elements that it holds, and one that is false is enough. `hop-retry` makes a
    `hop.flag` of it.

    ```mlir
    hop.attempt {
      hop.doubt %valid : i1
    } exact {
      hop.warpgroup_sync
    }
    ```
  }];
  let arguments = (ins AnyTypeOf<[I1, Hop_Fragment]>:$valid);
  let assemblyFormat = "$valid attr-dict `:` type($valid)";
}

def Hop_FlagOp : Hop_Op<"flag"> {
  let summary = "Sets the bits of `value` in a slot unless `valid` is true in every element";
  let description = [{
    By every thread for which it is not: an atomic or of shared memory (PTX ISA 9.7.13.6, red), so that any
    number of threads may do it at once. In a cluster the slot is set in every thread block. The buffer is of
    `tensor<1xi32>`; `index` counts its slots.

    ```mlir
    hop.flag %valid, %one, %doubted[%phase] : tensor<64xi1, #hop.layout<row>>, !hop.buffer<tensor<1xi32>, 2>
    ```
  }];
  let arguments = (ins AnyTypeOf<[I1, Hop_Fragment]>:$valid, I32:$value, Hop_BufferType:$buffer, I32:$index);
  let assemblyFormat =
    "$valid `,` $value `,` $buffer `[` $index `]` attr-dict `:` type($valid) `,` qualified(type($buffer))";
}

//===----------------------------------------------------------------------===//
// Timelines
//===----------------------------------------------------------------------===//

def Hop_TimelineOp : Hop_Op<"timeline", [HasParent<"KernelOp">]> {
  let summary = "Declares a record of the stages that warpgroups go through";
  let description = [{
    Each warpgroup, and each role that shares one, of the thread blocks numbered `first` to `first + blocks - 1` (x varies fastest) records the
    last `events` stages that it entered, a power of two, in memory of the launch (docs/seeing.md). A kernel has at most
    one; what it records is at most 2^31 bytes.

    ```mlir
    hop.timeline blocks 4 from 0 events 1024 stages [#hop.stage<wait, "k.full", line = 82, column = 11>]
    ```
  }];
  let arguments = (ins I64Attr:$blocks, I64Attr:$first, I64Attr:$events,
                       TypedArrayAttrBase<Hop_StageAttr, "stages">:$stages);
  let assemblyFormat = "`blocks` $blocks `from` $first `events` $events `stages` $stages attr-dict";
  let hasVerifier = 1;
}

def Hop_MarkOp : Hop_Op<"mark"> {
  let summary = "Enters a stage of the kernel's timeline";
  let description = [{
    Ends the stage before it. `stage` is the number of one of the timeline's stages; another number is refused, and so
    is a mark in a kernel without a timeline. `at` is the index of the innermost loop around it.

    ```mlir
    hop.timeline blocks 4 from 0 events 1024 stages [#hop.stage<wait, "k.full", line = 82, column = 11>]
    hop.mark 0 at %j : index
    ```
  }];
  let arguments = (ins I64Attr:$stage, Optional<AnyTypeOf<[Index, I32]>>:$at);
  let assemblyFormat = "$stage (`at` $at^ `:` type($at))? attr-dict";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECTS_HOP_HOPOPS_TD
