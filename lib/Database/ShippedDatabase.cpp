//===- ShippedDatabase.cpp - The database that was built in ---------------===//

#include "lib/Database/Database.h"
#include "llvm/Support/ErrorHandling.h"

using namespace tessera::tuning;

/// The text of kernels/schedules.json, from the build.
extern const char tesseraShippedSchedules[];

const Database &Database::getShipped() {
  static const Database database = [] {
    llvm::Expected<Database> parsed = parse(tesseraShippedSchedules);
    if (!parsed)
      llvm::reportFatalInternalError(
          llvm::StringRef("kernels/schedules.json: " + toString(parsed.takeError())));
    return std::move(*parsed);
  }();
  return database;
}
