# RUN: env TESSERA_LIBRARY=%build/lib %python %s %source
"""Running a source on the CPU, through the package and the interpreter."""

import ctypes
import os
import pathlib
import struct
import sys
import tempfile
import unittest

import tessera

KERNELS = sys.argv.pop() + "/kernels/"

SOURCE = """
param N : int = 16 in [16, 32]
tile.kernel @double(%x: !tile.view<[S, $N], f32>, %y: !tile.view<[S, $N], f16>, %a: f32)
    grid(%i = S ceildiv 16) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %row = arith.muli %i, %c16 : index
  %t = tile.load %x[%row, %c0] : !tile.view<[S, $N], f32> -> tensor<16x$Nxf32>
  %s = tile.splat %a : f32 -> tensor<16x$Nxf32>
  %u = arith.mulf %t, %s : tensor<16x$Nxf32>
  %v = arith.truncf %u : tensor<16x$Nxf32> to tensor<16x$Nxf16>
  tile.store %v, %y[%row, %c0] : tensor<16x$Nxf16>, !tile.view<[S, $N], f16>
}
"""

# Copies the left half of 16 rows.
INTEGERS = """
tile.kernel @copy(%x: !tile.view<[S, 32], i64>, %y: !tile.view<[S, 32], i64>) grid(%i = S ceildiv 16) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<[S, 32], i64> -> tensor<16x16xi64>
  tile.store %t, %y[%c0, %c0] : tensor<16x16xi64>, !tile.view<[S, 32], i64>
}
"""


class Array:
    """An array of numbers with the interface of numpy's; rows are `stride` elements apart."""

    def __init__(self, shape, code, stride=None):
        self.size = struct.calcsize(code)
        self.code, self.stride = code, stride or shape[1]
        self.memory = ctypes.create_string_buffer(shape[0] * self.stride * self.size)
        self.__array_interface__ = {
            "shape": shape,
            "typestr": ("<i" if code in "iq" else "<f") + str(self.size),
            "strides": (self.stride * self.size, self.size),
            "data": (ctypes.addressof(self.memory), False),
            "version": 3,
        }

    def __getitem__(self, index):
        return struct.unpack_from(self.code, self.memory, (index[0] * self.stride + index[1]) * self.size)[0]

    def __setitem__(self, index, value):
        struct.pack_into(self.code, self.memory, (index[0] * self.stride + index[1]) * self.size, value)


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.x, self.y = Array((20, 16), "f", stride=24), Array((20, 16), "e")
        self.program = tessera.Program(SOURCE)

    def test_parameters(self):
        """With those that are left to their defaults."""
        self.assertEqual(self.program.parameters, {"N": 16})
        self.assertEqual(tessera.Program(SOURCE.replace("param N : int = 16 in [16, 32]\n", "").replace("$N", "16")).parameters, {})
        found = tessera.Program(KERNELS + "attention_fwd.tile", D=64, T="f16").parameters
        self.assertEqual((found["D"], found["DV"], found["T"], found["CAUSAL"]), (64, 64, "f16", False))

    def test_run(self):
        for row in range(20):
            self.x[row, 3] = row + 0.5
        self.program(self.x, self.y, 2.0)
        self.assertEqual([self.y[row, 3] for row in range(20)], [2 * row + 1 for row in range(20)])
        self.program(self.x, self.y, 3)
        self.assertEqual(self.y[1, 3], 4.5)

    def test_strides_that_are_absent_are_those_of_c(self):
        self.y.__array_interface__["strides"] = None
        self.x[19, 15] = 1.25
        self.program(self.x, self.y, 2)
        self.assertEqual(self.y[19, 15], 2.5)

    def test_arrays_of_f32(self):
        """Host memory may have f32 where a view is narrower: numbers are rounded as the view has them."""
        y = Array((20, 16), "f")
        self.x[3, 4] = 1 + 2**-12
        self.program(self.x, y, 1.0)
        self.assertEqual(y[3, 4], 1.0)

    def test_refusals(self):
        for arguments, exception, text in (
            ((self.x, self.y), ValueError, "takes 3 arguments; 2 were given"),
            ((self.y, self.y, 1), ValueError, "argument 'x' has another type than the elements of its view, 'f32'"),
            ((self.x, Array((19, 16), "e"), 1), ValueError, "dimension 0 of the tensor for 'y' is 19"),
            ((self.x, Array((20, 16), "i"), 1), ValueError, "argument 'y' has another type than the elements of its view, 'f16': i32"),
            ((self.x, 1, 1), ValueError, "argument 'y' has another type"),
            ((self.x, self.y, self.x), ValueError, "argument 'a' is a scalar of type 'f32' and takes a number"),
            ((self.x, self.y, "1"), TypeError, "argument 'a' is a str"),
            ((self.x, Array((20, 16), "d"), 1), TypeError, "argument 'y' has type '<f8'; kernels take .* and float32 for"),
        ):
            with self.subTest(text), self.assertRaises(exception) as caught:
                self.program(*arguments)
            self.assertRegex(str(caught.exception), text)

    def test_options(self):
        """What is no option and no name of a parameter is refused by itself, with the nearest option."""
        for name, text in (
            ("kernl", "there is no option 'kernl'.*; did you mean 'kernel'"),
            ("n", "there is no option 'n'.*; did you mean 'N'"),
            ("frobnicate", "there is no option 'frobnicate', and parameters of sources have names in upper case$"),
        ):
            for function in (tessera.Program, tessera.compile):
                with self.subTest(text), self.assertRaisesRegex(TypeError, text):
                    function(INTEGERS, **{name: 1})

    def test_integers_that_no_double_holds(self):
        program, x, y = tessera.Program(INTEGERS), Array((16, 32), "q"), Array((16, 32), "q")
        y[3, 20] = 2**53 + 1
        for number in (-(2**53), 2**53 + 1, -(2**53) - 1, 0x7FF8 << 48, 2**63 - 1, -(2**63), -1):
            x[3, 4] = number
            program(x, y)
            # What the kernel does not write stays.
            self.assertEqual([y[3, 4], y[3, 20]], [number, 2**53 + 1])

    def test_indices_as_numbers(self):
        program = tessera.Program(INTEGERS.replace("@copy(", "@copy(%row: index, ").replace("%x[%c0", "%x[%row"))
        x, y = Array((16, 32), "q"), Array((16, 32), "q")
        x[3, 4] = 5
        program(3, x, y)
        self.assertEqual(y[0, 4], 5)
        with self.assertRaisesRegex(ValueError, "argument 'row' takes an integer of type 'index'"):
            program(1.5, x, y)

    def test_arrays_that_are_read_only(self):
        for array in (self.x, self.y):
            array.__array_interface__["data"] = (ctypes.addressof(array.memory), True)
        with self.assertRaisesRegex(ValueError, "argument 'y' is read-only; the kernel writes it"):
            self.program(self.x, self.y, 2.0)
        self.program(self.x, Array((20, 16), "e"), 2.0)

    def test_sources(self):
        with self.assertRaisesRegex(tessera.CompileError, "N=17") as caught:
            tessera.Program(SOURCE, N=17)
        self.assertEqual(caught.exception.status, "usage")
        with self.assertRaisesRegex(tessera.CompileError, "the source has no kernel 'triple'; it has double"):
            tessera.Program(SOURCE, kernel="triple")
        with self.assertRaisesRegex(tessera.CompileError, "the source has several kernels; name one of double, other"):
            tessera.Program(SOURCE + SOURCE.split("\n", 2)[2].replace("@double", "@other"))

    def test_shape_classes(self):
        program = tessera.Program(KERNELS + "attention_fwd.tile", D=128)
        self.assertEqual(program.shape_class(B=1, H=2, HK=1, SQ=100, SK=130), "few-short")
        self.assertEqual(program.shape_class(B=16, H=16, HK=16, SQ=16384, SK=16384), "many-long")
        self.assertIsNone(program.shape_class(B=1))

    def test_shipped_kernels_by_name(self):
        with self.assertRaisesRegex(ValueError, "no kernel 'nothing' ships with this package; there are attention, attention_blocks, attention_bwd, attention_bwd_deterministic, attention_bwd_statistics,"):
            tessera.kernel("nothing")
        for outside in ("../kernels/gemm", "/gemm", "linear/../gemm"):
            with self.assertRaisesRegex(ValueError, "ships with this package"):
                tessera.kernel(outside)
        with self.assertRaisesRegex(tessera.CompileError, "DK=100"):
            tessera.kernel("linear/retention", DK=100)
        with self.assertRaisesRegex(tessera.CompileError, "D=100"):
            tessera.kernel("attention_fwd", D=100)
        with self.assertRaisesRegex(ValueError, "no kernel 'gemmm' ships with this package; did you mean 'gemm'.; there are"):
            tessera.kernel("gemmm")

    def test_shipped_sources_by_name(self):
        for name in ("gemm", "gemm.tile", "linear/retention"):
            self.assertEqual(tessera.Program(name).names, tessera.Program(f"{KERNELS}{name.removesuffix('.tile')}.tile").names)
        with self.assertRaisesRegex(FileNotFoundError, "and no kernel 'sotfmax' ships with this package; did you mean 'softmax'.: 'sotfmax.tile'"):
            tessera.Program("sotfmax.tile")
        # A file comes first, and a name is never that of a file elsewhere.
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "gemm").write_text(SOURCE)
            self.assertEqual(tessera.Program(os.path.join(folder, "gemm")).names, tessera.Program(SOURCE).names)
            for outside in ("../kernels/gemm", os.path.join(folder, "softmax.tile")):
                with self.assertRaises(FileNotFoundError):
                    tessera.Program(outside)


if __name__ == "__main__":
    unittest.main()
