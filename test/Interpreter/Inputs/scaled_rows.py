"""scaled_rows.py FOLDER: writes what scaled-rows.tile should give for the inputs in FOLDER/in, diag(s) A B^T, and what is
wrong, A diag(s) B^T with the first numbers of s."""

import pathlib
import sys

from npy import read, write

folder = pathlib.Path(sys.argv[1])
((m, k), a), ((n, _), b), (_, s) = (read(folder / "in" / f"{name}.npy") for name in "abs")


def product(scale):
    return [sum(scale(i, x) * a[i * k + x] * b[j * k + x] for x in range(k)) for i in range(m) for j in range(n)]


write(folder / "right.npy", (m, n), product(lambda i, x: s[i]))
write(folder / "wrong.npy", (m, n), product(lambda i, x: s[x]))
