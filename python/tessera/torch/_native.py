"""The kernels of the ops in the library (tessera-c/Torch.h), and the errors that they cannot raise themselves."""

import ctypes
import functools
import os
from ctypes import c_char_p, c_int, c_uint64

import torch

from .._attention import _recipes
from .._compiler import _calls
from .._core import _library
from . import _kernels, _problems

_Determinism = ctypes.CFUNCTYPE(c_int)
_resolve = _calls.make_resolver(lambda text, tensors: _recipes.make(_kernels.find_kind(False), text, tensors), 2)


@_Determinism
def _find_determinism():
    """tessera_torch_determinism_mode"""
    return torch.get_deterministic_debug_mode()


@functools.lru_cache(maxsize=None)
def _functions():
    signatures = {
        "tessera_torch_register": (
            c_int, c_char_p, c_char_p, c_char_p, c_char_p, c_uint64, _calls.Resolver, _Determinism,
        ),
        "tessera_torch_reset": (None,),
        "tessera_torch_take_status": (c_int,),
    }  # fmt: skip
    return _library.declare(_library.runtime(), signatures)


def register(name_space, key):
    """Registers the kernels of the ops of a namespace; False where PyTorch is too old."""
    directory = os.path.join(os.path.dirname(torch.__file__), "lib")
    cuda = os.path.join(directory, "libtorch_cuda.so") if key == "CUDA" else None
    major, minor = map(int, torch.__version__.split(".")[:2])
    return bool(
        _functions().tessera_torch_register(
            name_space.encode(), key.encode(), os.path.join(directory, "libtorch_cpu.so").encode(),
            cuda and cuda.encode(), major << 56 | minor << 48, _resolve, _find_determinism,
        )
    )  # fmt: skip


def find_cause(error, q, k, v, alibi):
    """What the RuntimeError of an op stands for: its kernels in the library raise no other, whatever is wrong."""
    problem = _problems.find_problem(q, k, v, alibi)
    if problem is None and q.device.type != "cpu":
        problem = _problems.find_device_problem("q", q.device)
    if problem is not None:
        return problem
    text = str(error).partition("\n")[0]
    cause = _calls.take_failure()
    status = _functions().tessera_torch_take_status()
    if cause is not None and text.startswith("there is no kernel for"):
        return cause
    return _library.EXCEPTIONS[status](text) if status else error


def call(op, q, k, v, alibi, *arguments, **named):
    """Calls an op of these tensors with its arguments."""
    try:
        return op(*arguments, **named)
    except RuntimeError as error:
        raise find_cause(error, q, k, v, alibi) from None


def reset():
    """Forgets what was prepared."""
    _functions().tessera_torch_reset()
