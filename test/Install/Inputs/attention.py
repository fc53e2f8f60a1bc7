"""Attention of one head with installed kernels, on the interpreter, without any other package."""

import ctypes
import math
import os
import random
import struct

import tessera

ROWS, KEYS, D = 40, 50, 64


class Tensor:
    """A [1, 1, length, width] tensor in float16, or a [1, 1, length] one in float32."""

    def __init__(self, *shape):
        self.code = "e" if len(shape) == 4 else "f"
        self.shape, size = shape, struct.calcsize(self.code)
        self.memory = ctypes.create_string_buffer(math.prod(shape) * size)
        self.__array_interface__ = {
            "shape": shape, "typestr": f"<f{size}", "data": (ctypes.addressof(self.memory), False), "version": 3,
        }  # fmt: skip

    def fill(self):
        count = math.prod(self.shape)
        struct.pack_into(f"<{count}{self.code}", self.memory, 0, *(random.gauss(0, 1) for _ in range(count)))

    def rows(self):
        return list(struct.iter_unpack(f"<{self.shape[-1]}{self.code}", self.memory.raw))


def expected_row(q, k, v):
    scores = [sum(x * y for x, y in zip(q, key)) / 8 for key in k]
    weights = [math.exp(score - max(scores)) for score in scores]
    return [sum(w * value[i] for w, value in zip(weights, v)) / sum(weights) for i in range(D)]


def main():
    print(os.path.dirname(tessera.__file__))
    kernel = tessera.kernel("attention_fwd", D=D, T="f16", image="ptx", cache=False)
    print("kernel", kernel.name, "of PTX")
    q, k, v, o = (Tensor(1, 1, length, D) for length in (ROWS, KEYS, KEYS, ROWS))
    for tensor in (q, k, v):
        tensor.fill()
    source = os.path.join(os.path.dirname(tessera.__file__), "share", "tessera", "kernels", "attention_fwd.tile")
    tessera.Program(source, D=D, T="f16")(q, k, v, o, Tensor(1, 1, ROWS), 0.125)
    error = max(
        abs(x - y)
        for row, result in zip(q.rows(), o.rows())
        for x, y in zip(expected_row(row, k.rows(), v.rows()), result)
    )
    print(f"error at most {error:.4f}")


main()
