// The hop dialect: what a Hopper multiprocessor does.

#ifndef TESSERA_DIALECTS_HOP_HOPDIALECT_TD
#define TESSERA_DIALECTS_HOP_HOPDIALECT_TD

include "mlir/IR/DialectBase.td"

def Hop_Dialect : Dialect {
  let name = "hop";
  let cppNamespace = "::tessera::hop";
  let summary = "Roles, pipes and flights: asynchrony that is visible in the types";
  let description = [{
    A `hop.kernel` holds *roles*: programs of one or more warpgroups that run at the same time in a thread
    block. Roles share nothing but *pipes*, rings of shared-memory slots that one role fills and another
    reads. Matrix products are asynchronous: `hop.mma_issue` gives a *flight*, the accumulator of a wgmma
    that has not been waited for, and `hop.mma_wait` turns flights into tiles of registers.

    A tile in registers is a builtin tensor whose encoding is a `#hop.layout`: how its elements are spread
    over the 128 threads of a warpgroup. So `arith`, `math` and `scf` serve here as they do in the tile
    dialect, and operands of different layouts do not verify.

    Between `hop-insert-mbarriers` and the lowering the same program is written with buffers and mbarriers
    in place of pipes.

    The dialect has no attributes for operations of others, and refuses what looks like one.
  }];
  let dependentDialects = ["::tessera::tile::TileDialect", "::mlir::scf::SCFDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

#endif // TESSERA_DIALECTS_HOP_HOPDIALECT_TD
