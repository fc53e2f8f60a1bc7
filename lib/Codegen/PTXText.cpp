//===- PTXText.cpp - What the text of a PTX module says -------------------===//

#include "lib/Codegen/PTXText.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tessera {

json::Object InstructionCounts::toJSON() const {
  return json::Object{{"wgmma", wgmma},
                      {"tma_loads", tmaLoads},
                      {"tma_stores", tmaStores},
                      {"tma_reductions", tmaReductions},
                      {"ex2", exponentials},
                      {"shfl", shuffles},
                      {"barriers", barriers},
                      {"mbarrier_waits", mbarrierWaits},
                      {"mbarrier_arrives", mbarrierArrives}};
}

/// The part of a line before its comment.
static StringRef code(StringRef line) { return line.split("//").first.trim(); }

/// True when `opcode` is `name` or `name` followed by modifiers.
static bool isInstruction(StringRef opcode, StringRef name) {
  return opcode.consume_front(name) && (opcode.empty() || opcode.front() == '.');
}

static void countBulkCopy(StringRef opcode, InstructionCounts &counts) {
  // The destination's state space comes before the source's.
  size_t shared = opcode.find(".shared"), global = opcode.find(".global");
  if (shared == StringRef::npos && global == StringRef::npos)
    return; // commit_group, wait_group
  ++(shared < global ? counts.tmaLoads : counts.tmaStores);
}

static void countInstruction(StringRef statement, InstructionCounts &counts) {
  statement = statement.ltrim("{} \t");
  if (statement.starts_with("@"))
    statement = statement.drop_until([](char c) { return isSpace(c); }).ltrim();
  StringRef opcode = statement.take_until([](char c) { return isSpace(c); });
  if (isInstruction(opcode, "wgmma.mma_async"))
    ++counts.wgmma;
  else if (isInstruction(opcode, "cp.async.bulk"))
    countBulkCopy(opcode, counts);
  else if (isInstruction(opcode, "cp.reduce.async.bulk"))
    ++counts.tmaReductions;
  else if (isInstruction(opcode, "ex2"))
    ++counts.exponentials;
  else if (isInstruction(opcode, "shfl"))
    ++counts.shuffles;
  else if (isInstruction(opcode, "bar") || isInstruction(opcode, "barrier"))
    ++counts.barriers;
  else if (isInstruction(opcode, "mbarrier.try_wait") ||
           isInstruction(opcode, "mbarrier.test_wait"))
    ++counts.mbarrierWaits;
  else if (isInstruction(opcode, "mbarrier.arrive") ||
           isInstruction(opcode, "mbarrier.arrive_drop"))
    ++counts.mbarrierArrives;
}

static void countInstructions(StringRef line, InstructionCounts &counts) {
  SmallVector<StringRef> statements;
  line.split(statements, ';', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef statement : statements) {
    statement = statement.trim();
    // A label may stand before an instruction; the colons of `shared::cta` come in pairs.
    StringRef label =
        statement.take_while([](char c) { return isAlnum(c) || c == '_' || c == '$'; });
    StringRef rest = statement.drop_front(label.size());
    if (!label.empty() && rest.starts_with(":") && !rest.starts_with("::"))
      statement = rest.drop_front(1).ltrim();
    countInstruction(statement, counts);
  }
}

void PTXText::parseFile(StringRef directive) {
  unsigned number = 0;
  StringRef rest = directive.ltrim();
  if (rest.consumeInteger(10, number))
    return;
  files[number] = rest.split('"').second.split('"').first.str();
}

void PTXText::parseLoc(StringRef directive) {
  unsigned file = 0, line = 0, column = 0;
  StringRef rest = directive.ltrim();
  if (rest.consumeInteger(10, file))
    return;
  rest = rest.ltrim();
  if (rest.consumeInteger(10, line))
    return;
  rest = rest.ltrim();
  if (rest.consumeInteger(10, column))
    return;
  current.file = file;
  current.line = line;
  current.column = column;
}

PTXText::PTXText(StringRef ptx) {
  SmallVector<StringRef> text;
  ptx.split(text, '\n');
  lines.reserve(text.size());
  for (StringRef raw : text) {
    StringRef line = code(raw);
    size_t entry = line.find(".entry ");
    if (entry != StringRef::npos) {
      StringRef name = line.substr(entry + 7).ltrim();
      name = name.take_until([](char c) { return c == '(' || isSpace(c); });
      current = Line();
      current.kernel = kernelNames.size();
      kernelNames.push_back(name.str());
      kernels[name] = InstructionCounts();
    } else if (line.contains(".func ")) {
      current = Line();
    } else if (line.starts_with(".loc") && line.size() > 4 && isSpace(line[4])) {
      parseLoc(line.drop_front(4));
    } else if (line.starts_with(".file")) {
      parseFile(line.drop_front(5));
    }
    // A kernel reaches to the next function or section; its header has nothing that would count.
    if (current.kernel >= 0)
      countInstructions(line, kernels[kernelNames[current.kernel]]);
    if (line.starts_with(".section"))
      current = Line();
    lines.push_back(current);
  }
}

std::optional<SourcePosition> PTXText::position(unsigned ptxLine) const {
  if (ptxLine == 0 || ptxLine > lines.size())
    return std::nullopt;
  const Line &line = lines[ptxLine - 1];
  auto file = files.find(line.file);
  if (line.line == 0 || file == files.end())
    return std::nullopt;
  return SourcePosition{file->second, line.line, std::max(line.column, 1u)};
}

StringRef PTXText::kernelAt(unsigned ptxLine) const {
  if (ptxLine == 0 || ptxLine > lines.size() || lines[ptxLine - 1].kernel < 0)
    return "";
  return kernelNames[lines[ptxLine - 1].kernel];
}

std::string withoutLineInfo(StringRef ptx) {
  std::string result;
  result.reserve(ptx.size() + ptx.size() / 16);
  while (!ptx.empty()) {
    auto [line, rest] = ptx.split('\n');
    StringRef text = line.ltrim();
    if (text.starts_with(".loc\t") || text.starts_with(".loc ") || text.starts_with(".file") ||
        text.starts_with(".section"))
      result += "//";
    result += line;
    if (line.size() != ptx.size())
      result += '\n';
    ptx = rest;
  }
  return result;
}

} // namespace tessera
