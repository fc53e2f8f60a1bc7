//===- SourceFilter.h - .tile sources for MLIR's language server ----------===//
//
// MLIR's language server reads plain MLIR. The filter stands between it and
// the client: texts of `.tile` documents pass with the defaults of their
// parameters bound, positions are mapped both ways, and errors of the reader
// join the diagnostics of the parser.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_LSP_SOURCEFILTER_H
#define TESSERA_TOOLS_LSP_SOURCEFILTER_H

#include "lib/Source/Expansion.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <mutex>

namespace tessera {

/// Rewrites JSON-RPC messages. Both directions may be used by a thread each.
class SourceFilter {
public:
  /// A message of the client as the server should see it.
  llvm::json::Value toServer(llvm::json::Value message);

  /// A message of the server as the client should see it.
  llvm::json::Value toClient(llvm::json::Value message);

private:
  /// One version of a document.
  struct Document {
    source::ColumnMap columns;
    /// How many lines of imported files the server sees before those of the document.
    int64_t importedLines = 0;
    /// Errors of the reader, as LSP diagnostics.
    llvm::json::Array diagnostics;
  };
  /// The version of a document that a message is about. The server answers in order but later, so
  /// that the client may have sent another version meanwhile.
  struct Subject {
    std::string uri;
    int64_t version;
  };
  /// Maps a line and a column, both from 1, to a column.
  using Mapping = unsigned (source::ColumnMap::*)(unsigned line, unsigned column) const;

  /// Reads a text with its defaults, records the document and returns what the server should see:
  /// nothing at all when the reader refuses the text.
  std::string open(const Subject &subject, llvm::StringRef text);
  /// The document that a message is about; the newest version when it does not say.
  Subject getSubject(const llvm::json::Object &params) const;
  /// The version of `uri` that `subject` names, the newest of another document.
  const Document *find(llvm::StringRef uri, const Subject &subject) const;
  /// Maps every position in `value`; those below a "uri" are in that document, others in `uri`.
  void mapPositions(llvm::json::Value &value, llvm::StringRef uri, const Subject &subject,
                    Mapping mapping) const;
  void mapPosition(llvm::json::Object &position, const Document &document, Mapping mapping) const;
  void finishDiagnostics(llvm::json::Object &params, const Subject &subject);

  std::mutex mutex;
  /// By version; those older than the last that the server answered are gone.
  llvm::StringMap<std::map<int64_t, Document>> documents;
  /// What requests without an answer are about, by the request's id as JSON.
  llvm::StringMap<Subject> requests;
};

} // namespace tessera

#endif // TESSERA_TOOLS_LSP_SOURCEFILTER_H
