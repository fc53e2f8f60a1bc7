"""Measured schedules: `tune` measures them, a Database is a file of them (docs/tuning.md)."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping

from .._core import _library, _typing
from .._core._errors import Error
from . import _frontend


class TuneError(Error):
    """A measurement could not be made; the message is that of the command."""


class Entry(collections.namedtuple("Entry", "kernel gpu shape_class parameters schedule measured")):
    """What was measured of a kernel: on which GPU, for which class of shapes, with which parameters (texts by name), the schedule
    that won, and in `measured` its times (`ms`) beside those of the model's choice (`model_ms`) for each of `shapes`."""

    __slots__ = ()
    kernel: str
    gpu: str
    shape_class: str
    parameters: dict[str, str]
    schedule: str
    measured: dict[str, _typing.Any]

    def __str__(self) -> str:
        times = ", ".join(
            f"{', '.join(f'{name}={extent}' for name, extent in shape.items())}: {ms:.4g} ms (model {model:.4g} ms)"
            for shape, ms, model in zip(*(self.measured[name] for name in ("shapes", "ms", "model_ms")))
        )
        return f"{self.kernel} ({self.shape_class}, {self.gpu}): {times}: {self.schedule}"


class Database:
    """A file of measured schedules, which `compile(database=...)` takes. A file that is not there has no entries.

    database = tessera.tune("gemm", {"M": 8192, "N": 8192, "K": 8192}, database="mine.json", vary=("BM", "BN"))
    gemm = tessera.kernel("gemm", database=database)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<tessera.Database {self.path}: {len(self.entries)} entries>"

    @property
    def entries(self) -> list[Entry]:
        """The entries that the file has now."""
        try:
            with open(self.path, encoding="utf-8") as file:
                entries = json.load(file)["entries"]
        except FileNotFoundError:
            return []
        return [
            Entry(*(entry[name] for name in ("kernel", "gpu", "class", "parameters", "schedule", "measured"))) for entry in entries
        ]

    def find(self, kernel: str | None = None, shape_class: str | None = None, **parameters: object) -> list[Entry]:
        """The entries of a kernel, of a class of shapes, with these values of parameters, as far as they are given."""
        wanted = _frontend.to_texts(parameters)
        return [
            entry for entry in self.entries
            if kernel in (None, entry.kernel)
            and shape_class in (None, entry.shape_class)
            and all(entry.parameters.get(name) == value for name, value in wanted.items())
        ]  # fmt: skip


def _list_vary(vary):
    """--vary of names, or of values by name."""
    if isinstance(vary, Mapping):
        return [f"{name}={':'.join(_frontend.to_texts({name: value})[name] for value in values)}" for name, values in vary.items()]
    return [vary] if isinstance(vary, str) else list(vary)


def _list_arguments(path, shapes, options, parameters):
    """The arguments of the command."""
    arguments = [path]
    for shape in [shapes] if isinstance(shapes, Mapping) else shapes:
        arguments += ["--shape", ",".join(f"{name}={extent}" for name, extent in shape.items())]
    for name, value in _frontend.to_texts(parameters).items():
        arguments += ["-D", f"{name}={value}"]
    for item in _list_vary(options.pop("vary")):
        arguments += ["--vary", item]
    for option in ("set", "order"):
        for name, value in (options.pop(option) or {}).items():
            arguments += [f"--{option}", f"{name}={value}"]
    fields = options.pop("fields")
    if fields is not None:
        arguments += ["--fields", fields if isinstance(fields, str) else ",".join(fields)]
    for name, value in options.items():
        if value is not None:
            arguments += [f"--{name.replace('_', '-')}", os.fspath(value) if hasattr(value, "__fspath__") else str(value)]
    return arguments


def _run(arguments, on_line):
    """Runs the command in a process of its own: a kernel that faults makes the device useless for its process."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "tessera", "tune", *arguments]
    lines = []
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        for line in process.stdout:
            lines.append(line)
            if on_line:
                on_line(line.rstrip("\n"))
    if process.returncode:
        text = "".join(lines[-20:]).strip() or f"the command ended with {process.returncode}"
        raise ValueError(text) if process.returncode == 2 else TuneError(text)


def tune(
    path: str | os.PathLike[str],
    shapes: Mapping[str, int] | Iterable[Mapping[str, int]],
    *,
    database: str | os.PathLike[str],
    kernel: str | None = None,
    vary: str | Iterable[str] | Mapping[str, Iterable[object]] = (),
    schedule: str | None = None,
    fields: str | Iterable[str] | None = None,
    budget: int | None = None,
    scalars: Mapping[str, float] | None = None,
    orders: Mapping[str, str] | None = None,
    device: int | None = None,
    rounds: int | None = None,
    milliseconds: float | None = None,
    ptxas: str | os.PathLike[str] | None = None,
    on_line: Callable[[str], object] | None = print,
    **parameters: object,
) -> Database:
    """Measures the schedules of a kernel on the GPU, as `tessera tune` does, and keeps the fastest in a database.

    path:         a path, or the name of a kernel that ships, as "gemm".
    shapes:       extents of the dimensions, or several of them: the winner has the least times over all.
    database:     the file to change or make; `compile(database=...)` takes it.
    kernel:       the kernel or sequence, where the source has several.
    vary:         parameters whose values are tried too: names, or values by name, {"BM": (64, 128)}.
    schedule:     fields that are fixed, as "consumers=2".
    fields:       fields that are varied; all that are not fixed otherwise.
    budget:       the most candidates to compile and measure.
    scalars:      values of scalar arguments, and of all elements of views.
    orders:       storage orders of views, as {"q": "0,2,1,3"}.
    device:       the number of the GPU.
    rounds, milliseconds: turns of each contestant, and the timed work of one.
    on_line:      gets each line that the command prints, the table of all contestants at the end; None for none.
    parameters:   values of the source's parameters, as of `compile`.

    What another machine measures is compiled by `tessera tune --compile-only`. Raises ValueError (of arguments) and TuneError,
    with what the command says.
    """
    path = os.fspath(path)
    if not os.path.exists(path) and os.sep not in path:
        path = os.fspath(_library.find_source(path.removesuffix(".tile")))
    options = dict(
        vary=vary, set=scalars, order=orders, fields=fields, kernel=kernel, schedule=schedule, budget=budget, device=device,
        rounds=rounds, milliseconds=milliseconds, ptxas=ptxas, database=database,
    )  # fmt: skip
    _run(_list_arguments(path, shapes, options, parameters), on_line)
    return Database(database)
