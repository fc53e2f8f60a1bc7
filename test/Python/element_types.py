# RUN: %python %s %source
"""Python's table of element types is that of lib/Support/ElementTypes.h: the same types in the same order, with the same numbers."""

import pathlib
import re
import sys

from tessera._core import _library

ROW = re.compile(r'^    \{"(\w+)", (TESSERA_TYPE_\w+), (\d+), \d+, (\d+), "([^"]*)", [\w:]+\},', re.M)


def list_types(source):
    """The rows of the C++ table: name, code, bytes, code in DLPack, type string."""
    codes = dict(re.findall(r"(TESSERA_TYPE_\w+) = (\d+)", (source / "include/tessera-c/Runtime.h").read_text()))
    table = (source / "lib/Support/ElementTypes.h").read_text()
    return [(name, int(codes[code]), int(size), int(dlpack), typestr) for name, code, size, dlpack, typestr in ROW.findall(table)]


def main(source):
    types = list_types(source)
    own = [(element.name, element.code, element.size, element.dlpack, element.typestr) for element in _library.ELEMENTS]
    assert types and types == own, (types, own)


main(pathlib.Path(sys.argv[1]))
