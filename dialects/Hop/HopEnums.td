// Enumerations of the hop dialect.

#ifndef TESSERA_DIALECTS_HOP_HOPENUMS_TD
#define TESSERA_DIALECTS_HOP_HOPENUMS_TD

include "mlir/IR/EnumAttr.td"

def Hop_StageKind : I32EnumAttr<"StageKind", "What a warpgroup does in a stage of its program", [
    I32EnumAttrCase<"Wait", 0, "wait">, I32EnumAttrCase<"Turn", 1, "turn">,
    I32EnumAttrCase<"Sync", 2, "sync">, I32EnumAttrCase<"Load", 3, "load">,
    I32EnumAttrCase<"Issue", 4, "issue">, I32EnumAttrCase<"Finish", 5, "finish">,
    I32EnumAttrCase<"Compute", 6, "compute">, I32EnumAttrCase<"Store", 7, "store">]> {
  let cppNamespace = "::tessera::hop";
}

#endif // TESSERA_DIALECTS_HOP_HOPENUMS_TD
