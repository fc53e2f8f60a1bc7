"""As much of torch as launching uses, with tensors in the fake driver's memory.

The process must run with the directory of libfake_exchange.so (FakeExchange.cpp) in LD_LIBRARY_PATH.
"""

import ctypes
import sys
import types

from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

from fake_cuda import MEMORY

exchange = ctypes.PyDLL("libfake_exchange.so")


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


class DLTensor(ctypes.Structure):
    """Of dlpack.h, written out so that the test notices when the package's own copy departs."""

    _fields_ = [
        ("data", c_uint64),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("byte_offset", c_uint64),
    ]


class DLPackExchangeAPI(ctypes.Structure):
    """The same for this structure."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("prev_api", c_void_p),
        ("managed_tensor_allocator", c_void_p),
        ("managed_tensor_from_py_object_no_sync", c_void_p),
        ("managed_tensor_to_py_object_no_sync", c_void_p),
        ("dltensor_from_py_object_no_sync", c_void_p),
        ("current_work_stream", c_void_p),
    ]


DL_DEVICES = {"cpu": 1, "cuda": 2}
DL_TYPES = {float16: (2, 16), bfloat16: (4, 16), float32: (2, 32), float64: (2, 64)}


class Tensor:
    def __init__(self, shape, strides=None, dtype=bfloat16, device=device("cuda", 0), offset=0):
        self.shape, self.dtype, self.device = tuple(shape), dtype, device
        self._strides = tuple(strides or row_major(shape))
        self._pointer = MEMORY * (1 + (device.index or 0)) + offset
        self._sizes = (c_int64 * len(self.shape))(*self.shape), (c_int64 * len(self.shape))(*self._strides)
        self.dltensor = DLTensor(
            self._pointer,
            DL_DEVICES[device.type],
            device.index or 0,
            len(self.shape),
            *DL_TYPES[dtype],
            1,
            *map(ctypes.addressof, self._sizes),
            0,
        )
        #: Where libfake_exchange.so looks.
        self.dltensor_address = ctypes.addressof(self.dltensor)

    def get_device(self):
        return -1 if self.device.index is None else self.device.index

    def stride(self):
        return self._strides

    def data_ptr(self):
        return self._pointer


class Parameter(Tensor):
    pass


STREAM_OF_DEVICE = {0: 0x5000, 1: 0x6000}


def exchange_api(**changes):
    """A DLPackExchangeAPI for the tensors of this module."""
    functions = {
        "dltensor_from_py_object_no_sync": ctypes.cast(exchange.fake_exchange_read_tensor, c_void_p),
        "current_work_stream": ctypes.cast(exchange.fake_exchange_current_stream, c_void_p),
    }
    return DLPackExchangeAPI(**{"major": 1, "minor": 3, **functions, **changes})


def capsule(structure, name=b"dlpack_exchange_api"):
    new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
    capsule.kept.append((structure, name))
    return new(ctypes.addressof(structure), name, None)


capsule.kept = []  # A capsule owns neither what it points to nor its name.


def set_stream(device, stream):
    """Makes a stream the current one of a device for the exchange API; None: it fails to tell."""
    (c_void_p * 2).in_dll(exchange, "fake_exchange_streams")[device] = stream


def tensors_read():
    """How many tensors the exchange API has described so far."""
    return ctypes.c_int.in_dll(exchange, "fake_exchange_reads").value


def gil_of_launch():
    """Whether the thread held the GIL when the function for fake_cuda.set_on_launch was called last."""
    return ctypes.c_int.in_dll(exchange, "fake_exchange_gil").value


def install(exchange_api=None):
    """Makes `import torch` give this module, with tensors that offer `exchange_api` as DLPack's."""
    import tessera._core._tensor

    module = types.ModuleType("torch")
    module.__dict__.update(
        Tensor=Tensor,
        nn=types.SimpleNamespace(Parameter=Parameter),
        float16=float16,
        bfloat16=bfloat16,
        float32=float32,
        _C=types.SimpleNamespace(_cuda_getCurrentRawStream=STREAM_OF_DEVICE.__getitem__),
    )
    if exchange_api is not None:
        Tensor.__dlpack_c_exchange_api__ = exchange_api
    elif hasattr(Tensor, "__dlpack_c_exchange_api__"):
        del Tensor.__dlpack_c_exchange_api__
    for number, stream in STREAM_OF_DEVICE.items():
        set_stream(number, stream)
    sys.modules["torch"] = module
    # What the package knows of the torch before.
    tessera._core._tensor._torch = None
