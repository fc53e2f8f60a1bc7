# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""The attention backend of vLLM, as an engine calls it: metadata, cache and layer are made by hand, and there is no engine. Attention
is that of the interpreter, compared with f64. Rows of the cache that no length reaches are NaN."""

import math
import threading
import types
import unittest
import unittest.mock

import problems
import torch
import vllm_double
from problems import band, exact

vllm_double.install()

from vllm.v1.attention.backend import AttentionCGSupport, AttentionType, CommonAttentionMetadata, MultipleOf  # noqa: E402
from vllm.v1.attention.backends.registry import AttentionBackendEnum  # noqa: E402

import tessera.vllm  # noqa: E402
from tessera.vllm import _backend  # noqa: E402

# The orders of layer, block, head, row in which vLLM lays caches out, of which each layer has a view [block, head, row, content].
LAYOUTS = "LBHN", "LBNH", "BLHN", "BLNH", "BHLN", "LHBN"


def make_cache(blocks, heads, rows, d, dtype, layout="LBNH"):
    sizes = {"L": 2, "B": blocks, "H": heads, "N": rows}
    cache = torch.full([*(sizes[name] for name in layout), 2 * d], math.nan, dtype=dtype)
    return cache.permute(*(layout.index(name) for name in "LBHN"), 4)[1]


class Step:
    """Requests with some new queries each, and keys before them in the cache. Behind them is padding."""

    def __init__(self, counts, before, heads=4, kv_heads=2, d=64, rows=16, layout="LBNH", padding=3, dtype=torch.bfloat16):
        generator = torch.Generator().manual_seed(sum(counts) + sum(before))
        lengths = [old + new for old, new in zip(before, counts)]
        most = max(1, max(-(-length // rows) for length in lengths))
        self.counts, self.lengths, tokens = counts, lengths, sum(counts)
        self.cache = make_cache(len(counts) * most + 2, kv_heads, rows, d, dtype, layout)
        table = torch.full((len(counts), most), -777777, dtype=torch.int32)
        pages = torch.randperm(len(self.cache), generator=generator).tolist()
        slots, self.keys, self.values = [], [], []

        def draw(count, heads):
            return torch.randn(count, heads, d, generator=generator).to(dtype)

        for b, length in enumerate(lengths):
            self.keys.append(draw(length, kv_heads)), self.values.append(draw(length, kv_heads))
            for j in range(-(-length // rows)):
                table[b, j] = pages.pop()
            places = [(int(table[b, j // rows]), j % rows) for j in range(length)]
            for j, (page, row) in enumerate(places[: before[b]]):
                self.cache[page, :, row] = torch.cat((self.keys[b][j], self.values[b][j]), -1)
            slots += [page * rows + row for page, row in places[before[b] :]]
        self.q = torch.cat([draw(tokens, heads), torch.full((padding, heads, d), math.nan, dtype=dtype)])
        self.k, self.v = (
            torch.cat([*(x[len(x) - n :] for x, n in zip(own, counts)), torch.full((padding, kv_heads, d), math.nan, dtype=dtype)])
            for own in (self.keys, self.values)
        )
        starts = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
        self.common = CommonAttentionMetadata(
            query_start_loc=starts, query_start_loc_cpu=starts, seq_lens=torch.tensor(lengths, dtype=torch.int32),
            num_reqs=len(counts), num_actual_tokens=tokens, max_query_len=max(counts), max_seq_len=max(lengths),
            block_table_tensor=table, slot_mapping=torch.tensor(slots),
        )  # fmt: skip

    def expect(self, b, left=None, right=0, **options):
        """Output [queries, H, D] and LSE [H, queries] of request b in f64."""
        starts = self.common.query_start_loc
        q, k, v = (x.transpose(0, 1)[None] for x in (self.q[starts[b] : starts[b + 1]], self.keys[b], self.values[b]))
        out, lse = exact(q, k, v, band(q.shape[2], k.shape[2], left, right), **options)
        return out[0].transpose(0, 1), lse[0]


def make_builder(threshold=1, **parallel):
    config = types.SimpleNamespace(
        speculative_config=None,
        parallel_config=types.SimpleNamespace(decode_context_parallel_size=1, **parallel),
        scheduler_config=types.SimpleNamespace(max_num_seqs=16),
    )
    builder = _backend.TesseraMetadataBuilder(types.SimpleNamespace(block_size=16), ["layer"], config, torch.device("cpu"))
    builder.reorder_batch_threshold = threshold
    return builder


def make_impl(heads=4, d=64, kv_heads=2, **options):
    return _backend.TesseraImpl(heads, d, d**-0.5, kv_heads, **options)


LAYER = types.SimpleNamespace(_k_scale=torch.ones(()), _v_scale=torch.ones(()))


class Attends(problems.Interpreted):
    def check(self, step, impl=None, build=None, expected=(), causal=True):
        impl = make_impl(step.q.shape[1], step.q.shape[2], step.k.shape[1]) if impl is None else impl
        impl.process_weights_after_loading(torch.bfloat16)
        step.common.causal = causal
        metadata = make_builder().build(0, step.common) if build is None else build(step.common)
        impl.do_kv_cache_update(LAYER, step.k, step.v, step.cache, metadata.slot_mapping)
        output = torch.full_like(step.q, 7.0)
        # Engines hand over [tokens, heads, d] and [tokens, heads * d].
        impl.forward(LAYER, step.q, step.k, step.v, step.cache, metadata, output.flatten(1) if len(step.counts) % 2 else output)
        starts = step.common.query_start_loc.tolist()
        for b, count in enumerate(step.counts):
            if count:
                want = step.expect(b, **dict(expected))[0]
                problems.assert_close(self, output[starts[b] : starts[b + 1]], want, (step.counts, b))
        self.assertTrue((output[starts[-1] :] == 7).all())
        return metadata

    def test_decodes(self):
        """In all layouts, with pages short and long."""
        for layout, rows in zip(LAYOUTS, (16, 64, 128, 16, 8, 48)):
            with self.subTest(layout):
                self.check(Step([1, 1, 1, 1], [0, 63, 130, 16], rows=rows, layout=layout, padding=0))

    def test_prompts_parts_of_them_and_tokens(self):
        metadata = self.check(Step([1, 1, 70, 3, 20], [40, 130, 0, 100, 0]))
        self.assertEqual((metadata.num_decodes, metadata.decode_query_len), (2, 1))
        self.assertEqual(self.check(Step([70, 5], [0, 30], rows=64)).num_decodes, 0)

    @unittest.mock.patch.object(_backend.envs, "VLLM_BATCH_INVARIANT", True)
    def test_batch_invariance(self):
        """A request has the same bits beside others, and however its prompt is cut."""
        step, found = Step([70], [0]), {}

        def attend(first, past, others=()):
            own = Step([past - first, *(1 for _ in others)], [first, *others])
            own.q[: past - first] = step.q[first:past]
            for name in ("keys", "values"):
                getattr(own, name)[0][:] = getattr(step, name)[0][:past]
            for j in range(past):
                page = own.cache[own.common.block_table_tensor[0, j // 16], :, j % 16]
                page[:] = torch.cat((step.keys[0][j], step.values[0][j]), -1)
            own.k[: past - first], own.v[: past - first] = step.keys[0][first:past], step.values[0][first:past]
            metadata, output = make_builder().build(0, own.common), torch.zeros_like(own.q)
            self.assertEqual(metadata.num_decodes, 0)
            impl = make_impl()
            impl.do_kv_cache_update(LAYER, own.k, own.v, own.cache, metadata.slot_mapping)
            impl.forward(LAYER, own.q, own.k, own.v, own.cache, metadata, output)
            found[first, past] = output[: past - first]

        attend(0, 70)
        whole = found[0, 70]
        problems.assert_close(self, whole, step.expect(0)[0], ())
        for cut in ((0, 1), (1, 70), (0, 69), (69, 70), (0, 35), (35, 70)):
            attend(*cut, others=(130, 5))
            self.assertTrue(torch.equal(found[cut], whole[slice(*cut)]), cut)

    def test_drafts(self):
        """Requests with drafts are tokens too."""
        metadata = self.check(Step([3, 1, 2, 70], [40, 130, 5, 20]), build=lambda common: make_builder(3).build(0, common))
        self.assertEqual((metadata.num_decodes, metadata.decode_query_len), (3, 3))

    def test_captured(self):
        """What a graph has launched serves other batches: nothing of the captured one's is kept, but bounds."""
        builder = make_builder()
        step = Step([1, 1, 70, 3], [40, 130, 0, 100])
        metadata = self.check(step, build=builder.build_for_cudagraph_capture)
        self.assertEqual(metadata.num_decodes, 0)
        # Requests behind the others have no queries and no keys.
        self.check(Step([1, 1, 0], [40, 130, 0]), build=builder.build_for_cudagraph_capture)
        self.assertIs(builder._cudagraph_support, AttentionCGSupport.ALWAYS)

    def test_short_cache(self):
        """Elements of 8 bits, as bytes, stand for as much as a number of the layer says."""
        layer = types.SimpleNamespace(_k_scale=torch.tensor(0.5), _v_scale=torch.tensor(0.25))
        for rows, counts, before in ((64, [1, 1], [130, 0]), (16, [1, 70, 3], [40, 0, 100])):
            step, impl = Step(counts, before, rows=rows), make_impl(kv_cache_dtype="fp8_e4m3")
            scales = torch.tensor([0.5, 0.25]).repeat_interleave(step.q.shape[2])
            step.cache = (step.cache / scales).to(torch.float8_e4m3fn).view(torch.uint8)
            for own, scale in ((step.keys, 0.5), (step.values, 0.25)):
                own[:] = [(x / scale).to(torch.float8_e4m3fn).double() * scale for x in own]
            metadata, out = make_builder().build(0, step.common), torch.full_like(step.q, 7.0)
            impl.do_kv_cache_update(layer, step.k, step.v, step.cache, metadata.slot_mapping)
            impl.forward(layer, step.q, step.k, step.v, step.cache, metadata, out)
            for b, (start, count) in enumerate(zip(step.common.query_start_loc.tolist(), counts)):
                problems.assert_close(self, out[start : start + count], step.expect(b)[0], (counts, b))

    def test_masks_and_scores(self):
        for counts, before in (([1, 1, 1], [300, 5, 0]), ([1, 40], [90, 60])):
            for options, expected in (
                ({"sliding_window": 20}, {"left": 19}),
                ({"logits_soft_cap": 5.0}, {"softcap": 5.0}),
                ({"logits_soft_cap": 5.0, "sliding_window": 30}, {"left": 29, "softcap": 5.0}),
                ({"alibi_slopes": [0.5, 0.1, 0.02, 0.3]}, {"slopes": torch.tensor([0.5, 0.1, 0.02, 0.3])}),
            ):
                with self.subTest(f"{counts} {options}"):
                    self.check(Step(counts, before), make_impl(**options), expected=expected)
        window = {"left": 19, "right": 19}
        self.check(Step([1, 40], [90, 60]), make_impl(sliding_window=20), expected=window, causal=False)

    def test_sinks(self):
        sinks = torch.tensor([0.5, -1.0, 2.0, 3.0]).bfloat16()
        for counts, before in (([1, 1], [300, 5]), ([1, 40], [90, 60])):
            step = Step(counts, before, padding=0)
            impl, out = make_impl(sinks=torch.nn.Parameter(sinks), sliding_window=50), torch.empty_like(step.q)
            impl.process_weights_after_loading(torch.bfloat16)
            metadata = make_builder().build(0, step.common)
            impl.do_kv_cache_update(LAYER, step.k, step.v, step.cache, metadata.slot_mapping)
            impl.forward(LAYER, step.q, step.k, step.v, step.cache, metadata, out)
            for b, (start, count) in enumerate(zip(step.common.query_start_loc.tolist(), counts)):
                want, lse = step.expect(b, left=49)
                kept = torch.exp(lse - torch.logaddexp(lse, sinks.double()[:, None])).t()[..., None]
                problems.assert_close(self, out[start : start + count], want * kept, (counts, b))

    def test_flags_of_requests(self):
        step = Step([1, 40, 3], [90, 60, 5])
        step.common.causal = flags = torch.tensor([True, False, True])
        builder, out = make_builder(), torch.empty_like(step.q)
        metadata = builder.build(0, step.common)
        # The next step's are in the same place, where graphs read them.
        self.assertEqual(builder.build(0, step.common).causal.data_ptr(), metadata.causal.data_ptr())
        impl = make_impl()
        impl.do_kv_cache_update(LAYER, step.k, step.v, step.cache, metadata.slot_mapping)
        impl.forward(LAYER, step.q, step.k, step.v, step.cache, metadata, out)
        for b, (start, count) in enumerate(zip(step.common.query_start_loc.tolist(), step.counts)):
            problems.assert_close(self, out[start : start + count], step.expect(b, right=0 if flags[b] else None)[0])

    def test_prefix_before_a_window(self):
        step, prefixes = Step([1, 40, 3], [90, 60, 5]), torch.tensor([20, 10, 3])
        step.common.rswa_prefix_lens = prefixes
        builder, impl, out = make_builder(), make_impl(), torch.empty_like(step.q)
        builder._window = 8
        metadata = builder.build(0, step.common)
        impl.do_kv_cache_update(LAYER, step.k, step.v, step.cache, metadata.slot_mapping)
        impl.forward(LAYER, step.q, step.k, step.v, step.cache, metadata, out)
        starts = step.common.query_start_loc
        for b, prefix in enumerate(prefixes.tolist()):
            q, k, v = (x.transpose(0, 1)[None] for x in (step.q[starts[b] : starts[b + 1]], step.keys[b], step.values[b]))
            rows, keys = q.shape[2], k.shape[2]
            seen = band(rows, keys, 7, 0) | (band(rows, keys, None, 0) & (torch.arange(keys) < prefix))
            problems.assert_close(self, out[starts[b] : starts[b + 1]], exact(q, k, v, seen)[0][0].transpose(0, 1))

    def test_encoders(self):
        step = Step([70, 3], [0, 0])
        impl, out = make_impl(attn_type=AttentionType.ENCODER_ONLY), torch.full_like(step.q, 7.0)
        metadata = make_builder().build(0, step.common)
        impl.do_kv_cache_update(LAYER, step.k, step.v, step.cache, metadata.slot_mapping)
        self.assertTrue(step.cache.isnan().all())
        impl.forward(LAYER, step.q, step.k, step.v, torch.empty(0), metadata, out)
        for b, rows in enumerate((slice(0, 70), slice(70, 73))):
            problems.assert_close(self, out[rows], step.expect(b, right=None)[0])

    def test_measured(self):
        out = torch.full((2, 4, 64), 7.0)
        self.assertIs(make_impl().forward(LAYER, out, out, out, torch.empty(0), None, out), out)
        self.assertTrue((out == 0).all())


class Group:
    """Two ranks as threads, each with its own part of what all gather."""

    def __init__(self):
        self.rank, self.given, self.barrier = threading.local(), [None, None], threading.Barrier(2, timeout=60)

    def exchange(self, own):
        self.given[self.rank.number] = own
        self.barrier.wait()
        both = list(self.given)
        self.barrier.wait()
        return both

    def all_gather(self, x, dim):
        return torch.cat(self.exchange(x), dim)

    def combine(self, out, lse, group, return_lse):
        """Joined states of the rank's own heads: out [T, H, D], lse [T, H]."""
        outs, lses = zip(*self.exchange((out, lse)))
        joined = torch.stack(lses).logsumexp(0)
        whole = sum((part - joined).exp().nan_to_num(0)[..., None] * own for own, part in zip(outs, lses)).to(out.dtype)
        own = slice(self.rank.number * out.shape[1] // 2, (self.rank.number + 1) * out.shape[1] // 2)
        return whole[:, own], joined[:, own]


class ContextParallelism(problems.Interpreted):
    def test_two_ranks(self):
        """Token i of a request lies on rank i / 2 mod 2. The ranks have two heads of queries each, and the same head of keys."""
        step, group, outs, failed = Step([1, 30, 3], [40, 0, 5], kv_heads=1, padding=0), Group(), [None, None], []

        def run(rank):
            try:
                group.rank.number = rank
                builder = make_builder(cp_kv_cache_interleave_size=2)
                cache = make_cache(8, 1, 16, 64, torch.bfloat16)
                table, slots, pages = torch.full((3, 3), -5, dtype=torch.int32), [], list(range(8))
                for b, length in enumerate(step.lengths):
                    own = [j for j in range(length) if j // 2 % 2 == rank]
                    for j in range(-(-len(own) // 16)):
                        table[b, j] = pages.pop()
                    places = {j: (int(table[b, i // 16]), i % 16) for i, j in enumerate(own)}
                    for j in range(length):
                        if j >= length - step.counts[b]:
                            slots.append(places[j][0] * 16 + places[j][1] if j in places else -1)
                        elif j in places:
                            page, row = places[j]
                            cache[page, :, row] = torch.cat((step.keys[b][j], step.values[b][j]), -1)
                given = {"block_table_tensor": table, "slot_mapping": torch.tensor(slots)}
                common = CommonAttentionMetadata(**{**vars(step.common), **given})
                metadata = builder.build(0, common)
                impl = make_impl(2, 64, 1)
                query, out = step.q[:, 2 * rank : 2 * rank + 2], torch.empty(len(step.q), 2, 64, dtype=torch.bfloat16)
                impl.do_kv_cache_update(LAYER, step.k, step.v, cache, metadata.slot_mapping)
                impl.forward(LAYER, query, step.k, step.v, cache, metadata, out)
                outs[rank] = out
            except BaseException as error:
                failed.append(error)
                group.barrier.abort()

        ranks = lambda enabled=True: (2, group.rank.number)  # noqa: E731
        with (
            unittest.mock.patch.object(_backend, "get_dcp_world_size_and_rank", ranks),
            unittest.mock.patch("vllm.distributed.parallel_state.get_dcp_world_size_and_rank", ranks),
            unittest.mock.patch.object(_backend, "get_dcp_group", lambda: group),
            unittest.mock.patch.object(_backend.dcp, "cp_lse_ag_out_rs", group.combine),
        ):
            threads = [threading.Thread(target=run, args=(rank,)) for rank in (0, 1)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            group.rank.number = 0
            for options in ({"sliding_window": 9}, {"alibi_slopes": [0.1] * 4}, {"sinks": torch.zeros(4)}):
                with self.assertRaisesRegex(NotImplementedError, "windows, slopes and sinks do not know"):
                    make_impl(**options)
        self.assertEqual(failed, [])
        out = torch.cat(outs, 1)
        for b, (start, count) in enumerate(zip(step.common.query_start_loc.tolist(), step.counts)):
            want = step.expect(b)[0]
            self.assertLess((out[start : start + count].double() - want).abs().max().item(), 2e-2)


class Takes(unittest.TestCase):
    backend = _backend.TesseraBackend

    def test_what_is_said(self):
        backend = self.backend
        for size, is_taken in ((64, True), (72, True), (256, True), (60, False), (264, False)):
            self.assertEqual(backend.supports_head_size(size), is_taken)
        self.assertEqual(backend.get_supported_kernel_block_sizes(), [MultipleOf(8)])
        for kind in AttentionType:
            self.assertTrue(backend.supports_attn_type(kind))
        for version, is_taken in (((9, 0), True), ((8, 0), False), ((10, 0), False)):
            self.assertEqual(backend.supports_compute_capability(types.SimpleNamespace(major=version[0], minor=version[1])), is_taken)

    @unittest.skipUnless(vllm_double.IS_REAL, "vLLM asks for these")
    def test_words(self):
        from vllm.platforms.interface import DeviceCapability

        named = {
            "head_size": 128, "dtype": torch.bfloat16, "kv_cache_dtype": "auto", "block_size": 16, "use_mla": False, "has_sink": True,
            "use_sparse": False, "use_mm_prefix": False, "use_per_head_quant_scales": False, "attn_type": AttentionType.DECODER,
            "device_capability": DeviceCapability(9, 0), "has_sliding_window": True, "use_non_causal": True, "use_dcp": True,
            "use_adaptive_verification": True, "use_rswa": True, "use_batch_invariant": True,
        }  # fmt: skip
        self.assertEqual(self.backend.validate_configuration(**named), [])
        for other, words in (
            ({"head_size": 100}, "head_size not supported"),
            ({"dtype": torch.float32}, "dtype not supported"),
            ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype not supported"),
            ({"block_size": 20}, "block_size not supported"),
            ({"use_mla": True, "use_non_causal": False}, "MLA not supported"),
            ({"use_mm_prefix": True}, "partial multimodal token full attention not supported"),
            ({"device_capability": DeviceCapability(10, 0)}, "compute capability not supported"),
        ):
            self.assertEqual(self.backend.validate_configuration(**{**named, **other}), [words])

    def test_refused(self):
        step = Step([1], [3])
        step.common.mm_req_doc_ranges = {0: [(0, 2)]}
        with self.assertRaisesRegex(NotImplementedError, "no ranges of image tokens"):
            make_builder().build(0, step.common)
        with self.assertRaisesRegex(NotImplementedError, "no output of 8 bits"):
            make_impl().forward(LAYER, step.q, step.k, step.v, step.cache, None, step.q, output_scale=torch.ones(1))

    def test_registered(self):
        custom = AttentionBackendEnum.CUSTOM
        self.addCleanup(custom.clear_override)
        for _ in range(2):
            tessera.vllm.register()
            self.assertEqual(custom.get_path(), "tessera.vllm._backend.TesseraBackend")


if __name__ == "__main__":
    unittest.main()
