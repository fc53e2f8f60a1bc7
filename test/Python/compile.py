# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/test/fake-tessera %python %s
"""Compiling through the package, with a compiler that returns its input."""

import ctypes
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))

import fake_cuda

import tessera
from tessera._compiler import _compile
from tessera._core import _library

compiler = ctypes.CDLL(_library.find("libtessera.so"))
compiler.fake_tessera_request.restype = ctypes.c_char_p


def request():
    return compiler.fake_tessera_request().decode()


def bundle_with_lines(**changes):
    """A bundle as a source: text with a line break."""
    return fake_cuda.bundle(**changes).decode() + "\n"


class Compile(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        os.environ["TESSERA_CACHE_DIR"] = os.path.join(self.directory.name, "cache")
        _compile._bundles.clear()
        self.count = compiler.fake_tessera_count()
        compiler.fake_tessera_install_ptxas(b"", b"")

    def compilations(self):
        return compiler.fake_tessera_count() - self.count

    def test_options(self):
        kernel = tessera.compile(
            bundle_with_lines(),
            "scale",
            {"consumers": 2, "pingpong": False},
            ptxas="/x/ptxas",
            D=64,
            CAUSAL=True,
            T="bf16",
        )
        self.assertEqual(kernel.name, "scale")
        self.assertEqual(request(), "CAUSAL=true;D=64;T=bf16;consumers=2,pingpong=false;scale;/x/ptxas;0000")
        tessera.compile(bundle_with_lines(), image="ptx", on_diagnostic=lambda _: None)
        self.assertEqual(request(), "null;null;null;0110")
        tessera.compile(bundle_with_lines(), database=False, gpu="H", shape={"M": 8, "K": 4}, shape_class="few-short")
        self.assertEqual(request(), "null;null;null;0000;no database;H;few-short;K=4;M=8")
        tessera.compile(bundle_with_lines(), alternatives=True)
        self.assertTrue(request().endswith(";alternatives"))
        tessera.compile(bundle_with_lines(), instrument="timeline,blocks=2")
        self.assertEqual(request(), "null;null;null;0000;timeline,blocks=2")
        with self.assertRaisesRegex(ValueError, "image is 'sass'"):
            tessera.compile(bundle_with_lines(), image="sass")

    def test_files(self):
        path = pathlib.Path(self.directory.name) / "scale.tile"
        path.write_text(bundle_with_lines())
        self.assertEqual(tessera.compile(path).name, "scale")
        self.assertIs(tessera.compile(str(path)), tessera.compile(bundle_with_lines()))
        self.assertEqual(self.compilations(), 1)
        with self.assertRaises(FileNotFoundError):
            tessera.compile("nonexistent.tile")

    def test_database(self):
        path = pathlib.Path(self.directory.name) / "schedules.json"
        path.write_text("one")
        tessera.compile(bundle_with_lines(), database=path)
        self.assertEqual(request(), f"null;null;null;0000;{path}")
        path.write_text("two")
        tessera.compile(bundle_with_lines(), database=path)
        self.assertEqual(self.compilations(), 2)

    def test_memory_cache(self):
        first = tessera.compile(bundle_with_lines(), D=64)
        self.assertIs(tessera.compile(bundle_with_lines(), D="64"), first)
        self.assertEqual(self.compilations(), 1)
        for changed in ({"D": 128}, {"D": 64, "schedule": "stages=2"}, {"D": 64, "image": "ptx"}):
            self.assertIsNot(tessera.compile(bundle_with_lines(), **changed), first)
        tessera.compile(bundle_with_lines(shared_memory=0), D=64)
        self.assertEqual(self.compilations(), 5)
        tessera.compile(bundle_with_lines(), D=64, cache=False)
        self.assertEqual(self.compilations(), 6)

    def test_errors(self):
        seen = []
        with self.assertRaises(tessera.CompileError) as context:
            tessera.compile("error\n", on_diagnostic=seen.append)
        self.assertEqual(str(context.exception), "<source>:3:7: error: wrong\n<source>:1:2: note: declared here")
        self.assertEqual(context.exception.status, "source")
        self.assertEqual([entry.severity for entry in seen], ["remark", "error"])
        self.assertEqual(str(seen[0]), "remark: a remark")
        self.assertEqual(context.exception.diagnostics, seen)
        with self.assertRaises(tessera.CompileError):
            tessera.compile("error\n")
        self.assertEqual(self.compilations(), 1)


if __name__ == "__main__":
    unittest.main()
