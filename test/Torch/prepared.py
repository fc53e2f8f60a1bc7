# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s \
# RUN:   %source/test/Python
"""Calls in random order through what was prepared for other ones: real PyTorch, tensors of the CPU, and a fake driver. What reaches
the driver belongs to the call, or the call is refused."""

import os
import random
import re
import struct
import sys
import threading
import unittest
import unittest.mock

import torch

sys.path.insert(0, sys.argv.pop())

import fake_cuda
import on_cpu
import problems

import tessera
from tessera._functions import _reading
from tessera.torch import (
    _bytes, _native, _prepared, _recalled, _serving, attention, attention_fp8, create_block_mask, flash_attn_with_kvcache,
)  # fmt: skip

CALLS = 1000
# Batch, heads, key heads, queries, keys, head dimension and that of values.
SHAPES = ((1, 2, 2, 96, 96, 64, 64), (2, 4, 2, 65, 130, 64, 64), (1, 2, 1, 130, 65, 128, 128), (2, 2, 2, 40, 72, 128, 64))
documents = torch.arange(256, dtype=torch.int32) // 32


CAPPED = tessera.Variant(
    score=lambda s, b, h, q, k, cap, slopes: cap * tessera.tanh(s / cap) - slopes[h] * k, mask=tessera.masks.causal, cap=float,
    slopes=("H",),
)  # fmt: skip


def by_data(b, h, q, k):
    return documents[q] == documents[k]


class Recorder:
    """The addresses of memory that calls past the dispatcher make, in place of PyTorch's function for it."""

    def __init__(self):
        self.ranges, self._make = [], torch._C._dynamo.guards._empty_strided_cpu

    def __call__(self, *arguments):
        made = self._make(*arguments)
        self.ranges.append(range(made.data_ptr(), made.data_ptr() + made.numel() * made.element_size()))
        return made


class Drawn:
    """Calls that are drawn, with tensors of some layouts."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.masks = {}

    def draw_tensor(self, *shape, dtype, kind):
        """[B, H, S, D] in the layout of a dense tensor, one with rows of all heads, or a slice of a wider one."""
        batch, heads, length, width = shape
        if kind == 0:
            return torch.empty(shape, dtype=dtype)
        if kind == 1:
            return torch.empty((batch, length, heads, width), dtype=dtype).transpose(1, 2)
        return torch.empty((batch, heads, length, width + 8), dtype=dtype)[..., :width]

    def draw(self):
        """(function of no arguments, tensors, what kernels get as the scale, whether gradients are wanted, whether it is to be
        refused)."""
        batch, heads, kv_heads, rows, keys, d, dv = self.random.choice(SHAPES)
        dtype = self.random.choice((torch.bfloat16, torch.float16))
        layout = {"dtype": dtype, "kind": self.random.randrange(3)}
        q = self.draw_tensor(batch, heads, rows, d, **layout)
        k, v = (self.draw_tensor(batch, kv_heads, keys, width, **layout) for width in (d, dv))
        wanted = self.random.random() < 0.4
        scale = self.random.uniform(0.01, 1)
        is_refused = self.random.random() < 0.05
        if is_refused:  # It begins amid 16 bytes, where the same layout does not.
            k = torch.empty(k.numel() + 4, dtype=dtype)[4:].view(k.shape)
        for tensor in (q, k, v) if wanted else ():
            if self.random.random() < 0.8:
                tensor.requires_grad_()
        options, views = self.draw_options(heads, rows, keys, d)
        call, of_kernel = attention, scale
        if not wanted and d == dv and self.random.random() < 0.15:
            slopes = torch.rand(heads)
            score = {"score_mod": lambda s, b, h, q, k: s - slopes[h] * (q - k)}
            call, (options, views) = attention_fp8, self.random.choice((({}, []), ({"causal": True}, []), (score, [slopes])))
            of_kernel = scale / d  # A rotation is no unit.
        return (lambda: call(q, k, v, scale=scale, **options)), (q, k, v, *views), of_kernel, wanted, is_refused

    def draw_options(self, heads, rows, keys, d):
        slopes = torch.rand(heads)
        factor = self.random.uniform(1, 2)
        table = torch.rand(heads, requires_grad=self.random.random() < 0.3)
        kind = self.random.randrange(13)
        if kind == 0:
            return {"causal": True}, []
        if kind == 1:
            return {"window": (self.random.randrange(64), 0), "softcap": factor}, []
        if kind == 2:
            return {"alibi": slopes}, [slopes]
        if kind == 3:
            return {"return_lse": True, "deterministic": self.random.random() < 0.5}, []
        if kind == 4:
            return {"score_mod": lambda s, b, h, q, k: s * factor - slopes[h] * (q - k)}, [slopes]
        if kind == 5:
            return {"score_mod": lambda s, b, h, q, k: s + table[h], "mask_mod": lambda b, h, q, k: q + 300 >= k}, [table]
        if kind == 6:
            return {"mask_mod": by_data}, [documents]
        if kind == 7 and d == 64:  # Of wider ones the interpreter makes lists that no kernel takes.
            key = rows, keys
            if key not in self.masks:
                self.masks[key] = create_block_mask(by_data, None, None, rows, keys, device="cpu")
            return {"block_mask": self.masks[key]}, []
        if kind == 8:
            bias = torch.empty(self.random.choice(((rows, keys + -keys % 8), (heads, 1, keys + -keys % 8))))[..., :keys]
            return {"bias": bias, "causal": self.random.random() < 0.5}, [bias]
        if kind == 9:
            sinks = torch.rand(heads, requires_grad=self.random.random() < 0.3)
            return {"sinks": sinks, "window": (self.random.randrange(64), 0)}, [sinks]
        if kind == 10:
            learned = torch.rand(heads, requires_grad=True)
            return {"alibi": learned}, [learned]
        if kind == 11:
            return {"variant": CAPPED, "arguments": {"cap": factor, "slopes": slopes}}, [slopes]
        return {}, []


def read_launches(first):
    """(addresses that kernels get, floats) of all launches from a number on."""
    addresses, floats = set(), set()
    for number in range(first, fake_cuda.launch_count()):
        for parameter in fake_cuda.read_launch(number):
            if len(parameter) == 128:
                addresses.add(fake_cuda.read_map(parameter)[0])
            elif len(parameter) == 8 and (value := int.from_bytes(parameter, "little")) >= 1 << 40:
                addresses.add(value)
            elif len(parameter) == 4:
                floats.add(struct.unpack("f", parameter)[0])
    return addresses, floats


def setUpModule():
    fake_cuda.reset()  # Once: what the library has allocated stays its own.
    fake_cuda.library.fake_cuda_set_device(0)


class Cases(problems.Interpreted):
    def setUp(self):
        super().setUp()  # It makes lists of blocks.
        self.recorder = Recorder()
        patches = unittest.mock.patch.object(torch._C._dynamo.guards, "_empty_strided_cpu", self.recorder), *on_cpu.call_ops()
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(_native.reset)


@unittest.skipUnless(on_cpu.has_native, "PyTorch is older than 2.10")
class Prepared(Cases):
    def run_call(self, drawn):
        """Makes a call and a backward pass; returns whether both were past the dispatcher."""
        call, tensors, scale, wanted, is_refused = drawn.draw()
        first, self.recorder.ranges[:] = fake_cuda.launch_count(), []
        with unittest.mock.patch.object(_native, "call", wraps=_native.call) as by_op, torch.set_grad_enabled(wanted):
            if is_refused:
                with self.assertRaisesRegex(ValueError, "argument 'k'.* is no multiple of 16 bytes|must begin at multiples"):
                    call()
                return False
            results = call()
            out = results[0] if isinstance(results, tuple) else results
            grad = torch.empty_like(out)
            if out.requires_grad:
                inputs = [tensor for tensor in tensors if tensor.requires_grad]
                torch.autograd.grad(out, inputs, grad)
        addresses, floats = read_launches(first)
        own = {tensor.data_ptr() for tensor in tensors}
        self.assertLessEqual(own, addresses)
        self.assertTrue(any(abs(value - scale) < 1e-6 for value in floats), (scale, floats))
        if by_op.called:
            return False
        known = own | {out.data_ptr(), grad.data_ptr(), documents.data_ptr()}
        for mask in drawn.masks.values():
            known |= {tensor.data_ptr() for lists in mask.lists.values() for tensor in lists}
        for rotation in self.rotations:
            known.add(rotation.data_ptr())
        others = [x for x in addresses - known if not fake_cuda.is_allocated(x)]
        self.assertEqual([hex(x) for x in others if not any(x in memory for memory in self.recorder.ranges)], [])
        return True

    def test_random_calls(self):
        """Memory of earlier calls is freed in between, and comes back for other tensors."""
        self.rotations, real = [], _bytes._make_rotation

        def make_rotation(*arguments):
            self.rotations.append(real(*arguments))
            return self.rotations[-1]

        drawn, direct = Drawn(1), 0
        with unittest.mock.patch.object(_bytes, "_make_rotation", make_rotation):
            for _ in range(CALLS):
                direct += self.run_call(drawn)
        # Many layouts come back.
        self.assertGreater(direct, CALLS // 3)

    def test_threads(self):
        """Each thread gets what its own tensors give."""

        def run(seed):
            fake_cuda.library.fake_cuda_set_device(0)
            drawn = Drawn(seed)
            try:
                for _ in range(CALLS // 8):
                    call, tensors, _, wanted, is_refused = drawn.draw()
                    if is_refused:
                        continue
                    with torch.set_grad_enabled(wanted):
                        results = call()
                        out = results[0] if isinstance(results, tuple) else results
                        shapes.append(out.shape[:3] == tensors[0].shape[:3] and out.shape[3] == tensors[2].shape[3])
                        inputs = [tensor for tensor in tensors if tensor.requires_grad]
                        if out.requires_grad:
                            gradients = torch.autograd.grad(out, inputs, torch.empty_like(out))
                            shapes.append([x.shape for x in gradients] == [x.shape for x in inputs])
            except Exception as error:  # Shown by the assertion.
                shapes.append(error)

        shapes = []
        threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([shape for shape in shapes if shape is not True], [])
        self.assertGreater(len(shapes), CALLS // 3)

    def test_forks(self):
        """CUDA does not work in a process that was forked, which says so."""
        q, k, v = (torch.empty(1, 2, 64, 64, dtype=torch.bfloat16) for _ in range(3))
        for _ in range(2):
            attention(q, k, v)
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                attention(q, k, v)
                text = "no error"
            except tessera.DeviceError as error:
                text = str(error)
            except BaseException as error:
                text = repr(error)
            os.write(write, text.encode())
            os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        with os.fdopen(read) as file:
            self.assertRegex(file.read(), "was forked from one that had used CUDA.*: start processes by the method 'spawn'")
        attention(q, k, v)

    def test_requires_grad(self):
        """Whether gradients are wanted is asked in each call, whatever the layouts were prepared for."""
        q, k, v = (torch.empty(1, 2, 64, 64, dtype=torch.bfloat16) for _ in range(3))
        slopes = torch.ones(2)
        score = {"score_mod": lambda s, b, h, q, k: s - slopes[h] * k}
        for options in ({}, score):
            for _ in range(2):
                for wanted in (False, True):
                    slopes.requires_grad_(wanted and bool(options))
                    self.assertEqual(attention(q.detach().requires_grad_(wanted), k, v, **options).requires_grad, wanted)
        out = attention(q, k, v, **score)
        self.assertEqual(torch.autograd.grad(out, slopes, torch.empty_like(out))[0].shape, slopes.shape)
        slopes.requires_grad_(False)
        self.assertFalse(attention(q, k, v, **score).requires_grad)

    def test_learned_sums_begin_at_zero(self):
        slopes = torch.ones(2, requires_grad=True)
        q, k, v = (torch.empty(1, 2, 64, 64, dtype=torch.bfloat16) for _ in range(3))
        for _ in range(3):
            out = attention(q, k, v, score_mod=lambda s, b, h, q, k: s - slopes[h] * k)
            # No kernel runs that would add something.
            self.assertFalse(torch.autograd.grad(out, slopes, torch.empty_like(out))[0].any())


def draw_three(heads=2, rows=64, keys=64, d=64, dtype=torch.bfloat16):
    return [torch.empty(1, heads, length, d, dtype=dtype) for length in (rows, keys, keys)]


def make_fall(slopes, factor=2.0):
    return lambda s, b, h, q, k: s * factor - slopes[h] * (q - k)


def make_within(table):
    return lambda b, h, q, k: table[q] == table[k]


@unittest.skipUnless(on_cpu.has_native, "PyTorch is older than 2.10")
class Changes(Cases):
    """What calls are given changes behind those that were made."""

    def launch(self, *tensors, **options):
        """The addresses and floats of a call that goes past the dispatcher, the second of its kind."""
        attention(*tensors, **options)
        first = fake_cuda.launch_count()
        with unittest.mock.patch.object(_native, "call") as by_op:
            attention(*tensors, **options)
        self.assertFalse(by_op.called)
        return read_launches(first)

    def test_captured(self):
        tensors = draw_three()
        for slopes, factor in ((torch.ones(2), 2.5), (torch.ones(2), 3.5), (torch.ones(2, dtype=torch.float16), 3.5)):
            addresses, floats = self.launch(*tensors, score_mod=make_fall(slopes, factor))
            self.assertIn(slopes.data_ptr(), addresses)
            self.assertIn(factor, floats)

    def test_functions_of_one_code(self):
        """Those whose captured functions differ are different kernels."""

        def make(inner):
            return lambda s, b, h, q, k: inner(s)

        def halve(s):
            return s * 0.5

        tensors, symbols = draw_three(), []
        for inner in (halve, lambda s: s * 0.25, halve):
            score, made = make(inner), []
            with unittest.mock.patch.object(_recalled._functions, "find_form", side_effect=_recalled._functions.find_form) as find:
                self.launch(*tensors, score_mod=score)
            made.append(find.call_args.args[0])
            symbols.append(made[-1])
        self.assertEqual(symbols[0], symbols[2])
        self.assertNotEqual(symbols[0], symbols[1])

    def test_named(self):
        tensors, slopes = draw_three(), torch.ones(2)
        for bias in (torch.ones(64, 64), torch.ones(2, 64, 64), torch.ones(64, 64, dtype=torch.float16)):
            self.assertIn(bias.data_ptr(), self.launch(*tensors, bias=bias)[0])
        for softcap, scale in ((20.0, 0.5), (30.0, 0.5), (30.0, 0.25)):
            floats = self.launch(*tensors, softcap=softcap, scale=scale, alibi=slopes)[1]
            self.assertLessEqual({softcap, scale}, floats)
        # The scale of other head dimensions is another one.
        for d in (64, 128):
            floats = self.launch(*draw_three(d=d), window=(8, 0))[1]
            self.assertTrue(any(abs(value - d**-0.5) < 1e-7 for value in floats))

    def test_block_mask(self):
        table = torch.arange(64, dtype=torch.int32) // 16
        mask, tensors = create_block_mask(make_within(table), None, None, 64, 64, device="cpu"), draw_three()
        self.launch(*tensors, block_mask=mask)
        table += 1
        with self.assertRaisesRegex(ValueError, "captures another value than when its lists were made"):
            attention(*tensors, block_mask=mask)

    def test_refusals(self):
        """Calls that differ from ones before in one thing are refused as where there was none before."""
        slopes, bias = torch.ones(2), torch.ones(64, 64)
        table = torch.arange(64, dtype=torch.int32) // 16
        mask = create_block_mask(make_within(table), None, None, 64, 64, device="cpu")
        goods = [
            {"causal": True}, {"window": (8, 0)}, {"softcap": 20.0}, {"alibi": slopes}, {"bias": bias}, {"sinks": slopes},
            {"score_mod": make_fall(slopes)}, {"mask_mod": make_within(table)}, {"block_mask": mask},
            {"variant": CAPPED, "arguments": {"cap": 2.0, "slopes": slopes}},
        ]  # fmt: skip
        q, k, v = draw_three()
        others = [
            (q.float(), k, v), (q, k.half(), v), (q, k[:, :, :8], v), (q, k[:, :, :, :32], v[:, :, :, :32]), (q[0], k, v),
            (q, k.to("meta"), v), (q, k, v.mT), (q, torch.empty(k.numel() + 4, dtype=k.dtype)[4:].view(k.shape), v),
            (q, torch.empty(1, 3, 64, 64, dtype=k.dtype), v), (q, None, v),
        ]  # fmt: skip
        bads = [
            {"window": (8.0, 0)}, {"window": 8}, {"softcap": -1.0}, {"softcap": "x"},
            {"alibi": torch.ones(3)}, {"alibi": slopes.half()}, {"bias": torch.ones(64, 63)}, {"bias": bias.mT}, {"bias": bias > 0},
            {"sinks": torch.ones(3)}, {"sinks": 1.0}, {"score_mod": make_fall(slopes.double())}, {"score_mod": 1},
            {"score_mod": make_fall(slopes), "score_args": (1,)}, {"score_mod": make_fall(slopes.to("meta"))},
            {"score_mod": make_fall(slopes), "score_args": 1}, {"score_mod": make_fall("x")},
            {"block_mask": mask, "mask_args": (1,)}, {"mask_mod": make_within(table), "block_mask": mask},
            {"variant": CAPPED, "arguments": {"cap": 2.0}}, {"variant": CAPPED, "arguments": {"cap": "2", "slopes": slopes}},
            {"variant": CAPPED, "arguments": {"cap": 2.0, "slopes": slopes.half()}}, {"layout": "SBHD"}, {"fallback": "numpy"},
        ]  # fmt: skip
        calls = [((q, k, v), options) for options in bads]
        calls += [((q, k, v), {**options, **more}) for options in goods for more in ({"scale": -1.0}, {"scale": float("nan")})]
        calls += [(tensors, options) for tensors in others for options in goods]
        for options in goods:
            for _ in range(2):
                attention(q, k, v, **options)
        first = fake_cuda.launch_count()
        found = [self.refuse(*call) for call in calls]
        _recalled._plans.clear()
        _reading._known.clear()
        _native.reset()
        for (tensors, options), text in zip(calls, found):
            with self.subTest(options=options, shapes=[getattr(x, "shape", x) for x in tensors]):
                self.assertNotIn("no refusal", text)
                self.assertEqual(text, self.refuse(tensors, options))
        self.assertEqual(fake_cuda.launch_count(), first)

    def refuse(self, tensors, options):
        """What a call is refused by, without addresses."""
        try:
            attention(*tensors, **options)
        except Exception as error:
            return re.sub("0x[0-9a-f]+", "0x", f"{type(error).__name__}: {error}")
        return "no refusal"


class Cache:
    """A call of few queries over a cache, in pages or not."""

    def __init__(self, paged=True, heads=8, key_heads=2, rows=1, batch=3, d=64, dtype=torch.bfloat16):
        self.q = torch.empty(batch, rows, heads, d, dtype=dtype)
        shape = (12, 64) if paged else (batch, 640)
        self.k, self.v = (torch.empty(*shape, key_heads, d, dtype=dtype) for _ in "kv")
        self.lengths = torch.full((batch,), 100, dtype=torch.int32)
        self.table = torch.zeros(batch, 4, dtype=torch.int32) if paged else None
        self.tensors = [x for x in (self.q, self.k, self.v, self.lengths, self.table) if x is not None]

    def __call__(self, **options):
        named = {"cache_seqlens": self.lengths, "page_table": self.table, "return_softmax_lse": True}
        return flash_attn_with_kvcache(self.q, self.k, self.v, **{**named, **options})


@unittest.skipUnless(on_cpu.has_native, "PyTorch is older than 2.10")
class Caches(Cases):
    """Attention over caches: as attention itself, prepared once, without Python behind the look-up."""

    def launch(self, call, **options):
        """The results of a call like one before, and what kernels get."""
        call(**options)
        first, self.recorder.ranges[:] = fake_cuda.launch_count(), []
        with unittest.mock.patch.object(_prepared, "compute", side_effect=AssertionError("nothing was prepared")):
            results = call(**options)
        return results, read_launches(first), fake_cuda.launch_count() - first

    def check(self, call, launches=1, scale=0.5, **options):
        (out, lse), (addresses, floats), count = self.launch(call, softmax_scale=scale, **options)
        self.assertEqual(count, launches)
        batch, rows, heads, _ = call.q.shape
        self.assertEqual((out.shape, out.stride(), lse.shape), (call.q.shape, call.q.stride(), (batch, heads, rows)))
        own = {x.data_ptr() for x in (*call.tensors, *options.values(), out, lse) if isinstance(x, torch.Tensor)}
        self.assertLessEqual(own, addresses)
        self.assertIn(scale, floats)
        # Parts lie in memory of the call.
        others = [x for x in addresses - own if not fake_cuda.is_allocated(x)]
        self.assertTrue(all(any(x in memory for memory in self.recorder.ranges) for x in others))
        return floats

    def test_calls(self):
        for paged in (False, True):
            self.check(Cache(paged), num_splits=1)
            self.check(Cache(paged, rows=2), num_splits=1, causal=True)
            self.check(Cache(paged), launches=2, num_splits=2)
            self.check(Cache(paged), launches=2, keys_per_part=128)
            sinks, slopes = torch.ones(8), torch.ones(8)
            self.check(Cache(paged), num_splits=1, sinks=sinks)
            self.check(Cache(paged), num_splits=1, alibi_slopes=slopes)
            for cap in (20.0, 30.0):
                self.assertIn(cap, self.check(Cache(paged, rows=3), num_splits=1, window_size=(16, 0), softcap=cap))
            cache = Cache(paged)
            self.check(cache, num_splits=1, out=torch.empty_like(cache.q))
        self.check(Cache(batch=5, heads=4, dtype=torch.float16), num_splits=1)

    def test_integers(self):
        """Windows and parts are numbers of kernels that another call has others of."""
        cache, seen = Cache(), []
        for left in (16, 32):
            first = fake_cuda.launch_count()
            cache(window_size=(left, 0), num_splits=1), cache(window_size=(left, 0), num_splits=1)
            parameters = [
                {int.from_bytes(x, "little") for x in fake_cuda.read_launch(number) if len(x) == 4}
                for number in range(first, fake_cuda.launch_count())
            ]
            seen.append((left in parameters[0], left in parameters[1]))
        self.assertEqual(seen, [(True, True)] * 2)

    def test_few_queries(self):
        """Those of `attention`, in both orders of rows and heads."""
        for by_rows in (False, True):
            shapes = ((1, 1, 8, 64), (1, 700, 2, 64)) if by_rows else ((1, 8, 1, 64), (1, 2, 700, 64))
            q, k, v = (torch.empty(shapes[place > 0], dtype=torch.bfloat16) for place in range(3))
            with unittest.mock.patch.object(_serving._cache_recipes, "find_ready", _serving._kernels.find):
                results, (addresses, _), count = self.launch(
                    lambda: attention(q, k, v, layout="BSHD" if by_rows else "BHSD", return_lse=True)
                )
            self.assertEqual((results[0].shape, results[1].shape, count), (q.shape, (1, 8, 1), 2))
            self.assertLessEqual({x.data_ptr() for x in (q, k, v, *results)}, addresses)

    def test_refusals(self):
        """As where nothing was prepared."""
        cache = Cache()
        q, k, v, lengths, table = cache.tensors
        for _ in range(2):
            cache(num_splits=1), cache(num_splits=1, window_size=(16, 0))
        moved = torch.empty(k.numel() + 4, dtype=k.dtype)[4:].view(k.shape)
        changes = [
            {"k": k.half()}, {"k": moved}, {"k": k.mT}, {"k": k[:, :, :, :32]}, {"k": k[:, :32]}, {"k": None}, {"v": v.to("meta")},
            {"q": q.float()}, {"q": q[0]}, {"q": q[:, :, :7]}, {"q": q.clone().requires_grad_()}, {"lengths": lengths.long()},
            {"lengths": lengths[:2]}, {"lengths": 999}, {"table": table.long()}, {"table": table[:2]}, {"table": None},
            {"table": torch.zeros(3, 8, dtype=torch.int32)[:, ::2]},
        ]  # fmt: skip
        options = [
            {"num_splits": 1.0}, {"num_splits": True}, {"num_splits": -1}, {"window_size": (16.0, 0)}, {"window_size": 16},
            {"keys_per_part": 100}, {"keys_per_part": 128.0}, {"softmax_scale": -1.0}, {"attention_chunk": 64}, {"softcap": float("nan")},
            {"sinks": torch.ones(3)}, {"alibi_slopes": torch.ones(8).half()}, {"k_descale": torch.ones(3, 2)}, {"causal": lengths.long()},
            {"out": q.half()}, {"out": torch.empty(q.numel() + 4, dtype=q.dtype)[4:].view(q.shape)}, {"rotary_cos": torch.ones(4, 8)},
        ]  # fmt: skip

        def refuse(change, more):
            for name, value in {"q": q, "k": k, "v": v, "lengths": lengths, "table": table, **change}.items():
                setattr(cache, name, value)
            try:
                cache(**{"num_splits": 1, **more})
            except Exception as error:
                return re.sub("0x[0-9a-f]+", "0x", f"{type(error).__name__}: {error}")
            return "no refusal"

        first = fake_cuda.launch_count()
        cases = [(change, {}) for change in changes] + [({}, more) for more in options]
        found = [refuse(*case) for case in cases]
        _prepared._plans.clear()
        _native.reset()
        for case, text in zip(cases, found):
            with self.subTest(case):
                self.assertNotIn("no refusal", text)
                self.assertEqual(text, refuse(*case))
        self.assertEqual(fake_cuda.launch_count(), first)


if __name__ == "__main__":
    unittest.main()
