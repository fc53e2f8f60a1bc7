# RUN: %python %s %source
"""Python's tables of element types are those of lib/Support/ElementTypes.h: the same types in the same order, with the same
numbers, and names of PyTorch and JAX that mean them."""

import pathlib
import re
import sys

from tessera._core import _library
from tessera._functions import _captured

ROW = re.compile(r'^    \{"(\w+)", (TESSERA_TYPE_\w+), (\d+), \d+, (\d+), "([^"]*)", [\w:]+\},', re.M)
NAME = re.compile(r'"?(?:torch\.)?(float16|bfloat16)"?: "(\w+)"')


def list_types(source):
    """The rows of the C++ table: name, code, bytes, code in DLPack, type string."""
    codes = dict(re.findall(r"(TESSERA_TYPE_\w+) = (\d+)", (source / "include/tessera-c/Runtime.h").read_text()))
    table = (source / "lib/Support/ElementTypes.h").read_text()
    return [(name, int(codes[code]), int(size), int(dlpack), typestr) for name, code, size, dlpack, typestr in ROW.findall(table)]


def main(source):
    types = list_types(source)
    own = [(element.name, element.code, element.size, element.dlpack, element.typestr) for element in _library.ELEMENTS]
    assert types and types == own, (types, own)
    names = {element.torch: element.name for element in _library.ELEMENTS}
    captured = dict(_captured.ELEMENTS)
    assert captured.pop("bool") == "i1"
    assert captured == {torch: names[torch] for torch in captured}, captured
    for file in ("torch/_types.py", "jax/_call.py"):
        found = dict(NAME.findall((source / "python/tessera" / file).read_text()))
        assert found == {"float16": "f16", "bfloat16": "bf16"}, (file, found)


main(pathlib.Path(sys.argv[1]))
