//===- Programs.h - Which programs a source makes -------------------------===//

#ifndef TESSERA_LIB_TUNING_PROGRAMS_H
#define TESSERA_LIB_TUNING_PROGRAMS_H

#include "lib/Tuning/Candidates.h"

namespace tessera::tuning {

/// The fingerprint of `kernel` of a source that is read with `defines`; the error is the first that
/// the reader has.
llvm::Expected<std::string> identifyProgram(const std::string &source, const std::string &fileName,
                                            const std::string &kernel, const Defines &defines);

/// Gives the entries for the kernels of a source, and the times of their tiles, the fingerprints of
/// its programs, in place of those that they have, and returns how many entries these are. For
/// entries of a database that knows none, and after a change of the compiler that gives the same
/// program another form.
llvm::Expected<size_t> adoptPrograms(Database &database, const std::string &source,
                                     const std::string &fileName);

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_PROGRAMS_H
