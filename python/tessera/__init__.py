"""Tessera: attention kernels written at tile level, compiled to Hopper machine code.

    import tessera, torch
    attention = tessera.compile("kernels/attention_fwd.tile", D=128, CAUSAL=True)
    attention(q, k, v, o, lse, scale=0.088)

`compile` needs libtessera, `load` and launching only the small libtessera_runtime. The libraries are
found by the environment variable TESSERA_LIBRARY (a file or a directory), beside this package, or in
the build tree around it.
"""

from . import masks
from ._compiler._choices import resolve
from ._compiler._compile import compile
from ._compiler._explain import explain
from ._compiler._program import Program
from ._compiler._shipped import kernel
from ._compiler._tune import Database, Entry, TuneError, tune
from ._core._compare import Comparison, MismatchError
from ._core._errors import BundleError, CompileError, DeviceError, Diagnostic, DriverError, Error, LibraryError
from ._core._kernel import Bundle, Choice, Kernel, load
from ._functions._math import (
    assert_, cos, exp, exp2, fast_tanh, floor, log, log2, maximum, minimum, print, rsqrt, sin, sqrt, tanh,
    where,
)  # fmt: skip
from ._functions._trace import TraceError
from ._functions._tracing import length
from ._functions._variant import Mask, Variant

__all__ = [
    "Bundle",
    "BundleError",
    "Choice",
    "Comparison",
    "CompileError",
    "Database",
    "DeviceError",
    "Diagnostic",
    "DriverError",
    "Entry",
    "Error",
    "Kernel",
    "LibraryError",
    "Mask",
    "MismatchError",
    "Program",
    "TraceError",
    "TuneError",
    "Variant",
    "assert_",
    "compile",
    "cos",
    "exp",
    "exp2",
    "explain",
    "fast_tanh",
    "floor",
    "kernel",
    "length",
    "load",
    "log",
    "log2",
    "masks",
    "maximum",
    "minimum",
    "print",
    "resolve",
    "rsqrt",
    "sin",
    "sqrt",
    "tanh",
    "tune",
    "where",
]


#: That of the wheel (pyproject.toml).
__version__ = "0.1.0"


def load_ipython_extension(shell: object) -> None:
    """What `%load_ext tessera` calls: cells that begin with `%%tile` are compiled then."""
    from ._compiler import _notebook

    _notebook.load(shell)
