# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Attention over caches, as engines call it, on the interpreter: compared with f64. All that no length reaches is NaN, and entries of
tables behind the last page are no pages."""

import itertools
import math
import threading
import unittest
import unittest.mock

import problems
import torch
from problems import band, exact

from tessera.torch import _kernels, _serving, attention, flash_attn_varlen_func, flash_attn_with_kvcache, kv_append, merge_states

NAN = math.nan


class Cache:
    """Keys and values of sequences of some lengths, in pages or with one place for each."""

    def __init__(self, lengths, rows, paged, kv_heads, d=64, dv=None, dtype=torch.bfloat16):
        self.lengths, self.paged, batch = lengths, paged, len(lengths)
        most = max(1, -(-max(lengths) // rows)) if paged else 1
        count, generator = batch * most + 2, torch.Generator().manual_seed(sum(lengths))
        self.k, self.v = (torch.full((count, rows, kv_heads, width), NAN, dtype=dtype) for width in (d, dv or d))
        self.table = torch.full((batch, most), -777777, dtype=torch.int32)
        numbers = torch.randperm(count, generator=generator).tolist()
        self.keys, self.values = [], []
        for b, length in enumerate(lengths):
            for cache, own in ((self.k, self.keys), (self.v, self.values)):
                own.append(torch.randn(length, kv_heads, cache.shape[3], generator=generator).to(dtype))
            for j in range(-(-length // rows) if paged else 1):
                self.table[b, j] = number = numbers.pop()
                for cache, own in ((self.k, self.keys[b]), (self.v, self.values[b])):
                    part = own[j * rows : (j + 1) * rows]
                    cache[number, : len(part)] = part

    @property
    def places(self):
        return {"page_table": self.table} if self.paged else {"cache_batch_idx": self.table[:, 0].contiguous()}

    @property
    def seqlens(self):
        return torch.tensor(self.lengths, dtype=torch.int32)

    def expect(self, q, left=None, right=None, **options):
        """(output [B, SQ, H, DV], LSE) in f64."""
        outs, lses = [], []
        for own, k, v in zip(q, self.keys, self.values):
            own, k, v = (x.transpose(0, 1)[None] for x in (own, k, v))
            visible = band(own.shape[2], k.shape[2], left, right)
            out, lse = exact(own, k, v, visible, **options)
            outs.append(out[0].transpose(0, 1)), lses.append(lse[0])
        return torch.stack(outs), torch.stack(lses)


class Meaning(unittest.TestCase):
    def setUp(self):
        problems.use_interpreter(self)

    def check(self, cache, heads, rows, expected=(), **options):
        q = torch.randn(len(cache.lengths), rows, heads, cache.k.shape[3], generator=torch.Generator().manual_seed(1))
        q = q.to(cache.k.dtype)
        out, lse = flash_attn_with_kvcache(
            q, cache.k, cache.v, cache_seqlens=cache.seqlens, return_softmax_lse=True, **cache.places, **options
        )
        expected = dict(expected)
        if options.get("causal"):
            expected.setdefault("right", 0)
        want, want_lse = cache.expect(q, **expected)
        problems.assert_close(self, out, want, options)
        self.assertTrue(torch.allclose(lse.double(), want_lse, atol=2e-3), options)

    def test_groups_and_lengths(self):
        lengths = [5, 128, 0, 1, 127, 129]
        for paged, rows in ((False, 160), (True, 64), (True, 128)):
            for heads, kv_heads in ((2, 2), (3, 1), (7, 1), (8, 1)):
                with self.subTest(f"{paged} {rows} {heads}/{kv_heads}"):
                    self.check(Cache(lengths, rows, paged, kv_heads), heads, 1)

    def test_short_pages(self):
        for rows in (8, 16, 24):
            for queries in (1, 3):
                with self.subTest(f"{rows} {queries}"):
                    self.check(Cache([17, 100, 0, 1, 16], rows, True, 2), 4, queries, causal=True)

    def test_queries(self):
        """Some sequences have fewer keys than queries, of which the first see none."""
        for paged, queries in ((False, 2), (True, 3), (True, 70)):
            for causal in (False, True):
                self.check(Cache([100, 7, 131, 0], 192 if not paged else 64, paged, 1), 4, queries, causal=causal)

    def test_parts(self):
        for options in ({"num_splits": 2}, {"num_splits": 3}, {"keys_per_part": 128}):
            for paged, rows, queries in ((False, 384, 1), (True, 64, 2), (True, 128, 70), (True, 16, 1)):
                with self.subTest(f"{options} {rows} {queries}"):
                    self.check(Cache([300, 100, 0, 1, 257], rows, paged, 1), 2, queries, causal=True, **options)

    def test_masks_and_scores(self):
        cache = Cache([300, 100, 7], 128, True, 1)
        for queries in (1, 2):
            self.check(cache, 4, queries, {"left": 50, "right": 0}, causal=True, window_size=(50, -1))
            self.check(cache, 4, queries, {"left": 50, "right": 3}, window_size=(50, 3), num_splits=2)
            self.check(cache, 4, queries, {"softcap": 3.0}, softcap=3.0)
        slopes = torch.tensor([0.5, 0.1, 0.02, 0.3])
        self.check(cache, 4, 1, {"slopes": slopes}, alibi_slopes=slopes)

    def test_sinks(self):
        """Sinks count once, however keys are divided, and where there are none. Several heads are in a tile, or one is."""
        sinks = torch.tensor([0.5, -1.0, 2.0])
        for heads, kv_heads, dtype in ((2, 1, torch.float32), (3, 1, torch.bfloat16)):
            cache = Cache([300, 5, 0, 129], 128, True, kv_heads)
            for queries, options in itertools.product((1, 3), ({}, {"num_splits": 3}, {"softcap": 3.0, "num_splits": 2})):
                q = torch.randn(4, queries, heads, 64, generator=torch.Generator().manual_seed(queries)).bfloat16()
                out, lse = flash_attn_with_kvcache(
                    q, cache.k, cache.v, cache_seqlens=cache.seqlens, causal=True, sinks=sinks[:heads].to(dtype), return_softmax_lse=True,
                    **cache.places, **options,
                )  # fmt: skip
                want, want_lse = cache.expect(q, right=0, softcap=options.get("softcap", 0.0))
                joined = torch.logaddexp(want_lse, sinks[:heads, None].double())
                kept = (want_lse - joined).exp().transpose(1, 2)[..., None]
                problems.assert_close(self, out, want * kept, options)
                self.assertTrue(torch.allclose(lse.double(), joined, atol=2e-3), options)

    def test_given_output(self):
        cache, out = Cache([300, 5], 128, True, 1), torch.full((2, 3, 2, 64), NAN).bfloat16()
        q = torch.randn(2, 1, 2, 64, generator=torch.Generator().manual_seed(4)).bfloat16()
        for parts in (1, 2):
            given = out[:, 1:2]
            options = {**cache.places, "cache_seqlens": cache.seqlens, "num_splits": parts, "out": given}
            self.assertIs(flash_attn_with_kvcache(q, cache.k, cache.v, **options), given)
            problems.assert_close(self, given, cache.expect(q)[0])
        self.assertTrue(out[:, ::2].isnan().all())

    def test_sizes(self):
        for d, dv, dtype in ((72, 40, torch.bfloat16), (128, 128, torch.float16), (256, 256, torch.bfloat16)):
            self.check(Cache([70, 3], 64, True, 1, d, dv, dtype), 2, 1)

    def test_lengths_that_are_no_tensor(self):
        cache = Cache([96, 96], 96, False, 1)
        q = torch.randn(2, 1, 2, 64).bfloat16()
        want = cache.expect(q)[0]
        k, v = (x[cache.table[:, 0].long()] for x in (cache.k, cache.v))
        for lengths in (None, 96):
            problems.assert_close(self, flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths), want)
        # Nothing is made on the device for the kernel to read.
        with unittest.mock.patch.object(_serving, "_make_numbers", side_effect=AssertionError):
            problems.assert_close(self, flash_attn_with_kvcache(q, k, v), want)
            flash_attn_with_kvcache(q, k, v, cache_seqlens=cache.seqlens)
        out, lse = flash_attn_with_kvcache(q[:, :0], k, v, return_softmax_lse=True)
        self.assertEqual((out.shape, lse.shape), ((2, 0, 2, 64), (2, 2, 0)))

    def test_invariance(self):
        """With parts of so many keys a sequence gives the same bits beside any other, in any pages, and in a longer cache."""
        cache, generator = Cache([300, 100], 128, True, 1), torch.Generator().manual_seed(3)
        q = torch.randn(2, 1, 2, 64, generator=generator).bfloat16()

        def attend(*numbers, **more):
            places = {
                "page_table": cache.table[list(numbers)],
                "cache_seqlens": cache.seqlens[list(numbers)],
                "keys_per_part": 128,
            }
            return flash_attn_with_kvcache(q[list(numbers)], cache.k, cache.v, **{**places, **more})

        both = attend(0, 1)
        for b in (0, 1):
            self.assertTrue(torch.equal(attend(b)[0], both[b]))
        longer = torch.cat([cache.table, torch.full((2, 3), 99, dtype=torch.int32)], 1)
        self.assertTrue(torch.equal(attend(0, 1, page_table=longer), both))


class Tokens(unittest.TestCase):
    """Queries of all sequences one behind the other, over keys that lie so too, and over pages."""

    def setUp(self):
        problems.use_interpreter(self)

    def check(self, counts, cache, heads, packed_keys, expected=(), with_out=False, **options):
        d = cache.k.shape[3]
        queries = [torch.randn(n, heads, d, generator=torch.Generator().manual_seed(n)).to(cache.k.dtype) for n in counts]
        starts = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
        # Behind the last sequence there is padding.
        q = torch.cat([*queries, torch.full((5, heads, d), NAN).to(cache.k.dtype)])
        starts_k = torch.tensor([0, *cache.lengths]).cumsum(0).to(torch.int32)
        if packed_keys:
            k, v, more = torch.cat(cache.keys), torch.cat(cache.values), {}
        else:
            k, v, more = cache.k, cache.v, {"block_table": cache.table}
        if with_out:
            options["out"] = torch.empty_like(q)
        out, lse, _ = flash_attn_varlen_func(
            q, k, v, starts, starts_k, max(counts), max(cache.lengths), return_attn_probs=True, **more, **options
        )  # fmt: skip
        if with_out:
            self.assertIs(out, options["out"])
        expected = dict(expected)
        if options.get("causal"):
            expected.setdefault("right", 0)
        for b, own in ((b, own) for b, own in enumerate(queries) if len(own)):
            tokens = slice(int(starts[b]), int(starts[b + 1]))
            one = Cache.__new__(Cache)
            one.keys, one.values = [cache.keys[b]], [cache.values[b]]
            want, want_lse = one.expect(own[None], **expected)
            problems.assert_close(self, out[tokens], want[0], options)
            self.assertTrue(torch.allclose(lse[:, tokens].double(), want_lse[0], atol=2e-3), options)

    def test_prompts_and_tokens(self):
        counts, lengths = [70, 1, 0, 130, 1, 3], [70, 129, 50, 200, 1, 3]
        for heads, kv_heads in ((2, 2), (4, 1)):
            cache = Cache(lengths, 64, True, kv_heads)
            for causal in (False, True):
                for packed_keys in (False, True):
                    with self.subTest(f"{heads} {causal} {packed_keys}"):
                        self.check(counts, cache, heads, packed_keys, causal=causal)
            self.check(counts, cache, heads, False, {"left": 30, "right": 0}, causal=True, window_size=(30, 0))

    def test_few_queries(self):
        """Several heads are in a tile."""
        for rows in (64, 16):
            self.check([1, 0, 3, 2], Cache([100, 5, 3, 64], rows, True, 2, 72), 8, False, with_out=True, causal=True)

    def test_single_queries(self):
        """Sequences without a query stand between the others, and behind them."""
        for counts in ([1, 1, 1, 1], [1, 0, 1, 1, 0, 0]):
            for heads, rows in ((7, 64), (4, 16)):
                cache = Cache([300, 5, 100, 1, 7, 0][: len(counts)], rows, True, 1)
                self.check(counts, cache, heads, False, with_out=True, causal=True)
                self.check(counts, cache, heads, False, {"left": 50, "right": 0}, causal=True, window_size=(50, -1))

    def test_refused(self):
        cache = Cache([3, 4], 64, True, 1)
        q, starts = torch.zeros(5, 2, 64).bfloat16(), torch.tensor([0, 2, 5], dtype=torch.int32)
        k = torch.zeros(7, 1, 64).bfloat16()
        for kind, text, arguments, options in (
            (
                NotImplementedError,
                "'dropout_p' is 0.1; no kernel drops weights",
                (q, k, k, starts, starts, 3, 4),
                {"dropout_p": 0.1},
            ),
            (ValueError, "'q' has 4 dimensions; it has 3", (q[None], k, k, starts, starts, 3, 4), {}),
            (ValueError, "'k' has 3 dimensions; it has 4", (q, k, k, starts, starts, 3, 4), {"block_table": cache.table}),
            (ValueError, "'max_seqlen_q' is -1; it is a number of queries", (q, k, k, starts, starts, -1, 4), {}),
            (ValueError, "'cu_seqlens_k' is None; without it", (q, k, k, starts, None, 3, 4), {}),
            (TypeError, "'cu_seqlens_q' has type torch.int64; it is int32", (q, k, k, starts.long(), starts, 3, 4), {}),
            (ValueError, r"'cu_seqlens_k' has shape \(2,\); with this 'q' it is \[3\]", (q, k, k, starts, starts[1:], 3, 4), {}),
        ):
            with self.assertRaisesRegex(kind, text):
                flash_attn_varlen_func(*arguments, **options)


class Masks(unittest.TestCase):
    """Masks that have a source of their own, dense and over caches, of one query, of several, with divided keys, and packed."""

    LENGTHS = [150, 5, 0, 129]

    def setUp(self):
        problems.use_interpreter(self)
        self.cache = Cache(self.LENGTHS, 64, True, 1)

    def expect(self, q, b, see):
        """Output of queries [SQ, H, D] of sequence b in f64, by a function of places of queries and keys."""
        rows, keys = len(q), self.LENGTHS[b]
        own, key = torch.arange(rows)[:, None] + keys - rows, torch.arange(keys)
        q, k, v = (x.transpose(0, 1)[None] for x in (q, self.cache.keys[b], self.cache.values[b]))
        return exact(q, k, v, see(b, own, key) & (own >= 0))[0][0].transpose(0, 1)

    def check(self, see, run, rows=(1, 3), parts=(1, 2)):
        """`run(q, parts)` gives the output of [B, SQ, H, D]."""
        for count, divisions in itertools.product(rows, parts):
            q = torch.randn(4, count, 2, 64, generator=torch.Generator().manual_seed(count)).bfloat16()
            out = run(q, divisions)
            for b in range(4):
                problems.assert_close(self, out[b], self.expect(q[b], b, see), (count, divisions, b))

    def check_all(self, see, **options):
        cache = self.cache
        named = {"cache_seqlens": cache.seqlens, "page_table": cache.table}
        self.check(see, lambda q, parts: flash_attn_with_kvcache(q, cache.k, cache.v, num_splits=parts, **named, **options))
        counts = [70, 5, 0, 1]
        starts, generator = torch.tensor([0, *counts]).cumsum(0).to(torch.int32), torch.Generator().manual_seed(9)
        q = torch.randn(sum(counts), 2, 64, generator=generator).bfloat16()
        out = flash_attn_varlen_func(q, cache.k, cache.v, starts, None, 70, 0, seqused_k=cache.seqlens, block_table=cache.table, **options)
        for b in (0, 1, 3):
            own = slice(starts[b], starts[b + 1])
            problems.assert_close(self, out[own], self.expect(q[own], b, see), b)

    def test_chunks(self):
        self.check_all(lambda b, q, k: (q // 48 == k // 48) & (k <= q), causal=True, attention_chunk=48)

    def test_flags(self):
        flags = torch.tensor([0, 1, 1, 3], dtype=torch.int32)
        self.check_all(lambda b, q, k: (k <= q) | (flags[b] == 0), causal=flags)

    def test_prefixes(self):
        prefixes = torch.tensor([70, 2, 0, 0], dtype=torch.int32)
        see = lambda b, q, k: (k <= q) & ((k >= q - 20) | (k < prefixes[b]))  # noqa: E731
        self.check_all(see, causal=True, window_size=(20, 0), prefix_lens=prefixes)

    def run_variant(self, variant):
        def run(q, parts):
            cache = self.cache
            call = _serving._Call(q, cache.k, cache.v, cache.seqlens, None, cache.table)
            call.variant = variant
            return call.run(64**-0.5, (None, None), count=parts)[0]

        return run

    def test_trees(self):
        tree = torch.tensor([[1, 3, 5], [1, 2, 6], [1, 3, 7], [1, 3, 4]], dtype=torch.int32)

        def see(b, q, k):
            draft = k - q[0]
            return (draft < 0) | ((tree[b, : len(q), None] >> draft.clamp(min=0)) & 1).bool()

        self.check(see, self.run_variant(("draft_tree", {"tree": tree}, {})), rows=(3,))

    def test_images(self):
        ends = torch.zeros(4, 192, dtype=torch.int32)
        ends[0, 100:149], ends[3, 120:128], ends[3, 128:129] = 149, 128, 129

        def see(b, q, k):
            return (k <= q) | (k < ends[b, q.clamp(min=0)])

        self.check(see, self.run_variant(("image_ranges", {"ends": ends}, {})), rows=(1, 3, 40))


class FewQueries(unittest.TestCase):
    """`attention` takes these kernels where they gain."""

    def setUp(self):
        problems.use_interpreter(self)

    def attend(self, taken, tensors, visible=None, softcap=0.0, **options):
        options = {**options, "softcap": softcap} if softcap else options
        with unittest.mock.patch.object(_serving._Call, "run", autospec=True, side_effect=_serving._Call.run) as run:
            out, lse = attention(*tensors, return_lse=True, **options)
        self.assertEqual(run.called, taken, options)
        layout = options.get("layout", "BHSD")
        q, k, v = (x.transpose(1, 2) for x in tensors) if layout == "BSHD" else tensors
        want, want_lse = exact(q, k, v, visible, softcap)
        problems.assert_close(self, out.transpose(1, 2) if layout == "BSHD" else out, want, options)
        self.assertTrue(torch.allclose(lse.double(), want_lse, atol=2e-3))
        self.assertTrue(torch.equal(attention(*tensors, **options), out))

    def test_taken(self):
        for heads, kv_heads, rows, keys in ((4, 4, 1, 600), (7, 1, 1, 1000), (8, 2, 5, 520), (6, 2, 16, 512)):
            tensors = problems.make(heads=heads, kv_heads=kv_heads, rows=rows, keys=keys)
            self.attend(True, tensors)
            self.attend(True, tensors, band(rows, keys, right=0), causal=True)
        for rows in (1, 3):
            tensors = problems.make(heads=4, kv_heads=2, rows=rows, keys=700)
            self.attend(True, tensors, band(rows, 700, 99, 0), causal=True, window=(99, 0))
            self.attend(True, tensors, band(rows, 700, 99, 5), window=(99, 5), softcap=20.0)
        tensors = problems.make(heads=4, kv_heads=2, rows=2, keys=600, layout="BSHD")
        self.attend(True, tensors, layout="BSHD")

    def test_compiled_aside(self):
        """What is not there yet is compiled beside the program."""
        made, may_end = [], threading.Event()

        def find(*asked, **parameters):
            may_end.wait(60)
            made.append((asked, parameters))
            if parameters["D"] == 256:
                raise ValueError("no room")
            return "kernel"

        with unittest.mock.patch.object(_kernels, "find", find), unittest.mock.patch.dict(_serving._begun, clear=True):
            for _ in range(2):
                self.assertRaises(_serving._NotReady, _serving._find_ready, False, "source", "attention", D=64)
            may_end.set()
            wait = _serving._variants._background().submit(lambda: None)
            wait.result()
            self.assertEqual(_serving._find_ready(False, "source", "attention", D=64), "kernel")
            self.assertEqual(made, [((False, "source", "attention"), {"D": 64})])
            self.assertRaises(_serving._NotReady, _serving._find_ready, False, "source", "attention", D=256)
            _serving._variants._background().submit(lambda: None).result()
            with self.assertWarnsRegex(RuntimeWarning, "go on with kernels for others: no room"):
                self.assertRaises(_serving._NotReady, _serving._find_ready, False, "source", "attention", D=256)

    def test_left_to_others(self):
        self.attend(False, problems.make(heads=2, kv_heads=2, rows=17, keys=520))
        self.attend(False, problems.make(heads=2, kv_heads=2, rows=1, keys=500))
        slopes = torch.tensor([0.1, 0.2])
        with unittest.mock.patch.object(_serving._Call, "run") as run:
            attention(*problems.make(heads=2, rows=1, keys=520), alibi=slopes)
        self.assertFalse(run.called)
        q, k, v = problems.make(heads=2, kv_heads=2, rows=1, keys=520)
        self.attend(False, (q.requires_grad_(), k, v))
        with unittest.mock.patch.object(_kernels, "_INTERPRETED", 4):
            _kernels.count_multiprocessors.cache_clear()
            self.attend(False, problems.make(heads=2, kv_heads=2, rows=1, keys=520))
        _kernels.count_multiprocessors.cache_clear()


def rotate(x, cos, sin, places, interleaved):
    """Rows of [T, H, D], rotated in f64."""
    n, x = cos.shape[1], x.double()
    cos, sin, y = cos.double()[places][:, None], sin.double()[places][:, None], x.clone()
    first, second = (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if interleaved else (slice(0, n), slice(n, 2 * n))
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., second] * cos + x[..., first] * sin
    return y


def make_angles(n, dtype):
    angles = torch.rand(200, n, generator=torch.Generator().manual_seed(5)) * 6
    return angles.cos().to(dtype), angles.sin().to(dtype)


class Append(unittest.TestCase):
    def setUp(self):
        problems.use_interpreter(self)

    def check(self, d, dv, n, interleaved, with_q, is_short, numbers, angles):
        generator = torch.Generator().manual_seed(d + n)

        def draw(heads, width):
            return torch.randn(7, heads, width, generator=generator).bfloat16()

        k, v, q = draw(3, d), draw(3, dv), draw(6, d) if with_q else None
        pages, rows = 3, 5
        slots = torch.tensor([3, -1, 14, 0, -5, 7, 15], dtype=numbers)
        positions = torch.tensor([0, 3, 9, 4, 2, 8, 1], dtype=numbers)
        kind = torch.float8_e4m3fn if is_short else torch.bfloat16
        caches = [torch.zeros(pages, rows, 3, width).to(kind) for width in (d, dv)]
        options, units = {}, (1.0, 1.0)
        want_k = k.double()
        if n:
            cos, sin = make_angles(n, angles)
            options = {"cos": cos, "sin": sin, "positions": positions, "interleaved": interleaved}
            want_k = rotate(k, cos, sin, positions.long(), interleaved)
        if is_short:
            units = 0.5, 0.004
            options.update(k_scale=torch.tensor(units[0]), v_scale=torch.tensor([units[1]]))
        rotated = kv_append(k, v, *caches, slots, q=q, **options)
        if q is None:
            self.assertIsNone(rotated)
        else:
            want = rotate(q, cos, sin, positions.long(), interleaved)
            self.assertTrue(torch.allclose(rotated.double(), want, rtol=2**-8, atol=1e-2))
        for cache, new, unit in zip(caches, (want_k, v.double()), units):
            want = torch.zeros(pages * rows, 3, cache.shape[3], dtype=torch.float64)
            for t, slot in enumerate(slots.tolist()):
                if 0 <= slot < pages * rows:
                    want[slot] = (new[t] / unit).clamp(-448, 448) if is_short else new[t]
            got = cache.double().view(want.shape)
            self.assertTrue(torch.allclose(got, want, rtol=2**-4 if is_short else 2**-8, atol=1e-2))

    def test_meaning(self):
        for case in (
            (64, 64, 32, False, True, False, torch.int64, torch.bfloat16),
            (128, 128, 16, True, True, False, torch.int32, torch.float32),
            (80, 48, 24, True, False, False, torch.int64, torch.bfloat16),
            (64, 64, 32, False, True, True, torch.int64, torch.float32),
            (128, 64, 0, False, False, True, torch.int32, None),
            (256, 256, 0, False, False, False, torch.int32, None),
        ):
            with self.subTest(case):
                self.check(*case)

    def test_before_attention(self):
        """New keys behind those of the cache, rotated with the queries."""
        before = [5, 70, 127]
        for paged, interleaved, count in ((True, False, 1), (False, True, 1), (True, True, 3)):
            cache = Cache([length + count for length in before], 64 if paged else 192, paged, 2)
            rows = cache.k.shape[1]
            q, k, v = (torch.randn(3, count, heads, 64).bfloat16() for heads in (4, 2, 2))
            cos, sin = make_angles(16, torch.bfloat16)
            turned = []
            for b, length in enumerate(before):
                places = torch.arange(count) + length
                turned.append(rotate(q[b], cos, sin, places, interleaved).bfloat16())
                cache.keys[b][length:] = rotate(k[b], cos, sin, places, interleaved).bfloat16()
                cache.values[b][length:] = v[b]
                for place in places.tolist():
                    page = cache.table[b, place // rows]
                    cache.k[page, place % rows] = cache.v[page, place % rows] = NAN
            out = flash_attn_with_kvcache(
                q, cache.k, cache.v, k, v, rotary_cos=cos, rotary_sin=sin, rotary_interleaved=interleaved,
                cache_seqlens=torch.tensor(before, dtype=torch.int32), causal=True, **cache.places,
            )  # fmt: skip
            want = cache.expect(torch.stack(turned), right=0)[0]
            self.assertTrue(torch.allclose(out.double(), want, atol=2e-2), (paged, interleaved, count))


class Joining(unittest.TestCase):
    def setUp(self):
        problems.use_interpreter(self)

    def test_states(self):
        generator = torch.Generator().manual_seed(7)
        for count, width, dtype, out in (
            (1, 64, torch.float32, None),
            (3, 40, torch.bfloat16, torch.float32),
            (35, 136, torch.float32, torch.float16),
        ):
            parts = torch.randn(count, 2, 4, 5, width, generator=generator).to(dtype)
            lses = torch.randn(count, 2, 5, 4, generator=generator) * 3
            parts[0, 0], lses[0, 0] = NAN, -math.inf
            lses[:, 1, 2] = -math.inf
            got, got_lse = merge_states(parts, lses, dtype=out)
            want_lse = lses.double().logsumexp(0)
            weights = (lses.double() - want_lse).exp().nan_to_num(0)
            want = torch.einsum("pbhs,pbshd->bshd", weights, parts.double().nan_to_num(0))
            self.assertEqual(got.dtype, out or dtype)
            self.assertTrue(torch.allclose(got.double(), want, atol=1e-2 if got.dtype != torch.float32 else 1e-5))
            self.assertTrue(torch.allclose(got_lse.double(), want_lse, atol=1e-5))


    def test_shared_prefix(self):
        """As docs/serving.md has it."""
        cache, prefix, count = Cache([70, 3], 64, True, 1), Cache([100], 128, False, 1), 3
        q = torch.randn(2, count, 2, 64, generator=torch.Generator().manual_seed(2)).bfloat16()
        prefix_k, prefix_v = prefix.keys[0][None], prefix.values[0][None]
        o1, l1 = flash_attn_with_kvcache(q.flatten(0, 1)[None], prefix_k, prefix_v, return_softmax_lse=True)
        o2, l2 = flash_attn_with_kvcache(
            q, cache.k, cache.v, cache_seqlens=cache.seqlens, page_table=cache.table, causal=True, return_softmax_lse=True
        )
        parts = torch.stack([o1.view_as(o2), o2])
        out, lse = merge_states(parts, torch.stack([l1.unflatten(2, (2, count))[0].transpose(0, 1), l2]))
        for own in (cache.keys, cache.values):
            shared = prefix.keys[0] if own is cache.keys else prefix.values[0]
            own[:] = [torch.cat([shared, x]) for x in own]
        want, want_lse = cache.expect(q, right=0)
        problems.assert_close(self, out, want)
        self.assertTrue(torch.allclose(lse.double(), want_lse, atol=1e-3))


class Compiled(unittest.TestCase):
    """In compiled code each function is one op, and the graph has no break."""

    def setUp(self):
        problems.use_interpreter(self)
        torch._dynamo.reset()
        self.cache = Cache([70, 3], 64, True, 1)
        self.q = torch.randn(2, 1, 2, 64, generator=torch.Generator().manual_seed(6)).bfloat16()

    def check(self, function, *tensors):
        """What a function gives, and what it leaves in its tensors, compiled and not."""
        given = [tuple(x.clone() for x in tensors) for _ in range(2)]
        want = function(*given[0])
        got = torch.compile(function, fullgraph=True, backend="aot_eager")(*given[1])
        for one, other in zip((*want, *given[0]), (*got, *given[1])):
            self.assertEqual((one.shape, one.stride(), one.dtype), (other.shape, other.stride(), other.dtype))
            self.assertTrue(torch.equal(one.nan_to_num(7), other.nan_to_num(7)))

    def test_caches(self):
        cache, q, sinks = self.cache, self.q, torch.tensor([0.5, -1.0])

        def attend(q, k_cache, v_cache, lengths, table):
            named = {"cache_seqlens": lengths, "page_table": table, "causal": True, "window_size": (50, 0)}
            out = flash_attn_with_kvcache(q * 2, k_cache, v_cache, num_splits=2, sinks=sinks, **named)
            return flash_attn_with_kvcache(q, k_cache, v_cache, return_softmax_lse=True, **named)[1], out + 1

        self.check(attend, q, cache.k, cache.v, cache.seqlens, cache.table)

        def update(q, k_cache, v_cache, k, v, table):
            out = torch.empty_like(q)
            flash_attn_with_kvcache(q, k_cache, v_cache, k, v, cache_seqlens=3, page_table=table, causal=True, out=out)
            return (out,)

        new = torch.randn(2, 1, 1, 64, generator=torch.Generator().manual_seed(7)).bfloat16()
        self.check(update, q, cache.k, cache.v, new, new + 1, cache.table)

    def test_tokens(self):
        cache = self.cache
        starts, starts_k = (torch.tensor(numbers, dtype=torch.int32) for numbers in ([0, 5, 6], [0, 70, 73]))
        q = torch.randn(6, 2, 64, generator=torch.Generator().manual_seed(8)).bfloat16()

        def attend(q, k, v, starts, starts_k):
            out, lse, _ = flash_attn_varlen_func(q, k, v, starts, starts_k, 5, 70, causal=True, return_attn_probs=True)
            return out, lse

        self.check(attend, q, torch.cat(cache.keys), torch.cat(cache.values), starts, starts_k)

        def attend_pages(q, k, v, starts, lengths, table):
            named = {"seqused_k": lengths, "block_table": table}
            out = flash_attn_varlen_func(q, k, v, starts, None, 5, 70, causal=lengths - 3, **named)
            return out, flash_attn_varlen_func(q, k, v, starts, None, 5, 70, causal=True, attention_chunk=32, **named)

        self.check(attend_pages, q, cache.k, cache.v, starts, cache.seqlens, cache.table)

    def test_others(self):
        parts, lses = torch.randn(3, 1, 2, 2, 64), torch.randn(3, 1, 2, 2)
        self.check(lambda *given: merge_states(*given, dtype=torch.bfloat16), parts, lses)
        new, cos, slots = torch.randn(3, 2, 64).bfloat16(), torch.rand(9, 16), torch.tensor([3, -1, 0])
        cache = torch.zeros(2, 4, 2, 64).bfloat16()

        def append(k, v, k_cache, v_cache, slots, cos):
            kv_append(k, v, k_cache, v_cache, slots + 1)
            return (kv_append(k, v, k_cache, v_cache, slots, q=k + v, cos=cos, sin=cos, positions=slots.clamp(min=0)),)

        self.check(append, new, new + 1, cache, cache + 1, slots, cos)

    def test_ops(self):
        """PyTorch's own checks: schemas, fakes and what is changed."""
        cache, q = self.cache, self.q
        clean_k, clean_v = cache.k.nan_to_num(), cache.v.nan_to_num()
        masks, more = (True, None, [-1, -1], 0.0), (1, None, None, None, 0, None)
        ops, rest = torch.ops.tessera, (cache.seqlens, None, None, cache.table, None, *masks, *more)
        new = torch.ones(2, 1, 1, 64).bfloat16()
        for op, arguments in (
            (ops.cache_attention, (q, clean_k, clean_v, *rest)),
            (ops.cache_update_attention, (q, clean_k, clean_v, new, new, None, None, True, *rest)),
            (ops.merge_states, (torch.randn(3, 1, 2, 2, 64), torch.randn(3, 1, 2, 2), None)),
            (ops.kv_append, (new[:, 0], new[:, 0], clean_k, clean_v, torch.tensor([3, -1]), None, None, None, False, None, None)),
        ):
            torch.library.opcheck(op.default, arguments, test_utils=("test_schema", "test_faketensor"))


class Divisions(unittest.TestCase):
    def test_parts_fill_the_gpu(self):
        for tiles, keys, want in (
            (200, 4096, 1),
            (110, 4096, 1),
            (8, 8192, 16),
            (8, 131072, 16),
            (1, 1024, 4),
            (64, 4096, 2),
            (8, 200, 1),
        ):
            self.assertEqual(_serving._count_parts(tiles, keys, 132), want, (tiles, keys))


class Refused(unittest.TestCase):
    def setUp(self):
        problems.use_interpreter(self)
        self.cache = Cache([70, 3], 64, True, 1)
        self.q = torch.randn(2, 1, 2, 64).bfloat16()

    def refuse(self, kind, text, q=None, k=None, v=None, **options):
        given = {"page_table": self.cache.table, "cache_seqlens": self.cache.seqlens, **options}
        with self.assertRaisesRegex(kind, text):
            flash_attn_with_kvcache(
                self.q if q is None else q, self.cache.k if k is None else k, self.cache.v if v is None else v, **given
            )

    def test_attention(self):
        cache, q = self.cache, self.q
        for name in (
            "qv",
            "cache_leftpad",
            "cu_seqlens_q",
            "cu_seqlens_k_new",
            "rotary_seqlens",
            "q_descale",
            "k_descale",
            "v_descale",
        ):
            self.refuse(NotImplementedError, f"argument '{name}' is given; .*leave it out", **{name: cache.seqlens})
        self.refuse(NotImplementedError, "'attention_chunk' is 64; chunks are causal and have no window", attention_chunk=64)
        self.refuse(ValueError, "'attention_chunk' is -1; it is a number of keys", attention_chunk=-1)
        self.refuse(NotImplementedError, "'causal' is a tensor; no kernel has flags beside", causal=cache.seqlens, attention_chunk=64)
        self.refuse(TypeError, "'causal' has type torch.bool; it is int32", causal=cache.seqlens > 0)
        self.refuse(NotImplementedError, "'prefix_lens' is given; it is for a causal window", prefix_lens=cache.seqlens, causal=True)
        self.refuse(ValueError, "'page_table' and 'block_table' are both given", block_table=cache.table)
        self.refuse(ValueError, "'cache_batch_idx' and 'page_table' are both given", cache_batch_idx=cache.seqlens)
        self.refuse(ValueError, "'k_cache' has 6 batches and 'q' 2; pass cache_batch_idx", page_table=None)
        self.refuse(TypeError, "'cache_seqlens' has type torch.int64; it is int32", cache_seqlens=cache.seqlens.long())
        self.refuse(ValueError, r"'cache_seqlens' has shape \(1,\); with this 'q' it is \[2\]", cache_seqlens=cache.seqlens[:1])
        self.refuse(ValueError, "'cache_seqlens' is 129; it is a tensor, or a number of keys up to 128", cache_seqlens=129)
        self.refuse(TypeError, "'page_table' has type torch.int64; it is int32", page_table=cache.table.long())
        self.refuse(ValueError, r"'page_table' has shape \(1, 2\); with this 'q' it is \[2, any\]", page_table=cache.table[:1])
        self.refuse(ValueError, "'page_table' has stride 2 in its last dimension", page_table=cache.table.t().contiguous().t())
        self.refuse(ValueError, "'num_splits' is -1", num_splits=-1)
        self.refuse(ValueError, "'keys_per_part' is 100; it is a multiple of 128", keys_per_part=100)
        self.refuse(ValueError, "'rotary_cos' is given without new keys", rotary_cos=torch.ones(4, 8))
        self.refuse(TypeError, "'q' has type torch.float32; attention takes float16 and bfloat16", q=q.float())
        self.refuse(TypeError, "'k_cache' has type torch.float16 and 'q' torch.bfloat16", k=cache.k.half())
        self.refuse(
            ValueError,
            "'q' has 3 heads and 'k_cache' 2",
            q=q.expand(2, 1, 2, 64)[:, :, [0, 1, 1]],
            k=cache.k.expand(-1, -1, 2, -1).contiguous(),
            v=cache.v.expand(-1, -1, 2, -1).contiguous(),
        )
        self.refuse(ValueError, "'k_cache' has head dimension 32 and 'q' 64", k=cache.k[..., :32].contiguous())
        self.refuse(
            ValueError, "'k_cache' has strides .*; its rows must be dense", k=cache.k.transpose(1, 3).contiguous().transpose(1, 3)
        )
        self.refuse(ValueError, "'v_cache' have shapes .*; all but their last dimensions are equal", v=cache.v[:, :32])
        for out in (q[:, :, :1], q.half(), q.new_zeros(2, 1, 2, 65)[..., 1:]):
            self.refuse(ValueError, r"'out' has shape .*; it is \(2, 1, 2, 64\) of torch.bfloat16 on cpu, with dense rows", out=out)
        self.refuse(ValueError, "'sinks' is torch.float32 of shape", sinks=torch.ones(3))
        slopes = torch.ones(2)
        self.refuse(NotImplementedError, "'alibi_slopes' is of type torch.float16", alibi_slopes=slopes.half())
        self.refuse(
            NotImplementedError, "'softcap' is 2.0; no kernel over a cache has slopes too", alibi_slopes=slopes, softcap=2.0
        )
        self.refuse(NotImplementedError, "'q' requires a gradient", q=q.clone().requires_grad_())
        with self.assertRaisesRegex(
            ValueError, r"'k' has shape \(2, 1, 1, 32\); with these 'q' and caches it is \[2, 1, 1, 64\]"
        ):
            flash_attn_with_kvcache(
                q, cache.k, cache.v, torch.randn(2, 1, 1, 32), torch.randn(2, 1, 1, 64), page_table=cache.table
            )

    def test_states(self):
        parts, lses = torch.zeros(2, 1, 3, 4, 64), torch.zeros(2, 1, 4, 3)
        for text, arguments in (
            ("'parts' has shape", (parts[0], lses)),
            (r"'lses' has shape \(2, 1, 3, 4\); with these 'parts' it is \(2, 1, 4, 3\)", (parts, lses.mT)),
            ("'parts' has head dimension 60; it is a multiple of 8 up to 512", (parts[..., :60], lses)),
            ("'parts' has no parts", (parts[:0], lses[:0])),
        ):
            with self.assertRaisesRegex(ValueError, text):
                merge_states(*arguments)
        with self.assertRaisesRegex(TypeError, "'lses' has type torch.float64; it is float32"):
            merge_states(parts, lses.double())
        with self.assertRaisesRegex(TypeError, "'parts' has type torch.float64"):
            merge_states(parts.double(), lses)

    def test_append(self):
        k, cache = torch.zeros(3, 2, 64).bfloat16(), torch.zeros(2, 4, 2, 64).bfloat16()
        slots = torch.arange(3)
        cos = torch.ones(4, 8)
        short = cache.to(torch.float8_e4m3fn)
        rotary = {"cos": cos, "sin": cos, "positions": slots}
        one = torch.ones(1)
        for kind, text, arguments, options in (
            (TypeError, "'slots' has type torch.float32; it is int32 or int64", (k, k, cache, cache, slots.float()), {}),
            (ValueError, "'slots' has shape", (k, k, cache, cache, slots[:2]), {}),
            (ValueError, "'k_cache' has 3 dimensions; it has 4", (k, k, cache[0], cache, slots), {}),
            (ValueError, "'k_cache' has rows", (k, k, cache[:, :, :1], cache, slots), {}),
            (ValueError, "'v' and 'v_cache' have other", (k, k, cache, cache[:1], slots), {}),
            (TypeError, "'k_cache' has type torch.float16", (k, k, cache.half(), cache, slots), {}),
            (ValueError, "'q' is given without cos", (k, k, cache, cache, slots), {"q": k}),
            (ValueError, "'positions' is missing", (k, k, cache, cache, slots), {"cos": cos, "sin": cos}),
            (
                TypeError,
                "'positions' has type torch.int32 and 'slots' torch.int64",
                (k, k, cache, cache, slots),
                {**rotary, "positions": slots.int()},
            ),
            (
                ValueError,
                "'cos' has shape",
                (k, k, cache, cache, slots),
                {**rotary, "cos": torch.ones(4, 40), "sin": torch.ones(4, 40)},
            ),
            (ValueError, "'q' has shape", (k, k, cache, cache, slots), {**rotary, "q": k[:2]}),
            (ValueError, "'k_scale' is missing", (k, k, short, short, slots), {}),
            (ValueError, "'k_scale' is given with a cache of torch.bfloat16", (k, k, cache, cache, slots), {"k_scale": one}),
            (TypeError, "'v_scale' is of torch.float64", (k, k, short, short, slots), {"k_scale": one, "v_scale": one.double()}),
        ):
            with self.assertRaisesRegex(kind, text):
                kv_append(*arguments, **options)


if __name__ == "__main__":
    unittest.main()
