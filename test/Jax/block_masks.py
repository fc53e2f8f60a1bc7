# RUN: env TESSERA_LIBRARY=%build/lib %jax-python %s
"""Masks whose lists of blocks outlive a call, in JAX on the interpreter, compared with f64."""

import unittest
import unittest.mock

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import problems
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import tessera.jax
from tessera.jax import BlockMask, attention, create_block_mask

B, H, ROWS, KEYS = 2, 2, 150, 203
DOCUMENTS = jnp.arange(2 * KEYS).reshape(2, KEYS) // 45 % 7
_generator = np.random.default_rng(5)


def documents(b, h, q, k):
    return (DOCUMENTS[0, q] == DOCUMENTS[0, k]) & (q >= k - 20)


def of_batches(b, h, q, k):
    return DOCUMENTS[b, q] == DOCUMENTS[b, k]


def of_heads(b, h, q, k):
    return (abs(q - k) > 30 * h) & (q // 50 >= k // 70)


class Cases(problems.Interpreted):
    def setUp(self):
        super().setUp()
        self.tensors = problems.make(batch=B, heads=H, kv_heads=1, rows=ROWS, keys=KEYS, dtype=jnp.float16)
        make = BlockMask._make
        patch = unittest.mock.patch.object(BlockMask, "_make", lambda own, lists: self.made.append(lists) or make(own, lists))
        self.made = []
        patch.start()
        self.addCleanup(patch.stop)


class Results(Cases):
    def test_against_f64(self):
        slopes = jnp.asarray([0.5, 0.25], jnp.float32)
        for mask, sizes in ((documents, (None, None)), (of_batches, (B, None)), (of_heads, (B, H)), (of_heads, (None, H))):
            score = (lambda s, b, h, q, k: s - slopes[h] * abs(q - k)) if mask is documents else None
            block_mask = create_block_mask(mask, *sizes, ROWS, KEYS)
            for layout in ("BSHD", "BHSD"):
                with self.subTest(mask.__name__, layout=layout):
                    tensors = self.tensors if layout == "BSHD" else [tensor.swapaxes(1, 2) for tensor in self.tensors]
                    out, lse = attention(*tensors, score_mod=score, block_mask=block_mask, layout=layout, return_lse=True)
                    doubles = [tensor.astype(jnp.float64) for tensor in tensors]
                    exact, exact_lse = problems.define(*doubles, score, mask, layout)
                    problems.assert_close(self, out, np.asarray(exact))
                    np.testing.assert_allclose(np.asarray(lse), np.asarray(exact_lse), atol=2e-3)
        # Once for each mask.
        self.assertEqual(len(self.made), 4)

    def test_gradients(self):
        """Of both forms, and of what the score captures."""
        gains = jnp.asarray(_generator.standard_normal((B, H, ROWS)) / 2 + 1, jnp.float32)
        block_mask = create_block_mask(of_batches, B, None, ROWS, KEYS)
        score = lambda s, b, h, q, k, gains: s * gains[b, h, q]  # noqa: E731
        for deterministic in (False, True):
            with self.subTest(deterministic=deterministic):
                def run(*tensors):
                    return attention(*tensors[:3], score_mod=score, score_args=tensors[3:], block_mask=block_mask,
                                     deterministic=deterministic, return_lse=True)  # fmt: skip

                def define(*tensors):
                    return problems.define(*tensors[:3], lambda *place: score(*place, tensors[3]), of_batches)

                tensors = (*self.tensors, gains)
                for _ in range(2):
                    found = problems.pull_compiled(run, tensors)
                exact = problems.pull_compiled(define, [tensor.astype(jnp.float64) for tensor in tensors])
                for one, want in zip(found, exact):
                    error = np.linalg.norm(np.asarray(one, np.float64) - np.asarray(want))
                    self.assertLess(error, 4 * float(jnp.finfo(jnp.float16).eps) * np.linalg.norm(want))
        self.assertEqual(len(self.made), len(set(self.made)))
        self.assertEqual({lists.split()[0] for lists in self.made}, {"queries", "keys"})

    def test_gradients_of_heads(self):
        """Lists that are one for all batches, for each of which there are gradients."""
        found, want = (
            problems.pull(lambda *tensors: attention(*tensors, return_lse=True, block_mask=mask), self.tensors, True)
            for mask in (create_block_mask(of_heads, batch, H, ROWS, KEYS) for batch in (None, B))
        )
        for one, other in zip(found, want):
            self.assertTrue((one == other).all())

    def test_transformations(self):
        block_mask = create_block_mask(documents, None, None, ROWS, KEYS)
        run = lambda q, k, v: attention(q, k, v, block_mask=block_mask)  # noqa: E731
        expected = run(*self.tensors)
        self.assertTrue((jax.jit(run)(*self.tensors) == expected).all())
        mapped = jax.vmap(lambda q, k, v: run(q[None], k[None], v[None])[0])(*self.tensors)
        self.assertTrue((mapped == expected).all())
        of_batch = create_block_mask(of_batches, B, None, ROWS, KEYS)
        run = jax.jit(lambda q, k, v: attention(q, k, v, block_mask=of_batch))
        spec = NamedSharding(Mesh(np.array(jax.devices()[:2]), ("x",)), PartitionSpec("x"))
        shards = [jax.device_put(tensor, spec) for tensor in self.tensors]
        self.assertTrue((run(*shards) == run(*self.tensors)).all())

    def test_another_mask(self):
        """What the function is made of may change behind its lists."""
        whole = True
        block_mask = create_block_mask(lambda b, h, q, k: documents(b, h, q, k) if whole else k >= 0, None, None, ROWS, KEYS)
        attention(*self.tensors, block_mask=block_mask)
        whole = False
        with self.assertRaisesRegex(ValueError, "is another one than when its lists were made"):
            attention(*self.tensors, block_mask=block_mask)

    def test_shard_map(self):
        """Lists that are not there are made by each call, and kept by none."""
        block_mask = create_block_mask(documents, None, None, ROWS, KEYS)
        batch, mesh = PartitionSpec("x"), Mesh(np.array(jax.devices()[:2]), ("x",))
        run = lambda q, k, v: attention(q, k, v, block_mask=block_mask)  # noqa: E731
        split = jax.shard_map(run, mesh=mesh, in_specs=batch, out_specs=batch)
        for kept in (False, True):
            results = [
                jax.value_and_grad(lambda *x: one(*x).astype(jnp.float32).sum(), (0, 1, 2))(*self.tensors)  # noqa: B023
                for one in (split, run)
            ]
            np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5)
            for got, want in zip(results[0][1], results[1][1]):
                self.assertTrue((got == want).all(), kept)
        self.assertEqual(len(block_mask.lists), 2)

    def test_functions_are_made_once(self):
        """JAX knows them by their identity: other ones are traced and compiled again."""
        block_mask = create_block_mask(documents, None, None, ROWS, KEYS)
        made = []
        make = tessera.jax._gradients._make
        with unittest.mock.patch.object(tessera.jax._gradients, "_make", lambda *of: made.append(of) or make(*of)):
            expected = attention(*self.tensors, block_mask=block_mask)
            for _ in range(2):
                self.assertTrue((attention(*self.tensors, block_mask=block_mask) == expected).all())
            self.assertEqual(len(made), 1)
            attention(*self.tensors, block_mask=block_mask, scale=0.5)
            attention(*self.tensors, block_mask=create_block_mask(documents, None, None, ROWS, KEYS))
            self.assertEqual(len(made), 3)

    def test_no_lists(self):
        """A mask by comparisons has none."""
        block_mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, ROWS, KEYS)
        out = attention(*self.tensors, block_mask=block_mask)
        self.assertTrue((out == attention(*self.tensors, mask_mod=lambda b, h, q, k: q >= k)).all())
        self.assertEqual(self.made, [])


class Refusals(Cases):
    def test_calls(self):
        block_mask, (q, k, v) = create_block_mask(of_heads, B, H, ROWS, KEYS), self.tensors
        for error, text, tensors, named in (
            (ValueError, "has lists for 150 queries, and the call has 149: create one", (q[:, 1:], k, v), {}),
            (ValueError, "has lists for 2 batches, and the call has 1", (q[:1], k[:1], v[:1]), {}),
            (ValueError, "'mask_mod' and 'block_mask' are both given", (q, k, v), {"mask_mod": documents}),
            (ValueError, "argument 'causal' is given with functions", (q, k, v), {"causal": True}),
            (TypeError, "argument 'block_mask' is a function; it is a BlockMask", (q, k, v), {"block_mask": documents}),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(error, text):
                attention(*tensors, **{"block_mask": block_mask, **named})

    def test_other_values(self):
        width, numbers = 30, DOCUMENTS[0]

        def within(b, h, q, k):
            return (numbers[q] == numbers[k]) & (q - k < width)

        block_mask = create_block_mask(within, None, None, ROWS, KEYS)
        attention(*self.tensors, block_mask=block_mask)
        width = 31
        with self.assertRaisesRegex(ValueError, "captures another value than when its lists were made"):
            attention(*self.tensors, block_mask=block_mask)
        width, numbers = 30, DOCUMENTS[1]
        with self.assertRaisesRegex(ValueError, "captures another value than when its lists were made"):
            attention(*self.tensors, block_mask=block_mask)

    def test_numbers_of_numpy(self):
        """They become an array of JAX each time; what counts is whether these are the same numbers."""
        numbers = np.array(DOCUMENTS[0])
        block_mask = create_block_mask(lambda b, h, q, k: numbers[q] == numbers[k], None, None, ROWS, KEYS)
        known = attention(*self.tensors, block_mask=block_mask)
        expected = attention(*self.tensors, mask_mod=lambda b, h, q, k: numbers[q] == numbers[k])
        np.testing.assert_array_equal(known, expected)
        np.testing.assert_array_equal(jax.jit(lambda *qkv: attention(*qkv, block_mask=block_mask))(*self.tensors), expected)
        numbers[3] += 1
        with self.assertRaisesRegex(ValueError, "captures another value than when its lists were made"):
            attention(*self.tensors, block_mask=block_mask)

    def test_traced_arrays(self):
        """Without jax.jit, jax.shard_map traces arrays of numpy too."""
        numbers = np.array(DOCUMENTS[0])
        block_mask = create_block_mask(lambda b, h, q, k: numbers[q] == numbers[k], None, None, ROWS, KEYS)
        batch, mesh = PartitionSpec("x"), Mesh(np.array(jax.devices()[:2]), ("x",))
        split = jax.shard_map(lambda *qkv: attention(*qkv, block_mask=block_mask), mesh=mesh, in_specs=batch, out_specs=batch)
        with self.assertRaisesRegex(ValueError, "captures 'numbers', which JAX traces, .* by jax.jit"):
            split(*self.tensors)
        expected = attention(*self.tensors, block_mask=block_mask)
        np.testing.assert_array_equal(jax.jit(split)(*self.tensors), expected)

        def run(of):
            nonlocal numbers
            numbers = of
            return attention(*self.tensors, block_mask=block_mask)

        with self.assertRaisesRegex(ValueError, "captures 'numbers', which JAX traces"):
            jax.jit(run)(DOCUMENTS[0])

    def test_nan_of_numpy(self):
        numbers = np.where(np.array(DOCUMENTS[0]) == 2, np.nan, DOCUMENTS[0]).astype(np.float32)
        block_mask = create_block_mask(lambda b, h, q, k: numbers[q] == numbers[k], None, None, ROWS, KEYS)
        expected = attention(*self.tensors, mask_mod=lambda b, h, q, k: numbers[q] == numbers[k])
        np.testing.assert_array_equal(attention(*self.tensors, block_mask=block_mask), expected)
        numbers[3] = np.nan
        with self.assertRaisesRegex(ValueError, "captures another value than when its lists were made"):
            attention(*self.tensors, block_mask=block_mask)

    def test_create(self):
        for error, text, arguments in (
            (ValueError, "argument 'Q_LEN' is 0; it is a number from 1 on", (documents, None, None, 0, KEYS)),
            (ValueError, "argument 'B' is 2.5; it is a number from 1 on or None", (documents, 2.5, None, ROWS, KEYS)),
            (ValueError, "argument 'B' is None, and the mask takes the batch", (of_batches, None, None, ROWS, KEYS)),
            (ValueError, "argument 'H' is None, and the mask takes the head", (of_heads, B, None, ROWS, KEYS)),
            (TypeError, "argument 'mask_mod' is None; it is a function", (None, None, None, ROWS, KEYS)),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(error, text):
                create_block_mask(*arguments)

        def make(numbers):
            return create_block_mask(lambda b, h, q, k: numbers[q] == numbers[k], None, None, ROWS, KEYS).shape

        with self.assertRaisesRegex(TypeError, "captures 'numbers', which JAX traces, and its lists are made once"):
            jax.jit(make)(DOCUMENTS[0])


if __name__ == "__main__":
    unittest.main()
