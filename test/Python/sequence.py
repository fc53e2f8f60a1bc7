# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda:%build/test/fake-exchange TESSERA_LIBRARY=%build/lib %python %s
"""Sequences through the package, the real library and a fake driver."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))

import fake_cuda
import fake_torch

import tessera


def bundle():
    """The test bundle with a sequence twice(x, y, a, n) that goes through a workspace."""
    data = json.loads(fake_cuda.bundle())
    kernel = data["kernels"][0]
    data["version"] = 2
    data["sequences"] = [
        {
            "name": "twice",
            "dims": kernel["dims"],
            "arguments": kernel["arguments"],
            "derived_dims": [],
            "workspaces": [{"name": "w", "element": "bf16", "dims": ["B", "S", 64], "zeroed": False}],
            "launches": [
                {"kernel": "scale", "arguments": ["x", "w", "a", "n"]},
                {"kernel": "scale", "arguments": ["w", "y", "a", "n"]},
            ],
        }
    ]
    return json.dumps(data).encode()


class Memory:
    """Memory of a device, as torch's tensors have it."""

    def __init__(self, offset, size):
        self.address, self.size = fake_cuda.MEMORY + offset, size

    def data_ptr(self):
        return self.address

    def numel(self):
        return self.size // 4

    def element_size(self):
        return 4


class Sequences(unittest.TestCase):
    BYTES = 2 * 300 * 64 * 2

    def setUp(self):
        fake_cuda.reset()
        fake_torch.install(None)
        self.bundle = tessera.Bundle(bundle())
        self.x, self.y = fake_torch.Tensor((2, 300, 64)), fake_torch.Tensor((2, 300, 64), offset=1 << 20)

    def test_is_what_the_bundle_is_for(self):
        self.assertEqual(list(self.bundle.kernels), ["scale", "twice"])
        self.assertEqual(self.bundle.kernel().name, "twice")
        self.assertEqual(self.bundle.kernel("scale").name, "scale")

    def test_one_call_launches_all(self):
        self.bundle.kernel()(self.x, self.y, 0.5, n=7)
        self.assertEqual(fake_cuda.launch_count(), 2)
        self.assertEqual(fake_cuda.last_parameter(1), self.y.data_ptr())
        self.assertEqual([fake_cuda.last_parameter(i) for i in (4, 5)], [0.5, 7])
        self.assertEqual(fake_cuda.last_launch()[5], fake_torch.STREAM_OF_DEVICE[0])
        self.assertEqual(fake_cuda.allocation_count(), 1)

    def test_workspace_of_the_caller(self):
        twice = self.bundle.kernel()
        self.assertEqual(twice.workspace_bytes(self.x, self.y, 0.5, 7), self.BYTES)
        self.assertEqual(self.bundle.kernel("scale").workspace_bytes(self.x, self.y, a=0.5, n=7), 0)
        twice(self.x, self.y, 0.5, 7, workspace=Memory(2 << 20, self.BYTES))
        twice(self.x, self.y, 0.5, 7, workspace=(fake_cuda.MEMORY + (2 << 20), self.BYTES))
        self.assertEqual(fake_cuda.launch_count(), 4)
        self.assertEqual(fake_cuda.allocation_count(), 0)
        with self.assertRaisesRegex(ValueError, "has 76796 bytes; this call needs 76800"):
            twice(self.x, self.y, 0.5, 7, workspace=Memory(2 << 20, self.BYTES - 4))
        with self.assertRaisesRegex(TypeError, "workspace is a str"):
            twice(self.x, self.y, 0.5, 7, workspace="much")

    def test_workspace_that_is_made(self):
        """Of each call, of the bytes that its extents need; never for a kernel, which needs none."""
        sizes = []

        def make(size):
            sizes.append(size)
            return Memory(2 << 20, size)

        twice, small = self.bundle.kernel(), [fake_torch.Tensor((1, 100, 64), offset=i << 20) for i in range(2)]
        for x, y in ((self.x, self.y), (self.x, self.y), small, (self.x, self.y)):
            twice(x, y, 0.5, 7, workspace=make)
        self.assertEqual(sizes, [self.BYTES, self.BYTES, 100 * 64 * 2, self.BYTES])
        self.bundle.kernel("scale")(self.x, self.y, 0.5, 7, workspace=make)
        self.assertEqual((len(sizes), fake_cuda.launch_count(), fake_cuda.allocation_count()), (4, 9, 0))
        with self.assertRaisesRegex(ValueError, "has 4 bytes; this call needs 76800"):
            twice(self.x, self.y, 0.5, 7, workspace=lambda size: Memory(2 << 20, 4))

    def test_what_only_a_kernel_has(self):
        with self.assertRaisesRegex(ValueError, "several kernels, each with a grid of its own: scale"):
            self.bundle.kernel().grid(B=2, S=300)
        with self.assertRaisesRegex(ValueError, "records no timeline|a timeline of its own"):
            self.bundle.kernel().read_timeline()

    def test_all_or_none(self):
        with self.assertRaisesRegex(ValueError, "sequence 'twice': arguments 'x' and 'y' share memory"):
            self.bundle.kernel()(self.x, self.x, 0.5, 7)
        self.assertEqual(fake_cuda.launch_count(), 0)


if __name__ == "__main__":
    unittest.main()
