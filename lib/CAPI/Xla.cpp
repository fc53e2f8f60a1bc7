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
#include "llvm/ADT/StringRef.h"

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
};

/// A tensor [B, H, S, D] of a call, whatever the order of its storage.
struct Tensor {
  tessera_argument argument = {};
  std::array<int64_t, 4> shape = {}, strides = {};

  tessera_argument get() {
    argument.shape = shape.data();
    argument.strides = strides.data();
    return argument;
  }
};

/// The attributes of a call.
struct Options {
  llvm::StringRef variant, layout;
  float scale = 0, softcap = 0;
  int32_t left = -1, right = -1;
};

} // namespace

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

/// Reads attributes by name; XLA sorts them. Others are left alone.
static bool readOptions(const Attributes &attributes, Options &options, Problem &problem) {
  for (int64_t i = 0; i < attributes.size; ++i) {
    llvm::StringRef name(attributes.names[i]->data, attributes.names[i]->size);
    bool isRead = name == "variant"   ? readText(attributes, i, options.variant)
                  : name == "layout"  ? readText(attributes, i, options.layout)
                  : name == "scale"   ? readScalar(attributes, i, ElementType::F32, options.scale)
                  : name == "softcap" ? readScalar(attributes, i, ElementType::F32, options.softcap)
                  : name == "left"    ? readScalar(attributes, i, ElementType::S32, options.left)
                  : name == "right"   ? readScalar(attributes, i, ElementType::S32, options.right)
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
                                     : 0;
}

/// Reads tensor `index` of `rank` dimensions: 4, 3 without the innermost one, or 1.
static bool readTensor(const Buffers &buffers, int64_t index, const char *name, int64_t rank,
                       bool isRowMajor, Tensor &tensor, Problem &problem) {
  if (index >= buffers.size || buffers.kinds[index] != kBufferKind) {
    problem.text = std::string("tensor '") + name + "' is missing";
    return false;
  }
  auto *buffer = static_cast<const Buffer *>(buffers.values[index]);
  if (buffer->rank != rank) {
    problem.text = std::string("tensor '") + name + "' has " + std::to_string(buffer->rank) +
                   " dimensions; attention takes " + std::to_string(rank);
    return false;
  }
  int64_t stride = 1;
  for (int64_t dim = rank; dim-- > 0;) {
    // With the heads behind the rows, dimensions 1 and 2 change places.
    int64_t to = isRowMajor && rank == 4 && (dim == 1 || dim == 2) ? 3 - dim : dim;
    tensor.shape[to] = buffer->dims[dim];
    tensor.strides[to] = stride;
    stride *= buffer->dims[dim];
  }
  tensor.argument.pointer = reinterpret_cast<uint64_t>(buffer->data);
  tensor.argument.type = convertType(buffer->type);
  tensor.argument.rank = static_cast<int32_t>(rank);
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

static bool launch(tessera_kernel *kernel, void *stream, llvm::ArrayRef<tessera_argument> arguments,
                   Problem &problem) {
  tessera_runtime_status status = tessera_kernel_launch(kernel, TESSERA_CURRENT_DEVICE, stream,
                                                        arguments.data(), arguments.size());
  if (status == TESSERA_RUNTIME_SUCCESS)
    return true;
  problem.text = tessera_last_error();
  if (status == TESSERA_RUNTIME_DRIVER_ERROR || status == TESSERA_RUNTIME_NO_DEVICE)
    problem.code = ErrorCode::Internal;
  return false;
}

/// Reads a call, chooses its kernel and runs it.
static bool execute(const CallFrame &frame, AttentionChoices &choices, void *stream,
                    Problem &problem) {
  Options options;
  Tensor q, k, v, o, lse, slopes;
  if (!readOptions(frame.attributes, options, problem))
    return false;
  bool isRowMajor = options.layout == "BSHD", hasSlopes = frame.arguments.size > 3,
       hasLse = frame.results.size > 1;
  if (!readTensor(frame.arguments, 0, "q", 4, isRowMajor, q, problem) ||
      !readTensor(frame.arguments, 1, "k", 4, isRowMajor, k, problem) ||
      !readTensor(frame.arguments, 2, "v", 4, isRowMajor, v, problem) ||
      !readTensor(frame.results, 0, "o", 4, isRowMajor, o, problem) ||
      (hasLse && !readTensor(frame.results, 1, "lse", 3, isRowMajor, lse, problem)) ||
      (hasSlopes && !readTensor(frame.arguments, 3, "alibi", 1, isRowMajor, slopes, problem)))
    return false;
  AttentionSizes sizes = {q.shape[0], q.shape[1], q.shape[2], q.shape[3],
                          k.shape[1], k.shape[2], v.shape[3]};
  std::optional<tessera_attention_choice> choice =
      choices.find(options.variant.str().c_str(), q.argument.type, sizes, hasLse, problem.text);
  if (!choice) {
    problem.code = ErrorCode::NotFound;
    return false;
  }
  llvm::SmallVector<tessera_argument, 10> arguments = {q.get(), k.get(), v.get(), o.get()};
  if (hasLse)
    arguments.push_back(lse.get());
  arguments.push_back(makeFloat(options.scale));
  tessera_argument slopesArgument = slopes.get();
  if (!appendExtras(
          choice->extras,
          {options.softcap, hasSlopes ? &slopesArgument : nullptr, options.left, options.right},
          arguments)) {
    problem.text = "tensor 'alibi' is missing; this variant needs slopes";
    return false;
  }
  return choice->kernel ? launch(choice->kernel, stream, arguments, problem)
                        : interpret(choice->program, arguments, problem);
}

static Error *handle(CallFrame &frame, bool isCpu) {
  if (frame.extensions && frame.extensions->type == kMetadataExtension) {
    Metadata &metadata = *reinterpret_cast<MetadataExtension *>(frame.extensions)->metadata;
    metadata.version.majorVersion = 0;
    metadata.version.minorVersion = 1;
    metadata.traits = kCommandBufferCompatible;
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
  State &state = getState();
  Problem problem;
  if (execute(frame, isCpu ? state.choicesOfCpu : state.choices, stream, problem))
    return nullptr;
  MakeError request = {sizeof(MakeError), nullptr, problem.text.c_str(), problem.code};
  return frame.api->makeError(&request);
}

tessera_xla_error *tessera_xla_attention(tessera_xla_call *call) {
  return reinterpret_cast<tessera_xla_error *>(
      handle(*reinterpret_cast<CallFrame *>(call), /*isCpu=*/false));
}

tessera_xla_error *tessera_xla_attention_cpu(tessera_xla_call *call) {
  return reinterpret_cast<tessera_xla_error *>(
      handle(*reinterpret_cast<CallFrame *>(call), /*isCpu=*/true));
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
