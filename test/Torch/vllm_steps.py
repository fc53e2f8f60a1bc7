"""Steps of latent attention as an engine makes them, for tests of the backends of vLLM: requests, their cache, and what layers have."""

import math
import types

import latent_rows
import torch
from vllm.v1.attention.backend import CommonAttentionMetadata

SCALE = 0.08


class Step:
    """Requests with some new queries each, whose keys are all in the cache, in blocks `between` rows apart. Behind them are requests of
    padding. With `topk` each query has a list of keys that it sees, of numbers in its request, and -1 where a list has no more."""

    def __init__(self, counts, lengths, heads=8, rows=64, dtype=torch.bfloat16, packs=False, width=576, between=None, topk=None):
        generator = torch.Generator().manual_seed(sum(counts) + sum(lengths))
        self.counts, self.lengths, most = counts, lengths, max(1, -(-max(lengths) // rows))
        blocks = len(counts) * most + 1
        self.cache = torch.full((blocks, between or rows, width), math.nan, dtype=dtype)
        # Tables are wider than any request.
        table, self.keys = torch.full((len(counts), most + 3), -777777, dtype=torch.int32), []
        pages = torch.randperm(blocks, generator=generator).tolist()
        for b, length in enumerate(lengths):
            self.keys.append(torch.randn(length, width, generator=generator).to(dtype))
            for j in range(-(-length // rows)):
                table[b, j] = page = pages.pop()
                own = self.keys[b][j * rows : (j + 1) * rows]
                self.cache[page, : len(own)] = own
        if packs:
            pad = lambda x: torch.nn.functional.pad(x, (0, 576 - width))  # noqa: E731
            self.cache, self.keys = latent_rows.pack(pad(self.cache))[0], [latent_rows.pack(pad(own))[1] for own in self.keys]
        self.cache = self.cache[:, :rows]
        self.q = torch.randn(sum(counts), heads, width, generator=generator).to(dtype)
        starts = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
        self.requests = torch.arange(len(counts), dtype=torch.int32).repeat_interleave(torch.tensor(counts))
        self.common = CommonAttentionMetadata(
            query_start_loc=starts, query_start_loc_cpu=starts, seq_lens=torch.tensor(lengths, dtype=torch.int32),
            num_reqs=len(counts), num_actual_tokens=sum(counts), max_query_len=max(counts), max_seq_len=max(lengths),
            block_table_tensor=table, slot_mapping=torch.zeros(sum(counts), dtype=torch.int64),
            seq_lens_cpu_upper_bound=torch.tensor(lengths, dtype=torch.int32), _token_to_req_indices_cache=self.requests,
        )  # fmt: skip
        self.lists = None if topk is None else self._choose(topk, generator)

    def _choose(self, topk, generator):
        """As an indexer does: of what a query sees some keys in any order, all of them where they are few."""
        lists = torch.full((len(self.q), topk), -1, dtype=torch.int32)
        for token, (b, seen) in enumerate(self._list_queries()):
            chosen = torch.randperm(seen, generator=generator)[:topk].to(torch.int32)
            lists[token, : len(chosen)] = chosen
        return lists

    def _list_queries(self):
        """(request, how many keys it sees) of each query."""
        for b, (count, length) in enumerate(zip(self.counts, self.lengths)):
            for r in range(count):
                yield b, max(0, length - count + r + 1)

    def expect(self, b, is_owned=lambda key: key >= 0):
        """Output [queries, H, 512] and LSE [queries, H] of request b in f64, of the keys for which `is_owned` is true."""
        start = int(self.common.query_start_loc[b])
        q, rows = self.q[start : start + self.counts[b]].double(), self.keys[b].double()
        scores = SCALE * torch.einsum("qhd,kd->qhk", q, rows[:, : q.shape[2]])
        seen = torch.arange(len(rows))[None] <= torch.arange(len(q))[:, None] + len(rows) - len(q)
        if self.lists is not None:
            seen = torch.zeros(len(q), len(rows), dtype=torch.bool)
            for r, own in enumerate(self.lists[start : start + len(q)].long()):
                seen[r, own[own >= 0]] = True
        seen = seen & is_owned(torch.arange(len(rows)))
        scores = scores.masked_fill(~seen[:, None], -math.inf)
        return torch.einsum("qhk,kd->qhd", scores.softmax(-1).nan_to_num(0), rows[:, :512]), scores.logsumexp(-1)


def make_config(heads, rows, topk=64):
    """What builders and layers read of vLLM's configuration."""
    layer = types.SimpleNamespace(
        q_lora_rank=None, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, num_heads=heads,
        prefill_backend=types.SimpleNamespace(clone=lambda: types.SimpleNamespace(prepare_metadata=lambda metadata: None)),
    )  # fmt: skip
    model = types.SimpleNamespace(
        get_num_attention_heads=lambda parallel: heads, get_head_size=lambda: 576, dtype=torch.bfloat16, max_model_len=1024,
        hf_text_config=types.SimpleNamespace(
            index_topk=topk, q_lora_rank=None, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128
        ),
        model_arch_config=types.SimpleNamespace(total_num_attention_heads=heads),
    )  # fmt: skip
    return types.SimpleNamespace(
        speculative_config=None,
        parallel_config=types.SimpleNamespace(
            decode_context_parallel_size=1, prefill_context_parallel_size=1, cp_kv_cache_interleave_size=1
        ),
        model_config=model,
        scheduler_config=types.SimpleNamespace(max_num_seqs=16, max_num_batched_tokens=256),
        cache_config=types.SimpleNamespace(cache_dtype="auto", block_size=rows),
        compilation_config=types.SimpleNamespace(static_forward_context={"layer": layer}),
        attention_config=types.SimpleNamespace(use_prefill_query_quantization=False, hisparse_config=None, sparse_mla_force_mqa=False),
    )  # fmt: skip


def name_latent(latent=512, rotary=64):
    """What MLA layers give beside the arguments of all layers."""
    return {
        "q_lora_rank": None, "kv_lora_rank": latent, "qk_nope_head_dim": 128, "qk_rope_head_dim": rotary, "qk_head_dim": 128 + rotary,
        "v_head_dim": 128, "kv_b_proj": None,
    }  # fmt: skip
