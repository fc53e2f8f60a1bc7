//===- ShippedDatabase.cpp - The database that was built in ---------------===//

#include "lib/Database/Database.h"
#include "llvm/Support/ErrorHandling.h"

using namespace tessera::tuning;

/// The text of kernels/schedules.json, and the same without measurements, from the build.
extern const char tesseraShippedSchedules[], tesseraShippedGpus[];

static Database parseShipped(llvm::StringRef text) {
  llvm::Expected<Database> parsed = Database::parse(text);
  if (!parsed)
    llvm::reportFatalInternalError(
        llvm::StringRef("kernels/schedules.json: " + toString(parsed.takeError())));
  return std::move(*parsed);
}

const Database &Database::getShipped() {
  static const Database database = parseShipped(tesseraShippedSchedules);
  return database;
}

const Database &Database::getShippedGpus() {
  static const Database database = parseShipped(tesseraShippedGpus);
  return database;
}
