//===- Sequences.cpp - Sequences with what a call needs -------------------===//

#include "lib/Compiler/Sequences.h"
#include "dialects/Tile/Entries.h"
#include "dialects/Tile/Signature.h"
#include "lib/Support/ElementTypes.h"
#include "tessera/BundleKeys.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
namespace json = llvm::json;

namespace tessera {

static json::Value describeExtent(Attribute extent) {
  if (auto name = dyn_cast<StringAttr>(extent))
    return name.getValue();
  return cast<IntegerAttr>(extent).getInt();
}

static json::Array describeExtents(ArrayRef<Attribute> extents) {
  return json::Array(llvm::map_range(extents, describeExtent));
}

static json::Object describeArgument(tile::SequenceOp sequence, unsigned index) {
  Type type = sequence.getArgument(index).getType();
  StringRef name = sequence.getArgumentName(index);
  auto view = dyn_cast<tile::ViewType>(type);
  if (!view)
    return json::Object{{key::name, name},
                        {key::kind, kinds::scalar},
                        {key::type, tile::findScalarType(type)->name}};
  // Until a kernel asks for more.
  return json::Object{{key::name, name},
                      {key::kind, kinds::view},
                      {key::element, getElementType(view).name},
                      {key::dims, describeExtents(view.getDims())},
                      {key::access, accesses::read},
                      {key::alignment, view.getElementBytes()}};
}

static json::Object describeLaunch(tile::LaunchOp launch) {
  auto sequence = cast<tile::SequenceOp>(launch->getParentOp());
  json::Array arguments;
  for (Value operand : launch.getOperands()) {
    if (auto workspace = operand.getDefiningOp<tile::WorkspaceOp>())
      arguments.push_back(workspace.getName());
    else
      arguments.push_back(sequence.getArgumentName(cast<BlockArgument>(operand).getArgNumber()));
  }
  return json::Object{{key::kernel, launch.getKernel()}, {key::arguments, std::move(arguments)}};
}

json::Object describeSequence(tile::SequenceOp sequence) {
  json::Array arguments, derived, workspaces, launches;
  for (unsigned i = 0; i < sequence.getNumArguments(); ++i)
    arguments.push_back(describeArgument(sequence, i));
  for (tile::DerivedDimAttr dim : sequence.getDerivedDimAttrs())
    derived.push_back(json::Object{{key::name, dim.getName().getValue()},
                                   {key::factors, describeExtents(dim.getFactors().getValue())},
                                   {key::divisor, dim.getDivisor()}});
  for (auto workspace : sequence.getOps<tile::WorkspaceOp>()) {
    tile::ViewType view = workspace.getView().getType();
    workspaces.push_back(json::Object{{key::name, workspace.getName()},
                                      {key::element, getElementType(view).name},
                                      {key::dims, describeExtents(view.getDims())},
                                      {key::zeroed, workspace.getZeroed()}});
  }
  for (auto launch : sequence.getOps<tile::LaunchOp>())
    launches.push_back(describeLaunch(launch));
  return json::Object{{key::name, sequence.getSymName()},
                      {key::arguments, std::move(arguments)},
                      {key::dims, json::Array(sequence.getDimNames())},
                      {key::derivedDims, std::move(derived)},
                      {key::workspaces, std::move(workspaces)},
                      {key::launches, std::move(launches)}};
}

/// The entry of an array whose name it is; null where there is none.
static json::Object *findObject(json::Array &array, StringRef name) {
  for (json::Value &entry : array)
    if (json::Object *object = entry.getAsObject(); object->getString(key::name) == name)
      return object;
  return nullptr;
}

void addDemands(json::Object &sequence, json::Array &kernels) {
  json::Array &arguments = *sequence.getArray(key::arguments);
  // Of each argument, what the launches so far do with it.
  llvm::StringMap<tile::ViewUse> uses;
  for (json::Value &launch : *sequence.getArray(key::launches)) {
    json::Object &object = *launch.getAsObject();
    json::Object &kernel = *findObject(kernels, *object.getString(key::kernel));
    for (auto [passed, entry] :
         llvm::zip_equal(*object.getArray(key::arguments), *kernel.getArray(key::arguments))) {
      json::Object *argument = findObject(arguments, *passed.getAsString());
      if (!argument || argument->getString(key::kind) != StringRef(kinds::view))
        continue;
      const json::Object &asked = *entry.getAsObject();
      StringRef access = *asked.getString(key::access);
      tile::ViewUse &use = uses[*passed.getAsString()];
      use.loaded |= access != accesses::write;
      use.stored |= access != accesses::read;
      (*argument)[key::access] = use.loaded && use.stored ? accesses::readWrite
                                 : use.stored             ? accesses::write
                                                          : accesses::read;
      (*argument)[key::alignment] =
          std::max(*argument->getInteger(key::alignment), *asked.getInteger(key::alignment));
    }
  }
}

} // namespace tessera
