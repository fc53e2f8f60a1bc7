"""The exceptions of the package, and the messages of the compiler that they hold.

Arguments that do not fit a kernel raise Python's own TypeError (kind or element type) or ValueError
(shape, strides, device, address).
"""

from __future__ import annotations

import collections


class Diagnostic(collections.namedtuple("Diagnostic", "severity file line column message notes kind", defaults=("",))):
    """A message of the compiler. `line` and `column` count from 1 and are 0 when unknown. `kind` is what an error says that a
    program which is right does not fit: "registers" or "shared memory", where smaller tiles may, or "unsupported", where no
    schedule can hold; "" otherwise."""

    __slots__ = ()
    severity: str
    file: str
    line: int
    column: int
    message: str
    notes: tuple[Diagnostic, ...]
    kind: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: " if self.file else ""
        return "\n".join([f"{place}{self.severity}: {self.message}", *map(str, self.notes)])


class Error(RuntimeError):
    """Base of the exceptions below."""


class LibraryError(Error):
    """A library of Tessera is missing or cannot be loaded."""


class BundleError(Error):
    """A bundle is damaged or cannot be read."""


class DeviceError(Error):
    """There is no usable driver or device, or the kernel was compiled for another one."""


class DriverError(Error):
    """A call of the CUDA driver failed."""


class CompileError(Error):
    """A compilation failed.

    `status` is "usage" (unknown parameter, schedule field or option), "source" or "toolchain" (ptxas is
    missing or refused its input); `diagnostics` lists what was reported, and `kind` is that of its first error.
    """

    def __init__(self, message: str, status: str, diagnostics: list[Diagnostic]) -> None:
        super().__init__(message)
        self.status = status
        self.diagnostics = diagnostics
        self.kind = next((entry.kind for entry in diagnostics if entry.severity == "error"), "")

    @property
    def lacks_room(self) -> bool:
        """Whether smaller tiles may fit."""
        return self.kind in ("registers", "shared memory")


def raise_problem(problem: Exception | None) -> None:
    """Raises what a check found, which is None where nothing is wrong."""
    if problem is not None:
        raise problem
