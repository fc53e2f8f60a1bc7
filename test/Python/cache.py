# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/test/fake-tessera %python %s
"""The cache of the package on disk, whatever lies in its place, with a compiler that returns its input."""

import base64
import ctypes
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

sys.path.insert(0, os.path.dirname(__file__))

import fake_cuda

import tessera
from tessera._compiler import _compile, _program
from tessera._core import _cache, _library

compiler = ctypes.CDLL(_library.find("libtessera.so"))
SOURCE = fake_cuda.bundle().decode() + "\n"
OTHER = fake_cuda.bundle(shared_memory=0).decode() + "\n"


class CacheCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        self.place = self.root / "cache"
        environment = unittest.mock.patch.dict(os.environ, {"TESSERA_CACHE_DIR": str(self.place)})
        environment.start()
        self.addCleanup(environment.stop)
        compiler.fake_tessera_install_ptxas(b"", b"")
        _cache._warned.clear()
        self.compiled = compiler.fake_tessera_count()

    def compiles(self, source=SOURCE, **options):
        """Whether a process that starts anew has to compile. The kernel is right in any case."""
        _compile._bundles.clear()
        before = compiler.fake_tessera_count()
        kernel = tessera.compile(source, **options)
        self.assertEqual(kernel.description["shared_memory"], 0 if source is OTHER else 65536)
        return compiler.fake_tessera_count() > before

    def assertKeepsNothing(self, reason):
        """Compiling works each time, and a warning says once why."""
        with self.assertWarnsRegex(RuntimeWarning, f"compiled kernels are not kept in .*{reason}") as context:
            self.assertTrue(self.compiles())
        self.assertEqual(context.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertTrue(self.compiles())

    def entry(self):
        """The only file in the cache."""
        (path,) = self.place.iterdir()
        return path


class Entries(CacheCase):
    def assertRepairs(self, damage):
        self.assertTrue(self.compiles())
        path = self.entry()
        good = path.read_bytes()
        damage(path)
        self.assertTrue(self.compiles())
        self.assertEqual(self.entry(), path)
        self.assertTrue(path.is_file() and not path.is_symlink())
        self.assertEqual(path.read_bytes(), good)
        self.assertFalse(self.compiles())
        path.unlink()

    def test_second_process(self):
        self.assertTrue(self.compiles())
        self.assertFalse(self.compiles())
        self.assertTrue(self.compiles(OTHER))
        self.assertEqual(len(list(self.place.iterdir())), 2)
        self.assertEqual(self.place.stat().st_mode & 0o777, 0o700)

    def test_damage(self):
        def flip(path):
            data = bytearray(path.read_bytes())
            data[-40] ^= 1
            path.write_bytes(data)

        self.assertRepairs(flip)
        self.assertRepairs(lambda path: path.write_bytes(path.read_bytes()[:-1]))
        self.assertRepairs(lambda path: path.write_bytes(path.read_bytes() + b" "))
        self.assertRepairs(lambda path: path.write_bytes(b""))
        self.assertRepairs(lambda path: path.write_bytes(b"tessera-cache 1\n{"))
        # A bundle without a digest, as earlier versions kept.
        self.assertRepairs(lambda path: path.write_bytes(fake_cuda.bundle()))
        self.assertRepairs(lambda path: os.truncate(path, _cache._MAX_ENTRY_BYTES + 1))

    def test_entry_of_another_key(self):
        self.compiles(OTHER)
        foreign = self.entry().read_bytes()
        self.entry().unlink()
        self.assertRepairs(lambda path: path.write_bytes(foreign))

    def test_machine_code(self):
        """It is kept as bytes, and what is read is what was written, whatever that has for it."""
        image = bytes(range(256)) * 10
        text = b'{"image":{"kind":"cubin","base64":"%s"},"x":1}'
        for code in (base64.b64encode(image), b"", b"QQ==", b"QR==", b"QQ", b"no base64", base64.b64encode(image) + b"\\n"):
            _cache.write(str(self.place), "key", text % code)
            self.assertEqual(_cache.read(str(self.place), "key"), text % code)
            path = self.entry()
            good = path.read_bytes()
            header, _, rest = good.partition(b"\n")
            self.assertEqual(image in good, code == base64.b64encode(image))
            for place, length in ((0, 0), (-1, 3), (10**9, 1), (1, 10**9)):
                changed = b" ".join((*header.split()[:-2], b"%d %d" % (place, length)))
                if changed != header:
                    path.write_bytes(changed + b"\n" + rest)
                    self.assertIsNone(_cache.read(str(self.place), "key"))
        for nothing in (b"", b"{}", b'"base64":"', b'"base64":"QQ=='):
            _cache.write(str(self.place), "key", nothing)
            self.assertEqual(_cache.read(str(self.place), "key"), nothing)

    def test_lists_that_no_launch_reads(self):
        """They are no part of what is kept, nor of what the process has that compiles."""
        lists = {"shared_map": [{"name": "q", "offset": 0, "bytes": 16384}], "barriers": [{"name": "q", "offset": 65528}]}
        source = fake_cuda.bundle(**lists).decode() + "\n"
        first = tessera.compile(source).description
        _compile._bundles.clear()
        self.assertEqual(tessera.compile(source).description, first)
        self.assertEqual(compiler.fake_tessera_count(), self.compiled + 1)
        self.assertEqual(first, tessera.Bundle(fake_cuda.bundle()).kernel().description)
        for name in (b"shared_map", b"barriers"):
            self.assertNotIn(name, self.entry().read_bytes())

    def test_what_is_no_bundle(self):
        def forge(path):
            path.write_bytes(_cache.make_entry(path.stem, b"{}"))

        self.assertRepairs(forge)

    def test_links(self):
        outside = self.root / "outside"
        outside.write_bytes(b"of somebody else")

        def link(target):
            def replace(path):
                path.unlink()
                path.symlink_to(target)

            return replace

        self.assertRepairs(link(outside))
        self.assertEqual(outside.read_bytes(), b"of somebody else")
        self.assertRepairs(link(self.root / "missing"))
        self.assertFalse((self.root / "missing").exists())
        self.assertRepairs(link("/dev/zero"))

        def link_to_itself(path):
            path.unlink()
            path.symlink_to(path)

        self.assertRepairs(link_to_itself)

    def test_fifo(self):
        def replace(path):
            path.unlink()
            os.mkfifo(path)

        self.assertRepairs(replace)

    def test_directory_in_place_of_an_entry(self):
        self.compiles()
        path = self.entry()
        path.unlink()
        path.mkdir()
        self.assertKeepsNothing("directory")
        self.assertEqual(list(self.place.iterdir()), [path])


class Refusals(CacheCase):
    """What is refused is kept too, as the next process would find out the same."""

    SOURCE = "error\n"

    def refuses(self, source=SOURCE, **options):
        """Whether a process that starts anew has to compile; the error is right in any case."""
        _compile._bundles.clear()
        before = compiler.fake_tessera_count()
        with self.assertRaises(tessera.CompileError) as caught:
            tessera.compile(source, **options)
        name = "<source>" if "\n" in str(source) else str(source)
        error = caught.exception
        self.assertEqual(str(error), f"{name}:3:7: error: wrong\n{name}:1:2: note: declared here")
        self.assertEqual((error.status, error.kind, error.lacks_room), ("source", "registers", True))
        (diagnostic,) = [entry for entry in error.diagnostics if entry.severity != "remark"]
        self.assertEqual((diagnostic.line, diagnostic.column, diagnostic.notes[0].file), (3, 7, name))
        return compiler.fake_tessera_count() > before

    def test_second_process(self):
        self.assertTrue(self.refuses())
        self.assertFalse(self.refuses())
        self.assertTrue(self.refuses(N=1))
        self.assertTrue(self.refuses(cache=False))
        with self.assertRaises(tessera.CompileError):  # the same process
            tessera.compile(self.SOURCE)
        self.assertEqual(compiler.fake_tessera_count(), self.compiled + 3)

    def test_names(self):
        """The key has no path, and the message that of the source."""
        for name, compiles in (("first.tile", True), ("second.tile", False)):
            path = self.root / name
            path.write_text(self.SOURCE)
            self.assertEqual(self.refuses(path), compiles)

    def test_diagnostics(self):
        for severities in (["remark", "error"], ["error"]):
            seen = []
            self.refuses(on_diagnostic=seen.append)
            self.assertEqual([entry.severity for entry in seen], severities)

    def test_tools(self):
        """Another assembler may take what one refuses."""
        path = self.root / "ptxas"
        path.write_text("an assembler")
        self.assertTrue(self.refuses())
        compiler.fake_tessera_install_ptxas(str(path).encode(), b"12.3")
        _compile._ptxas_found.clear()
        self.assertTrue(self.refuses())
        self.assertFalse(self.refuses())

    def test_damage(self):
        self.refuses()
        path = self.entry()
        good = path.read_bytes()
        fields = b'{"refusal":{"status":"source","diagnostics":%s}}'
        for contents in (
            good[:-1], good + b" ", *(_cache.make_entry(path.stem, text) for text in (
                b'{"refusal":', b'{"refusal":1}', b'{"refusal":{}}', fields % b"[]", fields % b"[1]", fields % b'[["error"]]',
                fields % b'[["error",null,3,7,"wrong",[]]]')),
        ):  # fmt: skip
            path.write_bytes(contents)
            self.assertTrue(self.refuses())
            self.assertEqual(path.read_bytes(), good)

    def test_shipped(self):
        self.refuses()
        shipped = self.root / "shipped"
        self.place.rename(shipped)
        with unittest.mock.patch.dict(os.environ, {"TESSERA_BUNDLES": str(shipped), "TESSERA_JIT": "0"}):
            self.assertFalse(self.refuses())


class Shipped(CacheCase):
    def test_bundles_and_no_compiler(self):
        self.assertTrue(self.compiles())
        shipped = self.root / "shipped"
        self.place.rename(shipped)
        environment = {"TESSERA_BUNDLES": f"{self.root}/none{os.pathsep}{shipped}", "TESSERA_JIT": "0"}
        with unittest.mock.patch.dict(os.environ, environment):
            self.assertFalse(self.compiles())
            for options in ({"N": 1}, {"cache": False}):
                with self.assertRaises(tessera.CompileError) as caught:
                    self.compiles(**options)
                self.assertIn(f"into {self.root}/none or {shipped} or {self.place}", str(caught.exception))
                self.assertIn("TESSERA_JIT=0 forbids to compile", str(caught.exception))
                self.assertEqual(caught.exception.status, "usage")
            os.environ["TESSERA_JIT"] = "1"
            self.assertTrue(self.compiles(N=1))
        self.assertEqual(len(list(shipped.iterdir())), 1)


class Keys(CacheCase):
    def test_ptxas(self):
        first, second = self.root / "first", self.root / "second"
        for path in (first, second):
            path.write_text("an assembler")
        compiler.fake_tessera_install_ptxas(str(first).encode(), b"12.3")
        self.assertTrue(self.compiles())
        self.assertFalse(self.compiles())
        # Another place or time is no other ptxas; another version is, and another file of the same version.
        self.assertFalse(self.compiles(ptxas=second))
        os.utime(first, (1, 1))
        self.assertFalse(self.compiles())
        compiler.fake_tessera_install_ptxas(str(first).encode(), b"12.9")
        os.utime(first, (2, 2))
        self.assertTrue(self.compiles())
        first.write_text("a later assembler")
        self.assertTrue(self.compiles())
        self.assertFalse(self.compiles())
        with unittest.mock.patch.dict(os.environ, {"PATH": str(self.root)}):
            compiler.fake_tessera_install_ptxas(str(second).encode(), b"12.10")
            self.assertTrue(self.compiles())
        first.unlink()
        compiler.fake_tessera_install_ptxas(b"", b"")
        self.assertTrue(self.compiles())

    def test_compiler(self):
        """A copy of the compiler elsewhere is the same one."""
        path = _compile._compiler()._name
        copy = self.root / "copy.so"
        copy.write_bytes(pathlib.Path(path).read_bytes())
        os.utime(copy, (1, 1))
        self.assertRegex(_library.build_id(path), "^[0-9a-f]{16,40}$")
        self.assertEqual(_library.build_id(copy), _library.build_id(path))
        copy.write_bytes(b"text")
        with self.assertRaisesRegex(tessera.LibraryError, "is no library of a little-endian 64-bit machine"):
            _library.build_id(copy)

    def test_ptxas_of_the_interpreter(self):
        directory = self.root / "site" / "nvidia" / "cu13" / "bin"
        directory.mkdir(parents=True)
        path = directory / "ptxas"
        path.write_text("an assembler")
        with unittest.mock.patch.object(sys, "path", [str(self.root / "none"), str(self.root / "site")]):
            self.assertIsNone(_compile.find_own_ptxas())
            path.chmod(0o755)
            self.assertEqual(_compile.find_own_ptxas(), str(path))

    def test_ptxas_in_the_working_directory(self):
        """Modules may come from there; programs do not."""
        directory = self.root / "nvidia" / "cu13" / "bin"
        directory.mkdir(parents=True)
        (directory / "ptxas").write_text("#!/bin/sh")
        (directory / "ptxas").chmod(0o755)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        for place in (self.root, directory):
            os.chdir(place)
            here = os.path.relpath(self.root)
            for path in ("", here, os.path.join(here, "cache", ".."), *([str(self.root)] if place == self.root else [])):
                with unittest.mock.patch.object(sys, "path", [path]):
                    self.assertIsNone(_compile.find_own_ptxas())

    def test_ptxas_of_ptx(self):
        self.assertTrue(self.compiles(image="ptx"))
        compiler.fake_tessera_install_ptxas(b"/x/ptxas", b"12.9")
        self.assertFalse(self.compiles(image="ptx"))


class Known(CacheCase):
    """Whatever of what a kernel is known by becomes another one, the kernel is compiled again, and each is kept."""

    def setUp(self):
        super().setUp()
        self.count, self.before_it_compiles = 0, lambda: None

        def compile_bundle(*_):
            self.count += 1
            self.before_it_compiles()
            return SOURCE.encode()

        patch = unittest.mock.patch.object(_compile, "compile_bundle", compile_bundle)
        patch.start()
        self.addCleanup(patch.stop)

    def compiles(self, source=SOURCE, **options):
        _compile._bundles.clear()
        before = self.count
        tessera.compile(source, **options)
        return self.count > before

    def compiles_once(self, source=SOURCE, **options):
        self.assertTrue(self.compiles(source, **options), options)
        self.assertFalse(self.compiles(source, **options), options)

    def test_requests(self):
        database = self.root / "database"
        database.write_text("one")
        requests = [
            {}, {"N": 1}, {"N": 2}, {"M": 1}, {"N": True}, {"N": 1, "M": 1}, {"schedule": "stages=2"}, {"schedule": "stages=3"},
            {"image": "ptx"}, {"gpu": "NVIDIA H200"}, {"shape": {"SQ": 64}}, {"shape": {"SQ": 65}}, {"shape": {"SK": 64}},
            {"shape_class": "few-short"}, {"instrument": "timeline"}, {"alternatives": True}, {"database": False},
            {"database": database}, {"kernel": "scale"},
        ]  # fmt: skip
        for request in requests:
            self.compiles_once(**request)
        for request in requests:
            self.assertFalse(self.compiles(**request), request)
        database.write_text("two")
        self.compiles_once(database=database)
        self.compiles_once(shape={"SQ": 64, "SK": 3})
        self.assertFalse(self.compiles(shape={"SK": 3, "SQ": 64}))

    def test_sources(self):
        for source in ("a\n", "a\n\n", " a\n", "a\n\0"):
            self.compiles_once(source)
        # Texts of several files are not those of one.
        path = self.root / "a.tile"
        (self.root / "b").mkdir()
        for name in ("c.tile", "d.tile", "b/c.tile", "attention.tile"):
            path.write_text(f'// $import "none.tile"\n$import "{name}"')
            self.compiles_once(path)
            for text in ("", "x", "xx", f'$import "{name}"'):
                (self.root / name).write_text(text)
                self.compiles_once(path)
            (self.root / name).unlink()
            self.assertFalse(self.compiles(path))

    def test_tools(self):
        self.compiles_once()
        with unittest.mock.patch.object(_compile, "_compiler_identity", lambda: "another"):
            self.compiles_once()

    def test_file_that_changes_meanwhile(self):
        """What the compiler has read is not known then."""
        path, imported = self.root / "a.tile", self.root / "b.tile"
        path.write_text('$import "b.tile"')
        imported.write_text("one")
        self.before_it_compiles = lambda: imported.write_text(imported.read_text() + "x")
        self.assertTrue(self.compiles(path))
        self.before_it_compiles = lambda: None
        imported.write_text("one")
        self.compiles_once(path)

    def test_facts(self):
        """What the compiler has said of a source, without a bundle."""
        found = []

        def find(*identity):
            return _program.find_fact(*identity, lambda: found.append(identity) or "said")

        for identity in (("name", SOURCE, []), ("other", SOURCE, []), ("name", SOURCE + "\n", []), ("name", SOURCE, [{"D": 64}])):
            self.assertEqual([find(*identity) for _ in range(2)], ["said", "said"])
            self.assertEqual(found.pop(), identity)
            self.assertEqual(found, [])


class Places(CacheCase):
    def test_none(self):
        os.environ["TESSERA_CACHE_DIR"] = ""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertTrue(self.compiles())
            self.assertTrue(self.compiles())

    def test_link_to_a_directory(self):
        (self.root / "elsewhere").mkdir()
        self.place.symlink_to(self.root / "elsewhere")
        self.assertTrue(self.compiles())
        self.assertFalse(self.compiles())

    def test_something_else_in_place_of_the_directory(self):
        self.place.write_text("")
        self.assertKeepsNothing("exists")
        for make in (lambda: os.mkfifo(self.place), lambda: self.place.symlink_to(self.root / "missing")):
            self.place.unlink()
            _cache._warned.clear()
            make()
            self.assertKeepsNothing("exists")
        os.environ["TESSERA_CACHE_DIR"] = str(self.root / "cache" / "below")
        self.place.unlink()
        self.place.write_text("")
        self.assertKeepsNothing("[Nn]ot a directory|exists")

    def test_homes(self):
        def place(**environment):
            with unittest.mock.patch.dict(os.environ, environment, clear=True):
                return _cache.directory()

        self.assertEqual(place(HOME="/h"), "/h/.cache/tessera")
        self.assertEqual(place(HOME="/h", XDG_CACHE_HOME="/x"), "/x/tessera")
        self.assertEqual(place(HOME="/h", XDG_CACHE_HOME="x"), "/h/.cache/tessera")
        self.assertEqual(place(TESSERA_CACHE_DIR="t", HOME="/h"), "t")
        with self.assertWarnsRegex(RuntimeWarning, "there is no home directory"):
            self.assertIsNone(place(HOME=""))
        _cache._warned.clear()
        with unittest.mock.patch("pwd.getpwuid", side_effect=KeyError):
            with self.assertWarnsRegex(RuntimeWarning, "there is no home directory"):
                self.assertIsNone(place())
            self.assertIsNone(place())

    def test_no_home(self):
        del os.environ["TESSERA_CACHE_DIR"]
        with unittest.mock.patch.dict(os.environ, {"HOME": "", "XDG_CACHE_HOME": ""}):
            self.assertKeepsNothing("there is no home directory")


class FullDisk(CacheCase):
    def test_write_fails(self):
        self.place.mkdir()
        with unittest.mock.patch.object(_cache.os, "fdopen", side_effect=self.open_full):
            self.assertKeepsNothing("No space left on device")
        self.assertEqual(list(self.place.iterdir()), [])

    @staticmethod
    def open_full(handle, mode):
        os.close(handle)
        return open("/dev/full", mode)  # Every write to it fails with ENOSPC.

    def test_limit_of_file_size(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
        try:
            self.assertKeepsNothing("File too large")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.assertEqual(list(self.place.iterdir()), [])
        self.assertTrue(self.compiles())
        self.assertFalse(self.compiles())

    @unittest.skipIf(os.geteuid() == 0, "root writes everywhere")
    def test_directory_without_permission(self):
        self.place.mkdir(mode=0o500)
        self.assertKeepsNothing("Permission denied")

    def test_directory_that_refuses(self):
        refusal = PermissionError(13, "Permission denied")
        with unittest.mock.patch.object(tempfile, "mkstemp", side_effect=refusal):
            self.assertKeepsNothing("Permission denied")


WORKER = """
import sys, tessera
from tessera._compiler import _compile
source = sys.stdin.read()
for i in range(20):
    _compile._bundles.clear()
    assert tessera.compile(source, N=i % 3).description["shared_memory"] == 65536
"""


class Processes(CacheCase):
    def test_at_a_time(self):
        """Processes that write, read and destroy the same entries."""
        workers = [
            subprocess.Popen([sys.executable, "-W", "error", "-c", WORKER], stdin=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        for worker in workers:
            worker.stdin.write(SOURCE)
            worker.stdin.close()
        while any(worker.poll() is None for worker in workers):
            for path in self.place.glob("*.entry"):
                try:
                    os.truncate(path, 100)
                except FileNotFoundError:
                    pass
        self.assertEqual([worker.wait() for worker in workers], [0] * 4)
        self.assertEqual(list(self.place.glob(".writing-*")), [])
        for i in range(3):
            self.compiles(N=i)
            self.assertFalse(self.compiles(N=i))


if __name__ == "__main__":
    unittest.main()
