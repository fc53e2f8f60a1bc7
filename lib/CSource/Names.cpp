//===- Names.cpp - Names in generated C -----------------------------------===//

#include "lib/CSource/Names.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/TargetParser/Triple.h"

using namespace tessera;
using llvm::StringRef;

static llvm::Error refuse(StringRef name, const llvm::Twine &reason) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "'" + name + "' " + reason);
}

static llvm::StringSet<> splitWords(StringRef text) {
  llvm::SmallVector<StringRef> list;
  text.split(list, ' ');
  llvm::StringSet<> words;
  words.insert_range(list);
  return words;
}

/// Whether a name is a word of C11 or of C++20.
static bool isReservedWord(StringRef name) {
  static const llvm::StringSet<> words = splitWords(
      "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
      "char32_t char8_t class co_await co_return co_yield compl concept const const_cast "
      "consteval constexpr constinit continue decltype default delete do double "
      "dynamic_cast else enum explicit export extern false float for friend goto if inline "
      "int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private "
      "protected public register reinterpret_cast requires restrict return short signed "
      "sizeof static static_assert static_cast struct switch template this thread_local "
      "throw true try typedef typeid typename union unsigned using virtual void volatile "
      "wchar_t while xor xor_eq");
  return words.contains(name);
}

/// Functions of the C library, some of which the source includes and compilers know all of.
static bool isInLibrary(StringRef name) {
  static const llvm::TargetLibraryInfoImpl library(llvm::Triple("x86_64-unknown-linux-gnu"));
  llvm::LibFunc function;
  return library.getLibFunc(name, function);
}

static bool isWordCharacter(char c) { return llvm::isAlnum(c) || c == '_'; }

/// Whether a parameter of that name would hide what a launching function needs, or be replaced by
/// the preprocessor. Names of macros have capitals or are reserved, but for these few.
static bool isTaken(StringRef name) {
  static const llvm::StringSet<> words =
      splitWords("alternative call device error error_size fail kernels launch sequence stream "
                 "values int32_t int64_t size_t tessera_tensor "
                 "errno i386 linux math_errhandling stderr stdin stdout unix");
  bool isReserved = name.starts_with("_") || name.contains("__") || isReservedWord(name);
  return isReserved || words.contains(name) || llvm::any_of(name, llvm::isUpper);
}

std::vector<std::string> tessera::nameParameters(llvm::ArrayRef<StringRef> names) {
  llvm::StringSet<> given;
  std::vector<std::string> result;
  for (StringRef name : names) {
    std::string word;
    llvm::transform(name, std::back_inserter(word),
                    [](char c) { return isWordCharacter(c) ? c : '_'; });
    if (isTaken(word))
      word += '_';
    while (!given.insert(word).second)
      word += '_';
    result.push_back(word);
  }
  return result;
}

llvm::Error tessera::checkFunctionName(StringRef name) {
  constexpr StringRef hint = "give -o a name of letters, digits and underscores, with .c";
  if (name.empty() || llvm::isDigit(name[0]) || !llvm::all_of(name, isWordCharacter))
    return refuse(name, "is to name a function of C: " + hint);
  // The arguments of main are others.
  if (isReservedWord(name) || name == "main")
    return refuse(name, "is to name a function, and is a word of C or C++: give -o another name");
  if (isInLibrary(name))
    return refuse(
        name,
        "is to name a function, and the C library has one of that name: give -o another name");
  // Of two underscores, or one and a capital, are names of compilers and their libraries.
  if (name.contains("__") || (name[0] == '_' && name.size() > 1 && llvm::isUpper(name[1])))
    return refuse(name,
                  "is to name a function, and is reserved for compilers: give -o another name");
  return llvm::Error::success();
}

/// Behind the directive at the front of `text`, with the lines that go on with it.
static StringRef skipDirective(StringRef text) {
  size_t end = text.find('\n');
  while (end != StringRef::npos && text[end - 1] == '\\')
    end = text.find('\n', end + 1);
  return text.substr(end);
}

/// Behind the comment, directive or string at the front of `text`; `text` itself where there is
/// none.
static StringRef skipOther(StringRef text) {
  if (text.starts_with("/*"))
    return text.drop_front(text.find("*/", 2)).drop_front(2);
  if (text.starts_with("//") || text.starts_with("#"))
    return skipDirective(text);
  if (!text.starts_with("\"") && !text.starts_with("'"))
    return text;
  const char quote = text[0];
  size_t end = 1;
  while (text[end] != quote)
    end += text[end] == '\\' ? 2 : 1;
  return text.drop_front(end + 1);
}

/// How often a name stands outside of braces and parentheses.
static unsigned countAtFileScope(StringRef text, StringRef name) {
  unsigned count = 0;
  int depth = 0;
  while (!text.empty()) {
    if (StringRef macro = text; macro.consume_front("#define "))
      count += macro.take_while(isWordCharacter) == name;
    if (StringRef rest = skipOther(text); rest.size() != text.size()) {
      text = rest;
      continue;
    }
    if (StringRef word = text.take_while(isWordCharacter); !word.empty()) {
      count += depth == 0 && word == name;
      text = text.drop_front(word.size());
      continue;
    }
    depth += StringRef("{(").contains(text[0]) ? 1 : StringRef("})").contains(text[0]) ? -1 : 0;
    text = text.drop_front();
  }
  return count;
}

llvm::Error tessera::checkFunctionName(StringRef name, StringRef source) {
  // Once is the function itself.
  if (countAtFileScope(source, name) > 1)
    return refuse(name, "is to name a function, and the file has another one of that name: give -o "
                        "another name");
  return llvm::Error::success();
}
