"""How the library asks for the kernel of an op's call (tessera-c/Attention.h)."""

import ctypes
import threading
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_void_p

from . import _library

# tessera_attention_extras
_EXTRAS = {"softcap": 1, "alibi": 2, "left": 4, "right": 4}
_TYPES = {_library.ELEMENT_TYPES[name]: name for name in ("f16", "bf16")}


class Choice(ctypes.Structure):
    """tessera_attention_choice"""

    _fields_ = [
        ("kernel", c_void_p), ("program", c_void_p), ("extras", c_int32), ("is_final", c_int32), ("error", c_char_p),
    ]  # fmt: skip


Resolver = ctypes.CFUNCTYPE(c_int, c_char_p, c_int32, POINTER(c_int64), c_int32, POINTER(Choice))
_failure = threading.local()


def make_resolver(find):
    """A Resolver. `find(variant, element type, sizes, whether the LSE is stored)` gives (kernel or None, program or
    None, names of extra arguments, whether that is final); what it raises is kept for `take_failure`."""

    @Resolver
    def resolve(variant, code, sizes, lse, choice):
        try:
            if code not in _TYPES:
                raise TypeError("argument 'q' is neither float16 nor bfloat16; attention takes these")
            kernel, program, extras, is_final = find(variant.decode(), _TYPES[code], tuple(sizes[:7]), bool(lse))
        except Exception as error:
            _failure.error = error
            _failure.text = str(error).partition("\n")[0].encode()
            choice.contents.error = _failure.text
            return 1
        choice.contents.kernel = kernel and kernel._handle
        choice.contents.program = program and program._handle
        choice.contents.extras = sum({_EXTRAS[name] for name in extras})
        choice.contents.is_final = is_final
        return 0

    return resolve


def take_failure():
    """The exception of the thread's last failure, once; None without one."""
    error, _failure.error = getattr(_failure, "error", None), None
    return error
