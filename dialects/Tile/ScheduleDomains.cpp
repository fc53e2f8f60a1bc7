//===- ScheduleDomains.cpp - The values of schedule fields ----------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tessera::tile;

/// The largest value of an integer field that is tried: more registers than a thread can have.
static constexpr int64_t kMostOfAnything = 256;

static void appendValues(std::optional<bool> &field, function_ref<void(StringRef)> append) {
  for (bool value : {false, true}) {
    field = value;
    append(value ? "true" : "false");
  }
}

static void appendValues(std::optional<int64_t> &field, function_ref<void(StringRef)> append) {
  for (int64_t value = 0; value <= kMostOfAnything; ++value) {
    field = value;
    append(std::to_string(value));
  }
}

/// Equal rings. A slot more for one of several tiles brings nothing (docs/performance.md).
static void appendValues(std::optional<StageCounts> &field, function_ref<void(StringRef)> append) {
  for (int64_t count = 0; count <= kMostOfAnything; ++count) {
    field = StageCounts(count);
    append(std::to_string(count));
  }
}

/// Of an enumeration, whose cases are numbered from 0.
template <typename Enum>
static void appendValues(std::optional<Enum> &field, function_ref<void(StringRef)> append) {
  for (uint32_t number = 0;; ++number) {
    auto value = static_cast<Enum>(number);
    StringRef text = stringifyEnum(value);
    if (text.empty())
      return;
    field = value;
    append(text);
  }
}

SmallVector<ScheduleFieldDomain> tessera::tile::getScheduleFieldDomains(MLIRContext *context) {
  // Values outside a field's range are refused with errors that nobody is to see.
  ScopedDiagnosticHandler silence(context, [](Diagnostic &) { return success(); });
  SmallVector<ScheduleFieldDomain> domains;
  ScheduleFields fields;
  fields.visit([&](StringRef name, auto &field) {
    ScheduleFieldDomain &domain = domains.emplace_back();
    domain.name = name.str();
    appendValues(field, [&](StringRef text) {
      if (fields.getChecked(context, [&] { return emitError(UnknownLoc::get(context)); }))
        domain.values.push_back(text.str());
    });
    field.reset();
  });
  return domains;
}

std::string tessera::tile::printScheduleFields(ScheduleAttr schedule) {
  std::string text;
  llvm::raw_string_ostream(text) << schedule;
  StringRef inner = StringRef(text).split('<').second;
  inner.consume_back(">");
  return inner.str();
}
