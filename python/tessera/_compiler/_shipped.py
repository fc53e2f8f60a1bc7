"""Kernels that ship with the package, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from .._core import _library, _typing
from .._core._errors import Diagnostic
from .._core._kernel import Kernel
from . import _compile


def kernel(
    name: str,
    kernel: str | None = None,
    schedule: str | dict[str, _typing.Any] | None = None,
    *,
    image: _typing.Literal["cubin", "ptx"] = "cubin",
    ptxas: str | os.PathLike[str] | None = None,
    cache: bool = True,
    on_diagnostic: Callable[[Diagnostic], object] | None = None,
    database: str | os.PathLike[str] | _typing.Literal[False] | None = None,
    gpu: str | None = None,
    shape: Mapping[str, int] | None = None,
    shape_class: str | None = None,
    instrument: str | None = None,
    alternatives: bool | None = None,
    rules: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    **parameters: object,
) -> Kernel:
    """Compiles a kernel that ships with the package, by name: kernel("attention_fwd", D=64, CAUSAL=True).

    Options and exceptions are those of `compile`; ValueError for a name that does not ship.
    """
    return _compile.compile(
        _library.find_source(name), kernel, schedule, image=image, ptxas=ptxas, cache=cache, on_diagnostic=on_diagnostic,
        database=database, gpu=gpu, shape=shape, shape_class=shape_class, instrument=instrument, alternatives=alternatives,
        rules=rules, **parameters,
    )  # fmt: skip
