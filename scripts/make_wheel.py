#!/usr/bin/env python3
"""Makes a wheel of the Python package with the libraries of a build tree inside.

    scripts/make_wheel.py BUILD_TREE OUTPUT_DIRECTORY [--bundles DIRECTORY]

A tree of the preset "static" gives one that needs the C library only, for every distribution that has it new enough
(manylinux_2_NN); any other tree one for this machine. The same files give the same bytes. Prints path and size.
"""

import argparse
import base64
import hashlib
import pathlib
import re
import shutil
import subprocess
import tempfile
import zipfile

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_BYTES = 25_000_000


def find_tag(libraries):
    """The platform that the libraries run on, from the newest functions of the C library that they call."""
    if any(b"libLLVM" in library for library in libraries):
        return "linux_x86_64"
    versions = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?=\0)", b"".join(libraries))
    return "manylinux_%d_%d_x86_64" % max((int(major), int(minor)) for major, minor in versions)


def collect(tree, prefix):
    """The contents of the wheel's files by their paths in it, less those that describe it."""
    subprocess.run(
        ["cmake", "--install", tree, "--prefix", prefix, "--component", "libraries", "--strip"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    files = {}
    for directory, pattern in ((ROOT / "python" / "tessera", "*py*"), (prefix, "*")):
        for path in directory.rglob(pattern):
            if path.is_file() and "__pycache__" not in path.parts:
                files[f"tessera/{path.relative_to(directory)}"] = path.read_bytes()
    return files


def read_project():
    """What the package is called and needs."""
    return tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]


def name_files(project):
    """What names of distributions begin with."""
    return f"{project['name'].replace('-', '_')}-{project['version']}"


def describe_project(project):
    """The core metadata of the package."""
    metadata = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}"]
    metadata += [f"Summary: {project['description']}", f"Requires-Python: {project['requires-python']}"]
    metadata += [f"Author: {author['name']}" for author in project["authors"]]
    metadata += [f"Keywords: {','.join(project['keywords'])}"]
    metadata += [f"Classifier: {classifier}" for classifier in project["classifiers"]]
    metadata += [f"Requires-Dist: {dependency}" for dependency in project["dependencies"]]
    metadata += [f"License-Expression: {project['license']['text']}", "License-File: LICENSE"]
    metadata += ["Description-Content-Type: text/markdown", ""]
    # An index has the page alone: links to other pages would lead nowhere.
    page = re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", (ROOT / "docs" / "install.md").read_text())
    return "\n".join(metadata) + "\n" + page


def describe(project, tag):
    """The files of the dist-info directory, less RECORD."""
    entry_points = []
    for group, functions in {"console_scripts": project["scripts"], **project["entry-points"]}.items():
        entry_points += [f"[{group}]", *(f"{name} = {function}" for name, function in functions.items()), ""]
    wheel = ["Wheel-Version: 1.0", "Generator: make_wheel.py", "Root-Is-Purelib: false", f"Tag: py3-none-{tag}"]
    return {
        "METADATA": describe_project(project),
        "WHEEL": "\n".join(wheel) + "\n",
        "entry_points.txt": "\n".join(entry_points),
        "licenses/LICENSE": (ROOT / "LICENSE").read_text(),
    }


def write(path, files, record):
    """Writes the archive; `record` is the path of the list of its files."""
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, contents in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(contents)}\n")
            archive.writestr(make_entry(name), contents)
        archive.writestr(make_entry(record), "".join([*lines, f"{record},,\n"]))


def make_entry(name):
    entry = zipfile.ZipInfo(name)  # Of the first day that an archive can name.
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    return entry


def make(tree, output, bundles=None):
    """The path of the wheel of a build tree in a directory, with what scripts/compile_bundles.py wrote to another."""
    project = read_project()
    prefix = pathlib.Path(tempfile.mkdtemp(prefix="tessera-wheel-"))
    try:
        files = collect(tree, prefix)
    finally:
        shutil.rmtree(prefix)
    if bundles:
        files.update((f"tessera/share/tessera/bundles/{path.name}", path.read_bytes()) for path in sorted(bundles.iterdir()))
    tag = find_tag([contents for name, contents in files.items() if ".so" in name])
    stem = name_files(project)
    info = f"{stem}.dist-info"
    files.update((f"{info}/{name}", text.encode()) for name, text in describe(project, tag).items())
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{stem}-py3-none-{tag}.whl"
    write(path, files, f"{info}/RECORD")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--bundles", type=pathlib.Path, help="what scripts/compile_bundles.py made with this build")
    options = parser.parse_args()
    path = make(options.tree, options.output, options.bundles)
    size = path.stat().st_size
    print(f"{path}: {size / 1e6:.1f} MB")
    if size > MOST_BYTES:
        raise SystemExit(f"a wheel may have {MOST_BYTES / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
