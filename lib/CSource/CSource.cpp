//===- CSource.cpp - Kernels as C -----------------------------------------===//

#include "lib/CSource/CSource.h"

#include "lib/Runtime/Bundle.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace tessera;
using namespace tessera::runtime;
using llvm::StringRef;

// The launcher's files, embedded by the build.
extern const char tesseraCDriver[];
extern const char tesseraCChecks[];
extern const char tesseraCContext[];
extern const char tesseraCLaunch[];

namespace {

/// Writes the files of one kernel.
class Writer {
public:
  Writer(const BundleInfo &bundle, StringRef name)
      : bundle(bundle), kernel(bundle.kernels.front()), name(name) {}

  std::string writeHeader();
  std::string writeSource();

private:
  void describe(llvm::raw_ostream &os);
  void writeSignature(llvm::raw_ostream &os);
  void writeCounts(llvm::raw_ostream &os);
  void writeArguments(llvm::raw_ostream &os);
  void writeMaps(llvm::raw_ostream &os);
  void writeParameters(llvm::raw_ostream &os);
  void writeRequirements(llvm::raw_ostream &os);
  void writeImage(llvm::raw_ostream &os);
  void writeKernel(llvm::raw_ostream &os);
  void writeFunction(llvm::raw_ostream &os);

  const BundleInfo &bundle;
  const KernelInfo &kernel;
  StringRef name;
  /// Maps in the order of their arguments, by their positions in the bundle.
  std::vector<unsigned> mapOrder, firstMaps;
};

} // namespace

static std::string quote(StringRef text) {
  std::string quoted;
  llvm::raw_string_ostream os(quoted);
  os << '"';
  os.write_escaped(text) << '"';
  return quoted;
}

static std::string spell(Extent extent) {
  return llvm::formatv("{{{0}, {1}}", extent.dim, extent.constant).str();
}

/// `{a, b, c}`, or `{none}` for an array that C would not take empty.
template <typename Range, typename Spell>
static void writeList(llvm::raw_ostream &os, const Range &range, Spell &&spellOne,
                      StringRef none = "0") {
  os << "{";
  if (range.empty())
    os << none;
  llvm::interleaveComma(range, os, spellOne);
  os << "}";
}

static StringRef getScalarType(const ArgumentInfo &argument) {
  switch (argument.type->type) {
  case TESSERA_TYPE_SCALAR_I32:
    return "int32_t";
  case TESSERA_TYPE_SCALAR_I64:
    return "int64_t";
  default:
    return "float";
  }
}

/// Names of arguments that C or C++ reserves, or that the function needs itself, get an underscore.
static std::string getParameterName(const ArgumentInfo &argument) {
  static constexpr StringRef kTaken[] = {
      // of C
      "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
      "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
      "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
      "union", "unsigned", "void", "volatile", "while",
      // of C++, which reads the header
      "and", "asm", "bool", "catch", "class", "concept", "constexpr", "decltype", "delete",
      "explicit", "export", "false", "friend", "mutable", "namespace", "new", "noexcept", "not",
      "nullptr", "operator", "or", "private", "protected", "public", "requires", "template", "this",
      "throw", "true", "try", "typeid", "typename", "using", "virtual", "xor",
      // of the function
      "NULL", "device", "error", "error_size", "launch", "stream", "values"};
  return argument.name + (llvm::is_contained(kTaken, argument.name) ? "_" : "");
}

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

void Writer::describe(llvm::raw_ostream &os) {
  for (const ArgumentInfo &argument : kernel.arguments) {
    os << " *   " << getParameterName(argument) << ": ";
    if (!argument.isView) {
      os << argument.type->name << "\n";
      continue;
    }
    os << argument.type->name << " [";
    llvm::interleaveComma(argument.dims, os, [&](Extent extent) {
      if (extent.dim < 0)
        os << extent.constant;
      else
        os << kernel.dims[extent.dim];
    });
    static constexpr StringRef kAccess[] = {"read", "written", "read and written"};
    os << "], " << kAccess[static_cast<int>(argument.access)] << ", aligned to "
       << argument.alignment << " bytes\n";
  }
}

void Writer::writeSignature(llvm::raw_ostream &os) {
  os << "int " << name << "(int device, void *stream";
  for (const ArgumentInfo &argument : kernel.arguments)
    if (argument.isView)
      os << ", const tessera_tensor *" << getParameterName(argument);
    else
      os << ", " << getScalarType(argument) << " " << getParameterName(argument);
  os << ", char *error, size_t error_size)";
}

static constexpr llvm::StringLiteral kShared = R"(
/* Shared by the headers of all kernels. */
#ifndef TESSERA_GENERATED_KERNEL
#define TESSERA_GENERATED_KERNEL

/* A view in device memory: an address, and extents and strides in elements, outermost first. The
 * innermost stride is 1. */
typedef struct tessera_tensor {
  uint64_t data;
  const int64_t *shape;
  const int64_t *strides;
} tessera_tensor;

/* What a launch returns. */
enum {
  TESSERA_LAUNCHED = 0,
  TESSERA_INVALID_ARGUMENT = 2, /* a shape, stride, address or size that the kernel does not take */
  TESSERA_NO_DEVICE = 4,        /* no driver, or no device that runs the kernel */
  TESSERA_DRIVER_ERROR = 5      /* a call of the driver failed, or memory ran out */
};
#endif
)";

std::string Writer::writeHeader() {
  std::string text, guard = "TESSERA_KERNEL_" + name.upper() + "_H";
  llvm::raw_string_ostream os(text);
  os << "/* Kernel '" << kernel.name << "' for " << bundle.target
     << ", with its launch. Written by tessera compile --emit c; do not edit. */\n"
     << "#ifndef " << guard << "\n#define " << guard << "\n\n"
     << "#include <stddef.h>\n#include <stdint.h>\n"
     << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
     << kShared
     << "\n/* Launches the kernel on a stream (CUstream) of a device, or with a device of -1 "
     << "of the current\n * context. It waits for nothing, and may be captured into a graph. Any "
     << "thread may call it.\n *\n";
  describe(os);
  os << " *\n * Where it fails and `error` is not null, the reason is written there, in at most "
     << "`error_size` bytes. */\n";
  writeSignature(os);
  os << ";\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Source
//===----------------------------------------------------------------------===//

void Writer::writeCounts(llvm::raw_ostream &os) {
  size_t mostMaps = 1;
  for (const ArgumentInfo &argument : kernel.arguments) {
    firstMaps.push_back(mapOrder.size());
    llvm::append_range(mapOrder, argument.tensorMaps);
    mostMaps = std::max<size_t>(mostMaps, argument.tensorMaps.size());
  }
  os << "enum {\n  ARGUMENT_COUNT = " << kernel.arguments.size()
     << ",\n  DIM_COUNT = " << std::max<size_t>(kernel.dims.size(), 1)
     << ",\n  PARAMETER_COUNT = " << std::max<size_t>(kernel.parameters.size(), 1)
     << ",\n  PARAMETER_BYTES = " << std::max(kernel.parameterBytes, 1u)
     << ",\n  MOST_MAPS = " << mostMaps << "\n};\n\n";
}

void Writer::writeArguments(llvm::raw_ostream &os) {
  os << "static const ArgumentInfo arguments[] = {\n";
  for (auto [i, argument] : llvm::enumerate(kernel.arguments)) {
    os << llvm::formatv("    {{{0}, {1}, {2}, {3}, {4}, {5}, ", quote(argument.name),
                        int(argument.isView), int(argument.access != Access::Read),
                        argument.type->bytes, argument.alignment, argument.dims.size());
    writeList(os, argument.dims, [&](Extent extent) { os << spell(extent); }, spell(Extent()));
    os << ", " << firstMaps[i] << ", " << argument.tensorMaps.size() << "},\n";
  }
  os << "};\nstatic const char *const dims[] = ";
  writeList(os, kernel.dims, [&](const std::string &dim) { os << quote(dim); });
  os << ";\n";
}

void Writer::writeMaps(llvm::raw_ostream &os) {
  os << "static const MapInfo maps[] = {\n";
  for (unsigned position : mapOrder) {
    const TensorMapRecipe &map = kernel.tensorMaps[position];
    os << llvm::formatv("    {{{0}, {1}, {2}, ", map.element->tensorMapType, map.swizzle,
                        map.dims.size());
    writeList(os, map.dims, [&](const TensorMapDim &dim) {
      os << llvm::formatv("{{{0}, {1}, {2}}", spell(dim.extent), dim.strideOfDim, dim.strideBytes);
    });
    os << ", ";
    writeList(os, map.box, [&](uint32_t size) { os << size; });
    os << "},\n";
  }
  if (mapOrder.empty())
    os << "    {0, 0, 0, {{{0, 0}, 0, 0}}, {0}},\n";
  os << "};\n";
}

void Writer::writeParameters(llvm::raw_ostream &os) {
  static constexpr StringRef kKinds[] = {"TENSOR_MAP", "POINTER", "DIM",
                                         "STRIDE",     "SCALAR",  "WORKSPACE"};
  os << "static const ParameterInfo parameters[] = {\n";
  for (const LaunchParameter &parameter : kernel.parameters) {
    bool hasArgument =
        parameter.kind != ParameterKind::Dim && parameter.kind != ParameterKind::Workspace;
    unsigned index = parameter.kind == ParameterKind::TensorMap
                         ? firstMaps[parameter.argument] + parameter.mapOfArgument
                         : parameter.dim;
    os << llvm::formatv("    {{{0}, {1}, {2}, {3}, {4}, {5}},\n",
                        kKinds[static_cast<int>(parameter.kind)],
                        hasArgument ? int(parameter.argument) : -1, index,
                        parameter.workspaceOffset, parameter.bytes, parameter.offset);
  }
  os << "};\n";
}

void Writer::writeRequirements(llvm::raw_ostream &os) {
  os << "static const Requirement requirements[] = {";
  for (const Requirement &needed : kernel.requirements)
    os << llvm::formatv("{{{0}, {1}, {2}}, ", needed.divisor ? int(*needed.divisor) : -1,
                        needed.dividend, needed.factor);
  os << "{-1, 0, 1}};\nstatic const Bound bounds[] = {";
  for (const Bound &bound : kernel.bounds)
    os << llvm::formatv("{{{0}, {1}}, ", bound.dim, bound.most);
  os << "{0, 0}};\n";
}

void Writer::writeImage(llvm::raw_ostream &os) {
  os << "static const unsigned char image[] = {";
  for (auto [i, byte] : llvm::enumerate(bundle.image)) {
    os << (i % 20 ? "" : "\n    ") << unsigned(static_cast<unsigned char>(byte)) << ",";
  }
  os << "\n};\n";
}

void Writer::writeKernel(llvm::raw_ostream &os) {
  auto triple = [](const std::array<unsigned, 3> &sizes) {
    return llvm::formatv("{{{0}, {1}, {2}}", sizes[0], sizes[1], sizes[2]).str();
  };
  unsigned number = 0;
  StringRef target = bundle.target;
  target.consume_front("sm_");
  target.consumeInteger(10, number);
  os << "static const KernelInfo kernel = {\n    " << quote(kernel.name) << ", "
     << quote(kernel.symbol) << ", arguments, dims, requirements, " << kernel.requirements.size()
     << ", bounds, " << kernel.bounds.size() << ", maps, parameters, " << kernel.workspaceBytes
     << ",\n    ";
  writeList(os, kernel.grid, [&](const GridDim &dim) { os << spell(dim.extent); });
  os << ", ";
  writeList(os, kernel.grid, [&](const GridDim &dim) { os << dim.divisor; });
  os << ", " << int(kernel.persistent) << ", " << int(kernel.pdl) << ",\n    "
     << triple(kernel.block) << ", " << triple(kernel.cluster) << ", " << kernel.sharedMemory
     << ", " << number / 10 << ", " << number % 10 << ", image};\n";
}

void Writer::writeFunction(llvm::raw_ostream &os) {
  writeSignature(os);
  os << " {\n  Value values[" << kernel.arguments.size() << "];\n";
  for (auto [i, argument] : llvm::enumerate(kernel.arguments)) {
    std::string given = getParameterName(argument);
    os << "  values[" << i << "].view = " << (argument.isView ? given : "NULL") << ";\n  values["
       << i << "].scalar = " << (argument.isView ? "NULL" : "&" + given) << ";\n";
  }
  os << "  return launch(device, stream, values, error, error_size);\n}\n";
}

std::string Writer::writeSource() {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "/* Written by tessera compile --emit c; do not edit. */\n"
     << "#define _POSIX_C_SOURCE 200112L\n#include \"" << name << ".h\"\n\n"
     << "#include <dlfcn.h>\n#include <inttypes.h>\n#include <pthread.h>\n#include <stdarg.h>\n"
     << "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n";
  writeCounts(os);
  for (const char *part : {tesseraCDriver, tesseraCChecks, tesseraCContext, tesseraCLaunch})
    os << part << "\n";
  os << "/* ---- This kernel ---- */\n\n";
  writeArguments(os);
  writeMaps(os);
  writeParameters(os);
  writeRequirements(os);
  writeImage(os);
  writeKernel(os);
  os << "\n";
  writeFunction(os);
  return text;
}

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

static bool isIdentifier(StringRef text) {
  return !text.empty() && !llvm::isDigit(text[0]) &&
         llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

llvm::Expected<CSource> tessera::writeCSource(StringRef bundle, StringRef name) {
  auto fail = [](const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  if (!isIdentifier(name))
    return fail("'" + name +
                "' is to name a function of C: give -o a name of letters, digits and "
                "underscores, with .c");
  llvm::Expected<BundleInfo> info = readBundle(bundle);
  if (!info)
    return info.takeError();
  if (!info->sequences.empty())
    return fail("C is written for one kernel, and sequence '" + info->sequences.front().name +
                "' launches several; name one of them with --kernel");
  if (info->kernels.size() != 1)
    return fail("C is written for one kernel, and the source has " +
                llvm::Twine(info->kernels.size()) + "; name one with --kernel");
  if (info->kernels.front().timelineBytes)
    return fail("a launch in C reads no timeline; compile without --instrument");
  Writer writer(*info, name);
  return CSource{writer.writeHeader(), writer.writeSource()};
}
