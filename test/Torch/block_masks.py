# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Lists of visited blocks that outlive a call, by the interpreter on the CPU: beside calls that make them, and float64."""

import unittest
import unittest.mock

import problems
import torch
from problems import make
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.attention import flex_attention as flex

import tessera
from tessera._attention import _block_lists
from tessera.torch import BlockMask, attention, create_block_mask, flex_attention

ROWS, KEYS = 150, 203
DOCUMENTS = torch.arange(KEYS) // 41
DOCUMENTS_OF_256 = torch.arange(256) // 90


def documents(b, h, q, k):
    return (DOCUMENTS[q] == DOCUMENTS[k]) & (q >= k)


def dilated(b, h, q, k):
    return (k % (h + 2) == 0) & (q + b >= k)


def seldom(b, h, q, k):
    """Many rows see nothing, and so do whole tiles."""
    return (q < 9) & (k // 50 == 2)


class Cases(problems.Interpreted):
    def draw(self, **named):
        return make(**{"batch": 2, "rows": ROWS, "keys": KEYS, "dtype": torch.float16, **named})

    def create(self, mask_mod, batch=None, heads=None, rows=ROWS, keys=KEYS, **named):
        return create_block_mask(mask_mod, batch, heads, rows, keys, device="cpu", **named)

    def differentiate(self, tensors, **named):
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        out, lse = attention(*leaves, return_lse=True, **named)
        factors = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.dtype)
        return [out, lse, *torch.autograd.grad((out * factors).sum() + lse.nan_to_num(0, 0, 0).sum(), leaves)]

    def check(self, tensors, block_mask, mask_mod, mask_args=(), **named):
        """The same bits as calls that make their lists."""
        found = self.differentiate(tensors, block_mask=block_mask, **named)
        want = self.differentiate(tensors, mask_mod=mask_mod, mask_args=mask_args, **named)
        for got, expected in zip(found, want):
            self.assertTrue(torch.equal(got, expected))
        return found[0]


class Results(Cases):
    def test_masks(self):
        """Lists for all, for each batch and for each head, with blocks that need no mask and tiles that see nothing."""
        tensors = self.draw()
        for mask_mod, sizes in ((documents, ()), (dilated, (2, 2)), (seldom, ()), (lambda b, h, q, k: k % (b + 1) == 0, (2,))):
            with self.subTest(mask_mod):
                out = self.check(tensors, self.create(mask_mod, *sizes), mask_mod)
                problems.assert_close(self, out, problems.exact_mods(*tensors, None, mask_mod)[0])

    def test_of_heads(self):
        """A mask that takes the head alone is one for all batches, as in flex_attention."""

        def strided(b, h, q, k):
            return (k % (h + 2) == 0) & (q >= k)

        block_mask = self.create(strided, None, 2)
        for batch in (2, 3):
            tensors = self.draw(batch=batch)
            out = self.check(tensors, block_mask, strided)
            problems.assert_close(self, out, problems.exact_mods(*tensors, None, strided)[0])
        self.assertTrue(all(lists.shape[:2] == (1, 2) for lists, _ in block_mask.lists.values()))
        of_torch = flex.create_block_mask(strided, None, 2, 256, 256, device="cpu")
        tensors = self.draw(rows=256, keys=256)
        found = attention(*tensors, block_mask=BlockMask.from_torch(of_torch))
        self.assertTrue(torch.equal(found, attention(*tensors, mask_mod=strided)))

    def test_forms(self):
        """Head dimensions with other tiles, scores, and gradients that are the same in each run."""
        block_mask, slopes = self.create(documents), torch.tensor([0.5, 0.25])
        for d in (64, 128, 192):
            self.check(self.draw(batch=1, d=d), block_mask, documents)
        self.assertIn("queries 128 112", block_mask.lists)
        with_score = {"score_mod": lambda s, b, h, q, k: s - slopes[h] * (q - k).abs()}
        self.check(self.draw(), block_mask, documents, **with_score)
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.check(self.draw(), block_mask, documents, **with_score)

    def test_learned(self):
        slopes = torch.tensor([0.5, 0.25], requires_grad=True)
        tensors, found = self.draw(batch=1), []
        for named in ({"block_mask": self.create(documents)}, {"mask_mod": documents}):
            out = attention(*tensors, score_mod=lambda s, b, h, q, k: s - slopes[h] * (q - k), **named)
            found += torch.autograd.grad(out.float().square().sum(), [slopes])
        self.assertTrue(torch.equal(*found))

    def test_made_once(self):
        """Several calls, with other tensors and lengths of batches, make lists once."""
        block_mask = self.create(documents)
        with unittest.mock.patch.object(block_mask, "_make", wraps=block_mask._make) as make_lists:
            for batch, seed in ((1, 0), (2, 1), (3, 2)):
                tensors = self.draw(batch=batch, seed=seed)
                self.check(tensors, block_mask, documents)
                flexible = flex_attention(*tensors, block_mask=block_mask, enable_gqa=True)
                self.assertTrue(torch.equal(flexible, attention(*tensors, mask_mod=documents)))
            self.assertEqual([call.args[0] for call in make_lists.call_args_list], ["queries 128 64", "keys 128 64"])
        self.assertIn("lists: queries 128 64, keys 128 64", repr(block_mask))

    def test_lists_are_read(self):
        """What a list does not have is not visited."""
        tensors, block_mask = self.draw(batch=1), self.create(documents)
        block_mask.prepare(64)
        lists, counts = block_mask.lists["queries 128 64"]
        lists.zero_()
        counts.copy_(torch.tensor([1, 0, 1]))
        first = attention(*tensors, mask_mod=lambda b, h, q, k: documents(b, h, q, k) & (k < 64))
        self.assertTrue(torch.equal(attention(*tensors, block_mask=block_mask), first))

    def test_shown(self):
        block_mask = self.create(lambda b, h, q, k: (q % 3 == 0) & (k >= 64) & (k < 128) | (q < 128) & (k < 64))
        self.assertIn("lists: none yet", block_mask._repr_html_())
        shown = block_mask.prepare(64)._repr_html_()
        self.assertIn("37.5 of 100 blocks are visited: 1 in full, 2 in part; 5 are skipped", shown)
        self.assertEqual(shown.count("<rect"), 6)

    def test_intervals(self):
        """Comparisons say which blocks there are: no lists."""
        block_mask = self.create(lambda b, h, q, k, width: (q >= k) & (q - k < width), mask_args=(70,))
        self.check(self.draw(), block_mask, lambda b, h, q, k: (q >= k) & (q - k < 70))
        self.assertEqual(block_mask.prepare(64, gradients=True).lists, {})

    def test_arguments(self):
        def within(b, h, q, k, of, width):
            return (of[q] == of[k]) & (q - k < width)

        arguments = DOCUMENTS, 30
        self.check(self.draw(), self.create(within, mask_args=arguments), within, arguments)


class Compiled(Cases):
    def test_made_in_compiled_code(self):
        def run(q, k, v):
            return attention(q, k, v, block_mask=create_block_mask(lambda b, h, q, k: q >= k, None, None, 20, 20))

        tensors = make(batch=1, rows=20, keys=20)
        with self.assertRaisesRegex(Exception, "compiled code makes no lists of blocks: call create_block_mask before"):
            torch.compile(run, fullgraph=True, backend="aot_eager")(*tensors)
        torch._dynamo.reset()
        self.assertTrue(torch.equal(torch.compile(run, backend="aot_eager")(*tensors), run(*tensors)))

    def test_compile(self):
        """One graph for other tensors and masks of the same shape, with gradients and without."""

        def run(q, k, v, block_mask):
            return attention(q, k, v, block_mask=block_mask)

        def make_mask(numbers):
            mask = self.create(lambda b, h, q, k: (numbers[q] == numbers[k]) & (q >= k))
            return mask.prepare(64, dtype=torch.float16, gradients=True)

        block_masks = [make_mask(torch.arange(KEYS) // size) for size in (41, 70)]
        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(run, fullgraph=True, backend=counter)
        for seed, block_mask in enumerate((*block_masks, block_masks[0])):
            tensors = self.draw(seed=seed)
            self.assertTrue(torch.equal(compiled(*tensors, block_mask), run(*tensors, block_mask)))
        self.assertEqual(counter.frame_count, 1)
        leaves = [tensor.requires_grad_() for tensor in tensors]
        results = [torch.autograd.grad(call(*leaves, block_masks[1]).float().sum(), leaves) for call in (compiled, run)]
        for got, want in zip(*results):
            self.assertTrue(torch.equal(got, want))
        self.assertEqual(counter.frame_count, 2)

    def test_not_prepared(self):
        compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
        with self.assertRaisesRegex(Exception, "no lists of queries 128 64 yet, and none are made while a graph"):
            compiled(*self.draw(), block_mask=self.create(documents))

    def test_another_mask(self):
        """What the function is made of may change behind its lists."""
        whole = True
        block_mask = self.create(lambda b, h, q, k: documents(b, h, q, k) if whole else k >= 0)
        tensors = self.draw(batch=1)
        self.check(tensors, block_mask, documents)
        whole = False
        with self.assertRaisesRegex(ValueError, "is another one than when its lists were made"):
            attention(*tensors, block_mask=block_mask)

    def test_global(self):
        """A mask that compiled code finds in its module."""
        global of_module
        of_module = self.create(documents).prepare(64)
        self.addCleanup(globals().pop, "of_module")
        tensors = self.draw(batch=1)
        compiled = torch.compile(lambda q, k, v: attention(q, k, v, block_mask=of_module), fullgraph=True, backend="aot_eager")
        self.assertTrue(torch.equal(compiled(*tensors), attention(*tensors, mask_mod=documents)))

    def test_another_capture(self):
        """A tensor, of a closure or of the module, and a number that are others behind the lists, in compiled code."""
        global DOCUMENTS_OF_256
        numbers, width, before = DOCUMENTS, 90, DOCUMENTS_OF_256
        tensors = self.draw(batch=1)

        def change_closure():
            nonlocal numbers
            numbers = DOCUMENTS.clone()

        def change_width():
            nonlocal width
            width = 91

        def change_module():
            global DOCUMENTS_OF_256
            DOCUMENTS_OF_256 = before.clone()

        def of_module(b, h, q, k):
            return DOCUMENTS_OF_256[q] == DOCUMENTS_OF_256[k]

        for mask_mod, change in (
            (lambda b, h, q, k: numbers[q] == numbers[k], change_closure),
            (lambda b, h, q, k: (DOCUMENTS[q] == DOCUMENTS[k]) & (q - k < width), change_width), (of_module, change_module),
        ):  # fmt: skip
            for is_changed_first in (False, True):
                with self.subTest(change, first=is_changed_first):
                    numbers, width, DOCUMENTS_OF_256 = DOCUMENTS, 90, before
                    torch._dynamo.reset()
                    block_mask = self.create(mask_mod).prepare(64)
                    compiled = torch.compile(lambda q, k, v, mask: attention(q, k, v, block_mask=mask), fullgraph=True,
                                             backend="aot_eager")  # fmt: skip
                    if not is_changed_first:
                        compiled(*tensors, block_mask)
                    change()
                    with self.assertRaisesRegex(Exception, "captures another value than when its lists were made"):
                        compiled(*tensors, block_mask)
        DOCUMENTS_OF_256 = before

    def test_vmap(self):
        """Lists are for a number of batches: each sample has a call."""
        block_mask, samples = self.create(documents), [self.draw(seed=seed) for seed in (1, 2)]
        stacked = [torch.stack(parts).requires_grad_() for parts in zip(*samples)]
        run = lambda *tensors: attention(*tensors, block_mask=block_mask)  # noqa: E731
        out = torch.vmap(run)(*stacked)
        for index, tensors in enumerate(samples):
            self.assertTrue(torch.equal(out[index], run(*tensors)))
        for gradient, *of_each in zip(
            torch.autograd.grad(out.float().sum(), stacked),
            *(torch.autograd.grad(run(*leaves).float().sum(), leaves)
              for leaves in ([tensor.detach().requires_grad_() for tensor in tensors] for tensors in samples)),
        ):  # fmt: skip
            self.assertTrue(torch.equal(gradient, torch.stack(of_each)))

    def test_opcheck(self):
        q, k, v = self.draw(batch=1)
        block_mask = self.create(lambda b, h, q, k: k % 3 == 0).prepare(64, gradients=True)
        source = block_mask._written.source
        (forward, _), (backward, _) = _block_lists.keep_forward(source, "f16", (1, 2, ROWS, 64, 1, KEYS, 64), False), (
            _block_lists.keep_gradients(tessera.Program, source, (), False, "f16", 64, 64)
        )
        of_forward, of_backward = ([*block_mask.lists[f"{of} 128 64"]] for of in ("queries", "keys"))
        names = "visit_lists,visit_counts||"
        arguments = q, k, v, of_forward, [], [], names, forward, 0.125
        out, lse = torch.ops.tessera.variant_forward(*arguments)
        torch.library.opcheck(torch.ops.tessera.variant_forward.default, arguments)
        arguments = torch.randn_like(out), None, q, k, v, out, lse, of_backward, [], [], names, "", backward, 0.125
        torch.library.opcheck(torch.ops.tessera.variant_backward.default, arguments)


class Refusals(Cases):
    def refuse(self, text, tensors, error=ValueError, **named):
        with self.assertRaisesRegex(error, text):
            attention(*tensors, **named)

    def test_other_shapes(self):
        block_mask = self.create(dilated, 2, 2)
        self.refuse("has lists for 2 batches, and the call has 1: create one", self.draw(batch=1), block_mask=block_mask)
        self.refuse("for 2 heads, and the call has 4", self.draw(heads=4), block_mask=block_mask)
        self.refuse("for 150 queries, and the call has 151", self.draw(rows=151), block_mask=block_mask)
        self.refuse("for 203 keys, and the call has 204", self.draw(keys=204), block_mask=block_mask)
        q, k, v = self.draw()
        self.refuse("is on cpu and 'q' on meta", [x.to("meta") for x in (q, k, v)], block_mask=block_mask)

    def test_other_masks(self):
        tensors, width, numbers = self.draw(), 30, DOCUMENTS

        def within(b, h, q, k):
            return (numbers[q] == numbers[k]) & (q - k < width)

        block_mask = self.create(within)
        attention(*tensors, block_mask=block_mask)
        width = 31
        self.refuse("captures another value than when its lists were made", tensors, block_mask=block_mask)
        width, numbers = 30, DOCUMENTS.clone()
        self.refuse("captures another value than when its lists were made", tensors, block_mask=block_mask)
        numbers = DOCUMENTS
        attention(*tensors, block_mask=block_mask)
        self.refuse("'mask_mod' and 'block_mask' are both given", tensors, block_mask=block_mask, mask_mod=within)
        self.refuse("'mask_args' is given with a block_mask, which has", tensors, block_mask=block_mask, mask_args=(3,))
        self.refuse("argument 'causal' is given with functions", tensors, block_mask=block_mask, causal=True)
        numbers[3] += 1
        self.addCleanup(numbers.sub_, torch.arange(KEYS).eq(3).int())
        self.refuse("captures another value than when its lists were made", tensors, block_mask=block_mask)

    def test_other_order(self):
        """The form of the gradients is chosen in the forward pass."""
        leaves = [tensor.requires_grad_() for tensor in self.draw(batch=1)]
        out = attention(*leaves, block_mask=self.create(documents))
        self.addCleanup(torch.use_deterministic_algorithms, False)
        torch.use_deterministic_algorithms(True)
        with self.assertRaisesRegex(RuntimeError, "and was off in the forward pass, which has chosen the lists"):
            out.sum().backward()

    def test_create(self):
        for error, text, named in (
            (ValueError, "argument 'Q_LEN' is 0; it is a number from 1 on", {"rows": 0}),
            (ValueError, "argument 'KV_LEN' is None; it is a number from 1 on$", {"keys": None}),
            (ValueError, "argument 'B' is 2.5; it is a number from 1 on or None", {"batch": 2.5}),
            (ValueError, "argument 'B' is None, and the mask takes the batch", {"mask_mod": dilated, "heads": 2}),
            (ValueError, "argument 'H' is None, and the mask takes the head", {"mask_mod": dilated, "batch": 2}),
            (TypeError, "argument 'mask_mod' is None; it is a function", {"mask_mod": None}),
            (TypeError, "argument 'mask_args' is a int; it is a tuple of arguments", {"mask_args": 3}),
            (TypeError, "argument 'mask_args' is a str; it is a tuple of arguments", {"mask_args": "ab"}),
            (TypeError, "argument 'mask_args' is a Tensor; it is a tuple of arguments", {"mask_args": torch.ones(2)}),
            (tessera.TraceError, "block_masks.py:[0-9]+: a condition on a traced value", {"mask_mod": lambda b, h, q, k: q if q > k else k}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                self.create(**{"mask_mod": documents, **named})
        with self.assertRaisesRegex(TypeError, "argument 'dtype' is torch.float32"):
            self.create(documents).prepare(64, dtype=torch.float32)
        tessera.torch.use_interpreter(False)
        with self.assertRaisesRegex(ValueError, "argument 'block_mask' is on the CPU"):
            self.create(documents).prepare(64)


if __name__ == "__main__":
    unittest.main()
