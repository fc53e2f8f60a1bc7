# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""The backends of vLLM for latent attention, as an engine calls them: metadata, cache and layer are made by hand, and there is no engine.
Attention is that of the interpreter, compared with f64. Rows of the cache that no length reaches are NaN."""

import math
import types
import unittest
import unittest.mock

import problems
import torch
import vllm_double

vllm_double.install()

from vllm.v1.attention.backend import AttentionType, MultipleOf  # noqa: E402
from vllm.v1.attention.backends.mla.prefill.registry import MLAPrefillBackendEnum  # noqa: E402
from vllm.v1.attention.backends.registry import AttentionBackendEnum  # noqa: E402

import tessera.vllm  # noqa: E402
from tessera.vllm import _latent  # noqa: E402
from vllm_steps import SCALE, Step, make_config, name_latent  # noqa: E402


def make_builder(heads, rows, threshold=1):
    config, workspace = make_config(heads, rows), "determine_chunked_prefill_workspace_size"
    with unittest.mock.patch.object(_latent.MLACommonMetadataBuilder, workspace, lambda *_: 64, create=True):
        builder = _latent.TesseraMLAMetadataBuilder(types.SimpleNamespace(block_size=rows), ["layer"], config, torch.device("cpu"))
    builder.reorder_batch_threshold = threshold
    return builder


def make_impl(heads, *, slopes=None, window=None, cap=None, kind=AttentionType.DECODER, cached="auto", latent=512, rotary=64):
    layer = heads, latent + rotary, SCALE, 1, slopes, window, cached, cap, kind, None
    with vllm_double.configure("mla_attention", make_config(heads, 64)):
        return _latent.TesseraMLAImpl(*layer, **name_latent(latent, rotary))


class Decodes(problems.Interpreted):
    def check(self, step, builder=None, threshold=1):
        heads = step.q.shape[1]
        builder = builder or make_builder(heads, step.cache.shape[1], threshold)
        metadata = builder.build(0, step.common)
        decodes, tokens = metadata.num_decodes, metadata.num_decode_tokens
        q = step.q[:tokens]
        # In two parts, as the projection has made them, or in one.
        parts = q if len(step.counts) % 2 else q.split((512, q.shape[2] - 512), -1)
        impl = make_impl(heads, cached="fp8_ds_mla" if step.cache.dtype == torch.uint8 else "auto", rotary=q.shape[2] - 512)
        out, lse = impl.forward_mqa(parts, step.cache, metadata, types.SimpleNamespace())
        self.assertEqual((out.shape, lse.shape), ((tokens, heads, 512), (tokens, heads)))
        for b, (start, count) in enumerate(zip(step.common.query_start_loc.tolist(), step.counts[:decodes])):
            want, want_lse = step.expect(b)
            problems.assert_close(self, out[start : start + count], want, (step.counts, b))
            torch.testing.assert_close(lse[start : start + count], want_lse.float(), rtol=1e-4, atol=1e-4)
        return metadata, out

    def test_tokens(self):
        for rows in (64, 16, 128):
            with self.subTest(rows=rows):
                self.check(Step([1, 1, 1], [100, 1, 300], rows=rows))
        self.check(Step([1, 1], [65, 64], heads=24, dtype=torch.float16))

    def test_bytes(self):
        for rows in (64, 16, 32):
            with self.subTest(rows=rows):
                step = Step([1, 1, 1], [100, 1, 300], rows=rows, packs=True)
                shape = _latent.TesseraMLABackend.get_kv_cache_shape(len(step.cache), rows, 1, 576, "fp8_ds_mla")
                self.assertEqual((shape, step.cache.dtype), (step.cache.shape, torch.uint8))
                self.check(step)

    def test_rows_without_positions(self):
        """Models whose rows are key and value in all of their numbers. Rows of bytes have 64 more, which are 0."""
        for packs in (False, True):
            with self.subTest(packs=packs):
                self.check(Step([1, 1], [100, 30], packs=packs, width=512))

    def test_drafts(self):
        self.assertEqual(self.check(Step([3, 3], [100, 3]), threshold=3)[0].num_decodes, 2)

    def test_padding(self):
        """Requests that a graph is padded with have no keys."""
        self.check(Step([1, 1, 1], [130, 0, 0]))

    def test_graphs(self):
        """What a graph has read lies where the next step's is."""
        builder = make_builder(8, 64)
        first, _ = self.check(Step([1, 1], [700, 20]), builder)
        for step in (Step([1, 1], [20, 900]), Step([1], [300]), Step([1, 1, 1], [5, 130, 70])):
            other, _ = self.check(step, builder)
            for one, own in zip(first.decode.shares, other.decode.shares):
                self.assertEqual(one.data_ptr(), own.data_ptr())

    def test_same_bits(self):
        """Batch invariance: a request's bits do not depend on those beside it."""
        alone, together = Step([1], [300]), Step([1, 1], [300, 1500])
        together.q[:1] = alone.q
        together.keys[0][:] = alone.keys[0]
        for j in range(5):
            own = alone.keys[0][64 * j : 64 * j + 64]
            together.cache[together.common.block_table_tensor[0, j], : len(own)] = own
        with unittest.mock.patch.object(_latent.envs, "VLLM_BATCH_INVARIANT", True):
            self.assertTrue(torch.equal(self.check(alone)[1][0], self.check(together)[1][0]))


class Prompts(problems.Interpreted):
    def test_prompts(self):
        generator, counts, before, heads = torch.Generator().manual_seed(0), [70, 3], [20, 90], 4
        make = lambda count, size: torch.randn(count, heads, size, generator=generator).bfloat16()  # noqa: E731
        starts, starts_k = (torch.tensor([0, *own]).cumsum(0).int() for own in (counts, before))
        # Values lie beside the keys that they were made with.
        q, k, v = make(73, 192), make(73, 192), make(73, 256)[..., 128:]
        context_k, context_v = make(110, 192), make(110, 256)[..., 128:]
        backend = _latent.TesseraMLAPrefillBackend(heads, SCALE, 512, 128, 64, 128, None)
        backend.prepare_metadata(types.SimpleNamespace(query_start_loc=starts, max_query_len=70))
        out, lse = backend.run_prefill_new_tokens(q, k, v, return_softmax_lse=True)
        given = torch.empty(73, heads, 128, dtype=torch.bfloat16)
        self.assertIs(backend.run_prefill_new_tokens(q, k, v, return_softmax_lse=False, out=given), given)
        self.assertTrue(torch.equal(given, out))
        chunk = types.SimpleNamespace(query_start_loc=starts, cu_seq_lens=starts_k, max_query_len=70, max_seq_len=90)
        old, old_lse = backend.run_prefill_context_chunk(chunk, q, context_k, context_v)
        for b in (0, 1):
            own, keys = slice(starts[b], starts[b + 1]), slice(starts_k[b], starts_k[b + 1])
            self.compare(out[own], lse[:, own], q[own], k[own], v[own], True)
            self.compare(old[own], old_lse[:, own], q[own], context_k[keys], context_v[keys], False)

    def compare(self, out, lse, q, k, v, causal):
        q, k, v = (x.double() for x in (q, k, v))
        scores = SCALE * torch.einsum("qhd,khd->hqk", q, k)
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores[0], dtype=torch.bool).triu(1), -math.inf)
        problems.assert_close(self, out, torch.einsum("hqk,khd->qhd", scores.softmax(-1), v))
        torch.testing.assert_close(lse, scores.logsumexp(-1).float(), rtol=1e-4, atol=1e-4)

    def test_refused(self):
        backend = _latent.TesseraMLAPrefillBackend(4, SCALE, 512, 128, 64, 128, None)
        with self.assertRaisesRegex(NotImplementedError, "no output of 8 bits"):
            backend.run_prefill_new_tokens(None, None, None, False, output_scale=torch.ones(1))


class Takes(unittest.TestCase):
    def test_what_is_said(self):
        backend = _latent.TesseraMLABackend
        self.assertTrue(backend.is_mla() and backend.supports_batch_invariance())
        self.assertEqual(backend.get_supported_head_sizes(), [576, 512])
        self.assertIn(MultipleOf(16), backend.get_supported_kernel_block_sizes())
        self.assertEqual([backend.get_preferred_block_size(rows) for rows in (16, 64, 128)], [64, 64, 128])
        self.assertIn("fp8_ds_mla", backend.supported_kv_cache_dtypes)
        self.assertEqual(backend.get_kv_cache_shape(3, 16, 1, 576), (3, 16, 576))
        refused = backend.supports_combination(576, torch.float16, "fp8_ds_mla", 16, True)
        self.assertIn("queries of torch.float16 beside rows of bytes", refused)
        self.assertIsNone(backend.supports_combination(576, torch.bfloat16, "fp8_ds_mla", 16, True))
        for version, is_taken in (((9, 0), True), ((8, 0), False), ((10, 0), False)):
            capability = types.SimpleNamespace(major=version[0], minor=version[1])
            self.assertEqual(backend.supports_compute_capability(capability), is_taken)
            self.assertEqual(_latent.TesseraMLAPrefillBackend.supports_compute_capability(capability), is_taken)
        for sizes, is_taken in (((128, 64, 128), True), ((192, 64, 256), True), ((256, 64, 128), False), ((128, 60, 128), False)):
            named = types.SimpleNamespace(**dict(zip(("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), sizes)))
            self.assertEqual(_latent.TesseraMLAPrefillBackend.supports_mla_dimensions(named), is_taken)

    def test_refused(self):
        for options, text in (
            ({"slopes": [0.5]}, "takes no slopes"),
            ({"window": 128}, "takes no window"),
            ({"cap": 5.0}, "takes no soft cap"),
            ({"kind": AttentionType.ENCODER}, "is that of decoders"),
            ({"latent": 256}, r"takes rows of 512 \+ 64 or 512 \+ 0 numbers, and not of 256 \+ 64"),
        ):
            with self.subTest(text), self.assertRaisesRegex(NotImplementedError, text):
                make_impl(8, **options)

    def test_prompts_of_bytes(self):
        """vLLM would read rows of bytes of models without positions into memory that is too narrow."""
        for rotary, cached, takes in ((64, "fp8_ds_mla", True), (0, "auto", True), (0, "fp8_ds_mla", False)):
            impl = make_impl(8, rotary=rotary, cached=cached)
            self.assertEqual(getattr(impl, "supports_dense_mha_prefill", True), takes)

    def test_registered(self):
        self.addCleanup(AttentionBackendEnum.CUSTOM.clear_override)
        self.addCleanup(MLAPrefillBackendEnum.CUSTOM.clear_override)
        for _ in range(2):
            tessera.vllm.register()
            for name, path in (("TESSERA_MLA", "_latent.TesseraMLABackend"), ("TESSERA_MLA_SPARSE", "_sparse.TesseraMLASparseBackend")):
                member = AttentionBackendEnum[name]
                self.assertEqual((member.name, member.get_path()), (name, "tessera.vllm." + path))
            self.assertEqual(MLAPrefillBackendEnum.CUSTOM.get_path(), "tessera.vllm._latent.TesseraMLAPrefillBackend")


if __name__ == "__main__":
    unittest.main()
