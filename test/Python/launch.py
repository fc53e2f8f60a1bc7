# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda:%build/test/fake-exchange TESSERA_LIBRARY=%build/lib %python %s
"""Loading and launching through the package, the real library and a fake driver."""

import ctypes
import gc
import os
import sys
import tempfile
import threading
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(__file__))

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
        from tessera._tensor import _DLTensor

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


class Launches(LaunchCase):
    def test_torch(self):
        x, y = tensors()
        self.kernel(x, y, 0.5, 7)
        grid, block, cluster, shared, device, stream = fake_cuda.last_launch()
        self.assertEqual((grid, block, cluster), ((3, 2, 1), (256, 1, 1), (1, 1, 1)))
        self.assertEqual((shared, device, stream), (65536, 0, fake_torch.STREAM_OF_DEVICE[0]))
        self.assertEqual(fake_cuda.last_parameter(1), y.data_ptr())
        self.assertEqual([fake_cuda.last_parameter(i) for i in (2, 3, 4, 5)], [300, 64, 0.5, 7])

    def test_names(self):
        x, y = tensors()
        self.kernel(x, n=1, y=y, a=2)
        self.assertEqual([fake_cuda.last_parameter(i) for i in (4, 5)], [2.0, 1])

    def test_scalars_and_addresses_change_between_calls(self):
        x, y = tensors()
        self.kernel(x, y, 0.5, 7)
        y = fake_torch.Tensor((2, 300, 64), offset=2 << 20)
        self.kernel(x, y, 0.25, -(2**40))
        self.assertEqual(fake_cuda.last_parameter(1), fake_cuda.MEMORY + (2 << 20))
        self.assertEqual([fake_cuda.last_parameter(i) for i in (4, 5)], [0.25, -(2**40)])
        self.assertEqual(fake_cuda.encode_count(), 1)

    def test_strides(self):
        x, y = tensors(strides=(64, 128, 1))
        self.kernel(x, fake_torch.Tensor((2, 300, 64), (64, 128, 1), offset=1 << 20), 1, 1)
        self.assertEqual(fake_cuda.last_parameter(3), 128)

    def test_streams(self):
        x, y = tensors()

        class Stream:
            cuda_stream = 0x77

        class Protocol:
            def __cuda_stream__(self):
                return (0, 0x88)

        for stream, address in ((0x66, 0x66), (Stream(), 0x77), (Protocol(), 0x88), (0, None)):
            self.kernel(x, y, 1, 1, stream=stream)
            self.assertEqual(fake_cuda.last_launch()[-1], address)

    def test_second_device(self):
        device = fake_torch.device("cuda", 1)
        self.kernel(*pair((1, 1, 64), device=device), 1, 1)
        self.assertEqual(fake_cuda.last_launch()[4:], (1, fake_torch.STREAM_OF_DEVICE[1]))

    def test_dlpack(self):
        x, y = DLPackTensor((2, 300, 64)), DLPackTensor((2, 300, 64), (19200, 64, 1), offset=3 << 20)
        self.kernel(x, y, 1, 1, stream=0x66)
        self.assertEqual((x.stream, y.stream), (0x66, 0x66))
        self.assertEqual(fake_cuda.last_parameter(1), fake_cuda.MEMORY + (3 << 20))
        self.assertEqual(fake_cuda.last_launch()[-1], 0x66)
        self.kernel(x, y, 1, 1)
        self.assertEqual((x.stream, fake_cuda.last_launch()[-1]), (1, None))
        self.kernel(x, tensors()[1], 1, 1)
        self.assertEqual(fake_cuda.last_launch()[-1], fake_torch.STREAM_OF_DEVICE[0])

    def test_array_interface(self):
        views = [dict(entry, element="f16") for entry in self.kernel.description["arguments"][:2]]
        launch = self.kernel.description["launch_parameters"]
        launch = [dict(launch[0], element="f16")] + launch[1:]
        text = fake_cuda.bundle(arguments=views + self.kernel.description["arguments"][2:], launch_parameters=launch)
        kernel = tessera.Bundle(text).kernel("scale")
        kernel.prepare(0)
        x = ArrayInterface((2, 300, 64), read_only=True)
        y = ArrayInterface((2, 300, 64), strides=(76800, 256, 2), offset=1 << 20)
        device = fake_torch.Tensor((2, 300, 64), dtype=fake_torch.float16)
        kernel(device, y, 1, 1)
        self.assertEqual(fake_cuda.last_parameter(3), 128)
        with self.assertRaisesRegex(ValueError, "'y' is read-only"):
            kernel(y, x, 1, 1)

    def test_threads(self):
        failures = []

        def work(number):
            x, y = tensors()
            for i in range(100):
                try:
                    self.kernel(x, y, float(number), i)
                except Exception as error:  # reported below, on the main thread
                    failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(fake_cuda.launch_count(), 400)

    def test_many_signatures(self):
        for length in range(1, 1100):
            x, y = pair((1, length, 64))
            self.kernel(x, y, 1, 1)
        self.assertEqual(fake_cuda.last_parameter(2), 1099)

    def test_empty_grid(self):
        x, y = pair((2, 0, 64))
        self.kernel(x, y, 1, 1)
        self.assertEqual(fake_cuda.launch_count(), 0)


class Persistent(LaunchCase):
    WORKSPACE = len(fake_cuda.PARAMETERS)

    def setUp(self):
        super().setUp()
        parameters = self.kernel.description["launch_parameters"] + [{"kind": "workspace", "bytes": 4}]
        self.changes = {"persistent": True, "launch_parameters": parameters}
        self.kernel = tessera.Bundle(fake_cuda.bundle(**self.changes)).kernel()
        fake_cuda.set_parameters([*fake_cuda.PARAMETERS, ctypes.c_uint64])

    def workspace(self, stream):
        self.kernel(*tensors(), 1, 1, stream=stream)
        return fake_cuda.last_parameter(self.WORKSPACE, ctypes.c_uint64)

    def test_grid(self):
        for shape in ((2, 300), (2, 128 * 66), (70, 257), (1, 0)):
            x, y = pair((*shape, 64))
            grid = self.kernel.grid(0, B=shape[0], S=shape[1])
            self.assertEqual(grid, (min(shape[0] * -(-shape[1] // 128), 132), 1, 1))
            self.kernel(x, y, 1, 1)
            if grid[0]:
                self.assertEqual(fake_cuda.last_launch()[0], grid)
        self.assertEqual(fake_cuda.launch_count(), 3)
        with self.assertRaisesRegex(tessera.DeviceError, "there is no CUDA device 7"):
            self.kernel.grid(7, B=1, S=1)

    def test_clusters(self):
        self.kernel = tessera.Bundle(fake_cuda.bundle(cluster=[2, 1, 1], **self.changes)).kernel()
        self.assertEqual(self.kernel.grid(0, B=2, S=300), (12, 1, 1))
        self.assertEqual(self.kernel.grid(0, B=60, S=129), (120, 1, 1))
        self.kernel(*tensors(), 1, 1)
        self.assertEqual(fake_cuda.last_launch()[0], (12, 1, 1))

    def test_workspaces(self):
        first, second = self.workspace(0x66), self.workspace(0x77)
        self.assertNotEqual(first, second)
        self.assertEqual((self.workspace(0x66), self.workspace(0x77)), (first, second))
        self.assertEqual(fake_cuda.allocation_count(), 2)
        self.kernel = None
        gc.collect()
        self.assertEqual(fake_cuda.allocation_count(), 0)

    def test_capture(self):
        fake_cuda.begin_capture(0x66)
        first, second = self.workspace(0x66), self.workspace(0x66)
        graph = fake_cuda.end_capture()
        self.assertEqual(len({first, second, self.workspace(0x66)}), 3)
        self.kernel = None
        gc.collect()
        self.assertEqual(fake_cuda.allocation_count(), 3)
        fake_cuda.destroy_graph(graph)
        tessera.Bundle(fake_cuda.bundle())
        gc.collect()
        self.assertEqual(fake_cuda.allocation_count(), 0)


class Refusals(LaunchCase):
    def test_counts_and_names(self):
        x, y = tensors()
        self.assertRefuses(TypeError, "scale() misses n; it takes x, y, a, n", x, y, 1)
        self.assertRefuses(TypeError, "scale() takes 4 arguments (x, y, a, n); 5 were given", x, y, 1, 2, 3)
        self.assertRefuses(TypeError, "scale() has no argument 'b'", x, y, 1, b=2)
        self.assertRefuses(TypeError, "scale() got argument 'a' twice", x, y, 1, a=2)

    def test_shapes(self):
        x, _ = tensors()
        self.assertRefuses(
            ValueError, "argument 'y': dimension 1, 'S', has extent 299", x, fake_torch.Tensor((2, 299, 64)), 1, 1
        )
        self.assertRefuses(
            ValueError, "has rank 2; the kernel takes rank 3, [B, S, 64]", x, fake_torch.Tensor((300, 64)), 1, 1
        )

    def test_types(self):
        x, y = tensors()
        self.assertRefuses(TypeError, "argument 'x': is a tensor of f16", *tensors(dtype=fake_torch.float16), 1, 1)
        self.assertRefuses(TypeError, "argument 'x' has type torch.float64", *tensors(dtype=fake_torch.float64), 1, 1)
        self.assertRefuses(TypeError, "argument 'x' is a list; the kernel takes a torch tensor", [1], y, 1, 1)
        self.assertRefuses(TypeError, "argument 'a' is a str; the kernel takes a real number", x, y, "1", 1)
        self.assertRefuses(TypeError, "argument 'n' is a float; the kernel takes an integer", x, y, 1, 1.5)
        self.assertRefuses(ValueError, "argument 'n' is 9223372036854775808, which does not fit in i64", x, y, 1, 2**63)
        self.assertRefuses(TypeError, "stream is a str", x, y, 1, 1, stream="default")
        self.assertRefuses(
            TypeError, "DLPack type code 2 with 64 bits", x, DLPackTensor((2, 300, 64), code=2, bits=64), 1, 1
        )
        self.assertRefuses(TypeError, "has type '<f8'", x, ArrayInterface((2, 300, 64), "<f8"), 1, 1)

    def test_numbers_beyond_the_type(self):
        x, y = tensors()
        for number in (2**63, -(2**63) - 1, 2**64, 10**30):
            self.assertRefuses(ValueError, f"argument 'n' is {number}, which does not fit in i64", x, y, 1, number)
        for number in (10**400, -(10**400), 2**128, 1e39, -1e300):
            self.assertRefuses(ValueError, f"argument 'a' is {number}, which does not fit in f32", x, y, number, 1)
        for stream in (-1, 2**64):
            self.assertRefuses(ValueError, f"stream is {stream}, which is no", x, y, 1, 1, stream=stream)
        for device in (-2, 2**31, 2**32):
            for use in (self.kernel.prepare, self.kernel.read_timeline):
                with self.assertRaisesRegex(ValueError, f"device is {device}; it is the number"):
                    use(device)
        self.kernel(x, y, 3.4028234663852886e38, 1)
        for number in (float("inf"), float("-inf")):
            self.kernel(x, y, number, 1)
            self.assertEqual(fake_cuda.last_parameter(4), number)

    def test_array_interfaces(self):
        _, y = tensors()

        def interface(**changes):
            x = ArrayInterface((2, 300, 64), "<f4")
            x.__cuda_array_interface__.update(changes)
            return x

        for text, changes in (
            ("'x' has 2 strides for 3 dimensions; each dimension has one", {"strides": (256, 4)}),
            ("'x' has 0 strides for 3 dimensions", {"strides": ()}),
            ("'x' has 4 strides for 3 dimensions", {"strides": (76800, 256, 4, 4)}),
            ("'x': 9223372036854775808 among its strides is not from", {"strides": (2**63, 256, 4)}),
            ("'x': 18446744073709551617 among its extents is not from 0", {"shape": (2**64 + 1, 300, 64)}),
            ("'x': -1 among its extents is not from 0", {"shape": (-1, 300, 64)}),
            ("'x': 18446744073709551616 among its addresses is not from 0", {"data": (2**64, False)}),
            ("'x': -16 among its addresses is not from 0", {"data": (-16, False)}),
        ):
            self.assertRefuses(ValueError, text, interface(**changes), y, 1, 1)
        for text, changes in (
            ("'x': its strides are no integers", {"strides": (76800.0, 256, 4)}),
            ("'x': its extents are no integers", {"shape": (2, "300", 64)}),
            ("'x' has a CUDA array interface without data", {"data": None}),
            ("'x' has a CUDA array interface without shape, typestr", {"shape": None, "typestr": None}),
        ):
            self.assertRefuses(TypeError, text, interface(**changes), y, 1, 1)

    def test_dlpack_without_a_shape(self):
        _, y = tensors()
        x = DLPackTensor((2, 300, 64))
        x.managed.shape = None
        self.assertRefuses(ValueError, "'x' has a DLPack tensor of 3 dimensions without a shape", x, y, 1, 1)
        x.managed.ndim = -1
        self.assertRefuses(ValueError, "'x' has a DLPack tensor of -1 dimensions", x, y, 1, 1)

    def test_shared_memory(self):
        x, y = tensors()
        self.assertRefuses(ValueError, "arguments 'x' and 'y' share memory, and the kernel writes 'y'", x, x, 1, 1)
        bytes = 2 * 300 * 64 * 2
        tail = fake_torch.Tensor((2, 300, 64), offset=(1 << 20) + bytes - 128)
        self.assertRefuses(ValueError, "arguments 'x' and 'y' share memory", tail, y, 1, 1)
        windows = fake_torch.Tensor((2, 300, 64), strides=(64, 8, 1), offset=1 << 20)
        self.assertRefuses(ValueError, "argument 'y': elements at different indices share memory", x, windows, 1, 1)
        # Halves of the rows of one array.
        self.kernel(*(fake_torch.Tensor((2, 300, 64), strides=(38400, 128, 1), offset=at) for at in (0, 128)), 1, 1)

    def test_devices(self):
        x, y = tensors()
        cpu, second = fake_torch.device("cpu"), fake_torch.device("cuda", 1)
        self.assertRefuses(
            ValueError, "argument 'x' is on cpu; the kernel needs a CUDA tensor", *tensors(device=cpu), 1, 1
        )
        self.assertRefuses(
            ValueError, "argument 'y' is on device 0, an earlier one on device 1", *tensors(device=second), 1, 1
        )
        self.assertRefuses(
            ValueError, "lies in memory of DLPack device type 1", DLPackTensor((2, 300, 64), device=(1, 0)), y, 1, 1
        )
        with self.assertRaisesRegex(tessera.DeviceError, "there is no CUDA device 7"):
            self.kernel.prepare(7)

    def test_strides(self):
        _, y = tensors()
        self.assertRefuses(ValueError, "the innermost dimension has stride 2", *tensors(strides=(38400, 128, 2)), 1, 1)
        self.assertRefuses(ValueError, "is no multiple of 16 bytes", *tensors(offset=2), 1, 1)


WITHOUT_VIEWS = {
    "dims": [],
    "arguments": [{"name": "n", "kind": "scalar", "type": "i64"}],
    "launch_parameters": [{"kind": "scalar", "argument": "n", "type": "i64"}],
    "grid": [{"extent": 1, "divisor": 1}],
}


class ExchangeLaunches(Launches):
    exchange = True


class ExchangePersistent(Persistent):
    exchange = True


class ExchangeRefusals(Refusals):
    exchange = True


def count_python_calls():
    """For `with`: counts the calls in which Python looks at the tensors."""
    method = tessera.Kernel._call_torch
    return unittest.mock.patch.object(tessera.Kernel, "_call_torch", autospec=True, side_effect=method)


class Exchange(LaunchCase):
    """What is launched in one call of the library, and what is left to Python."""

    exchange = True

    def launch(self, *arguments, **named):
        """Whether a launch went through the exchange API. It leaves no error behind, in either case."""
        before = fake_cuda.launch_count()
        with count_python_calls() as method:
            self.kernel(*arguments, **named)
        self.assertEqual(fake_cuda.launch_count(), before + 1)
        return not method.called

    def assertTakes(self, *arguments, **named):
        self.assertTrue(self.launch(*arguments, **named))

    def assertLeaves(self, *arguments, **named):
        self.assertFalse(self.launch(*arguments, **named))

    def test_tensors(self):
        x, y = tensors()
        before = fake_torch.tensors_read()
        self.assertTakes(x, y, 0.5, 7)
        self.assertEqual(fake_torch.tensors_read(), before + 2)
        self.assertTakes(x, n=7, a=0.5, y=y)
        self.assertTakes(fake_torch.Parameter((2, 300, 64)), y, 0.5, 7)
        y.dltensor.byte_offset = 1024
        self.assertTakes(x, y, 0.5, 7)
        self.assertEqual(fake_cuda.last_parameter(1), y.data_ptr() + 1024)

    def test_strides(self):
        x, y = tensors()
        self.assertTakes(x, fake_torch.Tensor((2, 300, 64), (64, 128, 1), offset=1 << 20), 1, 1)
        self.assertEqual(fake_cuda.last_parameter(3), 128)
        y.dltensor.strides = None
        self.assertTakes(x, y, 1, 1)
        self.assertEqual(fake_cuda.last_parameter(3), 64)
        encoded = fake_cuda.encode_count()
        x.dltensor.strides = None
        self.assertTakes(x, y, 1, 1)
        self.assertEqual(fake_cuda.encode_count(), encoded)

    def test_scalars(self):
        x, y = tensors()
        for a, n in ((0.25, 7), (3, -(2**63)), (-1, -1), (-1.0, 2**63 - 1), (float("inf"), 0)):
            self.assertTakes(x, y, a, n)
            self.assertEqual([fake_cuda.last_parameter(i) for i in (4, 5)], [a, n])

    def test_i32(self):
        arguments, launch = (self.kernel.description[key] for key in ("arguments", "launch_parameters"))
        arguments[-1]["type"] = launch[-1]["type"] = "i32"
        self.kernel = tessera.Bundle(fake_cuda.bundle(arguments=arguments, launch_parameters=launch)).kernel()
        fake_cuda.set_parameters([*fake_cuda.PARAMETERS[:-1], ctypes.c_int32])
        for n in (-(2**31), -1, 2**31 - 1):
            self.assertTakes(*tensors(), 1, n)
            self.assertEqual(fake_cuda.last_parameter(5, ctypes.c_int32), n)
        for n in (-(2**31) - 1, 2**31):
            with self.assertRaisesRegex(ValueError, f"argument 'n' is {n}, which does not fit in i32"):
                self.kernel(*tensors(), 1, n)

    def test_streams(self):
        x, y = tensors()
        self.assertTakes(x, y, 1, 1)
        self.assertEqual(fake_cuda.last_launch()[-1], fake_torch.STREAM_OF_DEVICE[0])
        fake_torch.set_stream(0, 0x99)
        self.assertTakes(x, y, 1, 1)
        self.assertEqual(fake_cuda.last_launch()[-1], 0x99)
        for stream, address in ((0x66, 0x66), (0, None)):
            self.assertTakes(x, y, 1, 1, stream=stream)
            self.assertEqual(fake_cuda.last_launch()[-1], address)
        with self.assertRaisesRegex(ValueError, f"stream is {2**64 + 0x77}, which is not the address of a CUstream"):
            self.kernel(x, y, 1, 1, stream=2**64 + 0x77)
        x, y = pair((1, 1, 64), device=fake_torch.device("cuda", 1))
        self.assertTakes(x, y, 1, 1)
        self.assertEqual(fake_cuda.last_launch()[4:], (1, fake_torch.STREAM_OF_DEVICE[1]))

    def test_gil(self):
        fake_cuda.set_on_launch(fake_torch.exchange.fake_exchange_note_gil)
        self.assertTakes(*tensors(), 1, 1)
        self.assertEqual(fake_torch.gil_of_launch(), 0)

    def test_other_thread(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(self.launch(*tensors(), 1, 1)))
        thread.start()
        thread.join()
        self.assertEqual(found, [True])

    def test_other_objects(self):
        class Derived(fake_torch.Tensor):
            pass

        x, y = tensors()
        self.assertLeaves(Derived((2, 300, 64)), y, 1, 1)
        self.assertLeaves(DLPackTensor((2, 300, 64)), y, 1, 1)

        class Index:
            def __index__(self):
                return 5

        self.assertLeaves(x, y, True, 1)
        self.assertLeaves(x, y, 1, True)
        self.assertLeaves(x, y, 1, Index())
        self.assertEqual(fake_cuda.last_parameter(5), 5)

    def test_other_tensors(self):
        for member, value in (("device_type", 13), ("lanes", 2), ("code", 0), ("bits", 8), ("ndim", 2)):
            x, y = tensors()
            setattr(x.dltensor, member, value)
            self.assertLeaves(x, y, 1, 1)
        x, y = tensors()
        y.dltensor.device_id = 1
        self.assertLeaves(x, y, 1, 1)

    def test_errors_of_the_interface(self):
        x, y = tensors()
        fake_torch.set_stream(0, None)
        self.assertLeaves(x, y, 1, 1)
        self.assertEqual(fake_cuda.last_launch()[-1], fake_torch.STREAM_OF_DEVICE[0])
        self.assertTakes(x, y, 1, 1, stream=0x66)
        del y.dltensor_address
        self.assertLeaves(x, y, 1, 1, stream=0x66)

    def test_refusals(self):
        x, _ = tensors()
        with count_python_calls() as method:
            self.assertRefuses(ValueError, "has extent 299, but 'S' is 300", x, fake_torch.Tensor((2, 299, 64)), 1, 1)
            self.assertRefuses(TypeError, "is a tensor of f16", *tensors(dtype=fake_torch.float16), 1, 1)
        method.assert_not_called()

    def test_no_views(self):
        self.kernel = tessera.Bundle(fake_cuda.bundle(**WITHOUT_VIEWS)).kernel()
        with count_python_calls() as method:
            self.assertRefuses(tessera.DeviceError, "no CUDA context is current", 3, stream=0x66)
        method.assert_called_once()

    def test_versions(self):
        older = fake_torch.exchange_api()
        later = {"major": 2, "dltensor_from_py_object_no_sync": 1, "current_work_stream": 1}
        for taken, offered in (
            (True, fake_torch.capsule(older)),
            (True, fake_torch.capsule(fake_torch.exchange_api(minor=9))),
            (True, fake_torch.capsule(fake_torch.exchange_api(prev_api=ctypes.addressof(older), **later))),
            (False, fake_torch.capsule(fake_torch.exchange_api(**later))),
            (False, fake_torch.capsule(older, b"other")),
            (False, fake_torch.capsule(fake_torch.exchange_api(dltensor_from_py_object_no_sync=None))),
            (False, fake_torch.capsule(fake_torch.exchange_api(current_work_stream=None))),
            (False, ctypes.addressof(older)),
            (False, None),
        ):
            fake_torch.install(offered)
            self.assertEqual(self.launch(*tensors(), 1, 1), taken)


class Lifetimes(LaunchCase):
    def destroyed(self):
        return self.destroy.call_count

    def setUp(self):
        super().setUp()
        self.kernel = None
        gc.collect()
        library = tessera._library.runtime()
        self.destroy = unittest.mock.Mock(side_effect=library.tessera_bundle_destroy)
        patch = unittest.mock.patch.object(library, "tessera_bundle_destroy", self.destroy)
        patch.start()
        self.addCleanup(patch.stop)

    def test_kernel_without_its_bundle(self):
        kernel = tessera.Bundle(fake_cuda.bundle()).kernel()
        gc.collect()
        self.assertEqual(self.destroyed(), 0)
        kernel.bundle = None
        gc.collect()
        kernel(*tensors(), 1, 1)
        self.assertEqual(self.destroyed(), 0)
        del kernel
        gc.collect()
        self.assertEqual(self.destroyed(), 1)

    def test_launch_while_garbage_is_collected(self):
        """What is collected with a kernel may use it one last time."""

        class Model:
            def __init__(self):
                self.kernel = tessera.Bundle(fake_cuda.bundle()).kernel()
                self.own = self
                self.kernel.model = self

            def __del__(self):
                self.kernel(*tensors(), 1, 1)
                self.destroyed.append(Lifetimes.destroyed(self.case))

        Model.destroyed, Model.case = [], self
        for _ in range(3):
            Model()
        gc.collect()
        self.assertEqual(fake_cuda.launch_count(), 3)
        self.assertEqual(Model.destroyed[0], 0)
        self.assertEqual(self.destroyed(), 3)


class Bundles(LaunchCase):
    def test_description(self):
        self.assertEqual(self.kernel.name, "scale")
        self.assertEqual(self.kernel.report, {"spills": 0})
        self.assertEqual(self.kernel.schedule, "consumers=1")
        self.assertEqual(self.kernel.parameters, {"D": 64, "CAUSAL": True})
        self.assertEqual(self.kernel.grid(S=300, B=2), (3, 2, 1))
        self.assertEqual(
            repr(self.kernel), "<tessera kernel scale(x: bf16[B, S, 64], y: bf16[B, S, 64], a: f32, n: i64)>"
        )
        with self.assertRaisesRegex(TypeError, "needs the extent 'S'"):
            self.kernel.grid(B=2)

    def test_files(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "scale.bundle")
            with open(path, "wb") as file:
                file.write(fake_cuda.bundle())
            self.assertEqual(tessera.load(path).name, "scale")
            with self.assertRaisesRegex(ValueError, "no kernel 'gemm'; it has scale"):
                tessera.load(path, kernel="gemm")
        with self.assertRaisesRegex(tessera.BundleError, "cannot read the bundle"):
            tessera.load(path)

    def test_damage(self):
        with self.assertRaisesRegex(tessera.BundleError, r"kernels\[0\].block"):
            tessera.Bundle(fake_cuda.bundle(block=[0, 1, 1]))


class Libraries(unittest.TestCase):
    def test_missing(self):
        from tessera import _library

        old = os.environ.get("TESSERA_LIBRARY")
        try:
            with tempfile.TemporaryDirectory() as directory:
                os.environ["TESSERA_LIBRARY"] = directory
                with self.assertRaisesRegex(tessera.LibraryError, "cannot find libtessera.so in"):
                    _library.find("libtessera.so")
            with self.assertRaisesRegex(tessera.LibraryError, "does not exist"):
                _library.find("libtessera.so")
        finally:
            os.environ["TESSERA_LIBRARY"] = old


if __name__ == "__main__":
    unittest.main()
