# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""New keys and values, which are stored in caches, on the interpreter: compared with f64."""

import unittest
import unittest.mock

import problems
import torch
from caches import NAN, Cache

from tessera.torch import _append_recipes, flash_attn_with_kvcache, kv_append


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


class Append(problems.Interpreted):
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
            (128, 80, 64, False, True, False, torch.int32, torch.bfloat16),
            (256, 256, 128, False, False, True, torch.int32, torch.bfloat16),
            (80, 80, 40, False, True, False, torch.int32, torch.bfloat16),
            (128, 64, 0, False, False, True, torch.int32, None),
            (256, 256, 0, False, False, False, torch.int32, None),
        ):
            with self.subTest(case):
                self.check(*case)

    def test_whole_heads(self):
        """Halves are loaded in words where all elements of a tile's heads are in pairs, and rows of angles lie so."""
        taken, find = [], _append_recipes._kernels.find

        def note(is_cpu, source, **parameters):
            taken.append(parameters.get("WHOLE", False))
            return find(is_cpu, source, **parameters)

        k, cache, slots = torch.randn(3, 2, 128).bfloat16(), torch.zeros(2, 4, 2, 128).bfloat16(), torch.arange(3)
        cos, sin = make_angles(64, torch.bfloat16)
        apart = torch.empty(200 * 64 + 1).bfloat16()[1:].view(200, 64).copy_(cos)
        joined = torch.cat([cos, sin, cos[:, :3]], 1)
        expected = None
        with unittest.mock.patch.object(_append_recipes._kernels, "find", note):
            for own, other, is_whole in (
                (cos, sin, True), (apart, sin, False), (joined[:, :64], joined[:, 64:128], False), (cos[:, :32], sin[:, :32], False),
            ):  # fmt: skip
                taken.clear()
                rotated = kv_append(k, k, cache, cache.clone(), slots, q=k, cos=own, sin=other, positions=slots)
                self.assertEqual(taken, [is_whole])
                expected = rotated if expected is None else expected
                if own.shape == cos.shape:
                    self.assertTrue(torch.equal(rotated, expected))
                    self.assertTrue(torch.equal(cache.flatten(0, 1)[:3], expected))

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

    def test_no_room(self):
        """New keys behind the last row that a sequence has are neither stored nor attended to."""
        before, count, room = [126, 128, 50], 3, 128
        for paged in (False, True):
            cache = Cache([min(length + count, room) for length in before], 64 if paged else room, paged, 2)
            q, k, v = (torch.randn(3, count, heads, 64).bfloat16() for heads in (4, 2, 2))
            for b, length in enumerate(before):
                cache.keys[b][length:], cache.values[b][length:] = k[b, : room - length], v[b, : room - length]
            stored = [cache.k.clone(), cache.v.clone()]
            for own, new in zip(stored, (cache.keys, cache.values)):
                for b in range(len(before)):
                    for j, part in enumerate(new[b].split(own.shape[1])):
                        own[cache.table[b, j], : len(part)] = part
            seqlens = torch.tensor(before, dtype=torch.int32)
            out = flash_attn_with_kvcache(q, cache.k, cache.v, k, v, cache_seqlens=seqlens, causal=True, **cache.places)
            self.assertTrue(torch.allclose(out.double(), cache.expect(q, right=0)[0], atol=2e-2), paged)
            for got, want in zip((cache.k, cache.v), stored):
                self.assertTrue(torch.allclose(got, want, equal_nan=True), paged)

    def test_refused(self):
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
            (NotImplementedError, "'v' requires a gradient, and a cache has none", (k, k.clone().requires_grad_(), cache, cache, slots), {}),
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
