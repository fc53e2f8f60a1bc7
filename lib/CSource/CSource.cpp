//===- CSource.cpp - Kernels as C -----------------------------------------===//

#include "lib/CSource/CSource.h"
#include "lib/CSource/Names.h"

#include "lib/Runtime/Bundle.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/Format.h"
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
extern const char tesseraCTimeTerms[];
extern const char tesseraCLaunchTime[];
extern const char tesseraCKernel[];
extern const char tesseraCChoice[];
extern const char tesseraCSequence[];

namespace {

/// A kernel, or the signature of a sequence in the form of one, with the number of its tables.
struct NumberedKernel {
  KernelInfo kernel;
  unsigned number;
  /// Maps in the order of their arguments, by their positions in the bundle.
  std::vector<unsigned> mapOrder, firstMaps;
};

/// Writes the files of one kernel, of a choice among several, or of a sequence.
class Writer {
public:
  Writer(const BundleInfo &bundle, StringRef name);

  std::string writeHeader();
  std::string writeSource();

private:
  void describe(llvm::raw_ostream &os);
  void describeChoice(llvm::raw_ostream &os);
  void writeSignature(llvm::raw_ostream &os, bool isForced = false);
  void writeCounts(llvm::raw_ostream &os);
  void writeTables(llvm::raw_ostream &os, const NumberedKernel &numbered);
  void writeArguments(llvm::raw_ostream &os, const NumberedKernel &numbered);
  void writeMaps(llvm::raw_ostream &os, const NumberedKernel &numbered);
  void writeParameters(llvm::raw_ostream &os, const NumberedKernel &numbered);
  void writeTickets(llvm::raw_ostream &os, const NumberedKernel &numbered);
  void writeRequirements(llvm::raw_ostream &os, const NumberedKernel &numbered);
  void writeImages(llvm::raw_ostream &os);
  void writeKernel(llvm::raw_ostream &os, const NumberedKernel &numbered);
  void writeAlternatives(llvm::raw_ostream &os);
  void writeSequence(llvm::raw_ostream &os);
  NumberedKernel number(const KernelInfo &kernel, unsigned number);
  void writeValues(llvm::raw_ostream &os);
  void writeFunctions(llvm::raw_ostream &os);

  const BundleInfo &bundle;
  const SequenceInfo *sequence; ///< null for kernels
  const ChoiceInfo *choice;     ///< null for one kernel and for a sequence
  /// What a caller passes.
  const Signature &signature;
  StringRef name;
  /// Of the functions, in the order of the arguments.
  std::vector<std::string> parameterNames;
  std::vector<NumberedKernel> kernels;
};

} // namespace

static const Signature &getSignature(const BundleInfo &bundle) {
  if (!bundle.sequences.empty())
    return bundle.sequences.front();
  if (!bundle.choices.empty())
    return bundle.choices.front();
  return bundle.kernels.front();
}

NumberedKernel Writer::number(const KernelInfo &kernel, unsigned number) {
  NumberedKernel numbered{kernel, number, {}, {}};
  for (const ArgumentInfo &argument : kernel.arguments) {
    numbered.firstMaps.push_back(numbered.mapOrder.size());
    llvm::append_range(numbered.mapOrder, argument.tensorMaps);
  }
  return numbered;
}

Writer::Writer(const BundleInfo &bundle, StringRef name)
    : bundle(bundle), sequence(bundle.sequences.empty() ? nullptr : &bundle.sequences.front()),
      choice(bundle.choices.empty() ? nullptr : &bundle.choices.front()),
      signature(getSignature(bundle)), name(name),
      parameterNames(nameParameters(
          llvm::map_to_vector(signature.arguments, [](const ArgumentInfo &argument) -> StringRef {
            return argument.name;
          }))) {
  if (choice)
    for (const AlternativeInfo &alternative : choice->alternatives)
      kernels.push_back(number(bundle.kernels[alternative.entry], kernels.size()));
  else
    for (const KernelInfo &kernel : bundle.kernels)
      kernels.push_back(number(kernel, kernels.size()));
}

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

static std::string getScalarType(const ArgumentInfo &argument) {
  unsigned bytes = argument.type->bytes;
  if (argument.type->semantics)
    return bytes == sizeof(float) ? "float" : "double";
  return llvm::formatv("int{0}_t", 8 * bytes);
}

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

void Writer::describe(llvm::raw_ostream &os) {
  for (const auto &[argument, given] : llvm::zip_equal(signature.arguments, parameterNames)) {
    os << " *   " << given << ": ";
    if (!argument.isView) {
      os << argument.type->name << "\n";
      continue;
    }
    os << argument.type->name << " [";
    llvm::interleaveComma(argument.dims, os, [&](Extent extent) {
      if (extent.dim < 0)
        os << extent.constant;
      else
        os << signature.dims[extent.dim];
    });
    static constexpr StringRef kAccess[] = {"read", "written", "read and written"};
    os << "], " << kAccess[static_cast<int>(argument.access)] << ", aligned to "
       << argument.alignment << " bytes\n";
  }
}

/// Of the function that launches what is chosen, or what its first argument says.
void Writer::writeSignature(llvm::raw_ostream &os, bool isForced) {
  os << "int " << name << (isForced ? "_alternative(int alternative, " : "(")
     << "int device, void *stream";
  for (const auto &[argument, given] : llvm::zip_equal(signature.arguments, parameterNames))
    os << ", " << (argument.isView ? "const tessera_tensor *" : getScalarType(argument) + " ")
       << given;
  os << ", char *error, size_t error_size)";
}

void Writer::describeChoice(llvm::raw_ostream &os) {
  os << "/* The same kernel with other tiles. A launch takes the one that should be the fastest "
        "for "
     << "its extents. */\nenum { " << name.upper() << "_ALTERNATIVES = " << kernels.size()
     << " };\nextern const char *const " << name << "_alternatives[" << kernels.size()
     << "];\n\n/* Launches the one at a position. */\n";
  writeSignature(os, /*isForced=*/true);
  os << ";\n\n/* The position of the one that a launch takes with the extents";
  for (const std::string &dim : signature.dims)
    os << (&dim == &signature.dims.front() ? " " : ", ") << dim;
  os << ". `microseconds` is null\n * or gets what each should take: infinity where it does not "
        "take "
     << "the extents. -1 when an extent is\n * negative or not below 2^31. */\nint " << name
     << "_choice(const int64_t *extents, double *microseconds);\n";
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
  os << (sequence ? "/* Sequence '" : "/* Kernel '") << signature.name << "' for " << bundle.target
     << ", with its launch. Written by tessera compile --emit c; do not edit. */\n"
     << "#ifndef " << guard << "\n#define " << guard << "\n\n"
     << "#include <stddef.h>\n#include <stdint.h>\n"
     << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
     << kShared << "\n/* Launches the " << (sequence ? "sequence" : "kernel")
     << " on a stream (CUstream) of a device, or with a device of -1 "
     << "of the current\n * context. It waits for nothing, and may be captured into a graph. Any "
     << "thread may call it.\n *\n";
  describe(os);
  os << " *\n * Where it fails and `error` is not null, the reason is written there, in at most "
     << "`error_size` bytes. */\n";
  writeSignature(os);
  os << ";\n";
  if (choice) {
    os << "\n";
    describeChoice(os);
  }
  os << "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Source
//===----------------------------------------------------------------------===//

void Writer::writeCounts(llvm::raw_ostream &os) {
  size_t mostMaps = 1, mostParameters = 1, mostArguments = signature.arguments.size(),
         mostDims = std::max<size_t>(signature.dims.size(), 1);
  unsigned mostBytes = 1;
  for (const NumberedKernel &numbered : kernels) {
    mostArguments = std::max(mostArguments, numbered.kernel.arguments.size());
    mostDims = std::max(mostDims, numbered.kernel.dims.size());
    mostParameters = std::max(mostParameters, numbered.kernel.parameters.size());
    mostBytes = std::max(mostBytes, numbered.kernel.parameterBytes);
    for (const ArgumentInfo &argument : numbered.kernel.arguments)
      mostMaps = std::max<size_t>(mostMaps, argument.tensorMaps.size());
  }
  os << "enum {\n  KERNEL_COUNT = " << kernels.size() << ",\n  MOST_ARGUMENTS = " << mostArguments
     << ",\n  MOST_DIMS = " << mostDims << ",\n  PARAMETER_COUNT = " << mostParameters
     << ",\n  PARAMETER_BYTES = " << mostBytes << ",\n  MOST_MAPS = " << mostMaps;
  if (sequence) {
    size_t mostFactors = 1;
    for (const DerivedDim &dim : sequence->derivedDims)
      mostFactors = std::max<size_t>(mostFactors, dim.factors.size());
    os << ",\n  STEP_COUNT = " << sequence->steps.size()
       << ",\n  WORKSPACE_COUNT = " << sequence->workspaces.size()
       << ",\n  DERIVED_COUNT = " << sequence->derivedDims.size()
       << ",\n  MOST_FACTORS = " << mostFactors;
  }
  os << "\n};\n\n";
}

void Writer::writeArguments(llvm::raw_ostream &os, const NumberedKernel &numbered) {
  os << "static const ArgumentInfo arguments" << numbered.number << "[] = {\n";
  for (auto [i, argument] : llvm::enumerate(numbered.kernel.arguments)) {
    os << llvm::formatv("    {{{0}, {1}, {2}, {3}, {4}, {5}, ", quote(argument.name),
                        int(argument.isView), int(argument.access != Access::Read),
                        argument.type->bytes, argument.alignment, argument.dims.size());
    writeList(os, argument.dims, [&](Extent extent) { os << spell(extent); }, spell(Extent()));
    os << ", " << numbered.firstMaps[i] << ", " << argument.tensorMaps.size()
       << llvm::formatv(", {0}, {1:e17}},\n", int(argument.above.has_value()),
                        argument.above.value_or(0));
  }
  os << "};\n";
}

void Writer::writeMaps(llvm::raw_ostream &os, const NumberedKernel &numbered) {
  os << "static const MapInfo maps" << numbered.number << "[] = {\n";
  for (unsigned position : numbered.mapOrder) {
    const TensorMapRecipe &map = numbered.kernel.tensorMaps[position];
    os << llvm::formatv("    {{{0}, {1}, {2}, ", map.dataType(), map.swizzle, map.dims.size());
    writeList(os, map.dims, [&](const TensorMapDim &dim) {
      os << llvm::formatv("{{{0}, {1}, {2}, {3}}", spell(dim.extent), dim.strideOfDim,
                          dim.strideBytes, int(dim.wraps));
    });
    os << ", ";
    writeList(os, map.box, [&](uint32_t size) { os << size; });
    os << "},\n";
  }
  if (numbered.mapOrder.empty())
    os << "    {0, 0, 0, {{{0, 0}, 0, 0, 0}}, {0}},\n";
  os << "};\n";
}

void Writer::writeParameters(llvm::raw_ostream &os, const NumberedKernel &numbered) {
  static constexpr StringRef kKinds[] = {"TENSOR_MAP", "POINTER",   "DIM",      "STRIDE",
                                         "SCALAR",     "WORKSPACE", "WORKSPACE"};
  os << "static const ParameterInfo parameters" << numbered.number << "[] = {\n";
  for (const LaunchParameter &parameter : numbered.kernel.parameters) {
    bool hasArgument = parameter.kind != ParameterKind::Dim &&
                       parameter.kind != ParameterKind::Workspace &&
                       parameter.kind != ParameterKind::Tickets;
    unsigned index = parameter.kind == ParameterKind::TensorMap
                         ? numbered.firstMaps[parameter.argument] + parameter.mapOfArgument
                         : parameter.dim;
    os << llvm::formatv("    {{{0}, {1}, {2}, {3}, {4}, {5}},\n",
                        kKinds[static_cast<int>(parameter.kind)],
                        hasArgument ? int(parameter.argument) : -1, index,
                        parameter.workspaceOffset, parameter.bytes, parameter.offset);
  }
  if (numbered.kernel.parameters.empty())
    os << "    {POINTER, -1, 0, 0, 0, 0},\n";
  os << "};\n";
}

void Writer::writeTickets(llvm::raw_ostream &os, const NumberedKernel &numbered) {
  os << "static const TicketDim tickets" << numbered.number << "[] = {";
  for (const TicketedView &view : numbered.kernel.ticketed)
    for (auto [i, dim] : llvm::enumerate(view))
      os << llvm::formatv("{{{0}, {1}, {2}}, ", spell(dim.extent), dim.divisor, int(i == 0));
  os << "{{0, 0}, 0, 0}};\n";
}

void Writer::writeRequirements(llvm::raw_ostream &os, const NumberedKernel &numbered) {
  os << "static const Requirement requirements" << numbered.number << "[] = {";
  for (const Requirement &needed : numbered.kernel.requirements)
    os << llvm::formatv("{{{0}, {1}, {2}}, ", needed.divisor ? int(*needed.divisor) : -1,
                        needed.dividend, needed.factor);
  os << "{-1, 0, 1}};\nstatic const Bound bounds" << numbered.number << "[] = {";
  for (const Bound &bound : numbered.kernel.bounds)
    os << llvm::formatv("{{{0}, {1}}, ", bound.dim, bound.most);
  os << "{0, 0}};\n";
}

void Writer::writeImages(llvm::raw_ostream &os) {
  for (auto [number, image] : llvm::enumerate(bundle.images)) {
    os << "static const unsigned char image" << number << "[] = {";
    for (auto [i, byte] : llvm::enumerate(image))
      os << (i % 20 ? "" : "\n    ") << unsigned(static_cast<unsigned char>(byte)) << ",";
    os << "\n};\n";
  }
}

void Writer::writeTables(llvm::raw_ostream &os, const NumberedKernel &numbered) {
  os << "static const char *const dims" << numbered.number << "[] = ";
  writeList(os, numbered.kernel.dims, [&](const std::string &dim) { os << quote(dim); });
  os << ";\n";
  writeArguments(os, numbered);
  writeMaps(os, numbered);
  writeParameters(os, numbered);
  writeTickets(os, numbered);
  writeRequirements(os, numbered);
}

/// `{extents}, {divisors}`
static void writeGrid(llvm::raw_ostream &os, const std::array<GridDim, 3> &grid) {
  writeList(os, grid, [&](const GridDim &dim) { os << spell(dim.extent); });
  os << ", ";
  writeList(os, grid, [&](const GridDim &dim) { os << dim.divisor; });
}

/// A kernel as the launcher takes it.
void Writer::writeKernel(llvm::raw_ostream &os, const NumberedKernel &numbered) {
  const KernelInfo &kernel = numbered.kernel;
  auto triple = [](const std::array<unsigned, 3> &sizes) {
    return llvm::formatv("{{{0}, {1}, {2}}", sizes[0], sizes[1], sizes[2]).str();
  };
  unsigned number = 0;
  StringRef target = bundle.target;
  target.consume_front("sm_");
  target.consumeInteger(10, number);
  size_t ticketDims = 0;
  for (const TicketedView &view : kernel.ticketed)
    ticketDims += view.size();
  os << "{" << quote(kernel.kind) << ", " << quote(kernel.name) << ", "
     << (kernel.symbol.empty() ? "NULL" : quote(kernel.symbol))
     << llvm::formatv(", arguments{0}, {1}, dims{0}, {2}, requirements{0}, {3}, bounds{0}, {4}, "
                      "maps{0}, parameters{0}, {5}, {6}, tickets{0}, {7},\n     ",
                      numbered.number, kernel.arguments.size(), kernel.dims.size(),
                      kernel.requirements.size(), kernel.bounds.size(), kernel.parameters.size(),
                      kernel.workspaceBytes, ticketDims);
  writeGrid(os, kernel.grid);
  os << ", " << int(kernel.persistent) << ", " << int(kernel.flat) << ", " << int(kernel.pdl)
     << ",\n     " << kernel.blocksPerMultiprocessor << ", " << triple(kernel.block) << ", "
     << triple(kernel.cluster) << ", " << kernel.sharedMemory << ", " << number / 10 << ", "
     << number % 10 << ", image" << kernel.image << "}";
}

/// The sequence itself, its workspaces and its launches.
void Writer::writeSequence(llvm::raw_ostream &os) {
  KernelInfo own;
  static_cast<Signature &>(own) = *sequence;
  NumberedKernel numbered = number(own, kernels.size());
  numbered.kernel.block = numbered.kernel.cluster = {1, 1, 1};
  writeTables(os, numbered);
  os << "static const KernelInfo sequence = ";
  writeKernel(os, numbered);
  os << ";\nstatic const DerivedDim derived[] = {\n";
  for (const DerivedDim &dim : sequence->derivedDims) {
    os << "    {" << quote(dim.name) << ", " << dim.factors.size() << ", ";
    writeList(os, dim.factors, [&](Extent factor) { os << spell(factor); }, spell(Extent()));
    os << ", " << dim.divisor << "},\n";
  }
  os << "    {NULL, 0, {{0, 0}}, 1}};\nstatic const WorkspaceInfo workspaces[] = {\n";
  for (const WorkspaceInfo &workspace : sequence->workspaces) {
    os << "    {" << quote(workspace.name) << ", " << workspace.type->bytes << ", "
       << workspace.dims.size() << ", ";
    writeList(os, workspace.dims, [&](Extent extent) { os << spell(extent); }, spell(Extent()));
    os << ", " << int(workspace.zeroed) << "},\n";
  }
  os << "    {NULL, 1, 0, {{0, 0}}, 0}};\nstatic const Step steps[] = {\n";
  for (const StepInfo &step : sequence->steps) {
    os << "    {" << step.kernel << ", ";
    writeList(os, step.operands, [&](unsigned operand) { os << operand; });
    os << "},\n";
  }
  os << "};\n\n";
}

/// With all digits, so that C computes with the same numbers.
static std::string spell(double number) {
  return llvm::formatv("{0}", llvm::format("%.17g", number)).str();
}

static std::string spell(const TimeSum &sum) {
  return llvm::formatv("{{{0}, {{{1}, {2}}, {{{3}, {4}}}", spell(sum.number), spell(sum.factors[0]),
                       spell(sum.factors[1]), sum.dims[0], sum.dims[1]);
}

/// What each kernel of the choice should take.
void Writer::writeAlternatives(llvm::raw_ostream &os) {
  for (auto [i, alternative] : llvm::enumerate(choice->alternatives)) {
    os << "static const TimeTerm terms" << i << "[] = ";
    writeList(os, alternative.launches.front().iterations, [&](const TimeTerm &term) {
      os << llvm::formatv("{{{0}, {1}}", term.op, term.value);
    });
    os << ";\n";
  }
  os << "static const TimeModel alternatives[KERNEL_COUNT] = {\n";
  for (auto [i, alternative] : llvm::enumerate(choice->alternatives)) {
    const TimeModel &time = alternative.launches.front().time;
    const LinearIterations &line = time.line;
    os << llvm::formatv("    {{terms{0}, {1}, {2}, {3}, {4}, {5}, {6},\n     ", i,
                        alternative.launches.front().iterations.size(), time.order, time.section,
                        time.atATime, spell(time.iterationTime), spell(time.endsTime));
    writeList(os, llvm::ArrayRef(time.grid), [&](const TimeGrid &grid) {
      os << llvm::formatv("{{{0}, {1}, {2}, {3}}", grid.dim, grid.isDivided, spell(grid.number),
                          spell(grid.inverse));
    });
    os << llvm::formatv(",\n     {{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}},\n", spell(line.factor),
                        spell(line.divisor), spell(line.least), spell(line.inverseFactor),
                        spell(line.inverse), spell(line.offset), spell(line.most), line.isWhole);
    os << llvm::formatv("     {{{{{0}, {1}}, {2}, {3}}, {4}, {5}},\n", time.rows.dims[0],
                        time.rows.dims[1], spell(time.rows.perSector), spell(time.rows.time),
                        spell(time.cluster), spell(time.perCluster));
  }
  os << "};\nconst char *const " << name << "_alternatives[] = ";
  writeList(os, kernels,
            [&](const NumberedKernel &numbered) { os << quote(numbered.kernel.name); });
  os << ";\n\n";
}

/// The arguments of a function as the launcher takes them.
void Writer::writeValues(llvm::raw_ostream &os) {
  os << " {\n  Value values[" << signature.arguments.size() << "];\n";
  for (auto [i, argument] : llvm::enumerate(signature.arguments)) {
    const std::string &given = parameterNames[i];
    os << "  values[" << i << "].view = " << (argument.isView ? given : "NULL") << ";\n  values["
       << i << "].scalar = " << (argument.isView ? "NULL" : "&" + given) << ";\n";
  }
}

static constexpr llvm::StringLiteral kForcedLaunch =
    R"(  if (alternative < 0 || alternative >= KERNEL_COUNT) {
    Call call;
    call.kernel = NULL;
    call.text = error;
    call.size = error_size;
    return fail(call, TESSERA_INVALID_ARGUMENT, "there are %d alternatives, and none at position %d",
                KERNEL_COUNT, alternative);
  }
  return launch(&kernels[alternative], device, stream, values, error, error_size);
}

)";

static constexpr llvm::StringLiteral kAskedChoice =
    R"((const int64_t *extents, double *microseconds) {
  int i;
  for (i = 0; i < MOST_DIMS; ++i)
    if (extents[i] < 0 || extents[i] > INT32_MAX)
      return -1;
  for (i = 0; microseconds && i < KERNEL_COUNT; ++i)
    microseconds[i] = predict(i, extents);
  return choose(extents);
}
)";

void Writer::writeFunctions(llvm::raw_ostream &os) {
  writeSignature(os);
  writeValues(os);
  if (sequence)
    os << "  return launchSequence(";
  else
    os << "  return launch(&kernels[" << (choice ? "chooseByValues(values)" : "0") << "], ";
  os << "device, stream, values, error, error_size);\n}\n";
  if (!choice)
    return;
  os << "\n";
  writeSignature(os, /*isForced=*/true);
  writeValues(os);
  os << kForcedLaunch << "int " << name << "_choice" << kAskedChoice;
}

std::string Writer::writeSource() {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "/* Written by tessera compile --emit c; do not edit. */\n"
     << "#define _POSIX_C_SOURCE 200112L\n#include \"" << name << ".h\"\n\n"
     << "#include <dlfcn.h>\n#include <float.h>\n#include <inttypes.h>\n"
     << (choice ? "#include <math.h>\n" : "") << "#include <pthread.h>\n#include <stdarg.h>\n"
     << "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n";
  writeCounts(os);
  for (const char *part : {tesseraCDriver, tesseraCChecks, tesseraCContext, tesseraCLaunch})
    os << part << "\n";
  os << (sequence ? tesseraCSequence : tesseraCKernel) << "\n";
  if (choice)
    os << tesseraCTimeTerms << "\n" << tesseraCLaunchTime << "\n" << tesseraCChoice << "\n";
  os << (kernels.size() > 1 ? "/* ---- These kernels ---- */\n\n"
                            : "/* ---- This kernel ---- */\n\n");
  for (const NumberedKernel &numbered : kernels)
    writeTables(os, numbered);
  writeImages(os);
  os << "static const KernelInfo kernels[KERNEL_COUNT] = {\n";
  for (const NumberedKernel &numbered : kernels) {
    os << "    ";
    writeKernel(os, numbered);
    os << ",\n";
  }
  os << "};\n\n";
  if (sequence)
    writeSequence(os);
  if (choice)
    writeAlternatives(os);
  writeFunctions(os);
  return text;
}

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

llvm::Expected<CSource> tessera::writeCSource(StringRef bundle, StringRef name) {
  auto fail = [](const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  if (llvm::Error error = checkFunctionName(name))
    return std::move(error);
  llvm::Expected<BundleInfo> info = readBundle(bundle);
  if (!info)
    return info.takeError();
  for (const ChoiceInfo &choice : info->choices)
    for (const AlternativeInfo &alternative : choice.alternatives)
      if (alternative.entry >= info->kernels.size())
        return fail("C is written for choices among kernels, and '" + choice.name +
                    "' may launch the sequence '" +
                    info->sequences[alternative.entry - info->kernels.size()].name +
                    "'; give its parameters values with -D, and write a function for each");
  if (info->sequences.size() > 1)
    return fail("C is written for one kernel or sequence, and the source has " +
                llvm::Twine(info->sequences.size()) + " sequences; name one with --kernel");
  bool isOne = info->kernels.size() == 1 || info->sequences.size() == 1;
  if (info->choices.size() > 1 || (info->choices.empty() && !isOne))
    return fail("C is written for one kernel, and the source has " +
                llvm::Twine(info->kernels.size()) + "; name one with --kernel");
  if (llvm::any_of(info->kernels, [](const KernelInfo &kernel) { return kernel.timelineBytes; }))
    return fail("a launch in C reads no timeline; compile without --instrument");
  Writer writer(*info, name);
  CSource result{writer.writeHeader(), writer.writeSource()};
  if (llvm::Error error = checkFunctionName(name, result.source))
    return std::move(error);
  return result;
}
