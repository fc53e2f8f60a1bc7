//===- SequenceReader.cpp - Reading and checking a sequence ---------------===//

#include "lib/Runtime/BundleReader.h"
#include "tessera/BundleKeys.h"

#include "llvm/ADT/STLExtras.h"

using namespace tessera::runtime;
using llvm::StringRef;
namespace json = llvm::json;
namespace key = tessera::key;

namespace {

/// Reads one sequence.
class SequenceReader : SignatureReader {
public:
  SequenceReader(SequenceInfo &sequence, const BundleInfo &bundle)
      : SignatureReader(sequence), sequence(sequence), bundle(bundle) {}
  bool read(const json::Value &value, json::Path path);

private:
  bool readExtents(const json::Object &object, StringRef key, json::Path path,
                   llvm::SmallVectorImpl<Extent> &extents);
  bool readDerivedDim(const json::Object &object, json::Path path);
  bool readWorkspace(const json::Object &object, json::Path path);
  bool readOperand(const json::Value &value, json::Path path, StepInfo &step);
  bool readStep(const json::Object &object, json::Path path);

  SequenceInfo &sequence;
  const BundleInfo &bundle;
};

} // namespace

bool SequenceReader::readExtents(const json::Object &object, StringRef key, json::Path path,
                                 llvm::SmallVectorImpl<Extent> &extents) {
  const json::Array *array = readArray(object, key, path);
  if (!array)
    return false;
  if (array->empty())
    return fail(path.field(key), "expected at least one extent");
  json::Path list = path.field(key);
  for (size_t i = 0; i < array->size(); ++i) {
    json::Path at = list.index(i);
    auto name = (*array)[i].getAsString();
    auto derived = llvm::find_if(sequence.derivedDims,
                                 [&](const DerivedDim &dim) { return name && dim.name == *name; });
    Extent &extent = extents.emplace_back();
    if (derived != sequence.derivedDims.end())
      extent.dim = sequence.dims.size() + (derived - sequence.derivedDims.begin());
    else if (!readExtentValue((*array)[i], at, extent))
      return false;
  }
  return true;
}

bool SequenceReader::readDerivedDim(const json::Object &object, json::Path path) {
  DerivedDim dim;
  if (!readString(object, key::name, path, dim.name) ||
      !readExtents(object, key::factors, path, dim.factors) ||
      !readInteger(object.get(key::divisor), path.field(key::divisor), 1,
                   std::numeric_limits<int64_t>::max(), "expected an integer of at least 1",
                   dim.divisor))
    return false;
  sequence.derivedDims.push_back(std::move(dim));
  return true;
}

bool SequenceReader::readWorkspace(const json::Object &object, json::Path path) {
  WorkspaceInfo workspace;
  std::string element;
  if (!readString(object, key::name, path, workspace.name) ||
      !readString(object, key::element, path, element) ||
      !readExtents(object, key::dims, path, workspace.dims) ||
      !readFlag(object, key::zeroed, path, workspace.zeroed))
    return false;
  workspace.type = tessera::getElementType(element);
  if (!workspace.type)
    return fail(path.field(key::element), "expected the type of elements of a view");
  sequence.workspaces.push_back(std::move(workspace));
  return true;
}

bool SequenceReader::readOperand(const json::Value &value, json::Path path, StepInfo &step) {
  auto name = value.getAsString();
  if (!name)
    return fail(path, "expected the name of an argument or a workspace");
  auto isOfName = [&](const auto &entry) { return entry.name == *name; };
  auto argument = llvm::find_if(sequence.arguments, isOfName);
  auto workspace = llvm::find_if(sequence.workspaces, isOfName);
  if (argument != sequence.arguments.end())
    step.operands.push_back(argument - sequence.arguments.begin());
  else if (workspace != sequence.workspaces.end())
    step.operands.push_back(sequence.arguments.size() + (workspace - sequence.workspaces.begin()));
  else
    return fail(path, "names no argument and no workspace of the sequence");
  return true;
}

bool SequenceReader::readStep(const json::Object &object, json::Path path) {
  std::string name;
  const json::Array *operands = readArray(object, key::arguments, path);
  if (!operands || !readString(object, key::kernel, path, name))
    return false;
  auto kernel = llvm::find_if(bundle.kernels,
                              [&](const KernelInfo &candidate) { return candidate.name == name; });
  if (kernel == bundle.kernels.end())
    return fail(path.field(key::kernel), "names no entry of \"kernels\"");
  if (operands->size() != kernel->arguments.size())
    return fail(path.field(key::arguments), "expected as many names as the kernel has arguments");
  StepInfo &step = sequence.steps.emplace_back();
  step.kernel = kernel - bundle.kernels.begin();
  for (size_t i = 0; i < operands->size(); ++i)
    if (!readOperand((*operands)[i], path.field(key::arguments).index(i), step))
      return false;
  return true;
}

bool SequenceReader::read(const json::Value &value, json::Path path) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return fail(path, "expected an object");
  auto forEach = [&](StringRef key,
                     bool (SequenceReader::*readOne)(const json::Object &, json::Path)) {
    const json::Array *array = readArray(*object, key, path);
    return array &&
           forEachObject(*array, path.field(key), [&](const json::Object &entry, json::Path at) {
             return (this->*readOne)(entry, at);
           });
  };
  if (!readString(*object, key::name, path, sequence.name) || !readDims(*object, path) ||
      !readArguments(*object, path) || !checkDims(path) ||
      !forEach(key::derivedDims, &SequenceReader::readDerivedDim) ||
      !forEach(key::workspaces, &SequenceReader::readWorkspace) ||
      !forEach(key::launches, &SequenceReader::readStep))
    return false;
  if (sequence.steps.empty())
    return fail(path.field(key::launches), "expected at least one launch");
  sequence.description = llvm::formatv("{0}", value).str();
  return true;
}

bool tessera::runtime::readSequence(const json::Value &value, json::Path path,
                                    const BundleInfo &bundle, SequenceInfo &sequence) {
  return SequenceReader(sequence, bundle).read(value, path);
}
