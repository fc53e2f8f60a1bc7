# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s \
# RUN:   %source/test/Python
"""The kernels of the ops in the library: real PyTorch, tensors of the CPU, and a fake driver."""

import os
import sys
import unittest
import unittest.mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

sys.path.insert(0, sys.argv.pop())

import fake_cuda
import on_cpu
import problems

import tessera
from tessera._attention import _variants
from tessera.torch import _native, _op


@unittest.skipUnless(on_cpu.has_native, "PyTorch is older than 2.10")
class Native(unittest.TestCase):
    def setUp(self):
        fake_cuda.reset()
        fake_cuda.library.fake_cuda_set_device(0)
        patch = on_cpu.compile_without_ptxas()
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(_native.reset)

    def call(self, *tensors, op=on_cpu.forward, variant="attention_fwd CAUSAL=true", alibi=None, **named):
        try:
            return op(*tensors, alibi, variant=variant, scale=0.125, **named)
        except RuntimeError as error:
            raise _native.find_cause(error, *tensors, alibi) from None

    def test_results(self):
        for layout in ("BHSD", "BSHD"):
            tensors = problems.make(layout=layout, heads=4, d=128, dv=64)
            views = [tensor if layout == "BHSD" else tensor.transpose(1, 2) for tensor in tensors]
            expected = _op.allocate_results(views[0], views[2])
            results = self.call(*views)
            for result, like in zip(results, expected):
                self.assertEqual((result.shape, result.stride()), (like.shape, like.stride()))
                self.assertEqual(result.dtype, like.dtype)
            self.assertEqual(self.call(*views, op=on_cpu.inference).stride(), expected[0].stride())
        self.assertEqual(fake_cuda.launch_count(), 4)

    def test_head_dimensions(self):
        """Between the widths of tiles: they reach the driver as extents of tensor maps."""
        self.assertEqual(self.call(*problems.make(d=72, dv=40))[0].shape, (2, 2, 70, 40))
        self.assertEqual(self.call(*problems.make(d=80), op=on_cpu.inference).shape, (2, 2, 70, 80))
        self.assertEqual(fake_cuda.launch_count(), 2)

    def test_arguments(self):
        """The scalars and addresses that reach the driver."""
        q, k, v = problems.make()
        slopes = torch.ones(2)
        variant = "attention_variants MASK=window SOFTCAP=exact ALIBI=true"
        kernel, _, _ = _variants.find_kernel(variant, "f16", _op.get_sizes(q, k, v))
        parameters = on_cpu.Parameters(kernel)
        out, lse = self.call(q, k, v, variant=variant, alibi=slopes, softcap=2.5, left=16, right=3)
        values = {"scale": 0.125, "cap": 2.5, "left": 16, "right": 3}
        pointers = {"lse": lse.data_ptr(), "slopes": slopes.data_ptr()}
        self.assertEqual({**parameters.read(), **values, **pointers}, parameters.read())

    def test_scale_that_is_not_given(self):
        """1 / sqrt(head dimension), that of the tensors where their tile is wider."""
        q, k, v = problems.make(d=72)
        variant = "attention_fwd CAUSAL=true"
        kernel, _, _ = _variants.find_kernel(variant, "bf16", _op.get_sizes(q, k, v))
        parameters = on_cpu.Parameters(kernel)
        on_cpu.forward(q, k, v, None, variant)
        self.assertAlmostEqual(parameters.read()["scale"], 72**-0.5, places=6)

    def test_kernels_are_asked_for_once(self):
        tensors = problems.make(rows=33)
        with unittest.mock.patch.object(_variants, "find_kernel", wraps=_variants.find_kernel) as find:
            self.call(*tensors)
            asked = find.call_count
            self.call(*tensors)
            self.assertEqual(find.call_count, asked)
            self.call(*problems.make(rows=34))
            self.assertEqual(find.call_count, asked + 1)

    def test_empty(self):
        out, lse = self.call(*problems.make(keys=0))
        self.assertFalse(out.any())
        self.assertTrue((lse == -torch.inf).all())
        self.assertEqual(self.call(*problems.make(rows=0))[1].shape, (2, 2, 0))
        self.assertEqual(fake_cuda.launch_count(), 0)

    def test_references_are_given_back(self):
        tensors = problems.make()
        slopes = torch.ones(2)
        self.call(*tensors, variant="attention_variants MASK=none ALIBI=true", alibi=slopes)
        for tensor in (*tensors, slopes):
            self.assertEqual(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata), 2)

    def test_errors(self):
        q, k, v = problems.make()
        for arguments, exception, text in (
            *problems.list_errors(q, k, v),
        ):
            with self.subTest(text), self.assertRaises(exception) as caught:
                self.call(*arguments)
            self.assertIn(text, str(caught.exception))
        moved, far = torch.empty(2, 1, 90, 72, dtype=q.dtype)[..., 4:68], torch.empty(2, 1, 90, 68, dtype=q.dtype)[..., :64]
        for key, text in ((moved, "argument 'k': the address .* is no multiple of 16 bytes; pass a tensor that begins at one"),
                          (far, "argument 'k': .* strides must be multiples of 8 elements .16 bytes.: pad the dimension inside")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                self.call(q, key, v)
        with self.assertRaisesRegex(ValueError, "argument 'q' has head dimension 36"):
            self.call(*problems.make(d=36))
        with self.assertRaisesRegex(ValueError, "argument 'alibi' is None; this variant needs slopes"):
            self.call(q, k, v, variant="attention_variants MASK=none ALIBI=true")
        with self.assertRaisesRegex(ValueError, "no kernel 'nothing' ships"):
            self.call(q, k, v, variant="nothing")

    def test_devices(self):
        """Another compute capability is found by the launch, and by no call before it."""
        fake_cuda.set_capability(8, 6)
        with self.assertRaisesRegex(tessera.DeviceError, "compiled for sm_90a; device 0 .* has compute capability 8.6"):
            self.call(*problems.make(rows=72, d=96))
        with FakeTensorMode():
            q, k, v = (torch.empty(2, 2, 70, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        with unittest.mock.patch.object(torch.cuda, "get_device_capability", return_value=(8, 0)):
            problem = _native.find_cause(RuntimeError("the bundle is compiled for sm_90a"), q, k, v, None)
        self.assertIsInstance(problem, ValueError)
        self.assertRegex(str(problem), "argument 'q' is on cuda:0, of compute capability 8.0; attention runs on .* 9.0: move it")

    def test_no_compiler(self):
        with unittest.mock.patch.dict(os.environ, {"TESSERA_JIT": "0"}):
            with self.assertRaisesRegex(tessera.CompileError, "attention_fwd.tile: .*TESSERA_JIT=0 forbids to compile; run the"):
                self.call(*problems.make(rows=71, d=192))


if __name__ == "__main__":
    unittest.main()
