//===- FakeTessera.cpp - A compiler whose output is its input -------------===//
//
// The functions of tessera-c/Compiler.h that the Python package calls. A source that begins with
// "error" is refused; any other is returned as the bundle. What came in can be read back.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// As in tessera-c/Compiler.h, written out so that the test notices when the package's own copy
// departs.
struct Define {
  const char *name, *value;
};
struct Extent {
  const char *name;
  int64_t value;
};
struct Options {
  size_t size;
  const Define *defines;
  size_t defineCount;
  const char *schedule, *kernel;
  int32_t emit, bundlePtx;
  const char *ptxas;
  const char *const *ptxasArguments;
  size_t ptxasArgumentCount;
  int32_t remarks, skipVerify, timing, skipDatabase;
  const char *dumpDir, *reproducer, *database, *gpu, *shapeClass;
  const Extent *extents;
  size_t extentCount;
  const char *const *importPaths;
  size_t importPathCount;
  const void *imports;
  size_t importCount;
  const char *instrument;
  int32_t alternatives;
  const char *rules;
};
struct Diagnostic {
  int32_t severity;
  uint32_t line, column, kind;
  const char *file, *message;
  const Diagnostic *notes;
  size_t noteCount;
};

struct Ptxas {
  std::string path, version;
};

unsigned count = 0;
std::string request;
Ptxas installed; ///< no path: there is none

} // namespace

EXPORT unsigned fake_tessera_count() { return count; }
EXPORT const char *fake_tessera_request() { return request.c_str(); }
EXPORT void fake_tessera_install_ptxas(const char *path, const char *version) {
  installed = {path, version};
}

EXPORT int tessera_find_ptxas(const char *requested, void (*handler)(const Diagnostic *, void *),
                              void *userData, Ptxas **ptxas) {
  if (!requested && installed.path.empty())
    return 4;
  *ptxas = new Ptxas{requested ? requested : installed.path, installed.version};
  return 0;
}
EXPORT const char *tessera_ptxas_path(const Ptxas *ptxas) { return ptxas->path.c_str(); }
EXPORT const char *tessera_ptxas_version(const Ptxas *ptxas) { return ptxas->version.c_str(); }
EXPORT void tessera_ptxas_destroy(Ptxas *ptxas) { delete ptxas; }

EXPORT int tessera_compile(const char *source, size_t length, const char *file,
                           const Options *options, void (*handler)(const Diagnostic *, void *),
                           void *userData, std::string **compilation) {
  ++count;
  request = options->size == sizeof(Options) ? "" : "size differs;";
  for (size_t i = 0; i < options->defineCount; ++i)
    request += std::string(options->defines[i].name) + "=" + options->defines[i].value + ";";
  for (const char *text : {options->schedule, options->kernel, options->ptxas})
    request += std::string(text ? text : "null") + ";";
  request += std::to_string(options->emit) + std::to_string(options->bundlePtx) +
             std::to_string(options->remarks) + std::to_string(options->timing);
  if (options->skipDatabase)
    request += ";no database";
  for (const char *text :
       {options->database, options->gpu, options->shapeClass, options->instrument})
    request += text ? ";" + std::string(text) : "";
  if (options->alternatives)
    request += ";alternatives";
  if (options->rules && *options->rules)
    request += ";rules " + std::string(options->rules);
  for (size_t i = 0; i < options->extentCount; ++i)
    request += ";" + std::string(options->extents[i].name) + "=" +
               std::to_string(options->extents[i].value);
  Diagnostic note = {3, 1, 2, 0, file, "declared here", nullptr, 0};
  Diagnostic remark = {2, 0, 0, 0, "", "a remark", nullptr, 0};
  handler(&remark, userData);
  *compilation = nullptr;
  if (strncmp(source, "error", 5) == 0) {
    Diagnostic error = {0, 3, 7, 1, file, "wrong", &note, 1};
    handler(&error, userData);
    return 3;
  }
  *compilation = new std::string(source, length);
  return 0;
}

EXPORT int tessera_source_resolve(const char *, size_t, const char *, const Options *,
                                  void (*)(const Diagnostic *, void *), void *,
                                  std::string **resolution) {
  *resolution = new std::string("{}");
  return 0;
}
EXPORT int tessera_source_describe_functions(const char *, size_t, const char *, const Options *,
                                             void (*)(const Diagnostic *, void *), void *,
                                             std::string **resolution) {
  *resolution = new std::string("{}");
  return 0;
}
EXPORT const char *tessera_resolution_text(const std::string *resolution) {
  return resolution->c_str();
}
EXPORT void tessera_resolution_destroy(std::string *resolution) { delete resolution; }

EXPORT const void *tessera_compilation_output(const std::string *compilation, size_t *size) {
  *size = compilation->size();
  return compilation->data();
}

EXPORT void tessera_compilation_destroy(std::string *compilation) { delete compilation; }
