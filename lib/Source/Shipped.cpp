//===- Shipped.cpp - The kernels that ship with the compiler --------------===//

#include "lib/Source/Shipped.h"
#include "lib/Support/Fail.h"
#include "lib/Support/Files.h"
#include "lib/Support/NearestNames.h"
#include "llvm/ADT/SmallVector.h"

// The texts of the kernels that ship with the compiler, from the build.
#include "lib/Source/ShippedTexts.inc"

using namespace llvm;

ArrayRef<std::pair<StringRef, const char *>> tessera::getShippedTexts() { return kShippedTexts; }

std::string tessera::getShippedFileName(StringRef name) { return ("<tessera>/" + name).str(); }

Expected<tessera::SourceFile> tessera::openSource(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = readInputOrStdin(path);
  if (buffer)
    return SourceFile{path == "-" ? "<stdin>" : path.str(), (*buffer)->getBuffer().str()};
  std::string message = ("cannot read '" + path + "': " + buffer.getError().message()).str();
  if (buffer.getError() != std::errc::no_such_file_or_directory)
    return fail(message);
  StringRef stem = path;
  stem.consume_front("<tessera>/");
  stem.consume_back(".tile");
  SmallVector<StringRef> known;
  for (auto [name, text] : getShippedTexts()) {
    StringRef shipped = name;
    // Files of rules ship beside sources.
    if (!shipped.consume_back(".tile"))
      continue;
    if (shipped == stem)
      return SourceFile{getShippedFileName(name), text};
    known.push_back(shipped);
  }
  if (stem.contains('/'))
    return fail(message);
  return fail(message + ", and no kernel that ships has this name" + suggestNames(stem, known, 3) +
              "; tessera kernels lists them");
}
