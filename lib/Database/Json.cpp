//===- Json.cpp - Data of the tuner from and to JSON ----------------------===//

#include "lib/Database/Json.h"
#include "lib/Support/Fail.h"
#include "lib/Support/Files.h"
#include "lib/Support/Json.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace json = llvm::json;

Expected<json::Value> tessera::tuning::parseHeader(StringRef text, StringRef what, StringRef format,
                                                   const Versions &versions) {
  Expected<json::Value> document = parseJson(text);
  if (!document)
    return fail(what + " is not JSON: " + toString(document.takeError()));
  const json::Object *object = document->getAsObject();
  if (!object || object->getString("format") != format)
    return fail(what + " is no object whose \"format\" is \"" + format + "\"");
  std::optional<int64_t> version = object->getInteger("version");
  if (version && *version >= 1 && *version < versions.oldest)
    return fail(what + " is of version " + llvm::Twine(*version) + ": " + versions.remedy);
  if (!version || *version < versions.oldest || *version > versions.newest)
    return fail(what + " is not of version " + llvm::Twine(versions.newest) +
                ", which is all that this compiler reads");
  return document;
}

Expected<std::string> tessera::tuning::readFile(StringRef path) {
  auto buffer = readInput(path);
  if (!buffer)
    return fail("cannot read '" + path + "': " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

Error tessera::tuning::writeFile(StringRef path, StringRef text) {
  return replaceOutput(path, text);
}
