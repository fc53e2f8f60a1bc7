# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""The backend of vLLM for latent attention over lists, as an engine calls it: metadata, cache, lists and layer are made by hand, and there
is no engine. Attention is that of the interpreter, compared with f64. Rows of the cache that no list names are NaN, where they can be."""

import dataclasses
import types
import unittest
import unittest.mock

import problems
import torch
import vllm_double

vllm_double.install()

from vllm.v1.attention.backend import AttentionType  # noqa: E402

from tessera.vllm import _latent, _sparse  # noqa: E402
from vllm_steps import SCALE, Step, make_config, name_latent  # noqa: E402


def convert(
    requests, table, tokens, BLOCK_SIZE, BLOCK_STRIDE_ROWS, NUM_TOPK_TOKENS, return_valid_counts, dcp_size=1, dcp_rank=0,
    cp_kv_cache_interleave_size=1,
):  # fmt: skip
    """What vLLM's kernels do: rows of the cache of the tokens that this rank has, the others left out, and how many there are."""
    rows, counts = torch.full_like(tokens, -1), torch.zeros(len(tokens), dtype=torch.int32)
    assert return_valid_counts and tokens.shape[1] == NUM_TOPK_TOKENS and len(requests) == len(tokens)
    for i, own in enumerate(tokens.tolist()):
        groups = ((token // cp_kv_cache_interleave_size, token % cp_kv_cache_interleave_size) for token in own if token >= 0)
        owned = [group // dcp_size * cp_kv_cache_interleave_size + rest for group, rest in groups if group % dcp_size == dcp_rank]
        places, pages = (divmod(place, BLOCK_SIZE) for place in owned), table[requests[i]].tolist()
        found = [pages[page] * BLOCK_STRIDE_ROWS + row for page, row in places if page < len(pages)]
        rows[i, : len(found)], counts[i] = torch.tensor(found, dtype=torch.int32), len(found)
    return rows, counts


def convert_once(tokens, metadata, block_stride_rows, return_valid_counts):
    """What vLLM does once for all layers of an indexer, on a stream of its own."""
    return convert(
        metadata.req_id_per_token[: len(tokens)], metadata.block_table, tokens, metadata.block_size, block_stride_rows, tokens.shape[1],
        return_valid_counts,
    )  # fmt: skip


def make_builder(heads, rows, threshold=1):
    config, spec = make_config(heads, rows), types.SimpleNamespace(block_size=rows)
    with vllm_double.configure("sparse_mla_attention", config):
        builder = _sparse.TesseraMLASparseMetadataBuilder(spec, ["layer"], config, torch.device("cpu"))
    builder.reorder_batch_threshold = threshold
    return builder


def make_impl(heads, lists, *, cached="auto", rotary=64, slopes=None, latent=512):
    layer = heads, latent + rotary, SCALE, 1, slopes, None, cached, None, AttentionType.DECODER, None
    with vllm_double.configure("sparse_mla_attention", make_config(heads, 64)):
        return _sparse.TesseraMLASparseImpl(*layer, topk_indices_buffer=lists, **name_latent(latent, rotary))


class Lists(problems.Interpreted):
    def setUp(self):
        super().setUp()
        self.own = self.replace(_sparse, "triton_convert_req_index_to_global_index", convert)
        self.of_ranks = self.replace(_sparse, "triton_filter_and_convert_dcp_index", convert)
        self.once = self.replace(_sparse.TesseraMLASparseImpl, "_convert_logical_to_physical_topk", convert_once)

    def replace(self, place, name, function):
        """Counts the calls of a function in place of vLLM's, which is a kernel."""
        patch = unittest.mock.patch.object(place, name, side_effect=function, create=True)
        self.addCleanup(patch.stop)
        return patch.start()

    def attend(self, step, tokens=None, threshold=1, ranks=(1, 0)):
        """What a layer gives of the first tokens of a step, all of them where `tokens` is None."""
        heads, q = step.q.shape[1], step.q[:tokens]
        impl = make_impl(heads, step.lists, cached="fp8_ds_mla" if step.cache.dtype == torch.uint8 else "auto", rotary=q.shape[2] - 512)
        impl.dcp_world_size, impl.dcp_rank = ranks
        metadata = make_builder(heads, step.cache.shape[1], threshold).build(0, step.common)
        # In two parts, as the projection has made them, or in one.
        parts = q if len(step.counts) % 2 else q.split((512, q.shape[2] - 512), -1)
        out, lse = impl.forward_mqa(parts, step.cache, metadata, types.SimpleNamespace())
        self.assertEqual((out.shape, lse.shape), ((len(q), heads, 512), (len(q), heads)))
        return out, lse

    def check(self, step, is_owned=lambda key: key >= 0, **options):
        out, lse = self.attend(step, **options)
        for b, (start, count) in enumerate(zip(step.common.query_start_loc.tolist(), step.counts)):
            if start < len(out):
                want, want_lse = step.expect(b, is_owned)
                problems.assert_close(self, out[start : start + count], want, (step.counts, b))
                torch.testing.assert_close(lse[start : start + count], want_lse.float(), rtol=1e-4, atol=1e-4)

    def test_tokens(self):
        """Some requests have more keys than a list, some fewer."""
        for rows in (64, 16):
            with self.subTest(rows=rows):
                self.check(Step([1, 1, 1], [100, 1, 300], rows=rows, topk=128))
        self.check(Step([1, 1], [65, 64], heads=24, dtype=torch.float16, topk=64))
        self.assertEqual((self.once.call_count, self.own.call_count), (3, 0))

    def test_bytes(self):
        for rows in (64, 32):
            with self.subTest(rows=rows):
                self.check(Step([1, 1, 1], [100, 1, 300], rows=rows, packs=True, topk=128))

    def test_rows_without_positions(self):
        for packs in (False, True):
            with self.subTest(packs=packs):
                self.check(Step([1, 1], [100, 30], packs=packs, width=512, topk=64))

    def test_blocks_apart(self):
        """Blocks of other layers lie between those of one."""
        for packs in (False, True):
            with self.subTest(packs=packs):
                self.check(Step([1, 1], [150, 70], packs=packs, between=192, topk=64))

    def test_prompts(self):
        """Prompts of more keys than a list are tokens too, behind those of other requests."""
        self.check(Step([1, 1, 90], [40, 200, 90], topk=64))
        self.assertEqual((self.once.call_count, self.own.call_count), (0, 1))

    def test_drafts(self):
        self.check(Step([3, 3], [100, 3], topk=64), threshold=3)
        self.assertEqual((self.once.call_count, self.own.call_count), (1, 0))

    def test_prompts_of_few_keys(self):
        """Prompts of fewer keys are not asked for: vLLM makes keys and values of them."""
        step = Step([1, 1, 30], [40, 200, 30], topk=64)
        self.check(step, tokens=2)
        self.assertEqual((self.once.call_count, self.own.call_count), (0, 1))

    def test_padding(self):
        """Tokens that a graph is padded with have lists of anything, and sequences without keys."""
        step = Step([1, 1, 1], [130, 0, 0], topk=64)
        self.check(step)
        step.lists[1:] = 5000
        self.assertTrue(torch.isfinite(self.attend(step)[0][0]).all())

    def test_ranks(self):
        """With decode context parallelism a rank has every other key, and the LSE of these."""
        for rank in (0, 1):
            step = Step([1, 1], [150, 2], topk=64)
            owned = Step([1, 1], [75, 1])
            for b, length in enumerate(step.lengths):
                own = step.keys[b][rank::2]
                for j in range(-(-len(own) // 64)):
                    page = owned.common.block_table_tensor[b, j]
                    owned.cache[page] = float("nan")
                    owned.cache[page, : len(own[64 * j : 64 * j + 64])] = own[64 * j : 64 * j + 64]
            step.cache, step.common.block_table_tensor = owned.cache, owned.common.block_table_tensor
            self.check(step, ranks=(2, rank), is_owned=lambda key: key % 2 == rank)
        self.assertEqual(self.of_ranks.call_count, 2)


@dataclasses.dataclass
class Spec:
    """What a backend reads of vLLM's AttentionSpec."""

    state_content_bytes: int | None
    state_content_size_bytes: int
    kv_quant_mode: types.SimpleNamespace = dataclasses.field(default_factory=lambda: types.SimpleNamespace(is_per_token_head=False))
    block_stride_alignment: int | None = None


class Takes(unittest.TestCase):
    def test_what_is_said(self):
        backend = _sparse.TesseraMLASparseBackend
        self.assertTrue(backend.is_mla() and backend.is_sparse() and backend.get_impl_cls().is_sparse)
        self.assertFalse(backend.supports_batch_invariance() or _latent.TesseraMLABackend.is_sparse())
        self.assertEqual(backend.get_name(), "TESSERA_MLA_SPARSE")
        self.assertIs(backend.get_builder_cls(), _sparse.TesseraMLASparseMetadataBuilder)
        self.assertEqual(backend.get_supported_head_sizes(), [576, 512])
        self.assertIn("fp8_ds_mla", backend.supported_kv_cache_dtypes)
        self.assertEqual(backend.customize_spec(Spec(656, 656)).block_stride_alignment, 656)
        self.assertEqual(backend.customize_spec(Spec(None, 1152)).block_stride_alignment, 1152)

    def test_refused(self):
        lists = torch.zeros(4, 64, dtype=torch.int32)
        for options, error, text in (
            ({"lists": None}, ValueError, "needs an indexer, or its 'topk_indices_buffer'"),
            ({"slopes": [0.5]}, NotImplementedError, "takes no slopes"),
            ({"latent": 256}, NotImplementedError, "and not of 256"),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                make_impl(8, **{"lists": lists, **options})

    def test_parallelism(self):
        """Of prompts and of decoding at once: a rank would have keys of some prompts that others lack."""
        build = _sparse.SparseMLACommonImpl.__init__

        def build_ranks(impl, *layer, **named):
            build(impl, *layer, **named)
            impl.dcp_world_size = impl.pcp_world_size = 2

        with unittest.mock.patch.object(_sparse.SparseMLACommonImpl, "__init__", build_ranks):
            with self.assertRaisesRegex(NotImplementedError, "of prompts or of decoding, and not both"):
                make_impl(8, torch.zeros(4, 64, dtype=torch.int32))

    def test_caches_of_the_host(self):
        def build(impl, *layer, **named):
            impl.index_group, impl.topk_indices_buffer = object.__new__(_sparse.HiSparseMLAIndexGroup), named["topk_indices_buffer"]
            impl.kv_lora_rank, impl.qk_rope_head_dim = 512, 64

        with unittest.mock.patch.object(_sparse.SparseMLACommonImpl, "__init__", build):
            with self.assertRaisesRegex(NotImplementedError, "over a cache on the device: leave out hisparse_config"):
                make_impl(8, torch.zeros(4, 64, dtype=torch.int32))


if __name__ == "__main__":
    unittest.main()
