"""As much of torch as launching uses, with tensors in the fake driver's memory."""

import sys
import types

from fake_cuda import MEMORY


class dtype:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"


class device:
    def __init__(self, type, index=None):
        self.type, self.index = type, index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


float16, bfloat16, float32, float64 = map(dtype, ("float16", "bfloat16", "float32", "float64"))


def row_major(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return tuple(strides)


class Tensor:
    def __init__(self, shape, strides=None, dtype=bfloat16, device=device("cuda", 0), offset=0):
        self.shape, self.dtype, self.device = tuple(shape), dtype, device
        self._strides = tuple(strides or row_major(shape))
        self._pointer = MEMORY * (1 + (device.index or 0)) + offset

    def get_device(self):
        return -1 if self.device.index is None else self.device.index

    def stride(self):
        return self._strides

    def data_ptr(self):
        return self._pointer


STREAM_OF_DEVICE = {0: 0x5000, 1: 0x6000}


def install():
    """Makes `import torch` give this module."""
    module = types.ModuleType("torch")
    module.__dict__.update(
        Tensor=Tensor,
        float16=float16,
        bfloat16=bfloat16,
        float32=float32,
        _C=types.SimpleNamespace(_cuda_getCurrentRawStream=STREAM_OF_DEVICE.__getitem__),
    )
    sys.modules["torch"] = module
