# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s \
# RUN:   %source/test/Python
"""More batches or heads than a launch has blocks in y or z, 65535."""

import sys
import unittest

import torch

sys.path.insert(0, sys.argv.pop())

import fake_cuda
import on_cpu

COUNTS = (65535, 1), (66000, 1), (1, 66000)


def make(batch, heads, rows=4):
    return torch.empty((batch, heads, rows, 64), dtype=torch.bfloat16)


class ManyBatches(unittest.TestCase):
    def test_forward(self):
        fake_cuda.reset()
        fake_cuda.library.fake_cuda_set_device(0)
        patch = on_cpu.compile_without_ptxas()
        patch.start()
        self.addCleanup(patch.stop)
        for batch, heads in COUNTS:
            before = fake_cuda.launch_count()
            q, k, v = (make(batch, heads) for _ in range(3))
            on_cpu.forward(q, k, v, None, "attention_fwd CAUSAL=true", scale=0.125)
            self.assertGreater(fake_cuda.launch_count(), before)


if __name__ == "__main__":
    unittest.main()
