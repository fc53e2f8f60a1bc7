//===- Answers.cpp - What MLIR's server does not know of a text -----------===//

#include "tools/tessera-lsp-server/Answers.h"
#include "lib/Reference/Reference.h"
#include "passes/Schedule/Arithmetic.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/LSP/Protocol.h"
#include "llvm/Support/Path.h"
#include <algorithm>

using namespace llvm;
using namespace tessera;

/// Numbers of CompletionItemKind.
enum class ItemKind { Field = 5, Variable = 6, Value = 12, Constant = 21 };

static json::Object makePosition(Position position) {
  return json::Object{{"line", position.line}, {"character", position.character}};
}

static json::Object makeRange(Position start, size_t length) {
  Position end = start;
  end.character += length;
  return json::Object{{"start", makePosition(start)}, {"end", makePosition(end)}};
}

static json::Object makeItem(StringRef label, ItemKind kind, StringRef detail,
                             const Twine &documentation) {
  return json::Object{{"label", label.str()},
                      {"kind", static_cast<int64_t>(kind)},
                      {"detail", detail.str()},
                      {"documentation", documentation.str()}};
}

static bool isWordCharacter(char c) { return isAlnum(c) || c == '_'; }

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

Answers::Cursor Answers::look(Position position) const {
  StringRef rest = text;
  // Behind the last line `rest` is empty at the end of the text, into which Cursor::before points.
  for (int64_t line = 0; line < position.line && !rest.empty(); ++line)
    rest = rest.drop_front(std::min(rest.find('\n'), rest.size() - 1) + 1);
  StringRef line = rest.split('\n').first;
  size_t column = std::min<size_t>(std::max<int64_t>(position.character, 0), line.size());
  size_t begin = column, end = column;
  while (begin > 0 && isWordCharacter(line[begin - 1]))
    --begin;
  while (end < line.size() && isWordCharacter(line[end]))
    ++end;
  return {
      line.take_front(begin), line.slice(begin, end), {position.line, static_cast<int64_t>(begin)}};
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// The URI of a file on disk; empty for one that ships.
static std::string findUri(StringRef file) {
  if (!sys::path::is_absolute(file))
    return "";
  Expected<lsp::URIForFile> uri = lsp::URIForFile::fromFile(file);
  if (uri)
    return uri->uri().str();
  consumeError(uri.takeError());
  return "";
}

void Answers::setParameters(const source::Files &files, const source::ParameterTable &table,
                            StringRef uri) {
  parameters.clear();
  for (const source::Parameter &parameter : table.getParameters()) {
    KnownParameter &known = parameters.emplace_back();
    source::Place place = files.locate(parameter.offset);
    known.name = parameter.name;
    known.uri = place.file == files.getMain().name ? uri.str() : findUri(place.file);
    known.place = {int64_t(place.line) - 1, int64_t(place.column) - 1};
    known.description = "`param " + parameter.name + "` = `" + parameter.value.str() + "` (" +
                        parameter.describeOrigin() + ")";
    if (!parameter.allowed.empty())
      known.description += ", of " + join(parameter.allowed, ", ");
    if (!parameter.documentation.empty())
      known.description += "\n\n" + parameter.documentation;
  }
}

/// Whether the cursor stands where a name is a parameter's: behind `$`, in `$(...)`, in a
/// declaration or in a directive.
static bool isInExpression(StringRef before) {
  if (before.ends_with("$"))
    return true;
  StringRef line = before.ltrim();
  if (line.starts_with("param "))
    return true;
  // A colon ends the condition of a line that it keeps.
  if ((line.starts_with("$if ") || line.starts_with("$elif ")) && !line.contains(':'))
    return true;
  size_t open = before.rfind("$(");
  return open != StringRef::npos &&
         before.drop_front(open).count('(') > before.drop_front(open).count(')');
}

const KnownParameter *Answers::findParameter(const Cursor &cursor) const {
  if (!isInExpression(cursor.before))
    return nullptr;
  auto found =
      find_if(parameters, [&](const KnownParameter &known) { return known.name == cursor.word; });
  return found == parameters.end() ? nullptr : &*found;
}

//===----------------------------------------------------------------------===//
// Schedules and dimensions
//===----------------------------------------------------------------------===//

/// What stands before the word within #tile.schedule<...>; nothing outside of one.
std::optional<StringRef> Answers::findScheduleStart(const Cursor &cursor) const {
  StringRef before = StringRef(text).take_front(cursor.before.end() - text.data());
  size_t begin = before.rfind("#tile.schedule<");
  if (begin == StringRef::npos || before.drop_front(begin).contains('>'))
    return std::nullopt;
  return before.drop_front(begin + StringRef("#tile.schedule<").size());
}

/// Calls `visit` with each dimension that a view of `text` names, until it returns true.
static void forEachDim(StringRef text, function_ref<bool(StringRef)> visit) {
  constexpr StringLiteral keyword = "tile.view<[";
  for (size_t at = text.find(keyword); at != StringRef::npos; at = text.find(keyword, at + 1)) {
    StringRef dims = text.drop_front(at + keyword.size()).split(']').first;
    while (!dims.empty()) {
      auto [dim, rest] = dims.split(',');
      dims = rest;
      if (dim = dim.trim(); !dim.empty() && isAlpha(dim.front()) && visit(dim))
        return;
    }
  }
}

std::vector<std::string> Answers::listDims() const {
  std::vector<std::string> dims;
  forEachDim(text, [&](StringRef dim) {
    if (!is_contained(dims, dim))
      dims.push_back(dim.str());
    return false;
  });
  return dims;
}

std::optional<Position> Answers::findDim(StringRef name) const {
  std::optional<Position> place;
  forEachDim(text, [&](StringRef dim) {
    if (dim != name)
      return false;
    StringRef before = StringRef(text).take_front(dim.data() - text.data());
    size_t lineStart = before.rfind('\n') + 1;
    place = {static_cast<int64_t>(before.count('\n')),
             static_cast<int64_t>(before.size() - lineStart)};
    return true;
  });
  return place;
}

/// Whether the cursor stands where a name is a dimension's: in a view, a grid, or tile.dim.
bool Answers::isDim(const Cursor &cursor) const {
  StringRef before = cursor.before;
  auto isOpen = [&](StringRef open, char close) {
    size_t at = before.rfind(open);
    return at != StringRef::npos && !before.drop_front(at).contains(close);
  };
  return before.ends_with("tile.dim \"") || isOpen("tile.view<[", ']') || isOpen("grid(", ')');
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

std::optional<json::Value> Answers::hover(const Cursor &cursor) const {
  std::string said;
  if (const KnownParameter *parameter = findParameter(cursor)) {
    said = parameter->description;
  } else if (const FieldText *field =
                 findScheduleStart(cursor) ? findFieldText(cursor.word) : nullptr) {
    said = ("**" + field->name + "**: " + field->values + "; when absent " + field->whenAbsent +
            "\n\n" + field->meaning)
               .str();
  } else if (cursor.before.ends_with("tile.")) {
    said = describeOperation(("tile." + cursor.word).str());
  } else if (isDim(cursor) && findDim(cursor.word)) {
    said = ("`" + cursor.word + "`: a dimension of views, whose extent a launch fixes").str();
  }
  if (said.empty())
    return std::nullopt;
  return json::Object{{"contents", json::Object{{"kind", "markdown"}, {"value", std::move(said)}}},
                      {"range", makeRange(cursor.start, cursor.word.size())}};
}

std::optional<json::Value> Answers::define(const Cursor &cursor, StringRef uri) const {
  auto locate = [&](StringRef of, Position place) {
    return json::Array{
        json::Object{{"uri", of.str()}, {"range", makeRange(place, cursor.word.size())}}};
  };
  if (const KnownParameter *parameter = findParameter(cursor))
    return parameter->uri.empty() ? json::Array() : locate(parameter->uri, parameter->place);
  if (!isDim(cursor))
    return std::nullopt;
  if (std::optional<Position> place = findDim(cursor.word))
    return locate(uri, *place);
  return std::nullopt;
}

std::optional<json::Value> Answers::complete(const Cursor &cursor) const {
  json::Array items;
  if (isInExpression(cursor.before)) {
    for (const KnownParameter &known : parameters)
      items.push_back(makeItem(known.name, ItemKind::Constant, "parameter", known.description));
  } else if (std::optional<StringRef> fields = findScheduleStart(cursor)) {
    StringRef item = fields->drop_front(fields->rfind(',') + 1);
    auto [name, value] = item.split('=');
    const FieldText *field = item.contains('=') ? findFieldText(name.trim()) : nullptr;
    if (field) {
      SmallVector<StringRef> values;
      for (StringRef list : split(field->values.split(", or a list").first, " or "))
        list.split(values, ", ");
      for (StringRef each : values)
        if (all_of(each, isWordCharacter))
          items.push_back(makeItem(each, ItemKind::Value, field->name, field->meaning));
    } else {
      for (const FieldText &each : getFieldTexts())
        items.push_back(makeItem(each.name, ItemKind::Field, each.values, each.meaning));
    }
  } else if (cursor.before.ends_with("tile.dim \"")) {
    for (const std::string &dim : listDims())
      items.push_back(makeItem(dim, ItemKind::Variable, "dimension", ""));
  } else {
    return std::nullopt;
  }
  return json::Object{{"isIncomplete", false}, {"items", std::move(items)}};
}

std::optional<json::Value> Answers::answer(StringRef method, StringRef uri,
                                           Position position) const {
  Cursor cursor = look(position);
  if (method == "textDocument/hover")
    return hover(cursor);
  if (method == "textDocument/definition")
    return define(cursor, uri);
  if (method == "textDocument/completion")
    return complete(cursor);
  return std::nullopt;
}

void Answers::filterCompletion(json::Value &result, Position position) const {
  json::Object *list = result.getAsObject();
  json::Array *items = list ? list->getArray("items") : nullptr;
  if (!items)
    return;
  // "tile." of `%s = tile.do`: MLIR's server offers the names behind it.
  StringRef before = look(position).before;
  StringRef dialect;
  if (before.consume_back("."))
    dialect = before.drop_front(before.find_last_not_of("abcdefghijklmnopqrstuvwxyz") + 1);
  // Builtin types that no kernel has.
  constexpr StringLiteral foreign[] = {"complex", "memref", "none", "tuple", "vector"};
  std::vector<json::Value> kept;
  for (json::Value &item : *items) {
    const json::Object *fields = item.getAsObject();
    StringRef label = fields ? fields->getString("label").value_or("") : "";
    std::string name = (dialect + "." + label).str();
    bool hides = dialect.empty() ? is_contained(foreign, label)
                                 : isOfPasses(name) || !findReplacement(name).empty();
    if (!hides)
      kept.push_back(std::move(item));
  }
  *items = json::Array();
  for (json::Value &item : kept)
    items->push_back(std::move(item));
}
