# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda:%build/test/fake-exchange TESSERA_LIBRARY=%build/lib %python %s
"""What calls are refused before anything is launched: arguments, types, devices, memory that is shared."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))

import fake_cuda
import fake_torch

import tessera
from launching import ArrayInterface, DLPackTensor, LaunchCase, tensors


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

    def test_dlpack_that_lies(self):
        """Nothing is read behind what a view could have."""
        _, y = tensors()
        for field, value, text in (
            ("ndim", -1, "a DLPack tensor of -1 dimensions; views have 0 to 4"),
            ("ndim", -(2**31), "dimensions; views have 0 to 4"),
            ("ndim", 5, "a DLPack tensor of 5 dimensions; views have 0 to 4"),
            ("ndim", 2**31 - 1, "a DLPack tensor of 2147483647 dimensions; views have 0 to 4"),
            ("byte_offset", -8, "begins 18446744073709551608 bytes behind its address"),
            ("byte_offset", 1 << 47, "begins 140737488355328 bytes behind its address"),
        ):
            x = DLPackTensor((2, 300, 64))
            setattr(x.managed, field, value)
            self.assertRefuses(ValueError, text, x, y, 1, 1)
        for shape, strides, text in (
            ((2, -300, 64), None, "-300 among its extents"),
            ((2, 2**31, 64), None, "2147483648 among its extents"),
            ((2, 300, 64), (-19200, 64, 1), "dimension 0 has stride -19200; strides are not negative"),
            ((2, 300, 64), (2**60, 64, 1), "more than an address space"),
        ):
            self.assertRefuses(ValueError, text, DLPackTensor(shape, strides), y, 1, 1)

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
        for device_type, place in ((1, "on the CPU"), (7, "in memory of DLPack device type 7")):
            text = f"lies {place}; the kernel takes CUDA memory: move it there, or run the source on the CPU by tessera.Program"
            self.assertRefuses(ValueError, text, DLPackTensor((2, 300, 64), device=(device_type, 0)), y, 1, 1)
        with self.assertRaisesRegex(tessera.DeviceError, "there is no CUDA device 7"):
            self.kernel.prepare(7)

    def test_strides(self):
        _, y = tensors()
        self.assertRefuses(ValueError, "the innermost dimension has stride 2", *tensors(strides=(38400, 128, 2)), 1, 1)
        self.assertRefuses(ValueError, "is no multiple of 16 bytes", *tensors(offset=2), 1, 1)


class ExchangeRefusals(Refusals):
    exchange = True


if __name__ == "__main__":
    unittest.main()
