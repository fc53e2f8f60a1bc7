"""The kernels of the ops in the library (tessera-c/Torch.h), and the errors that they cannot raise themselves."""

import ctypes
import functools
import os
import threading
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint64, c_void_p

import torch

from .. import _library, _variants
from ._types import TYPES

# tessera_torch_extras
_EXTRAS = {"softcap": 1, "alibi": 2, "left": 4, "right": 4}
_TYPES = {_library.ELEMENT_TYPES[name]: name for name in TYPES.values()}


class _Choice(ctypes.Structure):
    """tessera_torch_choice"""

    _fields_ = [("kernel", c_void_p), ("extras", c_int32), ("is_final", c_int32)]


_Resolver = ctypes.CFUNCTYPE(c_int, c_char_p, c_int32, POINTER(c_int64), c_int32, POINTER(_Choice))
_failure = threading.local()


@_Resolver
def _resolve(variant, code, sizes, lse, choice):
    try:
        if code not in _TYPES:
            raise TypeError("argument 'q' is neither float16 nor bfloat16; attention takes these")
        kernel, extras, is_final = _variants.find_kernel(variant.decode(), _TYPES[code], tuple(sizes[:7]), bool(lse))
    except Exception as error:
        _failure.error = error
        return 1
    choice.contents.kernel = kernel._handle
    choice.contents.extras = sum({_EXTRAS[name] for name in extras})
    choice.contents.is_final = is_final
    return 0


@functools.lru_cache(maxsize=None)
def _functions():
    signatures = {
        "tessera_torch_register": (c_int, c_char_p, c_char_p, c_char_p, c_char_p, c_uint64, _Resolver),
        "tessera_torch_reset": (None,),
        "tessera_torch_take_status": (c_int,),
    }
    return _library.declare(_library.runtime(), signatures)


def register(name_space, key):
    """Registers the kernels of the ops of a namespace; False where PyTorch is too old."""
    directory = os.path.join(os.path.dirname(torch.__file__), "lib")
    cuda = os.path.join(directory, "libtorch_cuda.so") if key == "CUDA" else None
    major, minor = map(int, torch.__version__.split(".")[:2])
    return bool(
        _functions().tessera_torch_register(
            name_space.encode(), key.encode(), os.path.join(directory, "libtorch_cpu.so").encode(),
            cuda and cuda.encode(), major << 56 | minor << 48, _resolve,
        )
    )  # fmt: skip


def call(op, *arguments, **named):
    """Calls an op. Its kernels in the library raise RuntimeError whatever is wrong; it becomes what it stands for."""
    if torch.compiler.is_compiling():
        return op(*arguments, **named)
    try:
        return op(*arguments, **named)
    except RuntimeError as error:
        raise _find_cause(error, arguments[:4]) from None


def _find_cause(error, tensors):
    from . import _op  # which imports this module

    problem = _op.find_problem(*tensors)
    if problem is not None:
        return problem
    text = str(error).partition("\n")[0]
    cause, _failure.error = getattr(_failure, "error", None), None
    status = _functions().tessera_torch_take_status()
    if cause is not None and text.startswith("there is no kernel for"):
        return cause
    return _library.EXCEPTIONS[status](text) if status else error


def reset():
    """Forgets the kernels that were chosen."""
    _functions().tessera_torch_reset()
