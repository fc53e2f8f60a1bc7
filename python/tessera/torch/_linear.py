"""Recurrences whose state stays on the chip: retention, gated attention, state-space duality and delta rules.

Tensors are [B, T, H, D] in any strides but the innermost, which is 1. docs/recurrences.md says what is supported.
"""

from __future__ import annotations

import math

import torch

from .._attention import _recurrences, _variants
from . import _direct, _kept, _op, _prepared, _segments, _step_recipes, _walk_calls, _walk_ops
from ._types import TYPES

_PLAIN = torch.Tensor, torch.nn.Parameter
_GATES = torch.float32, *TYPES
_SCALES = {float, int, type(None)}


def _refuse_shape(name, tensor, wanted):
    raise ValueError(f"argument '{name}' has shape {tuple(tensor.shape)}; {wanted} would work")


def _check_gradients(kernel, **tensors):
    """Whether gradients are wanted of these, of which the first are values. In their walks the columns of values are rows of a state."""
    _op.check_tangents(tensors, *tensors.values())
    name, v = next(iter(tensors.items()))
    wanted, widths = _walk_ops.wants_gradients(*tensors.values()), _list_widths(kernel)
    if wanted and v.shape[3] not in widths:
        among = ", ".join(map(str, widths))
        raise ValueError(f"argument '{name}' has a head dimension of {v.shape[3]}, of which there are no gradients; {among} would work")
    return wanted


def _check_tensor(name, tensor, of, shape, dtype):
    """Refuses a tensor that is not of this shape and type, and on the device of `of`."""
    if tuple(tensor.shape) != tuple(shape):
        _refuse_shape(name, tensor, tuple(shape))
    if tensor.dtype != dtype:
        raise TypeError(f"argument '{name}' has type {tensor.dtype}; {dtype} would work")
    if tensor.device != of.device:
        raise ValueError(f"argument '{name}' is on {tensor.device} and another one on {of.device}; they must be equal")


def _check_gates(of, **gates):
    """Refuses gates, rates and steps, given as (tensor or None, shape), that are not of this shape, of floating point and on the device
    of `of`."""
    for name, (tensor, shape) in gates.items():
        if tensor is not None:
            _check_tensor(name, tensor, of, shape, tensor.dtype)
            if not tensor.is_floating_point():
                raise TypeError(f"argument '{name}' has type {tensor.dtype}; torch.float32 and other types of floating point would work")


@_op.mark_constant
def _list_widths(kernel):
    # Found in files, into which Dynamo does not follow.
    return _recurrences.list_widths(kernel)


def _refuse_starts(starts, batch, device):
    """Refuses what are no starts of sequences."""
    if starts.dim() != 1 or starts.shape[0] < 2:
        raise ValueError(f"argument 'cu_seqlens' has shape {tuple(starts.shape)}; (sequences + 1,) would work")
    if starts.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"argument 'cu_seqlens' has type {starts.dtype}; torch.int32 and torch.int64 would work")
    if starts.device != device:
        raise ValueError(f"argument 'cu_seqlens' is on {starts.device} and another one on {device}; they must be equal")
    if batch != 1:
        raise ValueError(
            f"argument 'cu_seqlens' is given for a batch of {batch}; sequences one behind the other in a batch of 1 would work"
        )


def _check(kernel, names, q, k, v, state, of_state, starts=None, **gates):
    """Refuses what no kernel takes of the tensors that each recurrence has, and gates that are no tensors."""
    of_q, of_k, of_v = names
    _op.check_types({of_q: q, of_k: k, of_v: v, **gates}, {of_state: state, "cu_seqlens": starts})
    for name, tensor in zip(names, (q, k, v)):
        if tensor.dim() != 4:
            _refuse_shape(name, tensor, "4 dimensions, [batch, tokens, heads, head dimension],")
        if tensor.stride(3) != 1:
            raise ValueError(f"argument '{name}' has stride {tensor.stride(3)} in its last dimension; .contiguous() would work")
    if q.dtype not in TYPES:
        raise TypeError(f"argument '{of_q}' has type {q.dtype}; torch.bfloat16 and torch.float16 would work")
    widths = _list_widths(kernel)
    if q.shape[3] not in widths:
        raise ValueError(f"argument '{of_q}' has a head dimension of {q.shape[3]}; {', '.join(map(str, widths))} would work")
    if v.shape[2] and (not q.shape[2] or v.shape[2] % q.shape[2]):
        raise ValueError(f"argument '{of_v}' has {v.shape[2]} heads and '{of_q}' {q.shape[2]}; a multiple of these would work")
    if v.shape[3] % 8:
        raise ValueError(f"argument '{of_v}' has a head dimension of {v.shape[3]}; a multiple of 8 would work")
    batch, tokens, heads, columns = v.shape
    if starts is not None:
        _refuse_starts(starts, batch, q.device)
    states = batch if starts is None else starts.shape[0] - 1
    _check_tensor(of_q, q, q, (batch, tokens, *q.shape[2:]), q.dtype)
    _check_tensor(of_k, k, q, q.shape, q.dtype)
    _check_tensor(of_v, v, q, v.shape, q.dtype)
    if state is not None:
        _check_tensor(of_state, state, q, (states, heads, q.shape[3], columns), torch.float32)
    if not _op.runs_on(q.device):
        raise ValueError(
            f"argument '{of_q}' is on {q.device}; recurrences run on CUDA devices of compute capability 9.0: move it there, or call "
            "tessera.torch.use_interpreter() to run tests on the CPU"
        )


def _steps(v, state, wants_state):
    """Whether a call is a step of decoding: one token, with a state before it and behind. A step is no op: what traces or transforms
    calls gets the walk."""
    if _direct.is_traced():
        return False
    return v.shape[1] == 1 and state is not None and wants_state and v.numel() > 0


def _recall(name, given, wants_state, *options, numbers=None):
    """(a key, the results) of a call as `_prepared.recall` has them. `given` are its tensors, of which the last are the state before and
    where packed sequences begin."""
    v, state, starts = given[2], given[-2], given[-1]
    steps = wants_state and starts is None and isinstance(v, torch.Tensor) and v.dim() == 4 and _steps(v, state, wants_state)
    key, results = _prepared.recall(given, name, steps, bool(wants_state), *options, numbers=numbers)
    return key, results if results is None or wants_state else (results, None)


def _recall_scaled(name, given, wants_state, scale, *options):
    """`_recall` of calls that differ in their scale. One that is no plain number is read anew."""
    if type(scale) not in _SCALES:
        return None, None
    return _recall(name, given, wants_state, *options, numbers=(scale if scale is None else float(scale),))


def _launch_step(known, q, k, v, scale, constants={}, made=_recurrences.GIVEN, delta=False, norm=False, steps=False, **others):
    """The output of one token and the state behind it, from tensors as _step_recipes.py has them, the last ones of which are `constants`.
    `known` are what further calls are known by and given."""
    text = _step_recipes.write([*others, *constants], made.made, device=str(q.device), delta=delta, norm=norm, steps=steps)
    numbers, kinds = _segments.list_numbers(_read_scale(scale), made)
    return _prepared.compute(*known, text, (q, k, v, *others.values()), numbers, kinds, tuple(constants.values()))


def _take_gates(x):
    """Gates, and numbers of sequences, of a type that what is launched copies itself."""
    return x if x.dtype in _GATES or not x.is_floating_point() else x.float()


def _give_gates(key, *gates):
    """Gates as an op gets them: in graphs, which have no key, of float32."""
    return [x.float() if key is None else _take_gates(x) for x in gates]


def _is_alone(wants_gradients, given):
    """Whether nothing sees a call of tensors, of which some may be None, or wants gradients of it: then it needs no op."""
    return not (wants_gradients or _direct.is_seen()) and all(x is None or type(x) in _PLAIN for x in given)


def _walk(known, name, q, k, v, scale, state, starts, wants_state, constants={}, norm=False, made=_recurrences.GIVEN, **others):
    """(outputs, state behind or None) of a call that is alone, as `_segments.walk` computes them of its arguments."""
    named = {"norm": norm, "constants": constants, "known": known, "made": made}
    results = _segments.walk(name, q, k, v, others, _read_scale(scale), state, starts, bool(wants_state), **named)
    return results if wants_state else (*results, None)


def _read_scale(scale, default=None):
    """A scale as a number. A tensor would lose its gradient."""
    if scale is None:
        return default
    problem = _op.find_number_problem("scale", scale, "multiply 'q' by it")
    if problem is None and _variants.read_number(scale) is None:
        problem = TypeError(f"argument 'scale' is {scale!r}; a number or None would work")
    if problem is not None:
        raise problem
    return float(scale)


def _default_scale(scale, q):
    return _read_scale(scale, 1 / math.sqrt(q.shape[3]))


@_kept.kept
def _make_decays(heads, device):
    """`_recurrences.list_decays` on a device."""
    return torch.log2(1 - torch.exp2(-5 - torch.arange(heads, dtype=torch.float64, device=device))).float()


@_kept.kept
def _make_step_gates(heads, device):
    return math.log(2) * _make_decays(heads, device)


def _find_step_gates(heads, device):
    """Gates and rates of a step of retention, [H]."""
    return {"g": _make_step_gates(heads, device), "rates": _kept.full((heads,), 1.0, torch.float32, device)}


def retention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float | None = None,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: torch.Tensor | None = None,
    **others: object,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Retention (Sun et al. 2023): o_t = scale q_t S_t with S_t = g S_(t-1) + k_t^T v_t, where g = 1 - 2^(-5 - h) of head h.

    q, k: [B, T, H, K], v: [B, T, H, V], initial_state: [B, H, K, V] of float32. Returns (o, final state or None), as
    `chunk_retention` of flash-linear-attention does. The scale is 1 / sqrt(K) where it is None. With `cu_seqlens`, [sequences + 1] of
    int32 or int64, the batch is 1 and sequence i has the tokens from the i-th of these up to the next, and a state of its own. Others are
    arguments of that function that change nothing (docs/recurrences.md).
    """
    if others:
        _recurrences.refuse_others("retention", others)
    given = q, k, v, initial_state, cu_seqlens
    # Which decays are kept for a key follows from the number of heads.
    heads = v.shape[2] if isinstance(v, torch.Tensor) and v.dim() == 4 else None
    key, results = _recall_scaled("retention", given, output_final_state, scale, heads)
    if results is not None:
        return results
    _check("retention", ("q", "k", "v"), q, k, v, initial_state, "initial_state", cu_seqlens)
    decays = _make_decays(v.shape[2], v.device)
    wants_gradients = _check_gradients("retention", v=v, q=q, k=k, initial_state=initial_state)
    if _steps(v, initial_state, output_final_state) and not wants_gradients and cu_seqlens is None:
        return _launch_step((key, given), q, k, v, scale, _find_step_gates(v.shape[2], v.device), s0=initial_state)
    if _is_alone(wants_gradients, given):
        before = scale, initial_state, cu_seqlens, output_final_state
        return _walk((key, given), "retention", q, k, v, *before, {"log2_decay": decays})
    named = dict(zip(("q", "k", "v", "s0", "begins"), given))
    _walk_calls.keep(key, named, "retention", output_final_state, constants={"log2_decay": decays})
    out, last = _walk_ops.call("retention", q, k, v, decays, _default_scale(scale, q), initial_state, cu_seqlens, output_final_state)
    return out, last if output_final_state else None


def gated_delta_rule(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    scale: float | None = None,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: torch.Tensor | None = None,
    *,
    use_gate_in_kernel: bool = False,
    A_log: torch.Tensor | None = None,
    dt_bias: torch.Tensor | None = None,
    lower_bound: float | None = None,
    safe_gate: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    **others: object,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The gated delta rule (Yang et al. 2024): S_t = exp(g_t) S_(t-1) + k_t^T u_t with u_t = beta_t (v_t - exp(g_t) k_t S_(t-1)), and
    o_t = scale q_t S_t.

    q, k: [B, T, H, K], v: [B, T, HV, V] with HV a multiple of H, g (logarithms) and beta: [B, T, HV], initial_state:
    [B, HV, K, V] of float32. Returns (o, final state or None), as `chunk_gated_delta_rule` of flash-linear-attention does.
    With g of [B, T, H, K] each channel of the keys has its own gate, as in Kimi Delta Attention (`chunk_kda`). Keys have length 1,
    which `use_qk_l2norm_in_kernel` sees to: beyond sqrt(2 / beta) the state grows without end, and from 256 on products of keys, which
    are float16, overflow. The scale is 1 / sqrt(K) where it is None. `cu_seqlens` are starts of packed sequences, as of `retention`.

    With `use_gate_in_kernel` gates are -exp(A_log) softplus(g + dt_bias), or lower_bound sigmoid(exp(A_log) (g + dt_bias)), of A_log of [H]
    and dt_bias of [H] or, of channels, [H K]. With `use_beta_sigmoid_in_kernel` rates are sigmoid(beta), twice that with
    `allow_neg_eigval`. With `state_v_first` states are [B, HV, V, K]. Others are arguments of those functions that change nothing
    (docs/recurrences.md).
    """
    if others:
        state_v_first = others.pop("transpose_state_layout", False) or state_v_first
        _recurrences.refuse_others("gated_delta_rule", others)
    if use_gate_in_kernel or allow_neg_eigval or not (A_log is None and dt_bias is None and lower_bound is None):
        options = A_log, dt_bias, lower_bound, safe_gate, use_beta_sigmoid_in_kernel, allow_neg_eigval
        _recurrences.refuse_gate_options(use_gate_in_kernel, *options)
    state, of_state = _turn_state(initial_state) if state_v_first else (initial_state, "initial_state")
    if use_gate_in_kernel or use_beta_sigmoid_in_kernel:
        _check_delta_rule(q, k, v, g, beta, state, of_state, cu_seqlens)
        _op.check_types({}, {"A_log": A_log, "dt_bias": dt_bias})
        g = _make_gates(g, A_log, dt_bias, lower_bound) if use_gate_in_kernel else g
        beta = torch.sigmoid(beta.float()) if use_beta_sigmoid_in_kernel else beta
        beta = 2 * beta if allow_neg_eigval else beta
    out, last = _apply_delta_rule(q, k, v, g, beta, scale, state, of_state, output_final_state, use_qk_l2norm_in_kernel, cu_seqlens)
    return out, last.transpose(2, 3) if state_v_first and last is not None else last


def _turn_state(state):
    """States [V, K] as kernels have them, and by which name refusals call them."""
    return state.transpose(2, 3) if isinstance(state, torch.Tensor) and state.dim() == 4 else state, "initial_state.mT"


def _make_gates(g, A_log, bias, lower_bound):
    """Logarithms of factors of heads or of channels, of checked numbers `g`."""

    def lay_out(name, x, *extents):
        if x.numel() != math.prod(extents):
            _refuse_shape(name, x, (math.prod(extents),))
        if x.device != g.device or not x.is_floating_point():
            _check_gates(g, **{name: (x, x.shape)})
        return x.reshape(extents).float()

    heads, channels = g.shape[2], g.shape[3:]
    wide = g.float() if bias is None else g.float() + lay_out("dt_bias", bias, heads, *channels)
    rates = None if A_log is None else lay_out("A_log", A_log, heads, *(1 for _ in channels)).exp()
    if lower_bound is None:
        return -rates * torch.nn.functional.softplus(wide)
    return lower_bound * torch.sigmoid(wide if rates is None else rates * wide)


def _check_delta_rule(q, k, v, g, beta, state, of_state, starts):
    """Refuses what no kernel takes, and gives the name of one that does."""
    of_channels = isinstance(g, torch.Tensor) and g.dim() == 4
    kernel = "kda" if of_channels else "delta_rule"
    _check(kernel, ("q", "k", "v"), q, k, v, state, of_state, starts, g=g, beta=beta)
    _check_gates(q, g=(g, q.shape if of_channels else v.shape[:3]), beta=(beta, v.shape[:3]))
    return kernel


def _apply_delta_rule(q, k, v, g, beta, scale, initial_state, of_state, output_final_state, use_qk_l2norm_in_kernel, cu_seqlens):
    """`gated_delta_rule` of gates and rates, and of states [B, HV, K, V]."""
    given, norm = (q, k, v, g, beta, initial_state, cu_seqlens), bool(use_qk_l2norm_in_kernel)
    of_channels = isinstance(g, torch.Tensor) and g.dim() == 4
    key, results = _recall_scaled("gated_delta_rule", given, output_final_state, scale, norm, of_channels)
    if results is not None:
        return results
    kernel = _check_delta_rule(q, k, v, g, beta, initial_state, of_state, cu_seqlens)
    wants_gradients = _check_gradients(kernel, v=v, q=q, k=k, g=g, beta=beta, initial_state=initial_state)
    if _steps(v, initial_state, output_final_state) and not wants_gradients and cu_seqlens is None:
        g, beta = map(_take_gates, (g, beta))
        return _launch_step((key, given), q, k, v, scale, delta=True, norm=norm, g=g, rates=beta, s0=initial_state)
    if _is_alone(wants_gradients, given):
        before = scale, initial_state, cu_seqlens, output_final_state
        return _walk((key, given), kernel, q, k, v, *before, norm=norm, g=_take_gates(g), beta=_take_gates(beta))
    named = dict(zip(("q", "k", "v", "g", "beta", "s0", "begins"), given))
    _walk_calls.keep(key, named, kernel, output_final_state, norm=norm)
    if norm:
        q, k = _walk_ops.call("unit_rows", q, k)
    own = q, k, v, *_give_gates(key, g, beta), _default_scale(scale, q), initial_state, cu_seqlens
    out, last, *_ = _walk_ops.call("delta_rule", *own, output_final_state, wants_gradients)
    return out, last if output_final_state else None


def gla(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    scale: float | None = None,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: torch.Tensor | None = None,
    *,
    state_v_first: bool = False,
    **others: object,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Gated linear attention (Yang et al. 2024): o_t = scale q_t S_t with S_t = exp(g_t)^T * S_(t-1) + k_t^T v_t.

    q, k, g (finite logarithms): [B, T, H, K], v: [B, T, HV, V] with HV a multiple of H, initial_state: [B, HV, K, V] of float32.
    Returns (o, final state or None), as `chunk_gla` of flash-linear-attention does. The scale is 1 / sqrt(K) where it is None. `cu_seqlens`
    are starts of packed sequences, as of `retention`. With `state_v_first` states are [B, HV, V, K]. Others are arguments of that function
    that change nothing (docs/recurrences.md).
    """
    if others:
        _recurrences.refuse_others("gla", others)
    state, of_state = _turn_state(initial_state) if state_v_first else (initial_state, "initial_state")
    out, last = _apply_gla(q, k, v, g, scale, state, of_state, output_final_state, cu_seqlens)
    return out, last.transpose(2, 3) if state_v_first and last is not None else last


def _apply_gla(q, k, v, g, scale, initial_state, of_state, output_final_state, cu_seqlens):
    """`gla` of states [B, HV, K, V]."""
    given = q, k, v, g, initial_state, cu_seqlens
    key, results = _recall_scaled("gla", given, output_final_state, scale)
    if results is not None:
        return results
    _check("gla", ("q", "k", "v"), q, k, v, initial_state, of_state, cu_seqlens, g=g)
    _check_gates(q, g=(g, q.shape))
    wants_gradients = _check_gradients("gla", v=v, q=q, k=k, g=g, initial_state=initial_state)
    if _steps(v, initial_state, output_final_state) and not wants_gradients and cu_seqlens is None:
        rates = _kept.full((v.shape[2],), 1.0, torch.float32, v.device)
        return _launch_step((key, given), q, k, v, scale, {"rates": rates}, g=_take_gates(g), s0=initial_state)
    if _is_alone(wants_gradients, given):
        return _walk((key, given), "gla", q, k, v, scale, initial_state, cu_seqlens, output_final_state, g=_take_gates(g))
    _walk_calls.keep(key, dict(zip(("q", "k", "v", "g", "s0", "begins"), given)), "gla", output_final_state)
    own = q, k, v, *_give_gates(key, g), _default_scale(scale, q), initial_state, cu_seqlens
    out, last = _walk_ops.call("gla", *own, output_final_state)
    return out, last if output_final_state else None


def ssd(
    x: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor | None = None,
    dt_bias: torch.Tensor | None = None,
    initial_states: torch.Tensor | None = None,
    dt_softplus: bool = False,
    return_final_states: bool = False,
    cu_seqlens: torch.Tensor | None = None,
    *,
    z: torch.Tensor | None = None,
    dt_limit: tuple[float, float] = _recurrences.POSITIVE,
    seq_idx: torch.Tensor | None = None,
    chunk_size: int | None = None,
    **others: object,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """State-space duality (Mamba-2, Dao and Gu 2024): y_t = C_t S_t + D x_t with S_t = exp(dt_t A) S_(t-1) + dt_t B_t^T x_t.

    x: [B, T, H, P], dt: [B, T, H], A, dt_bias: [H], D: [H] or [H, P], B, C: [B, T, G, N] with H a multiple of G, initial_states:
    [B, H, P, N] of float32. Returns y, or (y, final states), as `mamba_chunk_scan_combined` of mamba-ssm does. With z, [B, T, H, P], y is
    times silu(z). Steps are kept within `dt_limit`, behind the bias and the softplus, so that negative ones count as 0 where no limits are
    given; (-math.inf, math.inf) leaves steps as they are. Any `chunk_size` gives the same: kernels have one of their own.

    `seq_idx`, [B, T] of int32 or int64, are numbers of sequences that lie one behind the other: where the number changes the state before
    is forgotten. Initial states are those of sequences with the number 0. `cu_seqlens` are starts of packed sequences in its place, as of
    `retention`, and states are of each. Others are arguments of that function that change nothing (docs/recurrences.md).
    """
    if others:
        _recurrences.refuse_others("ssd", others)
    dt_limit = _recurrences.read_ssd_options(dt_limit, chunk_size)
    state = initial_states.transpose(2, 3) if isinstance(initial_states, torch.Tensor) and initial_states.dim() == 4 else initial_states
    given = C, B, x, dt, A, dt_bias, seq_idx, D, z, state, cu_seqlens
    # What gradients launch follows from whether D is of elements.
    key, results = _recall("ssd", given, return_final_states, isinstance(D, torch.Tensor) and D.dim() == 2, bool(dt_softplus), *dt_limit)
    if results is None:
        _check_ssd(x, dt, A, B, C, D, dt_bias, initial_states, cu_seqlens, z, seq_idx)
        _check_gradients("ssd", x=x, dt=dt, A=A, B=B, C=C, D=D, dt_bias=dt_bias, initial_states=state, z=z)
        steps = _recurrences.find_steps(dt_softplus, dt_bias is not None, *dt_limit)
        results = _compute_ssd(key, given, return_final_states, steps)
    y, last = results
    return (y, last.transpose(2, 3)) if return_final_states else y


def _check_ssd(x, dt, A, B, C, D, dt_bias, initial_states, cu_seqlens, z, seq_idx):
    _check("ssd", ("C", "B", "x"), C, B, x, None, "initial_states", cu_seqlens, dt=dt, A=A)
    _op.check_types({}, {"D": D, "dt_bias": dt_bias, "initial_states": initial_states, "z": z, "seq_idx": seq_idx})
    if initial_states is not None:
        sequences = x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
        _check_tensor("initial_states", initial_states, x, (sequences, x.shape[2], x.shape[3], B.shape[3]), torch.float32)
    of_heads = x.shape[2:3]
    of_skip = of_heads if D is None or D.dim() != 2 else x.shape[2:]
    _check_gates(x, dt=(dt, x.shape[:3]), A=(A, of_heads), D=(D, of_skip), dt_bias=(dt_bias, of_heads), z=(z, x.shape))
    if seq_idx is not None:
        _recurrences.refuse_numbers(cu_seqlens)
        _check_tensor("seq_idx", seq_idx, x, x.shape[:2], torch.int64 if seq_idx.dtype == torch.int64 else torch.int32)


def _compute_ssd(key, given, wants_state, steps):
    """(outputs, states behind or None) of checked tensors, of which states are [B, H, N, P], and Steps."""
    C, B, x, dt, A, bias, numbers, D, z, state, starts = given
    wants_gradients = _walk_ops.wants_gradients(*given)
    # In the order of what is given, as plans ask.
    others = {name: _take_gates(x) for name, x in (("bias", bias), ("numbers", numbers), ("skip", D), ("z", z)) if x is not None}
    if _steps(x, state, wants_state) and not wants_gradients and starts is None and numbers is None:
        own = {"rates": _take_gates(dt), "g": _take_gates(A), **others}
        return _launch_step((key, given), C, B, x, 1.0, made=steps, steps=True, **own, s0=state)
    if _is_alone(wants_gradients, given):
        own = {"dt": _take_gates(dt), "rates": _take_gates(A), **others}
        return _walk((key, given), "ssd", C, B, x, None, state, starts, wants_state, made=steps, **own)
    names = "q", "k", "v", "dt", "rates", "bias", "numbers", "skip", "z", "s0", "begins"
    _walk_calls.keep(key, dict(zip(names, given)), "ssd", wants_state, made=steps)
    dt, A, bias, skip = (x if x is None else _give_gates(key, x)[0] for x in (dt, A, bias, D))
    if key is None:  # As graphs have them.
        A, bias, skip, state = (x if x is None else x.contiguous() for x in (A, bias, skip, state))
    own = C, B, x, dt, A, bias, numbers, skip, others.get("z"), state, starts
    y, last, _ = _walk_ops.call("ssd", *own, *steps, wants_state, wants_gradients)
    return y, last if wants_state else None
