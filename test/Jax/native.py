# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %jax-python %s \
# RUN:   %source/test/Python
"""The custom call launches kernels: real JAX, arrays of the CPU, and a fake driver."""

import ctypes
import functools
import os
import sys
import unittest
import unittest.mock

sys.path.insert(0, sys.argv.pop())

import fake_cuda
import jax
import jax.numpy as jnp
import problems
import xla_frame

import tessera.jax
from tessera._attention import _gradient_kernels, _variants
from tessera._compiler import _compile
from tessera.jax import _call, _functions

TYPES = {"tensor_map": ctypes.c_char * 128, "i64": ctypes.c_int64, "i32": ctypes.c_int32, "f32": ctypes.c_float}


def compile_ptx(source, *kernel, **options):
    return compile_real(source, *kernel, image="ptx", **options)


compile_real = _compile.compile


class Native(unittest.TestCase):
    def setUp(self):
        fake_cuda.reset()
        fake_cuda.library.fake_cuda_set_device(0)
        library = tessera.jax.register()
        # Kernels for the CPU too: the fake driver takes every address.
        library.tessera_xla_register(_call._resolve, _call._resolve, None)
        patch = unittest.mock.patch.object(_compile, "compile", compile_ptx)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(library.tessera_xla_reset)

    def call(self, tensors, **named):
        return jax.block_until_ready(tessera.jax.attention(*tensors, **named))

    def check_scalars(self, kernel, call, values):
        """A call of a kernel has these scalars, by name."""
        parameters, seen = kernel.description["launch_parameters"], set()
        types = [TYPES.get(entry["kind"]) or TYPES.get(entry.get("type")) or ctypes.c_uint64 for entry in parameters]
        fake_cuda.set_parameters(types)
        call()
        for index, entry in enumerate(parameters):
            if entry["kind"] == "scalar" and entry.get("argument") in values:
                seen.add(entry["argument"])
                value = fake_cuda.last_parameter(index, types[index])
                self.assertEqual(getattr(value, "value", value), values[entry["argument"]], entry["argument"])
        self.assertEqual(seen, set(values))

    def test_launches(self):
        for layout in ("BSHD", "BHSD"):
            self.call(problems.make(layout=layout, d=128, dv=64), layout=layout)
        self.assertEqual(fake_cuda.launch_count(), 2)

    def test_arguments(self):
        """The scalars that reach the driver."""
        tensors = problems.make(dtype=jnp.float16)
        variant = "attention_variants MASK=window SOFTCAP=exact ALIBI=true"
        kernel, _, _ = _variants.find_kernel(variant, "f16", (2, 4, 37, 64, 2, 53, 64), lse=False)
        call = functools.partial(self.call, tensors, alibi=jnp.ones(4), softcap=2.5, window=(16, 3), scale=0.25)
        self.check_scalars(kernel, call, {"scale": 0.25, "cap": 2.5, "left": 16, "right": 3})

    def test_arguments_of_functions(self):
        """Views, numbers and integers reach the places that the kernel has for them."""
        factor, width, table, shift = 0.5, 7, jnp.arange(4.0), jnp.arange(53, dtype=jnp.int8)
        score = lambda s, b, h, q, k: s * factor + table[h] + shift[k]  # noqa: E731
        mask = lambda b, h, q, k: k - q < width  # noqa: E731
        source, views, numbers, integers, *_ = _functions.trace(score, (), mask, ())
        tensors = problems.make(dtype=jnp.float16)
        kernel, *_ = _variants.find_kernel(source, "f16", (2, 4, 37, 64, 2, 53, 64))
        values = {**numbers, **integers}
        self.assertEqual(len(values), 2)
        self.check_scalars(kernel, functools.partial(self.call, tensors, score_mod=score, mask_mod=mask), values)
        self.assertEqual(len(views), 2)

    def test_lists(self):
        """A mask of loaded values: kernels list the blocks that another one visits."""
        shift = jnp.arange(53, dtype=jnp.int32)
        self.call(problems.make(dtype=jnp.float16), mask_mod=lambda b, h, q, k: k - q < shift[k])
        self.assertEqual(fake_cuda.launch_count(), 3)

    def test_block_masks(self):
        """Two kernels make the lists, once; then one takes them."""
        shift, tensors = jnp.arange(53, dtype=jnp.int32), problems.make(dtype=jnp.float16)
        block_mask = tessera.jax.create_block_mask(lambda b, h, q, k: k - q < shift[k], None, None, 37, 53)
        counts = []
        for _ in range(2):
            before = fake_cuda.launch_count()
            self.call(tensors, block_mask=block_mask)
            counts.append(fake_cuda.launch_count() - before)
        self.assertEqual(counts, [3, 1])
        frame = xla_frame.Frame([(1, 1, 1, 64)], [(1, 1, 1, 1), (1, 1, 1, 3)], variant="lists of queries 128 64: ", layout="BHSD",
                                extras="")  # fmt: skip
        self.assertIn("attribute 'sizes' has the extents", frame.call(tessera.jax.register().tessera_xla_lists))

    def test_gradients(self):
        q, k, v = problems.make(rows=33)
        before = fake_cuda.launch_count()
        for deterministic in (False, True):
            jax.block_until_ready(
                jax.grad(lambda q: tessera.jax.attention(q, k, v, deterministic=deterministic).astype(jnp.float32).sum())(q)
            )
        # Forward each time, then the kernels of each form.
        counts = [len(self.find_gradients(fixed).description["launches"]) for fixed in (False, True)]
        self.assertEqual(fake_cuda.launch_count() - before, 2 + sum(counts))

    def test_gradients_of_views(self):
        """The kernels take the sums too, which are results of the call."""
        tensors = problems.make(rows=33)
        before = fake_cuda.launch_count()

        def loss(slopes):
            score = lambda s, b, h, q, k: s - slopes[h] * abs(q - k)  # noqa: E731
            return tessera.jax.attention(*tensors, score_mod=score).astype(jnp.float32).sum()

        found = jax.block_until_ready(jax.grad(loss)(jnp.ones(4)))
        # As they were cleared: nothing runs.
        self.assertTrue((found == jnp.zeros(4)).all())
        self.assertEqual(fake_cuda.launch_count() - before, 4)

    def test_latent_attention(self):
        """Shares of keys, attention over them, and what joins parts; one kernel over the parts of rows of bytes."""
        q, numbers = jnp.zeros((2, 1, 16, 576), jnp.bfloat16), jnp.ones((2, 4), jnp.int32)
        cache, rows = jnp.zeros((5, 64, 1, 576), jnp.bfloat16), jnp.zeros((300, 1, 656), jnp.uint8)
        for run, count in (
            (lambda: tessera.jax.mla_with_kvcache(q, cache, numbers, numbers[:, 0]), 3),
            (lambda: tessera.jax.mla_sparse(q[:, 0], rows, numbers[:, None], 0.1), 1),
        ):
            before = fake_cuda.launch_count()
            jax.block_until_ready(run())
            self.assertEqual(fake_cuda.launch_count() - before, count)

    def find_gradients(self, fixed):
        text = "attention_fwd CAUSAL=false"
        return _gradient_kernels.find_gradients(_compile.compile, text, fixed, "bf16", (64, 64, 1, None), False)[0]

    def test_memory_of_sequences(self):
        """Gradients on a CUDA stream ask XLA for memory, and give it back."""
        sizes = {"q": (1, 2, 33, 64), "k": (1, 1, 20, 64), "lse": (1, 2, 33)}
        frame = xla_frame.Frame(
            [sizes[name] for name in ("q", "k", "k", "q", "q", "lse")], [sizes[name] for name in ("q", "k", "k")],
            variant="gradients of attention_fwd CAUSAL=false", layout="BHSD", extras="", scale=0.125,
        )  # fmt: skip
        before = fake_cuda.launch_count()
        library = tessera.jax.register()
        self.assertEqual(frame.call(library.tessera_xla_attention_backward), None)
        self.assertEqual(fake_cuda.launch_count() - before, len(self.find_gradients(False).description["launches"]))
        (_, size), = frame.allocations
        self.assertEqual(frame.released, [size])
        # The sums of dQ in float32, and two values for each row.
        self.assertGreaterEqual(size, 2 * 33 * (64 + 2) * 4)
        self.assertEqual(frame.call(library.tessera_xla_attention_backward, fails=True), "no memory")
        self.assertEqual(frame.ask_traits(library.tessera_xla_attention_backward), 0)
        self.assertEqual(frame.ask_traits(library.tessera_xla_attention), 1)

    def test_damaged_calls(self):
        """What no program of this package says."""
        library, shape = tessera.jax.register(), (1, 2, 33, 64)
        for arguments, text, attributes in (
            (3, "attribute 'extras' does not say what there is", {"extras": "f"}),
            (3, "tensor 'v' is missing", {"extras": "v"}),
            (4, "there are more tensors than attribute 'extras' says", {"extras": ""}),
            (4, "tensor 'o' is missing", {"extras": "d"}),
            (3, "attribute 'variant' names a variant", {"extras": "", "layout": "SHBD"}),
            (3, "attribute 'scale' is of another type", {"extras": "", "scale": "1"}),
        ):
            attributes = {"variant": "attention_fwd CAUSAL=false", "layout": "BHSD", "scale": 0.125, **attributes}
            frame = xla_frame.Frame([shape] * arguments, [shape], **attributes)
            with self.subTest(text):
                self.assertIn(text, frame.call(library.tessera_xla_attention))

    def test_kernels_are_asked_for_once(self):
        tensors = problems.make(rows=33)
        run = jax.jit(tessera.jax.attention)
        with unittest.mock.patch.object(_variants, "find_kernel", wraps=_variants.find_kernel) as find:
            for _ in range(3):
                jax.block_until_ready(run(*tensors))
        self.assertEqual(find.call_count, 1)
        self.assertEqual(fake_cuda.launch_count(), 3)

    def test_no_compiler(self):
        """A program whose kernel is in no cache."""
        with unittest.mock.patch.dict(os.environ, {"TESSERA_JIT": "0"}):
            text = "there is no kernel for 'attention_fwd CAUSAL=false': .*TESSERA_JIT=0 forbids to compile; run the program once"
            with self.assertRaisesRegex(Exception, text):
                self.call(problems.make(rows=35, d=192))

    def test_compute_capability(self):
        fake_cuda.set_capability(8, 6)
        text = "the bundle is compiled for sm_90a; device 0 .Fake Hopper. has compute capability 8.6"
        with self.assertRaisesRegex(Exception, text):
            self.call(problems.make(rows=36, d=96))

    def test_errors(self):
        with self.assertRaisesRegex(Exception, "there is no kernel for 'attention_fwd CAUSAL=false': out of order"):
            with unittest.mock.patch.object(_variants, "find_kernel", side_effect=ValueError("out of order")):
                self.call(problems.make(rows=34))


if __name__ == "__main__":
    unittest.main()
