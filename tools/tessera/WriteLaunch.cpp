//===- WriteLaunch.cpp - A launch as tessera-sim reads it -----------------===//
//
// docs/simulator.md describes the format.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/TensorMap.h"
#include "lib/Support/Files.h"
#include "tools/tessera/SimRunner.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace tessera;
using llvm::Error;
using runtime::ParameterKind;
namespace json = llvm::json;

namespace {
/// Describes one launch; views become files beside that of the launch.
class LaunchWriter {
public:
  LaunchWriter(const runtime::KernelInfo &info, ArrayRef<runtime::Argument> arguments,
               ArrayRef<int64_t> dims, uint64_t workspace)
      : info(info), arguments(arguments), dims(dims), workspace(workspace) {}

  Error addBuffers(const sim::GlobalMemory &memory, StringRef path, json::Object &buffers) const;
  json::Object describe(const runtime::LaunchParameter &parameter, ArrayRef<uint8_t> value) const;

private:
  json::Object describeMap(const runtime::LaunchParameter &parameter) const;
  json::Object describeScalar(const runtime::LaunchParameter &parameter,
                              ArrayRef<uint8_t> value) const;
  StringRef getName(const runtime::LaunchParameter &parameter) const {
    return info.arguments[parameter.argument].name;
  }

  const runtime::KernelInfo &info;
  ArrayRef<runtime::Argument> arguments;
  ArrayRef<int64_t> dims;
  uint64_t workspace; ///< its address
};
} // namespace

static uint64_t readWord(ArrayRef<uint8_t> value) {
  uint64_t word = 0;
  std::memcpy(&word, value.data(), std::min<size_t>(value.size(), sizeof(word)));
  return word;
}

/// Writes what each view holds at the start: "launch.json" stands beside "launch.q.bin".
Error LaunchWriter::addBuffers(const sim::GlobalMemory &memory, StringRef path,
                               json::Object &buffers) const {
  for (auto [argument, described] : llvm::zip(arguments, info.arguments)) {
    if (!described.isView)
      continue;
    const sim::GlobalMemory::Buffer &buffer = *memory.find(argument.pointer, 1);
    StringRef bytes(reinterpret_cast<const char *>(buffer.data), buffer.size);
    llvm::SmallString<128> file(path);
    llvm::sys::path::replace_extension(file, described.name + ".bin");
    if (Error error = writeOutput(file, bytes))
      return error;
    int64_t count = bytes.size() / described.type->bytes;
    buffers[described.name] = json::Object{{"raw", llvm::sys::path::filename(file).str()},
                                           {"type", described.type->name},
                                           {"shape", json::Array{count}},
                                           {"readonly", described.access == runtime::Access::Read}};
  }
  return Error::success();
}

json::Object LaunchWriter::describeMap(const runtime::LaunchParameter &parameter) const {
  const runtime::ArgumentInfo &argument = info.arguments[parameter.argument];
  const runtime::TensorMapRecipe &recipe =
      info.tensorMaps[argument.tensorMaps[parameter.mapOfArgument]];
  runtime::TensorMapExtents extents =
      runtime::evaluateTensorMap(recipe, arguments[parameter.argument], dims);
  size_t rank = recipe.dims.size();
  constexpr int64_t bytesOfSwizzle[] = {0, 32, 64, 128};
  return json::Object{{"buffer", argument.name},
                      {"type", recipe.elementName()},
                      {"dims", json::Array(ArrayRef(extents.dims, rank))},
                      {"strides", json::Array(ArrayRef(extents.strides, rank - 1))},
                      {"box", json::Array(recipe.box)},
                      {"swizzle", bytesOfSwizzle[recipe.swizzle]}};
}

json::Object LaunchWriter::describeScalar(const runtime::LaunchParameter &parameter,
                                          ArrayRef<uint8_t> value) const {
  const ElementType &type = *info.arguments[parameter.argument].type;
  double number = decodeElement(type, reinterpret_cast<const char *>(value.data()));
  // JSON has no infinities.
  if (std::isfinite(number) && !type.isWideInteger())
    return json::Object{{"type", type.name}, {"value", number}};
  return json::Object{{"hex", llvm::toHex(value, /*LowerCase=*/true)}};
}

json::Object LaunchWriter::describe(const runtime::LaunchParameter &parameter,
                                    ArrayRef<uint8_t> value) const {
  uint64_t word = readWord(value);
  switch (parameter.kind) {
  case ParameterKind::TensorMap:
    return json::Object{{"tensor_map", describeMap(parameter)}};
  case ParameterKind::Pointer:
    return json::Object{{"buffer", getName(parameter)},
                        {"offset", word - arguments[parameter.argument].pointer}};
  case ParameterKind::Workspace:
  case ParameterKind::Tickets:
  case ParameterKind::Timeline:
    return json::Object{{"buffer", "workspace"}, {"offset", word - workspace}};
  case ParameterKind::Dim:
  case ParameterKind::Stride:
    return json::Object{{"type", value.size() == 4 ? "u32" : "u64"}, {"value", word}};
  case ParameterKind::Scalar:
    return describeScalar(parameter, value);
  }
  llvm_unreachable("covered switch");
}

static json::Array listExtents(const sim::Dim3 &dim) { return json::Array{dim.x, dim.y, dim.z}; }

/// What reports call shared memory, roles and barriers.
void SimRunner::describeNames(const KernelNames &own, json::Object &file) {
  json::Array shared, roles, barriers;
  for (const sim::SharedName &name : own.shared)
    shared.push_back(json::Object{{"name", name.name},
                                  {"offset", name.offset},
                                  {"stride", name.stride},
                                  {"count", name.count},
                                  {"places", json::Array(name.places)}});
  for (const sim::RoleName &name : own.roles)
    roles.push_back(
        json::Object{{"name", name.name}, {"first_warp", name.firstWarp}, {"warps", name.warps}});
  for (const sim::BarrierName &name : own.barriers)
    barriers.push_back(json::Object{{"id", name.id}, {"name", name.name}});
  file["shared_names"] = std::move(shared);
  file["roles"] = std::move(roles);
  file["barrier_names"] = std::move(barriers);
}

Error SimRunner::writeLaunch(tile::EntryOpInterface kernel, ArrayRef<KernelArgument> values,
                             StringRef path) {
  if (!bundle.sequences.empty())
    return llvm::createStringError("a launch file is one launch; give --kernel with one of the "
                                   "kernels of the sequence");
  encode(kernel, values);
  Trial trial;
  if (Error error = prepare(kernel, values, trial))
    return error;
  PreparedLaunch prepared;
  if (Error error = makeLaunch(0, trial.arguments, trial.memory, prepared))
    return error;
  if (prepared.isEmpty)
    return llvm::createStringError("the grid has no points, so nothing is launched");
  const sim::Launch &launch = prepared.launch;
  const runtime::KernelInfo &info = bundle.kernels.front();
  LaunchWriter writer(info, trial.arguments, prepared.dims, prepared.workspace);
  json::Object buffers;
  if (Error error = writer.addBuffers(trial.memory, path, buffers))
    return error;
  if (prepared.workspaceBytes)
    buffers["workspace"] = json::Object{{"type", "u8"},
                                        {"shape", json::Array{prepared.workspaceBytes}},
                                        {"resets", !info.timelineBytes}};
  json::Array parameters;
  const sim::PtxKernel &declared = *module.kernel(info.symbol);
  for (auto [parameter, of] : llvm::zip(info.parameters, declared.params))
    parameters.push_back(
        writer.describe(parameter, ArrayRef(launch.params).slice(of.offset, of.size)));
  json::Object file{{"kernel", info.symbol},
                    {"grid", listExtents(launch.grid)},
                    {"block", listExtents(launch.block)},
                    {"cluster", listExtents(launch.cluster)},
                    {"shared", launch.dynamicSharedBytes},
                    {"buffers", std::move(buffers)},
                    {"params", std::move(parameters)}};
  if (launch.registersPerThread)
    file["registers"] = launch.registersPerThread;
  describeNames(names.front(), file);
  return writeOutput(path, llvm::formatv("{0:2}\n", json::Value(std::move(file))).str());
}
