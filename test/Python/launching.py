"""What tests of launches share: tensors of several interfaces, and a kernel on the fake driver."""

import ctypes
import unittest

import fake_cuda
import fake_torch

import tessera


class ArrayInterface:
    """A CUDA array without DLPack."""

    def __init__(self, shape, typestr="<f2", strides=None, read_only=False, offset=0):
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "strides": strides,
            "data": (fake_cuda.MEMORY + offset, read_only),
            "version": 3,
        }


class DLPackTensor:
    """A tensor known by DLPack only; `stream` is what the consumer asked for."""

    def __init__(self, shape, strides=None, code=4, bits=16, device=(2, 0), offset=0):
        from tessera._core._tensor import _DLTensor

        self.device = device
        self.arrays = (ctypes.c_int64 * len(shape))(*shape), (
            (ctypes.c_int64 * len(shape))(*strides) if strides else None
        )
        self.managed = _DLTensor(
            fake_cuda.MEMORY, *device, len(shape), code, bits, 1, self.arrays[0], self.arrays[1], offset
        )

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.stream = stream
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


def pair(shape, **changes):
    """Two tensors apart from each other."""
    return fake_torch.Tensor(shape, **changes), fake_torch.Tensor(shape, offset=1 << 30, **changes)


def tensors(**changes):
    return fake_torch.Tensor((2, 300, 64), **changes), fake_torch.Tensor((2, 300, 64), offset=1 << 20)


class LaunchCase(unittest.TestCase):
    #: Whether torch offers DLPack's exchange API.
    exchange = False

    def setUp(self):
        fake_cuda.reset()
        fake_torch.install(fake_torch.capsule(fake_torch.exchange_api()) if self.exchange else None)
        self.kernel = tessera.Bundle(fake_cuda.bundle()).kernel()

    def assertRefuses(self, exception, text, *arguments, **named):
        with self.assertRaises(exception) as context:
            self.kernel(*arguments, **named)
        self.assertIn(text, str(context.exception))
        self.assertEqual(fake_cuda.launch_count(), 0)
