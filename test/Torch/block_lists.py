# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Masks by blocks that are listed, those of flex_attention and of `BlockMask.from_kv_blocks`, by the interpreter on the CPU: a
query sees what the function leaves of listed blocks, and all of full ones, at any width, through every front."""

import copy
import pickle
import random
import unittest
import unittest.mock

import problems
import torch
from problems import make
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.attention import flex_attention as flex

import tessera.torch
from tessera.torch import BlockMask, attention, flex_attention

LENGTH = 300
DOCUMENTS = torch.arange(LENGTH + 40) // 37


def causal(b, h, q, k):
    return q >= k


def documents(b, h, q, k):
    return (DOCUMENTS[q] == DOCUMENTS[k]) & (q >= k)


def of_heads(b, h, q, k):
    return k % (h + 2) != b


def make_lists(which):
    """(counts, numbers of blocks) of a table of conditions."""
    return which.sum(-1).int(), torch.argsort(which.int(), dim=-1, descending=True, stable=True).int()


def look(table, block, function, shape):
    """Which queries see which keys, by definition. The table has 0 where a block is not listed, 1 where it is and 2 where in full."""
    batch, heads, rows, keys = shape
    of_pairs = table.repeat_interleave(block[0], 2).repeat_interleave(block[1], 3)[:, :, :rows, :keys].expand(shape)
    seen = torch.ones(shape, dtype=torch.bool) if function is None else problems.look(function, shape)
    return (of_pairs == 2) | ((of_pairs == 1) & seen)


class Cases(problems.Interpreted):
    def draw(self, **named):
        return make(**{"batch": 1, "heads": 2, "kv_heads": 2, "rows": LENGTH, "keys": LENGTH, "dtype": torch.float16, **named})

    def create(self, table, block, function, lengths=(LENGTH, LENGTH), kind=flex.BlockMask):
        of_full = make_lists(table == 2) if (table == 2).any() else (None, None)
        return kind.from_kv_blocks(*make_lists(table == 1), *of_full, BLOCK_SIZE=block, mask_mod=function, seq_lengths=lengths)

    def check(self, out, tensors, visible):
        problems.assert_close(self, out, problems.exact(*tensors, visible)[0])


class Random(Cases):
    """Tables, blocks, functions, shapes and widths that are drawn."""

    def draw_case(self, draw, generator):
        rows, keys = lengths = draw.choice([(128, 256), (150, 203), (256, 256), (64, 330), (300, 64)])
        block = draw.choice([(128, 128), (64, 64), (128, 64), (64, 128), (192, 64), (32, 32), (16, 64), (64, 16), (48, 80),
                             (1, 64), (256, 256), (100, 37)])  # fmt: skip
        batch, heads, kv_heads = draw.choice([(1, 2, 1), (2, 2, 2), (2, 4, 2)])
        shape = draw.choice([1, batch]), draw.choice([1, heads]), -(-rows // block[0]), -(-keys // block[1])
        table = torch.randint(0, 3, shape, generator=generator)
        if draw.random() < 0.3:  # A tile that sees nothing.
            table[:, :, draw.randrange(shape[2])] = 0
        d, dv = draw.choice([(64, 64), (96, 96), (128, 128), (72, 72), (192, 128), (256, 256), (64, 128)])
        tensors = make(batch, heads, kv_heads, rows, keys, d, dv, torch.float16, seed=draw.randrange(1000))
        return tensors, lengths, block, table, draw.choice([None, causal, documents, of_heads])

    def run_case(self, seed):
        draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)
        tensors, lengths, block, table, function = self.draw_case(draw, generator)
        block_mask = self.create(table, block, function, lengths, draw.choice([flex.BlockMask, BlockMask]))
        if draw.random() < 0.5 and isinstance(block_mask, flex.BlockMask):
            block_mask = BlockMask.from_torch(block_mask)
        visible = look(table, block, function, (*tensors[0].shape[:3], lengths[1]))
        leaves, doubles = ([tensor.to(kind).requires_grad_() for tensor in tensors] for kind in (torch.float16, torch.float64))
        out = attention(*leaves, block_mask=block_mask, deterministic=draw.random() < 0.3)
        want, _ = problems.exact(*doubles, visible)
        factors = torch.randn(out.shape, generator=generator).half()
        found = out, *torch.autograd.grad(out, leaves, factors)
        for got, expected in zip(found, (want, *torch.autograd.grad(want, doubles, factors.double()))):
            self.assertLessEqual((got.double() - expected).norm(), 2 * torch.finfo(got.dtype).eps * expected.norm())

    def test_random(self):
        for seed in range(24):
            with self.subTest(seed=seed):
                self.run_case(seed)


class Fronts(Cases):
    def test_all(self):
        """As an argument, converted, under `use`, and in compiled code, before and after other code has read the lists."""

        def run(q, k, v, block_mask):
            return flex_attention(q, k, v, block_mask=block_mask)

        def of_module(q, k, v, block_mask):
            return flex.flex_attention(q, k, v, block_mask=block_mask)

        tensors, generator = self.draw(), torch.Generator().manual_seed(5)
        for function in (None, causal, documents):
            for block in ((128, 128), (32, 64)):
                with self.subTest(function, block=block):
                    torch._dynamo.reset()
                    table = torch.randint(0, 3, (1, 2, -(-LENGTH // block[0]), -(-LENGTH // block[1])), generator=generator)
                    block_mask = self.create(table, block, function)
                    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
                    outs = [call(*tensors, block_mask) for call in (compiled, run, compiled)]
                    outs.append(attention(*tensors, block_mask=BlockMask.from_torch(block_mask)))
                    with tessera.torch.use() as use:
                        outs.append(of_module(*tensors, block_mask))
                        outs.append(torch.compile(of_module, fullgraph=True, backend="aot_eager")(*tensors, block_mask))
                    self.assertEqual((use.taken, use.left.total()), (1, 0))
                    visible = look(table, block, function, (1, 2, LENGTH, LENGTH))
                    for out in outs:
                        self.check(out, tensors, visible)

    def test_made_in_a_graph(self):
        """Lists that a graph computes, with gradients."""
        for kind in (flex.BlockMask, BlockMask):

            def run(q, k, v, counts, blocks):
                block_mask = kind.from_kv_blocks(  # noqa: B023
                    counts, blocks, BLOCK_SIZE=64, mask_mod=causal, seq_lengths=(LENGTH, LENGTH)
                )
                return attention(q, k, v, block_mask=block_mask)

            compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
            for seed in (1, 2):
                table = torch.randint(0, 2, (1, 1, 5, 5), generator=torch.Generator().manual_seed(seed))
                leaves = [tensor.requires_grad_() for tensor in self.draw(seed=seed)]
                out = compiled(*leaves, *make_lists(table == 1))
                visible = look(table, (64, 64), causal, (1, 2, LENGTH, LENGTH))
                self.check(out.detach(), [tensor.detach() for tensor in leaves], visible)
                doubles = [tensor.detach().double().requires_grad_() for tensor in leaves]
                want = torch.autograd.grad(problems.exact(*doubles, visible)[0].sum(), doubles)
                for got, expected in zip(torch.autograd.grad(out.sum(), leaves), want):
                    self.assertLess((got.double() - expected).norm(), 2 * torch.finfo(got.dtype).eps * expected.norm())

    def test_graphs(self):
        """Other lists of the same shape need no new graph, and other lengths one."""
        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(lambda q, k, v, mask: attention(q, k, v, block_mask=mask), fullgraph=True, backend=counter)
        for seed in (1, 2, 3):
            table = torch.randint(0, 2, (1, 2, 3, 3), generator=torch.Generator().manual_seed(seed))
            tensors = self.draw(seed=seed)
            out = compiled(*tensors, self.create(table, (128, 128), causal))
            self.check(out, tensors, look(table, (128, 128), causal, (1, 2, LENGTH, LENGTH)))
        self.assertEqual(counter.frame_count, 1)
        for length in (390, 520, 700):
            tiles = -(-length // 128)
            table = torch.randint(0, 2, (1, 2, tiles, tiles), generator=torch.Generator().manual_seed(length))
            tensors = self.draw(rows=length, keys=length)
            out = compiled(*tensors, self.create(table, (128, 128), causal, (length, length)))
            self.check(out, tensors, look(table, (128, 128), causal, (1, 2, length, length)))
        self.assertEqual(counter.frame_count, 2)

    def test_vmap(self):
        table = torch.randint(0, 3, (1, 1, 3, 3), generator=torch.Generator().manual_seed(2))
        for block in ((128, 128), (100, 128)):
            block_mask = self.create(table, block, causal, kind=BlockMask)
            samples = [self.draw(seed=seed) for seed in (1, 2)]
            out = torch.vmap(lambda *tensors: attention(*tensors, block_mask=block_mask))(*map(torch.stack, zip(*samples)))  # noqa: B023
            for found, tensors in zip(out, samples):
                self.assertTrue(torch.equal(found, attention(*tensors, block_mask=block_mask)))

    def test_scores(self):
        """Beside a score, of which what it captures has a gradient."""
        slopes = torch.tensor([0.5, 0.25], requires_grad=True)
        table = torch.tensor([[[[1, 0, 2], [2, 1, 0], [0, 1, 1]]]])
        for block in ((128, 128), (100, 100)):
            visible, tensors = look(table, block, causal, (1, 2, LENGTH, LENGTH)), self.draw()
            out = attention(*tensors, score_mod=lambda s, b, h, q, k: s - slopes[h] * abs(q - k),
                            block_mask=self.create(table, block, causal))  # fmt: skip
            want, _ = problems.exact(*tensors, visible, slopes=slopes)
            problems.assert_close(self, out, want)
            found, expected = (torch.autograd.grad(x.double().square().sum(), slopes)[0] for x in (out, want))
            self.assertLess((found - expected).norm(), 0.01 * expected.norm())


class Functions(Cases):
    """Lists that are just those of the function."""

    def test_intervals(self):
        """Comparisons say which blocks there are: kernels without lists, which compiled code takes after another call."""
        tensors = self.draw()
        block_mask = flex.create_block_mask(causal, None, None, LENGTH, LENGTH, device="cpu")
        self.assertIsNone(BlockMask.from_torch(block_mask).block)
        want = attention(*tensors, mask_mod=causal)
        compiled = torch.compile(lambda q, k, v: attention(q, k, v, block_mask=block_mask), fullgraph=True, backend="aot_eager")
        self.check(compiled(*tensors), tensors, problems.band(LENGTH, LENGTH, right=0))
        self.assertTrue(torch.equal(attention(*tensors, block_mask=block_mask), want))
        self.assertTrue(torch.equal(compiled(*tensors), want))
        block_mask.full_kv_num_blocks = torch.zeros_like(block_mask.full_kv_num_blocks)
        # To torch a block that reaches past the last query is none that is seen in full.
        table = torch.tensor([[[[1, 0, 0], [0, 1, 0], [1, 1, 1]]]])
        self.check(compiled(*tensors), tensors, look(table, (128, 128), causal, (1, 2, LENGTH, LENGTH)))

    def test_lists(self):
        """A mask by data has lists of its own, for tiles of other sizes than the blocks."""
        block_mask = flex.create_block_mask(documents, None, None, LENGTH, LENGTH, device="cpu")
        for d in (64, 192):
            tensors = self.draw(d=d)
            converted = BlockMask.from_torch(block_mask)
            self.assertTrue(torch.equal(attention(*tensors, block_mask=converted), attention(*tensors, mask_mod=documents)))
            self.assertIsNone(converted.block)

    def test_of_heads(self):
        """Lists that torch makes of head 0 count for the others too; those of each head are those of the function."""
        tensors = self.draw()

        def leaning(b, h, q, k):
            return q >= k + 100 * h

        of_first, of_each = (flex.create_block_mask(leaning, None, heads, LENGTH, LENGTH, device="cpu") for heads in (None, 2))
        self.assertIsNone(BlockMask.from_torch(of_each).block)
        self.check(attention(*tensors, block_mask=of_each), tensors, problems.look(leaning, (1, 2, LENGTH, LENGTH)))
        self.assertIsNotNone(BlockMask.from_torch(of_first).block)
        table = torch.tensor([[[[1, 0, 0], [2, 1, 0], [1, 1, 1]]]])
        visible = look(table, (128, 128), leaning, (1, 2, LENGTH, LENGTH))
        self.check(attention(*tensors, block_mask=of_first), tensors, visible)

    def test_read_once(self):
        """Calls read the lists once, whatever the tensors are, until something of them is another."""
        block_mask, seed = flex.create_block_mask(causal, None, None, LENGTH, LENGTH, device="cpu"), 0

        def expect_reads(count, table):
            nonlocal seed
            seed += 1
            tensors = self.draw(seed=seed)
            with unittest.mock.patch.object(BlockMask, "from_torch", wraps=BlockMask.from_torch) as read:
                outs = [attention(*tensors, block_mask=block_mask) for _ in range(2)]
            self.assertEqual(read.call_count, count)
            for out in outs:
                self.check(out, tensors, look(table, (128, 128), block_mask.mask_mod, (1, 2, LENGTH, LENGTH)))

        table = torch.ones(1, 1, 3, 3)
        expect_reads(1, table)
        expect_reads(0, table)
        block_mask.kv_num_blocks[0, 0, 2] = 0
        block_mask.full_kv_num_blocks[0, 0, 2] = 1
        table = torch.tensor([[[[1, 0, 0], [2, 1, 0], [2, 0, 0]]]])
        expect_reads(1, table)
        expect_reads(0, table)
        block_mask.full_kv_num_blocks = torch.zeros_like(block_mask.full_kv_num_blocks)
        table = torch.where(table == 2, 0, table)
        expect_reads(1, table)
        block_mask.mask_mod = documents
        expect_reads(1, table)
        block_mask = pickle.loads(pickle.dumps(copy.deepcopy(block_mask)))
        expect_reads(1, table)

    def test_captured(self):
        """What the function captures may change between calls, and its lists then leave other blocks than it does."""
        ends, width = torch.full((LENGTH,), LENGTH), 50

        def within(b, h, q, k):
            return (q - k < width) & (k < ends[q])

        block_mask = flex.create_block_mask(within, None, None, LENGTH, LENGTH, device="cpu")
        table, tensors = torch.tensor([[[[1, 2, 1], [1, 1, 1], [0, 1, 1]]]]), self.draw()

        def expect(is_function):
            out = attention(*tensors, block_mask=block_mask)
            self.check(out, tensors, look(table, (128, 128), within, (1, 2, LENGTH, LENGTH)))
            self.assertEqual(block_mask._tessera_kept.own.block is None, is_function)

        expect(True)
        ends.fill_(170)
        expect(False)
        ends, width = torch.full((LENGTH,), LENGTH), 290
        expect(False)

    def test_of_few_dimensions(self):
        """Lists of torch without batches and heads, and without those of queries, which no one reads."""
        counts, blocks = make_lists(torch.tensor([[1, 0, 1], [1, 1, 0], [0, 1, 1]]) == 1)
        block_mask = flex.BlockMask.from_kv_blocks(
            counts, blocks, mask_mod=causal, seq_lengths=(LENGTH, LENGTH), compute_q_blocks=False
        )
        tensors, table = self.draw(), torch.tensor([[[[1, 0, 1], [1, 1, 0], [0, 1, 1]]]])
        leaves = [tensor.requires_grad_() for tensor in tensors]
        out = attention(*leaves, block_mask=block_mask)
        self.check(out.detach(), tensors, look(table, (128, 128), causal, (1, 2, LENGTH, LENGTH)))
        out.sum().backward()

    def test_of_none(self):
        """The BlockMask that torch takes for none."""
        tensors = self.draw()
        block_mask = flex._create_empty_block_mask(*tensors[:2])
        self.assertTrue(torch.equal(flex_attention(*tensors, block_mask=block_mask), flex_attention(*tensors)))


class FromBlocks(Cases):
    def test_counts(self):
        """Without counts a tile has all blocks but -1; lists of 64 bits, and a block that is listed twice."""
        tensors = self.draw()
        blocks = torch.tensor([[[[0, -1, -1], [-1, 2, 0], [2, 2, -1]]]])
        table = torch.tensor([[[[2, 0, 0], [2, 0, 2], [0, 0, 2]]]])
        visible = look(table, (128, 128), None, (1, 2, LENGTH, LENGTH))
        block_mask = BlockMask.from_kv_blocks(None, blocks, seq_lengths=(LENGTH, LENGTH))
        self.check(attention(*tensors, block_mask=block_mask), tensors, visible)
        self.assertIn("300 queries and 300 keys in blocks of 128 x 128 on cpu, lists: queries 128 64>", repr(block_mask))

    def test_arguments(self):
        """Further arguments of the function, and lengths of whole blocks."""
        tensors = self.draw(rows=256, keys=192)
        table = torch.tensor([[[[1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 1]]]])
        block_mask = BlockMask.from_kv_blocks(
            *make_lists(table == 1), BLOCK_SIZE=64, mask_mod=lambda b, h, q, k, of: of[q] == of[k], mask_args=(DOCUMENTS,)
        )
        visible = look(table, (64, 64), lambda b, h, q, k: DOCUMENTS[q] == DOCUMENTS[k], (1, 2, 256, 192))
        self.check(attention(*tensors, block_mask=block_mask), tensors, visible)

    def test_no_pairs(self):
        """Lists are made of lists: no kernel looks at pairs of a query and a key."""
        table = torch.tensor([[[[1, 0, 0], [1, 1, 0], [0, 1, 1]]]])
        block_mask = self.create(table, (128, 128), documents, kind=BlockMask)
        with unittest.mock.patch.object(BlockMask, "_list", side_effect=AssertionError):
            for d in (64, 96, 256):
                block_mask.prepare(d, gradients=True)
        shown = block_mask._repr_html_()
        self.assertIn("60.0 of 100 blocks are visited: 0 in full, 9 in part; 6 are skipped", shown)
        lists, counts = block_mask.lists["queries 128 64"]
        self.assertEqual([lists[0, 0, 1, :4].tolist(), counts[0, 0, 1].tolist()], [[0, 1, 2, 3], [4, 0, 4]])

    def test_visits(self):
        """Tiles visit what is listed: no more blocks than these have, where tiles divide blocks."""
        table = torch.randint(0, 3, (1, 2, 5, 5), generator=torch.Generator().manual_seed(3))
        for function in (None, causal):
            block_mask = self.create(table, (64, 64), function, kind=BlockMask).prepare(128, gradients=True)
            for lists, counts in block_mask.lists.values():
                visited = counts[..., :2].sum().item() * lists.shape[2] * lists.shape[3]
                self.assertEqual(visited, (table > 0).sum().item() * lists.shape[2] * lists.shape[3])

    def test_refusals(self):
        counts, blocks = make_lists(torch.ones(1, 2, 3, 3))
        wrong, high = counts.clone(), blocks.clone()
        wrong[0, 1, 2], high[0, 1, 2, 0] = 4, 3
        lengths = {"seq_lengths": (LENGTH, LENGTH)}
        for error, text, given, named in (
            (ValueError, "'kv_num_blocks' counts 4 blocks of a tile; its list in 'kv_indices' has 0 to 3", (wrong, blocks), lengths),
            (ValueError, "'kv_num_blocks' counts -1 blocks", (counts - 4, blocks), lengths),
            (ValueError, "'kv_indices' lists block 3; 300 keys in blocks of 128 have 0 to 2", (counts, high), lengths),
            (ValueError, "'full_kv_indices' lists block 3; 300", (counts, blocks, counts, high), lengths),
            (ValueError, "'kv_indices' lists block -2", (None, blocks - 2), lengths),
            (ValueError, r"shapes \(1, 2, 3\) and \(1, 2, 3, 3\); 400 queries in tiles of 128 have counts .batch, heads, 4.", (counts, blocks),
             {"seq_lengths": (400, 300)}),
            (ValueError, r"'full_kv_num_blocks' has shape \(1, 1, 3\) and 'kv_num_blocks' \(1, 2, 3\)",
             (counts, blocks, counts[:, :1], blocks[:, :1]), lengths),
            (ValueError, "'full_kv_num_blocks' and 'full_kv_indices' are given together", (counts, blocks, counts), lengths),
            (TypeError, "'kv_indices' is of torch.float32; it is of int32 or int64", (counts, blocks.float()), lengths),
            (TypeError, "'kv_indices' is of type list; it is a tensor", (counts, [[0]]), lengths),
            (ValueError, "'full_kv_num_blocks' is on meta and 'kv_num_blocks' on cpu", (counts, blocks, counts.to("meta"), blocks), lengths),
            (ValueError, "'BLOCK_SIZE' is 0; it is a number of queries and keys", (counts, blocks), {"BLOCK_SIZE": 0}),
            (ValueError, "'BLOCK_SIZE' is .128,.; it is a number", (counts, blocks), {"BLOCK_SIZE": (128,)}),
            (ValueError, "'mask_args' is given without 'mask_mod'", (counts, blocks), {**lengths, "mask_args": (3,)}),
            (TypeError, "'mask_mod' is a int; it is a function", (counts, blocks), {**lengths, "mask_mod": 3}),
            (tessera.TraceError, "block_lists.py:[0-9]+: a condition on a traced value", (counts, blocks),
             {**lengths, "mask_mod": lambda b, h, q, k: q if q > k else k}),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(error, text):
                BlockMask.from_kv_blocks(*given, **named)

    def test_refusals_of_calls(self):
        table = torch.ones(2, 2, 3, 3)
        for block_mask in (self.create(table, (128, 128), None, kind=kind) for kind in (flex.BlockMask, BlockMask)):
            for text, named in (
                ("has lists for 2 batches, and the call has 1: create one", {}),
                ("has lists for 2 heads, and the call has 4", {"batch": 2, "heads": 4}),
                ("has lists for 300 queries, and the call has 299", {"batch": 2, "rows": 299}),
                ("has lists for 300 keys, and the call has 301", {"batch": 2, "keys": 301}),
            ):
                with self.assertRaisesRegex(ValueError, text):
                    attention(*self.draw(**named), block_mask=block_mask)

    def test_refusals_of_torch(self):
        """Of the lists of torch, whose own functions do not look."""
        counts, blocks = torch.tensor([[[1, 3]]], dtype=torch.int32), torch.tensor([[[[0, 1], [0, 9]]]], dtype=torch.int32)
        sizes = {"mask_mod": causal, "seq_lengths": (256, 256), "compute_q_blocks": False}
        for error, text, given in (
            (ValueError, "'block_mask.kv_num_blocks' counts 3 blocks", flex.BlockMask.from_kv_blocks(counts, blocks, **sizes)),
            (ValueError, "'block_mask.kv_indices' lists block 9; 256 keys", flex.BlockMask.from_kv_blocks(counts.clamp(max=2), blocks, **sizes)),
            (TypeError, "is a Tensor; it is a BlockMask of torch", torch.ones(2)),
            (NotImplementedError, "is a part of another one", flex.create_block_mask(causal, None, None, 256, 256, device="cpu")[:, :, 1:]),
        ):  # fmt: skip
            with self.assertRaisesRegex(error, text):
                BlockMask.from_torch(given)


if __name__ == "__main__":
    unittest.main()
