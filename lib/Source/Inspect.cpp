//===- Inspect.cpp - What a source declares -------------------------------===//

#include "dialects/Tile/Tile.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Source.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tessera;

/// "SQ ceildiv 128, H, B", as the kernel writes it.
static std::string describeGrid(tile::KernelOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(llvm::seq(kernel.getGridRank()), os, [&](unsigned i) {
    tile::GridDimAttr dim = kernel.getGridDim(i);
    if (auto name = dyn_cast<StringAttr>(dim.getExtent()))
      os << name.getValue();
    else
      os << cast<IntegerAttr>(dim.getExtent()).getInt();
    if (dim.getDivisor() != 1)
      os << " ceildiv " << dim.getDivisor();
  });
  return text;
}

static KernelInfo describeKernel(tile::KernelOp kernel) {
  KernelInfo info;
  info.name = kernel.getSymName().str();
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    std::string type;
    llvm::raw_string_ostream(type) << kernel.getArgument(i).getType();
    info.arguments.emplace_back(kernel.getArgumentName(i).str(), type);
  }
  for (StringRef name : kernel.getDimNames())
    info.dims.push_back(name.str());
  info.grid = describeGrid(kernel);
  return info;
}

SourceInfo tessera::inspect(const std::string &source, const std::string &fileName,
                            const std::vector<std::pair<std::string, std::string>> &defines,
                            const DiagnosticHandler &handler, const ImportOptions &imports) {
  DialectRegistry registry;
  registerSourceDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  DiagnosticForwarder forwarder(context, handler, /*remarks=*/false);

  SourceInfo info;
  ParameterResult parameters = readParameters(source, fileName, defines, context, imports);
  info.status = parameters.status;
  if (info.status != CompileStatus::Success)
    return info;
  for (const source::Parameter &parameter : parameters.table.getParameters())
    info.parameters.push_back({parameter.name,
                               source::stringifyValueKind(parameter.value.getKind()).str(),
                               parameter.value.str(), parameter.allowed, parameter.documentation});
  ReadResult read = readSource(source, fileName, defines, context, imports);
  info.status = read.status;
  if (info.status != CompileStatus::Success)
    return info;
  for (auto kernel : read.module->getOps<tile::KernelOp>())
    info.kernels.push_back(describeKernel(kernel));
  return info;
}

std::vector<SourceFile> tessera::readImports(const std::string &source, const std::string &fileName,
                                             const ImportOptions &imports,
                                             const DiagnosticHandler &handler) {
  source::Files files;
  auto report = [&](const source::Place &place, const llvm::Twine &message) {
    if (handler)
      handler({Severity::Error, place.file.str(), place.line, place.column, message.str(), {}});
  };
  if (!files.read(source, fileName, imports, report))
    return {};
  std::vector<SourceFile> result;
  for (const source::File &file : files.getFiles())
    result.push_back({file.name, files.getText().slice(file.begin, file.end).str()});
  return result;
}
