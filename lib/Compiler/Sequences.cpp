//===- Sequences.cpp - Sequences with what a call needs -------------------===//

#include "lib/Compiler/Sequences.h"
#include "dialects/Tile/Entries.h"
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

static std::string printType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static json::Object describeArgument(tile::SequenceOp sequence, unsigned index) {
  Type type = sequence.getArgument(index).getType();
  StringRef name = sequence.getArgumentName(index);
  auto view = dyn_cast<tile::ViewType>(type);
  if (!view)
    return json::Object{
        {"name", name}, {"kind", "scalar"}, {"type", type.isIndex() ? "i64" : printType(type)}};
  // Until a kernel asks for more.
  return json::Object{{"name", name},
                      {"kind", "view"},
                      {"element", printType(view.getElementType())},
                      {"dims", describeExtents(view.getDims())},
                      {"access", "read"},
                      {"alignment", view.getElementBytes()}};
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
  return json::Object{{"kernel", launch.getKernel()}, {"arguments", std::move(arguments)}};
}

json::Object describeSequence(tile::SequenceOp sequence) {
  json::Array arguments, derived, workspaces, launches;
  for (unsigned i = 0; i < sequence.getNumArguments(); ++i)
    arguments.push_back(describeArgument(sequence, i));
  for (tile::DerivedDimAttr dim : sequence.getDerivedDimAttrs())
    derived.push_back(json::Object{{"name", dim.getName().getValue()},
                                   {"factors", describeExtents(dim.getFactors().getValue())},
                                   {"divisor", dim.getDivisor()}});
  for (auto workspace : sequence.getOps<tile::WorkspaceOp>()) {
    tile::ViewType view = workspace.getView().getType();
    workspaces.push_back(json::Object{{"name", workspace.getName()},
                                      {"element", printType(view.getElementType())},
                                      {"dims", describeExtents(view.getDims())},
                                      {"zeroed", workspace.getZeroed()}});
  }
  for (auto launch : sequence.getOps<tile::LaunchOp>())
    launches.push_back(describeLaunch(launch));
  return json::Object{{"name", sequence.getSymName()},
                      {"arguments", std::move(arguments)},
                      {"dims", json::Array(sequence.getDimNames())},
                      {"derived_dims", std::move(derived)},
                      {"workspaces", std::move(workspaces)},
                      {"launches", std::move(launches)}};
}

/// The entry of an array whose name it is; null where there is none.
static json::Object *findByName(json::Array &array, StringRef name) {
  for (json::Value &entry : array)
    if (json::Object *object = entry.getAsObject(); object->getString("name") == name)
      return object;
  return nullptr;
}

void addDemands(json::Object &sequence, json::Array &kernels) {
  json::Array &arguments = *sequence.getArray("arguments");
  // Of each argument, what the launches so far do with it.
  llvm::StringMap<tile::ViewUse> uses;
  for (json::Value &launch : *sequence.getArray("launches")) {
    json::Object &object = *launch.getAsObject();
    json::Object &kernel = *findByName(kernels, *object.getString("kernel"));
    for (auto [passed, entry] :
         llvm::zip_equal(*object.getArray("arguments"), *kernel.getArray("arguments"))) {
      json::Object *argument = findByName(arguments, *passed.getAsString());
      if (!argument || argument->getString("kind") != StringRef("view"))
        continue;
      const json::Object &asked = *entry.getAsObject();
      StringRef access = *asked.getString("access");
      tile::ViewUse &use = uses[*passed.getAsString()];
      use.loaded |= access != "write";
      use.stored |= access != "read";
      (*argument)["access"] = use.loaded && use.stored ? "readwrite"
                              : use.stored             ? "write"
                                                       : "read";
      (*argument)["alignment"] =
          std::max(*argument->getInteger("alignment"), *asked.getInteger("alignment"));
    }
  }
}

} // namespace tessera
