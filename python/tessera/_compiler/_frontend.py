"""The library of the compiler: its structures, what it reports, and what it has said that is kept on disk."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import operator
import os
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p

from .._core import _cache, _library
from .._core._errors import CompileError, Diagnostic

_STATUSES = {2: "usage", 3: "source", 4: "toolchain"}
_SEVERITIES = ("error", "warning", "remark", "note")
_KINDS = ("", "registers", "shared memory", "unsupported")


class _Define(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class _Extent(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_int64)]


class _Import(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("text", c_char_p), ("length", c_size_t)]


class _Options(ctypes.Structure):
    """tessera_compile_options"""

    _fields_ = [
        ("size", c_size_t),
        ("defines", POINTER(_Define)),
        ("define_count", c_size_t),
        ("schedule", c_char_p),
        ("kernel", c_char_p),
        ("emit", c_int32),
        ("bundle_ptx", c_int32),
        ("ptxas", c_char_p),
        ("ptxas_arguments", POINTER(c_char_p)),
        ("ptxas_argument_count", c_size_t),
        ("remarks", c_int32),
        ("skip_verify", c_int32),
        ("timing", c_int32),
        ("skip_database", c_int32),
        ("dump_dir", c_char_p),
        ("reproducer", c_char_p),
        ("database", c_char_p),
        ("gpu", c_char_p),
        ("shape_class", c_char_p),
        ("extents", POINTER(_Extent)),
        ("extent_count", c_size_t),
        ("import_paths", POINTER(c_char_p)),
        ("import_path_count", c_size_t),
        ("imports", POINTER(_Import)),
        ("import_count", c_size_t),
        ("instrument", c_char_p),
        ("alternatives", c_int32),
        ("rules", c_char_p),
    ]


class _Diagnostic(ctypes.Structure):
    """tessera_diagnostic"""


_Diagnostic._fields_ = [
    ("severity", c_int32),
    ("line", c_uint32),
    ("column", c_uint32),
    ("kind", c_uint32),
    ("file", c_char_p),
    ("message", c_char_p),
    ("notes", POINTER(_Diagnostic)),
    ("note_count", c_size_t),
]
_Handler = ctypes.CFUNCTYPE(None, POINTER(_Diagnostic), c_void_p)


def _find_compiler():
    return _library.find("libtessera.so")


@functools.lru_cache(maxsize=None)
def _compiler():
    library = _library.open_library(_find_compiler())
    signatures = {
        "tessera_compile": (
            c_int, c_char_p, c_size_t, c_char_p, POINTER(_Options), _Handler, c_void_p, POINTER(c_void_p),
        ),
        "tessera_compilation_output": (c_void_p, c_void_p, POINTER(c_size_t)),
        "tessera_compilation_destroy": (None, c_void_p),
        "tessera_source_resolve": (
            c_int, c_char_p, c_size_t, c_char_p, POINTER(_Options), _Handler, c_void_p, POINTER(c_void_p),
        ),
        "tessera_source_describe_functions": (
            c_int, c_char_p, c_size_t, c_char_p, POINTER(_Options), _Handler, c_void_p, POINTER(c_void_p),
        ),
        "tessera_resolution_text": (c_char_p, c_void_p),
        "tessera_resolution_destroy": (None, c_void_p),
        "tessera_find_ptxas": (c_int, c_char_p, _Handler, c_void_p, POINTER(c_void_p)),
        "tessera_ptxas_path": (c_char_p, c_void_p),
        "tessera_ptxas_version": (c_char_p, c_void_p),
        "tessera_ptxas_destroy": (None, c_void_p),
    }  # fmt: skip
    return _library.declare(library, signatures)


@functools.lru_cache(maxsize=None)
def _compiler_identity():
    """Changes with every build of the library, and not with the place where it lies. The library is not opened for it: LLVM is
    in it, and a process that finds its kernels on disk has no use for that."""
    return _library.build_id(_find_compiler())


def may_compile():
    """Whether what is nowhere may be compiled."""
    return os.environ.get("TESSERA_JIT") != "0"


def _make_known_key(*identity):
    return _make_key([*identity, _compiler_identity()], b"")


def read_known(*identity):
    """What `keep_known` keeps under an identity, as text; None where there is nothing."""
    key = _make_known_key(*identity)
    for place in (*_cache.shipped_directories(), _cache.directory()):
        if place and (found := _cache.read(place, key)) is not None:
            return found.decode()
    return None


def keep_known(text, *identity):
    """Keeps on disk what the compiler has said, so that another process need not ask it."""
    # A process that may not compile keeps nothing.
    if may_compile() and (place := _cache.directory()):
        _cache.write(place, _make_known_key(*identity), text.encode(), warns=False)


def _to_text(value):
    """A parameter's or a schedule field's value as on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _library.TORCH_TYPES.get(str(value), str(value))


def _check_extent(name, extent):
    extent = operator.index(extent)
    if not -(2**63) <= extent < 2**63:
        raise ValueError(f"the extent of '{name}' is {extent}, which does not fit in 64 bits")
    return extent


def _encode(text):
    """A string as C takes it."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is a {type(text).__name__}; it is a text")
    if "\0" in text:
        raise ValueError(f"{text!r} contains a null character")
    return text.encode()


def _read_source(path_or_source):
    """(text, name for diagnostics) of a text, a file, or where there is none a kernel that ships, as the commands take it."""
    if isinstance(path_or_source, str) and "\n" in path_or_source:
        return path_or_source.encode(), "<source>"
    if not isinstance(path_or_source, (str, bytes, os.PathLike)):
        raise TypeError(f"the source is a {type(path_or_source).__name__}; it is a text, a path, or the name of a kernel that ships")
    path = os.fspath(path_or_source)
    try:
        file = open(path, "rb")
    except FileNotFoundError as error:
        try:
            path = _library.find_source(os.fsdecode(path).removesuffix(".tile"))
        except ValueError as problem:
            what = str(problem).partition("; there are")[0]
            raise FileNotFoundError(error.errno, f"{error.strerror}, and {what}", path) from None
        file = open(path, "rb")
    with file:
        return file.read(), path


def _convert(diagnostic):
    return Diagnostic(
        _SEVERITIES[diagnostic.severity],
        (diagnostic.file or b"").decode(errors="replace"),
        diagnostic.line,
        diagnostic.column,
        (diagnostic.message or b"").decode(errors="replace"),
        tuple(_convert(diagnostic.notes[i]) for i in range(diagnostic.note_count)),
        _KINDS[diagnostic.kind],
    )


class _Collector:
    """Keeps what the compiler reports during a call."""

    def __init__(self):
        self.diagnostics = []
        self.handler = _Handler(lambda diagnostic, _: self.diagnostics.append(_convert(diagnostic.contents)))

    def take_shown(self):
        """What a run of the interpreter shows, as text, which is no report of the compiler."""
        shown = [entry for entry in self.diagnostics if entry.severity == "remark"]
        self.diagnostics = [entry for entry in self.diagnostics if entry.severity != "remark"]
        return [f"{entry.file}:{entry.line}: {entry.message}" for entry in shown]

    def check(self, status, file_name):
        """Raises the CompileError of a tessera_compile_status other than success."""
        if not status:
            return
        shown = [str(entry) for entry in self.diagnostics if entry.severity != "remark"]
        text = "\n".join(shown) or f"{file_name}: the compiler gave no reason"
        raise CompileError(text, _STATUSES.get(status, "unknown"), self.diagnostics)


def _make_defines(parameters):
    """An array of _Define for values as text."""
    defines = [(_encode(name), _encode(value)) for name, value in parameters.items()]
    return (_Define * len(defines))(*defines)


def _make_extents(shape):
    """An array of _Extent."""
    extents = [(_encode(name), _check_extent(name, extent)) for name, extent in shape.items()]
    return (_Extent * len(extents))(*extents)


def _make_key(identity, whole):
    return hashlib.sha256(json.dumps(identity).encode() + b"\0" + whole).hexdigest()


def _find_near(name, function):
    """A hint at an argument of the function, or at a parameter of few letters, that is written like `name`."""
    import inspect

    if len(name) < 3:
        return f"; did you mean '{name.upper()}'?"
    return _library.suggest_name(name, inspect.signature(function).parameters if function else ())


def to_texts(parameters, function=None):
    """The values of parameters as on the command line, in the order of their names; they were given to a function."""
    for name in parameters:
        # Names of parameters have no lower-case letters.
        if name.upper() != name:
            raise TypeError(f"there is no option '{name}', and parameters of sources have names in upper case{_find_near(name, function)}")
    return {name: _to_text(value) for name, value in sorted(parameters.items())}
