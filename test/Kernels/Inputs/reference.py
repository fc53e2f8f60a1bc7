"""Runs kernels on the interpreter and gives what a test compares them with; needs nothing but Python."""

import array
import random
import subprocess
import sys


def draw(seed, *shape):
    """Returns a flat list of multiples of 1/8 in [-2, 2], which f16 and bf16 hold exactly."""
    generator = random.Random(seed)
    count = 1
    for extent in shape:
        count *= extent
    return [generator.randint(-16, 16) / 8 for _ in range(count)]


def write(path, descr, values, shape):
    """Writes an array as a .npy file, version 1.0 of the format."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}".encode()
    # Magic, version and length take 10 bytes; the data start at a multiple of 64.
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        values.tofile(file)


def save(path, values, shape):
    """Writes float32."""
    write(path, "<f4", array.array("f", values), shape)


def save_integers(path, values, kind, shape=None):
    """Writes i32 or i64, as a list where there is no shape."""
    descr, code = ("<i4", "i") if kind == "i32" else ("<i8", "q")
    write(path, descr, array.array(code, values), shape or [len(values)])


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[8:10], "little")
    header = data[10 : 10 + length]
    assert b"'<f4'" in header or b"'<i4'" in header, data[:128]
    values = array.array("f" if b"'<f4'" in header else "i")
    values.frombytes(data[10 + length :])
    return values


def run(*arguments):
    done = subprocess.run(["tessera", "run", *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"tessera run {' '.join(arguments)}: {done.stderr}")


def compare(what, actual, expected, tolerance):
    """Fails unless every element is within `tolerance` of the expected one; infinities must agree."""
    if len(actual) != len(expected):
        sys.exit(f"{what}: {len(actual)} elements, expected {len(expected)}")
    for i, (a, e) in enumerate(zip(actual, expected)):
        if a != e and not abs(a - e) <= tolerance * max(1, abs(e)):
            sys.exit(f"{what}: element {i} is {a}, expected {e}")
