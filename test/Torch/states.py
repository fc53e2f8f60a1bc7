# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Outputs over disjoint sets of keys, joined, on the interpreter: compared with f64."""

import math
import unittest

import problems
import torch
from caches import NAN, Cache

from tessera.torch import flash_attn_with_kvcache, merge_states


class Joining(problems.Interpreted):
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

    def test_refused(self):
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
        with self.assertRaisesRegex(NotImplementedError, "'lses' requires a gradient, and the merge of states has none"):
            merge_states(parts, lses.clone().requires_grad_())
        with self.assertRaisesRegex(NotImplementedError, "'parts' has a tangent"):
            torch.func.jvp(lambda x: merge_states(x, lses), (parts,), (parts,))
        with self.assertRaisesRegex(TypeError, "'parts' has type torch.float64"):
            merge_states(parts.double(), lses)


if __name__ == "__main__":
    unittest.main()
