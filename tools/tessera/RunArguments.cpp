//===- RunArguments.cpp - The tensors and scalars of one run --------------===//

#include "tools/tessera/RunArguments.h"
#include "lib/Support/Fail.h"
#include "lib/Support/Gaussian.h"
#include "lib/Support/NearestNames.h"
#include "lib/Support/Npy.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cmath>
#include <limits>
#include <numeric>
#include <unistd.h>

using namespace mlir;
using namespace tessera;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

static std::string join(ArrayRef<StringRef> names) {
  return names.empty() ? "none" : llvm::join(names, ", ");
}

namespace {
/// Collects what the options say about each argument and makes the arguments of it.
class ArgumentBuilder {
public:
  ArgumentBuilder(tile::EntryOpInterface kernel, const RunOptions &options)
      : kernel(kernel), options(options) {}

  Error readOptions();
  Error bindDims();
  Expected<HostTensor> makeTensor(unsigned index);
  Expected<KernelArgument> makeScalar(unsigned index);
  Error checkMemory();
  /// The tensors that the user expects, by argument.
  std::map<unsigned, ExpectedOutput> takeExpected() { return std::move(expected); }

private:
  struct Dim {
    int64_t extent;
    std::string origin;
  };

  tile::ViewType getView(unsigned index) {
    return dyn_cast<tile::ViewType>(kernel.getArgument(index).getType());
  }
  Error indexByArgument(StringRef option, const Assignments &assignments, bool views,
                        llvm::StringMap<StringRef> &byName);
  Error bindDim(StringRef name, int64_t extent, std::string origin, tile::ViewType view = {});
  Error bindFile(unsigned index, const HostTensor &tensor, const std::string &origin);
  Expected<HostTensor> readFile(StringRef option, unsigned index, StringRef path);
  Expected<std::vector<int64_t>> readOrder(unsigned index);
  std::vector<int64_t> getShape(unsigned index);
  void fill(HostTensor &tensor, StringRef name, Type element);

  tile::EntryOpInterface kernel;
  const RunOptions &options;
  llvm::StringMap<StringRef> inputs, outputs, expects, orders, scalars;
  llvm::StringMap<HostTensor> files;
  std::map<unsigned, ExpectedOutput> expected;
  llvm::StringMap<Dim> dims;
};
} // namespace

/// Checks that each assignment names an argument of the right kind, once.
Error ArgumentBuilder::indexByArgument(StringRef option, const Assignments &assignments, bool views,
                                       llvm::StringMap<StringRef> &byName) {
  SmallVector<StringRef> known;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (static_cast<bool>(getView(i)) == views)
      known.push_back(kernel.getArgumentName(i));
  for (const auto &[name, value] : assignments) {
    if (!llvm::is_contained(known, name))
      return fail(option + ": kernel '" + kernel.getSymName() + "' has no " +
                  (views ? "view" : "scalar") + " '" + name + "'" + suggestNames(name, known) +
                  "; it has " + join(known));
    if (!byName.insert({name, value}).second)
      return fail(option + ": '" + name + "' is given twice");
  }
  return Error::success();
}

Error ArgumentBuilder::readOptions() {
  if (Error error = indexByArgument("--input", options.inputs, true, inputs))
    return error;
  if (Error error = indexByArgument("--output", options.outputs, true, outputs))
    return error;
  if (Error error = indexByArgument("--expect", options.expects, true, expects))
    return error;
  if (Error error = indexByArgument("--order", options.orders, true, orders))
    return error;
  if (Error error = indexByArgument("--set", options.scalars, false, scalars))
    return error;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    if (!getView(i))
      continue;
    ViewUse use = getViewUse(kernel, i);
    StringRef name = kernel.getArgumentName(i);
    if (inputs.count(name) && use.stored && !use.loaded)
      return fail("--input: the kernel only stores '" + name + "'");
    for (auto [option, names] : {std::pair("--output", &outputs), std::pair("--expect", &expects)})
      if (names->count(name) && !use.stored)
        return fail(option + Twine(": the kernel does not store '") + name + "'");
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

Error ArgumentBuilder::bindDim(StringRef name, int64_t extent, std::string origin,
                               tile::ViewType view) {
  auto [it, isNew] = dims.try_emplace(name, Dim{extent, origin});
  if (isNew || it->second.extent == extent)
    return Error::success();
  std::string text = llvm::formatv("{0} makes {1} = {2}, but {3} makes it {4}", origin, name,
                                   extent, it->second.origin, it->second.extent);
  return fail(view ? text + llvm::formatv("; the argument is {0}", view).str() : text);
}

Error ArgumentBuilder::bindFile(unsigned index, const HostTensor &tensor,
                                const std::string &origin) {
  tile::ViewType view = getView(index);
  if (static_cast<int64_t>(tensor.shape.size()) != view.getRank())
    return fail(llvm::formatv("{0}: the array has rank {1}, the view {2} rank {3}", origin,
                              tensor.shape.size(), view, view.getRank()));
  for (int64_t i = 0; i < view.getRank(); ++i) {
    if (StringRef name = view.getDimName(i); !name.empty()) {
      if (Error error = bindDim(name, tensor.shape[i], origin, view))
        return error;
    } else if (tensor.shape[i] != view.getStaticDim(i)) {
      return fail(llvm::formatv("{0}: dimension {1} of the array is {2}, of the view {3} it is {4}",
                                origin, i, tensor.shape[i], view, view.getStaticDim(i)));
    }
  }
  return Error::success();
}

/// The tensor of a file for a view argument, whose shape gives dimensions their extents.
Expected<HostTensor> ArgumentBuilder::readFile(StringRef option, unsigned index, StringRef path) {
  Expected<HostTensor> tensor = readNpy(path);
  if (!tensor)
    return tensor.takeError();
  std::string origin = (option + " " + kernel.getArgumentName(index) + "=" + path).str();
  if (Error error = bindFile(index, *tensor, origin))
    return std::move(error);
  Type element = getView(index).getElementType();
  if (element.isInteger(64) || !tensor->holdsIntegers)
    return tensor;
  if (std::optional<int64_t> lost = tensor->convertToDoubles())
    return fail(llvm::formatv("{0}: the array has the integer {1}, which no double holds; views of "
                              "i64 take it, and this one has {2}",
                              origin, *lost, element));
  return tensor;
}

Error ArgumentBuilder::bindDims() {
  SmallVector<StringRef> known = kernel.getDimNames();
  for (const auto &[name, text] : options.shape) {
    int64_t extent;
    if (!llvm::is_contained(known, name))
      return fail("--shape: kernel '" + kernel.getSymName() + "' has no dimension '" + name + "'" +
                  suggestNames(name, known) + "; it has " + join(known));
    if (StringRef(text).getAsInteger(10, extent) || extent < 0)
      return fail("--shape: " + name + " is an integer of at least 0, got '" + text + "'");
    if (Error error = bindDim(name, extent, "--shape " + name + "=" + text))
      return error;
  }
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    StringRef name = kernel.getArgumentName(i);
    if (auto it = inputs.find(name); it != inputs.end()) {
      Expected<HostTensor> tensor = readFile("--input", i, it->second);
      if (!tensor)
        return tensor.takeError();
      files[name] = std::move(*tensor);
    }
    if (auto it = expects.find(name); it != expects.end()) {
      Expected<HostTensor> tensor = readFile("--expect", i, it->second);
      if (!tensor)
        return tensor.takeError();
      if (getView(i).getElementType().isInteger(64) && !tensor->holdsIntegers)
        tensor->convertToIntegers();
      expected.emplace(i, ExpectedOutput{std::move(*tensor), it->second.str()});
    }
  }
  SmallVector<StringRef> missing;
  for (StringRef name : known)
    if (!dims.count(name))
      missing.push_back(name);
  if (missing.empty())
    return Error::success();
  return fail("kernel '" + kernel.getSymName() + "' needs the extent of " + join(missing) +
              "; give --shape " + missing.front() + "=N or an --input that has it");
}

std::vector<int64_t> ArgumentBuilder::getShape(unsigned index) {
  tile::ViewType view = getView(index);
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < view.getRank(); ++i) {
    StringRef name = view.getDimName(i);
    shape.push_back(name.empty() ? view.getStaticDim(i) : dims.find(name)->second.extent);
  }
  return shape;
}

Error ArgumentBuilder::checkMemory() {
  // A run keeps a double and a writer per element, a check two more doubles.
  double bytesPerElement = options.check ? 32 : 12, bytes = 0;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (getView(i)) {
      double count = 1;
      for (int64_t extent : getShape(i))
        count *= extent;
      bytes += count * bytesPerElement;
    }
  double available =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= available)
    return Error::success();
  return fail(llvm::formatv("the views take {0:f1} GiB on the host, which has {1:f1} GiB; use "
                            "smaller dimensions",
                            bytes / (1 << 30), available / (1 << 30)));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Expected<std::vector<int64_t>> ArgumentBuilder::readOrder(unsigned index) {
  int64_t rank = getView(index).getRank();
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  auto it = orders.find(kernel.getArgumentName(index));
  if (it == orders.end())
    return order;
  SmallVector<StringRef> items;
  it->second.split(items, ',');
  std::vector<int64_t> given;
  for (StringRef item : items) {
    int64_t dim;
    if (item.trim().getAsInteger(10, dim))
      dim = -1;
    given.push_back(dim);
  }
  if (!std::is_permutation(given.begin(), given.end(), order.begin(), order.end()) ||
      given.back() != rank - 1)
    return fail(llvm::formatv("--order: '{0}' takes a permutation of 0 to {1} that ends with {1} "
                              "(the innermost dimension is contiguous), slowest dimension first; "
                              "got '{2}'",
                              it->first(), rank - 1, it->second));
  return given;
}

Expected<HostTensor> ArgumentBuilder::makeTensor(unsigned index) {
  StringRef name = kernel.getArgumentName(index);
  Expected<std::vector<int64_t>> order = readOrder(index);
  if (!order)
    return order.takeError();
  ViewUse use = getViewUse(kernel, index);
  HostTensor tensor = HostTensor::ordered(
      getShape(index), *order, std::numeric_limits<double>::quiet_NaN(), options.padRows);
  Type element = getView(index).getElementType();
  if (!use.stored || use.loaded)
    fill(tensor, name, element);
  if (element.isInteger(64) && !tensor.holdsIntegers)
    tensor.convertToIntegers();
  return tensor;
}

/// Elements of a file, or drawn ones.
void ArgumentBuilder::fill(HostTensor &tensor, StringRef name, Type element) {
  auto file = files.find(name);
  tensor.holdsIntegers = file != files.end() && file->second.holdsIntegers;
  if (tensor.holdsIntegers)
    return tensor.forEach(
        [&](int64_t linear, int64_t offset) { tensor.data[offset] = file->second.data[linear]; });
  Gaussian gaussian(options.seed, name);
  // Integers are drawn wider, so that few are equal.
  double scale = isa<FloatType>(element) ? 1 : 32;
  tensor.forEach([&](int64_t linear, int64_t offset) {
    double value = file != files.end() ? file->second.data[linear]
                   : options.integers  ? std::round(gaussian.next())
                                       : gaussian.next() * scale;
    tensor.data[offset] = roundToType(element, value);
  });
}

Expected<KernelArgument> ArgumentBuilder::makeScalar(unsigned index) {
  StringRef name = kernel.getArgumentName(index);
  Type type = kernel.getArgument(index).getType();
  auto it = scalars.find(name);
  if (it == scalars.end())
    return fail("kernel '" + kernel.getSymName() + "' needs its scalar '" + name +
                "'; give --set " + name + "=VALUE");
  if (isa<FloatType>(type)) {
    double value;
    if (it->second.getAsDouble(value))
      return fail("--set: '" + name + "' is a number, got '" + it->second + "'");
    return roundToType(type, value);
  }
  int64_t value;
  unsigned width = 8 * tile::findScalarType(type)->bytes;
  if (it->second.getAsInteger(10, value) || !llvm::isIntN(width, value))
    return fail("--set: '" + name + "' is an integer of " + Twine(width) + " bits, got '" +
                it->second + "'");
  return value;
}

Expected<RunArguments> RunArguments::create(tile::EntryOpInterface kernel,
                                            const RunOptions &options) {
  ArgumentBuilder builder(kernel, options);
  if (Error error = builder.readOptions())
    return std::move(error);
  if (Error error = builder.bindDims())
    return std::move(error);
  if (Error error = builder.checkMemory())
    return std::move(error);
  RunArguments result;
  result.expected = builder.takeExpected();
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    result.isStored.push_back(getViewUse(kernel, i).stored);
    if (!isa<tile::ViewType>(kernel.getArgument(i).getType())) {
      Expected<KernelArgument> scalar = builder.makeScalar(i);
      if (!scalar)
        return scalar.takeError();
      result.values.push_back(*scalar);
      continue;
    }
    Expected<HostTensor> tensor = builder.makeTensor(i);
    if (!tensor)
      return tensor.takeError();
    result.tensors.push_back(std::make_unique<HostTensor>(std::move(*tensor)));
    result.values.push_back(result.tensors.back().get());
  }
  return result;
}

RunArguments RunArguments::cloneForRun() const {
  RunArguments result;
  result.isStored = isStored;
  result.values = values;
  for (auto [value, stored] : llvm::zip(result.values, isStored))
    if (stored) {
      result.tensors.push_back(std::make_unique<HostTensor>(*std::get<HostTensor *>(value)));
      value = result.tensors.back().get();
    }
  return result;
}

Error RunArguments::saveInputs(tile::EntryOpInterface kernel, StringRef directory) const {
  if (std::error_code error = llvm::sys::fs::create_directories(directory))
    return fail("cannot make '" + directory + "': " + error.message());
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    auto view = dyn_cast<tile::ViewType>(kernel.getArgument(i).getType());
    if (!view || !getViewUse(kernel, i).loaded)
      continue;
    llvm::SmallString<128> path(directory);
    llvm::sys::path::append(path, kernel.getArgumentName(i) + ".npy");
    if (Error error = writeNpy(path, getTensor(i), getElementType(view)))
      return error;
  }
  return Error::success();
}

const ExpectedOutput *RunArguments::findExpected(unsigned index) const {
  auto found = expected.find(index);
  return found == expected.end() ? nullptr : &found->second;
}
