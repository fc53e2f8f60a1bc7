"""The kernels of the ops in the library (tessera-c/Torch.h), and the errors that they cannot raise themselves."""

import functools
import os
from ctypes import c_char_p, c_int, c_uint64

import torch

from .. import _choice, _library, _variants


def _find(variant, element_type, sizes, lse):
    kernel, extras, is_final = _variants.find_kernel(variant, element_type, sizes, lse)
    return kernel, None, extras, is_final


_resolve = _choice.make_resolver(_find)


@functools.lru_cache(maxsize=None)
def _functions():
    signatures = {
        "tessera_torch_register": (c_int, c_char_p, c_char_p, c_char_p, c_char_p, c_uint64, _choice.Resolver),
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


def find_cause(error, q, k, v, alibi):
    """What the RuntimeError of an op stands for: its kernels in the library raise no other, whatever is wrong."""
    from . import _op  # which imports this module

    problem = _op.find_problem(q, k, v, alibi)
    if problem is None and q.device.type != "cpu":
        problem = _op.find_device_problem("q", q.device)
    if problem is not None:
        return problem
    text = str(error).partition("\n")[0]
    cause = _choice.take_failure()
    status = _functions().tessera_torch_take_status()
    if cause is not None and text.startswith("there is no kernel for"):
        return cause
    return _library.EXCEPTIONS[status](text) if status else error


def reset():
    """Forgets the kernels that were chosen."""
    _functions().tessera_torch_reset()
