"""npy_ratio.py A B RATIO --shape N,...: checks that B = RATIO * A, element by element, and their shape."""

import sys

from npy import read

(shape_a, a), (shape_b, b) = read(sys.argv[1]), read(sys.argv[2])
assert shape_a == shape_b == tuple(map(int, sys.argv[5].split(","))), (shape_a, shape_b)
assert len(a) == len(b) and any(a) and all(float(sys.argv[3]) * x == y for x, y in zip(a, b))
