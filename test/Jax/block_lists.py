# RUN: env TESSERA_LIBRARY=%build/lib %jax-python %s
"""Masks by blocks that are listed, in JAX on the interpreter, compared with f64: a query sees what the function leaves of
listed blocks, and all of full ones."""

import random
import unittest

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import problems
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tessera.jax import BlockMask, attention

DOCUMENTS = jnp.arange(400) // 45


def causal(b, h, q, k):
    return q >= k


def documents(b, h, q, k):
    return DOCUMENTS[q] == DOCUMENTS[k]


def of_heads(b, h, q, k):
    return k % (h + 2) != b


def make_lists(which):
    """(counts, numbers of blocks) of a table of conditions."""
    return which.sum(-1).astype(np.int32), np.argsort(~which, axis=-1, kind="stable").astype(np.int32)


def create(table, block, function, lengths):
    return BlockMask.from_kv_blocks(*make_lists(table == 1), *make_lists(table == 2), block, function, lengths)


def make_mask(table, block, function):
    """The same by definition. The table has 0 where a block is not listed, 1 where it is and 2 where in full."""

    def mask(b, h, q, k):
        states = jnp.asarray(table)[b if table.shape[0] > 1 else 0, h if table.shape[1] > 1 else 0, q // block[0], k // block[1]]
        return (states == 2) | ((states == 1) & (True if function is None else function(b, h, q, k)))

    return mask


class Cases(problems.Interpreted):
    def check(self, block_mask, mask, tensors, deterministic=False, layout="BSHD"):
        """Output and gradients."""

        def run(*tensors):
            return attention(*tensors, block_mask=block_mask, return_lse=True, deterministic=deterministic, layout=layout)

        def define(*tensors):
            return problems.define(*tensors, None, mask, layout)

        doubles = [tensor.astype(jnp.float64) for tensor in tensors]
        problems.assert_close(self, run(*tensors)[0], np.asarray(jax.jit(define)(*doubles)[0]))
        exact = problems.pull_compiled(define, doubles)
        for found, want in zip(problems.pull_compiled(run, tensors), exact):
            error = np.linalg.norm(np.asarray(found, np.float64) - np.asarray(want))
            self.assertLessEqual(error, 4 * float(jnp.finfo(jnp.float16).eps) * np.linalg.norm(want))


class Results(Cases):
    def test_random(self):
        """Tables, blocks, functions, shapes and widths that are drawn."""
        for seed in range(5):
            draw, generator = random.Random(seed), np.random.default_rng(seed)
            rows, keys = draw.choice([(128, 256), (150, 203), (64, 330)])
            block = draw.choice([(128, 128), (64, 64), (128, 64), (32, 32), (16, 64), (100, 37)])
            batch, heads, kv_heads = draw.choice([(1, 2, 1), (2, 2, 2), (2, 4, 2)])
            shape = draw.choice([1, batch]), draw.choice([1, heads]), -(-rows // block[0]), -(-keys // block[1])
            table = generator.integers(0, 3, shape)
            function, layout = draw.choice([None, causal, documents, of_heads]), draw.choice(["BSHD", "BHSD"])
            with self.subTest(seed=seed, block=block, function=function):
                tensors = problems.make(batch, heads, kv_heads, rows, keys, draw.choice([64, 96, 256]), None, jnp.float16, layout)
                block_mask = create(table, block, function, (rows, keys))
                self.check(block_mask, make_mask(table, block, function), tensors, draw.random() < 0.4, layout)

    def test_transformations(self):
        """Compiled, mapped over and sharded, with a table for each batch, which kernels read where tiles have several blocks."""
        for block in ((64, 64), (48, 32)):
            shape = 2, 1, -(-150 // block[0]), -(-203 // block[1])
            table = np.random.default_rng(4).integers(0, 3, shape)
            tensors = problems.make(2, 2, 1, 150, 203, dtype=jnp.float16)
            block_mask, of_all = (create(one, block, causal, (150, 203)) for one in (table, table[:1]))
            run = lambda q, k, v: attention(q, k, v, block_mask=block_mask)  # noqa: B023, E731
            expected = run(*tensors)
            self.assertTrue((jax.jit(run)(*tensors) == expected).all())
            spec = NamedSharding(Mesh(np.array(jax.devices()[:2]), ("x",)), PartitionSpec("x"))
            shards = [jax.device_put(tensor, spec) for tensor in tensors]
            self.assertTrue((jax.jit(run)(*shards) == expected).all())
            one = lambda q, k, v: attention(q[None], k[None], v[None], block_mask=of_all)[0]  # noqa: B023, E731
            self.assertTrue((jax.vmap(one)(*tensors) == attention(*tensors, block_mask=of_all)).all())

    def test_counts(self):
        """Without counts a tile has all blocks but -1; a block that is listed twice counts once."""
        blocks = np.array([[[[0, -1, -1], [-1, 2, 0], [2, 2, -1]]]])
        table = np.array([[[[2, 0, 0], [2, 0, 2], [0, 0, 2]]]])
        block_mask = BlockMask.from_kv_blocks(None, blocks, seq_lengths=(300, 300))
        tensors = problems.make(1, 2, 2, 300, 300, dtype=jnp.float16)
        self.check(block_mask, make_mask(table, (128, 128), None), tensors)

    def test_programs(self):
        """What makes lists is compiled as one, also while JAX traces the call, and not by operations, of which each shape has dozens."""
        tensors = problems.make(1, 2, 2, 190, 270, dtype=jnp.float16)
        compiled = []
        jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **named: compiled.append(event))
        self.addCleanup(jax.monitoring.clear_event_listeners)
        block_mask = create(np.ones((1, 1, 4, 6)), (48, 48), causal, (190, 270))
        jax.jit(lambda *of: attention(*of, block_mask=block_mask))(*tensors)
        self.assertLessEqual(sum(event.endswith("backend_compile_duration") for event in compiled), 10)


class Traced(Cases):
    """Lists that a program computes."""

    def draw(self, block):
        table = np.random.default_rng(2).integers(0, 2, (2, 1, -(-150 // block[0]), -(-150 // block[1])))
        return *problems.make(2, 2, 1, 150, 150, dtype=jnp.float16), *make_lists(table == 1)

    def run_listed(self, block, q, k, v, counts, blocks):
        named = {"BLOCK_SIZE": block, "mask_mod": causal, "seq_lengths": (150, 150)}
        return attention(q, k, v, block_mask=BlockMask.from_kv_blocks(counts, blocks, **named))

    def test_gradients(self):
        """Compiled, recomputed and in a loop, where tiles divide blocks and where kernels read the table."""
        for block in ((64, 64), (32, 48)):
            arrays = self.draw(block)

            def loss(*arrays):
                return (self.run_listed(block, *arrays).astype(jnp.float32) ** 2).sum()  # noqa: B023

            def loss_of_loop(q, k, v, counts, blocks):
                def body(x, lists):
                    return self.run_listed(block, x, k, v, *lists), None  # noqa: B023

                stacked = tuple(jnp.stack([lists, lists]) for lists in (counts, blocks))
                return (jax.lax.scan(body, q, stacked)[0].astype(jnp.float32) ** 2).sum()

            def loss_of_two(q, k, v, *lists):
                return loss(self.run_listed(block, q, k, v, *lists), k, v, *lists)  # noqa: B023

            known, of_two = (jax.grad(one, (0, 1, 2))(*arrays) for one in (loss, loss_of_two))
            for program, expected in (
                (jax.jit(jax.grad(loss, (0, 1, 2))), known),
                (jax.jit(jax.grad(jax.checkpoint(loss), (0, 1, 2))), known),
                (jax.grad(jax.jit(loss), (0, 1, 2)), known),
                (jax.jit(jax.grad(loss_of_loop, (0, 1, 2))), of_two),
            ):
                for found, want in zip(program(*arrays), expected):
                    self.assertTrue((found == want).all())

    def test_bad(self):
        """Their numbers are not looked at: blocks that there are not list nothing."""
        q, k, v, counts, blocks = self.draw((64, 64))
        bad = np.where(blocks == 2, 7, blocks)
        want = self.run_listed((64, 64), q, k, v, None, np.where((blocks == 2) | (np.arange(3) >= counts[..., None]), -1, blocks))
        found = jax.jit(lambda *arrays: self.run_listed((64, 64), *arrays))(q, k, v, counts, bad)
        self.assertTrue((found == want).all())

    def test_mapped(self):
        """Tables of samples are no table of a batch."""
        arrays = self.draw((64, 64))
        with self.assertRaisesRegex(NotImplementedError, "argument 'block_mask' is mapped over by vmap; what is not indexed by"):
            jax.vmap(lambda *of: self.run_listed((64, 64), *(array[None] for array in of)))(*arrays)


class Refusals(Cases):
    def test_lists(self):
        counts, blocks = make_lists(np.ones((1, 2, 3, 3), bool))
        lengths = {"seq_lengths": (300, 300)}
        for error, text, given, named in (
            (ValueError, "'kv_num_blocks' counts 4 blocks of a tile; its list in 'kv_indices' has 0 to 3", (counts + 1, blocks), lengths),
            (ValueError, "'kv_indices' lists block 3; 300 keys in blocks of 128 have 0 to 2", (counts, blocks + 1), lengths),
            (ValueError, r"400 queries in tiles of 128 have counts .batch, heads, 4.", (counts, blocks), {"seq_lengths": (400, 300)}),
            (TypeError, "'kv_indices' is of float32; it is of int32 or int64", (counts, blocks.astype(np.float32)), lengths),
            (TypeError, "'kv_indices' is a list; it is an array", (counts, [[0]]), lengths),
            (TypeError, "'full_kv_indices' is a NoneType; it is an array", (counts, blocks, counts), lengths),
            (ValueError, "'BLOCK_SIZE' is 0; it is a number of queries and keys", (counts, blocks), {"BLOCK_SIZE": 0}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                BlockMask.from_kv_blocks(*given, **named)

    def test_calls(self):
        block_mask = create(np.ones((2, 2, 3, 3)), (128, 128), None, (300, 300))
        for text, sizes in (
            ("has lists for 2 batches, and the call has 1: create one", {"batch": 1}),
            ("has lists for 2 heads, and the call has 4", {"heads": 4}),
            ("has lists for 300 queries, and the call has 299", {"rows": 299}),
        ):
            tensors = problems.make(**{"batch": 2, "heads": 2, "rows": 300, "keys": 300, **sizes})
            with self.assertRaisesRegex(ValueError, text):
                attention(*tensors, block_mask=block_mask)


if __name__ == "__main__":
    unittest.main()
