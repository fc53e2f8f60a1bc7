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

/// Reads what a launch of a kernel is expected to take.
class ModelReader : SignatureReader {
public:
  /// `names` has the dimensions of the kernel.
  ModelReader(Signature &names, const KernelInfo &kernel, TimedLaunch &launch)
      : SignatureReader(names), kernel(kernel), launch(launch) {}
  bool read(const json::Object &object, json::Path path);

private:
  bool readRows(const json::Object &object, json::Path path, TimeRows &rows);
  bool readTerms(const json::Value &value, json::Path path, unsigned depth,
                 std::vector<TimeTerm> &terms);
  bool readOperation(const json::Array &array, json::Path path, unsigned depth,
                     std::vector<TimeTerm> &terms);

  const KernelInfo &kernel;
  TimedLaunch &launch;
};

/// Reads one choice.
class ChoiceReader : SignatureReader {
public:
  ChoiceReader(ChoiceInfo &choice, const BundleInfo &bundle)
      : SignatureReader(choice), choice(choice), bundle(bundle) {}
  bool read(const json::Value &value, json::Path path);

private:
  bool readAlternative(const json::Object &object, json::Path path);
  bool readKernelOf(const json::Object &object, json::Path path, StringRef name);
  bool readSequenceOf(const json::Object &object, json::Path path, StringRef name);
  bool readLaunch(const json::Object *model, json::Path path, unsigned index,
                  llvm::ArrayRef<llvm::ArrayRef<Extent>> views, AlternativeInfo &alternative);
  bool takesTheSame(const Signature &entry) const;

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
bool ModelReader::readOperation(const json::Array &array, json::Path path, unsigned depth,
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
bool ModelReader::readTerms(const json::Value &value, json::Path path, unsigned depth,
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
bool ModelReader::readRows(const json::Object &object, json::Path path, TimeRows &rows) {
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

bool ModelReader::read(const json::Object &object, json::Path path) {
  TimeModel &time = launch.time;
  const json::Array *written = readArray(object, key::grid, path);
  std::array<GridDim, 3> grid;
  std::string order;
  if (!written || !readGrid(*written, path.field(key::grid), grid) ||
      !readTime(object, key::iterationUs, path, time.iterationTime) ||
      !readTime(object, key::endsUs, path, time.endsTime) ||
      !readInteger(object.get(key::tilesAtATime), path.field(key::tilesAtATime), 1, kMaxExtent,
                   "expected an integer from 1 to 2147483647", time.atATime) ||
      !readInteger(object.get(key::section), path.field(key::section), 1, kMaxExtent,
                   "expected an integer from 1 to 2147483647", time.section) ||
      !readString(object, key::order, path, order))
    return false;
  time.order = llvm::StringSwitch<int>(order)
                   .Case("linear", TIME_LINEAR)
                   .Case("ascending", TIME_ASCENDING)
                   .Case("descending", TIME_DESCENDING)
                   .Default(-1);
  if (time.order < 0)
    return fail(path.field(key::order), "expected \"linear\", \"ascending\" or \"descending\"");
  const json::Value *iterations = object.get(key::iterations);
  if (!iterations)
    return fail(path.field(key::iterations), "expected the iterations of a tile");
  if (!readTerms(*iterations, path.field(key::iterations), 0, launch.iterations))
    return false;
  time.line = findLinearIterations(launch.iterations);
  setTimeCluster(time, kernel.cluster[0]);
  if (const json::Object *rows = object.getObject(key::unaligned))
    if (!readRows(*rows, path.field(key::unaligned), time.rows))
      return false;
  for (auto [dim, tiles] : llvm::zip_equal(grid, time.grid))
    tiles = makeTimeGrid(dim.extent.dim, dim.extent.constant, dim.divisor);
  return true;
}

/// Whether a kernel or a sequence takes the arguments of the choice.
bool ChoiceReader::takesTheSame(const Signature &entry) const {
  return entry.dims == choice.dims && entry.arguments.size() == choice.arguments.size() &&
         llvm::all_of(llvm::zip(entry.arguments, choice.arguments), [](auto both) {
           const ArgumentInfo &a = std::get<0>(both), &b = std::get<1>(both);
           return a.name == b.name && a.isView == b.isView && a.type == b.type &&
                  llvm::equal(a.dims, b.dims, [](Extent x, Extent y) {
                    return x.dim == y.dim && x.constant == y.constant;
                  });
         });
}

/// Reads what a launch takes that gets views of these extents, of which a scalar has none.
bool ChoiceReader::readLaunch(const json::Object *model, json::Path path, unsigned index,
                              llvm::ArrayRef<llvm::ArrayRef<Extent>> views,
                              AlternativeInfo &alternative) {
  const KernelInfo &kernel = bundle.kernels[index];
  TimedLaunch &launch = alternative.launches.emplace_back();
  launch.kernel = index;
  launch.dims.resize(kernel.dims.size());
  // The first place of each name is what counts, as in checks.
  for (unsigned i = kernel.arguments.size(); i-- > 0;) {
    if (kernel.arguments[i].dims.size() != views[i].size())
      return fail(path, "is of a launch that gets views of other ranks than its kernel takes");
    for (auto [own, given] : llvm::zip_equal(kernel.arguments[i].dims, views[i]))
      if (own.dim >= 0)
        launch.dims[own.dim] = given;
  }
  Signature names("kernel");
  names.dims = kernel.dims;
  return model ? ModelReader(names, kernel, launch).read(*model, path)
               : fail(path, "expected an object");
}

/// The position of the entry of a name; that of none behind the last.
template <typename Info>
static unsigned findEntry(const std::vector<Info> &entries, StringRef name) {
  return llvm::find_if(entries, [&](const Info &entry) { return entry.name == name; }) -
         entries.begin();
}

bool ChoiceReader::readKernelOf(const json::Object &object, json::Path path, StringRef name) {
  unsigned index = findEntry(bundle.kernels, name);
  if (index == bundle.kernels.size())
    return fail(path.field(key::kernel), "names no entry of \"kernels\"");
  if (!takesTheSame(bundle.kernels[index]))
    return fail(path.field(key::kernel), "takes other arguments than the choice");
  AlternativeInfo &alternative = choice.alternatives.emplace_back();
  alternative.entry = index;
  llvm::SmallVector<llvm::ArrayRef<Extent>> views;
  for (const ArgumentInfo &argument : choice.arguments)
    views.push_back(argument.dims);
  return readLaunch(object.getObject(key::model), path.field(key::model), index, views,
                    alternative);
}

bool ChoiceReader::readSequenceOf(const json::Object &object, json::Path path, StringRef name) {
  unsigned index = findEntry(bundle.sequences, name);
  if (index == bundle.sequences.size())
    return fail(path.field(key::sequence), "names no entry of \"sequences\"");
  const SequenceInfo &sequence = bundle.sequences[index];
  if (!takesTheSame(sequence))
    return fail(path.field(key::sequence), "takes other arguments than the choice");
  AlternativeInfo &alternative = choice.alternatives.emplace_back();
  alternative.entry = bundle.kernels.size() + index;
  const json::Array *models = readArray(object, key::models, path);
  json::Path within = path.field(key::models);
  if (!models || !readTime(object, key::launchUs, path, alternative.launchTime))
    return false;
  if (models->size() != sequence.steps.size())
    return fail(within, "expected as many objects as the sequence has launches");
  for (auto [i, step] : llvm::enumerate(sequence.steps)) {
    llvm::SmallVector<llvm::ArrayRef<Extent>> views;
    for (unsigned operand : step.operands) {
      size_t count = sequence.arguments.size();
      views.push_back(operand < count ? llvm::ArrayRef(sequence.arguments[operand].dims)
                                      : sequence.workspaces[operand - count].dims);
    }
    if (!readLaunch((*models)[i].getAsObject(), within.index(i), step.kernel, views, alternative))
      return false;
  }
  return true;
}

bool ChoiceReader::readAlternative(const json::Object &object, json::Path path) {
  // None before version 5.
  std::optional<StringRef> sequence = object.getString(key::sequence);
  if (sequence && bundle.version >= 5)
    return readSequenceOf(object, path, *sequence);
  std::string kernel;
  return readString(object, key::kernel, path, kernel) && readKernelOf(object, path, kernel);
}

bool ChoiceReader::read(const json::Value &value, json::Path path) {
  const json::Object *object = readObject(value, path);
  if (!object || !readString(*object, key::name, path, choice.name) || !readDims(*object, path) ||
      !readArguments(*object, path) || !checkDims(path))
    return false;
  if (findEntry(bundle.kernels, choice.name) < bundle.kernels.size())
    return fail(path.field(key::name), "is the name of a kernel");
  if (findEntry(bundle.sequences, choice.name) < bundle.sequences.size())
    return fail(path.field(key::name), "is the name of a sequence");
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
