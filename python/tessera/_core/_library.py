"""Finds the shared libraries and declares the launch half of the C interface (tessera-c/Runtime.h)."""

import collections
import ctypes
import functools
import os
import struct
from ctypes import c_char_p, c_double, c_int, c_int32, c_int64, c_float, c_size_t, c_ssize_t, c_uint32, c_uint64, c_void_p

from ._errors import BundleError, DeviceError, DriverError, LibraryError
from ._types import TYPES

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class ElementType(collections.namedtuple("ElementType", ("name", "code", "scalar", "size", "dlpack", "typestr", "torch"))):
    """A row of `_types.TYPES`."""

    __slots__ = ()

    @property
    def is_float(self):
        return not self.name.startswith("i")

    @property
    def c_type(self):
        """What a number is for ctypes."""
        return {4: c_float, 8: c_double}[self.size] if self.is_float else {4: c_int32, 8: c_int64}[self.size]


_ALL = tuple(ElementType(*row) for row in TYPES)
#: What views have.
ELEMENTS = tuple(element for element in _ALL if element.code)
#: What is passed by value, by name.
SCALARS = {element.name: element for element in _ALL if element.scalar}
#: Element types have a tessera_type below.
FIRST_SCALAR = min(element.scalar for element in SCALARS.values())
#: tessera_type by name
ELEMENT_TYPES = {element.name: element.code for element in ELEMENTS}
#: Those of queries, keys and values, by their names in torch and JAX.
QUERY_TYPES = {element.torch: element.name for element in ELEMENTS if element.size == 2}
#: The name of what torch calls "torch.float16" and so on.
TORCH_TYPES = {f"torch.{element.torch}": element.name for element in ELEMENTS}
#: By numpy's type string.
TYPESTRS = {element.typestr: element for element in ELEMENTS if element.typestr}


def list_names(names):
    """'a, b and c'"""
    *first, last = names
    return f"{', '.join(first)} and {last}"


#: What messages say that kernels take.
TORCH_NAMES = list_names(element.torch for element in ELEMENTS)
CURRENT_DEVICE = -1


class Scalar(ctypes.Union):
    _fields_ = [(name, element.c_type) for name, element in SCALARS.items()]


class Argument(ctypes.Structure):
    """tessera_argument"""

    _fields_ = [
        ("pointer", c_uint64),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("type", c_int32),
        ("rank", c_int32),
        ("scalar", Scalar),
    ]


def _directories():
    yield _PACKAGE
    yield os.path.join(_PACKAGE, "lib")
    yield os.path.normpath(os.path.join(_PACKAGE, "..", "..", "build", "lib"))
    yield os.path.normpath(os.path.join(_PACKAGE, "..", "..", "lib"))  # beside an installed package


def find(*names):
    """The path of the first of the libraries `names` that exists; LibraryError when none does."""
    override = os.environ.get("TESSERA_LIBRARY")
    directories = list(_directories())
    if override:
        if not os.path.exists(override):
            raise LibraryError(f"TESSERA_LIBRARY names '{override}', which does not exist")
        if os.path.basename(override) in names:
            return os.path.abspath(override)
        directories = [override if os.path.isdir(override) else os.path.dirname(override)]
    for name in names:
        for directory in directories:
            path = os.path.join(directory, name)
            if os.path.exists(path):
                return os.path.abspath(path)
    raise LibraryError(
        f"cannot find {' or '.join(names)} in {', '.join(directories)}; build it (./dev build) or set "
        "TESSERA_LIBRARY to the library or its directory"
    )


def build_id(path):
    """What the linker wrote into an ELF file to tell its contents (NT_GNU_BUILD_ID), as hexadecimal digits."""
    with open(path, "rb") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise LibraryError(f"'{path}' is no library of a little-endian 64-bit machine")
        table, entry_size, count = struct.unpack_from("<Q14xHH", header, 32)
        file.seek(table)
        entries = file.read(entry_size * count)
        for start in range(0, len(entries), entry_size):
            kind, offset, size = struct.unpack_from("<I4xQ16xQ", entries, start)
            file.seek(offset)
            found = _find_build_id(file.read(size)) if kind == 4 else None  # PT_NOTE
            if found:
                return found
    raise LibraryError(f"'{path}' was linked without --build-id")


def _find_build_id(notes):
    """The build id among the notes of a segment, None when there is none."""
    offset = 0
    while offset + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<3I", notes, offset)
        start = offset + 12 + (name_size + 3) // 4 * 4
        if kind == 3 and notes[offset + 12 : offset + 16] == b"GNU\0":
            return notes[start : start + size].hex()
        offset = start + (size + 3) // 4 * 4
    return None


def suggest_name(name, names):
    """"; did you mean 'causal'?", where one of the names is written like this one."""
    import difflib  # For messages alone.

    return "".join(f"; did you mean '{known}'?" for known in difflib.get_close_matches(name, names, 1))


def _source_directories():
    yield os.path.join(_PACKAGE, "share", "tessera", "kernels")
    yield os.path.normpath(os.path.join(_PACKAGE, "..", "..", "kernels"))


def find_source(name):
    """The path of a source that ships with the package; ValueError when there is none of this name, with its folder."""
    names = set()
    for directory in _source_directories():
        path = os.path.join(directory, name + ".tile")
        if all(part.isidentifier() for part in name.split("/")) and os.path.exists(path):
            return path
        if os.path.isdir(directory):
            names.update(file[: -len(".tile")] for file in os.listdir(directory) if file.endswith(".tile"))
    near, known = suggest_name(name, names), ", ".join(sorted(names)) or "none"
    raise ValueError(f"no kernel '{name}' ships with this package{near}; there are {known}")


def open_library(path):
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise LibraryError(f"cannot load '{path}': {error}") from error


def declare(library, signatures):
    """Gives functions of a library their (result, *arguments); LibraryError where it has not all of them."""
    for name, (result, *arguments) in signatures.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise LibraryError(f"'{library._name}' has no {name}: it is of another version than this package") from None
        function.restype = result
        function.argtypes = arguments
    return library


@functools.lru_cache(maxsize=None)
def runtime():
    """The library that launches: libtessera_runtime, or libtessera when that is all there is."""
    library = open_library(find("libtessera_runtime.so", "libtessera.so"))
    signatures = {
        "tessera_last_error": (c_char_p,),
        "tessera_bundle_load": (c_int, c_char_p, c_size_t, ctypes.POINTER(c_void_p)),
        "tessera_bundle_destroy": (None, c_void_p),
        "tessera_bundle_kernel_count": (c_size_t, c_void_p),
        "tessera_bundle_kernel_at": (c_int, c_void_p, c_size_t, ctypes.POINTER(c_void_p)),
        "tessera_kernel_description": (c_char_p, c_void_p),
        "tessera_kernel_alternative": (c_int, c_void_p, c_size_t, ctypes.POINTER(c_void_p)),
        "tessera_kernel_choice": (
            c_int, c_void_p, ctypes.POINTER(c_int64), c_size_t, ctypes.POINTER(c_size_t), ctypes.POINTER(c_double)),
        "tessera_kernel_prepare": (c_int, c_void_p, c_int),
        "tessera_kernel_capacity": (c_int, c_void_p, c_int, ctypes.POINTER(c_uint32)),
        "tessera_kernel_read_timeline": (
            c_int, c_void_p, c_int, c_void_p, c_void_p, ctypes.POINTER(c_size_t)),
        "tessera_kernel_launch": (c_int, c_void_p, c_int, c_void_p, c_void_p, c_size_t),
        "tessera_kernel_workspace_bytes": (c_int, c_void_p, c_void_p, c_size_t, ctypes.POINTER(c_size_t)),
        "tessera_kernel_launch_with_workspace": (
            c_int, c_void_p, c_int, c_void_p, c_void_p, c_size_t, c_uint64, c_size_t),
        "tessera_python_launch": (c_void_p, c_void_p, c_void_p, c_ssize_t),
    }
    return declare(library, signatures)


#: By tessera_runtime_status.
EXCEPTIONS = {1: BundleError, 2: ValueError, 3: TypeError, 4: DeviceError, 5: DriverError}


def check(status):
    """Raises the exception of a tessera_runtime_status other than success."""
    if status:
        text = runtime().tessera_last_error().decode(errors="replace")
        raise EXCEPTIONS[status](text)
