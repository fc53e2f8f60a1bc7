"""Ops of the recurrences whose gradients are the same walk of other tensors (kernels/linear/directions.tile), and those gradients:
`tessera::retention`, `tessera::ssd`, `tessera::gla`, `tessera::delta_rule` and those of their gradients. `tessera::unit_rows` divides
queries and keys by their lengths.

Tensors are [B, T, H, D] in any strides but the innermost, which is 1. Results that nobody wants are tensors without elements. `starts`
are where packed sequences begin.
"""

from __future__ import annotations

import torch

from .._attention._recurrences import GIVEN, Steps
from . import _gradient_recipes, _op, _output_recipes, _prepared, _segments, _walk_ops, _walk_recipes


def _empty(like):
    return like.new_empty(0, dtype=torch.float32)


def _walk(name, q, k, v, others, scale, state, starts, wants_state, count=2, keeps=False, made=GIVEN):
    """So many results of an op, of which those that nobody wants are empty."""
    others = {name: x for name, x in others.items() if x is not None}
    out, *found = _segments.walk(name, q, k, v, others, scale, state, starts, wants_state, keeps, made=made)
    last = found.pop(0) if wants_state else _empty(v)
    return out, last, *found, *(v.new_empty(0) for _ in range(count - 2 - len(found)))


def _walk_retention(q, k, v, decays, scale, state, starts, wants_state):
    return _walk("retention", q, k, v, {"log2_decay": decays}, scale, state, starts, wants_state)


def _differentiate(name, grad, grad_last, q, k, v, others, scale, state, starts, segments=None, wants_first=None, made=GIVEN):
    """The results of _gradient_recipes.py, and an empty one where the gradient of the states before is none of them. Of one sequence that
    is walked over in segments states and their gradients are of these."""
    others = {each: x for each, x in others.items() if x is not None}
    given = {**others, "s0": state, "s1": grad_last, "begins": starts, "table": segments and segments.table}
    names, has_first = _gradient_recipes.list_names(name, tuple(others), [each for each, x in given.items() if x is not None])
    wants_first = has_first if wants_first is None else wants_first
    text = _gradient_recipes.write(names, name, v.device, wants_first, made.made)
    results = _prepared.compute(None, (), text, (q, k, v, grad, *map(given.get, names)), *_segments.list_numbers(scale, made))
    return results if wants_first else (*results, _empty(v))


def _cut(name, grad, grad_last, q, k, v, others, scale, state, starts, made, **back):
    """(segments or None, the states before them, the gradients of those behind). `back` are parameters of walks from the end."""
    segments = _segments.cut(v) if starts is None else None
    if segments is None:
        return None, state, grad_last
    before = segments.find_states(name, q, k, v, others, scale, state, made=made)
    return segments, before, segments.find_states(name, k, q, grad, others, scale, grad_last, made=made, REVERSE=True, **back)


def _differentiate_joined(name, grad, grad_last, q, k, v, others, scale, state, starts, made=GIVEN, **back):
    """The same of a recurrence whose states are decayed sums."""
    own = {each: x for each, x in others.items() if each != "skip"}
    segments, before, behind = _cut(name, grad, grad_last, q, k, v, own, scale, state, starts, made, **back)
    wants_first = state is not None
    *found, first = _differentiate(name, grad, behind, q, k, v, others, scale, before, starts, segments, wants_first, made)
    return *found, first[:1] if wants_first and segments is not None else first


def _walk_retention_back(grad, grad_last, q, k, v, decays, scale, state, starts):
    return _differentiate_joined("retention", grad, grad_last, q, k, v, {"log2_decay": decays}, scale, state, starts)


def _walk_ssd(q, k, v, dt, rates, bias, numbers, skip, z, state, starts, made, least, most, wants_state, wants_ungated):
    others = {"dt": dt, "rates": rates, "bias": bias, "numbers": numbers, "skip": skip, "z": z}
    keeps = z is not None and wants_ungated
    return _walk("ssd", q, k, v, others, None, state, starts, wants_state, 3, keeps, Steps(made, least, most))


def _walk_ssd_back(grad, grad_last, q, k, v, dt, rates, bias, numbers, skip, z, state, starts, made, least, most, ungated):
    none, made = _empty(v), Steps(made, least, most)
    found = _differentiate_outputs(grad, v if skip is not None and skip.dim() == 2 else None, z, ungated, starts)
    grad = found.get("dy", grad)
    others = {"dt": dt, "rates": rates, "bias": bias, "numbers": numbers, "skip": skip}
    *results, first = _differentiate_joined("ssd", grad, grad_last, q, k, v, others, None, state, starts, made, STEPS="own")
    dq, dk, dv, dt, of_rates, *results = results
    of_bias = none if bias is None else results.pop(0)
    of_skip = results[0] if results else found.get("dskip", none)
    return dq, dk, dv, dt, of_rates, of_bias, of_skip, found.get("dz", none), first


def _differentiate_outputs(grad, v, z, ungated, starts):
    """What _output_recipes.py gives, by names: of values where a number of each element is given, and of z, which may be None."""
    given = {"y": None if z is None else ungated, "z": z, "v": v, "begins": starts}
    names, results = _output_recipes.list_names([name for name, x in given.items() if x is not None])
    if not results:
        return {}
    text = _output_recipes.write(names, grad.device)
    return dict(zip(results, _prepared.compute(None, (), text, (grad, *map(given.get, names)))))


def _walk_delta(q, k, v, g, beta, scale, state, starts, wants_state, wants_news):
    name = "kda" if g.dim() == 4 else "delta_rule"
    return _walk(name, q, k, v, {"g": g, "beta": beta}, scale, state, starts, wants_state, 5, wants_news)


def _list_kept(q, v, g, starts, wants_news):
    shapes = _segments.list_kept(q, v, g, starts) if wants_news else ()
    return *shapes, *[(0,)] * (3 - len(shapes))


def _walk_delta_back(grad, grad_last, q, k, v, g, beta, scale, state, starts, news, inverses, scores):
    given, states = {"g": g, "beta": beta, "news": news, "inverses": inverses}, (scale, state, starts)
    if g.dim() == 3:
        return _differentiate("delta_rule", grad, grad_last, q, k, v, given, *states)
    return _walk_channels_back(grad, grad_last, q, k, v, {**given, "scores": scores}, *states)


def _walk_channels_back(grad, grad_last, q, k, v, given, scale, state, starts):
    dv, *kept, first = _differentiate("kda", grad, grad_last, q, k, v, given, scale, state, starts)
    # By a call of its own: memory of its results is what the walks no longer need.
    given = {**{name: given[name] for name in ("g", "beta", "news")}, **dict(zip(("states", "back", "meets"), kept)), "dv": dv}
    dq, dk, dg, dbeta, _ = _differentiate("channels", grad, None, q, k, v, given, scale, None, starts)
    return dq, dk, dv, dg, dbeta, first


def _make_unit_rows(q, k):
    return _compute_units(q, k) if q.numel() else _fake_gradients(q, k)


def _make_unit_rows_back(dq, dk, q, k):
    return _compute_units(q, k, dq, dk) if q.numel() else _fake_gradients(q, k)


def _compute_units(q, *others):
    return _prepared.compute(None, (), _walk_recipes.write_units(q.device, len(others) > 1), (q, *others))


def _walk_gla(q, k, v, g, scale, state, starts, wants_state):
    return _walk("gla", q, k, v, {"g": g}, scale, state, starts, wants_state)


def _walk_gla_back(grad, grad_last, q, k, v, g, scale, state, starts):
    dv, *kept, first = _differentiate_joined("gla", grad, grad_last, q, k, v, {"g": g}, scale, state, starts)
    # By a call of its own: memory of its results is what the walks no longer need.
    given = {"g": g, **dict(zip(("states", "back", "meets"), kept))}
    dq, dk, dg, _ = _differentiate("gla_gradients", grad, None, q, k, v, given, scale, None, starts)
    return dq, dk, dv, dg, first


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


def _fake_ssd(q, k, v, dt, rates, bias, numbers, skip, z, state, starts, made, least, most, wants_state, wants_ungated):
    ungated = torch.empty_like(v, memory_format=torch.contiguous_format) if z is not None and wants_ungated else v.new_empty(0)
    return *_fake_outputs(q, v, starts, wants_state), ungated


def _fake_ssd_back(grad, grad_last, q, k, v, dt, rates, bias, numbers, skip, z, state, starts, made, least, most, ungated):
    of_gates = _fake_gates(dt, starts), *_fake_gradients(rates)
    return *_fake_gradients(q, k, v), *of_gates, *(_fake_optional(x, v) for x in (bias, skip, z, state))


def _fake_gla(q, k, v, g, scale, state, starts, wants_state):
    return _fake_outputs(q, v, starts, wants_state)


def _fake_gla_back(grad, grad_last, q, k, v, g, scale, state, starts):
    return *_fake_gradients(q, k, v), _fake_channels(g), _fake_optional(state, v)


def _fake_delta(q, k, v, g, beta, scale, state, starts, wants_state, wants_news):
    return *_fake_outputs(q, v, starts, wants_state), *map(v.new_empty, _list_kept(q, v, g, starts, wants_news))


def _fake_delta_back(grad, grad_last, q, k, v, g, beta, scale, state, starts, news, inverses, scores):
    of_g = _fake_gates(g, starts) if g.dim() == 3 else _fake_channels(g)
    return *_fake_gradients(q, k, v), of_g, _fake_gates(beta, starts), _fake_optional(state, v)


def _fake_channels(x):
    return torch.empty_like(x, dtype=torch.float32, memory_format=torch.contiguous_format)


def _fake_gates(x, starts):
    """Numbers of heads [B, T, H], in the order of kernels but for those of packed sequences."""
    batch, tokens, heads = x.shape
    padded = _walk_recipes.pad_gates(tokens)
    strides = (heads * padded, 1, padded) if starts is None else (heads * tokens, heads, 1)
    return x.new_empty_strided((batch, tokens, heads), strides, dtype=torch.float32)


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
    _walk_ops.functions[name] = run
    torch.library.register_fake(f"tessera::{name}", fake, lib=_op._library)


def _register_gradient(name, tensors, wants, kept=()):
    """The gradient of op `name`, of its arguments at `tensors`, by another op. `wants` is where the argument is that says whether the state
    behind is a result, and `kept` where results are that the gradient takes besides the arguments before it."""

    def setup(ctx, inputs, output):
        of_forward = [output[i] for i in kept]
        # What nobody wants is not saved, as functions past the dispatcher save none: checkpoints count tensors.
        given = [*inputs[:wants], *[x if x.dim() > 1 else None for x in of_forward]]
        # A generator would cost a call for each tensor.
        ctx.save_for_backward(*[x for x in given if isinstance(x, torch.Tensor)])
        # Each attribute of a context costs the host time.
        ctx.known = [None if isinstance(x, torch.Tensor) else (x,) for x in given], len(inputs), inputs[wants]
        ctx.set_materialize_grads(False)
        if of_forward:
            ctx.mark_non_differentiable(*of_forward)

    def run(ctx, grad, grad_last, *_):
        (forms, count, wants_state), saved = ctx.known, iter(ctx.saved_tensors)
        given = [next(saved) if form is None else form[0] for form in forms]
        given[wants:] = [given[0].new_empty(0) if x is None else x for x in given[wants:]]
        found = _walk_ops.differentiate(name, grad, grad_last if wants_state else None, given)
        results = [None] * count
        for place, gradient in zip(tensors, found):
            results[place] = None if given[place] is None else gradient
        return tuple(results)

    _register(name, setup, run)


def _register(name, keep, back):
    _walk_ops.gradients[name] = keep, back
    torch.library.register_autograd(f"tessera::{name}", back, setup_context=keep, lib=_op._library)


def _save_rows(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _differentiate_rows(ctx, dq, dk):
    return _walk_ops.differentiate_units(dq, dk, *ctx.saved_tensors)


_define("retention", "Tensor q, Tensor k, Tensor v, Tensor decays, float scale, Tensor? state, Tensor? starts, "
        "bool wants_state", 2,
        _walk_retention, _fake_retention)  # fmt: skip
_define("retention_backward", "Tensor grad, Tensor? grad_last, Tensor q, Tensor k, Tensor v, Tensor decays, float scale, Tensor? state, "
        "Tensor? starts", 4, _back(_walk_retention_back, _fake_retention_back), _fake_retention_back)  # fmt: skip
_of_ssd = ("Tensor q, Tensor k, Tensor v, Tensor dt, Tensor rates, Tensor? bias, Tensor? numbers, Tensor? skip, Tensor? z, "
           "Tensor? state, Tensor? starts, str made, float least, float most")  # fmt: skip
_define("ssd", f"{_of_ssd}, bool wants_state, bool wants_ungated", 3, _walk_ssd, _fake_ssd)
_define("ssd_backward", f"Tensor grad, Tensor? grad_last, {_of_ssd}, Tensor ungated", 9,
        _back(_walk_ssd_back, _fake_ssd_back), _fake_ssd_back)  # fmt: skip
_register_gradient("retention", (0, 1, 2, 5), wants=7)
_register_gradient("ssd", (0, 1, 2, 3, 4, 5, 7, 8, 9), wants=14, kept=(2,))
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
