#!/usr/bin/env python3
"""Makes a release of the wheel and the source distribution in a directory, as `./dev wheel` writes them: checks what an index
would refuse (twine check), and writes their checksums and the notes of CHANGELOG.md.

    scripts/make_release.py DIRECTORY        writes DIRECTORY/SHA256SUMS and DIRECTORY/NOTES.md

Needs test/Install/requirements.txt.
"""

import argparse
import hashlib
import pathlib
import re
import subprocess
import sys

import make_wheel


def find_files(directory, project):
    """The distributions of this version; others are an error, as they would be released too."""
    files = sorted(path for path in directory.iterdir() if path.name.endswith((".whl", ".tar.gz")))
    stem = make_wheel.name_files(project)
    old = [path.name for path in files if not path.name.startswith((f"{stem}-", f"{stem}.tar.gz"))]
    if old:
        raise SystemExit(f"{directory} has files of other versions: {', '.join(old)}; remove them")
    kinds = {path.suffix for path in files}
    if kinds != {".whl", ".gz"}:
        raise SystemExit(f"{directory} has no {'wheel' if '.whl' not in kinds else 'source distribution'}; ./dev wheel writes both")
    return files


def read_notes(version):
    """The section of a version, or before its release what is unreleased."""
    sections = re.split(r"^## ", (make_wheel.ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    named = {section.split()[0]: section.partition("\n")[2].strip() for section in sections}
    notes = named.get(version, named.get("Unreleased", ""))
    if not notes:
        raise SystemExit(f"CHANGELOG.md has neither a section {version} nor one of what is unreleased")
    return f"# Tessera {version}\n\n{notes}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    directory = parser.parse_args().directory
    project = make_wheel.read_project()
    files = find_files(directory, project)
    notes = read_notes(project["version"])
    check = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], text=True, capture_output=True)
    if check.returncode:
        raise SystemExit(f"twine check fails:\n{check.stdout}{check.stderr}")
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (directory / "SHA256SUMS").write_text(sums)
    (directory / "NOTES.md").write_text(notes)
    for path in (*files, directory / "SHA256SUMS", directory / "NOTES.md"):
        print(path)


if __name__ == "__main__":
    main()
