//===- SourceFilter.cpp - .tile sources for MLIR's language server --------===//

#include "tools/tessera-lsp-server/SourceFilter.h"
#include "lib/Source/Guard.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LSP/Protocol.h"

using namespace llvm;
using namespace tessera;

/// The text of a request's id, which is a number or a string.
static std::string getIdText(const json::Value &id) { return formatv("{0}", id).str(); }

/// The path of a file's URI; another URI as it is.
static std::string uriToPath(StringRef uri) {
  Expected<lsp::URIForFile> file = lsp::URIForFile::fromURI(uri);
  if (file)
    return file->file().str();
  consumeError(file.takeError());
  return uri.str();
}

/// Blanks the functions that another file's replace, from the line that names one to the line that
/// begins with its closing brace: MLIR's server knows no overriding.
static void blankReplaced(std::string &text, const source::Files &files) {
  constexpr StringLiteral keyword = "func.func @";
  StringMap<std::pair<size_t, unsigned>> seen;
  unsigned line = 0;
  for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
    ++line;
    StringRef rest = StringRef(text).drop_front(begin);
    if (rest.consume_front(keyword)) {
      auto [other, isNew] =
          seen.try_emplace(rest.take_until([](char c) { return c == '('; }), begin, line);
      const source::File &file = files.findByLine(line);
      if (!isNew && files.doesImport(file, files.findByLine(other->second.second))) {
        size_t end = std::min(text.find("\n}", other->second.first), begin - 2) + 2;
        for (size_t i = other->second.first; i < end; ++i)
          text[i] = text[i] == '\n' ? '\n' : ' ';
        other->second = {begin, line};
      }
    }
    if (text.find('\n', begin) == std::string::npos)
      break;
  }
}

//===----------------------------------------------------------------------===//
// Documents
//===----------------------------------------------------------------------===//

SourceFilter::Subject SourceFilter::getSubject(const json::Object &params) const {
  const json::Object *identifier = params.getObject("textDocument");
  const json::Object &fields = identifier ? *identifier : params;
  Subject subject;
  subject.uri = fields.getString("uri").value_or("").str();
  auto versions = documents.find(subject.uri);
  if (versions != documents.end() && !versions->second.empty())
    subject.version = versions->second.rbegin()->first;
  subject.version = fields.getInteger("version").value_or(subject.version);
  if (const json::Object *position = params.getObject("position"))
    subject.position = {position->getInteger("line").value_or(0),
                        position->getInteger("character").value_or(0)};
  return subject;
}

const SourceFilter::Document *SourceFilter::find(StringRef uri, const Subject &subject) const {
  auto versions = documents.find(uri);
  if (versions == documents.end() || versions->second.empty())
    return nullptr;
  if (uri != subject.uri)
    return &versions->second.rbegin()->second;
  auto version = versions->second.find(subject.version);
  return version == versions->second.end() ? nullptr : &version->second;
}

std::string SourceFilter::open(const Subject &subject, StringRef text) {
  std::map<int64_t, Document> &versions = documents[subject.uri];
  Answers answers(text);
  if (!versions.empty())
    answers.takeParameters(versions.rbegin()->second.answers);
  Document &document = versions[subject.version];
  document = Document();
  document.answers = std::move(answers);
  document.text = text.str();
  auto report = [&](int64_t line, int64_t character, const Twine &message) {
    json::Object range{{"start", json::Object{{"line", line}, {"character", character}}},
                       {"end", json::Object{{"line", line}, {"character", character + 1}}}};
    document.diagnostics.push_back(json::Object{{"range", std::move(range)},
                                                {"severity", 1},
                                                {"source", "tessera"},
                                                {"message", message.str()}});
  };
  source::Files files;
  // What is wrong in an imported file is said where the document begins.
  auto placeError = [&](const source::Place &place, const Twine &message) {
    if (place.file == uriToPath(subject.uri))
      report(int64_t(place.line) - 1, int64_t(place.column) - 1, message);
    else
      report(0, 0, place.file + ":" + Twine(place.line) + ": " + message);
  };
  auto error = [&](size_t offset, const Twine &message) {
    placeError(files.locate(offset), message);
  };
  auto noDefines = [](const source::Define &, const Twine &, std::optional<size_t>) {};
  source::ParameterTable table;
  source::RuleBook rules;
  if (!files.read(text, uriToPath(subject.uri), {}, placeError) ||
      !rules.read(files, {}, placeError) || !table.parse(files, error) ||
      !table.bind(rules, error, noDefines, placeError))
    return {};
  document.answers.setParameters(files, table, subject.uri);
  std::optional<source::Expansion> expansion = source::expand(files, table, error);
  if (!expansion)
    return {};
  auto expandedError = [&](size_t offset, const Twine &message) {
    StringRef before = StringRef(expansion->text).take_front(offset);
    unsigned line = before.count('\n') + 1, column = offset - (before.rfind('\n') + 1) + 1;
    const source::File &file = files.findByLine(line);
    placeError({file.name, line - file.firstLine + 1, expansion->columns.toOriginal(line, column)},
               message);
  };
  if (!source::checkParsable(expansion->text, expandedError))
    return {};
  blankReplaced(expansion->text, files);
  document.importedLines = files.getMain().firstLine - 1;
  document.columns = std::move(expansion->columns);
  return std::move(expansion->text);
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

void SourceFilter::mapPosition(json::Object &position, const Document &document,
                               Mapping mapping) const {
  std::optional<int64_t> line = position.getInteger("line");
  std::optional<int64_t> character = position.getInteger("character");
  if (!line || !character || *line < 0 || *character < 0)
    return;
  // LSP counts from 0, the map from 1. The document's first line stands for those of imported
  // files.
  bool toServer = mapping == Mapping(&source::ColumnMap::toExpanded);
  int64_t expandedLine = toServer ? *line + document.importedLines : *line;
  bool isImported = expandedLine < document.importedLines;
  position["line"] =
      toServer ? expandedLine : std::max<int64_t>(expandedLine - document.importedLines, 0);
  position["character"] =
      isImported
          ? 0
          : static_cast<int64_t>((document.columns.*mapping)(expandedLine + 1, *character + 1)) - 1;
}

void SourceFilter::mapPositions(json::Value &value, StringRef uri, const Subject &subject,
                                Mapping mapping) const {
  if (json::Array *array = value.getAsArray())
    for (json::Value &element : *array)
      mapPositions(element, uri, subject, mapping);
  json::Object *object = value.getAsObject();
  if (!object)
    return;
  if (object->get("line") && object->get("character")) {
    if (const Document *document = find(uri, subject))
      mapPosition(*object, *document, mapping);
    return;
  }
  std::string inner = object->getString("uri").value_or(uri).str();
  for (auto &[key, field] : *object) {
    // The edits of a WorkspaceEdit stand under the URIs of their documents.
    bool isDocument = documents.contains(StringRef(key));
    mapPositions(field, isDocument ? StringRef(key) : StringRef(inner), subject, mapping);
  }
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// The answer to a request that MLIR's server need not see.
std::optional<json::Value> SourceFilter::answer(const Subject &subject, const json::Value &id) {
  const Document *document = find(subject.uri, subject);
  std::optional<json::Value> result =
      document ? document->answers.answer(subject.method, subject.uri, subject.position)
               : std::nullopt;
  if (!result)
    return std::nullopt;
  return json::Object{{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(*result)}};
}

std::optional<json::Value> SourceFilter::toServer(json::Value message) {
  json::Object *object = message.getAsObject();
  StringRef method = object ? object->getString("method").value_or("") : "";
  if (json::Value *id = object ? object->get("id") : nullptr; id && method == "shutdown") {
    std::lock_guard<std::mutex> lock(mutex);
    requests[getIdText(*id)].method = method.str();
  }
  json::Value *params = object ? object->get("params") : nullptr;
  json::Object *fields = params ? params->getAsObject() : nullptr;
  if (!fields)
    return message;
  std::lock_guard<std::mutex> lock(mutex);
  Subject subject = getSubject(*fields);
  subject.method = method.str();
  json::Value *id = object->get("id");
  if (id && method == "initialize")
    requests[getIdText(*id)] = subject;
  if (!StringRef(subject.uri).ends_with(".tile"))
    return message;
  if (id) {
    if (std::optional<json::Value> answered = answer(subject, *id)) {
      send(std::move(*answered));
      return std::nullopt;
    }
    requests[getIdText(*id)] = subject;
  }
  if (method == "textDocument/didOpen") {
    if (json::Object *document = fields->getObject("textDocument"))
      (*document)["text"] = open(subject, document->getString("text").value_or(""));
  } else if (method == "textDocument/didChange") {
    if (json::Array *changes = fields->getArray("contentChanges"))
      for (json::Value &change : *changes)
        if (json::Object *full = change.getAsObject())
          (*full)["text"] = open(subject, full->getString("text").value_or(""));
  } else if (method == "textDocument/didClose") {
    documents.erase(subject.uri);
  } else {
    mapPositions(*params, subject.uri, subject, &source::ColumnMap::toExpanded);
  }
  return message;
}

void SourceFilter::finishDiagnostics(json::Object &params, const Subject &subject) {
  json::Array *diagnostics = params.getArray("diagnostics");
  const Document *found = find(subject.uri, subject);
  if (!found || !diagnostics)
    return;
  std::map<int64_t, Document> &versions = documents[subject.uri];
  Document &document = versions[subject.version];
  for (const json::Value &diagnostic : document.diagnostics)
    diagnostics->push_back(diagnostic);
  document.diagnostics = *diagnostics;
  versions.erase(versions.begin(), versions.find(subject.version));
  auto isError = [](const json::Value &diagnostic) {
    const json::Object *fields = diagnostic.getAsObject();
    return fields && fields->getInteger("severity") == 1;
  };
  // What cannot be read is not compiled.
  if (none_of(*diagnostics, isError))
    check.start({subject.uri, subject.version, uriToPath(subject.uri), document.text});
}

/// Tells the client what the compiler found, unless the text has changed meanwhile.
void SourceFilter::publish(const CheckedText &text, json::Array found) {
  std::lock_guard<std::mutex> lock(mutex);
  auto versions = documents.find(text.uri);
  if (versions == documents.end() || versions->second.empty() ||
      versions->second.rbegin()->first != text.version || found.empty())
    return;
  json::Array all = versions->second.rbegin()->second.diagnostics;
  for (json::Value &diagnostic : found)
    all.push_back(std::move(diagnostic));
  send(json::Object{{"jsonrpc", "2.0"},
                    {"method", "textDocument/publishDiagnostics"},
                    {"params", json::Object{{"uri", text.uri},
                                            {"version", text.version},
                                            {"diagnostics", std::move(all)}}}});
}

/// Says who serves, and what it answers beside MLIR's server.
void SourceFilter::finishCapabilities(json::Object &result) {
  result["serverInfo"] = json::Object{{"name", "tessera-lsp-server"}, {"version", TESSERA_VERSION}};
  json::Object *capabilities = result.getObject("capabilities");
  if (!capabilities)
    return;
  // The filter replaces whole texts, so the client must send whole texts.
  if (json::Object *sync = capabilities->getObject("textDocumentSync"))
    (*sync)["change"] = 1;
  if (json::Object *completion = capabilities->getObject("completionProvider"))
    if (json::Array *triggers = completion->getArray("triggerCharacters"))
      for (StringRef trigger : {"$", "<", "\"", "="})
        if (!is_contained(*triggers, json::Value(trigger)))
          triggers->push_back(trigger);
}

bool SourceFilter::answersShutdown(const json::Object &message) {
  std::lock_guard<std::mutex> lock(mutex);
  const json::Value *id = message.get("id");
  return id && message.get("result") && requests.lookup(getIdText(*id)).method == "shutdown";
}

json::Value SourceFilter::toClient(json::Value message) {
  json::Object *object = message.getAsObject();
  if (!object)
    return message;
  // The server has answered all before it, and nothing is published behind it.
  if (answersShutdown(*object))
    check.finish();
  std::lock_guard<std::mutex> lock(mutex);
  if (json::Value *params = object->get("params")) {
    json::Object *fields = params->getAsObject();
    Subject subject = fields ? getSubject(*fields) : Subject();
    mapPositions(*params, subject.uri, subject, &source::ColumnMap::toOriginal);
    if (fields && object->getString("method") == StringRef("textDocument/publishDiagnostics"))
      finishDiagnostics(*fields, subject);
    return message;
  }
  json::Value *result = object->get("result"), *id = object->get("id");
  if (!result || !id)
    return message;
  auto request = requests.find(getIdText(*id));
  if (request == requests.end())
    return message;
  Subject subject = request->second;
  requests.erase(request);
  if (subject.method == "initialize") {
    if (json::Object *fields = result->getAsObject())
      finishCapabilities(*fields);
    return message;
  }
  const Document *document = find(subject.uri, subject);
  if (subject.method == "textDocument/completion" && document)
    document->answers.filterCompletion(*result, subject.position);
  mapPositions(*result, subject.uri, subject, &source::ColumnMap::toOriginal);
  return message;
}
