"""What keeps kernels from taking tensors, by what arguments are called, and where they run."""

import torch
import torch.autograd.forward_ad as forward_ad

from .._attention import _variants
from .._core._errors import raise_problem
from ._types import TYPES

# The copy engine takes rows that begin at multiples of it.
_ROW_BYTES = 16


def _make_layout_problem(name):
    return TypeError(f"argument '{name}' is nested or sparse; it is a strided tensor")


def find_form_problem(name, tensor):
    """What keeps anything from taking a tensor for attention, whatever its type: an exception, or None."""
    if tensor.is_nested or tensor.layout is not torch.strided:
        return _make_layout_problem(name)
    if tensor.dim() != 4:
        return ValueError(f"argument '{name}' has {tensor.dim()} dimensions; attention takes 4")
    return None


def check_forms(given):
    """Refuses tensors by their names that nothing takes for attention, whatever their types are."""
    for name, tensor in given.items():
        raise_problem(find_form_problem(name, tensor))


def find_other_device(name, tensor, q, of_q="q"):
    """That a tensor is not where `q` is, as an exception, or None."""
    if tensor is None or tensor.device == q.device:
        return None
    return ValueError(f"argument '{name}' is on {tensor.device} and '{of_q}' on {q.device}; they must be equal")


def find_problem(q, k, v, alibi, names=_variants.NAMES):
    """What keeps every kernel from taking these tensors: an exception, or None. `names` are those of the arguments."""
    of_q, of_alibi = names[0], names[3]
    for name, tensor in zip(names, (q, k, v)):
        form_problem = find_form_problem(name, tensor)
        if form_problem is not None:
            return form_problem
        if tensor.dtype not in TYPES:
            other = ", and attention_fp8 e4m3 and e5m2" if tensor.dtype.is_floating_point and tensor.element_size() == 1 else ""
            return TypeError(f"argument '{name}' has type {tensor.dtype}; attention takes float16 and bfloat16{other}")
        if tensor.dtype != q.dtype:
            return TypeError(f"argument '{name}' has type {tensor.dtype} and '{of_q}' {q.dtype}; they must be equal")
        device_problem = find_other_device(name, tensor, q, of_q)
        if device_problem is not None:
            return device_problem
        head_problem = _variants.find_head_problem(name, tensor.shape[3], _variants.FORWARD_WIDTHS[-1])
        if head_problem is not None:
            return head_problem
        if tensor.stride(3) != 1:
            return ValueError(
                f"argument '{name}' has stride {tensor.stride(3)} in its last dimension; it must be 1: pass "
                f"{name}.contiguous()"
            )
    mismatch = _variants.find_mismatch(q.shape, k.shape, v.shape, alibi, names=names)
    return find_other_device(of_alibi, alibi, q, of_q) or mismatch


def may_have_tangents():
    """Whether tensors may have tangents, as in hardly any call."""
    return forward_ad._current_level >= 0


def find_sinks_problem(sinks, q):
    """What keeps kernels from taking sinks, as an exception, or None."""
    if not isinstance(sinks, torch.Tensor):
        return TypeError(f"argument 'sinks' is a {type(sinks).__name__}; it is a tensor with a number for each head of 'q'")
    problem = _variants.find_sinks_problem(sinks, q.shape[1]) or find_other_device("sinks", sinks, q)
    if problem is None and sinks.stride(0) != 1 and q.shape[1] > 1:
        problem = ValueError(f"argument 'sinks' has stride {sinks.stride(0)}; it must be 1: pass sinks.contiguous()")
    return problem


def check_tangents(names, *tensors):
    """Refuses tensors with a tangent, which an op would drop silently."""
    if not may_have_tangents():
        return
    for name, tensor in zip(names, tensors):
        if tensor is not None and forward_ad.unpack_dual(tensor).tangent is not None:
            raise NotImplementedError(f"argument '{name}' has a tangent, and there is no forward-mode derivative: use backward")


def check_derivatives(what, given):
    """Refuses tensors, by their names, of which a derivative is wanted that `what` has none of and would drop silently."""
    tensors = {name: x for name, x in given.items() if isinstance(x, torch.Tensor)}
    check_tangents(tensors, *tensors.values())
    for name, tensor in tensors.items():
        if torch.is_grad_enabled() and require_grad(tensor):
            raise NotImplementedError(f"argument '{name}' requires a gradient, and {what} has none: detach it")


_are_transforms_active = torch._C._are_functorch_transforms_active
_is_batched = torch._C._functorch.is_batchedtensor
_is_wrapped, _unwrap = torch._C._functorch.is_functorch_wrapped_tensor, torch._C._functorch.get_unwrapped


def require_grad(*tensors):
    """Whether a gradient of one of them is wanted. Under transforms of torch.func a tensor does not say so of the transforms
    around it."""
    if any(tensor.requires_grad for tensor in tensors):
        return True
    if torch.compiler.is_dynamo_compiling():
        if torch.is_grad_enabled() and _are_transforms_active() and any(_is_batched(tensor) for tensor in tensors):
            raise NotImplementedError(
                "attention is mapped over by torch.vmap in compiled code, which does not say whether gradients are wanted, and would "
                "drop them: call it under torch.no_grad(), or make the mapped dimension a part of the batch"
            )
        return False
    return _are_transforms_active() and any(_is_wrapped(tensor) and require_grad(_unwrap(tensor)) for tensor in tensors)


def separate(*tensors):
    """The tensors for a function of autograd, which takes each once in compiled code: another view of one that is given again."""
    if not torch.compiler.is_dynamo_compiling():
        return tensors
    separated = []
    for index, tensor in enumerate(tensors):
        is_again = tensor is not None and any(tensor is other for other in tensors[:index])
        separated.append(tensor.view_as(tensor) if is_again else tensor)
    return separated


def find_number_problem(name, number, instead):
    """That an argument is no single number, or a tensor of one whose gradient would be dropped, as an exception, or None.
    `instead` is what has the gradient."""
    # Most are of these types, and isinstance asks Tensor's metaclass.
    if type(number) in (float, int) or not isinstance(number, torch.Tensor):
        return None
    if number.numel() != 1:
        return TypeError(f"argument '{name}' is a tensor of shape {tuple(number.shape)}; it is a number")
    if torch.is_grad_enabled() and require_grad(number):
        return NotImplementedError(
            f"argument '{name}' requires a gradient, and kernels compute none of a number: detach it, or {instead}"
        )
    return None


def find_scale_problem(scale, name="scale"):
    """What keeps kernels from taking a scale, as an exception, or None."""
    problem = find_number_problem(name, scale, 'multiply the queries by it, or call `attention` with fallback="torch"')
    return problem or _variants.find_scale_problem(scale, name)


def find_type_problem(given, optional=None):
    """What is no tensor with strides among arguments by their names, as an exception; None where all are. Those that are optional
    may be None."""
    for name, value in (*given.items(), *(optional or {}).items()):
        if value is None and name not in given:
            continue
        if isinstance(value, torch.Tensor):
            if value.is_nested or value.layout is not torch.strided:
                return _make_layout_problem(name)
            continue
        what = "None" if value is None else f"of type {type(value).__name__}"
        return TypeError(f"argument '{name}' is {what}; it is a tensor of torch: torch.as_tensor makes one of numbers")
    return None


def check_types(given, optional=None):
    """Refuses what is no tensor with strides."""
    raise_problem(find_type_problem(given, optional))


def find_place_problem(q, k, v, names=_variants.NAMES):
    """What keeps kernels from loading tensors where they lie: an exception, or None. Where it was not asked for, launches
    refuse the same. `names` are those of the arguments."""
    for name, tensor in zip(names, (q, k, v)):
        unit = _ROW_BYTES // tensor.element_size()
        steps = [step for step, size in zip(tensor.stride()[:3], tensor.shape) if size > 1]
        if any(step % unit for step in (*steps, tensor.storage_offset())):
            return ValueError(
                f"argument '{name}' has strides {tuple(tensor.stride())} and begins at element {tensor.storage_offset()} of its "
                f"storage; its rows must begin at multiples of {unit} elements: pass {name}.clone()"
            )
    return None


def check(q, k, v, alibi):
    """Refuses tensors that no kernel takes."""
    raise_problem(find_problem(q, k, v, alibi))


_interprets = False


def runs_on(device):
    """Whether an op runs on a device."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) == (9, 0)
    return device.type == "cpu" and _interprets


def find_device_problem(name, device):
    """What keeps kernels from running where an argument is, by its name: an exception, or None."""
    if runs_on(device):
        return None
    place = "the CPU" if device.type == "cpu" else str(device)
    if device.type == "cuda":
        place += ", of compute capability {}.{}".format(*torch.cuda.get_device_capability(device))
    return ValueError(
        f"argument '{name}' is on {place}; attention runs on CUDA devices of compute capability 9.0: move it there, or call "
        "tessera.torch.use_interpreter() to run tests on the CPU; `attention` also takes fallback=\"torch\""
    )


def check_interpreter(name):
    """Refuses an argument on the CPU where no test has asked for the interpreter."""
    raise_problem(find_device_problem(name, torch.device("cpu")))


def use_interpreter(enabled: bool = True) -> bool:
    """Lets attention of tensors on the CPU run by the interpreter, which is exact and slow: for tests without a GPU.
    Returns what it was before."""
    global _interprets
    before, _interprets = _interprets, enabled
    return before
