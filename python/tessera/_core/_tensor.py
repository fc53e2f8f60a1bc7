"""What an argument is, told by torch, by DLPack or by the CUDA array interface (version 3)."""

import ctypes
import math
import operator
import sys

from . import _exchange
from ._library import CURRENT_DEVICE, ELEMENTS, TORCH_NAMES, TYPESTRS, list_names

#: The dimensions that a view of a kernel has, at most.
MAX_RANK = 4
#: Bytes of a device's address space (47 bits are in use).
ADDRESS_SPACE = 1 << 47

# DLDeviceType
_DL_CPU, _DL_CUDA, _DL_CUDA_HOST, _DL_CUDA_MANAGED = 1, 2, 3, 13
# (DLDataTypeCode, bits)
_DL_TYPES = {(element.dlpack, 8 * element.size): element.code for element in ELEMENTS}


class _DLTensor(ctypes.Structure):
    """DLTensor of dlpack.h, the first member of DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class TorchBinding:
    """What launching needs of torch, looked up once."""

    def __init__(self, torch):
        self.tensor = torch.Tensor
        self.types = {
            getattr(torch, element.torch): element.code for element in ELEMENTS if hasattr(torch, element.torch)
        }
        # The public torch.cuda.current_stream makes a Stream object, which takes longer than a launch.
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self.current_stream = raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)
        #: A Launcher, None when torch is too old for it.
        self.launcher = _exchange.create_launcher(torch)


_torch = None


def torch_binding():
    """The TorchBinding, or None while the application has not imported torch."""
    global _torch
    if _torch is None:
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "Tensor"):
            _torch = TorchBinding(torch)
    return _torch


def _row_major(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _convert_integers(name, what, values, low, high):
    """Integers that fit in the C type that ctypes would cut them to."""
    try:
        values = tuple(map(operator.index, values))
    except TypeError:
        raise TypeError(f"argument '{name}': its {what} are no integers") from None
    for value in values:
        if not low <= value <= high:
            raise ValueError(f"argument '{name}': {value} among its {what} is not from {low} to {high}")
    return values


_INT64 = (-(2**63), 2**63 - 1)


class Described:
    """An argument's address and `key` = (shape, strides in elements, tessera_type, device)."""

    def __init__(self, name, pointer, shape, strides, type_code, device, owner, read_only=False):
        (self.pointer,) = _convert_integers(name, "addresses", [pointer], 0, 2**64 - 1)
        shape = _convert_integers(name, "extents", shape, 0, 2**31 - 1)
        strides = _convert_integers(name, "strides", strides, *_INT64)
        if len(shape) != len(strides):
            raise ValueError(
                f"argument '{name}' has {len(strides)} strides for {len(shape)} dimensions; each dimension has one"
            )
        self.key = (shape, strides, type_code, device)
        self.owner = owner  # keeps what `pointer` belongs to
        self.read_only = read_only


def _from_dlpack(name, value, stream):
    device_type, device = value.__dlpack_device__()
    if device_type not in (_DL_CUDA, _DL_CUDA_HOST, _DL_CUDA_MANAGED):
        place = "on the CPU" if device_type == _DL_CPU else f"in memory of DLPack device type {int(device_type)}"
        raise ValueError(
            f"argument '{name}' lies {place}; the kernel takes CUDA memory: move it there, or run the source on the CPU by tessera.Program"
        )
    # In DLPack 1 is the legacy default stream; 0 is not allowed.
    capsule = value.__dlpack__(stream=stream or 1)
    tensor = _DLTensor.from_address(_exchange.capsule_pointer(capsule, b"dltensor"))
    # Of a producer that says something else than it has no more is read than a view could have.
    if not 0 <= tensor.ndim <= MAX_RANK:
        raise ValueError(f"argument '{name}' has a DLPack tensor of {tensor.ndim} dimensions; views have 0 to {MAX_RANK}")
    if tensor.ndim and not tensor.shape:
        raise ValueError(f"argument '{name}' has a DLPack tensor of {tensor.ndim} dimensions without a shape")
    if tensor.byte_offset >= ADDRESS_SPACE:
        raise ValueError(f"argument '{name}' has a DLPack tensor that begins {tensor.byte_offset} bytes behind its address")
    shape = tensor.shape[: tensor.ndim] if tensor.ndim else ()
    strides = tensor.strides[: tensor.ndim] if tensor.strides else _row_major(shape)
    type_code = _DL_TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if type_code is None:
        raise TypeError(
            f"argument '{name}' has DLPack type code {tensor.code} with {tensor.bits} bits; kernels "
            f"take {list_names(element.name for element in ELEMENTS)}"
        )
    device = CURRENT_DEVICE if device_type == _DL_CUDA_HOST else int(device)
    return Described(name, tensor.data + tensor.byte_offset, shape, strides, type_code, device, capsule)


def _from_array_interface(name, value):
    interface = value.__cuda_array_interface__
    missing = [key for key in ("shape", "typestr", "data") if interface.get(key) is None]
    if missing:
        raise TypeError(f"argument '{name}' has a CUDA array interface without {', '.join(missing)}")
    element = TYPESTRS.get(interface["typestr"])
    if element is None:
        raise TypeError(
            f"argument '{name}' has type '{interface['typestr']}'; through the CUDA array interface "
            f"kernels take {list_names(TYPESTRS)} (bf16 needs DLPack)"
        )
    if interface.get("mask") is not None:
        raise TypeError(f"argument '{name}' is a masked array; kernels take dense ones")
    shape, byte_strides = interface["shape"], interface.get("strides")
    if byte_strides is None:
        strides = _row_major(shape)
    elif any(stride % element.size for stride in _convert_integers(name, "strides", byte_strides, *_INT64)):
        raise ValueError(f"argument '{name}' has strides that are no multiples of its elements")
    else:
        strides = tuple(stride // element.size for stride in byte_strides)
    pointer, read_only = interface["data"]
    return Described(name, pointer or 0, shape, strides, element.code, CURRENT_DEVICE, interface, read_only)


def describe_torch(name, tensor, binding):
    """Described for a torch tensor; the slow way, which says what is wrong."""
    if tensor.device.type != "cuda":
        raise ValueError(f"argument '{name}' is on {tensor.device}; the kernel needs a CUDA tensor")
    type_code = binding.types.get(tensor.dtype)
    if type_code is None:
        raise TypeError(f"argument '{name}' has type {tensor.dtype}; kernels take {TORCH_NAMES}")
    return Described(name, tensor.data_ptr(), tensor.shape, tensor.stride(), type_code, tensor.device.index, tensor)


def describe(name, value, stream):
    """Described for an argument of any supported kind. `stream` is where it will be used."""
    binding = torch_binding()
    if binding and isinstance(value, binding.tensor):
        return describe_torch(name, value, binding)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _from_dlpack(name, value, stream)
    if hasattr(value, "__cuda_array_interface__"):
        return _from_array_interface(name, value)
    raise TypeError(
        f"argument '{name}' is a {type(value).__name__}; the kernel takes a torch tensor, or an object "
        "with __dlpack__ or __cuda_array_interface__"
    )


def lent_memory(memory):
    """The address and the bytes of memory that a caller lends."""
    if hasattr(memory, "data_ptr"):
        return memory.data_ptr(), memory.numel() * memory.element_size()
    interface = getattr(memory, "__cuda_array_interface__", None)
    if interface:
        return interface["data"][0], math.prod(interface["shape"]) * int(interface["typestr"][2:])
    if isinstance(memory, tuple) and len(memory) == 2:
        return tuple(map(operator.index, memory))
    raise TypeError(
        f"workspace is a {type(memory).__name__}; pass a tensor of torch, an object with __cuda_array_interface__, or "
        "(address, bytes)"
    )
