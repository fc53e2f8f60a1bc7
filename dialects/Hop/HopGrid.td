// Which tiles of the grid a thread block computes.

#ifndef TESSERA_DIALECTS_HOP_HOPGRID_TD
#define TESSERA_DIALECTS_HOP_HOPGRID_TD

include "dialects/Hop/HopOpBase.td"

class Hop_GridValueOp<string mnemonic, list<Trait> traits = []> : Hop_Op<mnemonic, traits> {
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Hop_BlockIndexOp : Hop_GridValueOp<"block_index", [Pure]> {
  let summary = "The index of this thread block in the launch";
  let description = [{
    Of a persistent kernel, whose launch has one dimension (`%ctaid.x`, PTX ISA 10). The same on all threads.

    ```mlir
    %tile = hop.block_index
    ```
  }];
}

def Hop_BlockCountOp : Hop_GridValueOp<"block_count", [Pure]> {
  let summary = "The number of thread blocks of the launch in x";
  let description = [{
    All that a persistent kernel has (`%nctaid.x`, PTX ISA 10). The same on all threads.

    ```mlir
    %blocks = hop.block_count
    ```
  }];
}

def Hop_ClusterRankOp : Hop_GridValueOp<"cluster_rank", [Pure]> {
  let summary = "The index of this thread block in its cluster";
  let description = [{
    `%cluster_ctarank`, PTX ISA 10. The same on all threads.

    ```mlir
    %rank = hop.cluster_rank
    ```
  }];
}

def Hop_NextTileOp : Hop_GridValueOp<"next_tile", [Hop_OnOneThread]> {
  let summary = "Takes the number of a tile from the launch's counter";
  let description = [{
    Numbers from the number of thread blocks on, in order; each is given out once in a launch. In clusters the first
    block of each takes a number, from the number of clusters on; the result of the others is undefined. In an
    elected role, an addition to global memory (PTX ISA 9.7.13.5, atom). With `all` numbers begin at 0: a block has the
    number of its first tile from the counter too, so that whoever has a smaller number has started.

    ```mlir
    %next = hop.next_tile
    %drawn = hop.next_tile all
    ```
  }];
  let arguments = (ins UnitAttr:$all);
  let assemblyFormat = "(`all` $all^)? attr-dict";
}

def Hop_ResetTilesOp : Hop_Op<"reset_tiles", [Hop_OnOneThread]> {
  let summary = "Leaves the launch's counter at zero once every thread block is here";
  let description = [{
    In an elected role, after its last `hop.next_tile`: the last thread block to come sets the counter
    back, and the words of `hop.probes`, so that the next launch finds them as this one did.

    ```mlir
    hop.reset_tiles
    ```
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Probes
//===----------------------------------------------------------------------===//

def Hop_ProbesOp : Hop_Op<"probes", [HasParent<"KernelOp">]> {
  let summary = "Declares the probes of a launch: its first tiles, of which it keeps which ones failed";
  let description = [{
    They are the tiles 0 to `count - 1`, or one for each thread block where there are fewer of these: up to 32 bits of a word
    behind the launch's counter. A second word counts the reports, of which each probe has `reports`, one of each warp. The verdict is
    against a program that failed for at least one probe in `share`.

    ```mlir
    %probes = hop.probes count 32 share 8 reports 8 : !hop.probes
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<32>]>:$count,
                       ConfinedAttr<I64Attr, [IntMinValue<1>]>:$share, ConfinedAttr<I64Attr, [IntMinValue<1>]>:$reports);
  let results = (outs Hop_ProbesType:$probes);
  let assemblyFormat = "`count` $count `share` $share `reports` $reports attr-dict `:` qualified(type($probes))";
}

def Hop_ProbesReportOp : Hop_Op<"probes.report", [Hop_OnWarps]> {
  let summary = "Says of a tile that is a probe that this warp is done with it, and whether `valid` is true in every element";
  let description = [{
    On all threads of the role; nothing where `condition` is false or the tile `number` is no probe. Bits of global memory are set, then
    reports counted with release semantics for the whole device (PTX ISA 9.7.13.6, red). It waits for nobody.

    ```mlir
    hop.probes.report %probes, %valid of %number if %condition : tensor<64xi1, #hop.layout<row>>
    ```
  }];
  let arguments = (ins Hop_ProbesType:$probes, AnyTypeOf<[I1, Hop_Fragment]>:$valid, I32:$number, I1:$condition);
  let assemblyFormat = "$probes `,` $valid `of` $number `if` $condition attr-dict `:` type($valid)";
}

def Hop_ProbesVerdictOp : Hop_Op<"probes.verdict", [Hop_OnOneThread]> {
  let summary = "Waits for the reports of all probes; 1 if the verdict is against the program that they ran, else 0";
  let description = [{
    By loads with acquire semantics for the whole device (PTX ISA 9.7.9.8, ld). It is the same in all thread blocks. Without a look, and
    0, where `condition` is false. All blocks that have a probe must have begun: they are those with the smallest indices.

    ```mlir
    %fails = hop.probes.verdict %probes if %condition
    ```
  }];
  let arguments = (ins Hop_ProbesType:$probes, I1:$condition);
  let results = (outs I32:$fails);
  let assemblyFormat = "$probes `if` $condition attr-dict";
}

#endif // TESSERA_DIALECTS_HOP_HOPGRID_TD
