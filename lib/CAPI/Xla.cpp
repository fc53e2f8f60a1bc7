//===- Xla.cpp - Handlers of custom calls of XLA --------------------------===//
//
// XLA calls a handler once for its metadata, and then for each stage of each execution, of which
// only the last one does something. Executables are kept on disk and run in other processes, so
// that attributes are text and numbers alone.
//
//===----------------------------------------------------------------------===//

#include "tessera-c/Xla.h"
#include "AttentionChoices.h"
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
struct State {
  AttentionChoices choices, choicesOfCpu;
  tessera_xla_interpreter interpret = nullptr;
};

/// What went wrong with a call.
struct Problem {
  ErrorCode code = ErrorCode::InvalidArgument;
  std::string text;
  Error *error = nullptr; ///< what XLA itself says, in place of the text
};

/// A tensor of a call, [B, H, S, D] whatever the order of its storage.
struct Tensor {
  tessera_argument argument = {};
  llvm::SmallVector<int64_t, 4> shape, strides;

  tessera_argument get() {
    argument.shape = shape.data();
    argument.strides = strides.data();
    return argument;
  }
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

/// Never destroyed, as XLA may call to the end.
static State &getState() {
  static State &state = *new State;
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
static bool readScalar(const Attributes &attributes, int64_t index, ElementType type, T &value) {
  auto *scalar = static_cast<const Scalar *>(attributes.values[index]);
  if (attributes.kinds[index] != kScalarKind || scalar->type != type)
    return false;
  value = *static_cast<const T *>(scalar->value);
  return true;
}

template <class T>
static bool readArray(const Attributes &attributes, int64_t index, ElementType type,
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
    bool isRead = name == "variant"   ? readText(attributes, i, options.variant)
                  : name == "layout"  ? readText(attributes, i, options.layout)
                  : name == "extras"  ? readText(attributes, i, options.extras)
                  : name == "scale"   ? readScalar(attributes, i, ElementType::F32, options.scale)
                  : name == "numbers" ? readArray(attributes, i, ElementType::F32, options.numbers)
                  : name == "integers"
                      ? readArray(attributes, i, ElementType::S32, options.integers)
                  : name == "sizes" ? readArray(attributes, i, ElementType::S32, options.sizes)
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
static int32_t convertType(ElementType type) {
  return type == ElementType::F16    ? TESSERA_TYPE_F16
         : type == ElementType::BF16 ? TESSERA_TYPE_BF16
         : type == ElementType::F32  ? TESSERA_TYPE_F32
         : type == ElementType::S32  ? TESSERA_TYPE_I32
         : type == ElementType::S64  ? TESSERA_TYPE_I64
         // A condition is a byte in memory.
         : type == ElementType::S8 || type == ElementType::Pred ? TESSERA_TYPE_I8
                                                                : 0;
}

/// Reads a buffer, which may have the heads behind the rows.
static Tensor readBuffer(const Buffer &buffer, bool isRowMajor) {
  Tensor tensor;
  tensor.shape.resize(buffer.rank);
  tensor.strides.resize(buffer.rank);
  int64_t stride = 1;
  for (int64_t dim = buffer.rank; dim-- > 0;) {
    // With the heads behind the rows, dimensions 1 and 2 change places.
    int64_t to = isRowMajor && (dim == 1 || dim == 2) ? 3 - dim : dim;
    tensor.shape[to] = buffer.dims[dim];
    tensor.strides[to] = stride;
    stride *= buffer.dims[dim];
  }
  tensor.argument.pointer = reinterpret_cast<uint64_t>(buffer.data);
  tensor.argument.type = convertType(buffer.type);
  tensor.argument.rank = static_cast<int32_t>(buffer.rank);
  return tensor;
}

/// Reads attention's own tensors, of which there are `count`. An LSE has 3 dimensions, others 4.
static bool readTensors(const Buffers &buffers, int64_t count,
                        llvm::ArrayRef<llvm::StringRef> names, int64_t fewest, bool isRowMajor,
                        llvm::SmallVectorImpl<Tensor> &tensors, Problem &problem) {
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
    tensors.push_back(readBuffer(*buffer, isRowMajor && rank == 4));
  }
  return true;
}

/// Appends what the kernel takes after its scale; `views` and `sums` are behind attention's own
/// operands and results.
static bool appendExtras(const Options &options, const CallFrame &frame, int64_t views,
                         int64_t sums, llvm::SmallVectorImpl<Tensor> &tensors,
                         llvm::SmallVectorImpl<tessera_argument> &arguments, Problem &problem) {
  llvm::ArrayRef<float> numbers = options.numbers;
  llvm::ArrayRef<int32_t> integers = options.integers;
  auto append = [&](const Buffers &buffers, int64_t index) {
    if (index >= buffers.size || buffers.kinds[index] != kBufferKind)
      return false;
    auto *buffer = static_cast<const Buffer *>(buffers.values[index]);
    tensors.push_back(readBuffer(*buffer, /*isRowMajor=*/false));
    arguments.push_back(tensors.back().get());
    return true;
  };
  for (char kind : options.extras) {
    if (kind == 's') {
      arguments.push_back(makeFloat(options.scale));
    } else if (kind == 'v' && append(frame.arguments, views)) {
      ++views;
    } else if (kind == 'd' && append(frame.results, sums)) {
      ++sums;
    } else if (kind == 'f' && !numbers.empty()) {
      arguments.push_back(makeFloat(numbers.consume_front()));
    } else if (kind == 'i' && !integers.empty()) {
      arguments.push_back(makeInteger(integers.consume_front()));
    } else {
      problem.text = "attribute 'extras' does not say what there is; see tessera-c/Xla.h";
      return false;
    }
  }
  return true;
}

/// Runs on the CPU. What the interpreter says is the problem.
static bool interpret(tessera_program *program, llvm::ArrayRef<tessera_argument> arguments,
                      Problem &problem) {
  tessera_xla_interpreter run = getState().interpret;
  auto note = [](const tessera_diagnostic *diagnostic, void *text) {
    if (diagnostic->severity == TESSERA_SEVERITY_ERROR)
      *static_cast<std::string *>(text) = diagnostic->message;
  };
  if (run && run(program, arguments.data(), arguments.size(), note, &problem.text) == 0)
    return true;
  if (!run)
    problem.text = "there is no interpreter for tensors of the CPU";
  return false;
}

static bool isSuccess(tessera_runtime_status status, Problem &problem) {
  if (status == TESSERA_RUNTIME_SUCCESS)
    return true;
  problem.text = tessera_last_error();
  if (status == TESSERA_RUNTIME_DRIVER_ERROR || status == TESSERA_RUNTIME_NO_DEVICE)
    problem.code = ErrorCode::Internal;
  return false;
}

/// Launches a kernel; a sequence, where `scratch` is given, with memory of it.
static bool launch(tessera_kernel *kernel, void *stream, Scratch *scratch,
                   llvm::ArrayRef<tessera_argument> arguments, Problem &problem) {
  size_t bytes = 0;
  if (scratch &&
      !isSuccess(tessera_kernel_workspace_bytes(kernel, arguments.data(), arguments.size(), &bytes),
                 problem))
    return false;
  if (bytes == 0)
    return isSuccess(tessera_kernel_launch(kernel, TESSERA_CURRENT_DEVICE, stream, arguments.data(),
                                           arguments.size()),
                     problem);
  problem.error = scratch->allocate(bytes);
  return !problem.error && isSuccess(tessera_kernel_launch_with_workspace(
                                         kernel, TESSERA_CURRENT_DEVICE, stream, arguments.data(),
                                         arguments.size(), scratch->getAddress(), bytes),
                                     problem);
}

/// Runs the kernel that is chosen for `variant` and the sizes of a call, or has it interpreted.
static bool run(llvm::StringRef variant, int32_t type, const AttentionSizes &sizes, bool hasLse,
                bool isCpu, void *stream, Scratch *scratch,
                llvm::ArrayRef<tessera_argument> arguments, Problem &problem) {
  AttentionChoices &choices = isCpu ? getState().choicesOfCpu : getState().choices;
  std::optional<tessera_attention_choice> choice =
      choices.find(variant.str().c_str(), type, sizes, hasLse, problem.text);
  if (!choice) {
    problem.code = ErrorCode::NotFound;
    return false;
  }
  if (!choice->kernel)
    return interpret(choice->program, arguments, problem);
  return launch(choice->kernel, stream, scratch, arguments, problem);
}

/// Reads a call, chooses its kernel and runs it.
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
  // Arguments of a launch point into tensors.
  llvm::SmallVector<Tensor, 16> tensors;
  tensors.reserve(frame.arguments.size + frame.results.size);
  if (!readTensors(frame.arguments, own, form.operands, form.fewestOperands, isRowMajor, tensors,
                   problem) ||
      !readTensors(frame.results, ownResults, form.results, form.fewestResults, isRowMajor, tensors,
                   problem))
    return false;
  llvm::SmallVector<tessera_argument, 16> arguments;
  for (Tensor &tensor : tensors)
    arguments.push_back(tensor.get());
  if (!options.extras.contains('s'))
    arguments.push_back(makeFloat(options.scale));
  if (!appendExtras(options, frame, own, ownResults, tensors, arguments, problem))
    return false;

  const Tensor &q = tensors[0], &k = tensors[1], &v = tensors[2];
  AttentionSizes sizes = {q.shape[0], q.shape[1], q.shape[2], q.shape[3],
                          k.shape[1], k.shape[2], v.shape[3]};
  // What a form may leave out is the LSE, or its gradient.
  bool hasLse = own > form.fewestOperands || ownResults > form.fewestResults;
  std::optional<Scratch> scratch;
  if (&form == &kBackward && !isCpu)
    scratch.emplace(frame);
  return run(options.variant, q.argument.type, sizes, hasLse, isCpu, stream,
             scratch ? &*scratch : nullptr, arguments, problem);
}

/// Makes lists of blocks. Of Q and K the kernels read extents alone: one element stands for all.
static bool makeLists(const CallFrame &frame, const Form &form, bool isCpu, void *stream,
                      Problem &problem) {
  Options options;
  if (!readOptions(frame.attributes, options, problem))
    return false;
  auto numViews = static_cast<int64_t>(options.extras.count('v'));
  llvm::SmallVector<Tensor, 16> tensors;
  tensors.reserve(frame.arguments.size + frame.results.size + 1);
  if (!readTensors(frame.arguments, frame.arguments.size - numViews, form.operands,
                   form.fewestOperands, /*isRowMajor=*/false, tensors, problem) ||
      !readTensors(frame.results, frame.results.size, form.results, form.fewestResults,
                   /*isRowMajor=*/false, tensors, problem))
    return false;
  if (options.sizes.size() != 4) {
    problem.text = "attribute 'sizes' has the extents of B, H, SQ and SK";
    return false;
  }
  Tensor q = tensors[0], k = tensors[0];
  q.shape = {options.sizes[0], options.sizes[1], options.sizes[2], q.shape[3]};
  k.shape = {options.sizes[0], 1, options.sizes[3], k.shape[3]};
  q.strides = k.strides = {0, 0, 0, 1};
  llvm::SmallVector<tessera_argument, 16> arguments = {q.get(), k.get(), tensors[1].get(),
                                                       tensors[2].get()};
  if (!appendExtras(options, frame, /*views=*/1, /*sums=*/2, tensors, arguments, problem))
    return false;
  AttentionSizes sizes = {q.shape[0], q.shape[1], q.shape[2], q.shape[3],
                          k.shape[1], k.shape[2], q.shape[3]};
  std::optional<Scratch> scratch;
  if (!isCpu)
    scratch.emplace(frame);
  return run(options.variant, q.argument.type, sizes, /*hasLse=*/false, isCpu, stream,
             scratch ? &*scratch : nullptr, arguments, problem);
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
  auto *run = &form == &kLists ? makeLists : execute;
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

void tessera_xla_register(tessera_attention_resolver resolver,
                          tessera_attention_resolver resolver_cpu,
                          tessera_xla_interpreter interpreter) {
  State &state = getState();
  state.choices.setResolver(resolver);
  state.choicesOfCpu.setResolver(resolver_cpu);
  state.interpret = interpreter;
}

void tessera_xla_reset(void) {
  getState().choices.clear();
  getState().choicesOfCpu.clear();
}
