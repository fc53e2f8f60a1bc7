#!/usr/bin/env python3
"""Writes the reference pages of the dialects and passes: generate_docs.py MLIR_TBLGEN LLVM_INCLUDE_DIR OUTPUT_DIR"""

import pathlib
import re
import subprocess
import sys

# C++ names of what MLIR knows of an operation; the text above says what they mean here.
KNOWN_TO_MLIR = re.compile(r"^(Traits|Interfaces|Effects): .*\n\n?", re.M)


def pages(root):
    """Yields (page, TableGen source, generator arguments)."""
    for folder in sorted(root.glob("dialects/*/")):
        name = folder.name.lower()
        yield f"{name}.md", folder / f"{folder.name}Ops.td", ["-gen-dialect-doc", f"-dialect={name}"]
    yield "passes.md", root / "passes/Passes.td", ["-gen-pass-doc"]


def main(tblgen, include, output):
    root = pathlib.Path(__file__).resolve().parent.parent
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    for page, source, arguments in pages(root):
        command = [tblgen, f"-I{root}", f"-I{include}", *arguments, source]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        text = KNOWN_TO_MLIR.sub("", text.replace("[TOC]\n\n", ""))
        (output / page).write_text(re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
