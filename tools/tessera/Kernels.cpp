//===- Kernels.cpp - tessera kernels --------------------------------------===//

#include "lib/Source/Shipped.h"
#include "tools/tessera/Commands.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>

using namespace llvm;
using namespace tessera;

/// What the first lines of comment say, to the end of a sentence or of the paragraph.
static std::string summarize(StringRef text) {
  std::string summary;
  while (text.consume_front("//")) {
    auto [line, rest] = text.split('\n');
    if (line.trim().empty())
      break;
    size_t end = line.find(". ");
    summary += (summary.empty() ? "" : " ") + line.take_front(end).trim().str();
    if (end != StringRef::npos)
      break;
    text = rest;
  }
  return StringRef(summary).rtrim(".:,").str();
}

static int listKernels() {
  for (auto [name, text] : getShippedTexts()) {
    if (!name.ends_with(".tile"))
      continue;
    SourceInfo info = inspect(text, getShippedFileName(name), {}, /*handler=*/nullptr);
    // What has no kernel is imported by others.
    if (!info.kernels.empty() || !info.sequences.empty())
      outs() << formatv("{0,-32} {1}\n", name.drop_back(strlen(".tile")), summarize(text));
  }
  outs() << "\ntessera params NAME says what one takes; tessera compile NAME compiles it\n";
  return ExitSuccess;
}

void tessera::addKernelsCommand(CLI::App &app) {
  CLI::App *sub = app.add_subcommand(
      "kernels", "List the kernels that ship, which every subcommand takes by name");
  sub->callback([] { throw CLI::RuntimeError(listKernels()); });
}
