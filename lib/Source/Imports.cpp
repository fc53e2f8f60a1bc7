//===- Imports.cpp - A source and the files that it imports ---------------===//

#include "lib/Source/Imports.h"
#include "lib/Source/Shipped.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace llvm;
using namespace tessera;
using namespace tessera::source;

/// No source comes near; whatever is larger is no source.
static constexpr uint64_t maxFileBytes = 1 << 24;

/// The place of an offset in `text`, whose first line has the number `line`.
static Place locateIn(StringRef file, StringRef text, size_t offset, unsigned line = 1) {
  StringRef before = text.take_front(offset);
  size_t lineBegin = before.rfind('\n') + 1;
  return {file, static_cast<unsigned>(line + before.count('\n')),
          static_cast<unsigned>(offset - lineBegin + 1)};
}

namespace {
/// A file that an import names.
struct Found {
  /// What diagnostics call it, and what tells it from other files.
  std::string name, identity;
  std::string text;
};
} // namespace

namespace tessera::source {
/// Reads files, each after those that it imports.
class ImportReader {
public:
  ImportReader(Files &files, const ImportOptions &options, PlaceErrorSink error)
      : files(files), options(options), error(error) {}

  /// An import, or a name of rules, as a file writes it. Offsets are those of the file.
  struct Import {
    StringRef name;
    Place place;
    size_t offset;
    bool isRules;
    StringRef as = "";
    std::vector<GivenValue> given = {};

    bool isCopy() const { return !isRules && !as.empty(); }
  };

  /// Reads a file and what it imports; by `copy` as a copy, in a file whose names begin with
  /// `outer`.
  bool read(const Found &found, const Import *copy = nullptr, StringRef outer = "");
  bool readRules();

private:
  bool parseImports(const Found &found, std::vector<Import> &imports, size_t &end);
  bool parseImport(const Found &found, Lexer &lexer, Import &import);
  std::optional<size_t> follow(const Found &importer, const Import &import, StringRef prefix);
  void addRules(Found found, bool isUsers);
  std::optional<Found> find(StringRef importer, const Import &import);
  ErrorOr<Found> open(const Twine &path);
  File &append(const Found &found, size_t headerEnd, bool isCopy);
  std::string describeCycle(StringRef identity) const;

  Files &files;
  const ImportOptions &options;
  PlaceErrorSink error;
  /// Of the files that are read, in their order, and of those that are being read.
  std::vector<std::string> identities, path;
};
} // namespace tessera::source

/// The text between the quotes of a string; empty of another token.
static StringRef readString(const Token &token) {
  return token.kind == Token::String ? token.text.drop_front().drop_back() : "";
}

/// What a copy is called: a name that names may begin with.
static StringRef readName(const Token &token) {
  return token.kind == Token::Identifier ? token.text : "";
}

/// Reads `(NAME = value, ...)`, with offsets of the file; returns false where it is none, also
/// after an error of a value.
static bool readGiven(Lexer &lexer, std::vector<GivenValue> &given, ErrorSink error) {
  auto any = [](StringRef, size_t, bool) { return Value::integer(0); };
  unsigned depth = 0;
  if (!lexer.takeIf("("))
    return false;
  do {
    Token name = lexer.take();
    if (!lexer.takeIf("="))
      return false;
    given.push_back({name.text.str(), lexer.offsetOf(name), lexer.offset()});
    if (!Evaluator(lexer, any, error, depth).declarationValue(/*live=*/false))
      return false;
  } while (lexer.takeIf(","));
  return lexer.takeIf(")");
}

/// Reads what stands behind `$import` or `$rules`. Returns false after an error.
bool ImportReader::parseImport(const Found &found, Lexer &lexer, Import &import) {
  bool isRight = true, isReported = false;
  auto report = [&](size_t offset, const Twine &message) {
    error(locateIn(found.name, found.text, offset), message);
    isReported = true;
  };
  import.name = readString(lexer.take());
  bool hasOwnName = lexer.takeIf("as");
  if (hasOwnName)
    import.as = import.isRules ? readString(lexer.take()) : readName(lexer.take());
  if (!import.isRules && lexer.takeIf("with"))
    isRight = readGiven(lexer, import.given, report) && hasOwnName;
  if (isRight && !import.name.empty() && hasOwnName != import.as.empty())
    return true;
  if (!isReported)
    error(import.place, import.isRules
                            ? "a file of rules is named by `$rules \"file.json\"`, or by `$rules "
                              "\"file.json\" as \"source.tile\"`"
                            : "an import is `$import \"file.tile\"`, and that of a copy `$import "
                              "\"file.tile\" as name with (NAME = value, ...)`");
  return false;
}

/// Reads `$import "name"` and `$rules "name" as "name"`, as many as there are; `end` is where they
/// end.
bool ImportReader::parseImports(const Found &found, std::vector<Import> &imports, size_t &end) {
  Lexer lexer(found.text, 0, found.text.size());
  end = 0;
  while (lexer.peek().is("$")) {
    Lexer ahead = lexer;
    size_t offset = ahead.offset();
    ahead.take();
    bool isRules = ahead.takeIf("rules");
    if (!isRules && !ahead.takeIf("import"))
      break;
    Import import{"", locateIn(found.name, found.text, offset), offset, isRules};
    if (!parseImport(found, ahead, import))
      return false;
    imports.push_back(std::move(import));
    end = ahead.end();
    lexer = ahead;
  }
  return true;
}

/// The regular file at `path`; nothing where there is none.
ErrorOr<Found> ImportReader::open(const Twine &path) {
  std::string name = path.str();
  sys::fs::file_status status;
  if (std::error_code code = sys::fs::status(name, status))
    return code;
  if (!sys::fs::is_regular_file(status))
    return sys::fs::is_directory(status) ? errc::is_a_directory : errc::invalid_argument;
  if (status.getSize() > maxFileBytes)
    return errc::file_too_large;
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(name, /*IsText=*/true);
  if (!buffer)
    return buffer.getError();
  SmallString<128> identity;
  if (std::error_code code = sys::fs::real_path(name, identity))
    return code;
  return Found{name, identity.str().str(), (*buffer)->getBuffer().str()};
}

std::optional<Found> ImportReader::find(StringRef importer, const Import &import) {
  StringRef name = import.name;
  for (const auto &[given, text] : options.texts)
    if (given == name)
      return Found{given, "text " + given, text};
  std::vector<std::string> places = {sys::path::parent_path(importer).str()};
  if (sys::path::is_absolute(name))
    places = {""};
  else
    llvm::append_range(places, options.paths);
  for (StringRef place : places) {
    SmallString<128> whole(place);
    sys::path::append(whole, name);
    if (ErrorOr<Found> found = open(whole))
      return *found;
  }
  for (const auto &[shipped, text] : getShippedTexts())
    if (shipped == name)
      return Found{getShippedFileName(shipped), ("shipped " + shipped).str(), text};
  SmallVector<StringRef> names;
  for (const auto &[shipped, text] : getShippedTexts())
    if (shipped.ends_with(".json") == import.isRules)
      names.push_back(shipped);
  std::string searched = options.paths.empty() ? "" : " and in " + join(options.paths, ", ");
  error(import.place, "there is no " + Twine(import.isRules ? "file" : "source") + " '" + name +
                          "': looked beside '" + importer + "'" + searched +
                          "; those that ship are " + join(names, ", "));
  return std::nullopt;
}

/// "a imports b imports a", from the file that is imported again.
std::string ImportReader::describeCycle(StringRef identity) const {
  auto name = [](StringRef whole) { return sys::path::filename(whole).str(); };
  std::string text;
  for (const std::string &file : make_range(llvm::find(path, identity), path.end()))
    text += "'" + name(file) + "' imports ";
  return text + "'" + name(identity) + "'";
}

/// Keeps the text of a file of rules, once.
void ImportReader::addRules(Found found, bool isUsers) {
  if (none_of(files.rules, [&](const RulesFile &file) { return file.identity == found.identity; }))
    files.rules.push_back(
        {std::move(found.name), std::move(found.identity), std::move(found.text), isUsers});
}

/// Reads the files of rules that a user names.
bool ImportReader::readRules() {
  std::vector<std::string> names = options.rules.files;
  SmallVector<StringRef> further;
  std::string variable = sys::Process::GetEnv("TESSERA_RULES").value_or("");
  StringRef(variable).split(further, sys::EnvPathSeparator, /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef name : further)
    names.push_back(name.str());
  for (const std::string &name : names) {
    ErrorOr<Found> found = open(name);
    if (!found) {
      error({name, 1, 1}, "cannot read the rules: " + found.getError().message());
      return false;
    }
    addRules(std::move(*found), /*isUsers=*/true);
  }
  return true;
}

/// Reads what `importer` imports, whose names begin with `prefix`, where it is not read yet.
/// Returns the index of the file; nothing after an error.
std::optional<size_t> ImportReader::follow(const Found &importer, const Import &import,
                                           StringRef prefix) {
  std::optional<Found> found = find(importer.name, import);
  if (!found)
    return std::nullopt;
  if (is_contained(path, found->identity)) {
    error(import.place, "a source imports itself: " + describeCycle(found->identity));
    return std::nullopt;
  }
  size_t index = llvm::find(identities, found->identity) - identities.begin();
  if (index < identities.size() && !import.isCopy())
    return index;
  if (files.files.size() + path.size() >= maxFiles) {
    error(import.place, "a source consists of at most " + Twine(maxFiles) + " files");
    return std::nullopt;
  }
  if (!read(*found, import.isCopy() ? &import : nullptr, prefix))
    return std::nullopt;
  return files.files.size() - 1;
}

/// Puts a file behind those that are read.
File &ImportReader::append(const Found &found, size_t headerEnd, bool isCopy) {
  // A file begins a line.
  if (!files.files.empty() && !StringRef(files.text).ends_with("\n")) {
    files.text += '\n';
    files.files.back().end = files.text.size();
  }
  File file;
  file.name = found.name;
  file.begin = files.text.size();
  file.body = file.begin + headerEnd;
  file.firstLine = 1 + StringRef(files.text).count('\n');
  files.text += found.text;
  file.end = files.text.size();
  files.files.push_back(std::move(file));
  // An import of a file finds no copy of it.
  identities.push_back(isCopy ? "" : found.identity);
  return files.files.back();
}

bool ImportReader::read(const Found &found, const Import *copy, StringRef outer) {
  path.push_back(found.identity);
  std::vector<Import> imports;
  size_t headerEnd;
  if (!parseImports(found, imports, headerEnd))
    return false;
  std::string prefix = copy ? (outer + copy->as + "_").str() : "";
  BitVector imported(maxFiles);
  std::vector<std::pair<size_t, const Import *>> copies;
  StringRef rulesName;
  for (const Import &import : imports) {
    if (import.isRules) {
      std::optional<Found> rules = find(found.name, import);
      if (!rules)
        return false;
      addRules(std::move(*rules), /*isUsers=*/false);
      rulesName = import.as.empty() ? rulesName : import.as;
      continue;
    }
    std::optional<size_t> index = follow(found, import, prefix);
    if (!index)
      return false;
    imported.set(*index);
    imported |= files.files[*index].imports;
    if (import.isCopy())
      copies.emplace_back(*index, &import);
  }
  path.pop_back();
  File &file = append(found, headerEnd, copy);
  file.rulesName = rulesName.str();
  file.imports = std::move(imported);
  file.prefix = std::move(prefix);
  // Where the imports of copies lie in the whole is known now.
  for (auto [index, import] : copies) {
    File &imported = files.files[index];
    imported.prefixInImporter = (import->as + "_").str();
    imported.importer = files.indexOf(file);
    imported.importOffset = file.begin + import->offset;
    for (const GivenValue &value : import->given)
      imported.given.push_back(
          {value.name, file.begin + value.nameOffset, file.begin + value.valueOffset});
  }
  return true;
}

bool Files::read(StringRef text, StringRef name, const ImportOptions &options,
                 PlaceErrorSink error) {
  SmallString<128> identity;
  if (sys::fs::real_path(name, identity))
    identity = name;
  // A file that a user names counts as the user's, also where the source names it.
  ImportReader reader(*this, options, error);
  return reader.readRules() && reader.read({name.str(), identity.str().str(), text.str()});
}

const File &Files::findByLine(unsigned line) const {
  return *std::prev(partition_point(
      files, [&](const File &file) { return file.firstLine <= std::max(line, 1u); }));
}

const File &Files::findByOffset(size_t offset) const {
  return *std::prev(partition_point(files, [&](const File &file) { return file.begin <= offset; }));
}

Place Files::locate(size_t offset) const {
  const File &file = findByOffset(offset);
  return locateIn(file.name, StringRef(text).slice(file.begin, file.end), offset - file.begin);
}
