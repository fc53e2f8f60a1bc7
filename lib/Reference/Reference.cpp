//===- Reference.cpp - The dialect in the words of its .td files ----------===//

#include "lib/Reference/Reference.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace tessera;

// What mlir-tblgen writes of the dialect, from the build.
extern const char tesseraTileReference[];

/// The text between the heading that begins with `heading` and the next one.
static StringRef findSection(StringRef heading) {
  StringRef text = tesseraTileReference;
  size_t begin = text.find(("\n### " + heading).str());
  if (begin == StringRef::npos)
    return "";
  text = text.drop_front(begin + 1);
  return text.drop_front(text.find('\n')).split("\n### ").first.split("\n## ").first;
}

std::string tessera::describeOperation(StringRef name) {
  StringRef section = findSection(("`" + name + "` ").str());
  // Traits and the tables of operands are for those who write passes.
  StringRef described = section.split("\nTraits:").first.split("\nInterfaces:").first;
  described = described.split("\n#### ").first.trim();
  return described.empty() ? "" : ("**" + name + "** " + described).str();
}

bool tessera::isOfPasses(StringRef name) {
  return findSection(("`" + name + "` ").str()).contains("\n\nMade by `");
}

/// "`consumers`" without its quotes.
static StringRef unquote(StringRef cell) { return cell.trim().trim('`'); }

const std::vector<FieldText> &tessera::getFieldTexts() {
  static const std::vector<FieldText> fields = [] {
    std::vector<FieldText> all;
    SmallVector<StringRef> lines;
    findSection("ScheduleAttr").split(lines, '\n');
    for (StringRef line : lines) {
      SmallVector<StringRef> cells;
      line.split(cells, " | ", /*MaxSplit=*/3);
      if (cells.size() == 4 && line.starts_with("| `"))
        all.push_back({unquote(cells[0].drop_front(2)), cells[1].trim(), cells[2].trim(),
                       cells[3].rtrim(" |")});
    }
    return all;
  }();
  return fields;
}

const FieldText *tessera::findFieldText(StringRef name) {
  const std::vector<FieldText> &all = getFieldTexts();
  auto found = find_if(all, [&](const FieldText &field) { return field.name == name; });
  return found == all.end() ? nullptr : &*found;
}
