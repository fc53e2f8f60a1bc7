"""npy_ratio.py A B RATIO --shape N,...: checks that B = RATIO * A, element by element, and their shape."""

import array
import sys


def read(path):
    data = open(path, "rb").read()
    start = 10 + int.from_bytes(data[8:10], "little")
    header = eval(data[10:start], {})
    assert data[:8] == b"\x93NUMPY\1\0" and start % 64 == 0, path
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    return header["shape"], array.array("f", data[start:])


(shape_a, a), (shape_b, b) = read(sys.argv[1]), read(sys.argv[2])
assert shape_a == shape_b == tuple(map(int, sys.argv[5].split(","))), (shape_a, shape_b)
assert len(a) == len(b) and any(a) and all(float(sys.argv[3]) * x == y for x, y in zip(a, b))
