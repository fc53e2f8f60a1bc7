//===- SourceFilter.h - .tile sources for MLIR's language server ----------===//
//
// MLIR's language server reads plain MLIR. The filter stands between it and
// the client: texts of `.tile` documents pass with the defaults of their
// parameters bound, positions are mapped both ways, and errors of the reader
// join the diagnostics of the parser. What the machine does not take follows
// from a compilation, and what the server does not know is answered here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_LSP_SOURCEFILTER_H
#define TESSERA_TOOLS_LSP_SOURCEFILTER_H

#include "lib/Source/Expansion.h"
#include "tools/tessera-lsp-server/Answers.h"
#include "tools/tessera-lsp-server/MachineCheck.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <mutex>

namespace tessera {

/// Rewrites JSON-RPC messages. Both directions may be used by a thread each.
class SourceFilter {
public:
  /// Sends a message to the client, from any thread.
  using Sender = std::function<void(llvm::json::Value)>;
  explicit SourceFilter(Sender send)
      : send(send), check([this](const CheckedText &text, llvm::json::Array found) {
          publish(text, std::move(found));
        }) {}

  /// A message of the client as the server should see it; none where the filter has answered.
  std::optional<llvm::json::Value> toServer(llvm::json::Value message);

  /// A message of the server as the client should see it.
  llvm::json::Value toClient(llvm::json::Value message);

private:
  /// One version of a document.
  struct Document {
    source::ColumnMap columns;
    /// How many lines of imported files the server sees before those of the document.
    int64_t importedLines = 0;
    /// Errors of the reader, as LSP diagnostics; then all that were published.
    llvm::json::Array diagnostics;
    Answers answers;
    std::string text;
  };
  /// The version of a document that a message is about. The server answers in order but later, so
  /// that the client may have sent another version meanwhile.
  struct Subject {
    std::string uri;
    int64_t version = 0;
    std::string method;
    Position position;
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
  bool answersShutdown(const llvm::json::Object &message);
  void finishCapabilities(llvm::json::Object &result);
  std::optional<llvm::json::Value> answer(const Subject &subject, const llvm::json::Value &id);
  void publish(const CheckedText &text, llvm::json::Array found);

  Sender send;
  std::mutex mutex;
  /// By version; those older than the last that the server answered are gone.
  llvm::StringMap<std::map<int64_t, Document>> documents;
  /// What requests without an answer are about, by the request's id as JSON.
  llvm::StringMap<Subject> requests;
  /// Ends first, as it publishes.
  MachineCheck check;
};

} // namespace tessera

#endif // TESSERA_TOOLS_LSP_SOURCEFILTER_H
