#!/usr/bin/env python3
"""Puts the package and the commands of this tree into a virtual environment, without copying them.

    scripts/link_package.py VENV

Its Python imports `tessera` from python/ then, and its bin/ has the commands of build/, so that `source VENV/bin/activate` is all
that a shell needs. Others find there what the package brings for them, as Pygments its lexer. Nothing is fetched.
"""

import pathlib
import sys

import make_wheel

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = ("tessera", "tessera-lsp-server", "tessera-opt", "tessera-sim")


def describe(place):
    """Writes what an installer does, with the list of files by which pip removes them."""
    project = make_wheel.read_project()
    info = f"{make_wheel.name_files(project)}.dist-info"
    files = {f"{info}/{name}": text for name, text in make_wheel.describe(project, "any").items()}
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    names = ["tessera.pth", *files, f"{info}/RECORD"]
    (place / info / "RECORD").write_text("".join(f"{name},,\n" for name in names))


def link(venv):
    """Raises FileNotFoundError where `venv` is no virtual environment."""
    packages = list(venv.glob("lib/python3*/site-packages"))
    if not packages:
        raise FileNotFoundError(f"'{venv}' is no virtual environment: it has no lib/python3*/site-packages")
    for place in packages:
        (place / "tessera.pth").write_text(f"{ROOT / 'python'}\n")
        describe(place)
    for name in COMMANDS:
        path = venv / "bin" / name
        # What pip has put there is a file.
        if path.is_symlink() or not path.exists():
            path.unlink(missing_ok=True)
            path.symlink_to(ROOT / "build" / "bin" / name)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: link_package.py VENV")
    try:
        link(pathlib.Path(sys.argv[1]))
    except FileNotFoundError as error:
        sys.exit(f"link_package.py: {error}")
