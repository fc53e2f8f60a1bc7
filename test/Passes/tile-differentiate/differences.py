# Gradients of a thousand random functions of two f64 arguments and an integer, against central differences. The functions
# and their gradients go through MLIR's own conversions to the machine.
#
# RUN: %python %s %t
import ctypes
import pathlib
import random
import re
import subprocess
import sys

COUNT, STEP, TOLERANCE = 1000, 1e-5, 1e-6
TO_LLVM = [
    "--allow-unregistered-dialect", "--convert-math-to-llvm", "--convert-math-to-libm", "--convert-arith-to-llvm",
    "--convert-func-to-llvm", "--reconcile-unrealized-casts",
]  # fmt: skip


class Writer:
    """The body of one function: lines, and the values to compute with, all of about 1."""

    def __init__(self, choice):
        self.choice, self.lines, self.values = choice, [], ["%a", "%b"]

    def emit(self, text, kind="f64"):
        name = f"%{len(self.lines)}"
        self.lines.append(f"  {name} = {text} : {kind}")
        return name

    def pick(self):
        return self.choice.choice(self.values)

    def constant(self):
        return self.emit(f"arith.constant {self.choice.uniform(-2, 2):.6f}")

    def positive(self):
        """1/2 or more."""
        x, half = self.pick(), self.emit("arith.constant 0.5")
        return self.emit(f"arith.addf {self.emit(f'arith.mulf {x}, {x}')}, {half}")

    def bounded(self):
        return self.emit(f"math.{self.choice.choice(['sin', 'cos', 'tanh'])} {self.pick()}")

    def step(self):
        kind = self.choice.randrange(10)
        if kind < 3:
            operation = self.choice.choice(["addf", "subf", "mulf", "maximumf", "maxnumf", "minimumf", "minnumf"])
            value = self.emit(f"arith.{operation} {self.pick()}, {self.pick()}")
        elif kind == 3:
            value = self.emit(f"arith.divf {self.pick()}, {self.positive()}")
        elif kind == 4:
            value = self.emit(f"math.{self.choice.choice(['log', 'log1p', 'log2', 'sqrt', 'rsqrt'])} {self.positive()}")
        elif kind == 5:
            value = self.emit(f"math.{self.choice.choice(['exp', 'exp2'])} {self.bounded()}")
        elif kind == 6:
            value = self.emit(f"math.{self.choice.choice(['absf', 'floor', 'ceil'])} {self.pick()}")
        elif kind == 7:
            value = self.emit(f"math.fma {self.pick()}, {self.bounded()}, {self.constant()}")
        elif kind == 8:
            condition = self.emit(f"arith.cmpf olt, {self.pick()}, {self.constant()}")
            value = self.emit(f"arith.select {condition}, {self.pick()}, {self.emit(f'arith.negf {self.pick()}')}")
        else:
            index = self.emit("arith.sitofp %k", "i32 to f64")
            value = self.emit(f"arith.mulf {self.bounded()}, {index}")
        # Values stay about 1, so that differences are exact.
        self.values.append(self.emit(f"math.tanh {value}") if self.choice.random() < 0.3 else value)

    def write(self, number):
        for _ in range(self.choice.randint(1, 12)):
            self.step()
        body = "\n".join(self.lines)
        return (
            f"func.func @f{number}(%a: f64, %b: f64, %k: i32) -> f64 {{\n{body}\n  func.return {self.values[-1]} : f64\n}}\n"
            f"func.func private @g{number}(f64, f64, i32, f64) -> (f64, f64) attributes {{tile.gradient_of = @f{number}}}\n"
            f"func.func @d{number}(%a: f64, %b: f64, %k: i32, %d: f64) -> (f64, f64) {{\n"
            f"  %x, %y = func.call @g{number}(%a, %b, %k, %d) : (f64, f64, i32, f64) -> (f64, f64)\n"
            "  func.return %x, %y : f64, f64\n}\n"
        )


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_double), ("b", ctypes.c_double)]


def run(*command, given=None):
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


REFUSED = """func.func @f(%x: f32) -> f32 {
  %y = math.cbrt %x : f32
  func.return %y : f32
}
func.func private @g(f32, f32) -> f32 attributes {tile.gradient_of = @f}
func.func @use(%x: f32) -> f32 {
  %y = func.call @g(%x, %x) : (f32, f32) -> f32
  func.return %y : f32
}
"""


def list_rules():
    """The operations that have a rule, as the refusal of another one names them."""
    done = subprocess.run(["tessera-opt", "-", "--tile-differentiate"], input=REFUSED, capture_output=True, text=True)
    named = re.search("there are rules for (.*)", done.stderr)[1]
    return {
        f"{dialect}.{name}"
        for dialect, names in re.findall(r"(arith|math)\.(\w+(?:, \w+)*(?: and \w+)?)", named)
        for name in re.split(", | and ", names)
    }


def build(text, folder):

    (folder / "functions.mlir").write_text(text)
    differentiated = run("tessera-opt", str(folder / "functions.mlir"), "--tile-differentiate")
    lowered = run("mlir-opt", *TO_LLVM, given=differentiated)
    (folder / "functions.ll").write_bytes(run("mlir-translate", "--mlir-to-llvmir", given=lowered))
    library = str(folder / "functions.so")
    run("clang-22", "-O0", "-Wno-override-module", "-shared", "-fPIC", str(folder / "functions.ll"), "-o", library, "-lm")
    return ctypes.CDLL(library)


def compare(library, number, choice):
    """How many of the two derivatives at a random place agree; a corner close by counts for neither."""
    function, gradient = library[f"f{number}"], library[f"d{number}"]
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_double, ctypes.c_int]
    gradient.restype, gradient.argtypes = Pair, [ctypes.c_double, ctypes.c_double, ctypes.c_int, ctypes.c_double]
    a, b, k = choice.uniform(-1, 1), choice.uniform(-1, 1), choice.randint(-3, 3)
    found, agreed = gradient(a, b, k, 1.0), 0
    for value, da, db in ((found.a, STEP, 0), (found.b, 0, STEP)):
        before, here, after = (function(a + s * da, b + s * db, k) for s in (-1, 0, 1))
        left, right = (here - before) / STEP, (after - here) / STEP
        size = max(1, abs(left), abs(right))
        if abs(left - right) > 1e-3 * size:
            continue
        assert abs(value - (left + right) / 2) <= TOLERANCE * size, (number, a, b, k, value, left, right)
        agreed += 1
    return agreed


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    choice = random.Random(1)
    text = "".join(Writer(choice).write(number) for number in range(COUNT))
    # Differences see no derivative through a rounding: test/Passes/tile-differentiate/basic.mlir has these two.
    missing = {rule for rule in list_rules() if f"{rule} " not in text}
    assert missing == {"arith.extf", "arith.truncf"}, missing
    library = build(text, folder)
    agreed = sum(compare(library, number, choice) for number in range(COUNT))
    assert agreed > 1.9 * COUNT, agreed


main(sys.argv[1])
