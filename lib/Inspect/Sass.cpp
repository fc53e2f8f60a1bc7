//===- Sass.cpp - The text of nvdisasm ------------------------------------===//

#include "lib/Inspect/Sass.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace tessera::sass;

std::string Instruction::getPlace() const {
  return line ? (sys::path::filename(file) + ":" + Twine(line)).str() : "";
}

namespace {
class Parser {
public:
  std::vector<Function> parse(StringRef text);

private:
  void parseLine(StringRef line);
  bool parseInstruction(StringRef line);
  void resolveBranches();

  std::vector<Function> functions;
  StringMap<size_t> labels; ///< of the function at hand
  std::vector<std::pair<size_t, std::string>> branches;
  unsigned sourceLine = 0;
  StringRef sourceFile;
};
} // namespace

/// `/*0070*/  @P0 BRA `(.L_x_1) ;`
bool Parser::parseInstruction(StringRef line) {
  if (!line.consume_front("/*"))
    return false;
  uint64_t address;
  auto [digits, rest] = line.split("*/");
  if (digits.getAsInteger(16, address) || functions.empty())
    return false;
  StringRef code = rest.rsplit(';').first.trim();
  if (code.empty())
    return false;
  Instruction instruction;
  instruction.address = address;
  instruction.line = sourceLine;
  instruction.file = sourceFile.str();
  if (code.starts_with("@")) {
    auto [guard, tail] = code.split(' ');
    instruction.guard = guard.str();
    code = tail.ltrim();
  }
  auto [opcode, operands] = code.split(' ');
  instruction.opcode = opcode.str();
  instruction.operands = operands.trim().str();
  Function &function = functions.back();
  StringRef label = operands.split("`(").second.split(')').first;
  if (instruction.getMnemonic() == "BRA" && !label.empty())
    branches.emplace_back(function.instructions.size(), label.str());
  function.instructions.push_back(std::move(instruction));
  return true;
}

void Parser::resolveBranches() {
  for (auto &[index, label] : branches)
    if (auto found = labels.find(label); found != labels.end())
      functions.back().instructions[index].target = found->second;
  branches.clear();
  labels.clear();
  sourceLine = 0;
  sourceFile = {};
}

void Parser::parseLine(StringRef line) {
  line = line.trim();
  StringRef rest = line;
  if (rest.consume_front(".section")) {
    if (!functions.empty())
      resolveBranches();
    rest = rest.ltrim();
    if (rest.consume_front(".text."))
      functions.push_back({rest.split(',').first.str(), {}});
  } else if (line.starts_with("//##")) {
    // A line that was inlined into another follows it; the first is the innermost.
    if (!line.contains("inlined at")) {
      (void)line.rsplit("line ").second.take_while(isDigit).getAsInteger(10, sourceLine);
      sourceFile = line.split('"').second.split('"').first;
    }
  } else if (!parseInstruction(line) && line.ends_with(":") && !functions.empty()) {
    labels[line.drop_back()] = functions.back().instructions.size();
  }
}

std::vector<Function> Parser::parse(StringRef text) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    parseLine(line);
    text = rest;
  }
  if (!functions.empty())
    resolveBranches();
  for (Function &function : functions)
    for (Instruction &instruction : function.instructions)
      if (instruction.target && *instruction.target >= function.instructions.size())
        instruction.target.reset();
  llvm::erase_if(functions, [](const Function &f) { return f.instructions.empty(); });
  return std::move(functions);
}

std::vector<Function> tessera::sass::parseDisassembly(StringRef text) {
  return Parser().parse(text);
}
