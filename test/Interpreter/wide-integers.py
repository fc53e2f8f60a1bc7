# RUN: mkdir -p %t
# RUN: %python %s %t
"""Integers of 64 bits that no double holds, from file to file: loaded, gathered, added to and stored, on the interpreter, its scheduled
form and the simulator, also through a workspace."""

import array
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Kernels" / "Inputs"))
from reference import save_integers  # noqa: E402

SOURCE = """!X = !tile.view<[M, 64], i64>
!T = tensor<64x64xi64>

tile.kernel @next(%x: !X, %y: !X) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %t = tile.load %x[%row, %c0] : !X -> !T
  %one = arith.constant dense<1> : !T
  %more = arith.addi %t, %one : !T
  tile.store %more, %y[%row, %c0] : !T, !X
}

tile.sequence @twice(%x: !X, %z: !X) {
  %y = tile.workspace : !X
  tile.launch @next(%x, %y) : !X, !X
  tile.launch @next(%y, %z) : !X, !X
}
"""
NUMBERS = [2**53 + 1, -(2**53) - 3, 2**63 - 1, -(2**63), 0x7FF8 << 48, -1, 0, 1 << 62 | 1]


def wrapped(number):
    return (number + 2**63) % 2**64 - 2**63


def load(path):
    data = path.read_bytes()
    values = array.array("q")
    values.frombytes(data[10 + int.from_bytes(data[8:10], "little") :])
    return list(values)


def run(*arguments):
    return subprocess.run(["tessera", "run", *map(str, arguments)], capture_output=True, text=True)


def main(folder):
    source, given, stored = folder / "next.tile", folder / "x.npy", folder / "z.npy"
    source.write_text(SOURCE)
    numbers = [NUMBERS[i % len(NUMBERS)] for i in range(70 * 64)]
    save_integers(given, numbers, "i64", (70, 64))
    for options in ((), ("--level", "scheduled"), ("--device", "sim"), ("--device", "sim", "--check")):
        done = run(source, "--kernel", "twice", "--input", f"x={given}", "--output", f"z={stored}", *options)
        assert done.returncode == 0, done.stderr
        assert load(stored) == [wrapped(number + 2) for number in numbers], options
    assert "max error 0.000e+00" in done.stdout, done.stdout

    source.write_text(SOURCE.replace("i64", "i32"))
    done = run(source, "--kernel", "twice", "--input", f"x={given}")
    expected = f"--input x={given}: the array has the integer {NUMBERS[-1]}, which no double holds; views of i64 take it, and this one has i32"
    assert done.returncode == 2 and expected in done.stderr, done.stderr


main(pathlib.Path(sys.argv[1]))
