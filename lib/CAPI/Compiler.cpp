//===- Compiler.cpp - The compiling half of the C interface ---------------===//

#include "tessera-c/Compiler.h"
#include "lib/CAPI/Conversions.h"
#include "lib/Codegen/Ptxas.h"
#include "lib/Compiler/Choices.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Functions.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Program.h"
#include <algorithm>
#include <cstring>

using namespace tessera;
using namespace tessera::capi;

const char *tessera_version(void) { return TESSERA_VERSION; }

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static std::optional<EmitKind> convertEmit(int32_t emit) {
  static constexpr std::pair<int32_t, EmitKind> kinds[] = {
      {TESSERA_EMIT_BUNDLE, EmitKind::Bundle},
      {TESSERA_EMIT_CUBIN, EmitKind::Cubin},
      {TESSERA_EMIT_PTX, EmitKind::PTX},
      {TESSERA_EMIT_LLVM, EmitKind::LLVM},
      {TESSERA_EMIT_BARRIERS, EmitKind::Barriers},
      {TESSERA_EMIT_HOP, EmitKind::Hop},
      {TESSERA_EMIT_SCHEDULED, EmitKind::Scheduled},
      {TESSERA_EMIT_TILE, EmitKind::Tile},
      {TESSERA_EMIT_CHOSEN, EmitKind::Chosen},
      {TESSERA_EMIT_ROLES, EmitKind::Roles},
      {TESSERA_EMIT_STAGED, EmitKind::Staged},
      {TESSERA_EMIT_ORDERED, EmitKind::Ordered},
  };
  for (auto [code, kind] : kinds)
    if (code == emit)
      return kind;
  return std::nullopt;
}

std::optional<CompileOptions> tessera::capi::convert(const tessera_compile_options *options,
                                                     const DiagnosticHandler &handler) {
  tessera_compile_options given = {};
  if (options)
    memcpy(&given, options, std::min(options->size, sizeof(given)));
  std::pair<const void *, size_t> arrays[] = {{given.defines, given.define_count},
                                              {given.ptxas_arguments, given.ptxas_argument_count},
                                              {given.extents, given.extent_count},
                                              {given.import_paths, given.import_path_count},
                                              {given.imports, given.import_count}};
  for (auto [array, count] : arrays)
    if (!checkArray(array, count, handler))
      return std::nullopt;
  for (const tessera_import &import : llvm::ArrayRef(given.imports, given.import_count))
    if (!import.text && import.length) {
      reportError(handler, "the text of import '" + text(import.name) + "' is null");
      return std::nullopt;
    }
  std::optional<EmitKind> emit = convertEmit(given.emit);
  if (!emit) {
    reportError(handler, "emit " + std::to_string(given.emit) + " is not a tessera_emit");
    return std::nullopt;
  }
  CompileOptions result;
  result.defines = convert(given.defines, given.define_count);
  result.schedule = text(given.schedule);
  result.kernel = text(given.kernel);
  result.emit = *emit;
  result.bundlePtx = given.bundle_ptx;
  result.ptxas = text(given.ptxas);
  for (const char *argument : llvm::ArrayRef(given.ptxas_arguments, given.ptxas_argument_count))
    result.ptxasArguments.push_back(text(argument));
  result.remarks = given.remarks;
  result.verifyEach = !given.skip_verify;
  result.timing = given.timing;
  result.dumpDir = text(given.dump_dir);
  result.reproducer = text(given.reproducer);
  result.tuning.useDatabase = !given.skip_database;
  result.tuning.database = text(given.database);
  result.tuning.gpu = text(given.gpu);
  result.tuning.shapeClass = text(given.shape_class);
  for (const tessera_extent &extent : llvm::ArrayRef(given.extents, given.extent_count))
    result.tuning.shape.emplace_back(text(extent.name), extent.value);
  for (const char *path : llvm::ArrayRef(given.import_paths, given.import_path_count))
    result.imports.paths.push_back(text(path));
  for (const tessera_import &import : llvm::ArrayRef(given.imports, given.import_count))
    result.imports.texts.emplace_back(text(import.name),
                                      llvm::StringRef(import.text, import.length).str());
  llvm::SmallVector<llvm::StringRef> rules;
  std::string names = text(given.rules);
  llvm::StringRef(names).split(rules, llvm::sys::EnvPathSeparator, /*MaxSplit=*/-1,
                               /*KeepEmpty=*/false);
  for (llvm::StringRef name : rules)
    result.imports.rules.files.push_back(name.str());
  result.instrument = text(given.instrument);
  result.alternatives = given.alternatives;
  return result;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

struct tessera_compilation {
  CompileResult result;

  const KernelReport *kernel(size_t index) const {
    return index < result.kernels.size() ? &result.kernels[index] : nullptr;
  }
};

/// Hands on what `run` makes of the options.
static tessera_compile_status compileWith(
    const tessera_compile_options *options, tessera_diagnostic_handler handler, void *userData,
    tessera_compilation **compilation,
    llvm::function_ref<CompileResult(const CompileOptions &, const DiagnosticHandler &)> run) {
  *compilation = nullptr;
  DiagnosticHandler handle = convert(handler, userData);
  std::optional<CompileOptions> converted = convert(options, handle);
  if (!converted)
    return TESSERA_COMPILE_USAGE_ERROR;
  CompileResult result = run(*converted, handle);
  CompileStatus status = result.status;
  if (status == CompileStatus::Success)
    *compilation = new tessera_compilation{std::move(result)};
  return convert(status);
}

tessera_compile_status tessera_compile(const char *source, size_t length, const char *file_name,
                                       const tessera_compile_options *options,
                                       tessera_diagnostic_handler handler, void *user_data,
                                       tessera_compilation **compilation) {
  return compileWith(options, handler, user_data, compilation,
                     [&](const CompileOptions &converted, const DiagnosticHandler &handle) {
                       if (std::optional<std::string> given = convert(source, length, handle))
                         return compile(*given, text(file_name), converted, handle);
                       CompileResult refused;
                       refused.status = CompileStatus::UsageError;
                       return refused;
                     });
}

tessera_compile_status tessera_compile_file(const char *path,
                                            const tessera_compile_options *options,
                                            tessera_diagnostic_handler handler, void *user_data,
                                            tessera_compilation **compilation) {
  return compileWith(options, handler, user_data, compilation,
                     [&](const CompileOptions &converted, const DiagnosticHandler &handle) {
                       return compileFile(text(path), converted, handle);
                     });
}

void tessera_compilation_destroy(tessera_compilation *compilation) { delete compilation; }

const void *tessera_compilation_output(const tessera_compilation *compilation, size_t *size) {
  if (size)
    *size = compilation->result.output.size();
  return compilation->result.output.c_str();
}

size_t tessera_compilation_kernel_count(const tessera_compilation *compilation) {
  return compilation->result.kernels.size();
}

const char *tessera_compilation_kernel_name(const tessera_compilation *compilation, size_t index) {
  const KernelReport *kernel = compilation->kernel(index);
  return kernel ? kernel->name.c_str() : nullptr;
}

const char *tessera_compilation_kernel_description(const tessera_compilation *compilation,
                                                   size_t index) {
  const KernelReport *kernel = compilation->kernel(index);
  return kernel ? kernel->description.c_str() : nullptr;
}

const char *tessera_compilation_kernel_report(const tessera_compilation *compilation,
                                              size_t index) {
  const KernelReport *kernel = compilation->kernel(index);
  return kernel ? kernel->report.c_str() : nullptr;
}

//===----------------------------------------------------------------------===//
// What is chosen for a source
//===----------------------------------------------------------------------===//

struct tessera_resolution {
  std::string text;
};

/// Hands on the JSON that `read` makes of a source.
static tessera_compile_status
resolveWith(const char *source, size_t length, const tessera_compile_options *options,
            tessera_diagnostic_handler handler, void *userData, tessera_resolution **resolution,
            llvm::function_ref<Resolution(const std::string &, const CompileOptions &,
                                          const DiagnosticHandler &)>
                read) {
  *resolution = nullptr;
  DiagnosticHandler handle = convert(handler, userData);
  std::optional<CompileOptions> converted = convert(options, handle);
  std::optional<std::string> given = convert(source, length, handle);
  if (!converted || !given)
    return TESSERA_COMPILE_USAGE_ERROR;
  Resolution resolved = read(*given, *converted, handle);
  if (resolved.status == CompileStatus::Success) {
    llvm::json::Value choices = std::move(resolved.choices);
    *resolution = new tessera_resolution{llvm::formatv("{0}", choices).str()};
  }
  return convert(resolved.status);
}

tessera_compile_status tessera_source_resolve(const char *source, size_t length,
                                              const char *file_name,
                                              const tessera_compile_options *options,
                                              tessera_diagnostic_handler handler, void *user_data,
                                              tessera_resolution **resolution) {
  return resolveWith(source, length, options, handler, user_data, resolution,
                     [&](const std::string &given, const CompileOptions &converted,
                         const DiagnosticHandler &handle) {
                       return resolve(given, text(file_name), converted, handle);
                     });
}

tessera_compile_status tessera_source_describe_functions(const char *source, size_t length,
                                                         const char *file_name,
                                                         const tessera_compile_options *options,
                                                         tessera_diagnostic_handler handler,
                                                         void *user_data,
                                                         tessera_resolution **resolution) {
  return resolveWith(source, length, options, handler, user_data, resolution,
                     [&](const std::string &given, const CompileOptions &converted,
                         const DiagnosticHandler &handle) {
                       mlir::DialectRegistry registry;
                       registerSourceDialects(registry);
                       mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
                       DiagnosticForwarder forwarder(context, handle, /*remarks=*/false);
                       ReadResult read = readFunctions(given, text(file_name), converted.defines,
                                                       context, converted.getImports());
                       Resolution described;
                       described.status = read.status;
                       if (read.status == CompileStatus::Success)
                         described.choices = describeFunctions(read);
                       return described;
                     });
}

void tessera_resolution_destroy(tessera_resolution *resolution) { delete resolution; }

const char *tessera_resolution_text(const tessera_resolution *resolution) {
  return resolution->text.c_str();
}

//===----------------------------------------------------------------------===//
// The files of a source
//===----------------------------------------------------------------------===//

struct tessera_source_files {
  std::vector<SourceFile> files;
};

tessera_compile_status tessera_source_read_imports(const char *source, size_t length,
                                                   const char *file_name,
                                                   const tessera_compile_options *options,
                                                   tessera_diagnostic_handler handler,
                                                   void *user_data, tessera_source_files **files) {
  *files = nullptr;
  DiagnosticHandler handle = convert(handler, user_data);
  std::optional<CompileOptions> converted = convert(options, handle);
  std::optional<std::string> given = convert(source, length, handle);
  if (!converted || !given)
    return TESSERA_COMPILE_USAGE_ERROR;
  std::vector<SourceFile> read = readImports(*given, text(file_name), converted->imports, handle);
  if (read.empty())
    return TESSERA_COMPILE_SOURCE_ERROR;
  *files = new tessera_source_files{std::move(read)};
  return TESSERA_COMPILE_SUCCESS;
}

void tessera_source_files_destroy(tessera_source_files *files) { delete files; }

size_t tessera_source_files_count(const tessera_source_files *files) { return files->files.size(); }

const char *tessera_source_files_name(const tessera_source_files *files, size_t index) {
  return index < files->files.size() ? files->files[index].name.c_str() : nullptr;
}

const char *tessera_source_files_text(const tessera_source_files *files, size_t index,
                                      size_t *size) {
  if (index >= files->files.size())
    return nullptr;
  if (size)
    *size = files->files[index].text.size();
  return files->files[index].text.c_str();
}

//===----------------------------------------------------------------------===//
// The assembler
//===----------------------------------------------------------------------===//

struct tessera_ptxas {
  std::string path, version;
};

tessera_compile_status tessera_find_ptxas(const char *requested, tessera_diagnostic_handler handler,
                                          void *user_data, tessera_ptxas **ptxas) {
  *ptxas = nullptr;
  llvm::Expected<Ptxas> found = findPtxas(text(requested));
  if (!found) {
    reportError(convert(handler, user_data), toString(found.takeError()));
    return TESSERA_COMPILE_TOOLCHAIN_ERROR;
  }
  *ptxas = new tessera_ptxas{found->path, found->version.getAsString()};
  return TESSERA_COMPILE_SUCCESS;
}

void tessera_ptxas_destroy(tessera_ptxas *ptxas) { delete ptxas; }

const char *tessera_ptxas_path(const tessera_ptxas *ptxas) { return ptxas->path.c_str(); }

const char *tessera_ptxas_version(const tessera_ptxas *ptxas) { return ptxas->version.c_str(); }

//===----------------------------------------------------------------------===//
// What a source declares
//===----------------------------------------------------------------------===//

struct tessera_source {
  SourceInfo info;
  // Arrays of pointers into `info`, one per parameter or kernel.
  std::vector<std::vector<const char *>> allowed, argumentNames, argumentTypes, dims;
};

static std::vector<const char *> pointers(const std::vector<std::string> &strings) {
  std::vector<const char *> result;
  for (const std::string &string : strings)
    result.push_back(string.c_str());
  return result;
}

tessera_compile_status tessera_source_inspect(const char *source, size_t length,
                                              const char *file_name, const tessera_define *defines,
                                              size_t define_count,
                                              tessera_diagnostic_handler handler, void *user_data,
                                              tessera_source **info) {
  *info = nullptr;
  DiagnosticHandler handle = convert(handler, user_data);
  std::optional<std::string> given = convert(source, length, handle);
  if (!given || !checkArray(defines, define_count, handle))
    return TESSERA_COMPILE_USAGE_ERROR;
  auto result = std::make_unique<tessera_source>();
  result->info = inspect(*given, text(file_name), convert(defines, define_count), handle);
  if (result->info.status != CompileStatus::Success)
    return convert(result->info.status);
  for (const ParameterInfo &parameter : result->info.parameters)
    result->allowed.push_back(pointers(parameter.allowed));
  for (const EntryInfo &kernel : result->info.kernels) {
    std::vector<const char *> names, types;
    for (const auto &[name, type] : kernel.arguments) {
      names.push_back(name.c_str());
      types.push_back(type.c_str());
    }
    result->argumentNames.push_back(std::move(names));
    result->argumentTypes.push_back(std::move(types));
    result->dims.push_back(pointers(kernel.dims));
  }
  *info = result.release();
  return TESSERA_COMPILE_SUCCESS;
}

void tessera_source_destroy(tessera_source *info) { delete info; }

size_t tessera_source_parameter_count(const tessera_source *info) {
  return info->info.parameters.size();
}

/// Writes the members that the caller's version of the struct has.
template <typename T>
static void writeSized(const T &value, T *to) {
  size_t size = to->size;
  memcpy(to, &value, std::min(size, sizeof(T)));
  to->size = size;
}

int tessera_source_parameter(const tessera_source *info, size_t index,
                             tessera_parameter *parameter) {
  if (index >= info->info.parameters.size())
    return 0;
  const ParameterInfo &from = info->info.parameters[index];
  tessera_parameter value = {};
  value.name = from.name.c_str();
  value.kind = from.kind.c_str();
  value.default_value = from.defaultValue.c_str();
  value.documentation = from.documentation.c_str();
  value.allowed = info->allowed[index].data();
  value.allowed_count = info->allowed[index].size();
  writeSized(value, parameter);
  return 1;
}

size_t tessera_source_kernel_count(const tessera_source *info) { return info->info.kernels.size(); }

int tessera_source_kernel(const tessera_source *info, size_t index, tessera_kernel_info *kernel) {
  if (index >= info->info.kernels.size())
    return 0;
  const EntryInfo &from = info->info.kernels[index];
  tessera_kernel_info value = {};
  value.name = from.name.c_str();
  value.grid = from.grid.c_str();
  value.argument_names = info->argumentNames[index].data();
  value.argument_types = info->argumentTypes[index].data();
  value.argument_count = info->argumentNames[index].size();
  value.dims = info->dims[index].data();
  value.dim_count = info->dims[index].size();
  writeSized(value, kernel);
  return 1;
}
