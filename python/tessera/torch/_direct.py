"""Attention past PyTorch's dispatcher where nobody sees ops: tessera_torch_attention of tessera-c/Torch.h."""

import ctypes
import functools
import os
import sys
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_ssize_t, c_void_p

import torch

from .. import _exchange, _library, _recipes
from . import _native, _op

_CPU, _CUDA = 1, 2  # DLDeviceType
# What is looked up in torch in each call costs the host time.
_is_dynamo_compiling = torch.compiler.is_dynamo_compiling
_count_dispatch_modes = torch._C._len_torch_dispatch_stack
_is_function_mode_enabled = torch._C._is_torch_function_mode_enabled
_is_tracing = torch._C._is_tracing
_profiler = torch.autograd.profiler


class _Options(ctypes.Structure):
    """tessera_torch_direct_options"""

    _fields_ = [
        ("framework", _exchange.Framework), ("make_empty", c_void_p), ("element_types", c_void_p * 9), ("byte_type", c_void_p),
        ("get_current_device", c_void_p), ("device_type", c_int32), ("text", c_char_p), ("tensor_count", c_int32),
        ("numbers", c_char_p),
    ]  # fmt: skip


class _ForwardOptions(ctypes.Structure):
    """tessera_torch_forward_options"""

    _fields_ = [
        ("direct", c_void_p), ("numbers", c_void_p), ("call_count", c_int32), ("kept_count", c_int32), ("returns_lse", c_int32),
        ("to_save", c_void_p), ("materialize_grads", c_void_p), ("never", c_void_p), ("other", c_void_p),
    ]  # fmt: skip


class _BackwardOptions(ctypes.Structure):
    """tessera_torch_backward_options"""

    _fields_ = [
        ("direct", c_void_p), ("numbers", c_void_p), ("input_count", c_int32), ("learned", POINTER(c_int32)),
        ("learned_count", c_size_t),
    ]  # fmt: skip


@functools.lru_cache(maxsize=None)
def _functions():
    function = c_void_p, c_void_p, c_void_p, c_ssize_t
    signatures = {
        "tessera_torch_direct_create": (c_void_p, POINTER(_Options)), "tessera_torch_call": function,
        "tessera_torch_forward_create": (c_void_p, POINTER(_ForwardOptions)), "tessera_torch_apply_forward": function,
        "tessera_torch_backward_create": (c_void_p, POINTER(_BackwardOptions)), "tessera_torch_apply_backward": function,
    }  # fmt: skip
    library = _library.runtime()
    # With the GIL, as they read objects of Python.
    return _library.declare(ctypes.PyDLL(library._name, handle=library._handle), signatures)


def _find_current_device():
    """The address of PyTorch's function for it, None where there is none."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
    return ctypes.cast(getattr(library, "aoti_torch_get_current_device_index", None), c_void_p).value


def make(text, tensor_count, numbers, device_type=_CUDA):
    """A function for calls of a text, see tessera_torch_call; None where PyTorch is too old. `numbers` says what their tuples of
    numbers have."""
    framework = _exchange.create_framework(torch)
    place = "cuda" if device_type == _CUDA else "cpu"
    make_empty = getattr(torch._C._dynamo.guards, f"_empty_strided_{place}", None)
    current_device = _find_current_device() if device_type == _CUDA else None
    if framework is None or make_empty is None or (device_type == _CUDA and current_device is None):
        return None
    # All of these live as long as the process, as the functions do.
    types = (c_void_p * 9)(*(None if dtype is None else id(dtype) for dtype in _ELEMENT_TYPES))
    _kept.append(make_empty)
    options = _Options(
        framework, id(make_empty), types, id(torch.uint8), current_device, device_type, text.encode(), tensor_count,
        numbers.encode(),
    )  # fmt: skip
    handle = _functions().tessera_torch_direct_create(options)
    return _exchange.make_function("tessera_torch_call", _functions().tessera_torch_call, handle) if handle else None


# By tessera_type.
_ELEMENT_TYPES = [None] * 9
for _element in _library.ELEMENTS:
    _ELEMENT_TYPES[_element.code] = getattr(torch, _element.torch)

# What contexts of autograd keep is in these attributes, which their methods write.
_TO_SAVE, _MATERIALIZE_GRADS = map(sys.intern, ("to_save", "materialize_grads"))
_has_attributes = all(hasattr(torch._C._FunctionBase, name) for name in (_TO_SAVE, _MATERIALIZE_GRADS))


def _get_handle(function):
    """The address of what a function of `make` computes with, None where it is another one."""
    return getattr(function, "__self__", None) if _has_attributes else None


def make_forward(function, numbers, call_count, kept_count, return_lse, other):
    """The forward of a function of autograd around a function of `make`, see tessera_torch_apply_forward; `other` where there is
    none."""
    handle = _get_handle(function)
    if handle is None:
        return other
    objects = numbers, _TO_SAVE, _MATERIALIZE_GRADS, False, other
    of_numbers, *addresses = map(id, objects)
    options = _ForwardOptions(handle, of_numbers, call_count, kept_count, bool(return_lse), *addresses)
    address = _functions().tessera_torch_forward_create(options)
    if not address:
        return other
    _kept.append(objects)
    return _exchange.make_function("tessera_torch_apply_forward", _functions().tessera_torch_apply_forward, address)


def make_backward(function, numbers, input_count, learned=()):
    """The backward of a function of autograd around a function of `make`, see tessera_torch_apply_backward, which gives None where
    the op is to be called. `learned` are the inputs that have gradients beside q, k and v."""
    handle = _get_handle(function)
    if handle is None:
        return _do_nothing
    places = (c_int32 * len(learned))(*learned)
    options = _BackwardOptions(handle, id(numbers), input_count, places, len(learned))
    address = _functions().tessera_torch_backward_create(options)
    if not address:
        return _do_nothing
    _kept.append(numbers)
    return _exchange.make_function("tessera_torch_apply_backward", _functions().tessera_torch_apply_backward, address)


def _do_nothing(*_):
    return None


_kept = []

# Those of `make` for named variants, by variant: of the output, and of output and LSE. Looking into a class of dictionaries that
# knows what to do with other keys takes four times as long.
functions, functions_with_lse = {}, {}
#: What the arguments of the ops of named variants are, from the variant on: it, the scale, the soft cap, left and right.
NUMBERS = "-sfii"


def add_function(variant, return_lse):
    """The function of a variant, which gives None where there is none."""
    what = _recipes.OUTPUT_AND_LSE if return_lse else _recipes.OUTPUT
    made = make(_recipes.write(what, _recipes.NAMED, variant), 4, NUMBERS) if _op.has_native else None
    return (functions_with_lse if return_lse else functions).setdefault(variant, made or _do_nothing)


def is_watched():
    """Whether anything sees the ops that this thread calls, but by tensors of its own: those, the functions do not take."""
    return (
        _is_dynamo_compiling()
        or _count_dispatch_modes()
        or _is_function_mode_enabled()
        or _profiler._is_profiler_enabled
        or _is_tracing()
    )


def call_op(q, k, v, alibi, arguments, return_lse):
    """Output, and LSE where it is asked for. `arguments` are those of the op from the variant on, as far as they are given."""
    op = _op.forward if return_lse else _op.inference
    # The op itself refuses tensors that no kernel takes.
    return _native.call(op, q, k, v, alibi, q, k, v, alibi, *arguments)


def attend(q, k, v, alibi, arguments, return_lse):
    """The same, wherever it is."""
    if not is_watched():
        try:
            function = (functions_with_lse if return_lse else functions)[arguments[0]]
        except KeyError:
            function = add_function(arguments[0], return_lse)
        results = function(q, k, v, alibi, arguments)
        if results is not None:
            return results
    return call_op(q, k, v, alibi, arguments, return_lse)
