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
from launching import ArrayInterface, DLPackTensor, LaunchCase, pair, tensors


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


class ExchangeLaunches(Launches):
    exchange = True


class ExchangePersistent(Persistent):
    exchange = True


class Lifetimes(LaunchCase):
    def destroyed(self):
        return self.destroy.call_count

    def setUp(self):
        super().setUp()
        self.kernel = None
        gc.collect()
        library = tessera._core._library.runtime()
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
            with open(path, "ab") as file:
                file.write(b"}")
            with self.assertRaisesRegex(tessera.BundleError, f"^{path}: not a bundle: not JSON text: "):
                tessera.load(path)
        with self.assertRaisesRegex(tessera.BundleError, "cannot read the bundle"):
            tessera.load(path)

    def test_damage(self):
        with self.assertRaisesRegex(tessera.BundleError, r"kernels\[0\].block"):
            tessera.Bundle(fake_cuda.bundle(block=[0, 1, 1]))


class Libraries(unittest.TestCase):
    def test_missing(self):
        from tessera._core import _library

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
