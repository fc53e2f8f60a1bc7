// Enumerations of the hop dialect.

#ifndef TESSERA_DIALECTS_HOP_HOPENUMS_TD
#define TESSERA_DIALECTS_HOP_HOPENUMS_TD

include "mlir/IR/EnumAttr.td"

def Hop_LayoutKind : I32EnumAttr<"LayoutKind", "How a tile is spread over a warpgroup", [
    I32EnumAttrCase<"Accumulator", 0, "accumulator">,
    I32EnumAttrCase<"Row", 1, "row">,
    I32EnumAttrCase<"RowPartial", 2, "row_partial">,
    I32EnumAttrCase<"Column", 3, "column">]> {
  let cppNamespace = "::tessera::hop";
  let genSpecializedAttr = 0;
}

def Hop_RoleKind : I32EnumAttr<"RoleKind", "What a role does", [
    I32EnumAttrCase<"Producer", 0, "producer">, I32EnumAttrCase<"Consumer", 1, "consumer">]> {
  let cppNamespace = "::tessera::hop";
}

#endif // TESSERA_DIALECTS_HOP_HOPENUMS_TD
