# RUN: env TESSERA_LIBRARY=%build/lib %python %s
"""The files that a source consists of: the cache's key has those that the compiler reads."""

import json
import os
import pathlib
import random
import tempfile
import unittest
import unittest.mock

import tessera
from tessera._compiler import _compile
from tessera._core import _imports

BODY = """!X = !tile.view<[M, 64], f32>
!T = tensor<$Bx64xf32>
tile.kernel @k(%x: !X, %y: !X) grid(%m = M ceildiv $B) {
  %c0 = arith.constant 0 : index
  %b = arith.constant $B : index
  %row = arith.muli %m, %b : index
  %t = tile.load %x[%row, %c0] : !X -> !T
  tile.store %t, %y[%row, %c0] : !T, !X
}
"""
DECLARATION = "param B : int = {}\n"


class Imports(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        environment = unittest.mock.patch.dict(os.environ, {"TESSERA_CACHE_DIR": str(self.root / "cache")})
        environment.start()
        self.addCleanup(environment.stop)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        path.write_text(text)

    def link(self, name, target):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    def compile(self, **options):
        _compile._bundles.clear()  # As another process.
        kernel = tessera.compile(self.root / "a.tile", image="ptx", **options)
        return kernel.description["grid"][0]["divisor"]

    def test_rules(self):
        """What a source's rules, those of a call and those of the environment choose, each also where only they change."""

        def write(name, value):
            rule = {"source": "a.tile", "take": {"B": value}}
            text = {"format": "tessera-rules", "version": 1, "rules": [rule]}
            self.write(name, json.dumps(text))

        self.write("a.tile", '$rules "own.json"\nparam B : int in 64..256 step 64\n' + BODY)
        for own in (64, 192):
            write("own.json", own)
            self.assertEqual(self.compile(), own)
            for given in (128, 256):
                write("given.json", given)
                self.assertEqual(self.compile(rules=self.root / "given.json"), given)
                self.assertEqual(self.compile(rules=[self.root / "given.json"]), given)
                with unittest.mock.patch.dict(os.environ, {"TESSERA_RULES": str(self.root / "given.json")}):
                    self.assertEqual(self.compile(), given)
                    self.assertEqual(tessera.Program(self.root / "a.tile").parameters, {"B": given})
            self.assertEqual(self.compile(B=64), 64)
        with self.assertRaisesRegex(tessera.CompileError, "none.json:1:1: error: cannot read the rules: No such file"):
            self.compile(rules=self.root / "none.json")
        write("given.json", 100)
        with self.assertRaisesRegex(tessera.CompileError, "given.json:1:.*: error: parameter 'B' cannot be 100"):
            self.compile(rules=self.root / "given.json")

    def test_link(self):
        """What a file imports that is a link lies beside the link."""
        self.write("a.tile", '$import "s/c.tile"\n' + BODY)
        self.write("real_c.tile", '$import "d.tile"\n')
        self.link("s/c.tile", "../real_c.tile")
        for beside_target, beside_link in ((64, 64), (64, 128), (192, 128), (192, 64)):
            self.write("d.tile", DECLARATION.format(beside_target))
            self.write("s/d.tile", DECLARATION.format(beside_link))
            self.assertEqual(self.compile(), beside_link)
            self.assertEqual(self.compile(cache=False), beside_link)

    def read_key(self):
        path = self.root / "a.tile"
        return _imports.read_whole(path.read_bytes(), str(path))

    def test_any_files(self):
        """Of files with links among them that a source of one key consists of, the compiler reads the same."""
        draw = random.Random(0)
        places = ["", "s/", "s/t/", "u/"]
        known, read = {}, 0
        for name in ("a.tile", "s/c.tile", "s/t/c.tile", "u/c.tile"):
            self.write(name, DECLARATION.format(1))
        for _ in range(600):
            name = draw.choice(places) + draw.choice(["c.tile", "d.tile", "attention.tile"])
            kind = draw.randrange(4)
            if kind == 0:
                self.link(name, os.path.relpath(self.root / draw.choice(places) / draw.choice(["c.tile", "d.tile"]), (self.root / name).parent))
            elif kind == 1:
                self.write(name, DECLARATION.format(draw.randrange(4)) + draw.choice(["", "// text\n"]))
            else:
                imports = draw.choice(["c.tile", "d.tile", "t/c.tile", "../c.tile", "../d.tile", "s/d.tile", "../u/d.tile"])
                self.write(draw.choice([name, "a.tile"]), f'// "\n$ import // text "\n "{imports}" $import "attention.tile"\n')
            key = self.read_key()
            try:
                found = tessera.Program(self.root / "a.tile").parameters.get("B")
            except tessera.CompileError as error:
                # Without a kernel that reads it nothing but the parameters is known.
                found = str(error).partition("error")[2]
            self.assertEqual(known.setdefault(key, found), found)
            read += isinstance(found, int)
        self.assertGreater(len(known), 100)


if __name__ == "__main__":
    unittest.main()
