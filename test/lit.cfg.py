# Configuration of the lit suites. Tests name tools as they are called ("tessera-opt %s | FileCheck %s").
#
# Features       ptxas, ptxas-12, ptxas-13   an assembler of CUDA 12.3 or newer was found (of that major version)
#                ptxas-oldest, ptxas-newest  the same; the oldest of them, and the newest
#                nvdisasm                    a disassembler of CUDA 12 or newer was found
#                gpu                         the machine has a device of compute capability 9.0
#                torch, jax, pygments, sphinx, twine  a Python with PyTorch, JAX, Pygments, Sphinx, twine was found
#                node                        Node.js was found
#                static                      LLVM is linked statically
#                asan                        address and undefined-behaviour sanitizers are compiled in
# Substitutions  %ptxas, %ptxas-12, %ptxas-13, %ptxas-oldest, %ptxas-newest, %nvdisasm, %python, %torch-python, %jax-python, %pygments-python, %sphinx-python, %twine-python, %cmake, %cxx, %cc, %llvm-include,
#                %build, %source; %cases, which writes out the cases of a test that share frames (Inputs/cases.py)
# Environment    TESSERA_CHECK_ROUNDTRIP=1   tessera-opt also checks that its input survives printing and bytecode
#                TESSERA_PTXAS=PATH          the assembler to try first
#                TESSERA_NVDISASM=PATH       the disassembler to try first
#                TESSERA_THOROUGH=1          all of Simulator/kernels, Codegen/tiles.py, combinations.py, forms.py, Torch/known.py (docs/testing.md)
#                TESSERA_TORCH=PATH          the Python to try first for PyTorch
#                TESSERA_JAX=PATH            the Python to try first for JAX
#                TESSERA_PYGMENTS=PATH       the Python to try first for Pygments
#                TESSERA_SPHINX=PATH         the Python to try first for Sphinx; so TESSERA_TWINE

import ctypes
import glob
import os
import re
import shutil
import subprocess

import lit.formats

source = config.tessera_source_dir
build = config.tessera_build_dir

config.name = "tessera"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".tile", ".test", ".ptx", ".py"]
config.excludes = ["Inputs", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(build, "test")


def assemblers():
    """Yields (path, version) of every usable ptxas, the preferred one first."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    wheels = glob.glob(os.path.join(source, ".venv/lib/python3*/site-packages/nvidia/*/bin/ptxas"))
    named = [os.environ.get("TESSERA_PTXAS"), shutil.which("ptxas"), os.path.join(home, "bin/ptxas")]
    for path in named + sorted(wheels):
        if path and os.access(path, os.X_OK):
            text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            release = re.search(r"release (\d+)\.(\d+)", text)
            if release and (version := tuple(map(int, release.groups()))) >= (12, 3):
                yield path, version


def disassemblers():
    """Yields the paths of nvdisasm, the preferred one first."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    wheels = glob.glob(os.path.join(source, ".venv/lib/python3*/site-packages/nvidia/*/bin/nvdisasm"))
    named = [os.environ.get("TESSERA_NVDISASM"), shutil.which("nvdisasm"), os.path.join(home, "bin/nvdisasm")]
    yield from (path for path in named + sorted(wheels) if path and os.access(path, os.X_OK))


def pythons_with(module):
    """Yields the paths of Pythons that find a module."""
    for path in (os.environ.get(f"TESSERA_{module.upper()}"), os.path.join(source, ".venv/bin/python")):
        test = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
        if path and os.access(path, os.X_OK) and subprocess.run([path, "-c", test]).returncode == 0:
            yield path


def has_hopper():
    """Says whether the CUDA driver is here and its first device is of compute capability 9.0."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    major, minor = ctypes.c_int(), ctypes.c_int()
    return (
        cuda.cuInit(0) == 0
        and cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, 0) == 0  # COMPUTE_CAPABILITY_MAJOR
        and cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, 0) == 0  # COMPUTE_CAPABILITY_MINOR
        and (major.value, minor.value) == (9, 0)
    )


def substitute(name, value):
    config.substitutions.append((f"%{name}(?![\\w-])", value))


path = [os.path.join(build, "bin"), config.llvm_tools_dir]
found, by_version = {}, {}
for ptxas, version in assemblers():
    found.setdefault("ptxas", ptxas)
    found.setdefault(f"ptxas-{version[0]}", ptxas)
    by_version.setdefault(version, ptxas)
if by_version:
    found["ptxas-oldest"], found["ptxas-newest"] = by_version[min(by_version)], by_version[max(by_version)]
for feature, ptxas in found.items():
    config.available_features.add(feature)
    substitute(feature, ptxas)
if nvdisasm := next(disassemblers(), None):
    config.available_features.add("nvdisasm")
    substitute("nvdisasm", nvdisasm)
for framework in ("torch", "jax", "pygments", "sphinx", "twine"):
    if framework_python := next(pythons_with(framework), None):
        config.available_features.add(framework)
        substitute(f"{framework}-python", framework_python)
if found:
    path.append(os.path.dirname(found["ptxas"]))
if shutil.which("node"):
    config.available_features.add("node")
if has_hopper():
    config.available_features.add("gpu")
if config.static_build:
    config.available_features.add("static")

# What CMake found may be a script that looks for Python at each start, as those of pyenv.
asked = [config.python, "-c", "import sys; print(sys.executable)"]
python = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
if config.asan_runtime:
    config.available_features.add("asan")
    # An interpreter that loads libtessera has the runtime from its start. A report ends in SIGABRT, which `not` does not take
    # for an error of the tool's own. LLVM's libraries are not instrumented: the arenas that both fill are not poisoned, and
    # what they keep to the end are no leaks.
    options = "abort_on_error=1:detect_leaks=0:allow_user_poisoning=0"
    config.environment["ASAN_OPTIONS"] = options
    config.environment["UBSAN_OPTIONS"] = "abort_on_error=1:print_stacktrace=1"
    substitute("python", f"env LD_PRELOAD={config.asan_runtime} {python}")
else:
    substitute("python", python)
substitute("cases", f"{python} {source}/test/Inputs/cases.py")
substitute("cmake", config.cmake)
substitute("cxx", config.cxx_compiler)
substitute("cc", config.c_compiler)
substitute("build", build)
substitute("llvm-include", config.llvm_include_dir)
substitute("source", source)
if os.environ.get("TESSERA_CHECK_ROUNDTRIP"):
    config.substitutions.append(
        (r"(?<![\w./%-])tessera-opt(?![\w.-])", "tessera-opt --verify-roundtrip"))

config.environment["PATH"] = os.pathsep.join(path + [os.environ.get("PATH", os.defpath)])
config.environment["PYTHONPATH"] = os.path.join(source, "python")
# Tests run beside each other, and threads of OpenMP that wait for others keep a core busy: four fifths of a test of PyTorch were that.
config.environment["OMP_NUM_THREADS"] = "1"
for name in ("CUDA_HOME", "CUDA_VISIBLE_DEVICES", "HOME", "LD_LIBRARY_PATH", "TESSERA_THOROUGH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
