# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %python %s
"""The cell magic of notebooks, in a shell that has what IPython gives it."""

import contextlib
import ctypes
import io
import struct
import unittest

import tessera

CELL = """
param N : int = 512 in [512, 1024]
!X = !tile.view<[$N], f32>
tile.kernel @twice(%x: !X, %y: !X) grid(%m = 1) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !X -> tensor<$Nxf32>
  %u = arith.addf %t, %t : tensor<$Nxf32>
  tile.store %u, %y[%c0] : tensor<$Nxf32>, !X
}
"""


class Shell:
    def __init__(self):
        self.user_ns, self.magics = {}, {}

    def register_magic_function(self, function, magic_kind, magic_name):
        self.magics[magic_kind, magic_name] = function


class Array:
    def __init__(self, values):
        self.buffer = ctypes.create_string_buffer(struct.pack(f"<{len(values)}f", *values))
        self.__array_interface__ = {
            "shape": (len(values),), "typestr": "<f4", "data": (ctypes.addressof(self.buffer), False), "version": 3,
        }  # fmt: skip

    def read(self, count):
        return struct.unpack_from(f"<{count}f", self.buffer)


class NotebookTest(unittest.TestCase):
    def setUp(self):
        self.shell = Shell()
        tessera.load_ipython_extension(self.shell)

    def run_cell(self, line, cell):
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            self.shell.magics["cell", "tile"](line, cell)
        return output.getvalue(), errors.getvalue()

    def test_binds_programs(self):
        output, errors = self.run_cell("--cpu -D N=1024", CELL)
        self.assertEqual((output, errors), ("bound: twice\n", ""))
        x, y = Array(range(1024)), Array([0] * 1024)
        self.shell.user_ns["twice"](x, y)
        self.assertEqual(y.read(1024), tuple(range(0, 2048, 2)))

    def test_shows_remarks(self):
        self.assertIn("remark: schedule chosen", self.run_cell("--cpu --remarks", CELL)[1])

    def test_refuses(self):
        with self.assertRaisesRegex(tessera.CompileError, "<source>:6:8: error: there is no operation 'arith.nothing'"):
            self.run_cell("--cpu", CELL.replace("tile.load", "arith.nothing"))
        with self.assertRaisesRegex(ValueError, "unrecognized arguments: --gpu; usage: %%tile"):
            self.run_cell("--gpu", CELL)
        with self.assertRaisesRegex(ValueError, "-D expects NAME=VALUE, got 'N'"):
            self.run_cell("-D N", CELL)
        self.assertEqual(self.shell.user_ns, {})


unittest.main()
