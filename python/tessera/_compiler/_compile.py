"""Compiling sources through libtessera (tessera-c/Compiler.h), with a cache in memory and on disk."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_size_t, c_void_p

from .._core import _cache, _imports, _log, _refusals, _typing, _wheel
from .._core._errors import BundleError, CompileError, Diagnostic, LibraryError
from .._core._kernel import Bundle, Kernel
from ._frontend import (
    _Collector, _Handler, _Options, _check_extent, _compiler, _compiler_identity, _encode, _make_defines,
    _make_extents, _make_key, _read_source, _to_text, keep_known, may_compile, read_known, to_texts,
)  # fmt: skip
from ._program import Program

# Bundles kept in memory; the oldest is dropped first.
_MAX_BUNDLES = 256


# What the search for ptxas depends on beside the file system (tessera_find_ptxas).
_SEARCH_VARIABLES = ("PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV")


def _find_ptxas(requested):
    """[path, version, size, time of change] of the ptxas that will run; None when there is none.

    Looking for it starts programs, so what was found is taken again until the environment or the file changes.
    """
    search = (requested, *map(os.environ.get, _SEARCH_VARIABLES))
    found = _ptxas_found.get(search)
    if found is None or _describe_file(found[0]) != found[2:]:
        found = _ptxas_found[search] = _search_ptxas(requested)
    return found


_ptxas_found = {}


def _describe_file(path):
    try:
        status = os.stat(path)
    except OSError:
        return [None, None]
    return [status.st_size, status.st_mtime_ns]


# Where the packages nvidia-cuda-nvcc and nvidia-cuda-nvcc-cu12 put it.
_PTXAS_PLACES = ("nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas")


def find_own_ptxas():
    """The path of the ptxas among the packages of the running interpreter; None when there is none. Whoever can write to the
    working directory, which modules may come from, does not say what is run here."""
    here = os.path.realpath(os.curdir)
    directories = [directory for directory in sys.path if os.path.isabs(directory) and os.path.realpath(directory) != here]
    paths = (os.path.join(directory, place) for directory in directories for place in _PTXAS_PLACES)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def _first_on_path():
    """What the search looks at first where nothing is requested, if it is a program."""
    paths = (os.path.join(directory, "ptxas") for directory in os.environ.get("PATH", "").split(os.pathsep) if directory)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def _search_ptxas(requested):
    requested = requested or find_own_ptxas()
    first = requested or _first_on_path()
    if first and (known := _read_known(os.path.abspath(first))):
        return known
    library, found = _compiler(), c_void_p()
    # What is wrong is reported by the compilation, unless it stops at an error of the source.
    if library.tessera_find_ptxas(requested and requested.encode(), _Handler(), None, ctypes.byref(found)):
        return None
    try:
        path = os.path.abspath(library.tessera_ptxas_path(found).decode())
        found_now = [path, library.tessera_ptxas_version(found).decode(), *_describe_file(path)]
    finally:
        library.tessera_ptxas_destroy(found)
    _keep_known(found_now)
    return found_now


# The version of a ptxas that another process has asked for it, which takes a start of that program.
def _read_known(path):
    """What `_find_ptxas` gives of a ptxas whose version is kept on disk, None where it is not."""
    description = _describe_file(path)
    version = read_known("ptxas", path, description)
    return version and [path, version, *description]


def _keep_known(found):
    path, version, *description = found
    keep_known(version, "ptxas", path, description)


def _read_database(path):
    """The text of a database, which decides what is compiled as much as its name."""
    if not path:
        return None
    with open(path) as file:
        return file.read()


def make_options(request, remarks):
    """The options of C for a request."""
    defines, extents = _make_defines(request["parameters"]), _make_extents(request["shape"])
    texts = ("schedule", "kernel", "ptxas", "database", "gpu", "shape_class", "instrument")
    return _Options(
        size=ctypes.sizeof(_Options),
        defines=defines,
        define_count=len(defines),
        bundle_ptx=request["image"] == "ptx",
        remarks=remarks,
        skip_database=request["database"] is False,
        extents=extents,
        extent_count=len(extents),
        alternatives=bool(request["alternatives"]),
        rules=_encode(os.pathsep.join(request["rules"])),
        **{name: _encode(request[name]) for name in texts if request[name]},
    )


def compile_bundle(source, file_name, request, on_diagnostic):
    """The text of a bundle; CompileError when there is none."""
    library = _compiler()
    options = make_options(request, remarks=on_diagnostic is not None)
    collector, compilation = _Collector(), c_void_p()
    status = library.tessera_compile(
        source, len(source), file_name.encode(), ctypes.byref(options), collector.handler, None,
        ctypes.byref(compilation),
    )  # fmt: skip
    for diagnostic in collector.diagnostics:
        if on_diagnostic:
            on_diagnostic(diagnostic)
        # The kernel is another than what was asked for, as rules say.
        if diagnostic.severity == "warning" and diagnostic.kind:
            warnings.warn(str(diagnostic).splitlines()[0], RuntimeWarning)
        elif diagnostic.severity == "warning" and not on_diagnostic:
            _log.warning("%s", diagnostic)
    collector.check(status, file_name)
    try:
        size = c_size_t()
        output = library.tessera_compilation_output(compilation, ctypes.byref(size))
        return ctypes.string_at(output, size.value)
    finally:
        library.tessera_compilation_destroy(compilation)


def pack(text):
    """The text of a bundle as it is kept and loaded: without spaces, and without the lists of what lies where in shared
    memory, most of the text, which no launch reads."""
    bundle = json.loads(text)
    for kernel in bundle["kernels"]:
        for name in ("shared_map", "barriers"):
            kernel.pop(name, None)
    return json.dumps(bundle, separators=(",", ":")).encode()


def _load(text):
    """The bundle or the refusal of a text that was kept, None when there is none that can be used."""
    try:
        return text and (_refusals.parse(text) or Bundle(text))
    except BundleError:
        return None


def _find_compiled(places, key):
    """(what was compiled or refused before, where it was), None and "" when nothing was."""
    if found := _bundles.get(key):
        return found, "memory"
    for place in places:
        if found := _load(_cache.read(place, key)):
            return found, place
    return None, ""


def make_own_key(whole, request):
    """The key of a bundle of the package itself, of a source with its imports: its compiler made it, with a ptxas that need
    not be here."""
    return _make_key(["own", request], whole)


def _find_class(path_or_source, request):
    return Program(path_or_source, request["kernel"], **request["parameters"]).shape_class(**request["shape"])


def _find_in_wheel(path_or_source, source, file_name, request):
    """The bundle of the package for a request, None when it has none."""
    # Another compiler may make something else.
    if "TESSERA_LIBRARY" in os.environ or not _wheel.read_index(_cache.WHEEL_BUNDLES):
        return None
    digest = _wheel.make_digest(_imports.read_whole(source, file_name, request["rules"]))
    entry = _wheel.find_entry(_cache.WHEEL_BUNDLES, digest, request, lambda: _find_class(path_or_source, request))
    if not entry:
        return None
    bundle = _bundles.get(entry["key"]) or _load(_wheel.read_bundle(_cache.WHEEL_BUNDLES, entry))
    if bundle:
        _log.debug("found %s in the package", _log.describe(file_name, request["parameters"]))
        _remember(entry["key"], bundle)
    return bundle


def _check_may_compile(file_name, parameters, places):
    if not may_compile():
        described = ", ".join(f"{name}={value}" for name, value in parameters.items())
        raise CompileError(
            f"{file_name}: it was not compiled with these parameters before{described and f' ({described})'}, by this compiler "
            f"and ptxas, into {' or '.join(places) or 'any directory'}, and TESSERA_JIT=0 forbids to compile; run the program once "
            "without it and with TESSERA_CACHE_DIR naming such a directory",
            "usage",
            [],
        )


_bundles = {}
_bundles_lock = threading.Lock()


def _remember(key, bundle):
    with _bundles_lock:
        while len(_bundles) >= _MAX_BUNDLES:
            del _bundles[next(iter(_bundles))]
        _bundles[key] = bundle


def compile(
    path_or_source: str | os.PathLike[str],
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
    """Compiles a `.tile` source to a Kernel.

    path_or_source: a path, the text of a source (a string with a line break), or where there is no such file the name of a kernel
                    that ships, as "gemm".
    kernel:         the name of a kernel or a sequence; not needed when the source has one kernel, or one sequence.
    schedule:       overrides of the schedule, as "consumers=2,overlap=1" or as a dict; of one kernel of a sequence as
                    "gradients:stages=2", after a semicolon where there are several.
    image:          "cubin", or "ptx" to leave assembling to the driver, without ptxas.
    ptxas:          path of ptxas; otherwise that of this interpreter's packages, or searched as the command line does.
    cache:          False compiles even when the cache has the result.
    on_diagnostic:  called with each Diagnostic, remarks included; remarks only come when it compiles.
    database:       a file of measured schedules to use instead of those that ship, False for none.
    gpu:            the GPU whose measurements count, as "NVIDIA H200"; the database's default otherwise.
    shape:          extents of the kernel's dimensions, {"SQ": 1024, ...}, all of them: they decide which measured
                    schedule is used and which rules hold.
    shape_class:    the class of shapes instead, as "many-short".
    instrument:     what launches record for `Kernel.read_timeline`, as "timeline,blocks=8".
    alternatives:   True for the kernel with each of the alternatives that the source declares, of which a call launches the
                    fastest for its extents (`Kernel.choice`); False for one kernel. Otherwise what the package has compiled,
                    which is with alternatives, and where it has nothing one kernel.
    rules:          a file of rules, or several, that choose free parameters and schedules before those of the source, as do
                    those that $TESSERA_RULES lists.
    parameters:     values of the source's parameters: D=128, CAUSAL=True, T="bf16" (or a torch type).

    Results are cached in memory and in $TESSERA_CACHE_DIR (empty: not on disk; default
    $XDG_CACHE_HOME/tessera or ~/.cache/tessera), by source, parameters, schedule, database, build of the compiler,
    and version and size of ptxas, wherever these two lie. So is what the source is refused for. What lies there and is
    not the whole of what was written for exactly this is compiled again and replaced. Where nothing can be kept, a
    RuntimeWarning says so, once.

    Directories in $TESSERA_BUNDLES are looked into first and never written. Kernels that come with the package are taken
    from it and need no ptxas. With TESSERA_JIT=0 what is nowhere is refused.

    Raises CompileError, ValueError (several kernels and none named, or an unknown image), OSError (the file
    cannot be read), LibraryError.
    """
    if image not in ("cubin", "ptx"):
        raise ValueError(f"image is {image!r}; it is 'cubin' or 'ptx'")
    source, file_name = _read_source(path_or_source)
    request = make_request(
        parameters, kernel=kernel, schedule=schedule, image=image, ptxas=ptxas, database=database, gpu=gpu, shape=shape,
        shape_class=shape_class, instrument=instrument, alternatives=alternatives, rules=rules,
    )  # fmt: skip
    bundle = _find_in_wheel(path_or_source, source, file_name, request) if cache else None
    if bundle is None:
        bundle = _find_or_compile(source, file_name, request, cache, on_diagnostic)
    return bundle.kernel(kernel)


def find_in_wheel(path, shape_class, parameters):
    """The kernel with its alternatives that the package has of a source, None when it has none."""
    source, file_name = _read_source(path)
    bundle = _find_in_wheel(path, source, file_name, make_request(parameters, shape_class=shape_class, alternatives=True))
    return bundle and bundle.kernel(None)


def make_request(
    parameters, kernel=None, schedule=None, image="cubin", ptxas=None, database=None, gpu=None, shape=None,
    shape_class=None, instrument=None, alternatives=None, rules=None,
):  # fmt: skip
    """What is asked for, as data for JSON."""
    if rules is None or isinstance(rules, (str, os.PathLike)):
        rules = [rules] if rules else []
    if isinstance(schedule, dict):
        schedule = ",".join(f"{name}={_to_text(value)}" for name, value in schedule.items())
    return {
        "kernel": kernel,
        "schedule": schedule,
        "image": image,
        "ptxas": ptxas and os.path.abspath(ptxas),
        "database": os.fspath(database) if database else database,
        "gpu": gpu,
        "shape": dict(sorted((name, _check_extent(name, extent)) for name, extent in (shape or {}).items())),
        "shape_class": shape_class,
        "instrument": instrument,
        "alternatives": None if alternatives is None else bool(alternatives),
        "rules": [os.path.abspath(path) for path in rules],
        "parameters": to_texts(parameters, compile),
    }


def _find_or_compile(source, file_name, request, cache, on_diagnostic):
    """The bundle of a request, from memory or the disk or compiled."""
    place = _cache.directory()
    assembler = _find_ptxas(request["ptxas"]) if request["image"] == "cubin" else None
    if assembler:
        request["ptxas"] = assembler[0]
    request["alternatives"] = bool(request["alternatives"])
    # Neither the places of the compiler and ptxas nor their times: an image of a disk keeps its cache.
    tools = {"ptxas": assembler and assembler[1:3], "compiler": _compiler_identity()}
    key = _make_compiled_key(source, file_name, request, tools)
    places = [*_cache.shipped_directories(), *([place] if place else [])]
    found, where = _find_compiled(places, key) if cache else (None, "")
    name, error = _log.describe(file_name, request["parameters"]), None
    if found is None:
        _check_may_compile(file_name, request["parameters"], places)
        start = time.perf_counter()
        try:
            text = pack(compile_bundle(source, file_name, request, on_diagnostic))
            found = Bundle(text)
        except CompileError as refused:
            found, error = _refusals.read(refused, file_name), refused
            if found is None:
                raise
            text = found.to_text()
        _log.info("compiled %s in %.1f s, key %.12s, kept in %s", name, time.perf_counter() - start, key, place or "memory")
        # The compiler has read files that may have become others meanwhile.
        if key == _make_compiled_key(source, file_name, request, tools):
            if place:
                _cache.write(place, key, text)
            _remember(key, found)
    else:
        _log.debug("found %s in %s, key %.12s", name, where, key)
        _remember(key, found)
    if isinstance(found, _refusals.Refusal):
        raise error or found.make_error(file_name, on_diagnostic)
    return found


def _make_compiled_key(source, file_name, request, tools):
    """The key of what is compiled now."""
    return _make_key([{**request, **tools}, _read_database(request["database"])], _imports.read_whole(source, file_name, request["rules"]))
