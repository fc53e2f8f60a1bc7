# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda:%build/test/fake-exchange TESSERA_LIBRARY=%build/lib %python %s
"""Launches in one call of the library, through the exchange API of DLPack that torch offers, and what is left to Python."""

import ctypes
import os
import sys
import threading
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(__file__))

import fake_cuda
import fake_torch

import tessera
from launching import DLPackTensor, LaunchCase, pair, tensors

WITHOUT_VIEWS = {
    "dims": [],
    "arguments": [{"name": "n", "kind": "scalar", "type": "i64"}],
    "launch_parameters": [{"kind": "scalar", "argument": "n", "type": "i64"}],
    "grid": [{"extent": 1, "divisor": 1}],
}


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


if __name__ == "__main__":
    unittest.main()
