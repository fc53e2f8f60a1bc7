#!/usr/bin/env python3
"""Writes Python's table of the types of arguments from the library's: generate_types.py OUTPUT"""

import pathlib
import re
import sys

ROW = re.compile(r'\{"(\w+)",\s*(\w+),\s*(\w+),\s*(\d+),\s*\d+,\s*(\d+),\s*\d+,\s*"([^"]*)",\s*"(\w+)",\s*[\w:]+\},')
HEAD = '''"""The types of arguments, which ./dev docs writes from lib/Support/ElementTypes.h."""

#: name, tessera_type as elements and as a number (0 for neither), bytes, DLDataTypeCode, type string of numpy, name in torch
TYPES = (
'''


def main(output):
    root = pathlib.Path(__file__).resolve().parent.parent
    codes = dict(re.findall(r"(TESSERA_TYPE_\w+) = (\d+)", (root / "include/tessera-c/Runtime.h").read_text())) | {"0": "0"}
    table = (root / "lib/Support/ElementTypes.h").read_text()
    rows = ROW.findall(table)
    assert len(rows) == table.count('\n    {"'), rows
    lines = (
        f'    ("{name}", {codes[code]}, {codes[scalar]}, {size}, {dlpack}, "{typestr}", "{torch}"),\n'
        for name, code, scalar, size, dlpack, typestr, torch in rows
    )
    pathlib.Path(output).write_text(f"{HEAD}{''.join(lines)})\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
