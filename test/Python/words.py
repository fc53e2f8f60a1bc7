# RUN: rm -rf %t.cache
# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR=%t.cache %python %s %source
"""What the package says: of itself, in logs, and where a call or a function is wrong."""

import contextlib
import io
import logging
import os
import pathlib
import re
import subprocess
import sys
import unittest

import tessera

ROOT = pathlib.Path(sys.argv.pop())
SCALED = ROOT / "kernels/gemm.tile"


class WordsTest(unittest.TestCase):
    def test_version(self):
        project = (ROOT / "python/pyproject.toml").read_text()
        self.assertEqual(tessera.__version__, re.search(r'^version = "(.*)"$', project, re.MULTILINE)[1])
        done = subprocess.run([sys.executable, "-m", "tessera", "--version"], capture_output=True, text=True, check=True)
        self.assertTrue(done.stdout.startswith(f"tessera {tessera.__version__} "), done.stdout)

    def test_reprs(self):
        variant = tessera.Variant(score=lambda s, b, h, q, k, cap: s * cap, mask=tessera.masks.causal, cap=float)
        self.assertRegex(repr(variant), r"^tessera\.Variant\(score=<lambda>, mask=.*causal, cap=float\)$")
        self.assertRegex(repr(tessera.Mask(lambda b, h, q, k, n: k < n, n=("H",))), r"^tessera\.Mask\(<lambda>, n=\('H',\)\)$")
        self.assertRegex(repr(tessera.Program(SCALED)), r"^<tessera\.Program of .*gemm\.tile: a: !tile\.view<\[M, K\], bf16>, ")

    def test_values(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            tessera.Variant(score=lambda s, b, h, q, k: print(s, s * 2.0) or s)
        self.assertIn("<traced f32, a number in the kernel only, which tessera.print shows: given to the function>", printed.getvalue())
        self.assertIn("<traced f32, a number in the kernel only, which tessera.print shows: arith.mulf %s", printed.getvalue())

    def refuse(self, text, exception, call):
        with self.assertRaisesRegex(exception, text):
            call()

    def test_refusals(self):
        variant, program = tessera.Variant, tessera.Program(SCALED)
        called = r"words\.py:\d+: a score is called with \(score, b, h, q, k\); this one takes others: "
        self.refuse(called, tessera.TraceError, lambda: variant(score=lambda s, b, h, q: s))
        self.refuse(r"a mask is called with \(b, h, q, k\)", tessera.TraceError, lambda: variant(mask=lambda b, h: b == h))
        for name in ("score", "mask", "sink"):
            self.refuse(f"^the {name} is a int; it is a function$", TypeError, lambda: variant(**{name: 3}))  # noqa: B023
        self.refuse("^the source is a int; it is a text, a path, or the name", TypeError, lambda: tessera.Program(3))
        self.refuse("^3 is a int; it is a text$", TypeError, lambda: tessera.compile(SCALED, schedule=3))
        self.refuse("takes functions as score, mask and sink; 'scores' is none", TypeError, lambda: variant(scores=lambda *_: 0))
        indexed = "where an array is indexed by it: make the array an argument of the variant"
        self.refuse(indexed, tessera.TraceError, lambda: variant(score=lambda s, b, h, q, k: s + len(h)))
        # A mistake of the function itself stays what it is.
        self.refuse("TypeError: can only concatenate", tessera.TraceError, lambda: variant(score=lambda s, *_: [] + ()))
        for name, fault in (("foo", "unknown"), ("a", "given twice")):
            self.refuse(f"the argument '{name}' is {fault}; the kernel takes a, b, c", TypeError, lambda: program(1, **{name: 1}))
        self.refuse("the argument 'b' is missing; the kernel takes a, b, c", TypeError, lambda: program(1, c=1))

    def test_logs(self):
        options = {"D": 64, "image": "ptx", "cache": True}
        with self.assertLogs("tessera", logging.DEBUG) as logs:
            tessera.kernel("softmax", **options)
            tessera.kernel("softmax", **options)
        self.assertRegex(logs.output[0], r"^INFO:tessera:compiled softmax\.tile \(D=64\) in [\d.]+ s, key \w{12}, kept in ")
        self.assertRegex(logs.output[1], r"^DEBUG:tessera:found softmax\.tile \(D=64\) in memory, key \w{12}$")
        code = f"import tessera; tessera.kernel('softmax', **{options})"
        for level, shown in (("", ""), ("1", ""), ("debug", "tessera: found softmax.tile (D=64) in ")):
            environment = {**os.environ, "TESSERA_LOG": level}
            done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
            self.assertEqual(bool(done.stderr), bool(shown), done.stderr)
            self.assertIn(shown, done.stderr)


if __name__ == "__main__":
    unittest.main()
