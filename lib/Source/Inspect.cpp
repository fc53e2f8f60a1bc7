//===- Inspect.cpp - What a source declares -------------------------------===//

#include "dialects/Tile/Entries.h"
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

static EntryInfo describeEntry(tile::EntryOpInterface entry) {
  EntryInfo info;
  info.name = entry.getSymName().str();
  for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
    std::string type;
    llvm::raw_string_ostream(type) << entry.getArgument(i).getType();
    info.arguments.emplace_back(entry.getArgumentName(i).str(), type);
  }
  for (StringRef name : entry.getDimNames())
    info.dims.push_back(name.str());
  if (auto kernel = dyn_cast<tile::KernelOp>(*entry))
    info.grid = describeGrid(kernel);
  else
    for (tile::KernelOp launched : tile::getKernels(entry))
      info.launches.push_back(launched.getSymName().str());
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
                               parameter.value.str(), parameter.allowed, parameter.documentation,
                               parameter.alternatives, parameter.describeOrigin()});
  ReadResult read = readSource(source, fileName, defines, context, imports);
  info.status = read.status;
  if (info.status != CompileStatus::Success)
    return info;
  for (tile::EntryOpInterface entry : tile::getEntries(*read.module))
    (isa<tile::KernelOp>(*entry) ? info.kernels : info.sequences).push_back(describeEntry(entry));
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
    if (llvm::none_of(result, [&](const SourceFile &other) { return other.name == file.name; }))
      result.push_back({file.name, files.getText().slice(file.begin, file.end).str()});
  for (const source::RulesFile &file : files.getRules())
    result.insert(result.begin(), {file.name, file.text});
  return result;
}
