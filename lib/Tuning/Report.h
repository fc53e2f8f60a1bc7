//===- Report.h - Who won, and why the others lost ------------------------===//

#ifndef TESSERA_LIB_TUNING_REPORT_H
#define TESSERA_LIB_TUNING_REPORT_H

#include "lib/Tuning/Session.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera::tuning {

/// Prints what is to be measured and what was left out: candidates that do not compile, and those
/// that the model of the machine rejects, with the numbers.
void printPlan(llvm::raw_ostream &os, const Session &session);

/// Prints, for each shape of a measured session, a table of the contestants, the fastest first, and
/// the winner of each class.
void printResults(llvm::raw_ostream &os, const Session &session);

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_REPORT_H
