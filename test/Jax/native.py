# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %jax-python %s \
# RUN:   %source/test/Python
"""The custom call launches kernels: real JAX, arrays of the CPU, and a fake driver."""

import ctypes
import sys
import unittest
import unittest.mock

sys.path.insert(0, sys.argv.pop())

import fake_cuda
import jax
import jax.numpy as jnp
import problems

import tessera.jax
from tessera import _compile, _variants

POINTERS = [ctypes.c_char * 128] * 3 + [ctypes.c_uint64] * 2


def compile_ptx(source, **options):
    return compile_real(source, image="ptx", **options)


compile_real = _compile.compile


class Native(unittest.TestCase):
    def setUp(self):
        fake_cuda.reset()
        fake_cuda.library.fake_cuda_set_device(0)
        library = tessera.jax.register()
        # Kernels for the CPU too: the fake driver takes every address.
        library.tessera_xla_register(tessera.jax._resolve, tessera.jax._resolve, None)
        patch = unittest.mock.patch.object(_compile, "compile", compile_ptx)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(library.tessera_xla_reset)

    def call(self, tensors, **named):
        return jax.block_until_ready(tessera.jax.attention(*tensors, **named))

    def test_launches(self):
        for layout in ("BSHD", "BHSD"):
            self.call(problems.make(layout=layout, d=128, dv=64), layout=layout)
        self.assertEqual(fake_cuda.launch_count(), 2)

    def test_arguments(self):
        """The scalars that reach the driver."""
        tensors = problems.make(dtype=jnp.float16)
        variant = "attention_variants MASK=window SOFTCAP=exact ALIBI=true"
        kernel, _, _ = _variants.find_kernel(variant, "f16", (2, 4, 37, 64, 2, 53, 64), lse=False)
        parameters = kernel.description["launch_parameters"]
        types = {"tensor_map": ctypes.c_char * 128, "i64": ctypes.c_int64, "i32": ctypes.c_int32, "f32": ctypes.c_float}
        types = [types.get(entry["kind"]) or types.get(entry.get("type")) or ctypes.c_uint64 for entry in parameters]
        fake_cuda.set_parameters(types)
        self.call(tensors, alibi=jnp.ones(4), softcap=2.5, window=(16, 3), scale=0.25)
        values, seen = {"scale": 0.25, "cap": 2.5, "left": 16, "right": 3}, set()
        for index, entry in enumerate(parameters):
            if entry["kind"] == "scalar" and entry.get("argument") in values:
                seen.add(entry["argument"])
                value = fake_cuda.last_parameter(index, types[index])
                self.assertEqual(getattr(value, "value", value), values[entry["argument"]], entry["argument"])
        self.assertEqual(seen, set(values))

    def test_kernels_are_asked_for_once(self):
        tensors = problems.make(rows=33)
        run = jax.jit(tessera.jax.attention)
        with unittest.mock.patch.object(_variants, "find_kernel", wraps=_variants.find_kernel) as find:
            for _ in range(3):
                jax.block_until_ready(run(*tensors))
        self.assertEqual(find.call_count, 1)
        self.assertEqual(fake_cuda.launch_count(), 3)

    def test_errors(self):
        with self.assertRaisesRegex(Exception, "there is no kernel for 'attention_fwd CAUSAL=false': out of order"):
            with unittest.mock.patch.object(_variants, "find_kernel", side_effect=ValueError("out of order")):
                self.call(problems.make(rows=34))


if __name__ == "__main__":
    unittest.main()
