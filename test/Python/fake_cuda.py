"""The fake driver (test/unit/Runtime/FakeCuda.cpp) and the test bundle, for tests without a device.

The process must run with the directory of the fake libcuda.so.1 in LD_LIBRARY_PATH.
"""

import base64
import ctypes
import json

MEMORY = 1 << 40  # addresses of device n: [MEMORY * (n + 1), MEMORY * (n + 2))

library = ctypes.CDLL("libcuda.so.1")
library.fake_cuda_launch_count.restype = ctypes.c_size_t
library.fake_cuda_encode_count.restype = ctypes.c_size_t
library.fake_cuda_allocation_count.restype = ctypes.c_size_t
library.fake_cuda_parameter_sizes.restype = ctypes.c_size_t
library.fake_cuda_end_capture.restype = ctypes.c_void_p

PARAMETERS = [ctypes.c_char * 128, ctypes.c_uint64, ctypes.c_int32, ctypes.c_int64, ctypes.c_float, ctypes.c_int64]


def reset():
    library.fake_cuda_reset()
    set_parameters(PARAMETERS)


def set_parameters(types):
    """Other parameters than those of `bundle` are to be recorded, until the next reset."""
    sizes = (ctypes.c_uint * len(types))(*map(ctypes.sizeof, types))
    library.fake_cuda_set_parameter_sizes(sizes, ctypes.c_size_t(len(sizes)))


def set_capability(major, minor):
    """Devices have another compute capability, until the next reset."""
    library.fake_cuda_set_capability(major, minor)


def take_low_addresses():
    """Any address but null is memory, until the next reset: valgrind gives a process lower ones than Linux does."""
    library.fake_cuda_set_lowest_address(ctypes.c_uint64(1))


def begin_capture(stream):
    """A stream captures a graph from now on."""
    library.fake_cuda_begin_capture(ctypes.c_void_p(stream))


def end_capture():
    """The graph that was captured, to be destroyed."""
    return ctypes.c_void_p(library.fake_cuda_end_capture())


def destroy_graph(graph):
    library.fake_cuda_destroy_graph(graph)


def set_on_launch(function):
    """Each launch calls a function of a shared library from now on."""
    library.fake_cuda_set_on_launch(ctypes.cast(function, ctypes.c_void_p))


def allocation_count():
    return library.fake_cuda_allocation_count()


def is_allocated(address):
    """Whether an address lies in memory that the library has allocated, as for the counters of persistent kernels."""
    return bool(library.fake_cuda_is_allocated(ctypes.c_uint64(address)))


def launch_count():
    return library.fake_cuda_launch_count()


def encode_count():
    return library.fake_cuda_encode_count()


def last_launch():
    """(grid, block, cluster, shared memory, device, stream) of the last launch."""
    numbers, stream = (ctypes.c_uint * 11)(), ctypes.c_void_p()
    library.fake_cuda_last_launch(numbers, ctypes.byref(stream))
    return tuple(numbers[:3]), tuple(numbers[3:6]), tuple(numbers[6:9]), numbers[9], numbers[10], stream.value


def last_parameter(index, kind=None):
    value = (kind or PARAMETERS[index])()
    library.fake_cuda_last_parameter(ctypes.c_size_t(index), ctypes.byref(value))
    return value.value


def read_launch(number):
    """The bytes of each parameter of a launch, from 0 on."""
    sizes = (ctypes.c_uint * 256)()
    count = library.fake_cuda_parameter_sizes(ctypes.c_size_t(number), sizes, ctypes.c_size_t(len(sizes)))
    found = []
    for index, size in enumerate(sizes[:count]):
        buffer = ctypes.create_string_buffer(size)
        library.fake_cuda_parameter(ctypes.c_size_t(number), ctypes.c_size_t(index), buffer)
        found.append(buffer.raw)
    return found


def read_map(parameter):
    """(address, extents, strides in bytes) of the tensor map that a parameter holds, of which its rank is not known: as many as there
    may be."""
    numbers = (ctypes.c_uint64 * 64)()
    library.fake_cuda_encode(ctypes.c_size_t(int.from_bytes(parameter[:8], "little")), numbers)
    return numbers[5], tuple(numbers[6:])


def bundle(**changes):
    """Text of a bundle with a kernel scale(x: bf16[B, S, 64], y: bf16[B, S, 64], a: f32, n: i64)."""
    view = {"kind": "view", "element": "bf16", "dims": ["B", "S", 64], "alignment": 16}
    kernel = {
        "name": "scale",
        "symbol": "scale",
        "dims": ["B", "S"],
        "arguments": [
            {"name": "x", "access": "read", **view},
            {"name": "y", "access": "write", **view},
            {"name": "a", "kind": "scalar", "type": "f32"},
            {"name": "n", "kind": "scalar", "type": "i64"},
        ],
        "requirements": [],
        "launch_parameters": [
            {
                "kind": "tensor_map",
                "argument": "x",
                "element": "bf16",
                "dims": [
                    {"extent": 64},
                    {"extent": "S", "stride_of_dim": 1},
                    {"extent": "B", "stride_of_dim": 0},
                ],
                "box": [64, 128, 1],
                "swizzle": "128B",
            },
            {"kind": "pointer", "argument": "y"},
            {"kind": "dim", "dim": "S", "type": "i32"},
            {"kind": "stride", "argument": "y", "dim": 1, "type": "i64"},
            {"kind": "scalar", "argument": "a", "type": "f32"},
            {"kind": "scalar", "argument": "n", "type": "i64"},
        ],
        "grid": [{"extent": "S", "divisor": 128}, {"extent": "B", "divisor": 1}],
        "block": [256, 1, 1],
        "cluster": [1, 1, 1],
        "shared_memory": 65536,
        "schedule": "consumers=1",
        "report": {"spills": 0},
        **changes,
    }
    return json.dumps(
        {
            "format": "tessera-bundle",
            "version": 1,
            "target": "sm_90a",
            "parameters": {"D": 64, "CAUSAL": True},
            "image": {"kind": "cubin", "base64": base64.b64encode(b"image").decode()},
            "kernels": [kernel],
        }
    ).encode()
