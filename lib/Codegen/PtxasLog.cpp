//===- PtxasLog.cpp - What ptxas printed ----------------------------------===//

#include "lib/Codegen/PtxasLog.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;

namespace tessera {

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

namespace {
struct CodeEntry {
  StringRef code;
  PtxasVerdict verdict;
  PtxasExplanation explanation;
};
} // namespace

static constexpr StringRef relocatableHelp =
    "remove -c and --compile-only from the ptxas arguments: a kernel must be assembled whole";
static constexpr StringRef registersHelp =
    "use a smaller tile, fewer consumers with more registers each, or overlap = 1";

// Verified on ptxas 12.9, 13.0 and 13.5, except for C7510, C7518 and C7520, which are known from
// their texts.
static constexpr CodeEntry codes[] = {
    {"C7504",
     PtxasVerdict::Slow,
     {"setmaxnreg is ignored because the code is relocatable, so every role keeps the same "
      "registers",
      relocatableHelp}},
    {"C7508",
     PtxasVerdict::Slow,
     {"setmaxnreg is ignored because the number of registers at entry is unknown",
      "the kernel must bound it, with .minnctapersm or .maxnreg in the PTX"}},
    {"C7509",
     PtxasVerdict::Slow,
     {"wgmma is serialised because the kernel calls, or may call, external functions",
      relocatableHelp}},
    {"C7510",
     PtxasVerdict::Slow,
     {"wgmma is serialised because a group in flight crosses a function call",
      "every function that a kernel calls between a dot and its wait must be inlined"}},
    {"C7511",
     PtxasVerdict::Slow,
     {"wgmma is serialised because the accumulators in flight do not fit in the registers",
      registersHelp}},
    {"C7512",
     PtxasVerdict::Slow,
     {"wgmma is serialised because the kernel needs more registers than a thread may have",
      registersHelp}},
    {"C7513",
     PtxasVerdict::Slow,
     {"wgmma is serialised because a register operand of a dot in flight is written before the dot "
      "has been waited for",
      "the left operand must be packed after the wait of the dot that reads the registers"}},
    {"C7514",
     PtxasVerdict::Slow,
     {"wgmma is serialised because an accumulator in flight is read before its wait",
      "a dot in flight at the end of an iteration must be waited for first thing in the next; a "
      "loop "
      "in which three accumulators or more take each other's places moves them under their dots: "
      "yield each in its own place"}},
    {"C7515",
     PtxasVerdict::Slow,
     {"wgmma is serialised because an accumulator in flight is written by another instruction",
      "rescale an accumulator only while no dot that uses it is in flight"}},
    {"C7516",
     PtxasVerdict::Slow,
     {"wgmma is serialised because a group is not well formed on every path",
      "issue, commit and wait must follow each other on all paths through a loop body"}},
    {"C7517", PtxasVerdict::Remark, {}},
    {"C7518",
     PtxasVerdict::Slow,
     {"wgmma is serialised because ptxas must add a wait on a divergent path",
      "dots and their waits must not stand under a condition that differs between threads"}},
    {"C7519", PtxasVerdict::Remark, {}},
    {"C7520",
     PtxasVerdict::Slow,
     {"wgmma is serialised because ptxas must add a fence on a divergent path",
      "dots and their fences must not stand under a condition that differs between threads"}},
    {"C7602",
     PtxasVerdict::Slow,
     {"an instruction needs more registers than a thread has", registersHelp}},
};

static const CodeEntry *findCode(StringRef code) {
  const CodeEntry *entry = llvm::find_if(codes, [&](const CodeEntry &e) { return e.code == code; });
  return entry == std::end(codes) ? nullptr : entry;
}

/// What to make of a message that ptxas itself gave the verdict `given`. A code that is not in the
/// table is judged by its text, which newer releases keep. One that is in the table is about the
/// kernel and not about ptxas, even when ptxas ends with it.
static PtxasVerdict judge(PtxasVerdict given, StringRef code, StringRef text) {
  if (const CodeEntry *entry = findCode(code))
    return entry->verdict;
  if (given == PtxasVerdict::Error)
    return given;
  if (text.contains("instructions are serialized") || text.contains("'setmaxnreg' ignored"))
    return PtxasVerdict::Slow;
  return code.empty() ? given : PtxasVerdict::Warning;
}

PtxasExplanation explainPtxasCode(StringRef code) {
  if (const CodeEntry *entry = findCode(code))
    return entry->explanation;
  return {"ptxas did not honour the order of asynchronous work or the registers of the roles",
          "see the message of ptxas"};
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

static StringRef quoted(StringRef text, StringRef before) {
  size_t start = text.find(before);
  if (start == StringRef::npos)
    return "";
  text = text.drop_front(start + before.size());
  return text.consume_front("'") ? text.split('\'').first : "";
}

static unsigned numberAfter(StringRef text, StringRef before) {
  size_t start = text.find(before);
  unsigned number = 0;
  if (start != StringRef::npos)
    text.drop_front(start + before.size()).consumeInteger(10, number);
  return number;
}

/// The number that stands before `unit`, as in "144 bytes stack frame".
static unsigned numberBefore(StringRef text, StringRef unit) {
  size_t end = text.find(unit);
  if (end == StringRef::npos)
    return 0;
  StringRef head = text.take_front(end);
  size_t start = head.find_last_not_of("0123456789");
  unsigned number = 0;
  head.drop_front(start == StringRef::npos ? 0 : start + 1).getAsInteger(10, number);
  return number;
}

namespace {
class LogParser {
public:
  PtxasLog log;

  void parseLine(StringRef line) {
    StringRef text = line.trim();
    if (text.empty())
      return;
    if (text.contains("bytes stack frame"))
      return parseFrame(text);
    StringRef rest = text;
    if (!rest.consume_front("ptxas "))
      return addMessage(PtxasVerdict::Warning, text, 0);
    unsigned ptxLine = 0;
    // "ptxas FILE, line N; error   : TEXT" where the file is known.
    size_t semicolon = rest.find("; ");
    if (semicolon != StringRef::npos && rest.take_front(semicolon).contains(", line ")) {
      ptxLine = numberAfter(rest.take_front(semicolon), ", line ");
      rest = rest.drop_front(semicolon + 2);
    }
    auto [severity, message] = rest.split(':');
    severity = severity.trim();
    message = message.trim();
    if (severity == "info")
      return parseInfo(message);
    if (severity == "error" || severity == "fatal")
      return addMessage(PtxasVerdict::Error, message, ptxLine);
    addMessage(PtxasVerdict::Warning, severity == "warning" ? message : text, ptxLine);
  }

private:
  PtxasFunction &function(StringRef name) {
    for (PtxasFunction &known : log.functions)
      if (known.name == name)
        return known;
    log.functions.emplace_back();
    log.functions.back().name = name.str();
    return log.functions.back();
  }

  void addMessage(PtxasVerdict verdict, StringRef text, unsigned ptxLine) {
    PtxasMessage message;
    message.ptxLine = ptxLine;
    if (text.starts_with("(C") && text.contains(") ")) {
      StringRef code;
      std::tie(code, text) = text.split(") ");
      message.code = code.drop_front(1).str();
    }
    message.verdict = judge(verdict, message.code, text);
    message.function = quoted(text, "function ").str();
    if (ptxLine == 0) {
      StringRef tail = text.rsplit(" in ").second;
      message.ptxLine = text.contains("around line ") ? numberAfter(text, "around line ")
                                                      : numberAfter(tail, "line ");
    }
    message.text = text.str();
    log.messages.push_back(std::move(message));
  }

  void parseInfo(StringRef text) {
    StringRef name = quoted(text, "Compiling entry function ");
    if (!name.empty()) {
      current = name.str();
      function(current).entry = true;
      return;
    }
    if (text.starts_with("Function properties for ")) {
      frameOwner = text.drop_front(strlen("Function properties for ")).trim().str();
      return;
    }
    if (text.starts_with("Used ") && text.contains(" registers")) {
      function(current).registers = numberAfter(text, "Used ");
      function(current).barriers = numberBefore(text, " barriers");
      return;
    }
    addMessage(PtxasVerdict::Info, text, 0);
  }

  void parseFrame(StringRef text) {
    PtxasFunction &owner = function(frameOwner);
    owner.stackBytes = numberBefore(text, " bytes stack frame");
    owner.spillStoreBytes = numberBefore(text, " bytes spill stores");
    owner.spillLoadBytes = numberBefore(text, " bytes spill loads");
  }

  std::string current, frameOwner;
};
} // namespace

const PtxasFunction *PtxasLog::find(StringRef name) const {
  for (const PtxasFunction &function : functions)
    if (function.name == name)
      return &function;
  return nullptr;
}

PtxasLog parsePtxasLog(StringRef text) {
  LogParser parser;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines)
    parser.parseLine(line);
  return std::move(parser.log);
}

} // namespace tessera
