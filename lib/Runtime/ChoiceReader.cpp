//===- ChoiceReader.cpp - Reading and checking a choice -------------------===//

#include "lib/Runtime/BundleReader.h"
#include "lib/Runtime/LinearIterations.h"
#include "tessera/BundleKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace tessera::runtime;
using llvm::StringRef;
namespace json = llvm::json;
namespace key = tessera::key;

namespace {

/// Reads one choice.
class ChoiceReader : SignatureReader {
public:
  ChoiceReader(ChoiceInfo &choice, const BundleInfo &bundle)
      : SignatureReader(choice), choice(choice), bundle(bundle) {}
  bool read(const json::Value &value, json::Path path);

private:
  bool readAlternative(const json::Object &object, json::Path path);
  bool takesTheSame(const KernelInfo &kernel) const;
  bool readModel(const json::Object &object, json::Path path, AlternativeInfo &alternative);
  bool readRows(const json::Object &object, json::Path path, TimeRows &rows);
  bool readTerms(const json::Value &value, json::Path path, unsigned depth,
                 std::vector<TimeTerm> &terms);
  bool readOperation(const json::Array &array, json::Path path, unsigned depth,
                     std::vector<TimeTerm> &terms);

  ChoiceInfo &choice;
  const BundleInfo &bundle;
};

} // namespace

static bool readTime(const json::Object &object, StringRef key, json::Path path, double &time) {
  std::optional<double> number = object.getNumber(key);
  if (!number || !(*number >= 0 && *number < 1e12))
    return fail(path.field(key), "expected a number of microseconds");
  time = *number;
  return true;
}

/// [OPERATION, LEFT, RIGHT]: the operands in front of the operation, which finds them on the stack.
bool ChoiceReader::readOperation(const json::Array &array, json::Path path, unsigned depth,
                                 std::vector<TimeTerm> &terms) {
  int op = -1;
  if (array.size() == 3)
    op = llvm::StringSwitch<int>(array[0].getAsString().value_or(""))
             .Case("add", TIME_ADD)
             .Case("sub", TIME_SUB)
             .Case("mul", TIME_MUL)
             .Case("floordiv", TIME_FLOOR_DIV)
             .Case("ceildiv", TIME_CEIL_DIV)
             .Case("min", TIME_MIN)
             .Case("max", TIME_MAX)
             .Default(-1);
  if (op < 0)
    return fail(path, "expected \"add\", \"sub\", \"mul\", \"floordiv\", \"ceildiv\", \"min\" or "
                      "\"max\", with two operands");
  if (!readTerms(array[1], path.index(1), depth, terms) ||
      !readTerms(array[2], path.index(2), depth + 1, terms))
    return false;
  terms.push_back({op, 0});
  return true;
}

/// `depth` is how many numbers lie on the stack.
bool ChoiceReader::readTerms(const json::Value &value, json::Path path, unsigned depth,
                             std::vector<TimeTerm> &terms) {
  if (depth >= TIME_DEPTH || terms.size() >= TIME_MOST_TERMS)
    return fail(path, "operations are nested too deeply, or there are too many");
  if (const json::Array *array = value.getAsArray())
    return readOperation(*array, path, depth, terms) &&
           (terms.size() <= TIME_MOST_TERMS || fail(path, "there are too many operations"));
  TimeTerm &term = terms.emplace_back();
  if (const json::Object *object = value.getAsObject()) {
    term.op = TIME_INDEX;
    return readInteger(object->get(key::grid), path.field(key::grid), 0, 2,
                       "expected the number of a dimension of the grid", term.value);
  }
  if (std::optional<StringRef> name = value.getAsString()) {
    Extent extent;
    term.op = TIME_DIM;
    if (!readExtentValue(value, path, extent))
      return false;
    term.value = extent.dim;
    return true;
  }
  term.op = TIME_NUMBER;
  return readInteger(&value, path, -TIME_LIMIT, TIME_LIMIT,
                     "expected an operation, a dimension's name, {\"grid\": NUMBER} or an integer",
                     term.value);
}

/// What an iteration takes at least where rows are no multiple of a number of elements.
bool ChoiceReader::readRows(const json::Object &object, json::Path path, TimeRows &rows) {
  const json::Array *names = readArray(object, key::dims, path);
  int64_t multiple;
  if (!names || !readTime(object, key::iterationUs, path, rows.time) ||
      !readInteger(object.get(key::multiple), path.field(key::multiple), 1, 32,
                   "expected an integer from 1 to 32", multiple))
    return false;
  json::Path within = path.field(key::dims);
  if (names->empty() || names->size() > std::size(rows.dims) || !llvm::isPowerOf2_64(multiple))
    return fail(within, "expected one or two dimensions, and a power of two as \"multiple\"");
  for (size_t i = 0; i < std::size(rows.dims); ++i) {
    size_t at = std::min(i, names->size() - 1);
    Extent extent;
    if (!readExtentValue((*names)[at], within.index(at), extent) || extent.dim < 0)
      return fail(within.index(at), "expected the name of a dimension");
    rows.dims[i] = extent.dim;
  }
  rows.perSector = 1.0 / multiple;
  return true;
}

bool ChoiceReader::readModel(const json::Object &object, json::Path path,
                             AlternativeInfo &alternative) {
  const json::Array *written = readArray(object, key::grid, path);
  std::array<GridDim, 3> grid;
  std::string order;
  if (!written || !readGrid(*written, path.field(key::grid), grid) ||
      !readTime(object, key::iterationUs, path, alternative.time.iterationTime) ||
      !readTime(object, key::endsUs, path, alternative.time.endsTime) ||
      !readInteger(object.get(key::tilesAtATime), path.field(key::tilesAtATime), 1, kMaxExtent,
                   "expected an integer from 1 to 2147483647", alternative.time.atATime) ||
      !readInteger(object.get(key::section), path.field(key::section), 1, kMaxExtent,
                   "expected an integer from 1 to 2147483647", alternative.time.section) ||
      !readString(object, key::order, path, order))
    return false;
  alternative.time.order = llvm::StringSwitch<int>(order)
                               .Case("linear", TIME_LINEAR)
                               .Case("ascending", TIME_ASCENDING)
                               .Case("descending", TIME_DESCENDING)
                               .Default(-1);
  if (alternative.time.order < 0)
    return fail(path.field(key::order), "expected \"linear\", \"ascending\" or \"descending\"");
  const json::Value *iterations = object.get(key::iterations);
  if (!iterations)
    return fail(path.field(key::iterations), "expected the iterations of a tile");
  if (!readTerms(*iterations, path.field(key::iterations), 0, alternative.iterations))
    return false;
  alternative.time.line = findLinearIterations(alternative.iterations);
  setTimeCluster(alternative.time, bundle.kernels[alternative.kernel].cluster[0]);
  if (const json::Object *rows = object.getObject(key::unaligned))
    if (!readRows(*rows, path.field(key::unaligned), alternative.time.rows))
      return false;
  for (auto [dim, tiles] : llvm::zip_equal(grid, alternative.time.grid))
    tiles = makeTimeGrid(dim.extent.dim, dim.extent.constant, dim.divisor);
  return true;
}

/// Whether the kernel takes the arguments of the choice.
bool ChoiceReader::takesTheSame(const KernelInfo &kernel) const {
  return kernel.dims == choice.dims && kernel.arguments.size() == choice.arguments.size() &&
         llvm::all_of(llvm::zip(kernel.arguments, choice.arguments), [](auto both) {
           const ArgumentInfo &a = std::get<0>(both), &b = std::get<1>(both);
           return a.name == b.name && a.isView == b.isView && a.type == b.type &&
                  llvm::equal(a.dims, b.dims, [](Extent x, Extent y) {
                    return x.dim == y.dim && x.constant == y.constant;
                  });
         });
}

bool ChoiceReader::readAlternative(const json::Object &object, json::Path path) {
  std::string name;
  if (!readString(object, key::kernel, path, name))
    return false;
  auto found =
      llvm::find_if(bundle.kernels, [&](const KernelInfo &kernel) { return kernel.name == name; });
  if (found == bundle.kernels.end())
    return fail(path.field(key::kernel), "names no entry of \"kernels\"");
  if (!takesTheSame(*found))
    return fail(path.field(key::kernel), "takes other arguments than the choice");
  AlternativeInfo &alternative = choice.alternatives.emplace_back();
  alternative.kernel = found - bundle.kernels.begin();
  const json::Object *model = object.getObject(key::model);
  return model ? readModel(*model, path.field(key::model), alternative)
               : fail(path.field(key::model), "expected an object");
}

bool ChoiceReader::read(const json::Value &value, json::Path path) {
  const json::Object *object = readObject(value, path);
  if (!object || !readString(*object, key::name, path, choice.name) || !readDims(*object, path) ||
      !readArguments(*object, path) || !checkDims(path))
    return false;
  if (llvm::any_of(bundle.kernels,
                   [&](const KernelInfo &kernel) { return kernel.name == choice.name; }))
    return fail(path.field(key::name), "is the name of a kernel");
  const json::Array *alternatives = readArray(*object, key::alternatives, path);
  if (!alternatives)
    return false;
  if (alternatives->empty())
    return fail(path.field(key::alternatives), "expected at least one kernel");
  choice.description = llvm::formatv("{0}", value).str();
  return forEachObject(
      *alternatives, path.field(key::alternatives),
      [&](const json::Object &entry, json::Path at) { return readAlternative(entry, at); });
}

bool tessera::runtime::readChoice(const json::Value &value, json::Path path,
                                  const BundleInfo &bundle, ChoiceInfo &choice) {
  return ChoiceReader(choice, bundle).read(value, path);
}
