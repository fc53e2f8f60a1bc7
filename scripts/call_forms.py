"""The kernels that calls from PyTorch take over caches, of packed queries, over latent rows and lists,
and of recurrences and their gradients.

A call is made with tensors of the CPU and kernels that do nothing, as on a GPU with as many multiprocessors as an H100 or H200. What
it asks for is noted.
"""

import itertools
import unittest.mock

import torch

import tessera.torch
from tessera._compiler import _compile
from tessera._compiler._program import Program
from tessera.torch import _gradient_recipes, _kernels

MULTIPROCESSORS = 132
BF16, F16, F32, E4M3 = torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn
TYPES = BF16, F16


def _integers(*shape):
    return torch.zeros(shape, dtype=torch.int32)


def _call_cache(kind, element, d, page, queries, heads, key_heads, options):
    batch, keys = 16, 2048
    q = torch.empty(batch, queries, heads, d, dtype=kind)
    shape = (batch * keys // page, page) if page else (batch, keys)
    caches = [torch.empty(*shape, key_heads, d, dtype=element or kind) for _ in "kv"]
    named = {"page_table": _integers(batch, keys // page)} if page else {}
    options = {name: torch.empty(heads) if name == "sinks" else value for name, value in options.items()}
    tessera.torch.flash_attn_with_kvcache(q, *caches, cache_seqlens=_integers(batch), causal=True, **named, **options)


def _call_packed(kind, element, d, page, group, longest, options):
    (heads, key_heads), count = group, 4
    q, keys = torch.empty(count * longest, heads, d, dtype=kind), count * -(-longest // page) if page else count * longest
    k, v = (torch.empty(keys, *((page,) if page else ()), key_heads, d, dtype=element or kind) for _ in "kv")
    starts = torch.arange(0, count * longest + 1, longest, dtype=torch.int32)
    named = {"block_table": _integers(count, keys // count), "seqused_k": _integers(count)} if page else {}
    options = {name: torch.empty(heads) if value is True else value for name, value in options.items()}
    lengths = starts, None if page else starts, longest, longest
    tessera.torch.flash_attn_varlen_func(q, k, v, *lengths, causal=True, **named, **options)


def _call_latent(kind, width, heads, page, queries, batch, options):
    shape, element = (656, torch.uint8) if width == 656 else (width, kind)
    cache = torch.empty(batch * 1024 // page + 1, page, 1, shape, dtype=element)
    q = torch.empty(batch, queries, heads, 576 if width == 656 else width, dtype=kind)
    options = {name: torch.empty(heads) if name == "attn_sink" else value for name, value in options.items()}
    table = _integers(batch, -(-1024 // page))
    tessera.torch.mla_with_kvcache(q, cache, table, _integers(batch), 512, softmax_scale=0.1, causal=True, **options)


def _call_lists(kind, width, heads, count, entries, options):
    shape, element = (656, torch.uint8) if width == 656 else (width, kind)
    rows, q = torch.empty(4096, 1, shape, dtype=element), torch.empty(count, heads, 576 if width == 656 else width, dtype=kind)
    given = {"attn_sink": torch.empty(heads), "topk_length": _integers(count)}
    options = {name: given.get(name, value) for name, value in options.items()}
    tessera.torch.mla_sparse(q, rows, _integers(count, 1, entries), 0.1, **options)


def _call_recurrence(name, kind, d, sizes, states, has_gradients, is_packed, columns=None):
    columns = columns or d
    batch, tokens, heads, value_heads = sizes
    lead = (1, batch * tokens) if is_packed else (batch, tokens)

    def draw(*extents, dtype=F32):
        return torch.zeros(*lead, *extents, dtype=dtype).requires_grad_(has_gradients)

    q, k, v = draw(heads, d, dtype=kind), draw(heads, d, dtype=kind), draw(value_heads, columns, dtype=kind)
    named = {"cu_seqlens": torch.arange(0, lead[1] + 1, tokens).int()} if is_packed else {}
    state = torch.zeros(batch, value_heads, d, columns) if "first" in states else None
    if "ssd" in name:
        first = None if state is None else state.transpose(2, 3)
        given = {"initial_states": first, "return_final_states": "last" in states}
        skip = torch.zeros(value_heads, d) if name == "gated ssd" else torch.zeros(value_heads)
        given |= {"z": draw(value_heads, d, dtype=F32 if kind == F16 else kind)} if name == "gated ssd" else {}
        given |= {"seq_idx": _integers(*lead)} if name == "ssd of sequences" else {}
        given |= {"dt_bias": torch.zeros(value_heads).requires_grad_(has_gradients), "dt_softplus": True} if name != "ssd" else {}
        out = tessera.torch.ssd(v, draw(value_heads), torch.zeros(value_heads), k, q, skip, **named, **given)
    else:
        function = {"retention": tessera.torch.retention, "gla": tessera.torch.gla}.get(name, tessera.torch.gated_delta_rule)
        gates = {"retention": {}, "delta rule": {"g": draw(value_heads)}}.get(name, {"g": draw(heads, d)})
        beta = {"beta": draw(value_heads), "use_qk_l2norm_in_kernel": True} if name.startswith("delta rule") else {}
        given = {"initial_state": state, "output_final_state": "last" in states}
        out = function(q, k, v, **gates, **beta, **named, **given)
    out = out if isinstance(out, torch.Tensor) else out[0]
    if has_gradients:
        torch.autograd.grad(out, (q, k, v), torch.empty_like(out))


def _call_blocks(every, kind, d, sizes, states, is_packed):
    """Gradients of ssd that keep a state of so many chunks, whatever rules choose."""
    with unittest.mock.patch.object(_gradient_recipes, "_count_kept", lambda *_: every):
        _call_recurrence("ssd", kind, d, sizes, states, True, is_packed, 64)


def _list_calls():
    """(name, function) of each call."""
    products = itertools.product
    options = {}, {"window_size": (1000, 0)}, {"softcap": 20.0}, {"keys_per_part": 1024}, {"sinks": True}
    groups = (1, 32, 8), (1, 8, 8), (4, 8, 1), (4, 32, 8), (4, 28, 4), (300, 6, 2)
    for given in products(TYPES, (None, E4M3), (64, 96, 128, 192, 256), (0, 8, 16, 64, 128), groups, options):
        kind, element, d, page, sizes, more = given
        yield f"cache {given}", lambda k=kind, e=element, d=d, p=page, s=sizes, m=more: _call_cache(k, e, d, p, *s, m)
    options = {}, {"window_size": (127, 0)}, {"softcap": 20.0}, {"alibi_slopes": True}, {"sinks": True}
    groups = (32, 8), (8, 8), (8, 1), (28, 4)
    for given in products(TYPES, (None, E4M3), (64, 96, 128, 192, 256), (0, 8, 16, 64), groups, (4, 40, 600), options):
        yield f"packed {given}", lambda given=given: _call_packed(*given)
    options = {}, {"keys_per_part": 512}, {"attn_sink": True}
    for given in products(TYPES, (512, 576, 656), (8, 12, 16, 32, 64, 128), (7, 16, 64, 128), (1, 2), (1, 64), options):
        if given[:2] != (F16, 656):
            yield f"latent {given}", lambda given=given: _call_latent(*given)
    for given in products(TYPES, (512, 576, 656), (8, 16, 64, 128), (16, 300), (64, 512), (*options, {"topk_length": True})):
        if given[:2] != (F16, 656):
            yield f"lists {given}", lambda given=given: _call_lists(*given)
    of_heads, states = ("retention", "ssd", "gated ssd", "ssd of sequences", "delta rule"), ((), ("first",), ("last",), ("first", "last"))
    names, sizes = (*of_heads, "gla", "delta rule of channels"), ((1, 1024, 4, 4), (8, 128, 32, 32))
    for given in products(names, TYPES, (64, 128, 192, 256), sizes, states, (False, True), (False, True)):
        if (given[2] <= 128 or given[0] in of_heads) and not (given[0] == "ssd of sequences" and given[-1]):
            yield f"recurrence {given}", lambda given=given: _call_recurrence(*given)
    for given in products((2, 4), TYPES, (64, 128, 192, 256), ((1, 1024, 1, 8), (8, 128, 1, 80)), states[::3], (False, True)):
        yield f"recurrence of blocks {given}", lambda given=given: _call_blocks(*given)


def list_forms(only, part, parts):
    """(source, request) of the kernels of every `parts`-th call from number `part` on whose name has `only` in it."""
    found, find = {}, _kernels._find.__wrapped__

    def note(kind, source, kernel, parameters):
        key = str(source), kernel, str(parameters)
        found.setdefault(key, (source, _compile.make_request(dict(parameters), kernel)))
        return find(kind, source, kernel, parameters)

    before = tessera.torch.use_interpreter()
    try:
        with (
            unittest.mock.patch.object(_kernels, "_find", note),
            unittest.mock.patch.object(_kernels, "count_multiprocessors", lambda device: MULTIPROCESSORS),
            unittest.mock.patch.object(Program, "__call__", lambda self, *arguments, **named: None),
        ):
            for _, call in [call for call in _list_calls() if only in call[0]][part::parts]:
                call()
    finally:
        tessera.torch.use_interpreter(before)
    return list(found.values())
