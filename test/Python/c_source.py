# RUN: rm -rf %t && mkdir %t
# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %python %s %source/kernels %t %cc
"""Kernels as C: what `tessera compile --emit c` writes compiles as C99 and calls the driver as the launcher library does."""

import copy
import ctypes
import gc
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))

import fake_cuda

import tessera
from tessera._core import _library

ATTENTION = {"B": 2, "H": 4, "SQ": 100, "HK": 2, "SK": 130, "DQ": 72, "DO": 40}
MATRIX = {"M": 300, "N": 520, "K": 264}
SCALARS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float}
CASES = (
    ("attention_fwd", {}, ATTENTION),
    ("attention_fwd", {"CAUSAL": "true", "T": "f16", "D": "64", "LSE": "false"}, ATTENTION),
    ("attention_fwd", {"D": "96", "DV": "64", "PADDED": "true"}, ATTENTION),
    ("attention_variants", {"MASK": "window", "SOFTCAP": "exact", "ALIBI": "true"}, ATTENTION),
    ("gemm", {}, MATRIX),
    ("gemm", {"BIAS": "true", "B_TRANSPOSED": "false"}, MATRIX),
    ("softmax", {}, MATRIX),
    ("layer_norm", {}, MATRIX),
    ("gemm", {"T": "f8E4M3FN", "SCALES": "blocks"}, {**MATRIX, "K": 272, "KB": 3}),
    ("gemm", {"SPLITS": "8"}, MATRIX),
    ("embedding", {}, {"V": 1000, "N": 300}),
    ("quantize", {}, {"B": 2, "H": 4, "SX": 300}),
    ("attention_fp8", {}, {**ATTENTION, "SK": 144}),
    # Maps whose strides wrap.
    ("linear/retention", {"PACKED": "true", "IN_PLACE": "true", "INITIAL": "true", "DV": "32"},
     {"B": 1, "H": 2, "HK": 1, "HV": 1, "L": 300, "V": 64, "S": 3, "N": 7}),
)
#: Parts of 2048 columns of A.
SPLIT = {"PART": "32", "BN": "128"}
SEQUENCES = (
    ("attention_bwd", {}, ATTENTION),
    ("attention_bwd", {"FIXED": "true"}, ATTENTION),
    ("attention_bwd", {"CAUSAL": "true", "T": "f16", "D": "64", "DLSE": "true"}, ATTENTION),
    ("attention_bwd_deterministic", {"D": "256"}, ATTENTION),
    ("gemm", SPLIT, {**MATRIX, "K": 4504}),
)
#: One workspace begins as 0, and one launch has nothing to do where N is 0.
ZEROED = """
!X = !tile.view<[M, 512], f32>
!Y = !tile.view<[512], f32>
!Tile = tensor<64x512xf32>
tile.kernel @sums(%x: !X, %y: !Y) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %t = tile.load %x[%row, %c0] : !X -> !Tile
  %sum = tile.reduce sum %t axis 0 : !Tile -> tensor<512xf32>
  tile.store %sum, %y[%c0] add : tensor<512xf32>, !Y
}
tile.kernel @copy(%x: !Y, %y: !Y) grid(%one = 1) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !Y -> tensor<512xf32>
  tile.store %t, %y[%c0] : tensor<512xf32>, !Y
}
tile.sequence @total(%x: !X, %y: !Y) dims(PARTS = M ceildiv 2) {
  %unused = tile.workspace : !tile.view<[PARTS, 512], f32>
  %sum = tile.workspace zeroed : !Y
  tile.launch @sums(%x, %sum) : !X, !Y
  tile.launch @copy(%sum, %y) : !Y, !Y
}
"""
SYMBOLS = iter(range(1000))


class Tensor(ctypes.Structure):
    """tessera_tensor of the header"""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


class Kernel:
    """A kernel both ways, and values of its arguments."""

    def __init__(self, source, parameters, extents, schedule=None, options=()):
        name = f"kernel_{next(SYMBOLS)}"
        stem = os.path.join(DIRECTORY, name)
        command = ["tessera", "compile", source if os.path.isabs(source) else os.path.join(KERNELS, source + ".tile"), "--ptx"]
        command += [f"-D{key}={value}" for key, value in parameters.items()]
        command += ["--schedule", schedule] if schedule else []
        command += options
        subprocess.run([*command, "-o", stem + ".bundle"], check=True)
        subprocess.run([*command, "--emit", "c", "-o", stem + ".c"], check=True)
        flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run([CC, *flags, stem + ".c", "-o", stem + ".so"], check=True)
        with open(stem + ".bundle", "rb") as file:
            self.bundle = file.read()
        self.own = tessera.load(stem + ".bundle")
        self.description = self.own.description
        self.function = getattr(ctypes.CDLL(stem + ".so"), name)
        #: Of each view [address, shape, strides], of a scalar its value.
        self.values = []
        for number, argument in enumerate(self.description["arguments"]):
            if argument["kind"] == "scalar":
                self.values.append(SCALARS[argument["type"]](number + 1))
                continue
            shape = [extents.get(dim, dim) for dim in argument["dims"]]
            strides = [1]
            for extent in reversed(shape[1:]):
                strides.insert(0, strides[0] * extent)
            self.values.append([fake_cuda.MEMORY + (number + 1 << 30), shape, strides])
        types = {"tensor_map": ctypes.c_char * 128, "i64": ctypes.c_int64, "i32": ctypes.c_int32, "f32": ctypes.c_float}
        kernels = {entry["name"]: entry for entry in json.loads(self.bundle)["kernels"]}
        steps = self.description.get("launches", [{"kernel": self.description["name"]}])
        #: Of each launch its parameters and their types.
        self.launches = [
            (entries, [types.get(entry["kind"]) or types.get(entry.get("type")) or ctypes.c_uint64 for entry in entries])
            for entries in (kernels[step["kernel"]]["launch_parameters"] for step in steps)
        ]

    def launch_own(self, device=0, stream=0x77):
        count = len(self.values)
        arguments = (_library.Argument * count)()
        for argument, value, info in zip(arguments, self.values, self.description["arguments"]):
            if info["kind"] == "scalar":
                argument.type = _library.SCALARS[info["type"]].scalar
                ctypes.memmove(ctypes.byref(argument.scalar), ctypes.byref(value), ctypes.sizeof(value))
                continue
            argument.type, argument.rank = _library.ELEMENT_TYPES[info["element"]], len(value[1])
            argument.pointer = value[0]
            argument.shape, argument.strides = map(_to_array, value[1:])
        _library.check(_library.runtime().tessera_kernel_launch(self.own._handle, device, stream, arguments, count))

    def launch_c(self, device=0, stream=0x77):
        """The reason why it fails, or None."""
        views = [value if not isinstance(value, list) else Tensor(value[0], *map(_to_array, value[1:])) for value in self.values]
        passed = [ctypes.byref(value) if isinstance(value, Tensor) else value for value in views]
        error = ctypes.create_string_buffer(500)
        status = self.function(device, ctypes.c_void_p(stream), *passed, error, ctypes.c_size_t(500))
        return f"{status}: {error.value.decode()}" if status else None

    def record(self, launch, watch=None, **options):
        """What the driver sees of each launch; `watch` gets the addresses of workspaces that it is given."""
        seen, first = [], fake_cuda.encode_count()
        following = iter(self.launches)

        def take():
            # Bundles that are garbage unload their modules here each time, not sometimes.
            gc.collect()
            seen.append(self._see_launch(*self.current))
            if watch:
                watch(seen[-1][3])
            self.current = next(following, None)
            # The next one has others.
            fake_cuda.set_parameters(self.current[1] if self.current else [])

        self.current = next(following)
        fake_cuda.set_parameters(self.current[1])
        callback = ctypes.CFUNCTYPE(None)(take)
        fake_cuda.set_on_launch(callback)
        try:
            failure = launch(**options)
        finally:
            fake_cuda.set_on_launch(None)
        if failure:
            raise AssertionError(failure)
        maps = [self._get_map(index) for index in range(first, fake_cuda.encode_count())]
        # Workspaces are memory of their own: what counts is where they lie in it.
        pointers = [value for _, _, values, _ in seen for value in values] + [map[5] for map in maps]
        base = min((pointer for pointer in pointers if self._is_own(pointer)), default=0)
        for _, _, values, _ in seen:
            values[:] = [value - base if self._is_own(value) else value for value in values]
        for map in maps:
            map[5] -= base if self._is_own(map[5]) else 0
        return [launch[:3] for launch in seen], sorted(maps)

    @staticmethod
    def _is_own(value):
        """Whether a parameter is an address of memory that the launcher has allocated."""
        return isinstance(value, int) and value >= 8 * fake_cuda.MEMORY

    def _see_launch(self, entries, types):
        numbers, stream = (ctypes.c_uint * 11)(), ctypes.c_void_p()
        fake_cuda.library.fake_cuda_last_launch(numbers, ctypes.byref(stream))
        parameters, addresses = [], []
        for index, (kind, entry) in enumerate(zip(types, entries)):
            value = fake_cuda.last_parameter(index, kind)
            # Tensor maps hold the number of their record, and the memory of a kernel alone is anywhere.
            if entry["kind"] not in ("tensor_map", "workspace", "tickets"):
                parameters.append(getattr(value, "value", value))
            if entry["kind"] == "pointer" and self._is_own(parameters[-1]):
                addresses.append(parameters[-1])
        return list(numbers), stream.value, parameters, addresses

    def _get_map(self, index):
        numbers = (ctypes.c_uint64 * 32)()
        fake_cuda.library.fake_cuda_encode(ctypes.c_size_t(index), numbers)
        return list(numbers)


def _to_array(numbers):
    return (ctypes.c_int64 * len(numbers))(*numbers)


class CSource(unittest.TestCase):
    def setUp(self):
        fake_cuda.reset()
        fake_cuda.set_parameters([])
        fake_cuda.library.fake_cuda_set_device(0)

    def test_same_calls(self):
        for source, parameters, extents in CASES:
            with self.subTest(f"{source} {parameters}"):
                kernel = Kernel(source, parameters, extents)
                self.assertEqual(kernel.record(kernel.launch_c), kernel.record(kernel.launch_own))
                launches, maps = fake_cuda.launch_count(), fake_cuda.encode_count()
                kernel.launch_c()
                self.assertEqual((fake_cuda.launch_count(), fake_cuda.encode_count()), (launches + 1, maps))

    def test_schedules(self):
        for schedule in ("persistent=none", "persistent=static", "persistent=dynamic,cluster=2", "store=tma", None):
            with self.subTest(schedule):
                kernel = Kernel("attention_fwd", {}, ATTENTION, schedule, [] if schedule else ["--pdl"])
                self.assertEqual(kernel.record(kernel.launch_c), kernel.record(kernel.launch_own))

    def test_devices_and_streams(self):
        kernel = Kernel("attention_fwd", {}, ATTENTION, "persistent=dynamic")
        kernel.launch_c(stream=1)
        one = fake_cuda.allocation_count()
        kernel.launch_c(stream=1)
        self.assertEqual(fake_cuda.allocation_count(), one)
        kernel.launch_c(stream=3)
        self.assertEqual(fake_cuda.allocation_count(), one + 1)
        self.assertIn("lies on device 0; the launch is on device 1", kernel.launch_c(device=1))
        for value in kernel.values:
            if isinstance(value, list):
                value[0] += fake_cuda.MEMORY
        self.assertEqual(kernel.record(kernel.launch_c, device=1)[0][0][0][10], 1)
        self.assertIn("4: there is no CUDA device 7; this machine has 2", kernel.launch_c(device=7))
        fake_cuda.library.fake_cuda_set_device(-1)
        self.assertIn("4: no CUDA context is current", kernel.launch_c(device=-1))
        self.assertIsNone(kernel.launch_c(device=1))

    def test_compute_capability(self):
        kernel = Kernel("attention_fwd", {}, ATTENTION)
        fake_cuda.set_capability(8, 6)
        text = "4: kernel 'attention_fwd' is compiled for compute capability 9.0; device 0 (Fake Hopper) has 8.6"
        self.assertIn(text, kernel.launch_c())
        fake_cuda.set_capability(9, 0)
        self.assertIsNone(kernel.launch_c())

    def test_sequences(self):
        for source, parameters, extents in SEQUENCES:
            with self.subTest(f"{source} {parameters}"):
                kernel = Kernel(source, parameters, extents)
                seen = kernel.record(kernel.launch_c)
                self.assertEqual(seen, kernel.record(kernel.launch_own))
                self.assertGreater(len(seen[0]), 1)
                launches, maps, memory = fake_cuda.launch_count(), fake_cuda.encode_count(), fake_cuda.allocation_count()
                self.assertIsNone(kernel.launch_c())
                self.assertEqual(fake_cuda.launch_count(), launches + len(seen[0]))
                self.assertEqual((fake_cuda.encode_count(), fake_cuda.allocation_count()), (maps, memory))

    def _write_zeroed(self):
        path = os.path.join(DIRECTORY, "zeroed.tile")
        with open(path, "w") as file:
            file.write(ZEROED)
        return path

    def test_workspaces_of_sequences(self):
        """A workspace that begins as 0, memory that grows with the extents, and memory of each stream."""
        kernel = Kernel(self._write_zeroed(), {}, {"M": 100})
        self.assertEqual(kernel.record(kernel.launch_c), kernel.record(kernel.launch_own))
        first_bytes, addresses = [], []

        def watch(given):
            addresses.extend(given)
            first_bytes.append(ctypes.string_at(given[0], 2048))
            ctypes.memset(given[0], len(first_bytes), 2048)

        kernel.record(kernel.launch_c, watch)
        kernel.record(kernel.launch_c, watch)
        self.assertEqual(first_bytes, [bytes(2048), b"\1" * 2048, bytes(2048), b"\3" * 2048])
        self.assertEqual(len(set(addresses)), 1)
        before = fake_cuda.allocation_count()
        self.assertIsNone(kernel.launch_c(stream=3))
        self.assertEqual(fake_cuda.allocation_count(), before + 1)
        kernel.values[0][1][0] = 1000
        self.assertIsNone(kernel.launch_c())
        self.assertEqual(fake_cuda.allocation_count(), before + 2)
        kernel.values[0][1][0] = 1100
        self.assertIsNone(kernel.launch_c())
        self.assertEqual(fake_cuda.allocation_count(), before + 3)
        kernel.values[0][1][0] = 1500
        self.assertIsNone(kernel.launch_c())
        self.assertEqual(fake_cuda.allocation_count(), before + 3)

    def test_captured_sequences(self):
        kernel = Kernel(self._write_zeroed(), {}, {"M": 100})
        for _ in range(2):
            fake_cuda.begin_capture(0x77)
            self.assertIsNone(kernel.launch_c())
            graph = fake_cuda.end_capture()
            self.assertEqual(fake_cuda.allocation_count(), 1)
            fake_cuda.destroy_graph(graph)
        kernel.values[0][1][0] = 1000
        fake_cuda.begin_capture(0x77)
        self.assertIsNone(kernel.launch_c())
        fake_cuda.destroy_graph(fake_cuda.end_capture())
        self.assertEqual(fake_cuda.allocation_count(), 2)

    def test_refused_calls_of_sequences(self):
        """All launches are refused or none; the reasons are the library's."""
        kernel = Kernel("gemm", SPLIT, {**MATRIX, "K": 4504})
        good = copy.deepcopy(kernel.values)
        # The extents of the three views are [M, K], [N, K] and [M, N].
        huge = [[1 << 30, 4504], [1 << 30, 4504], [1 << 30, 1 << 30]]
        rest = good[2][1:]
        for number, values, text in (
            (1, [good[1][0], [520, 4512], [4512, 1]], "sequence 'gemm': argument 'b': dimension 1, 'K', has extent 45"),
            (2, [good[0][0] + 256, *rest], "and the sequence writes 'c'"),
            (2, [16, *rest], "is not memory that CUDA knows"),
            (None, huge, "address space"),
        ):
            with self.subTest(text):
                kernel.values = copy.deepcopy(good)
                if number is None:
                    kernel.values = [[view[0], shape, [shape[1], 1]] for view, shape in zip(good, values)]
                else:
                    kernel.values[number] = values
                launches = fake_cuda.launch_count()
                self.assertIn(text, kernel.launch_c() or "launched")
                with self.assertRaises(Exception) as caught:
                    kernel.launch_own()
                self.assertIn(text, str(caught.exception))
                self.assertEqual(fake_cuda.launch_count(), launches)
        kernel.values = copy.deepcopy(good)
        kernel.values[0][1][0] = kernel.values[2][1][0] = 0
        self.assertIsNone(kernel.launch_c())
        self.assertEqual(fake_cuda.launch_count(), launches)

    def test_captures(self):
        """A captured launch, the first of all, has a workspace that its graph gives back."""
        kernel = Kernel("attention_fwd", {}, ATTENTION, "persistent=dynamic")
        for _ in range(2):
            fake_cuda.begin_capture(0x77)
            self.assertIsNone(kernel.launch_c())
            self.assertIsNone(kernel.launch_c())
            graph = fake_cuda.end_capture()
            self.assertEqual(fake_cuda.allocation_count(), 2)
            fake_cuda.destroy_graph(graph)
        self.assertIsNone(kernel.launch_c())
        self.assertEqual(fake_cuda.allocation_count(), 3)

    def test_refusals(self):
        """Whatever the library refuses, C refuses."""
        kernel = Kernel("attention_fwd", {"D": "96", "DV": "64", "PADDED": "true"}, ATTENTION, "store=tma")
        good = copy.deepcopy(kernel.values)

        def change(argument, part, index, number):
            kernel.values = copy.deepcopy(good)
            if part == 0:
                kernel.values[argument][0] = number
            else:
                kernel.values[argument][part][index] = number

        for arguments, text in (
            ((0, 1, 0, 3), "'B', has extent 2, but is 3 in an earlier argument"),
            ((0, 1, 2, 1 << 31), "an extent is at least 1 and below 2^31"),
            ((1, 2, 3, 2), "the innermost dimension has stride 2"),
            ((1, 2, 2, -72), "dimension 2 has stride -72"),
            ((1, 2, 2, 1 << 60), "within the address space"),
            ((1, 2, 2, 76), "strides must be multiples of 8 elements"),
            ((3, 2, 0, 0), "not 0 where a kernel writes"),
            ((0, 0, 0, fake_cuda.MEMORY + 2), "no multiple of 16 bytes"),
            ((0, 0, 0, 0), "the address is null"),
            ((0, 0, 0, 16), "is not memory that CUDA knows"),
            ((3, 0, 0, good[0][0] + 256), "arguments 'q' and 'o' share memory, and the kernel writes 'o'"),
            ((3, 2, 2, 8), "elements at different indices share memory"),
        ):
            with self.subTest(text):
                change(*arguments)
                self.assertIn(text, kernel.launch_c() or "launched")
                with self.assertRaises(Exception):
                    kernel.launch_own()
        kernel.values = copy.deepcopy(good)
        kernel.values[1][1][1] = kernel.values[2][1][1] = 3
        self.assertIn("'H' is 4 and must be a multiple of 1 times HK", kernel.launch_c())
        for extent, text in ((104, "'DQ' is 104 and must be at most 96"), (0, "the extent 'DQ' is 0")):
            kernel.values = copy.deepcopy(good)
            kernel.values[0][1][3] = kernel.values[1][1][3] = extent
            for view in kernel.values[:2]:
                view[2][:3] = [1 << 22, 1 << 16, 512]
            self.assertIn(text, kernel.launch_c() or "launched")

    def write_names(self, names, alternatives=False):
        """The C of a kernel whose arguments have these names."""
        stem = os.path.join(DIRECTORY, "names")
        arguments = "".join(f", %{name}: f32" for name in names)
        with open(stem + ".tile", "w") as file:
            file.write(
                f"""param BM : int = 512 {"alternatives [512, 1024]" if alternatives else ""}
tile.kernel @k(%int: !tile.view<[while], f32>{arguments}) grid(%own.m = while ceildiv $BM) {{
  %own.rows = arith.constant $BM : index
  %own.at = arith.muli %own.m, %own.rows : index
  %own.t = tile.load %int[%own.at] : !tile.view<[while], f32> -> tensor<$BMxf32>
  %own.s = tile.splat %{names[-1]} : f32 -> tensor<$BMxf32>
  %own.sum = arith.addf %own.t, %own.s : tensor<$BMxf32>
  tile.store %own.sum, %int[%own.at] : tensor<$BMxf32>, !tile.view<[while], f32>
}}
"""
            )
        command = ["tessera", "compile", stem + ".tile", "--ptx", "--emit", "c", "-o", stem + ".c"]
        subprocess.run(command + ["--alternatives"] * alternatives, check=True)
        for path, language in ((stem + ".c", "c"), (stem + ".h", "c++")):
            subprocess.run([CC, "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", path], check=True)
        return stem + ".c"

    def test_names(self):
        """Whatever a source calls its arguments, C takes it: each word of the file and each macro that it sees, words of C++,
        characters that C has not, and several names that would be one."""
        odd = ["a.b", "a-b", "a$b", "a_b", "a_b_", "_9", "class", "co_yield", "main", "__x", "_Q"]
        for alternatives in (False, True):
            path = self.write_names(odd, alternatives)
            with open(path) as file:
                words = set(re.findall(r"[A-Za-z_]\w*", file.read()))
            macros = subprocess.run([CC, "-dM", "-E", path], capture_output=True, text=True, check=True).stdout
            words |= {line.split()[1].split("(")[0] for line in macros.splitlines()}
            names = sorted(words - {"int"})
            for first in range(0, len(names), 900):  # a launch has room for 1000 scalars
                self.write_names(names[first : first + 900], alternatives)

    def test_what_is_not_written(self):
        with open(os.path.join(DIRECTORY, "two.tile"), "w") as file:
            file.write(ZEROED + ZEROED[ZEROED.index("tile.sequence") :].replace("@total", "@again"))
        for source, arguments, text in (
            ("gemm", ["-o", os.path.join(DIRECTORY, "a-b.c")], "'a-b' is to name a function of C"),
            ("gemm", ["-o", os.path.join(DIRECTORY, "int.c")], "'int' is to name a function, and is a word of C or C++"),
            ("gemm", ["-o", os.path.join(DIRECTORY, "class.c")], "'class' is to name a function, and is a word of C or C++"),
            ("gemm", ["-o", os.path.join(DIRECTORY, "__a.c")], "'__a' is to name a function, and is reserved for compilers"),
            ("gemm", ["-o", os.path.join(DIRECTORY, "launch.c")], "'launch' is to name a function, and the file has another one"),
            ("gemm", ["-o", os.path.join(DIRECTORY, "puts.c")], "'puts' is to name a function, and the C library has one"),
            ("gemm", ["-o", os.path.join(DIRECTORY, "LOOK_UP.c")], "'LOOK_UP' is to name a function, and the file has another one"),
            ("gemm", ["-o", os.path.join(DIRECTORY, "Place.c")], "'Place' is to name a function, and the file has another one"),
            ("gemm", ["-o", os.path.join(DIRECTORY, "gemm.txt")], "-o names a file that ends in .c"),
            ("gemm", ["-o", os.path.join(DIRECTORY, "gemm.c"), "--instrument=timeline"], "compile without --instrument"),
            (
                "gemm",
                ["-o", os.path.join(DIRECTORY, "gemm.c"), "--alternatives"],
                "C is written for choices among kernels, and 'gemm' may launch the sequence 'gemm_PART32'; give its parameters values",
            ),
            (
                os.path.join(DIRECTORY, "two"),
                ["-o", os.path.join(DIRECTORY, "two.c")],
                "C is written for one kernel or sequence, and the source has 2 sequences; name one with --kernel",
            ),
        ):
            path = os.path.join(KERNELS, source + ".tile")
            command = ["tessera", "compile", path, "--ptx", "--emit", "c", *arguments]
            process = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(process.returncode, 2)
            self.assertIn(text, process.stderr)


if __name__ == "__main__":
    KERNELS, DIRECTORY, CC = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1])
