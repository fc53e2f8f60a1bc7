# RUN: env TESSERA_LIBRARY=%build/lib %jax-python %s
"""tessera.jax.attention on the interpreter, compared with f64."""

import os
import subprocess
import sys
import tempfile
import unittest

import jax
import jax.numpy as jnp
import numpy as np
import problems
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import tessera.jax
from tessera.jax import attention


class Attention(problems.Interpreted):
    def check(self, tensors, expected, run=None, **named):
        function = run or (lambda *tensors: attention(*tensors, return_lse=True, **named))
        out, lse = function(*tensors)
        problems.assert_close(self, out, expected[0])
        np.testing.assert_allclose(np.asarray(lse), expected[1], atol=2e-2 if out.dtype == jnp.bfloat16 else 2e-3)
        return out

    def test_against_f64(self):
        slopes = jnp.asarray([0.5, 0.25, 0.125, 0.0625])
        for sizes, named, band in (
            ({}, {}, {}),
            ({"rows": 113, "keys": 113, "dtype": jnp.float16}, {"causal": True}, {"right": 0}),
            ({"rows": 1, "heads": 1, "kv_heads": 1}, {"causal": True}, {"right": 0}),
            ({"rows": 61, "keys": 20}, {"causal": True}, {"right": 0}),
            ({"heads": 6, "kv_heads": 1, "d": 128, "dv": 64}, {"window": (9, 2)}, {"left": 9, "right": 2}),
            ({}, {"softcap": 3.0, "window": (9, -1)}, {"left": 9, "softcap": 3.0}),
            ({}, {"alibi": slopes}, {"slopes": slopes}),
            ({"d": 40, "dv": 72}, {}, {}),
        ):
            for layout in ("BSHD", "BHSD"):
                with self.subTest(layout=layout, **sizes, **named):
                    tensors = problems.make(layout=layout, **sizes)
                    expected = problems.exact(*tensors, layout=layout, **band)
                    self.check(tensors, expected, layout=layout, **named)

    def test_only_the_output(self):
        tensors = problems.make()
        problems.assert_close(self, attention(*tensors, scale=0.125), problems.exact(*tensors)[0])

    def test_jit(self):
        for rows in (5, 37):
            tensors = problems.make(rows=rows)
            run = jax.jit(lambda *tensors: attention(*tensors, causal=True, return_lse=True))
            self.check(tensors, problems.exact(*tensors, right=0), run)

    def test_vmap(self):
        q, k, v = problems.make(rows=9, keys=11)
        many = jnp.stack([q, 2 * q, -q])
        mapped = jax.jit(jax.vmap(lambda q: attention(q, k, v)))(many)
        for one, out in zip(many, mapped):
            problems.assert_close(self, out, problems.exact(one, k, v)[0])
        twice = jax.vmap(jax.vmap(lambda v: attention(q, k, v)))(jnp.stack([v, -v])[None])
        self.assertEqual(twice.shape, (1, 2, *q.shape))
        none = jax.vmap(lambda q: attention(q, k, v, return_lse=True))(many[:0])
        self.assertEqual([x.shape for x in none], [(0, *q.shape), (0, 2, 4, 9)])
        gradient = jax.vmap(jax.grad(lambda q: attention(q, k, v).sum().astype(jnp.float32)))(many[:0])
        self.assertEqual(gradient.shape, (0, *q.shape))
        problems.assert_close(self, twice[0, 1], problems.exact(q, k, -v)[0])
        with self.assertRaisesRegex(NotImplementedError, "argument 'alibi' is mapped over"):
            jax.vmap(lambda slopes: attention(q, k, v, alibi=slopes))(jnp.ones((3, 4)))

    def test_sharding(self):
        """Batch and heads stay sharded, without a gather; rows are gathered."""
        mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
        run = jax.jit(lambda *tensors: attention(*tensors, causal=True))
        for kv_heads, spec, of_keys in (
            (2, ("x",), ("x",)),
            (2, (None, None, "x"), (None, None, "x")),
            (4, (None, None, "x"), (None, None, "x")),
            (1, (None, None, "x"), ()),
        ):
            with self.subTest(kv_heads=kv_heads, spec=spec):
                tensors = problems.make(kv_heads=kv_heads)
                specs = [PartitionSpec(*spec)] + 2 * [PartitionSpec(*of_keys)]
                shards = [jax.device_put(tensor, NamedSharding(mesh, spec)) for tensor, spec in zip(tensors, specs)]
                self.assertNotIn("all-gather", run.lower(*shards).compile().as_text())
                out = run(*shards)
                self.assertEqual(out.sharding.spec, specs[0])
                problems.assert_close(self, out, problems.exact(*tensors, right=0)[0])
        tensors = problems.make(rows=38)
        shards = [jax.device_put(tensors[0], NamedSharding(mesh, PartitionSpec(None, "x"))), *tensors[1:]]
        problems.assert_close(self, run(*shards), problems.exact(*tensors, right=0)[0])

    def test_sharding_of_groups(self):
        """Several parts of one key head, parts that do not fit the key heads, and two axes."""
        mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
        run = jax.jit(lambda *tensors: attention(*tensors, causal=True))
        both = ("x", "y")
        for kv_heads, of_queries, of_keys in (
            (2, (None, None, both), (None, None, "x")),
            (4, (None, None, both), (None, None, "x")),
            (2, ("y", None, "x"), ("y", None, "x")),
            (2, (None, None, "x"), (None, None, "y")),
            (1, (None, None, both), ()),
        ):
            with self.subTest(kv_heads=kv_heads, of_queries=of_queries, of_keys=of_keys):
                tensors = problems.make(heads=8, kv_heads=kv_heads, rows=9, keys=11)
                specs = [PartitionSpec(*spec) for spec in (of_queries, of_keys, of_keys)]
                shards = [jax.device_put(tensor, NamedSharding(mesh, spec)) for tensor, spec in zip(tensors, specs)]
                self.assertNotIn("all-gather", run.lower(*shards).compile().as_text())
                self.assertTrue((run(*shards) == run(*tensors)).all())
        # Four parts of two key heads, over one axis: no part has a key head of its own.
        tensors = problems.make(heads=8, kv_heads=2, rows=9, keys=11)
        of_heads = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec(None, None, "x"))
        self.assertTrue((run(jax.device_put(tensors[0], of_heads), *tensors[1:]) == run(*tensors)).all())

    def test_empty(self):
        out, lse = attention(*problems.make(keys=0), return_lse=True)
        self.assertFalse(out.any())
        self.assertTrue((lse == -jnp.inf).all())
        self.assertEqual(attention(*problems.make(rows=0)).shape, (2, 0, 4, 64))

    def test_exported_programs(self):
        """A program runs in another process, which has imported the module and nothing else."""
        problems.check_export(self, lambda *tensors: attention(*tensors, causal=True))

    def test_persistent_cache(self):
        """Another process finds the program in JAX's cache on disk, and runs it."""
        script = (
            "import sys, jax, problems, tessera.jax; tessera.jax.use_interpreter(); found = [];"
            "jax.monitoring.register_event_listener(lambda event, **_: found.append(event.rpartition('_')[2]));"
            "run = jax.jit(lambda *tensors: tessera.jax.attention(*tensors, causal=True));"
            "print(run(*problems.make(rows=5, keys=7)).tobytes().hex(), 'hits' in found, 'misses' in found)"
        )
        with tempfile.TemporaryDirectory() as directory:
            settings = {"JAX_COMPILATION_CACHE_DIR": directory, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}  # fmt: skip
            runs = [
                subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=sys.path[0], env={**os.environ, **settings})
                for _ in range(2)
            ]
        self.assertEqual([run.stderr for run in runs], ["", ""])
        own = attention(*problems.make(rows=5, keys=7), causal=True).tobytes().hex()
        self.assertEqual([run.stdout.split() for run in runs], [[own, "False", "True"], [own, "True", "False"]])

    def test_refusals(self):
        q, k, v = problems.make()
        for arguments, named, exception, text in (
            ((q[0], k, v), {}, ValueError, "argument 'q' has 3 dimensions; attention takes 4"),
            ((q.astype(jnp.float32), k, v), {}, TypeError, "argument 'q' has type float32"),
            ((q, k.astype(jnp.float16), v), {}, TypeError, "argument 'k' has type float16 and 'q' bfloat16"),
            ((q[..., :36], k[..., :36], v), {}, ValueError, "argument 'q' has head dimension 36"),
            ((q, k[:1], v), {}, ValueError, "argument 'k' has batch 1 and 'q' 2"),
            ((q, k, v[:, :9]), {}, ValueError, "argument 'v' has length 9 and 'k' 53"),
            ((q[:, :, :3], k, v), {}, ValueError, "argument 'q' has 3 heads, which is no multiple of the 2 heads"),
            ((q, k, v), {"alibi": jnp.ones(3)}, ValueError, "one float32 slope for each of the 4 heads"),
            ((None, k, v), {}, TypeError, "argument 'q' is None; it is an array: jax.numpy.asarray makes one"),
            ((q, [1.0], v), {}, TypeError, "argument 'k' is of type list"),
            ((q, k, v), {"alibi": [1.0] * 4}, TypeError, "argument 'alibi' is of type list"),
            ((q, k, v), {"alibi": 1.0}, TypeError, "argument 'alibi' is of type float"),
            ((q, k, v), {"softcap": "x"}, TypeError, "argument 'softcap' is 'x'; it is a number, 0 for none"),
            ((q, k, v), {"softcap": -2.0}, ValueError, "argument 'softcap' is -2.0; it is 0 for none, or a number from 1e-30"),
            ((q, k, v), {"softcap": jnp.inf}, ValueError, "argument 'softcap' is inf"),
            ((q, k, v), {"layout": "BTNH"}, ValueError, "argument 'layout' is 'BTNH'"),
        ):
            with self.subTest(text), self.assertRaises(exception) as caught:
                attention(*arguments, **named)
            self.assertIn(text, str(caught.exception))

    def test_no_interpreter(self):
        tessera.jax.use_interpreter(False)
        with self.assertRaisesRegex(Exception, "kernels run on CUDA devices of compute capability 9.0"):
            attention(*problems.make())


if __name__ == "__main__":
    unittest.main()
