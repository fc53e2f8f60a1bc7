//===- WorkOrder.h - In which order a thread works through its tiles ------===//

#ifndef TESSERA_LIB_CODEGEN_WORKORDER_H
#define TESSERA_LIB_CODEGEN_WORKORDER_H

namespace llvm {
class Module;
} // namespace llvm

namespace tessera {

/// Orders the work between the products of functions with `elementOrderAttrName` by elements: all
/// that is made of the first element of an accumulator goes before what is made of the second. The
/// lowering writes it operation by operation, and ptxas keeps to that order where registers are
/// scarce. Numbers of other elements, as those of vectors, are loaded where the first one needs
/// them.
void orderWorkByElements(llvm::Module &module);

} // namespace tessera

#endif // TESSERA_LIB_CODEGEN_WORKORDER_H
