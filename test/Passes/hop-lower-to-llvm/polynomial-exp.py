# Exponentials by polynomials are within 1.2e-4 over the whole range, and within 2^-21 where their sum stays f32; 0 from
# -127 down, NaN from 128 on and of NaN, in whatever operations the exponent is computed, and whatever share of them are
# polynomials.
#
# RUN: %python %s %S/../Inputs/powers.tile %t

import array
import math
import pathlib
import subprocess
import sys

SOURCE, WORK = sys.argv[1], pathlib.Path(sys.argv[2])
COLUMNS = 32


def bound(x, form, precise):
    """The error of the sum of 32, with that of two roundings to 16 bits, of which the second is flushed where it is small."""
    if not precise:
        return 1.2e-4 + (2.0**-16 if x > -108 else 2.0**-8)
    return 2.0**-21 + 2.0**-20 + (abs(x) * 2.0**-23 if form == "exp" else 0)


def write(path, shape, values):
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + array.array("f", values).tobytes())


def read(path):
    data = path.read_bytes()
    return array.array("f", data[10 + int.from_bytes(data[8:10], "little"):])


def check(x, y, form, share, precise):
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
        return not (power > 2.0**122 or not precise and math.isnan(power))
    error = abs(power / 2.0**x - 1)
    if x > -108:
        worst[0] = max(worst[0], error)
    return error > bound(x, form, precise)


inputs = [-126 + 248 * i / 4096 for i in range(4096)] + [-1 + i / 512 for i in range(1024)]
inputs += [0.0, -0.0, 1.0, -1.0, 2.0**-30, -(2.0**-30), -126.0, -126.5, -127.0, -127.001, -128.0, -150.0, -1e4, -1e30, -math.inf]
inputs += [124.0, 128.0, 128.5, 129.0, 200.0, 256.0, 384.0, 512.5, 1e4, 1e30, math.inf, math.nan, -math.nan]
WORK.mkdir(parents=True, exist_ok=True)
x = list(array.array("f", inputs))
write(WORK / "x.npy", (len(x),), x)
write(WORK / "q.npy", (len(x), 16), [0.0] * (16 * len(x)))
write(WORK / "k.npy", (COLUMNS, 16), [1.0] * (16 * COLUMNS))
cases = [("sum", s, True) for s in (0, 1, 5, 8, 16)] + [(f, 16, True) for f in ("difference", "reversed", "exp")]
cases += [("sum", s, False) for s in (1, 5, 8, 16)] + [(f, 16, False) for f in ("difference", "reversed", "exp")]
for form, share, precise in cases:
    worst = [0.0]
    command = ["tessera", "run", SOURCE, f"-DFORM={form}", f"-DPRECISE={str(precise).lower()}", "--device", "sim"]
    command += ["--schedule", f"polynomial_exp={share}"]
    for name in "xqk":
        command += ["--input", f"{name}={WORK / name}.npy"]
    outputs = ["y"] if precise else ["y", "rest"]
    for name in outputs:
        command += ["--output", f"{name}={WORK / name}.npy"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    y = [sum(parts) for parts in zip(*(read(WORK / f"{name}.npy") for name in outputs))]
    wrong = [(a, b / COLUMNS) for a, b in zip(x, y) if check(a, b, form, share, precise)]
    assert len(y) == len(x) and not wrong, f"{form}, polynomial_exp={share}, {precise}: {wrong[:10]}"
    print(f"{form}, polynomial_exp={share}, {precise}: {worst[0]:.3g}")
    # The machine's exponential is exact to 2^-22; that polynomials are used shows.
    assert precise or worst[0] > 1e-5 / 16 * share
