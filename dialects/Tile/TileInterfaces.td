// Interfaces of the tile dialect.

#ifndef TESSERA_DIALECTS_TILE_TILEINTERFACES_TD
#define TESSERA_DIALECTS_TILE_TILEINTERFACES_TD

include "mlir/IR/OpBase.td"

def Tile_EntryOpInterface : OpInterface<"EntryOpInterface"> {
  let cppNamespace = "::tessera::tile";
  let description = [{
    What a program launches with arguments: a kernel, or a sequence of kernels. Arguments are the first arguments of the
    block that is its body.
  }];
  let methods = [
    InterfaceMethod<"Its name.", "::llvm::StringRef", "getSymName">,
    InterfaceMethod<"How many arguments a caller passes.", "unsigned", "getNumArguments">,
    InterfaceMethod<"An argument.", "::mlir::BlockArgument", "getArgument", (ins "unsigned":$i)>,
    InterfaceMethod<"The name by which a caller passes an argument.", "::llvm::StringRef", "getArgumentName",
                    (ins "unsigned":$i)>,
    InterfaceMethod<"Names of the run-time dimensions, in order of first appearance in the arguments.",
                    "::llvm::SmallVector<::llvm::StringRef>", "getDimNames">];
}

def Tile_LoadOpInterface : OpInterface<"LoadOpInterface"> {
  let cppNamespace = "::tessera::tile";
  let description = [{
    Loads a tile of a view, its only result: as it lies there (`tile.load`), or rows that numbers name (`tile.gather`).
    One that feeds a dot goes through a pipe.
  }];
  let methods = [
    InterfaceMethod<"What it loads from.", "::mlir::Value", "getView">,
    InterfaceMethod<"One index for each dimension of the view.", "::mlir::Operation::operand_range", "getIndices">,
    InterfaceMethod<"The number of its pipe, or null.", "::mlir::IntegerAttr", "getPipeAttr">,
    InterfaceMethod<"Gives it a pipe.", "void", "setPipeAttr", (ins "::mlir::IntegerAttr":$pipe)>];
  let extraClassDeclaration = [{
    ::mlir::Value getResult() { return (*this)->getResult(0); }
    ::mlir::Type getType() { return getResult().getType(); }
  }];
}

#endif // TESSERA_DIALECTS_TILE_TILEINTERFACES_TD
