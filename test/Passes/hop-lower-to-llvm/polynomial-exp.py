# Exponentials by polynomials are within 1.2e-4 over the whole range, 0 from -127 down, NaN from 128 on and of NaN, in
# whatever operations the exponent is computed, and whatever share of them are polynomials.
#
# RUN: %python %s %S/../Inputs/powers.tile %t

import array
import math
import pathlib
import subprocess
import sys

SOURCE, WORK = sys.argv[1], pathlib.Path(sys.argv[2])
COLUMNS, BOUND = 32, 1.2e-4


def write(path, shape, values):
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + array.array("f", values).tobytes())


def read(path):
    data = path.read_bytes()
    return array.array("f", data[10 + int.from_bytes(data[8:10], "little"):])


def check(x, y, share):
    """What is wrong with y = 32 * 2^x."""
    power = y / COLUMNS
    if math.isnan(x):
        return not math.isnan(power)
    if x <= -127.001:
        return power > (0 if share == 16 else 2.0**-126)
    if x <= -126:
        return not 0 <= power <= 2.0**-125.99
    if x >= 128:
        # The special function gives infinity.
        return not (math.isnan(power) or power == math.inf)
    if x >= 122.99:
        # The sum may be infinite.
        return not power > 2.0**122
    error = abs(power / 2.0**x - 1)
    worst[0] = max(worst[0], error)
    return error > (BOUND if share else 1e-5)


inputs = [-126 + 248 * i / 4096 for i in range(4096)] + [-1 + i / 512 for i in range(1024)]
inputs += [0.0, -0.0, 1.0, -1.0, 2.0**-30, -(2.0**-30), -126.0, -126.5, -127.0, -127.001, -128.0, -150.0, -1e4, -1e30, -math.inf]
inputs += [124.0, 128.0, 128.5, 129.0, 200.0, 256.0, 384.0, 512.5, 1e4, 1e30, math.inf, math.nan, -math.nan]
WORK.mkdir(parents=True, exist_ok=True)
x = list(array.array("f", inputs))
write(WORK / "x.npy", (len(x),), x)
write(WORK / "q.npy", (len(x), 16), [0.0] * (16 * len(x)))
write(WORK / "k.npy", (COLUMNS, 16), [1.0] * (16 * COLUMNS))
for form, share in [("sum", s) for s in (0, 1, 5, 8, 16)] + [(f, 16) for f in ("difference", "reversed", "exp")]:
    worst = [0.0]
    command = ["tessera", "run", SOURCE, f"-DFORM={form}", "--device", "sim", "--schedule", f"polynomial_exp={share}"]
    for name in "xqk":
        command += ["--input", f"{name}={WORK / name}.npy"]
    subprocess.run([*command, "--output", f"y={WORK / 'y.npy'}"], check=True, stdout=subprocess.DEVNULL)
    y = read(WORK / "y.npy")
    wrong = [(a, b / COLUMNS) for a, b in zip(x, y) if check(a, b, share)]
    assert len(y) == len(x) and not wrong, f"{form}, polynomial_exp={share}: {wrong[:10]}"
    print(f"{form}, polynomial_exp={share}: {worst[0]:.3g}")
    # The machine's exponential is exact to 2^-22; that polynomials are used shows.
    assert share == 0 or worst[0] > 1e-5 / 16 * share
