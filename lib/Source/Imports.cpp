//===- Imports.cpp - A source and the files that it imports ---------------===//

#include "lib/Source/Imports.h"
#include "lib/Source/Shipped.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
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

  bool read(const Found &found);
  bool readRules();

private:
  /// An import, or a name of rules, as a file writes it.
  struct Import {
    StringRef name;
    Place place;
    bool isRules;
    StringRef as = "";
  };

  bool parseImports(const Found &found, std::vector<Import> &imports, size_t &end);
  bool follow(const Found &importer, const Import &import, BitVector &imported);
  void addRules(Found found, bool isUsers);
  std::optional<Found> find(StringRef importer, const Import &import);
  std::optional<Found> open(const Twine &path);
  void append(const Found &found, size_t headerEnd, BitVector imported, StringRef rulesName);
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

/// Reads `$import "name"` and `$rules "name" as "name"`, as many as there are; `end` is where they
/// end.
bool ImportReader::parseImports(const Found &found, std::vector<Import> &imports, size_t &end) {
  Lexer lexer(found.text, 0, found.text.size());
  end = 0;
  while (lexer.peek().is("$")) {
    Lexer ahead = lexer;
    Place place = locateIn(found.name, found.text, ahead.offset());
    ahead.take();
    bool isRules = ahead.takeIf("rules");
    if (!isRules && !ahead.takeIf("import"))
      break;
    Import import{readString(ahead.take()), place, isRules};
    bool hasOwnName = isRules && ahead.takeIf("as");
    if (hasOwnName)
      import.as = readString(ahead.take());
    if (import.name.empty() || hasOwnName == import.as.empty()) {
      error(place, isRules ? "a file of rules is named by `$rules \"file.json\"`, or by `$rules "
                             "\"file.json\" as \"source.tile\"`"
                           : "an import is `$import \"file.tile\"`");
      return false;
    }
    imports.push_back(import);
    end = ahead.end();
    lexer = ahead;
  }
  return true;
}

/// The regular file at `path`; nothing where there is none.
std::optional<Found> ImportReader::open(const Twine &path) {
  std::string name = path.str();
  sys::fs::file_status status;
  if (sys::fs::status(name, status) || !sys::fs::is_regular_file(status) ||
      status.getSize() > maxFileBytes)
    return std::nullopt;
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(name, /*IsText=*/true);
  SmallString<128> identity;
  if (!buffer || sys::fs::real_path(name, identity))
    return std::nullopt;
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
    if (std::optional<Found> found = open(whole))
      return found;
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
    std::optional<Found> found = open(name);
    if (!found) {
      error({name, 1, 1}, "cannot read the rules");
      return false;
    }
    addRules(std::move(*found), /*isUsers=*/true);
  }
  return true;
}

/// Reads what `importer` imports, where it is not read yet, and adds it to `imported`.
bool ImportReader::follow(const Found &importer, const Import &import, BitVector &imported) {
  std::optional<Found> found = find(importer.name, import);
  if (!found)
    return false;
  if (import.isRules) {
    addRules(std::move(*found), /*isUsers=*/false);
    return true;
  }
  if (is_contained(path, found->identity)) {
    error(import.place, "a source imports itself: " + describeCycle(found->identity));
    return false;
  }
  size_t index = llvm::find(identities, found->identity) - identities.begin();
  if (index == identities.size()) {
    if (files.files.size() + path.size() >= maxFiles) {
      error(import.place, "a source consists of at most " + Twine(maxFiles) + " files");
      return false;
    }
    if (!read(*found))
      return false;
    index = files.files.size() - 1;
  }
  imported.set(index);
  imported |= files.files[index].imports;
  return true;
}

/// Puts a file behind those that are read.
void ImportReader::append(const Found &found, size_t headerEnd, BitVector imported,
                          StringRef rulesName) {
  // A file begins a line.
  if (!files.files.empty() && !StringRef(files.text).ends_with("\n")) {
    files.text += '\n';
    files.files.back().end = files.text.size();
  }
  File file;
  file.name = found.name;
  file.rulesName = rulesName.str();
  file.begin = files.text.size();
  file.body = file.begin + headerEnd;
  file.firstLine = 1 + StringRef(files.text).count('\n');
  files.text += found.text;
  file.end = files.text.size();
  file.imports = std::move(imported);
  files.files.push_back(std::move(file));
  identities.push_back(found.identity);
}

bool ImportReader::read(const Found &found) {
  path.push_back(found.identity);
  std::vector<Import> imports;
  size_t headerEnd;
  if (!parseImports(found, imports, headerEnd))
    return false;
  BitVector imported(maxFiles);
  StringRef rulesName;
  for (const Import &import : imports) {
    if (!follow(found, import, imported))
      return false;
    if (!import.as.empty())
      rulesName = import.as;
  }
  path.pop_back();
  append(found, headerEnd, std::move(imported), rulesName);
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
