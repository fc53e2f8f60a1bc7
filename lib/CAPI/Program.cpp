//===- Program.cpp - Kernels as their source says them --------------------===//

#include "tessera-c/Program.h"
#include "dialects/Tile/Entries.h"
#include "lib/CAPI/Conversions.h"
#include "lib/Compiler/Bundle.h"
#include "lib/Compiler/LaunchTimes.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Database/Database.h"
#include "lib/Database/ShapeClass.h"
#include "lib/Interpreter/Interpreter.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Source.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Tile/FindVisits.h"
#include "passes/Tile/TilePasses.h"
#include <mutex>
#include <optional>
#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::capi;

struct tessera_program {
  tessera_program() : context(makeCompilerRegistry(), MLIRContext::Threading::DISABLED) {
    context.printOpOnDiagnostic(false);
    // Its tables still expect threads: each type and attribute of it makes one for a thread, and
    // walks over those of all contexts that live, as hundreds of programs do.
    context.disableMultithreading();
  }

  std::mutex mutex; ///< guards the context's handlers and the sets of texts
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  tile::EntryOpInterface kernel;
  OwningOpRef<ModuleOp> folded; ///< see `getFolded`
  std::vector<std::string> argumentNames, argumentTypes;
  std::vector<bool> isWritten;
  std::string parameters = "{}";
  std::set<std::string> classes, rules, visits;
};

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

namespace {

/// A view argument of a caller, whose memory has elements of `element`, and the tensor that the
/// interpreter works on.
class HostView {
public:
  HostView(tile::ViewType view, const ElementType &element, const tessera_argument &argument)
      : element(element), argument(argument),
        tensor(HostTensor::contiguous({argument.shape, argument.shape + argument.rank})) {
    tensor.holdsIntegers = element.isWideInteger();
    bool isNarrower = element.type != getElementType(view).type;
    forEach([&](char *at, int64_t offset) {
      tensor.decode(offset, element, at);
      if (isNarrower)
        tensor.data[offset] = roundToType(view.getElementType(), tensor.data[offset]);
    });
  }

  HostTensor *getTensor() { return &tensor; }
  void store() {
    forEach([&](char *at, int64_t offset) { tensor.encode(offset, element, at); });
  }

private:
  /// Calls `visit` with the caller's place and ours of each element.
  template <typename Visitor>
  void forEach(Visitor &&visit) {
    HostTensor places;
    places.shape = tensor.shape;
    places.strides.assign(argument.strides, argument.strides + argument.rank);
    auto *base = reinterpret_cast<char *>(argument.pointer);
    places.forEach(
        [&](int64_t linear, int64_t offset) { visit(base + offset * element.bytes, linear); });
  }

  const ElementType &element;
  const tessera_argument &argument;
  HostTensor tensor;
};

/// The arguments of one run, converted; errors go to the diagnostics of the kernel.
class HostArguments {
public:
  explicit HostArguments(tile::EntryOpInterface kernel) : kernel(kernel) {}

  LogicalResult read(llvm::ArrayRef<tessera_argument> arguments);
  void writeResults();
  llvm::ArrayRef<KernelArgument> getValues() const { return values; }

private:
  LogicalResult readView(unsigned index, tile::ViewType view, const tessera_argument &argument);
  LogicalResult readScalar(unsigned index, Type type, const tessera_argument &argument);
  InFlightDiagnostic refuse(unsigned index) {
    return kernel.emitError() << "argument '" << kernel.getArgumentName(index) << "' ";
  }

  tile::EntryOpInterface kernel;
  std::vector<KernelArgument> values;
  /// By argument; null for scalars.
  std::vector<std::unique_ptr<HostView>> views;
};

} // namespace

LogicalResult HostArguments::readView(unsigned index, tile::ViewType view,
                                      const tessera_argument &argument) {
  const ElementType *given = getElementType(argument.type);
  // Host memory may have f32 where a view has narrower floating-point numbers, as files have.
  bool isWide = given && given->type == TESSERA_TYPE_F32 && isa<FloatType>(view.getElementType());
  if (!given || (given->type != getElementType(view).type && !isWide)) {
    InFlightDiagnostic error = refuse(index);
    error << "has another type than the elements of its view, " << view.getElementType();
    if (given)
      error << ": " << given->name;
    return error;
  }
  if (argument.rank != static_cast<int32_t>(view.getRank()))
    return refuse(index) << "has " << argument.rank << " dimensions; its view has "
                         << view.getRank();
  for (int32_t i = 0; i < argument.rank; ++i)
    if (argument.shape[i] < 0 || argument.strides[i] < 0)
      return refuse(index) << "has a negative extent or stride in dimension " << i;
  auto host = std::make_unique<HostView>(view, *given, argument);
  values.push_back(host->getTensor());
  views.push_back(std::move(host));
  return success();
}

LogicalResult HostArguments::readScalar(unsigned index, Type type,
                                        const tessera_argument &argument) {
  views.push_back(nullptr);
  const ElementType *given = getScalarType(argument.type);
  if (!given)
    return refuse(index) << "is a scalar of type " << type << " and takes a number";
  const char *number = reinterpret_cast<const char *>(&argument.scalar);
  if (isa<FloatType>(type)) {
    values.push_back(decodeElement(*given, number));
    return success();
  }
  int64_t integer = readInteger(*given, number);
  if (given->semantics || !llvm::isIntN(8 * tile::findScalarType(type)->bytes, integer))
    return refuse(index) << "takes an integer of type " << type;
  values.push_back(integer);
  return success();
}

LogicalResult HostArguments::read(llvm::ArrayRef<tessera_argument> arguments) {
  if (arguments.size() != kernel.getNumArguments())
    return kernel.emitError() << "takes " << kernel.getNumArguments() << " arguments; "
                              << arguments.size() << " were given";
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    Type type = kernel.getArgument(index).getType();
    auto view = dyn_cast<tile::ViewType>(type);
    if (failed(view ? readView(index, view, argument) : readScalar(index, type, argument)))
      return failure();
  }
  return success();
}

void HostArguments::writeResults() {
  for (auto [index, view] : llvm::enumerate(views))
    if (view && getViewUse(kernel, index).stored)
      view->store();
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

/// The kernel or sequence of a name, or the only one; null after an error.
static tile::EntryOpInterface findKernel(ModuleOp module, llvm::StringRef name) {
  if (tile::EntryOpInterface found = tile::findEntry(module, name))
    return found;
  llvm::SmallVector<tile::EntryOpInterface> kernels = tile::getEntries(module);
  InFlightDiagnostic error = emitError(module.getLoc());
  if (kernels.empty())
    error << "the source has no kernel; write one with tile.kernel";
  else if (name.empty())
    error << "the source has several kernels; name one of ";
  else
    error << "the source has no kernel '" << name << "'; it has ";
  llvm::interleaveComma(kernels, error,
                        [&](tile::EntryOpInterface kernel) { error << kernel.getSymName(); });
  return {};
}

/// The values of a module's parameters as JSON; leaves the text as it is where there are none.
static LogicalResult describeParameters(ModuleOp module, std::string &text) {
  auto bound = tile::TileDialect::ParametersAttrHelper(module.getContext()).getAttr(module);
  if (!bound)
    return success();
  FailureOr<llvm::json::Value> value = toJSON(bound, module.getLoc());
  if (failed(value))
    return failure();
  text = llvm::formatv("{0}", *value).str();
  return success();
}

tessera_compile_status tessera_program_read(const char *source, size_t length,
                                            const char *file_name, const char *kernel,
                                            const tessera_define *defines, size_t define_count,
                                            tessera_diagnostic_handler handler, void *user_data,
                                            tessera_program **program) {
  *program = nullptr;
  DiagnosticHandler handle = convert(handler, user_data);
  std::optional<std::string> given = convert(source, length, handle);
  if (!given || !checkArray(defines, define_count, handle))
    return TESSERA_COMPILE_USAGE_ERROR;
  auto result = std::make_unique<tessera_program>();
  DiagnosticForwarder forwarder(result->context, handle, /*remarks=*/false);
  ReadResult read =
      readSource(*given, text(file_name), convert(defines, define_count), result->context,
                 /*imports=*/{}, DebugOps::Keep);
  if (read.status != CompileStatus::Success)
    return convert(read.status);
  result->module = std::move(read.module);
  result->kernel = findKernel(*result->module, text(kernel));
  if (!result->kernel)
    return TESSERA_COMPILE_USAGE_ERROR;
  for (unsigned i = 0; i < result->kernel.getNumArguments(); ++i) {
    result->argumentNames.push_back(result->kernel.getArgumentName(i).str());
    llvm::raw_string_ostream(result->argumentTypes.emplace_back())
        << result->kernel.getArgument(i).getType();
    result->isWritten.push_back(isa<tile::ViewType>(result->kernel.getArgument(i).getType()) &&
                                getViewUse(result->kernel, i).stored);
  }
  if (failed(describeParameters(*result->module, result->parameters)))
    return TESSERA_COMPILE_SOURCE_ERROR;
  *program = result.release();
  return TESSERA_COMPILE_SUCCESS;
}

void tessera_program_destroy(tessera_program *program) { delete program; }

size_t tessera_program_argument_count(const tessera_program *program) {
  return program->argumentNames.size();
}

const char *tessera_program_argument_name(const tessera_program *program, size_t index) {
  return index < program->argumentNames.size() ? program->argumentNames[index].c_str() : nullptr;
}

const char *tessera_program_argument_type(const tessera_program *program, size_t index) {
  return index < program->argumentTypes.size() ? program->argumentTypes[index].c_str() : nullptr;
}

int tessera_program_argument_is_written(const tessera_program *program, size_t index) {
  return index < program->isWritten.size() && program->isWritten[index];
}

tessera_compile_status tessera_program_run(tessera_program *program,
                                           const tessera_argument *arguments, size_t count,
                                           tessera_diagnostic_handler handler, void *user_data) {
  std::lock_guard<std::mutex> lock(program->mutex);
  DiagnosticHandler handle = convert(handler, user_data);
  DiagnosticForwarder forwarder(program->context, handle, /*remarks=*/false);
  HostArguments host(program->kernel);
  if (failed(host.read(llvm::ArrayRef(arguments, count))) ||
      failed(resolveLaunch(program->kernel, host.getValues())))
    return TESSERA_COMPILE_USAGE_ERROR;
  InterpreterOptions options;
  if (handle)
    options.shown.show = [&](Location loc, StringRef text) {
      mlir::Diagnostic shown(loc, DiagnosticSeverity::Remark);
      shown << text;
      handle(convertDiagnostic(shown));
    };
  program->context.enableMultithreading();
  LogicalResult result = interpret(program->kernel, host.getValues(), options);
  program->context.disableMultithreading();
  if (failed(result))
    return TESSERA_COMPILE_SOURCE_ERROR;
  host.writeResults();
  return TESSERA_COMPILE_SUCCESS;
}

/// The multiprocessors of the GPU of the shipped measurements.
static unsigned countMultiprocessors() {
  const tuning::Database &database = tuning::Database::getShippedGpus();
  return database.getGpus().find(database.getDefaultGpu())->second.multiprocessors;
}

/// The kernel in a module in which what the parameters decide is folded, and what a mask leaves is
/// found; null where there is none.
static tile::EntryOpInterface getFolded(tessera_program &program) {
  if (!program.folded) {
    ErrorCapture errors(&program.context);
    program.folded = program.module->clone();
    PassManager passes(&program.context, ModuleOp::getOperationName());
    // As a compilation reads it.
    passes.addPass(createTileSplitReductions());
    buildStages(passes, EmitKind::Tile, EmitKind::Tile);
    if (failed(passes.run(*program.folded)))
      program.folded->getBody()->clear();
  }
  return tile::findEntry(*program.folded, program.kernel.getSymName());
}

static llvm::Expected<std::string> findShapeClass(tessera_program &program,
                                                  llvm::ArrayRef<tessera_extent> extents) {
  tile::EntryOpInterface folded = getFolded(program);
  tile::EntryOpInterface entry = folded ? folded : program.kernel;
  llvm::StringMap<int64_t> dims;
  for (const tessera_extent &extent : extents)
    dims[text(extent.name)] = extent.value;
  if (llvm::Error error = tuning::checkShape(entry, dims))
    return error;
  llvm::Expected<tuning::ShapeMeasure> measure = tuning::measureShape(entry, dims);
  if (!measure)
    return measure.takeError();
  return tuning::getShapeClass(*measure, countMultiprocessors());
}

const char *tessera_program_shape_class(tessera_program *program, const tessera_extent *extents,
                                        size_t count, tessera_diagnostic_handler handler,
                                        void *user_data) {
  std::lock_guard<std::mutex> lock(program->mutex);
  llvm::Expected<std::string> name = findShapeClass(*program, llvm::ArrayRef(extents, count));
  if (name)
    return program->classes.insert(std::move(*name)).first->c_str();
  reportError(convert(handler, user_data), toString(name.takeError()));
  return nullptr;
}

/// What decides the class of a launch, see tessera_program_shape_rule.
static std::string findShapeRule(tessera_program &program) {
  auto kernel = dyn_cast<tile::KernelOp>(*program.kernel);
  if (!kernel)
    return "";
  auto folded = dyn_cast_or_null<tile::KernelOp>(getFolded(program).getOperation());
  if (!folded)
    return "";
  ErrorCapture errors(kernel.getContext());
  FailureOr<LaunchTimes> times = LaunchTimes::of(folded);
  if (succeeded(times)) {
    llvm::json::Object rule = times->describeTiles();
    rule["multiprocessors"] = countMultiprocessors();
    rule["lengths"] = llvm::json::Array(tuning::getLengths());
    return llvm::formatv("{0}", llvm::json::Value(std::move(rule))).str();
  }
  // What extents do not decide they decide for no shape.
  llvm::StringMap<int64_t> dims;
  for (StringRef name : kernel.getDimNames())
    dims[name] = 1;
  llvm::Expected<tuning::ShapeMeasure> measure = tuning::measureShape(folded, dims);
  if (measure)
    return "";
  llvm::consumeError(measure.takeError());
  return "null";
}

const char *tessera_program_shape_rule(tessera_program *program) {
  std::lock_guard<std::mutex> lock(program->mutex);
  return program->rules.insert(findShapeRule(*program)).first->c_str();
}

const char *tessera_program_parameters(const tessera_program *program) {
  return program->parameters.c_str();
}

static StringRef nameTrend(Trend trend) {
  switch (trend) {
  case Trend::Increasing:
    return "increasing";
  case Trend::Decreasing:
    return "decreasing";
  case Trend::Constant:
  case Trend::Sliding:
  case Trend::Unknown:
    return "";
  }
  return "";
}

const char *tessera_program_visits(tessera_program *program) {
  std::lock_guard<std::mutex> lock(program->mutex);
  auto kernel = dyn_cast<tile::KernelOp>(*program->kernel);
  VisitFacts facts = kernel ? describeVisits(kernel) : VisitFacts();
  llvm::json::Object found{{"loose", std::move(facts.loose)},
                           {"end_moves", facts.endMoves},
                           {"work", nameTrend(facts.work)}};
  std::string text = llvm::formatv("{0}", llvm::json::Value(std::move(found)));
  return program->visits.insert(std::move(text)).first->c_str();
}
