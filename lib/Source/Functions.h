//===- Functions.h - What functions of a source compute with -------------===//
//
// Facts about the functions that a source has of its own, for who writes them and chooses by what
// they load, compare and add.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOURCE_FUNCTIONS_H
#define TESSERA_LIB_SOURCE_FUNCTIONS_H

#include "lib/Source/Source.h"
#include "llvm/Support/JSON.h"

namespace tessera {

/// For each function of the main file of a source, as `readFunctions` gives it, by its name:
///
///   uses      the numbers of the arguments that it uses
///   computes  those that it uses for more than indices of what it loads
///   extents   the dimensions whose extents it takes
///   divides   whether it divides integers
///   loads     of each element that it loads the argument of the kernel, a "view", and the names of
///             its "dims", the "type", and for each of its "places" the arguments "on" which it
///             depends, the one that it "is", -1 where it is computed, and whether it is "fixed"
///   compares  of each comparison of integers the arguments "on" which it depends, and whether it
///             depends on an argument of the kernel too ("given")
///   result    the arguments "on" which it depends, and those that it is "scaled_by": where one of
///             these is 0, so is the result; and the "factor", where it is the only argument of f32
///             times that, plus what does not depend on it: the arguments "on" which the factor
///             depends, and what it "alone" asks for of the kernel's. It is null elsewhere
llvm::json::Object describeFunctions(const ReadResult &read);

} // namespace tessera

#endif // TESSERA_LIB_SOURCE_FUNCTIONS_H
