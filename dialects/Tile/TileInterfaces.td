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

#endif // TESSERA_DIALECTS_TILE_TILEINTERFACES_TD
