//===- DeviceArguments.h - Arguments in the form devices take -------------===//

#ifndef TESSERA_TOOLS_TESSERA_DEVICEARGUMENTS_H
#define TESSERA_TOOLS_TESSERA_DEVICEARGUMENTS_H

#include "lib/Interpreter/Interpreter.h"
#include "lib/Runtime/Launch.h"
#include "tools/tessera/DeviceRunner.h"
#include <vector>

namespace tessera {

/// The storage of a view argument of `kernel` as a device holds it: elements of the view's type at
/// the same places.
std::vector<char> encodeTensor(const HostTensor &tensor, tile::EntryOpInterface kernel,
                               unsigned argument);

/// The reverse: fills `tensor` from what `encodeTensor` made. Storage beyond it is not read.
void decodeTensor(llvm::ArrayRef<char> storage, tile::EntryOpInterface kernel, unsigned argument,
                  HostTensor &tensor);

/// Describes a scalar, or all of a view but its address. Points into `value`.
runtime::Argument describeArgument(mlir::Type type, const KernelArgument &value);

/// The schedules in the descriptions of a bundle's kernels, and what its sequences launch first.
Schedules readSchedules(const runtime::BundleInfo &bundle, mlir::MLIRContext *context);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_DEVICEARGUMENTS_H
