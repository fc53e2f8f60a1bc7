# REQUIRES: ptxas
# RUN: rm -rf %t %t.kept %t.again
# RUN: env TESSERA_LIBRARY=%build/lib %python %source/scripts/compile_bundles.py %t --kept %t.kept --only "'CAUSAL': 'true', 'D': '64', 'DV': '64', 'LSE': 'false', 'T': 'bf16'" | FileCheck %s --check-prefix=COMPILED
# RUN: env TESSERA_LIBRARY=%build/lib %python %source/scripts/compile_bundles.py %t.again --kept %t.kept --only "'CAUSAL': 'true', 'D': '64', 'DV': '64', 'LSE': 'false', 'T': 'bf16'" | FileCheck %s --check-prefix=KEPT
# RUN: cd %t && sha256sum * > %t.sums && cd %t.again && sha256sum --check --quiet %t.sums
# RUN: env TESSERA_LIBRARY=%build/lib %python %source/scripts/compile_bundles.py %t --only "'CAUSAL': 'true', 'D': '64', 'DLSE': 'false', 'DV': '64', 'FIXED': 'false', 'PADDED': 'false', 'T': 'bf16'"
# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %python %s %t
# COMPILED: [1/[[COUNT:[0-9]+]]] {{[0-9.]+}} s attention_fwd CAUSAL=true D=64 DV=64 LSE=false T=bf16 {{[a-z]+-[a-z]+$}}
# COMPILED: [[COUNT]] bundles, {{[0-9.]+}} MB; [[COUNT]] compiled, with ptxas {{[0-9.]+$}}
# KEPT-NOT: {{^\[}}
# KEPT: bundles, {{[0-9.]+}} MB; 0 compiled
"""Bundles that a wheel has: a first call takes them and compiles nothing."""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

import tessera
from tessera import CompileError
from tessera._attention import _gradient_kernels, _variants
from tessera._compiler import _compile
from tessera._core import _cache, _library, _wheel

TEXT = "attention_fwd CAUSAL=true"
MANY_LONG = (64, 64, 9000, 64, 64, 9000, 64)
FEW_SHORT = (1, 1, 100, 64, 1, 100, 64)
_compile._compiler(), _library.runtime()


@contextlib.contextmanager
def without_few_short():
    """The bundles of a wheel without those of a class, where nothing can be compiled."""
    index = {
        digest: [entry for entry in entries if entry["shape_class"] != "few-short"]
        for digest, entries in _wheel.read_index(DIRECTORY).items()
    }
    with unittest.mock.patch.object(_compile, "_find_ptxas", return_value=None), warnings.catch_warnings(), \
            unittest.mock.patch.object(_wheel, "read_index", return_value=index):  # fmt: skip
        warnings.simplefilter("ignore")
        yield


class OwnBundles(unittest.TestCase):
    def setUp(self):
        # Of another compiler than the package's own nothing would be taken.
        environment = {name: value for name, value in os.environ.items() if name != "TESSERA_LIBRARY"}
        for patch in (
            unittest.mock.patch.dict(os.environ, {**environment, "TESSERA_JIT": "0"}, clear=True),
            unittest.mock.patch.object(_cache, "WHEEL_BUNDLES", DIRECTORY),
            unittest.mock.patch.object(_compile, "_find_ptxas", side_effect=AssertionError("looks for ptxas")),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        for kept in (_compile._bundles, _variants._variants, _variants._by_sizes):
            kept.clear()

    def find(self, sizes, text=TEXT, lse=False):
        return _variants.find_kernel(text, "bf16", sizes, lse)

    def test_class_that_ships(self):
        kernel, extras, is_final = self.find(MANY_LONG)
        self.assertEqual((kernel.description["name"], extras, is_final), ("attention_fwd", [], True))
        self.assertNotIn("lse", [argument["name"] for argument in kernel.description["arguments"]])

    def test_each_class_ships(self):
        kernel, _, is_final = self.find(FEW_SHORT)
        self.assertTrue(is_final)
        self.assertIsNot(kernel.bundle, self.find(MANY_LONG)[0].bundle)

    def test_class_that_does_not_ship(self):
        """The kernel for most shapes does, at once and, where nothing may be compiled, for good."""
        with without_few_short():
            kernel, _, is_final = self.find(FEW_SHORT)
            self.assertFalse(is_final)
            _variants.finish_aside()
            again, _, is_final = self.find(FEW_SHORT)
        self.assertTrue(is_final)
        self.assertIs(kernel, again)

    def test_class_that_is_being_compiled(self):
        """Meanwhile a call looks for nothing."""
        started, finished = threading.Event(), threading.Event()

        def wait():
            started.set()
            finished.wait()

        _variants.begin_aside(wait)
        started.wait()
        with without_few_short():
            kernel, _, is_final = self.find(FEW_SHORT)
            with unittest.mock.patch.object(_compile, "find_in_wheel", side_effect=AssertionError("looks again")):
                for _ in range(3):
                    again, _, is_final = self.find(FEW_SHORT)
                    self.assertFalse(is_final)
                    self.assertIs(again, kernel)
            finished.set()
            _variants.finish_aside()
            self.assertTrue(self.find(FEW_SHORT)[2])

    def test_classes_open_no_compiler(self):
        """Of any number of shapes, once another process has asked for the rule."""
        with tempfile.TemporaryDirectory() as place, \
                unittest.mock.patch.dict(os.environ, {"TESSERA_CACHE_DIR": place, "TESSERA_JIT": "1"}):  # fmt: skip
            self.find(MANY_LONG)
            _variants._variants.clear()
            with unittest.mock.patch.object(_variants, "Program", side_effect=AssertionError("opens the compiler")):
                for sizes in (MANY_LONG, FEW_SHORT, (1, 1, 700, 64, 1, 700, 64), (8, 16, 90, 64, 4, 4000, 64)):
                    self.assertTrue(self.find(sizes)[2])

    def test_what_does_not_ship(self):
        with unittest.mock.patch.object(_compile, "_find_ptxas", return_value=None):
            with self.assertRaisesRegex(CompileError, "TESSERA_JIT=0 forbids to compile"):
                self.find(MANY_LONG, lse=True)
            with unittest.mock.patch.dict(os.environ, {"TESSERA_LIBRARY": "another"}), self.assertRaises(CompileError):
                self.find(MANY_LONG)

    def test_plain_compilations(self):
        """Parameters may be left to their defaults, and a shape names its class."""
        plain = {"CAUSAL": True, "D": 64, "LSE": False}
        requests = (
            plain,
            {**plain, "DV": 64, "T": "torch.bfloat16", "PADDED": False},
            {**plain, "shape_class": "many-long"},
            {**plain, "kernel": "attention_fwd", "alternatives": True},
            {**plain, "shape": {"B": 64, "H": 64, "SQ": 9000, "HK": 64, "SK": 9000}},
        )
        found = [tessera.kernel("attention_fwd", **request) for request in requests]
        self.assertEqual({id(kernel.bundle) for kernel in found}, {id(found[0].bundle)})
        self.assertEqual(found[0].alternatives, tuple(f"attention_fwd_BM{rows}" for rows in (256, 192, 128, 64)))
        self.assertEqual(found[0].parameters["D"], 64)

    def test_plain_compilations_of_something_else(self):
        plain = {"CAUSAL": True, "D": 64, "LSE": False}
        tessera.kernel("attention_fwd", **plain)
        others = (
            {"alternatives": False}, {"BM": 256}, {"HEADS": 1}, {"LSE": True}, {"D": 128}, {"T": "f16"}, {"CAUSAL": False},
            {"PADDED": True}, {"gpu": "NVIDIA H200"}, {"image": "ptx"}, {"instrument": "timeline"},
        )  # fmt: skip
        with unittest.mock.patch.object(_compile, "_find_ptxas", return_value=None):
            for other in others:
                with self.subTest(other), self.assertRaisesRegex(CompileError, "TESSERA_JIT=0 forbids to compile"):
                    tessera.kernel("attention_fwd", **{**plain, **other})
            for left_out in plain:
                rest = {name: value for name, value in plain.items() if name != left_out}
                with self.subTest(left_out), self.assertRaisesRegex(CompileError, "TESSERA_JIT=0 forbids to compile"):
                    tessera.kernel("attention_fwd", **rest)

    def test_other_sources(self):
        """A source that differs in a comment is another one."""
        with tempfile.TemporaryDirectory() as directory, unittest.mock.patch.object(_compile, "_find_ptxas", return_value=None):
            path = pathlib.Path(directory, "attention_fwd.tile")
            path.write_bytes(pathlib.Path(_library.find_source("attention_fwd")).read_bytes() + b"// mine\n")
            with self.assertRaises(CompileError):
                tessera.compile(path, CAUSAL=True, D=64, LSE=False)

    def test_damaged_package(self):
        """What is not there, or not whole, is compiled."""
        found = _wheel.read_index(DIRECTORY)
        with tempfile.TemporaryDirectory() as directory, unittest.mock.patch.object(_cache, "WHEEL_BUNDLES", directory), \
                unittest.mock.patch.object(_compile, "_find_ptxas", return_value=None):  # fmt: skip
            index = pathlib.Path(directory, _wheel.INDEX)
            for text in ("{", json.dumps(found)):
                index.write_text(text)
                _wheel.read_index.cache_clear()
                with self.subTest(text), self.assertRaises(CompileError):
                    self.find(MANY_LONG)
            for damage in (lambda contents: contents[:1000], lambda contents: b"not an archive", lambda contents: b""):
                for path in pathlib.Path(DIRECTORY).glob("*" + _wheel.ARCHIVES):
                    pathlib.Path(directory, path.name).write_bytes(damage(path.read_bytes()))
                with self.assertRaises(CompileError):
                    self.find(MANY_LONG)
        _wheel.read_index.cache_clear()

    def test_python_without_lzma(self):
        _wheel._warn_of_lzma.cache_clear()
        with unittest.mock.patch.dict(sys.modules, {"lzma": None}), unittest.mock.patch.object(_compile, "_find_ptxas", return_value=None):
            with self.assertWarnsRegex(RuntimeWarning, "no module lzma"), self.assertRaises(CompileError):
                self.find(MANY_LONG)

    def test_gradients(self):
        """Of a source with imports, whose texts count."""
        source, parameters, _ = _gradient_kernels.describe_gradients(TEXT, "bf16", 64, 64)
        self.assertEqual(_compile.compile(source, **parameters).description["name"], "attention_bwd")
        source, parameters, _ = _gradient_kernels.describe_gradients(TEXT, "bf16", 64, 64, fixed=True)
        with unittest.mock.patch.object(_compile, "_find_ptxas", return_value=None):
            with self.assertRaisesRegex(CompileError, "TESSERA_JIT=0 forbids to compile"):
                _compile.compile(source, **parameters)

    def test_options_that_make_something_else(self):
        source = _library.find_source("attention_fwd")
        parameters = {"CAUSAL": "true", "T": "bf16", "D": 64, "DV": 64, "LSE": False}
        kernel = _compile.compile(source, shape_class="many-long", alternatives=True, **parameters)
        self.assertEqual(len(kernel.alternatives), 4)
        for options in ({"alternatives": False}, {"ptxas": "/ptxas"}, {"database": False}, {"schedule": "stages=2"}, {"cache": False}):
            with unittest.mock.patch.object(_compile, "_find_ptxas", return_value=None):
                with self.subTest(options), self.assertRaises(CompileError):
                    _compile.compile(source, **{"shape_class": "many-long", "alternatives": True, **options}, **parameters)


if __name__ == "__main__":
    DIRECTORY = sys.argv.pop()
    unittest.main()
