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
    back, and the word of `hop.probes.verdict`, so that the next launch finds them as this one did.

    ```mlir
    hop.reset_tiles
    ```
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Probes
//===----------------------------------------------------------------------===//

def Hop_ProbesVerdictOp : Hop_Op<"probes.verdict", [Hop_OnOneThread]> {
  let summary = "Says what has become of this block's probe, then waits for those of others; 1 if they fail, else 0";
  let description = [{
    Probes are the first tiles of the `count` thread blocks, or clusters, with the smallest indices, or of all where there are fewer.
    Each of their blocks runs this operation once, with `is_probe`, and `failed` other than 0 if its tile failed. Others may run it too. The
    verdict is 1 if at least one probe in `share` failed. It comes as soon as it is certain: the slowest probes are not waited for.

    A word behind the launch's counter has the probes that held in its lower half, those that failed in the upper one. The operation says
    what it knows before it waits, and the machine starts blocks in the order of their indices: what is waited for begins first.
    Where the device has no room for the blocks of all probes at once, one that waits gives up after so many `looks`, and the verdict is 0 for all:
    results are right then too, but bits may differ from launch to launch.

    ```mlir
    %fails = hop.probes.verdict %failed if %is_probe count 32 share 8 looks 131072
    ```
  }];
  let arguments = (ins I32:$failed, I1:$is_probe,
                       ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<1024>]>:$count,
                       ConfinedAttr<I64Attr, [IntMinValue<1>]>:$share,
                       ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<2147483647>]>:$looks);
  let results = (outs I32:$fails);
  let assemblyFormat = "$failed `if` $is_probe `count` $count `share` $share `looks` $looks attr-dict";
}

#endif // TESSERA_DIALECTS_HOP_HOPGRID_TD
