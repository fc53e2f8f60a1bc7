# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s \
# RUN:   %source/test/Python
"""More batches or heads than a launch has blocks in y or z, 65535: all kernels of both passes and of lists take them."""

import sys
import unittest
import unittest.mock

import torch

sys.path.insert(0, sys.argv.pop())

import fake_cuda
import on_cpu

from tessera import _compile, _tensor
from tessera._library import CURRENT_DEVICE
from tessera.torch import _backward, _captured, _functions, _op

COUNTS = (65535, 1), (66000, 1), (1, 66000)
_describe = _tensor.describe


class OnDevice:
    """A tensor of the CPU that launches take for one of the device."""

    def __init__(self, tensor):
        self.tensor = tensor


def describe(name, value, stream):
    if not isinstance(value, OnDevice):
        return _describe(name, value, stream)
    own = value.tensor
    code = _tensor.torch_binding().types[own.dtype]
    return _tensor.Described(name, own.data_ptr(), tuple(own.shape), tuple(own.stride()), code, CURRENT_DEVICE, value)


def launch(kernel, arguments, **named):
    def wrap(value):
        return OnDevice(value) if isinstance(value, torch.Tensor) else value

    arguments, named = [wrap(value) for value in arguments], {name: wrap(value) for name, value in named.items()}
    if "launches" in kernel.description:
        size = kernel.workspace_bytes(*arguments, **named)
        memory = torch.empty(size + 256, dtype=torch.uint8)
        named["workspace"] = (-(-memory.data_ptr() // 256) * 256, size)
    kernel(*arguments, **named)


def make(batch, heads, rows=4):
    return torch.empty((batch, heads, rows, 64), dtype=torch.bfloat16)


class ManyBatches(unittest.TestCase):
    def setUp(self):
        fake_cuda.reset()
        fake_cuda.library.fake_cuda_set_device(0)
        for patch in (
            on_cpu.compile_without_ptxas(),
            unittest.mock.patch.object(_tensor, "describe", describe),
            unittest.mock.patch.object(_backward, "launch", launch),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def test_forward(self):
        for batch, heads in COUNTS:
            q, k, v = (make(batch, heads) for _ in range(3))
            on_cpu.forward(q, k, v, None, "attention_fwd CAUSAL=true", scale=0.125)

    def test_backward(self):
        for name, more in (("attention_fwd CAUSAL=true", {}), ("attention_variants MASK=window", {"left": 2, "right": 0})):
            for batch, heads in COUNTS:
                for fixed in (False, True):
                    q, k, v, lse = *(make(batch, heads) for _ in range(3)), torch.empty((batch, heads, 4))
                    before = fake_cuda.launch_count()
                    _backward._run(
                        _compile.compile, q, None, q.clone(), k, v, q.clone(), lse, None, name, 0.125, deterministic=fixed, **more
                    )
                    self.assertGreater(fake_cuda.launch_count(), before + 1)

    def test_masks_by_data(self):
        """Of each batch and of each head there are lists, which kernels make."""
        document = torch.zeros(4, dtype=torch.int32)
        masks = (
            lambda b, h, i, j: (document[i] == document[j]) & (j + b > 3),
            lambda b, h, i, j: (document[i] == document[j]) & (j + h > 3),
        )
        for (batch, heads), mask in zip(COUNTS[1:], masks):
            q, k, v = (make(batch, heads) for _ in range(3))
            written, found = _functions.read_mods(q, (None, (), mask, ()))
            listed = _captured.list_given(written, found)
            before = fake_cuda.launch_count()
            _functions._run_forward(_op._find_kernel, q, k, v, *listed, written.names, written.source, 0.125)
            self.assertGreater(fake_cuda.launch_count(), before + 1)


if __name__ == "__main__":
    unittest.main()
