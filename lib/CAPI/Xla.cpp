//===- Xla.cpp - Handlers of custom calls of XLA --------------------------===//
//
// XLA calls a handler once for its metadata, and then for each stage of each execution, of which
// only the last one does something. Executables are kept on disk and run in other processes, so
// that attributes are text and numbers alone.
//
//===----------------------------------------------------------------------===//

#include "tessera-c/Xla.h"
#include "PreparedCalls.h"
#include "XlaFfi.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <optional>

using namespace tessera;
using namespace tessera::xla;

namespace {

/// Of the process.
struct XlaState {
  PreparedCalls calls, callsOfCpu;
  tessera_call_interpreter interpret = nullptr;
};

/// What went wrong with a call.
struct Problem {
  ErrorCode code = ErrorCode::InvalidArgument;
  std::string text;
  Error *error = nullptr; ///< what XLA itself says, in place of the text
};

/// The attributes of a call.
struct Options {
  llvm::StringRef variant, layout, extras;
  float scale = 0;
  llvm::ArrayRef<float> numbers;
  llvm::ArrayRef<int32_t> integers, sizes;
};

/// The tensors of attention itself, of which a call may leave out the last ones.
struct Form {
  llvm::ArrayRef<llvm::StringRef> operands, results;
  int64_t fewestOperands, fewestResults;
  uint32_t traits; ///< of the handler
};

/// XLA refuses to align memory to more.
constexpr size_t kXlaAlignment = 16;
/// What workspaces of sequences are aligned to.
constexpr size_t kScratchAlignment = 256;

/// Memory of XLA for the time of a call.
class Scratch {
public:
  explicit Scratch(const CallFrame &frame) : frame(frame) {}
  Scratch(const Scratch &) = delete;
  ~Scratch() {
    if (!data)
      return;
    Release request = {sizeof(Release), nullptr, frame.context, size, data};
    if (Error *error = frame.api->release(&request)) {
      DestroyError destroy = {sizeof(DestroyError), nullptr, error};
      frame.api->destroyError(&destroy);
    }
  }
  Error *allocate(size_t bytes) {
    size = bytes + kScratchAlignment - kXlaAlignment;
    Allocate request = {sizeof(Allocate), nullptr, frame.context, size, kXlaAlignment, nullptr};
    if (Error *error = frame.api->allocate(&request))
      return error;
    data = request.data;
    return nullptr;
  }
  uint64_t getAddress() const {
    return llvm::alignTo(reinterpret_cast<uint64_t>(data), kScratchAlignment);
  }

private:
  const CallFrame &frame;
  void *data = nullptr;
  size_t size = 0;
};

} // namespace

static constexpr llvm::StringRef kForwardOperands[] = {"q", "k", "v"};
static constexpr llvm::StringRef kForwardResults[] = {"o", "lse"};
static constexpr llvm::StringRef kBackwardOperands[] = {"q", "k", "v", "o", "do", "lse", "dlse"};
static constexpr llvm::StringRef kBackwardResults[] = {"dq", "dk", "dv"};
static constexpr Form kForward = {kForwardOperands, kForwardResults, 3, 1,
                                  kCommandBufferCompatible};
// A command buffer would keep the address of memory that is there for one call.
static constexpr Form kBackward = {kBackwardOperands, kBackwardResults, 6, 3, 0};
static constexpr llvm::StringRef kListsOperands[] = {"anchor"};
static constexpr llvm::StringRef kListsResults[] = {"visit_lists", "visit_counts"};
static constexpr Form kLists = {kListsOperands, kListsResults, 1, 2, 0};
/// Attribute `extras` says what tensors there are.
static constexpr Form kKernel = {{}, {}, 0, 0, 0};

/// Never destroyed, as XLA may call to the end.
static XlaState &getXlaState() {
  static XlaState &state = *new XlaState;
  return state;
}

static bool readText(const Attributes &attributes, int64_t index, llvm::StringRef &value) {
  if (attributes.kinds[index] != kTextKind)
    return false;
  auto *text = static_cast<const Text *>(attributes.values[index]);
  value = llvm::StringRef(text->data, text->size);
  return true;
}

template <class T>
static bool readScalar(const Attributes &attributes, int64_t index, xla::ElementType type,
                       T &value) {
  auto *scalar = static_cast<const Scalar *>(attributes.values[index]);
  if (attributes.kinds[index] != kScalarKind || scalar->type != type)
    return false;
  value = *static_cast<const T *>(scalar->value);
  return true;
}

template <class T>
static bool readArray(const Attributes &attributes, int64_t index, xla::ElementType type,
                      llvm::ArrayRef<T> &values) {
  auto *array = static_cast<const Array *>(attributes.values[index]);
  if (attributes.kinds[index] != kArrayKind || array->type != type)
    return false;
  values = llvm::ArrayRef(static_cast<const T *>(array->data), array->size);
  return true;
}

/// Reads attributes by name; XLA sorts them. Others are left alone.
static bool readOptions(const Attributes &attributes, Options &options, Problem &problem) {
  for (int64_t i = 0; i < attributes.size; ++i) {
    llvm::StringRef name(attributes.names[i]->data, attributes.names[i]->size);
    bool isRead =
        name == "variant"    ? readText(attributes, i, options.variant)
        : name == "layout"   ? readText(attributes, i, options.layout)
        : name == "extras"   ? readText(attributes, i, options.extras)
        : name == "scale"    ? readScalar(attributes, i, xla::ElementType::F32, options.scale)
        : name == "numbers"  ? readArray(attributes, i, xla::ElementType::F32, options.numbers)
        : name == "integers" ? readArray(attributes, i, xla::ElementType::S32, options.integers)
        : name == "sizes"    ? readArray(attributes, i, xla::ElementType::S32, options.sizes)
                             : true;
    if (!isRead) {
      problem.text = "attribute '" + name.str() + "' is of another type; see tessera-c/Xla.h";
      return false;
    }
  }
  if (options.variant.empty() || (options.layout != "BHSD" && options.layout != "BSHD")) {
    problem.text = "attribute 'variant' names a variant, and 'layout' is \"BHSD\" or \"BSHD\"";
    return false;
  }
  return true;
}

/// The tessera_type of an element type, 0 when there is none.
static int32_t convertType(xla::ElementType type) {
  // A condition is a byte in memory.
  bool isByte = type == xla::ElementType::U8 || type == xla::ElementType::Pred;
  xla::ElementType own = isByte ? xla::ElementType::S8 : type;
  const auto *found = findType([&](const tessera::ElementType &candidate) {
    return candidate.type && candidate.xlaType == static_cast<int32_t>(own);
  });
  return found ? found->type : 0;
}

/// Reads a buffer, which may have the heads behind the rows; false where it has too many
/// dimensions.
static bool readBuffer(const Buffer &buffer, bool isRowMajor, CallTensor &tensor) {
  if (buffer.rank > TESSERA_CALL_MOST_DIMS)
    return false;
  tensor.layout.rank = static_cast<int32_t>(buffer.rank);
  int64_t stride = 1;
  for (int64_t dim = buffer.rank; dim-- > 0;) {
    // With the heads behind the rows, dimensions 1 and 2 change places.
    int64_t to = isRowMajor && (dim == 1 || dim == 2) ? 3 - dim : dim;
    tensor.layout.extents[to] = buffer.dims[dim];
    tensor.layout.strides[to] = stride;
    stride *= buffer.dims[dim];
  }
  tensor.address = reinterpret_cast<uint64_t>(buffer.data);
  tensor.layout.is_aligned = tensor.address % 16 == 0;
  tensor.layout.type = convertType(buffer.type);
  return true;
}

/// Reads attention's own tensors, of which there are `count`. An LSE has 3 dimensions, others 4.
static bool readTensors(const Buffers &buffers, int64_t count,
                        llvm::ArrayRef<llvm::StringRef> names, int64_t fewest, bool isRowMajor,
                        CallArguments &arguments, Problem &problem) {
  if (count > static_cast<int64_t>(names.size())) {
    problem.text = "there are more tensors than attribute 'extras' says";
    return false;
  }
  for (int64_t i = 0, last = std::max(count, fewest); i < last; ++i) {
    if (i >= count || buffers.kinds[i] != kBufferKind) {
      problem.text = "tensor '" + names[i].str() + "' is missing";
      return false;
    }
    auto *buffer = static_cast<const Buffer *>(buffers.values[i]);
    int64_t rank = names[i].ends_with("lse") ? 3 : 4;
    if (buffer->rank != rank) {
      problem.text = "tensor '" + names[i].str() + "' has " + std::to_string(buffer->rank) +
                     " dimensions; attention takes " + std::to_string(rank);
      return false;
    }
    readBuffer(*buffer, isRowMajor && rank == 4, arguments.tensors.emplace_back());
  }
  return true;
}

/// Appends what the kernel takes after its scale; `views` and `sums` are behind attention's own
/// operands and results.
static bool appendExtras(const Options &options, const CallFrame &frame, int64_t views,
                         int64_t sums, CallArguments &arguments, Problem &problem) {
  llvm::ArrayRef<float> numbers = options.numbers;
  llvm::ArrayRef<int32_t> integers = options.integers;
  auto append = [&](const Buffers &buffers, int64_t index) {
    return index < buffers.size && buffers.kinds[index] == kBufferKind &&
           readBuffer(*static_cast<const Buffer *>(buffers.values[index]), /*isRowMajor=*/false,
                      arguments.tensors.emplace_back());
  };
  for (char kind : options.extras) {
    if (kind == 's') {
      continue;
    } else if (kind == 'v' && append(frame.arguments, views)) {
      ++views;
    } else if (kind == 'd' && append(frame.results, sums)) {
      ++sums;
    } else if (kind == 'f' && !numbers.empty()) {
      arguments.numbers.push_back(numbers.consume_front());
    } else if (kind == 'i' && !integers.empty()) {
      arguments.integers.push_back(integers.consume_front());
    } else {
      problem.text = "attribute 'extras' does not say what there is; see tessera-c/Xla.h";
      return false;
    }
  }
  return true;
}

static bool isSuccess(const CallProblem &problem, Problem &reported) {
  if (!problem)
    return true;
  reported.text = problem.text;
  if (problem.status == TESSERA_RUNTIME_DRIVER_ERROR || problem.status == TESSERA_RUNTIME_NO_DEVICE)
    reported.code = ErrorCode::Internal;
  return false;
}

/// Runs what is prepared for a call, with memory of `scratch` where it is given.
static bool run(const Options &options, const CallArguments &arguments, bool isCpu, void *stream,
                Scratch *scratch, Problem &problem) {
  XlaState &state = getXlaState();
  CallProblem notFound;
  std::shared_ptr<const PreparedCall> call =
      (isCpu ? state.callsOfCpu : state.calls)
          .find((options.extras + "\n" + options.variant).str(), arguments, notFound);
  if (!call) {
    isSuccess(notFound, problem);
    if (!notFound.status)
      problem.code = ErrorCode::NotFound;
    return false;
  }
  CallMemory memory = {};
  if (call->isInterpreted())
    return isSuccess(call->interpret(arguments, memory, state.interpret), problem);
  if (uint64_t bytes = call->getWorkspaceBytes(); scratch && bytes) {
    problem.error = scratch->allocate(bytes);
    if (problem.error)
      return false;
    memory.workspace = scratch->getAddress();
  }
  return isSuccess(call->launch(arguments, memory, TESSERA_CURRENT_DEVICE, stream), problem);
}

/// Reads a call and runs it.
static bool execute(const CallFrame &frame, const Form &form, bool isCpu, void *stream,
                    Problem &problem) {
  Options options;
  if (!readOptions(frame.attributes, options, problem))
    return false;
  bool isRowMajor = options.layout == "BSHD";
  auto numViews = static_cast<int64_t>(options.extras.count('v')),
       numSums = static_cast<int64_t>(options.extras.count('d'));
  // Sums are operands too, whose memory they share.
  int64_t own = frame.arguments.size - numViews - numSums,
          ownResults = frame.results.size - numSums;
  CallArguments arguments;
  if (!readTensors(frame.arguments, own, form.operands, form.fewestOperands, isRowMajor, arguments,
                   problem) ||
      !readTensors(frame.results, ownResults, form.results, form.fewestResults, isRowMajor,
                   arguments, problem))
    return false;
  arguments.numbers.push_back(options.scale);
  if (!appendExtras(options, frame, own, ownResults, arguments, problem))
    return false;
  std::optional<Scratch> scratch;
  if (&form == &kBackward && !isCpu)
    scratch.emplace(frame);
  return run(options, arguments, isCpu, stream, scratch ? &*scratch : nullptr, problem);
}

/// Makes lists of blocks. Of Q and K the kernels read extents alone: one element stands for all.
static bool makeLists(const CallFrame &frame, const Form &form, bool isCpu, void *stream,
                      Problem &problem) {
  Options options;
  if (!readOptions(frame.attributes, options, problem))
    return false;
  auto numViews = static_cast<int64_t>(options.extras.count('v'));
  CallArguments arguments;
  if (!readTensors(frame.arguments, frame.arguments.size - numViews, form.operands,
                   form.fewestOperands, /*isRowMajor=*/false, arguments, problem) ||
      !readTensors(frame.results, frame.results.size, form.results, form.fewestResults,
                   /*isRowMajor=*/false, arguments, problem))
    return false;
  if (options.sizes.size() != 4) {
    problem.text = "attribute 'sizes' has the extents of B, H, SQ and SK";
    return false;
  }
  CallTensor q = arguments.tensors.front(), k = q;
  int64_t width = q.layout.extents[3], strides[] = {0, 0, 0, 1};
  int64_t ofQ[] = {options.sizes[0], options.sizes[1], options.sizes[2], width};
  int64_t ofK[] = {options.sizes[0], 1, options.sizes[3], width};
  q.setShape(4, ofQ, strides);
  k.setShape(4, ofK, strides);
  arguments.tensors.front() = k;
  arguments.tensors.insert(arguments.tensors.begin(), q);
  arguments.numbers.push_back(options.scale);
  if (!appendExtras(options, frame, /*views=*/1, /*sums=*/2, arguments, problem))
    return false;
  std::optional<Scratch> scratch;
  if (!isCpu)
    scratch.emplace(frame);
  return run(options, arguments, isCpu, stream, scratch ? &*scratch : nullptr, problem);
}

/// Runs a kernel or a sequence, of whose arguments attribute `extras` has a letter each.
static bool runKernel(const CallFrame &frame, const Form &, bool isCpu, void *stream,
                      Problem &problem) {
  Options options;
  if (!readOptions(frame.attributes, options, problem))
    return false;
  int64_t operand = 0, result = 0;
  CallArguments arguments;
  auto append = [&](const Buffers &buffers, int64_t index, bool isRowMajor) {
    if (index >= buffers.size || buffers.kinds[index] != kBufferKind)
      return false;
    auto *buffer = static_cast<const Buffer *>(buffers.values[index]);
    return (!isRowMajor || buffer->rank == 4) &&
           readBuffer(*buffer, isRowMajor, arguments.tensors.emplace_back());
  };
  for (char kind : options.extras) {
    bool isKnown = false;
    if (kind == 'f' && !options.numbers.empty()) {
      arguments.numbers.push_back(options.numbers.consume_front());
      isKnown = true;
    } else if (kind == 'i' && !options.integers.empty()) {
      arguments.integers.push_back(options.integers.consume_front());
      isKnown = true;
    } else if (kind == 'v' || kind == 't') {
      isKnown = append(frame.arguments, operand++, kind == 't');
    } else if (kind == 'r' || kind == 'o' || kind == 'a' || kind == 'd') {
      isKnown = append(frame.results, result++, kind == 'o' || kind == 'd');
      // An operand whose memory it shares.
      operand += kind == 'a' || kind == 'd';
    }
    if (!isKnown) {
      problem.text = "attribute 'extras' does not say what there is; see tessera-c/Xla.h";
      return false;
    }
  }
  std::optional<Scratch> scratch;
  if (!isCpu)
    scratch.emplace(frame);
  return run(options, arguments, isCpu, stream, scratch ? &*scratch : nullptr, problem);
}

static Error *handle(tessera_xla_call *call, const Form &form, bool isCpu) {
  CallFrame &frame = *reinterpret_cast<CallFrame *>(call);
  if (frame.extensions && frame.extensions->type == kMetadataExtension) {
    Metadata &metadata = *reinterpret_cast<MetadataExtension *>(frame.extensions)->metadata;
    metadata.version.majorVersion = 0;
    metadata.version.minorVersion = 1;
    metadata.traits = form.traits;
    return nullptr;
  }
  if (frame.stage != Stage::Execute)
    return nullptr;
  void *stream = nullptr;
  if (!isCpu) {
    GetStream request = {sizeof(GetStream), nullptr, frame.context, nullptr};
    if (Error *error = frame.api->getStream(&request))
      return error;
    stream = request.stream;
  }
  Problem problem;
  auto *run = &form == &kLists ? makeLists : &form == &kKernel ? runKernel : execute;
  if (run(frame, form, isCpu, stream, problem))
    return nullptr;
  if (problem.error)
    return problem.error;
  MakeError request = {sizeof(MakeError), nullptr, problem.text.c_str(), problem.code};
  return frame.api->makeError(&request);
}

static tessera_xla_error *convert(Error *error) {
  return reinterpret_cast<tessera_xla_error *>(error);
}

tessera_xla_error *tessera_xla_attention(tessera_xla_call *call) {
  return convert(handle(call, kForward, /*isCpu=*/false));
}

tessera_xla_error *tessera_xla_attention_cpu(tessera_xla_call *call) {
  return convert(handle(call, kForward, /*isCpu=*/true));
}

tessera_xla_error *tessera_xla_attention_backward(tessera_xla_call *call) {
  return convert(handle(call, kBackward, /*isCpu=*/false));
}

tessera_xla_error *tessera_xla_attention_backward_cpu(tessera_xla_call *call) {
  return convert(handle(call, kBackward, /*isCpu=*/true));
}

tessera_xla_error *tessera_xla_lists(tessera_xla_call *call) {
  return convert(handle(call, kLists, /*isCpu=*/false));
}

tessera_xla_error *tessera_xla_lists_cpu(tessera_xla_call *call) {
  return convert(handle(call, kLists, /*isCpu=*/true));
}

tessera_xla_error *tessera_xla_kernel(tessera_xla_call *call) {
  return convert(handle(call, kKernel, /*isCpu=*/false));
}

tessera_xla_error *tessera_xla_kernel_cpu(tessera_xla_call *call) {
  return convert(handle(call, kKernel, /*isCpu=*/true));
}

void tessera_xla_register(tessera_call_resolver resolver, tessera_call_resolver resolver_cpu,
                          tessera_call_interpreter interpreter) {
  XlaState &state = getXlaState();
  state.calls.setResolver(resolver);
  state.callsOfCpu.setResolver(resolver_cpu);
  state.interpret = interpreter;
}

void tessera_xla_reset(void) {
  getXlaState().calls.clear();
  getXlaState().callsOfCpu.clear();
}
