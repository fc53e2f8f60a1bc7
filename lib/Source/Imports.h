//===- Imports.h - A source and the files that it imports -----------------===//
//
// `$import "name.tile"` at the top of a source stands for the text of another, and
// `$rules "name.json" as "name.tile"` names rules for its parameters. All texts of a source are
// one: each file after those that it imports, once, with its lines one to one. An offset or a line
// of the whole is one of a file. `$import "name.tile" as copy with (NAME = value)` is the text once
// more, with parameters and names of its own. Pure text: no MLIR here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOURCE_IMPORTS_H
#define TESSERA_LIB_SOURCE_IMPORTS_H

#include "lib/Source/Expression.h"
#include "tessera/Compiler.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include <vector>

namespace tessera::source {

/// Most files that a source may consist of.
constexpr size_t maxFiles = 64;

/// What an import gives a parameter of a copy: offsets of both in the whole.
struct GivenValue {
  std::string name;
  size_t nameOffset = 0, valueOffset = 0;
};

/// A file of a source.
struct File {
  std::string name;
  /// The source whose rules are its, whatever the file is called: `$rules "file.json" as "name"`.
  std::string rulesName;
  /// Its text in the whole, [begin, end); what follows its imports; its first
  /// line, from 1.
  size_t begin = 0, body = 0, end = 0;
  unsigned firstLine = 1;
  /// The files that it imports, and those that they import, by index.
  llvm::BitVector imports;
  /// Of a copy, what the names begin with that it defines: in the whole, and in the file that
  /// imports it, which may be a copy too.
  std::string prefix, prefixInImporter;
  /// Of a copy, the file that imports it, the offset of the import, and what this gives.
  size_t importer = 0, importOffset = 0;
  std::vector<GivenValue> given;

  bool isCopy() const { return !prefix.empty(); }
};

/// A file of rules for parameters without defaults, see Rules.h.
struct RulesFile {
  /// What diagnostics call it, and what tells it from other files.
  std::string name, identity;
  std::string text;
  /// Whether a user names it, and no file of the source.
  bool isUsers = false;
};

/// A place in a file; lines and columns count from 1, columns in bytes.
struct Place {
  llvm::StringRef file;
  unsigned line, column;
};

/// Receives an error at a place.
using PlaceErrorSink = llvm::function_ref<void(const Place &place, const llvm::Twine &message)>;

/// The texts of a source.
class Files {
public:
  /// Reads `text`, of the file `name`, and what it imports. Returns false after an error.
  bool read(llvm::StringRef text, llvm::StringRef name, const ImportOptions &options,
            PlaceErrorSink error);

  llvm::StringRef getText() const { return text; }
  /// Each after those that it imports; the file that is read is the last.
  llvm::ArrayRef<File> getFiles() const { return files; }
  /// What the files of the source name with `$rules "name.json"`, and what a user names, each once.
  llvm::ArrayRef<RulesFile> getRules() const { return rules; }
  const File &getMain() const { return files.back(); }

  /// The file that a line of the whole, or an offset, is in.
  const File &findByLine(unsigned line) const;
  const File &findByOffset(size_t offset) const;
  size_t indexOf(const File &file) const { return &file - files.data(); }
  /// Whether `importer` imports `imported`, or a file does that it imports.
  bool doesImport(const File &importer, const File &imported) const {
    return importer.imports.test(indexOf(imported));
  }
  Place locate(size_t offset) const;

private:
  friend class ImportReader;

  std::string text;
  std::vector<File> files;
  std::vector<RulesFile> rules;
};

} // namespace tessera::source

#endif // TESSERA_LIB_SOURCE_IMPORTS_H
