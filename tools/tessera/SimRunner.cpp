//===- SimRunner.cpp - Runs kernels on the simulator ----------------------===//

#include "tools/tessera/SimRunner.h"
#include "lib/Runtime/Sequence.h"
#include "lib/Support/Files.h"
#include "lib/Support/Json.h"
#include "tessera/BundleKeys.h"
#include "tools/tessera/DeviceArguments.h"
#include <climits>
#include <thread>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace mlir;
using namespace tessera;
using llvm::Error;
using llvm::Expected;
namespace json = llvm::json;

static Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// From source to a module
//===----------------------------------------------------------------------===//

static Expected<std::pair<runtime::BundleInfo, sim::Module>> loadBundle(StringRef text) {
  Expected<runtime::BundleInfo> bundle = runtime::readBundle(text);
  if (!bundle)
    return bundle.takeError();
  bool isOne =
      bundle->sequences.empty() ? bundle->kernels.size() == 1 : bundle->sequences.size() == 1;
  if (!bundle->isPtx || !isOne)
    return makeError("the simulator takes a bundle of one kernel or sequence with PTX");
  Expected<sim::Module> module = sim::parseModule(StringRef(bundle->images.front().data()));
  if (!module)
    return module.takeError();
  return std::make_pair(std::move(*bundle), std::move(*module));
}

/// Of the text of a file.
static Expected<sim::Module> readModule(StringRef path) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> text = readInput(path);
  if (!text)
    return makeError("--ptx: cannot read '" + path + "': " + text.getError().message());
  Expected<sim::Module> module = sim::parseModule((*text)->getBuffer());
  if (!module)
    return makeError("--ptx: " + path + ": " + toString(module.takeError()));
  return module;
}

/// Each launch takes and gives back the same megabytes for its registers and its shared memory.
/// Given back to the system they would be new pages for the next one.
static void keepFreedMemory() {
#ifdef __GLIBC__
  constexpr int kLargestThreshold = 32 << 20; // what glibc takes
  mallopt(M_MMAP_THRESHOLD, kLargestThreshold);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

std::unique_ptr<SimRunner> SimRunner::create(const std::string &source, const std::string &fileName,
                                             CompileOptions options, const SimOptions &simOptions,
                                             const DiagnosticHandler &handler,
                                             CompileStatus &status) {
  keepFreedMemory();
  options.emit = EmitKind::Bundle;
  options.bundlePtx = true;
  CompileResult compiled = compile(source, fileName, options, handler);
  status = compiled.status;
  if (status != CompileStatus::Success)
    return nullptr;
  auto loaded = loadBundle(compiled.output);
  auto refuse = [&](std::string message, CompileStatus how) {
    Diagnostic diagnostic;
    diagnostic.message = std::move(message);
    handler(diagnostic);
    status = how;
    return nullptr;
  };
  if (!loaded)
    return refuse("--device sim: " + toString(loaded.takeError()), CompileStatus::ToolchainError);
  bool isCompiled = simOptions.ptx.empty();
  Expected<sim::Module> module =
      isCompiled ? Expected<sim::Module>(std::move(loaded->second)) : readModule(simOptions.ptx);
  if (!module)
    return refuse(toString(module.takeError()), CompileStatus::UsageError);
  std::unique_ptr<SimRunner> runner(new SimRunner(std::move(loaded->first), std::move(*module)));
  if (!isCompiled)
    runner->ptxName = runner->ptxOrigin = simOptions.ptx;
  runner->readDescriptions();
  runner->maxBlocks = simOptions.blocks;
  runner->hostThreads = simOptions.threads;
  runner->simulation.moveApproximations = simOptions.moveApproximations;
  runner->setSeeds(simOptions.seed, 1);
  return runner;
}

void SimRunner::setSeeds(uint64_t first, uint64_t count) {
  ahead.clear();
  encoded.clear();
  simulation.seed = first;
  seedsLeft = count;
  unsigned threads = hostThreads ? hostThreads : std::max(std::thread::hardware_concurrency(), 1u);
  // Where blocks communicate, only one host thread lets a seed show the same run again.
  bool communicates = llvm::any_of(
      bundle.kernels, [](const runtime::KernelInfo &info) { return info.workspaceBytes > 0; });
  if (communicates && (count > 1 || !hostThreads))
    simulation.threads = 1;
  else
    simulation.threads = std::max<uint64_t>(1, threads / count);
}

static uint32_t getUnsigned(const json::Object &object, StringRef name) {
  return static_cast<uint32_t>(object.getInteger(name).value_or(0));
}

template <typename Visitor>
static void forEachObject(const json::Object &parent, StringRef name, Visitor &&visit) {
  if (const json::Array *array = parent.getArray(name))
    for (const json::Value &element : *array)
      if (const json::Object *object = element.getAsObject())
        visit(*object, object->getString(key::name).value_or("").str());
}

/// Takes from the bundle what is there for people and tools: names and resources.
void SimRunner::readDescriptions() {
  for (const runtime::KernelInfo &info : bundle.kernels) {
    KernelNames &own = names.emplace_back();
    json::Value description = cantFail(parseJson(info.description));
    const json::Object &kernel = *description.getAsObject();
    for (StringRef list : {StringRef(key::barriers), StringRef(key::sharedMap)})
      forEachObject(kernel, list, [&](const json::Object &entry, std::string name) {
        sim::SharedName &array = own.shared.emplace_back();
        array.name = name;
        array.offset = getUnsigned(entry, key::offset);
        array.count = std::max(1u, getUnsigned(entry, key::slots));
        array.stride = getUnsigned(entry, key::bytes) / array.count;
        if (const json::Array *places = entry.getArray(key::places))
          for (const json::Value &place : *places)
            array.places.push_back(place.getAsString().value_or("").str());
      });
    forEachObject(kernel, key::roles, [&](const json::Object &entry, std::string name) {
      own.roles.push_back(
          {getUnsigned(entry, key::firstWarp), getUnsigned(entry, key::warps), name});
    });
    forEachObject(kernel, key::namedBarriers, [&](const json::Object &entry, std::string name) {
      own.barriers.push_back({getUnsigned(entry, key::id), name});
    });
    if (const json::Object *reported = kernel.getObject(key::report))
      if (const json::Object *resources = reported->getObject(key::resources))
        own.registers = getUnsigned(*resources, key::registers);
  }
}

const runtime::Signature &SimRunner::getSignature() const {
  if (bundle.sequences.empty())
    return bundle.kernels.front();
  return bundle.sequences.front();
}

Expected<std::vector<timeline::Timeline>> SimRunner::readTimelines() const {
  std::vector<timeline::Timeline> timelines;
  for (const Recording &recording : recordings) {
    Expected<timeline::Timeline> timeline =
        timeline::decode(bundle.kernels[recording.kernel].description, recording.memory,
                         timeline::ClockUnit::Instructions);
    if (!timeline)
      return timeline.takeError();
    timelines.push_back(std::move(*timeline));
  }
  return timelines;
}

Expected<timeline::Timeline> SimRunner::readTimeline() {
  if (!bundle.sequences.empty())
    return makeError(
        "a sequence has a timeline of each of its kernels; give --kernel with one of them");
  Expected<std::vector<timeline::Timeline>> timelines = readTimelines();
  if (!timelines)
    return timelines.takeError();
  if (timelines->empty())
    return makeError("no thread block was recorded");
  return std::move(timelines->front());
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static Expected<std::array<uint8_t, 128>> encodeMap(const runtime::TensorMapRecipe &recipe,
                                                    const runtime::Argument &argument,
                                                    ArrayRef<int64_t> dims) {
  size_t rank = recipe.dims.size();
  runtime::TensorMapExtents extents = runtime::evaluateTensorMap(recipe, argument, dims);
  sim::TensorMapDesc desc;
  // Both have the numbers of the driver.
  desc.type = static_cast<sim::TensorElement>(recipe.dataType());
  desc.globalAddress = extents.address;
  desc.dims.assign(extents.dims, extents.dims + rank);
  desc.strides.assign(extents.strides, extents.strides + rank - 1);
  desc.box.assign(recipe.box.begin(), recipe.box.end());
  desc.swizzle = recipe.swizzle;
  return sim::encodeTensorMap(desc);
}

Error SimRunner::fillParameters(const runtime::KernelInfo &info,
                                ArrayRef<runtime::Argument> arguments, ArrayRef<int64_t> dims,
                                uint64_t workspace, sim::Launch &launch) const {
  runtime::ParameterBlock block(info);
  if (Error error = block.fill(arguments, dims))
    return error;
  block.setWorkspaces(workspace, workspace);
  for (const runtime::LaunchParameter &parameter : info.parameters) {
    if (parameter.kind != runtime::ParameterKind::TensorMap)
      continue;
    unsigned map = info.arguments[parameter.argument].tensorMaps[parameter.mapOfArgument];
    Expected<std::array<uint8_t, 128>> encoded =
        encodeMap(info.tensorMaps[map], arguments[parameter.argument], dims);
    if (!encoded)
      return encoded.takeError();
    block.setTensorMap(parameter, encoded->data());
  }
  const sim::PtxKernel *declared = module.kernel(info.symbol);
  if (!declared || declared->params.size() != info.parameters.size())
    return makeError("the PTX has no kernel '" + info.symbol +
                     "' with the parameters of its description; PTX of a file is compiled with the "
                     "same -D, --schedule and --shape");
  launch.params.resize(declared->paramBytes);
  for (auto [i, parameter] : llvm::enumerate(info.parameters)) {
    if (declared->params[i].size != parameter.bytes)
      return makeError("parameter " + llvm::Twine(i) + " of '" + info.symbol + "' has " +
                       llvm::Twine(declared->params[i].size) + " bytes in the PTX and " +
                       llvm::Twine(parameter.bytes) + " in its description");
    std::memcpy(&launch.params[declared->params[i].offset], block.getPointers()[i],
                parameter.bytes);
  }
  return Error::success();
}

/// Takes the timeline out of a workspace, and says whether the rest is as the next launch needs it.
Error SimRunner::checkWorkspace(unsigned index, Trial &trial, uint64_t address,
                                uint64_t bytes) const {
  const runtime::KernelInfo &info = bundle.kernels[index];
  std::vector<uint8_t> contents(bytes);
  if (Error error = trial.memory.read(address, contents))
    return error;
  auto timeline = contents.begin() + info.timelineOffset;
  if (info.timelineBytes)
    trial.recordings.push_back({index, {timeline, timeline + info.timelineBytes}});
  std::fill_n(timeline, info.timelineBytes, 0);
  for (uint64_t i = 0; i < bytes; ++i)
    if (contents[i])
      return makeError("the kernel leaves byte " + llvm::Twine(i) +
                       " of its workspace other than zero, which the next launch needs");
  return Error::success();
}

/// Adds what a launch did to what those before it did.
static void addReport(sim::Report next, sim::Report &report) {
  next.warpInstructions += report.warpInstructions;
  next.wgmmas += report.wgmmas;
  next.tmaOperations += report.tmaOperations;
  next.ctas += report.ctas;
  next.seconds += report.seconds;
  for (const auto &[name, count] : report.opcodes)
    next.opcodes[name] += count;
  report = std::move(next);
}

Error SimRunner::makeLaunch(unsigned index, ArrayRef<runtime::Argument> arguments,
                            sim::GlobalMemory &memory, PreparedLaunch &prepared) const {
  const runtime::KernelInfo &info = bundle.kernels[index];
  if (Error error = runtime::checkArguments(info, arguments, prepared.dims))
    return error;
  Expected<std::array<unsigned, 3>> grid = runtime::computeGrid(info, prepared.dims);
  if (!grid)
    return grid.takeError();
  prepared.isEmpty = (*grid)[0] == 0;
  if (prepared.isEmpty)
    return Error::success();
  sim::Launch &launch = prepared.launch;
  launch.memory = &memory;
  launch.kernel = info.symbol;
  launch.grid = {(*grid)[0], (*grid)[1], (*grid)[2]};
  if (info.persistent)
    launch.grid.x =
        info.cluster[0] * std::min(launch.grid.x, std::max(1u, maxBlocks / info.cluster[0]));
  launch.block = {info.block[0], info.block[1], info.block[2]};
  launch.cluster = {info.cluster[0], info.cluster[1], info.cluster[2]};
  launch.dynamicSharedBytes = info.sharedMemory;
  launch.registersPerThread = names[index].registers;
  Expected<uint64_t> bytes = runtime::countWorkspaceBytes(info, prepared.dims);
  if (!bytes)
    return bytes.takeError();
  prepared.workspaceBytes = *bytes;
  if (*bytes) {
    Expected<uint64_t> address = memory.allocate(*bytes, "workspace");
    if (!address)
      return address.takeError();
    prepared.workspace = *address;
  }
  return fillParameters(info, arguments, prepared.dims, prepared.workspace, launch);
}

Error SimRunner::executeKernel(unsigned index, ArrayRef<runtime::Argument> arguments,
                               Trial &trial) const {
  const runtime::KernelInfo &info = bundle.kernels[index];
  PreparedLaunch prepared;
  if (Error error = makeLaunch(index, arguments, trial.memory, prepared))
    return error;
  if (prepared.isEmpty)
    return Error::success();
  sim::Options options = trial.options;
  options.sharedNames = names[index].shared;
  options.roleNames = names[index].roles;
  options.barrierNames = names[index].barriers;
  options.orderedSums = !info.ticketed.empty();
  options.maxWarpInstructions -=
      std::min(options.maxWarpInstructions, trial.report.warpInstructions);
  Expected<sim::Report> result = sim::run(module, prepared.launch, options);
  if (!result)
    return result.takeError();
  trial.outcome = RunOutcome::Failed;
  addReport(std::move(*result), trial.report);
  if (!trial.report.ok())
    return makeError("the simulator found a hazard with --sim-seed " +
                     llvm::Twine(trial.options.seed) + " --threads " +
                     llvm::Twine(trial.options.threads) + "; PTX lines are those of " + ptxOrigin);
  return prepared.workspaceBytes
             ? checkWorkspace(index, trial, prepared.workspace, prepared.workspaceBytes)
             : Error::success();
}

Error SimRunner::executeSequence(const runtime::SequenceInfo &sequence, Trial &trial) const {
  Expected<std::shared_ptr<const runtime::SequencePlan>> plan =
      runtime::SequencePlan::make(sequence, trial.arguments);
  if (!plan)
    return plan.takeError();
  if (Error error = runtime::checkOverlap(sequence, trial.arguments))
    return error;
  // What nothing stored is NaN in each type. Each workspace has memory of its own, so that an
  // access beyond it shows.
  SmallVector<uint64_t> addresses;
  for (const runtime::SequencePlan::Part &part : (*plan)->getParts()) {
    Expected<uint64_t> address =
        trial.memory.allocate(std::max<uint64_t>(part.bytes, 1), part.workspace->name);
    if (!address)
      return address.takeError();
    addresses.push_back(*address);
    std::vector<uint8_t> contents(part.bytes, part.workspace->zeroed ? 0 : 0xff);
    if (Error error = trial.memory.write(*address, contents))
      return error;
  }
  for (const runtime::StepInfo &step : sequence.steps)
    if (Error error = executeKernel(step.kernel,
                                    (*plan)->getArguments(step, trial.arguments, addresses), trial))
      return makeError("kernel '" + bundle.kernels[step.kernel].name +
                       "': " + toString(std::move(error)));
  return Error::success();
}

Error SimRunner::execute(Trial &trial) const {
  if (bundle.sequences.empty())
    return executeKernel(0, trial.arguments, trial);
  return executeSequence(bundle.sequences.front(), trial);
}

Error SimRunner::prepare(tile::EntryOpInterface kernel, ArrayRef<KernelArgument> values,
                         Trial &trial) const {
  for (auto [i, value] : llvm::enumerate(values)) {
    trial.arguments.push_back(describeArgument(kernel.getArgument(i).getType(), value));
    if (!std::holds_alternative<HostTensor *>(value))
      continue;
    const std::vector<char> &storage = encoded[i];
    Expected<uint64_t> address =
        trial.memory.allocate(std::max<size_t>(storage.size(), 1), getSignature().arguments[i].name,
                              getSignature().arguments[i].access == runtime::Access::Read);
    if (!address)
      return address.takeError();
    if (Error error = trial.memory.write(
            *address, ArrayRef(reinterpret_cast<const uint8_t *>(storage.data()), storage.size())))
      return error;
    trial.arguments.back().pointer = *address;
  }
  return Error::success();
}

Error SimRunner::checkLaunch(tile::EntryOpInterface kernel, ArrayRef<KernelArgument> values) const {
  constexpr uint64_t address = 256;
  std::vector<runtime::Argument> arguments;
  for (auto [i, value] : llvm::enumerate(values)) {
    arguments.push_back(describeArgument(kernel.getArgument(i).getType(), value));
    arguments.back().pointer = address;
  }
  runtime::DimValues dims;
  return runtime::checkArguments(getSignature(), arguments, dims);
}

void SimRunner::encode(tile::EntryOpInterface kernel, ArrayRef<KernelArgument> values) {
  if (!encoded.empty())
    return;
  for (auto [i, value] : llvm::enumerate(values))
    encoded.push_back(std::holds_alternative<HostTensor *>(value)
                          ? encodeTensor(*std::get<HostTensor *>(value), kernel, i)
                          : std::vector<char>());
}

/// Simulates as many of the seeds that are left as there are host threads.
Error SimRunner::simulateAhead(tile::EntryOpInterface kernel, ArrayRef<KernelArgument> values) {
  unsigned cores = hostThreads ? hostThreads : std::max(std::thread::hardware_concurrency(), 1u);
  uint64_t count = std::min<uint64_t>(std::max<uint64_t>(seedsLeft, 1), cores);
  encode(kernel, values);
  for (uint64_t i = 0; i < count; ++i) {
    Trial &trial = ahead.emplace_back();
    trial.options = simulation;
    ++simulation.seed;
    if (Error error = prepare(kernel, values, trial))
      return error;
  }
  seedsLeft -= std::min(seedsLeft, count);
  std::vector<std::thread> threads;
  auto simulate = [this](Trial &trial) {
    if (Error error = execute(trial))
      trial.failure = toString(std::move(error));
    else
      trial.outcome = RunOutcome::Ran;
  };
  for (uint64_t i = 1; i < count; ++i)
    threads.emplace_back(simulate, std::ref(ahead[i]));
  simulate(ahead.front());
  for (std::thread &thread : threads)
    thread.join();
  return Error::success();
}

Error SimRunner::launch(tile::EntryOpInterface kernel, ArrayRef<KernelArgument> values,
                        RunOutcome &outcome) {
  report = sim::Report();
  report.seed = simulation.seed;
  if (ahead.empty())
    if (Error error = simulateAhead(kernel, values))
      return error;
  Trial trial = std::move(ahead.front());
  ahead.pop_front();
  outcome = trial.outcome;
  report = std::move(trial.report);
  recordings = std::move(trial.recordings);
  if (!report.ok())
    report.print(llvm::errs(), ptxName);
  if (!trial.failure.empty())
    return makeError(trial.failure);
  for (auto [i, value] : llvm::enumerate(values)) {
    if (getSignature().arguments[i].access == runtime::Access::Read ||
        !std::holds_alternative<HostTensor *>(value))
      continue;
    const sim::GlobalMemory::Buffer &buffer = *trial.memory.find(trial.arguments[i].pointer, 1);
    decodeTensor(ArrayRef(reinterpret_cast<const char *>(buffer.data), buffer.size), kernel, i,
                 *std::get<HostTensor *>(value));
  }
  return Error::success();
}

RunOutcome SimRunner::run(tile::EntryOpInterface kernel, ArrayRef<KernelArgument> arguments) {
  RunOutcome outcome = RunOutcome::Refused;
  if (Error error = launch(kernel, arguments, outcome))
    kernel.emitError() << "on the simulator: " << toString(std::move(error));
  return outcome;
}
