//===- Fingerprint.h - Which program a kernel is --------------------------===//
//
// A measurement holds for a program, not for a name: a kernel that is edited keeps its name, and a
// copy of it has another one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DATABASE_FINGERPRINT_H
#define TESSERA_LIB_DATABASE_FINGERPRINT_H

#include "dialects/Tile/Tile.h"
#include <string>

namespace tessera::tuning {

/// A hash of `kernel`, as it leaves the clean-up of a source, in hexadecimal digits. It covers
/// operations with their attributes and types, in their order, the grid, the requirements and the
/// names of dimensions. It leaves out positions, the names of the kernel, of its arguments and of
/// its values, and the schedule. Hence it is the same in every process and build, for a parameter
/// that changes nothing, and for constants and expressions that the clean-up makes alike.
std::string getFingerprint(tile::KernelOp kernel);

} // namespace tessera::tuning

#endif // TESSERA_LIB_DATABASE_FINGERPRINT_H
