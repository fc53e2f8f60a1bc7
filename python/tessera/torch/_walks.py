"""Ops of the recurrences whose gradients are the same walk of other tensors (kernels/linear/directions.tile), and those gradients:
`tessera::retention`, `tessera::ssd`, `tessera::gla`, `tessera::delta_rule` and those of their gradients.

Tensors are [B, T, H, D] in any strides but the innermost, which is 1. Results that nobody wants are tensors without elements. Two tables
say which chunks packed sequences have, and which tokens these (_packed.py).
"""

from __future__ import annotations

import functools
import math

import torch

from .._attention._recurrences import CHUNK
from . import _linear, _op, _packed, _segments


def _empty(like):
    return like.new_empty(0, dtype=torch.float32)


def _transposed(state):
    return None if state is None else state.transpose(2, 3).contiguous()


def _sum_of_shared(q, heads, walk):
    """What `walk` writes of a tensor of q's shape, which several heads of values may share: added up in f32, then rounded."""
    out, adds = _new_of_shared(q, heads)
    walk(out, ADD=adds)
    return out.to(q.dtype)


def _new_of_shared(q, heads):
    """(memory for a tensor of q's shape, whether walks add to it)."""
    if heads == q.shape[2]:
        return torch.empty_like(q, memory_format=torch.contiguous_format), False
    return torch.zeros(q.shape, dtype=torch.float32, device=q.device), True


def _walk_to(out, name, q, k, v, others, scale, state, heads, **parameters):
    _linear.launch(name, q, k, v, others, scale, state, False, out=out, heads=heads, **parameters)
    return out


def _begin_segments(name, q, k, v, grad, others, scale, logarithms, state, grad_last, rows, **back):
    """(segments, states, gradients of the states behind) of segments that one sequence is cut into, or what is given. `back` are parameters
    of the walk from the end that gives the gradient of the values."""
    segments = _segments.cut(v, rows)
    if segments is None:
        return rows, state, grad_last
    find = functools.partial(segments.find_states, name, others=others, scale=scale, logarithms=logarithms)
    return segments, find(q, k, v, state=state), find(k, q, grad, state=grad_last, REVERSE=True, **back)


def _of_first(first, v, rows):
    """The gradients of the states before sequences, of those before segments too."""
    return _empty(v) if first is None else first[: rows.sequences]


def _logarithms(decays, v):
    return (math.log(2) * decays).expand(*v.shape[:3])


def _walk_retention(q, k, v, decays, scale, state, table, chunks, wants_state):
    rows = _packed.lay_out(v, table, chunks)
    out, last = _segments.walk("retention", q, k, v, (decays,), (scale,), state, wants_state, _logarithms(decays, v), rows)
    return out, _empty(v) if last is None else last


def _walk_retention_back(grad, grad_last, q, k, v, decays, scale, state, table, chunks):
    rows = _packed.lay_out(v, table, chunks)
    heads, wants_first = v.shape[2], state is not None
    form = (decays,), (scale,), _logarithms(decays, v)
    parts, state, grad_last = _begin_segments("retention", q, k, v, grad, *form, state, grad_last, rows)
    walk = functools.partial(_walk_to, name="retention", others=(decays,), scale=(scale,), heads=heads, rows=parts)
    dq = _sum_of_shared(q, heads, lambda out, **adds: walk(out, q=grad, k=v, v=k, state=_transposed(state), **adds))
    dk = _sum_of_shared(k, heads, lambda out, **adds: walk(out, q=v, k=grad, v=q, state=_transposed(grad_last), REVERSE=True, **adds))
    dv, first = _linear.launch("retention", k, q, grad, (decays,), (scale,), grad_last, wants_first, rows=parts, REVERSE=True)
    return dq, dk, dv, _of_first(first, v, rows)


def _walk_ssd(q, k, v, dt, rates, skip, state, table, chunks, wants_state):
    rows = _packed.lay_out(v, table, chunks)
    gates = _linear.lay_out_gates(rows.lay_out(dt))
    others = (gates, rates, gates, *(() if skip is None else (skip,)))
    out, last = _segments.walk("ssd", q, k, v, others, (), state, wants_state, rates * dt, rows, SKIP=skip is not None)
    return out, _empty(v) if last is None else last


def _sum_changes(changes, meets, rows, tokens):
    """The gradient of each logarithm of a factor, [B, T, H] or [B, T, H, K]: the sums over what comes behind of dq q - dk k, and what the
    last state adds. Of a chunk that is what the state before it and its gradient have in common, [B, H, N] or [B, H, N, K], less what
    stands before the token. `changes` lie as gates of heads do."""
    changes = rows.cut(changes)
    before = changes.cumsum(2) - changes
    return rows.restore(meets.transpose(1, 2).unsqueeze(2) - before, tokens)


class _GatedWalks:
    """Walks of ssd.tile for the gradient of a recurrence with gates of a head, of which `v` has the columns: where states meet their
    gradients, and sums of rows. `q` are queries, or what has their shape."""

    def __init__(self, q, v, gates, rates, rows, chunks):
        batch, _, self.heads, columns = v.shape
        self.gates, self.rates, self.rows = gates, rates, rows
        width = q.shape[3]
        parts = -(-width // _linear.choose("ssd", v.device, rows.sequences, self.heads, columns, width)["DV"])
        self.parts = batch, self.heads, parts
        self.states = v.new_empty((batch, self.heads, chunks * columns, width))
        self.chunks = chunks

    def _new(self, extent):
        return torch.zeros((*self.parts, extent), dtype=torch.float32, device=self.states.device)

    def run(self, out, q, k, v, w, steps, state, meets=None, **parameters):
        """Sums of the rows of the outputs times `w`, [B, T, H]. `meets` gets sums of the products of the states and those of the walk
        that kept its own (KEEP)."""
        sums = self._new(self.gates.shape[2])
        kept = (self.states, meets) if meets is not None else (self.states,) if parameters.get("KEEP") else ()
        others = (self.gates, self.rates, steps, _linear.heads_first(w), sums, *kept)
        _walk_to(out, "ssd", q, k, v, others, (), state, self.heads, rows=self.rows, SUMS=True, **parameters)
        return sums.sum(2).transpose(1, 2)

    def run_back(self, *arguments, **parameters):
        """Sums of rows, and of products of states for each chunk, [B, H, N]."""
        meets = self._new(self.chunks)
        return self.run(*arguments, meets=meets, REVERSE=True, MEET=True, **parameters), meets.sum(2)


def _walk_ssd_back(grad, grad_last, q, k, v, dt, rates, skip, state, table, chunks):
    rows = _packed.lay_out(v, table, chunks)
    heads, wants_first = v.shape[2], state is not None
    gates = _linear.lay_out_gates(rows.lay_out(dt))
    others = gates, rates, gates
    form = others, (), rates * dt
    parts, state, grad_last = _begin_segments("ssd", q, k, v, grad, *form, state, grad_last, rows, STEPS="own")
    walks, found = _GatedWalks(q, v, gates, rates, parts, rows.chunks), {}

    def walk_q(out, **adds):
        found["q"] = walks.run(out, grad, v, k, q, walks.gates, _transposed(state), KEEP=True, **adds)

    def walk_k(out, **adds):
        found["k"] = walks.run_back(out, v, grad, q, k, walks.gates, _transposed(grad_last), STEPS="own", **adds)

    dq, dk = _sum_of_shared(q, heads, walk_q), _sum_of_shared(k, heads, walk_k)
    others += () if skip is None else (skip,)
    back = {"SKIP": skip is not None, "REVERSE": True, "STEPS": "own"}
    dv, first = _linear.launch("ssd", k, q, grad, others, (), grad_last, wants_first, rows=parts, **back)
    (of_k, meets), tokens = found["k"], v.shape[1]
    dg = _sum_changes(found["q"] - gates.transpose(1, 2) * of_k, meets, rows, tokens)
    of_k = rows.restore_rows(of_k, tokens)
    dskip = _empty(v) if skip is None else torch.einsum("bthv,bthv->h", grad.float(), v.float())
    return dq, dk, dv, rates * dg + of_k, (dg * dt).sum((0, 1)), dskip, _of_first(first, v, rows)


def _lay_out_rates(g, beta, rows):
    """Gates, of heads or of channels, and rates as kernels take them."""
    gates = _linear.heads_first(g.contiguous()) if g.dim() == 4 else _linear.lay_out_gates(rows.lay_out(g))
    return gates, _linear.lay_out_gates(rows.lay_out(beta))


def _list_kept(v, rows):
    """The shapes of the news of values and of the inverses."""
    batch, _, heads, columns = v.shape
    return (batch, rows, heads, columns), (batch, heads, rows, CHUNK)


def _walk_delta(q, k, v, g, beta, scale, state, table, chunks, wants_state, wants_news):
    rows = _packed.lay_out(v, table, chunks)
    news, inverses = map(v.new_empty, _list_kept(v, rows.rows) if wants_news else ((0,), (0,)))
    given = (_linear.heads_first(news), inverses) if wants_news else ()
    name = "kda" if g.dim() == 4 else "delta_rule"
    rates = _lay_out_rates(g, beta, rows)
    out, last = _linear.launch(name, q, k, v, rates, (scale,), state, wants_state, rows=rows, given=given, NEWS=wants_news)
    return out, _empty(v) if last is None else last, news, inverses


def _walk_delta_back(grad, grad_last, q, k, v, g, beta, scale, state, table, chunks, news, inverses):
    rows = _packed.lay_out(v, table, chunks)
    (batch, tokens, heads, columns), channels = v.shape, q.shape[3]
    name, back = ("kda_bwd", _walk_channels_back) if g.dim() == 4 else ("delta_rule_bwd", _walk_heads_back)
    new = functools.partial(torch.empty, dtype=torch.float32, device=v.device)
    wants_first = state is not None
    if table is not None and state is None:
        state = new((rows.sequences, heads, channels, columns)).zero_()
    parts = -(-columns // _linear.choose(name, q.device, rows.sequences, heads, channels, columns)["DV"])
    meets = new((batch, heads, parts, rows.chunks * channels)).zero_()
    # What stays where there is no token.
    first = None if state is None else torch.zeros_like(state) if grad_last is None else grad_last.clone()
    before = () if state is None else (state.contiguous(), first)
    rates = *_lay_out_rates(g, beta, rows), _linear.heads_first(news), inverses
    launch = functools.partial(_linear.launch, name, FINAL=state is not None, rows=rows, given=before)
    (dq, adds), (dk, _) = (_new_of_shared(x, heads) for x in (q, k))
    dv, dbeta = torch.empty_like(v, memory_format=torch.contiguous_format), _linear.new_gates(v, batch, heads, rows.rows)
    changes = back(launch, grad, grad_last, q, k, v, rates, scale, rows, adds, meets, dq, dk, dv, dbeta)
    # States have their rows beside chunks and their columns in parts.
    meets = meets.unflatten(3, (-1, channels)).sum(2)
    dg = _sum_changes(changes, _sum_heads(meets, g.shape[2]) if g.dim() == 4 else meets.sum(3), rows, tokens)
    dbeta = rows.restore_rows(dbeta.transpose(1, 2), tokens).contiguous()
    return dq.to(q.dtype), dk.to(k.dtype), dv, dg, dbeta, first if wants_first else _empty(v)


def _walk_heads_back(launch, grad, grad_last, q, k, v, rates, scale, rows, adds, meets, dq, dk, dv, dbeta):
    batch, _, heads, columns = v.shape
    changes = _linear.new_gates(v, batch, heads, rows.rows)
    results = *map(_linear.heads_first, (dq, dk)), meets, changes, dbeta
    others = _linear.heads_first(grad), *rates
    launch(q, k, v, others, (scale,), grad_last, False, out=dv, ADD=adds, DW=columns, results=results)
    return changes.transpose(1, 2)


def _walk_channels_back(launch, grad, grad_last, q, k, v, rates, scale, rows, adds, meets, dq, dk, dv, dbeta):
    batch, _, heads, columns = v.shape
    of_news = v.new_empty((batch, rows.rows, heads, columns))
    states = [v.new_empty((batch, heads, rows.chunks * q.shape[3], columns)) for _ in range(2)]
    launch(q, k, grad, rates, (scale,), grad_last, False, out=of_news, results=(*states, meets))
    changes = torch.zeros((batch, rows.rows, *q.shape[2:]), dtype=torch.float32, device=v.device)
    g, beta, news, _ = rates
    first = _linear.heads_first
    q, k, v, grad, g = map(rows.lay_out, (q, k, v, grad, first(g)))
    results = [rows.new_rows(x) for x in (dq, dk, dv)]
    _linear.launch_chunks(
        "kda_gradients", q, v, _packed.Whole(*v.shape[:2]), *map(first, (q, k, v)), news, first(grad), first(of_news), first(g), beta,
        *states, scale, *map(first, (*results, changes)), dbeta, ADD=adds,
    )  # fmt: skip
    for x, laid in zip((dq, dk, dv), results):
        if laid is not x:
            x.copy_(rows.restore_rows(laid, x.shape[1]))
    return changes


def _walk_gla(q, k, v, g, scale, state, table, chunks, wants_state):
    rows = _packed.lay_out(v, table, chunks)
    out, last = _segments.walk("gla", q, k, v, (_linear.heads_first(g.contiguous()),), (scale,), state, wants_state, g, rows)
    return out, _empty(v) if last is None else last


def _sum_group(x, heads):
    """Sums of what heads of values have that share one of `heads`, [B, T, heads, K]."""
    return x.unflatten(2, (heads, -1)).sum(3)


def _sum_heads(meets, heads):
    """Sums of what heads of values have that share one of `heads`, [B, heads, N, K]."""
    return meets.unflatten(1, (heads, -1)).sum(2)


def _walk_gla_back(grad, grad_last, q, k, v, g, scale, state, table, chunks):
    rows = _packed.lay_out(v, table, chunks)
    batch, tokens, heads, columns = v.shape
    of_keys, channels = q.shape[2:]
    new = functools.partial(torch.empty, dtype=torch.float32, device=v.device)
    pairs_q, pairs_k, dq, dk = (new((batch, count, heads, channels)) for count in (rows.rows, rows.rows, tokens, tokens))
    states = v.new_empty((batch, heads, rows.chunks * columns, channels))
    meets = new((batch, heads, rows.chunks, channels))
    gates = _linear.heads_first(g.contiguous())
    first, wants_first = _linear.heads_first, state is not None
    behind = None if grad_last is None else grad_last / scale
    segments, state, behind = _begin_segments("gla", q, k, v, grad, (gates,), (scale,), g, state, behind, rows)
    _linear.launch_chunks(
        "gla_pairs", q, v, rows, *map(first, (q, k)), gates, *map(first, (grad, v)), scale, *map(first, (pairs_q, pairs_k))
    )
    walk = functools.partial(_walk_to, name="gla_bwd", scale=(scale,), heads=heads, rows=segments)
    own, of_grad = map(rows.lay_out, (v, grad))
    walk(dq, q=grad, k=own, v=k, others=(gates, first(pairs_q)), state=_transposed(state), given=(states,))
    walk(dk, q=v, k=of_grad, v=q, others=(gates, first(pairs_k)), state=_transposed(behind), given=(states, meets), REVERSE=True)
    dv, before = _linear.launch("gla", k, q, grad, (gates,), (scale,), behind, wants_first, rows=segments, REVERSE=True)
    changes = _sum_group(dq, of_keys) * q - _sum_group(dk, of_keys) * k
    dg = _sum_changes(rows.lay_out(changes), scale * _sum_heads(meets, of_keys), rows, tokens)
    dq, dk = (_sum_group(x, of_keys).to(q.dtype) for x in (dq, dk))
    return dq, dk, dv, dg, scale * _of_first(before, v, rows)


def _fake_outputs(q, v, table, wants_state):
    out = torch.empty_like(v, memory_format=torch.contiguous_format)
    shape = (v.shape[0] if table is None else table.shape[1], v.shape[2], q.shape[3], v.shape[3]) if wants_state else (0,)
    return out, v.new_empty(shape, dtype=torch.float32)


def _fake_gradients(*tensors):
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in tensors)


def _fake_retention(q, k, v, decays, scale, state, table, chunks, wants_state):
    return _fake_outputs(q, v, table, wants_state)


def _fake_retention_back(grad, grad_last, q, k, v, decays, scale, state, table, chunks):
    return *_fake_gradients(q, k, v), _empty(v) if state is None else torch.empty_like(state)


def _fake_ssd(q, k, v, dt, rates, skip, state, table, chunks, wants_state):
    return _fake_outputs(q, v, table, wants_state)


def _fake_ssd_back(grad, grad_last, q, k, v, dt, rates, skip, state, table, chunks):
    others = (_empty(v) if x is None else torch.empty_like(x) for x in (skip, state))
    return *_fake_gradients(q, k, v, dt, rates), *others


def _fake_gla(q, k, v, g, scale, state, table, chunks, wants_state):
    return _fake_outputs(q, v, table, wants_state)


def _fake_gla_back(grad, grad_last, q, k, v, g, scale, state, table, chunks):
    return *_fake_gradients(q, k, v, g), _empty(v) if state is None else torch.empty_like(state)


def _fake_delta(q, k, v, g, beta, scale, state, table, chunks, wants_state, wants_news):
    rows = v.shape[1] if table is None else CHUNK * chunks.shape[1]
    shapes = _list_kept(v, rows) if wants_news else ((0,), (0,))
    return *_fake_outputs(q, v, table, wants_state), *map(v.new_empty, shapes)


def _fake_delta_back(grad, grad_last, q, k, v, g, beta, scale, state, table, chunks, news, inverses):
    return *_fake_gradients(q, k, v, g, beta), _empty(v) if state is None else torch.empty_like(state)


def _define(name, arguments, results, run, fake):
    """An op that a kernel computes, where launches are allowed on the device."""
    _op._library.define(f"{name}({arguments}) -> ({', '.join(['Tensor'] * results)})", tags=_op._tags)
    for key in ("CUDA", "CPU"):
        _op._library.impl(name, run, key)
    _linear.functions[name] = run
    torch.library.register_fake(f"tessera::{name}", fake, lib=_op._library)


def _register_gradient(name, backward, tensors, wants, kept=()):
    """The gradient of op `name`, of its arguments at `tensors`. `wants` is where the argument is that says whether the state behind is a
    result, and `kept` where results are that the gradient takes besides the arguments before it."""

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
        found = backward(grad.contiguous(), grad_last if ctx.wants_state else None, *given)
        results = [None] * ctx.count
        for place, gradient in zip(tensors, found):
            results[place] = None if given[place] is None else gradient
        return tuple(results)

    torch.library.register_autograd(f"tessera::{name}", run, setup_context=setup, lib=_op._library)


_define("retention", "Tensor q, Tensor k, Tensor v, Tensor decays, float scale, Tensor? state, Tensor? table, "
        "Tensor? chunks, bool wants_state", 2,
        _walk_retention, _fake_retention)  # fmt: skip
_define("retention_backward", "Tensor grad, Tensor? grad_last, Tensor q, Tensor k, Tensor v, Tensor decays, float scale, Tensor? state, "
        "Tensor? table, Tensor? chunks", 4, _walk_retention_back, _fake_retention_back)  # fmt: skip
_define("ssd", "Tensor q, Tensor k, Tensor v, Tensor dt, Tensor rates, Tensor? skip, Tensor? state, Tensor? table, "
        "Tensor? chunks, bool wants_state", 2,
        _walk_ssd, _fake_ssd)  # fmt: skip
_define("ssd_backward", "Tensor grad, Tensor? grad_last, Tensor q, Tensor k, Tensor v, Tensor dt, Tensor rates, Tensor? skip, "
        "Tensor? state, Tensor? table, Tensor? chunks", 7, _walk_ssd_back, _fake_ssd_back)  # fmt: skip
_register_gradient("retention", torch.ops.tessera.retention_backward.default, (0, 1, 2, 5), wants=8)
_register_gradient("ssd", torch.ops.tessera.ssd_backward.default, (0, 1, 2, 3, 4, 5, 6), wants=9)
_define("gla", "Tensor q, Tensor k, Tensor v, Tensor g, float scale, Tensor? state, Tensor? table, "
        "Tensor? chunks, bool wants_state", 2,
        _walk_gla, _fake_gla)  # fmt: skip
_define("gla_backward", "Tensor grad, Tensor? grad_last, Tensor q, Tensor k, Tensor v, Tensor g, float scale, Tensor? state, "
        "Tensor? table, Tensor? chunks", 5, _walk_gla_back, _fake_gla_back)  # fmt: skip
_register_gradient("gla", torch.ops.tessera.gla_backward.default, (0, 1, 2, 3, 5), wants=8)
_define("delta_rule", "Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, float scale, Tensor? state, Tensor? table, "
        "Tensor? chunks, bool wants_state, bool wants_news", 4, _walk_delta, _fake_delta)  # fmt: skip
_define("delta_rule_backward", "Tensor grad, Tensor? grad_last, Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, float scale, "
        "Tensor? state, Tensor? table, Tensor? chunks, Tensor news, Tensor inverses", 6, _walk_delta_back, _fake_delta_back)  # fmt: skip
_register_gradient("delta_rule", torch.ops.tessera.delta_rule_backward.default, (0, 1, 2, 3, 4, 6), wants=9, kept=(2, 3))
