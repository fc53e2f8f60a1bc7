#!/usr/bin/env python3
"""Builds the Python package from source for pip and other front ends (PEP 517), and writes source distributions.

    scripts/build_backend.py OUTPUT_DIRECTORY        a source distribution; prints its path

A wheel of it has no compiled kernels, and needs LLVM's libraries where CMAKE_ARGS has no -DTESSERA_STATIC=ON. The setting
"tree" names a build tree whose libraries are taken, so that nothing is built.
"""

import gzip
import io
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tarfile

import make_wheel
from make_wheel import ROOT

# What a build reads. The description of a wheel is docs/install.md.
FILES = ("CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml", "bench/CMakeLists.txt", "bench/host.c",
         "docs/install.md")  # fmt: skip
DIRECTORIES = ("cmake", "dialects", "include", "kernels", "lib", "passes", "python", "scripts", "tools")
# That of entries of a wheel. Ninja takes the day before all others for a file that is not there.
FIRST_DAY = 315532800  # 1980
NEEDS = (
    "tessera-attention builds from source with LLVM and MLIR 22.1, CMake 3.25, Ninja, and clang 22 or g++ 12: on Debian 12 "
    "`./dev setup` of a checkout installs them. CMAKE_ARGS is passed on to CMake, such as -DMLIR_DIR=DIRECTORY of "
    "MLIRConfig.cmake, CC and CXX name the compilers. The wheel of `./dev wheel` needs none of these"
)


def list_sources():
    yield from (ROOT / name for name in FILES)
    for directory in DIRECTORIES:
        for path in sorted((ROOT / directory).rglob("*")):
            is_made = path.suffix in (".pyc", ".so") or any(part.endswith(".egg-info") for part in path.parts)
            if path.is_file() and not is_made:
                yield path


def build_sdist(sdist_directory, config_settings=None):
    project = make_wheel.read_project()
    stem = make_wheel.name_files(project)
    path = pathlib.Path(sdist_directory) / f"{stem}.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [(source.relative_to(ROOT), source.read_bytes(), source.stat().st_mode & 0o755) for source in list_sources()]
    files.append(("PKG-INFO", make_wheel.describe_project(project).encode(), 0o644))
    # The same files give the same bytes.
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, contents, mode in files:
                entry = tarfile.TarInfo(f"{stem}/{name}")
                entry.size, entry.mode, entry.mtime = len(contents), mode, FIRST_DAY
                archive.addfile(entry, io.BytesIO(contents))
    return path.name


def get_requires_for_build_wheel(config_settings=None):
    """Packages for the programs that are not here."""
    if "tree" in (config_settings or {}):
        return []
    return [package for package, program in (("cmake>=3.25", "cmake"), ("ninja", "ninja")) if not shutil.which(program)]


def choose_compilers():
    """Options for CMake: clang 22, with which releases are built, unless CC or CXX names another or it is not here."""
    if "CC" in os.environ or "CXX" in os.environ or not shutil.which("clang++-22"):
        return []
    return ["-DCMAKE_C_COMPILER=clang-22", "-DCMAKE_CXX_COMPILER=clang++-22"]


def build(tree):
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTESSERA_TESTS=OFF", *choose_compilers()]
    options += shlex.split(os.environ.get("CMAKE_ARGS", ""))  # which may say otherwise
    configure = ["cmake", "-S", ROOT, "-B", tree, "-G", "Ninja", *options]
    try:
        subprocess.run(configure, check=True)
        subprocess.run(["cmake", "--build", tree, "--target", "libtessera", "tessera_runtime"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{error}\n{NEEDS}") from None


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    tree = (config_settings or {}).get("tree")
    if tree is None:
        tree = ROOT / "build-wheel"
        build(tree)
    return make_wheel.make(tree, pathlib.Path(wheel_directory)).name


if __name__ == "__main__":
    print(os.path.join(sys.argv[1], build_sdist(sys.argv[1])))
