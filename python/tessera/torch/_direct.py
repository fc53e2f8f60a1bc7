"""Attention past PyTorch's dispatcher where nobody sees ops: tessera_torch_attention of tessera-c/Torch.h."""

import ctypes
import os
import sys
from ctypes import POINTER, c_char_p, c_int32, c_void_p

import torch

from .. import _exchange, _library
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
        ("framework", _exchange.Framework), ("make_empty", c_void_p), ("element_types", c_void_p * 3),
        ("get_current_device", c_void_p), ("device_type", c_int32), ("variant", c_char_p),
    ]  # fmt: skip


class _ForwardOptions(ctypes.Structure):
    """tessera_torch_forward_options"""

    _fields_ = [
        ("direct", c_void_p), ("given", c_void_p), ("returns_lse", c_int32), ("to_save", c_void_p),
        ("materialize_grads", c_void_p), ("never", c_void_p), ("other", c_void_p),
    ]  # fmt: skip


def _find_current_device():
    """The address of PyTorch's function for it, None where there is none."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
    return ctypes.cast(getattr(library, "aoti_torch_get_current_device_index", None), c_void_p).value


def make(variant, device_type=_CUDA):
    """A function for calls of a variant, see tessera_torch_attention; None where PyTorch is too old."""
    framework = _exchange.create_framework(torch)
    place = "cuda" if device_type == _CUDA else "cpu"
    make_empty = getattr(torch._C._dynamo.guards, f"_empty_strided_{place}", None)
    current_device = _find_current_device() if device_type == _CUDA else None
    if framework is None or make_empty is None or (device_type == _CUDA and current_device is None):
        return None
    # All of these live as long as the process, as the functions do.
    types = (c_void_p * 3)(*map(id, (torch.float16, torch.bfloat16, torch.float32)))
    _kept.append(make_empty)
    options = _Options(framework, id(make_empty), types, current_device, device_type, variant.encode())
    signatures = {
        "tessera_torch_direct_create": (c_void_p, POINTER(_Options)),
        "tessera_torch_attention": (c_void_p, c_void_p, c_void_p, ctypes.c_ssize_t),
    }
    library = _library.declare(_library.runtime(), signatures)
    handle = library.tessera_torch_direct_create(options)
    return _exchange.make_function("tessera_torch_attention", library.tessera_torch_attention, handle) if handle else None


# What contexts of autograd keep is in these attributes, which their methods write.
_TO_SAVE, _MATERIALIZE_GRADS = map(sys.intern, ("to_save", "materialize_grads"))
_has_attributes = all(hasattr(torch._C._FunctionBase, name) for name in (_TO_SAVE, _MATERIALIZE_GRADS))


def make_forward(arguments, return_lse, other):
    """The forward of a function of autograd for calls with these arguments of the op, see tessera_torch_apply_forward; `other`
    where there is none."""
    # A function of `make` is called with the address of what it computes with.
    variant = arguments[0]
    handle = getattr(functions.get(variant) or add_function(variant), "__self__", None)
    if handle is None or not _has_attributes:
        return other
    signatures = {
        "tessera_torch_forward_create": (c_void_p, POINTER(_ForwardOptions)),
        "tessera_torch_apply_forward": (c_void_p, c_void_p, c_void_p, ctypes.c_ssize_t),
    }
    library = _library.runtime()
    # With the GIL, as it reads objects of Python.
    library = _library.declare(ctypes.PyDLL(library._name, handle=library._handle), signatures)
    objects = arguments, _TO_SAVE, _MATERIALIZE_GRADS, False, other
    given, to_save, materialize_grads, never, other_address = map(id, objects)
    options = _ForwardOptions(handle, given, bool(return_lse), to_save, materialize_grads, never, other_address)
    address = library.tessera_torch_forward_create(options)
    if not address:
        return other
    _kept.append(objects)
    return _exchange.make_function("tessera_torch_apply_forward", library.tessera_torch_apply_forward, address)


_kept = []


# Those of `make` by variant. Looking into a class of dictionaries that knows what to do with other keys takes four times as long.
functions = {}


def add_function(variant):
    """The function of a variant, which gives None where there is none."""
    return functions.setdefault(variant, (make(variant) if _op.has_native else None) or (lambda *_: None))


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
    try:
        # The op itself refuses tensors that no kernel takes.
        return op(q, k, v, alibi, *arguments)
    except RuntimeError as error:
        raise _native.find_cause(error, q, k, v, alibi) from None


def attend(q, k, v, alibi, arguments, return_lse):
    """The same, wherever it is."""
    if not is_watched():
        try:
            function = functions[arguments[0]]
        except KeyError:
            function = add_function(arguments[0])
        results = function(q, k, v, alibi, return_lse, arguments)
        if results is not None:
            return results
    return call_op(q, k, v, alibi, arguments, return_lse)
