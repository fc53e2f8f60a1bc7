# RUN: env TESSERA_LIBRARY=%build/lib %jax-python %s
"""Gradients of what functions of scores capture, for each way in which it is looked at, in JAX on the interpreter, against those
of the definition in float64."""

import unittest
import unittest.mock

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import problems
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tessera import CompileError, Diagnostic, Variant, masks
from tessera._attention import _gradient_kernels
from tessera.jax import attention

B, H, ROWS, KEYS = 2, 2, 9, 11
_generator = np.random.default_rng(3)


def draw(*shape, dtype=jnp.float32):
    return jnp.asarray(_generator.standard_normal(shape) / 2 + 1, dtype)


def make(**named):
    return problems.make(**{"batch": B, "heads": H, "kv_heads": 1, "rows": ROWS, "keys": KEYS, "dtype": jnp.float16, **named})


class Cases(problems.Interpreted):
    def check(self, score, *learned, mask=None, tensors=None, run=None, plain=None, **named):
        """Gradients of q, k, v and of what is learned, which the function captures."""
        tensors = (*(tensors or make()), *learned)

        def kernel(q, k, v, *learned):
            return attention(q, k, v, score_mod=lambda *place: score(*place, *learned), mask_mod=mask, return_lse=True, **named)

        def define(q, k, v, *learned):
            return problems.define(q, k, v, lambda *place: score(*place, *learned), mask)

        found = problems.pull_compiled(run or kernel, tensors)
        doubles = [tensor.astype(jnp.float64) for tensor in tensors]
        exact = problems.pull_compiled(plain or define, doubles)
        for i, (one, want, tensor) in enumerate(zip(found, exact, tensors)):
            self.assertEqual((one.shape, one.dtype), (tensor.shape, tensor.dtype))
            error = np.linalg.norm(np.asarray(one, np.float64) - np.asarray(want))
            # Sums in which scores of both signs meet, rounded to the type of what is learned.
            limit = 4 * float(jnp.finfo(tensors[0].dtype).eps) + float(jnp.finfo(tensor.dtype).eps)
            self.assertLess(error, limit * max(np.linalg.norm(want), 1e-3), f"of number {i}")
        return found


class Loads(Cases):
    def test_heads_and_numbers(self):
        self.check(lambda s, b, h, q, k, slopes: s - slopes[h] * abs(q - k), draw(H))
        self.check(lambda s, b, h, q, k, cap, gains: cap * jnp.tanh(s / cap) * gains[b, h], draw(), draw(B, H, dtype=jnp.bfloat16),
                   mask=lambda b, h, q, k: q >= k - 2)  # fmt: skip

    def test_rows_and_columns(self):
        self.check(lambda s, b, h, q, k, rows, keys: s * rows[h, q] + keys[b, k], draw(H, ROWS), draw(B, KEYS))

    def test_pairs_and_tables(self):
        self.check(lambda s, b, h, q, k, bias: s + bias[b, h, q, k], draw(B, H, ROWS, 16))
        self.check(lambda s, b, h, q, k, table: s + table[h, q - k + KEYS - 1], draw(H, ROWS + KEYS))

    def test_kernel_for_each(self):
        """Where no kernel has the registers for all numbers of an MLP, each of its views has a kernel."""
        refused = Diagnostic("error", "", 0, 0, "no registers", (), "registers")
        find = _gradient_kernels.find_gradients_of_source

        def find_one(kind, source, learned, fixed, element_type, *given):
            # Names of arguments are asked for with bf16.
            if len(learned) > 1 and element_type == "f16":
                raise CompileError("no registers", "source", [refused])
            return find(kind, source, learned, fixed, element_type, *given)

        def score(s, b, h, q, k, rates, starts, factors):
            x = jnp.log(abs(q - k) + 1.0)
            return s + sum(factors[i] * jnp.tanh(x * rates[i] + starts[i]) for i in range(3))

        self.addCleanup(_gradient_kernels.list_gradients_of_source.cache_clear)
        with unittest.mock.patch.object(_gradient_kernels, "find_gradients_of_source", find_one):
            with self.assertWarnsRegex(RuntimeWarning, "take a kernel each: no registers$"):
                self.check(score, *jnp.asarray([[0.6, -0.5, 0.8], [-0.7, 0.4, -0.9], [1.5, -1.0, 0.8]], jnp.float32))

    def test_one_order(self):
        self.check(lambda s, b, h, q, k, rows: s * rows[b, h, q], draw(B, H, ROWS), deterministic=True)
        slopes = draw(H)

        def loss(slopes, deterministic):
            score = lambda s, b, h, q, k: s * slopes[h]  # noqa: E731
            return attention(*make(), score_mod=score, deterministic=deterministic).astype(jnp.float32).sum()

        with self.assertRaisesRegex(NotImplementedError, "'slopes' is a sum over blocks in any order, and `deterministic`"):
            jax.grad(loss)(slopes, True)
        self.assertTrue(jax.grad(loss)(slopes, False).any())

    def test_slopes_that_have_a_name(self):
        """Those of `alibi`, with each mask and soft cap that it goes with."""

        def see(left, right):
            return lambda b, h, q, k: (k >= q + KEYS - ROWS - left) & (k <= q + KEYS - ROWS + right)

        for named, cap, mask in (
            ({}, 0, None), ({"causal": True}, 0, see(KEYS, 0)), ({"window": (4, 2), "softcap": 1.5}, 1.5, see(4, 2)),
            ({"window": (-1, 3), "layout": "BHSD"}, 0, see(KEYS, 3)), ({"window": (3, -1)}, 0, see(3, KEYS)),
        ):  # fmt: skip

            def fall(s, b, h, q, k, slopes, cap=cap):
                return (cap * jnp.tanh(s / cap) if cap else s) - slopes[h] * abs(q + KEYS - ROWS - k)

            def run(q, k, v, slopes, named=named):
                return attention(q, k, v, alibi=slopes, return_lse=True, **named)

            with self.subTest(**named):
                tensors = make(layout=named.get("layout", "BSHD"))
                plain = lambda q, k, v, slopes: problems.define(  # noqa: E731
                    q, k, v, lambda *place: fall(*place, slopes), mask, layout=named.get("layout", "BSHD")
                )
                self.check(None, draw(H), tensors=tensors, run=run, plain=plain)

    def test_slopes_in_one_order(self):
        def loss(slopes, deterministic):
            return attention(*make(), alibi=slopes, deterministic=deterministic).astype(jnp.float32).sum()

        with self.assertRaisesRegex(NotImplementedError, "'alibi' is a sum over blocks in any order, and `deterministic`"):
            jax.grad(loss)(draw(H), True)
        self.assertTrue(jax.grad(loss)(draw(H), False).any())

    def test_some_of_them(self):
        """Only those that JAX asks for; and 0 of what chooses, or what a mask compares."""
        slopes, limits = draw(H), draw(KEYS)

        def loss(slopes, limits):
            out = attention(*make(), score_mod=lambda s, b, h, q, k: s * slopes[h], mask_mod=lambda b, h, q, k: limits[k] > 0.7)
            return out.astype(jnp.float32).sum()

        alone, (both, none) = jax.grad(loss)(slopes, limits), jax.grad(loss, (0, 1))(slopes, limits)
        np.testing.assert_allclose(alone, both, rtol=1e-5)
        self.assertFalse(none.any())

    def test_variant_with_sinks(self):
        variant = Variant(sink=lambda b, h, sinks: sinks[h], mask=masks.causal, sinks=("H",))

        def run(q, k, v, sinks):
            return attention(q, k, v, variant=variant, arguments={"sinks": sinks}, return_lse=True)

        def plain(q, k, v, sinks):
            out, lse = problems.define(q, k, v, None, lambda b, h, q, k: k <= q + KEYS - ROWS)
            both = jnp.logaddexp(lse, sinks[None, :, None])
            return out * jnp.exp(lse - both).swapaxes(1, 2)[..., None].astype(out.dtype), both

        self.check(None, draw(H), run=run, plain=plain)


class Transformations(Cases):
    def test_vmap(self):
        """What the batch has in common has a gradient for each mapped call; what is of the batch is mapped over."""
        q, k, v = make()
        slopes, gains = draw(H), draw(B, H)

        def loss(q, k, v, slopes, gains):
            out = attention(q[None], k[None], v[None], score_mod=lambda s, b, h, q, k: s * gains[b, h] - slopes[h] * abs(q - k))
            return out.astype(jnp.float32).sum()

        each = jax.vmap(jax.grad(loss, (0, 3, 4)), (0, 0, 0, None, 0))(q, k, v, slopes, gains[:, None])
        for i in range(B):
            one = jax.grad(loss, (0, 3, 4))(q[i], k[i], v[i], slopes, gains[i : i + 1])
            for found, want in zip(each, one):
                np.testing.assert_allclose(np.asarray(found[i], np.float32), np.asarray(want, np.float32), rtol=1e-3, atol=1e-3)
        of_batch = jax.vmap(jax.grad(lambda q, k, v, gains: loss(q, k, v, 0 * slopes, gains), 3))(q, k, v, gains[:, None])
        alone = jax.grad(lambda gains: loss(q[1], k[1], v[1], 0 * slopes, gains))(gains[1:])
        np.testing.assert_allclose(of_batch[1], alone, rtol=1e-3)

    def test_sharding(self):
        """Gradients of what devices have in common are summed over them."""
        mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
        tensors = (*make(kv_heads=2), draw(H), draw(B, KEYS), draw(4, 7))

        @jax.jit
        def run(*tensors):
            def call(q, k, v, slopes, keys, table):
                score = lambda s, b, h, q, k: s * keys[b, k] - slopes[h] * abs(q - k) + table[q % 4, k % 7]  # noqa: E731
                return attention(q, k, v, score_mod=score, return_lse=True)

            return problems.pull(call, tensors, True)

        of_tensors = PartitionSpec("x", None, "y")
        specs = of_tensors, of_tensors, of_tensors, PartitionSpec("y"), PartitionSpec("x"), PartitionSpec()
        shards = [jax.device_put(tensor, NamedSharding(mesh, spec)) for tensor, spec in zip(tensors, specs)]
        found = run(*shards)
        self.assertNotIn("all-gather", run.lower(*shards).compile().as_text())
        for one, other in zip(found, run(*tensors)):
            np.testing.assert_allclose(np.asarray(one, np.float32), np.asarray(other, np.float32), rtol=2e-3, atol=1e-3)


if __name__ == "__main__":
    unittest.main()
