//===- Json.h - Data of the tuner from and to JSON ------------------------===//
//
// Shorthands over llvm::json for the files of the tuner, whose readers name the member that is
// wrong.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DATABASE_JSON_H
#define TESSERA_LIB_DATABASE_JSON_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <string>
#include <vector>

namespace tessera::tuning {

/// Numbers, strings and what has a toJSON as JSON; maps as objects, vectors as arrays.
template <typename T>
llvm::json::Value toValue(const T &value) {
  return llvm::json::Value(value);
}
template <typename T>
llvm::json::Value toValue(const std::map<std::string, T> &map);
template <typename T>
llvm::json::Value toValue(const std::vector<T> &vector) {
  llvm::json::Array array;
  for (const T &element : vector)
    array.push_back(toValue(element));
  return array;
}
template <typename T>
llvm::json::Value toValue(const std::map<std::string, T> &map) {
  llvm::json::Object object;
  for (const auto &[name, value] : map)
    object[name] = toValue(value);
  return object;
}

/// The versions of a format that are read, and of an older one what it lacks and what to do.
struct Versions {
  int64_t oldest = 1, newest = 1;
  llvm::StringRef remedy = "";
};

/// Parses `text`, which is an object with the members "format", as given, and "version".
llvm::Expected<llvm::json::Value> parseHeader(llvm::StringRef text, llvm::StringRef what,
                                              llvm::StringRef format, const Versions &versions);

/// The same, read into `result` by its fromJSON. `what` is the text's name in errors.
template <typename T>
llvm::Error parseDocument(llvm::StringRef text, llvm::StringRef what, llvm::StringRef format,
                          T &result, const Versions &versions = {}) {
  llvm::Expected<llvm::json::Value> document = parseHeader(text, what, format, versions);
  if (!document)
    return document.takeError();
  llvm::json::Path::Root root(what);
  if (fromJSON(*document, result, root))
    return llvm::Error::success();
  return root.getError();
}

/// Reads a file; the error has its name.
llvm::Expected<std::string> readFile(llvm::StringRef path);
/// Writes a file as a whole: what was there stays when it cannot.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef text);

} // namespace tessera::tuning

#endif // TESSERA_LIB_DATABASE_JSON_H
