#!/usr/bin/env python3
"""Writes the reference pages of the dialects and passes: generate_docs.py MLIR_TBLGEN LLVM_INCLUDE_DIR OUTPUT_DIR"""

import pathlib
import subprocess
import sys


def pages(root):
    """Yields (page, TableGen source, generator arguments)."""
    for source in sorted(root.glob("dialects/*/*Ops.td")):
        name = source.parent.name.lower()
        yield f"{name}.md", source, ["-gen-dialect-doc", f"-dialect={name}"]
    yield "passes.md", root / "passes/Passes.td", ["-gen-pass-doc"]


def main(tblgen, include, output):
    root = pathlib.Path(__file__).resolve().parent.parent
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    for page, source, arguments in pages(root):
        command = [tblgen, f"-I{root}", f"-I{include}", *arguments, source]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        (output / page).write_text(text.replace("[TOC]\n\n", "").rstrip() + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
