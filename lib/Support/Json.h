//===- Json.h - The one way in for JSON -------------------------*- C++ -*-===//
//
// llvm::json::parse recurses as deeply as its input nests. Every text that comes from outside goes
// through here. Header only, for the run-time library links nothing else of ours.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SUPPORT_JSON_H
#define TESSERA_LIB_SUPPORT_JSON_H

#include "llvm/Support/JSON.h"

namespace tessera {

/// Arrays and objects in each other. What Tessera writes has less than 16 levels.
constexpr unsigned kMaxJsonDepth = 128;

/// As llvm::json::parse; a text that nests more deeply than kMaxJsonDepth is an error that names
/// the place.
inline llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text) {
  unsigned depth = 0, line = 1;
  size_t lineStart = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n') {
      ++line;
      lineStart = i + 1;
    } else if (inString) {
      if (c == '\\')
        ++i;
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0;
    } else if ((c == '[' || c == '{') && ++depth > kMaxJsonDepth) {
      return llvm::createStringError("[" + llvm::Twine(line) + ":" +
                                     llvm::Twine(i - lineStart + 1) + "]: more than " +
                                     llvm::Twine(kMaxJsonDepth) + " levels of arrays and objects");
    }
  }
  return llvm::json::parse(text);
}

/// The whole number that a value is. Value::getAsInteger converts 2^63 too, which no int64_t holds.
inline std::optional<int64_t> asInteger(const llvm::json::Value &value) {
  std::optional<double> number = value.getAsNumber();
  if (number && *number >= 0x1p63 && !value.getAsUINT64())
    return std::nullopt;
  return value.getAsInteger();
}

} // namespace tessera

#endif // TESSERA_LIB_SUPPORT_JSON_H
