# RUN: rm -rf %t && mkdir %t
# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %python %s %source/kernels %t %cc
"""Choices among kernels: the compiler's, the launcher library's and those of kernels as C are the same."""

import ctypes
import math
import os
import random
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))

import c_source
import fake_cuda

import tessera
from tessera._core import _library


def draw(rng, widest):
    """Extents of attention, those of tensors with padding among them, whose rows have up to `widest` elements."""
    group = rng.choice((1, 2, 8))
    heads = rng.choice((1, 2, 4)) * group
    columns = 8 * rng.randint(1, widest // 8)
    lengths = {"SQ": rng.randint(1, 32768), "SK": rng.randint(1, 32768)}
    return {"B": rng.randint(1, 64), "H": heads, "HK": heads // group, **lengths, "DQ": columns, "DO": columns}


class CChoice(unittest.TestCase):
    DEFINES, WIDTH = ("-DD=64", "-DCAUSAL=true"), 64

    @classmethod
    def setUpClass(cls):
        os.mkdir(os.path.join(DIRECTORY, cls.__name__))
        cls.stem = os.path.join(DIRECTORY, cls.__name__, "attend")
        command = ["tessera", "compile", os.path.join(KERNELS, "attention_fwd.tile"), "--ptx", "--alternatives"]
        command += cls.DEFINES
        subprocess.run([*command, "-o", cls.stem + ".bundle"], check=True)
        subprocess.run([*command, "--emit", "c", "-o", cls.stem + ".c"], check=True)
        flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run([CC, *flags, cls.stem + ".c", "-o", cls.stem + ".so"], check=True)
        fast = ["-std=c99", "-shared", "-fPIC", "-O2", "-ffast-math", "-w"]
        subprocess.run([CC, *fast, cls.stem + ".c", "-o", cls.stem + "_fast.so"], check=True)
        subprocess.run([CC, "-x", "c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", cls.stem + ".h"], check=True)
        cls.library, cls.fast = (ctypes.CDLL(cls.stem + end) for end in (".so", "_fast.so"))
        cls.kernel = tessera.load(cls.stem + ".bundle")

    def setUp(self):
        fake_cuda.reset()
        fake_cuda.set_parameters([])
        fake_cuda.library.fake_cuda_set_device(0)

    def make_values(self, extents):
        values = []
        for number, argument in enumerate(self.kernel.description["arguments"]):
            if argument["kind"] == "scalar":
                values.append(ctypes.c_float(0.125))
                continue
            shape = [extents.get(dim, dim) for dim in argument["dims"]]
            strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
            address = fake_cuda.MEMORY + (number << 37)
            values.append(c_source.Tensor(address, c_source._to_array(shape), c_source._to_array(strides)))
        return values

    def launch_c(self, extents, alternative=None):
        """(status, message, what the driver sees)."""
        passed = [ctypes.byref(v) if isinstance(v, c_source.Tensor) else v for v in self.make_values(extents)]
        error = ctypes.create_string_buffer(500)
        arguments = (0, ctypes.c_void_p(0x77), *passed, error, ctypes.c_size_t(500))
        if alternative is None:
            status = self.library.attend(*arguments)
        else:
            status = self.library.attend_alternative(alternative, *arguments)
        return status, error.value.decode(), fake_cuda.last_launch() if status == 0 else None

    def launch_own(self, extents, **options):
        """What the driver sees."""
        kernel, values = self.kernel, self.make_values(extents)
        handle = kernel.alternative(options["alternative"]) if options else kernel
        array = (_library.Argument * len(values))()
        for argument, value, entry in zip(array, values, kernel.description["arguments"]):
            if entry["kind"] == "scalar":
                argument.type = _library.SCALARS[entry["type"]].scalar
                argument.scalar.f32 = value.value
                continue
            argument.pointer, argument.shape, argument.strides = value.data, value.shape, value.strides
            argument.type, argument.rank = _library.ELEMENT_TYPES[entry["element"]], len(entry["dims"])
        launch = _library.runtime().tessera_kernel_launch
        _library.check(launch(handle._handle, 0, 0x77, array, len(values)))
        return fake_cuda.last_launch()

    def choose(self, extents):
        return self.kernel.choice(**{name: extents[name] for name in self.kernel.description["dims"]})

    def choose_c(self, extents, library=None):
        dims = c_source._to_array([extents[name] for name in self.kernel.description["dims"]])
        times = (ctypes.c_double * len(self.kernel.alternatives))()
        return (library or self.library).attend_choice(dims, times), list(times)

    def test_same_choice(self):
        rng, taken = random.Random(1), set()
        for _ in range(500):
            extents = draw(rng, self.WIDTH)
            with self.subTest(extents):
                choice = self.choose(extents)
                self.assertEqual(self.choose_c(extents), (choice.index, list(choice.microseconds.values())))
                self.assertEqual(choice.microseconds[choice.name], min(choice.microseconds.values()))
                taken.add(choice.name)
        self.assertEqual(taken, set(self.kernel.alternatives))

    def test_fast_math(self):
        """Whatever a compiler does to sums of doubles, quotients are exact."""
        rng = random.Random(4)
        for _ in range(300):
            extents = draw(rng, self.WIDTH)
            with self.subTest(extents):
                for time, fast in zip(self.choose_c(extents)[1], self.choose_c(extents, self.fast)[1]):
                    self.assertAlmostEqual(fast / time, 1, delta=1e-12)

    def test_same_launch(self):
        rng, seen = random.Random(2), set()
        for _ in range(40):
            extents = draw(rng, self.WIDTH)
            with self.subTest(extents):
                own, (status, _, found) = self.launch_own(extents), self.launch_c(extents)
                self.assertEqual((status, found), (0, own))
                seen.add(found[1])
        self.assertGreater(len(seen), 1)

    def test_forced(self):
        extents = draw(random.Random(3), self.WIDTH)
        seen = set()
        for index, name in enumerate(self.kernel.alternatives):
            own = self.launch_own(extents, alternative=name)
            self.assertEqual(self.launch_c(extents, alternative=index), (0, "", own))
            seen.add(own[1])
        # Two tiles with clusters and without have the same parameters.
        self.assertGreater(len(seen), 1)
        count = len(self.kernel.alternatives)
        names = (ctypes.c_char_p * count).in_dll(self.library, "attend_alternatives")
        self.assertEqual([name.decode() for name in names], list(self.kernel.alternatives))
        for index in (-1, count):
            status, message, _ = self.launch_c(extents, alternative=index)
            self.assertEqual((status, message), (2, f"there are {count} alternatives, and none at position {index}"))

    def test_refuses(self):
        extents = {"B": 1, "H": 3, "SQ": 64, "HK": 2, "SK": 64, "DQ": 64, "DO": 64}
        status, message, _ = self.launch_c(extents)
        self.assertEqual((status, "must be a multiple of" in message), (2, True))
        self.assertEqual(self.choose_c(extents), (0, [math.inf] * len(self.kernel.alternatives)))
        self.assertEqual(self.choose_c({**extents, "H": -1})[0], -1)
        self.assertEqual(self.choose_c({**extents, "H": 2**31})[0], -1)


class PaddedCChoice(CChoice):
    DEFINES, WIDTH = ("-DD=96", "-DPADDED=true"), 96
    #: What the name of the alternative for rows amid sectors has.
    MARK = "BN64"

    def test_rows_amid_sectors(self):
        """Blocks of keys are small, or two blocks of queries share them, where rows begin amid sectors, and only there."""
        extents = {"B": 4, "H": 21, "HK": 21, "SQ": 4096, "SK": 4096}
        for past, is_amid in ((0, False), (8, True), (16, False), (24, True), (self.WIDTH - 8, True), (self.WIDTH - 16, False)):
            columns = self.WIDTH - past
            name = self.choose({**extents, "DQ": columns, "DO": columns}).name
            self.assertEqual(self.MARK in name, is_amid, (columns, name))
        self.assertIn(self.MARK, self.choose({**extents, "DQ": self.WIDTH, "DO": self.WIDTH - 8}).name)


class SharedChoice(unittest.TestCase):
    """Two alternatives, of which shapes that are drawn seldom take one: what rows amid sectors take alone."""

    DEFINES, WIDTH = ("-DD=160", "-DPADDED=true"), 160
    MARK = "SHAREDtrue"
    choose, test_rows_amid_sectors = CChoice.choose, PaddedCChoice.test_rows_amid_sectors

    @classmethod
    def setUpClass(cls):
        CChoice.setUpClass.__func__(cls)


if __name__ == "__main__":
    KERNELS, DIRECTORY, CC = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1])
