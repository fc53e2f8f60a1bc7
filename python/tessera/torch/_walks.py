"""Ops of the recurrences whose gradients are the same walk of other tensors (kernels/linear/directions.tile), and those gradients:
`tessera::retention`, `tessera::ssd`, `tessera::gla`, `tessera::delta_rule` and those of their gradients. `tessera::unit_rows` divides
queries and keys by their lengths.

Tensors are [B, T, H, D] in any strides but the innermost, which is 1. Results that nobody wants are tensors without elements. `starts`
are where packed sequences begin.
"""

from __future__ import annotations

import functools
import math

import torch

from .._attention._recurrences import CHUNK, count_chunks
from . import _first_order, _gradient_recipes, _launches, _linear, _op, _packed, _prepared, _segments, _walk_recipes
from ._types import TYPES


def _empty(like):
    return like.new_empty(0, dtype=torch.float32)


def _transposed(state):
    return None if state is None else state.transpose(2, 3).contiguous()


def _new_gradient(like, chunks, shape=None, dtype=None):
    """Memory for a gradient of rows: 0 where rows in place are of no sequence."""
    return (torch.empty if chunks is None else torch.zeros)(shape or like.shape, dtype=dtype or like.dtype, device=like.device)


def _sum_of_shared(q, heads, walk, chunks):
    """What `walk` writes of a tensor of q's shape, which several heads of values may share: of each a part in 16 bits, added up in f32.
    Sums in memory of as many heads as Mamba-2's would take longer than these parts."""
    batch, tokens, shared, width = q.shape
    out = _new_gradient(q, chunks, (batch, tokens, heads, width))
    walk(out)
    return out if heads == shared else out.unflatten(2, (shared, -1)).sum(3)


def _walk_to(out, name, q, k, v, others, scale, state, heads, **parameters):
    _launches.launch(name, q, k, v, others, scale, state, False, out=out, heads=heads, **parameters)
    return out


def _begin_segments(name, q, k, v, grad, others, scale, logarithms, state, grad_last, table, **back):
    """(table, states, gradients of the states behind) of segments that one sequence is cut into, or what is given. `back` are parameters
    of the walk from the end that gives the gradient of the values."""
    segments = None if table is not None else _segments.cut(v)
    if segments is None:
        return table, state, grad_last
    find = functools.partial(segments.find_states, name, others=others, scale=scale, logarithms=logarithms)
    return segments.table, find(q, k, v, state=state), find(k, q, grad, state=grad_last, REVERSE=True, **back)


def _of_first(first, v, table):
    """The gradients of the states before sequences, of those before segments too."""
    return _empty(v) if first is None else first[: v.shape[0]] if table is None else first


def _walk(name, q, k, v, others, scale, state, starts, wants_state, count=2, keeps=False):
    """So many results of an op, of which those that nobody wants are empty."""
    others = {name: x for name, x in others.items() if x is not None}
    out, *found = _segments.walk(name, q, k, v, others, scale, state, starts, wants_state, keeps)
    last = found.pop(0) if wants_state else _empty(v)
    return out, last, *found, *(v.new_empty(0) for _ in range(count - 2 - len(found)))


def _walk_retention(q, k, v, decays, scale, state, starts, wants_state):
    return _walk("retention", q, k, v, {"log2_decay": decays}, scale, state, starts, wants_state)


def _walk_retention_back(grad, grad_last, q, k, v, decays, scale, state, starts):
    heads, wants_first = v.shape[2], state is not None
    table, chunks = _packed.find_chunks(starts, v.shape[1])
    others, logarithms = _segments.read(v, log2_decay=decays)
    form = others, (scale,), logarithms
    parts, state, grad_last = _begin_segments("retention", q, k, v, grad, *form, state, grad_last, table)
    walk = functools.partial(_walk_to, name="retention", others=(decays,), scale=(scale,), heads=heads, table=parts, chunks=chunks)
    dq = _sum_of_shared(q, heads, lambda out: walk(out, q=grad, k=v, v=k, state=_transposed(state)), chunks)
    dk = _sum_of_shared(k, heads, lambda out: walk(out, q=v, k=grad, v=q, state=_transposed(grad_last), REVERSE=True), chunks)
    others = k, q, grad, (decays,), (scale,), grad_last, wants_first
    out = _new_gradient(v, chunks)
    dv, first = _launches.launch("retention", *others, out=out, table=parts, chunks=chunks, REVERSE=True)
    return dq, dk, dv, _of_first(first, v, table)


def _walk_ssd(q, k, v, dt, rates, skip, state, starts, wants_state):
    return _walk("ssd", q, k, v, {"dt": dt, "rates": rates, "skip": skip}, None, state, starts, wants_state)


def _sum_changes(changes, meets):
    """The gradient of each logarithm of a factor, [B, T, H]: the sums over what comes behind of dq q - dk k, and what the last state adds.
    Of a chunk that is what the state before it and its gradient have in common, [B, H, N], less what stands before the token."""
    batch, tokens, *others = changes.shape
    padded = changes.new_zeros((batch, count_chunks(tokens) * CHUNK, *others))
    padded[:, :tokens] = changes
    padded = padded.unflatten(1, (-1, CHUNK))
    before = padded.cumsum(2) - padded
    return (meets.transpose(1, 2).unsqueeze(2) - before).flatten(1, 2)[:, :tokens]


class _GatedWalks:
    """Walks of ssd.tile for the gradient of a recurrence with gates of a head, of which `v` has the columns: where states meet their
    gradients, and sums of rows. `q` are queries, or what has their shape."""

    def __init__(self, q, v, gates, rates, table, chunks):
        batch, _, self.heads, columns = v.shape
        self.gates, self.rates, self.tables, self.rows = gates, rates, {"table": table, "chunks": chunks}, gates.shape[2]
        chunks, width = count_chunks(self.rows), q.shape[3]
        sequences = batch if table is None else table.shape[1]
        parts = -(-width // _walk_recipes.choose("ssd", v.device, sequences, self.heads, columns, width)["DV"])
        self.parts = batch, self.heads, parts
        self.states = v.new_empty((batch, self.heads, chunks * columns, width))
        self.chunks = chunks

    def _new(self, extent):
        return torch.zeros((*self.parts, extent), dtype=torch.float32, device=self.states.device)

    def run(self, out, q, k, v, w, steps, state, same=(), meets=None, **parameters):
        """Sums of the rows of the outputs times `w`, [B, R, H], with R as of gates. `same` get those of the products of q and k of the same
        token (SAME), and `meets` those of the products of the states and of what the walk has that kept its own (KEEP)."""
        sums = self._new(self.rows)
        kept = (self.states, meets) if meets is not None else (self.states,) if parameters.get("KEEP") else ()
        others = (self.gates, self.rates, steps, _launches.heads_first(w), sums, *same, *kept)
        _walk_to(out, "ssd", q, k, v, others, (), state, self.heads, SUMS=True, **self.tables, **parameters)
        return sums.sum(2).transpose(1, 2)

    def run_first(self, *arguments):
        """Sums of rows, and of products of q and k of the same token, [H], by the walk that keeps its states."""
        same = self._new(self.chunks)
        return self.run(*arguments, same=(same,), KEEP=True, SAME=True), same[:, :, 0].sum((0, 2))

    def run_back(self, *arguments, **parameters):
        """Sums of rows, and of products of states for each chunk, [B, H, N]."""
        meets = self._new(self.chunks)
        return self.run(*arguments, meets=meets, REVERSE=True, MEET=True, **parameters), meets.sum(2)


def _walk_ssd_back(grad, grad_last, q, k, v, dt, rates, skip, state, starts):
    heads, wants_first = v.shape[2], state is not None
    table, chunks = _packed.find_chunks(starts, v.shape[1])
    others, logarithms = _segments.read(v, dt=dt, rates=rates, chunks=chunks)
    gates, form = others[0], (others, (), logarithms)
    parts, state, grad_last = _begin_segments("ssd", q, k, v, grad, *form, state, grad_last, table, STEPS="own")
    walks, found = _GatedWalks(q, v, gates, rates, parts, chunks), {}

    def walk_q(out):
        found["q"] = walks.run_first(out, grad, v, k, q, walks.gates, _transposed(state))

    def walk_k(out):
        found["k"] = walks.run_back(out, v, grad, q, k, walks.gates, _transposed(grad_last), STEPS="own")

    passing = () if skip is None else (skip,)
    form = {"SKIP": skip is not None, "REVERSE": True, "STEPS": "own"}
    beside = _launches.Beside(v.device)
    own = k, q, grad, (*others, *passing), (), grad_last, wants_first
    try:
        out = _new_gradient(v, chunks)
        dv, first = _launches.launch("ssd", *own, out=out, table=parts, chunks=chunks, beside=beside, **form)
        dq, dk = _sum_of_shared(q, heads, walk_q, chunks), _sum_of_shared(k, heads, walk_k, chunks)
    finally:
        beside.end()
    (of_q, same), (of_k, meets) = found["q"], found["k"]
    dg = _sum_changes(of_q - gates.transpose(1, 2) * of_k, meets)
    dg, of_k = (_packed.restore_chunks(x, chunks, v.shape[1]) for x in (dg, of_k))
    dskip = _empty(v) if skip is None else same
    return dq, dk, dv, rates * dg + of_k, _packed.keep_tokens(dg * dt, chunks).sum((0, 1)), dskip, _of_first(first, v, table)


def _walk_delta(q, k, v, g, beta, scale, state, starts, wants_state, wants_news):
    name = "kda" if g.dim() == 4 else "delta_rule"
    return _walk(name, q, k, v, {"g": g, "beta": beta}, scale, state, starts, wants_state, 5, wants_news)


def _list_kept(q, v, g, starts, wants_news):
    shapes = _segments.list_kept(q, v, g, starts) if wants_news else ()
    return *shapes, *[(0,)] * (3 - len(shapes))


def _walk_delta_back(grad, grad_last, q, k, v, g, beta, scale, state, starts, news, inverses, scores):
    of_channels = {"scores": scores} if g.dim() == 4 else {}
    given = {"g": g, "beta": beta, "news": news, "inverses": inverses, **of_channels, "s0": state, "s1": grad_last, "begins": starts}
    given = {name: x for name, x in given.items() if x is not None}
    text = _gradient_recipes.write(tuple(given), str(v.device))
    dq, dk, *others = _prepared.compute(None, (), text, (grad, q, k, v, *given.values()), (scale,), "s")
    return dq.to(q.dtype), dk.to(k.dtype), *others, *(() if state is not None else (_empty(v),))


def _make_unit_rows(q, k):
    return _launch_unit_rows((q, k), (q, k))


def _make_unit_rows_back(dq, dk, q, k):
    return _launch_unit_rows((q, k), (q, k, dq, dk), BACK=True)


def _launch_unit_rows(like, given, **parameters):
    out = tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in like)
    if out[0].numel():
        form = {"T": TYPES[out[0].dtype], "DK": out[0].shape[3], **parameters}
        kernel = _walk_recipes.find_kernel(out[0].device.type == "cpu", "unit_rows", **form)
        kernel(*map(_launches.heads_first, (*given, *out)))
    return out


def _walk_gla(q, k, v, g, scale, state, starts, wants_state):
    return _walk("gla", q, k, v, {"g": g}, scale, state, starts, wants_state)


def _walk_gla_back(grad, grad_last, q, k, v, g, scale, state, starts):
    (batch, tokens, heads, columns), channels = v.shape, q.shape[3]
    table, chunks = _packed.find_chunks(starts, tokens)
    rows = tokens if chunks is None else CHUNK * chunks.shape[1]
    new = functools.partial(torch.empty, dtype=torch.float32, device=v.device)
    of_q, of_k = (new((batch, rows, heads, channels)) for _ in range(2))
    states = v.new_empty((batch, heads, count_chunks(rows) * columns, channels))
    meets = new((batch, heads, count_chunks(rows), channels))
    (gates,), logarithms = _segments.read(v, g=g)
    first, wants_first = _launches.heads_first, state is not None
    behind = None if grad_last is None else grad_last / scale
    segments, state, behind = _begin_segments("gla", q, k, v, grad, (gates,), (scale,), logarithms, state, behind, table)
    launch_chunks = functools.partial(_launches.launch_chunks, chunks=chunks)
    given = *map(first, (q, k)), gates, *map(first, (grad, v)), scale
    launch_chunks("gla_pairs", q, v, *given, *map(first, (of_q, of_k)), DW=columns)
    walk = functools.partial(_walk_to, name="gla_bwd", scale=(scale,), heads=heads, table=segments, chunks=chunks)
    walk(of_q, q=grad, k=v, v=k, others=(gates,), state=_transposed(state), given=(states,))
    walk(of_k, q=v, k=grad, v=q, others=(gates,), state=_transposed(behind), given=(states, meets), REVERSE=True)
    named = {"out": _new_gradient(v, chunks), "table": segments, "chunks": chunks, "REVERSE": True}
    dv, before = _launches.launch("gla", k, q, grad, (gates,), (scale,), behind, wants_first, **named)
    dq, dk, dg = (_new_gradient(q, chunks, dtype=dtype) for dtype in (q.dtype, k.dtype, torch.float32))
    launch_chunks("gla_changes", q, v, *map(first, (q, k, of_q, of_k)), meets, scale, *map(first, (dq, dk, dg)))
    return dq, dk, dv, dg, scale * _of_first(before, v, table)


def _fake_outputs(q, v, starts, wants_state):
    out = torch.empty_like(v, memory_format=torch.contiguous_format)
    shape = (v.shape[0] if starts is None else starts.shape[0] - 1, v.shape[2], q.shape[3], v.shape[3]) if wants_state else (0,)
    return out, v.new_empty(shape, dtype=torch.float32)


def _fake_gradients(*tensors):
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in tensors)


def _fake_optional(x, like):
    return _empty(like) if x is None else torch.empty_like(x, memory_format=torch.contiguous_format)


def _fake_retention(q, k, v, decays, scale, state, starts, wants_state):
    return _fake_outputs(q, v, starts, wants_state)


def _fake_retention_back(grad, grad_last, q, k, v, decays, scale, state, starts):
    return *_fake_gradients(q, k, v), _fake_optional(state, v)


def _fake_ssd(q, k, v, dt, rates, skip, state, starts, wants_state):
    return _fake_outputs(q, v, starts, wants_state)


def _fake_ssd_back(grad, grad_last, q, k, v, dt, rates, skip, state, starts):
    return *_fake_gradients(q, k, v, dt, rates), *(_fake_optional(x, v) for x in (skip, state))


def _fake_gla(q, k, v, g, scale, state, starts, wants_state):
    return _fake_outputs(q, v, starts, wants_state)


def _fake_gla_back(grad, grad_last, q, k, v, g, scale, state, starts):
    return *_fake_gradients(q, k, v, g), _fake_optional(state, v)


def _fake_delta(q, k, v, g, beta, scale, state, starts, wants_state, wants_news):
    return *_fake_outputs(q, v, starts, wants_state), *map(v.new_empty, _list_kept(q, v, g, starts, wants_news))


def _fake_delta_back(grad, grad_last, q, k, v, g, beta, scale, state, starts, news, inverses, scores):
    of_gates = (_fake_gates(x) if starts is None and x.dim() == 3 else torch.empty_like(x, memory_format=torch.contiguous_format) for x in (g, beta))
    return *_fake_gradients(q, k, v), *of_gates, _fake_optional(state, v)


def _fake_gates(x):
    """Numbers of heads as kernels lay them out."""
    return _launches.new_gates(x, x.shape[0], x.shape[2], x.shape[1]).transpose(1, 2)


def _back(run, fake):
    """The gradients of an op, of which the last is that of the states before. Without tokens or heads nothing is launched."""

    def differentiate(grad, grad_last, q, k, v, *others):
        if v.numel() and q.numel():
            return run(grad, grad_last, q, k, v, *others)
        *found, first = (x.zero_() for x in fake(grad, grad_last, q, k, v, *others))
        return *found, first if grad_last is None or not first.numel() else first.copy_(grad_last)

    return differentiate


def _define(name, arguments, results, run, fake):
    """An op that a kernel computes, where launches are allowed on the device."""
    _op._library.define(f"{name}({arguments}) -> ({', '.join(['Tensor'] * results)})", tags=_op._tags)
    for key in ("CUDA", "CPU"):
        _op._library.impl(name, run, key)
    _linear.functions[name] = run
    torch.library.register_fake(f"tessera::{name}", fake, lib=_op._library)


def _mark_gradients(gradients, *inputs):
    """Those of recurrences as autograd gets them."""
    return _first_order.mark_gradients(
        "gradients of recurrences have no gradients themselves: take those of the first order",
        gradients, *(x for x in inputs if isinstance(x, torch.Tensor)),
    )  # fmt: skip


def _register_gradient(name, tensors, wants, kept=()):
    """The gradient of op `name`, of its arguments at `tensors`, by another op. `wants` is where the argument is that says whether the state
    behind is a result, and `kept` where results are that the gradient takes besides the arguments before it."""

    def setup(ctx, inputs, output):
        given = [*inputs[:wants], *(output[i] for i in kept)]
        ctx.save_for_backward(*(x for x in given if isinstance(x, torch.Tensor)))
        ctx.form = [None if isinstance(x, torch.Tensor) else (x,) for x in given]
        ctx.count, ctx.wants_state = len(inputs), inputs[wants]
        ctx.mark_non_differentiable(*(output[i] for i in kept))
        ctx.set_materialize_grads(False)

    def run(ctx, grad, grad_last, *_):
        saved = iter(ctx.saved_tensors)
        given = [next(saved) if form is None else form[0] for form in ctx.form]
        if grad is None:
            grad = torch.zeros_like(given[2], memory_format=torch.contiguous_format)
        found = _linear.call(f"{name}_backward", grad.contiguous(), grad_last if ctx.wants_state else None, *given)
        found = _mark_gradients(found, grad, grad_last, *given)
        results = [None] * ctx.count
        for place, gradient in zip(tensors, found):
            results[place] = None if given[place] is None else gradient
        return tuple(results)

    _register(name, setup, run)


def _register(name, keep, back):
    _linear.gradients[name] = keep, back
    torch.library.register_autograd(f"tessera::{name}", back, setup_context=keep, lib=_op._library)


def _save_rows(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _differentiate_rows(ctx, dq, dk):
    found = _linear.call("unit_rows_backward", dq.contiguous(), dk.contiguous(), *ctx.saved_tensors)
    return _mark_gradients(found, dq, dk, *ctx.saved_tensors)


_define("retention", "Tensor q, Tensor k, Tensor v, Tensor decays, float scale, Tensor? state, Tensor? starts, "
        "bool wants_state", 2,
        _walk_retention, _fake_retention)  # fmt: skip
_define("retention_backward", "Tensor grad, Tensor? grad_last, Tensor q, Tensor k, Tensor v, Tensor decays, float scale, Tensor? state, "
        "Tensor? starts", 4, _back(_walk_retention_back, _fake_retention_back), _fake_retention_back)  # fmt: skip
_define("ssd", "Tensor q, Tensor k, Tensor v, Tensor dt, Tensor rates, Tensor? skip, Tensor? state, Tensor? starts, "
        "bool wants_state", 2,
        _walk_ssd, _fake_ssd)  # fmt: skip
_define("ssd_backward", "Tensor grad, Tensor? grad_last, Tensor q, Tensor k, Tensor v, Tensor dt, Tensor rates, Tensor? skip, "
        "Tensor? state, Tensor? starts", 7, _back(_walk_ssd_back, _fake_ssd_back), _fake_ssd_back)  # fmt: skip
_register_gradient("retention", (0, 1, 2, 5), wants=7)
_register_gradient("ssd", (0, 1, 2, 3, 4, 5, 6), wants=8)
_define("unit_rows", "Tensor q, Tensor k", 2, _make_unit_rows, _fake_gradients)
_define("unit_rows_backward", "Tensor dq, Tensor dk, Tensor q, Tensor k", 2, _make_unit_rows_back,
        lambda dq, dk, q, k: _fake_gradients(q, k))  # fmt: skip
_register("unit_rows", _save_rows, _differentiate_rows)
_define("gla", "Tensor q, Tensor k, Tensor v, Tensor g, float scale, Tensor? state, Tensor? starts, "
        "bool wants_state", 2, _walk_gla, _fake_gla)  # fmt: skip
_define("gla_backward", "Tensor grad, Tensor? grad_last, Tensor q, Tensor k, Tensor v, Tensor g, float scale, Tensor? state, "
        "Tensor? starts", 5, _back(_walk_gla_back, _fake_gla_back), _fake_gla_back)  # fmt: skip
_register_gradient("gla", (0, 1, 2, 3, 5), wants=7)
_define("delta_rule", "Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, float scale, Tensor? state, Tensor? starts, "
        "bool wants_state, bool wants_news", 5, _walk_delta, _fake_delta)  # fmt: skip
_define("delta_rule_backward", "Tensor grad, Tensor? grad_last, Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, float scale, "
        "Tensor? state, Tensor? starts, Tensor news, Tensor inverses, Tensor scores", 6,
        _back(_walk_delta_back, _fake_delta_back), _fake_delta_back)  # fmt: skip
_register_gradient("delta_rule", (0, 1, 2, 3, 4, 6), wants=8, kept=(2, 3, 4))
