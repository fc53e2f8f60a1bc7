# RUN: rm -rf %t && mkdir %t
# RUN: env TESSERA_LIBRARY=%build/lib %python %s %source %t
"""Functions of scores and their derivatives over all of float32, by the interpreter and as compiled by the simulator, whose
approximations are moved within their errors: as exact as docs/variants.md says."""

import array
import math
import pathlib
import random
import re
import struct
import subprocess
import sys
import unittest

from tessera._functions import _math, _trace, _tracing

WORK, SOURCE = pathlib.Path(sys.argv.pop()), pathlib.Path(sys.argv.pop())
COLUMNS = 64
BASE = 3.0
LEAST, MOST = 2.0**-126, float.fromhex("0x1.fffffep127")


def sigmoid(x):
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))


def exp(x):
    return math.inf if x > 700 else math.exp(x)


def power(base, x):
    return math.inf if x > 400 else base**x


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def inverse(x):
    return 1 / x if x else math.copysign(math.inf, x)


def finite(function):
    """A function that has a limit, or none, where Python's own stops."""
    return lambda x: function(x) if math.isfinite(x) else math.nan


#: (what is traced, the function in float64, its derivative) by the function's name in docs/variants.md.
CASES = {
    "exp": (None, exp, exp),
    "exp2": (None, lambda x: power(2.0, x), lambda x: math.log(2) * power(2.0, x)),
    "log": (None, lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan, inverse),
    "log2": (None, lambda x: math.log2(x) if x > 0 else -math.inf if x == 0 else math.nan, lambda x: inverse(x) / math.log(2)),
    "log1p": (None, lambda x: math.log1p(x) if x > -1 else -math.inf if x == -1 else math.nan, lambda x: inverse(1 + x)),
    "sqrt": (None, lambda x: math.sqrt(x) if x >= 0 else math.nan, lambda x: inverse(2 * math.sqrt(x))),
    "rsqrt": (None, lambda x: inverse(math.sqrt(x)) if x >= 0 else math.nan, lambda x: -inverse(math.sqrt(x) ** 3) / 2),
    "reciprocal": (None, inverse, lambda x: -inverse(x * x)),
    "sin": (None, finite(math.sin), math.cos),
    "cos": (None, finite(math.cos), lambda x: -math.sin(x)),
    "tanh": (None, math.tanh, lambda x: 1 / math.cosh(x) ** 2 if abs(x) < 300 else 0.0),
    "sigmoid": (None, sigmoid, lambda x: sigmoid(x) * sigmoid(-x)),
    "softplus": (None, softplus, sigmoid),
    "log_sigmoid": (None, lambda x: -softplus(-x), lambda x: sigmoid(-x)),
    "**": (lambda x: BASE**x, lambda x: power(BASE, x), lambda x: math.log(BASE) * power(BASE, x)),
    "/": (lambda x: x / 3.0, lambda x: x / 3, lambda x: 1 / 3),
    "floor": (None, lambda x: math.floor(x) if math.isfinite(x) else x, None),
    "ceil": (None, lambda x: math.ceil(x) if math.isfinite(x) else x, None),
    "relu": (None, lambda x: max(x, 0.0), None),
}
#: Where the range of an argument ends for which anything is said.
ENDS = {"sin": 2.0**22, "cos": 2.0**22}


def read_bounds():
    """{function: (bound of its value, of its derivative)} as docs/variants.md has it; a bound is a function of x, the result and
    the function's value."""
    text = (SOURCE / "docs/variants.md").read_text().split("## How exact")[1].split("\n## ")[0]
    bounds = {}
    for names, *cells in re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) \|$", text, re.MULTILINE):
        for name in re.findall(r"`([^`]*)`", names):
            bounds[name] = [read_bound(cell) for cell in cells]
    return bounds


def read_bound(cell):
    if cell == "exact":
        return lambda x, y, value: 0.0
    terms, _, base = cell.partition(", of ")
    of_one = {"1": lambda x: True, "1 from 1/2 to 2": lambda x: 0.5 <= x <= 2}.get(base, lambda x: False)
    constant = sum(2.0 ** -float(power) for power in re.findall(r"(?:^|\+ )2\^-([\d.]+)", terms))
    slope = sum(
        2.0 ** -float(power) * (math.log2(BASE) if of_base else 1.0)
        for of_base, power in re.findall(r"\\\|x( log2\(b\))?\\\| 2\^-([\d.]+)", terms)
    )
    assert constant, cell
    return lambda x, y, value: (constant + slope * abs(x)) * (1.0 if of_one(x) else abs(value if base == "the sigmoid" else y))


def round_to_float(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def draw_arguments():
    """Numbers of all exponents and of both signs, those around 0, 1 and multiples of pi, infinity and NaN."""
    choice = random.Random(5)
    bits = [exponent << 23 | fraction for exponent in range(255) for fraction in (0, 0x7FFFFF, choice.getrandbits(23))]
    bits += [0x7F800000, 0x7FC00000]
    numbers = [struct.unpack("f", struct.pack("I", number))[0] for number in bits]
    numbers += [1 + sign * choice.random() * 2.0**-power for power in range(1, 25) for sign in (1, -1)]
    numbers += [number * math.pi / 2 + choice.uniform(-1, 1) * 2.0**-power for number in range(1, 9) for power in (2, 8, 20)]
    numbers += [choice.uniform(0, 100) for _ in range(300)]
    return [round_to_float(sign * number) for number in numbers for sign in (1, -1)]


def write_source():
    """A kernel that applies each function, and each derivative, to the elements of a view."""
    lines, stores = [], []
    view, out, tile = f"!tile.view<[M, {COLUMNS}], f32>", f"!tile.view<[{2 * len(CASES)}, M, {COLUMNS}], f32>", f"tensor<64x{COLUMNS}xf32>"
    for number, (name, (traced, _, derivative)) in enumerate(CASES.items()):
        text, _ = _tracing.trace(f"f{number}", traced or _trace.FUNCTIONS[name], [("x", "f32")], "f32", {})
        lines += text
        parts = [(number, f"tile.map @f{number}(%t) : ({tile}) -> {tile}")]
        if derivative:
            lines += [f"func.func private @g{number}(f32, f32) -> f32 attributes {{tile.gradient_of = @f{number}}}"]
            parts += [(len(CASES) + number, f"tile.map @g{number}(%t, %one) : ({tile}, f32) -> {tile}")]
        for place, value in parts:
            stores += [f"  %p{place} = arith.constant {place} : index", f"  %v{place} = {value}"]
            stores += [f"  tile.store %v{place}, %y[%p{place}, %row, %c0] : {tile}, {out}"]
    return "\n".join(
        [*lines, f"tile.kernel @apply(%x: {view}, %y: {out}) grid(%m = M ceildiv 64) {{",
         "  %c0 = arith.constant 0 : index", "  %c64 = arith.constant 64 : index", "  %one = arith.constant 1.0 : f32",
         "  %row = arith.muli %m, %c64 : index", f"  %t = tile.load %x[%row, %c0] : {view} -> {tile}", *stores, "}", ""]
    )  # fmt: skip


def write_array(path, shape, values):
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + array.array("f", values).tobytes())


def read_array(path):
    data = path.read_bytes()
    return array.array("f", data[10 + int.from_bytes(data[8:10], "little") :])


def is_right(y, want, allowed):
    if math.isnan(want) or math.isnan(y):
        return math.isnan(want) and math.isnan(y)
    if abs(want) + allowed > MOST and math.isinf(y):
        return (y > 0) == (want > 0)
    if abs(want) - allowed < LEAST and abs(y) <= LEAST:
        return True
    # Half of the last place is lost in rounding the exact result.
    return y == want or abs(y - want) <= allowed + abs(want) * 2.0**-24


class ExactnessTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.arguments = draw_arguments()
        cls.arguments += [0.0] * (-len(cls.arguments) % (64 * COLUMNS))
        cls.rows = len(cls.arguments) // COLUMNS
        (WORK / "functions.tile").write_text(write_source())
        write_array(WORK / "x.npy", (cls.rows, COLUMNS), cls.arguments)

    def apply(self, *options):
        path = WORK / "y.npy"
        command = ["tessera", "run", str(WORK / "functions.tile"), "--input", f"x={WORK}/x.npy", "--output", f"y={path}", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        values = read_array(path)
        count = len(self.arguments)
        return [values[i : i + count] for i in range(0, len(values), count)]

    def check(self, *options):
        bounds, results, worst = read_bounds(), self.apply(*options), {}
        for number, (name, (_, *references)) in enumerate(CASES.items()):
            for part, (reference, bound) in enumerate(zip(references, bounds[name], strict=True)):
                if reference is None:
                    continue
                wrong = []
                for x, y in zip(self.arguments, results[part * len(CASES) + number], strict=True):
                    if abs(x) > ENDS.get(name, math.inf) or part == 1 and not self.has_derivative(name, x):
                        continue
                    # Subnormal numbers may count as 0.
                    choices = {x, math.copysign(0.0, x)} if abs(x) < LEAST else {x}
                    if not any(is_right(y, want, bound(x, want, references[0](x))) for want in map(reference, choices)):
                        wrong.append((x, y, reference(x)))
                if wrong:
                    worst[name, "derivative" if part else "value"] = len(wrong), wrong[:3]
        self.assertEqual(worst, {}, "(argument, result, in float64)")

    def has_derivative(self, name, x):
        """Not where the function has none, and not where infinity is only that of float32."""
        inside = {"log": x > 0, "log2": x > 0, "log1p": x > -1, "sqrt": x > 0, "rsqrt": x > 0}
        if math.isnan(x) or math.isinf(x) or not inside.get(name, True) or abs(x) < LEAST:
            return False
        return abs(CASES[name][1](x)) < MOST / 2 and abs(CASES[name][2](x)) < MOST / 2

    def test_every_function_is_here(self):
        """What is known by name is in the table, here or there, unless it is arithmetic."""
        others = "where min max minimum maximum clamp clip div divide square masked_fill logical_and logical_or logical_xor logical_not"
        others += " to type float int long bool new_ones new_zeros ones_like zeros_like full_like"
        known = {name for name in _trace.FUNCTIONS if not hasattr(_trace.Value, f"__{name}__")}
        operators = {name for names in _math._OPERATORS.values() for name in names.split()}
        self.assertEqual(known - operators - set(others.split()) - set(CASES), set())
        self.assertEqual(set(CASES) - set(read_bounds()), set())

    def test_interpreter(self):
        self.check()

    def test_machine(self):
        self.check("--device", "sim")

    def test_machine_moved(self):
        for seed in ("3", "4"):
            self.check("--device", "sim", "--move-approximations", "--sim-seed", seed)


if __name__ == "__main__":
    unittest.main()
