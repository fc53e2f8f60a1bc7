#!/usr/bin/env python3
"""Puts the package and the commands of this tree into a virtual environment, without copying them.

    scripts/link_package.py VENV

Its Python imports `tessera` from python/ then, and its bin/ has `tessera` and `tessera-lsp-server` of build/, so that
`source VENV/bin/activate` is all that a shell needs. Nothing is fetched.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = ("tessera", "tessera-lsp-server", "tessera-opt", "tessera-sim")


def link(venv):
    """Raises FileNotFoundError where `venv` is no virtual environment."""
    packages = list(venv.glob("lib/python3*/site-packages"))
    if not packages:
        raise FileNotFoundError(f"'{venv}' is no virtual environment: it has no lib/python3*/site-packages")
    for place in packages:
        (place / "tessera.pth").write_text(f"{ROOT / 'python'}\n")
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
