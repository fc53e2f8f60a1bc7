"""Recurrences for JAX, with gradients by rules of their own, those of the first order.

Arrays are [B, T, H, D]. docs/recurrences.md says what is computed; the walks are those of tessera.torch.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp

from .._attention._recurrences import POSITIVE, list_widths, read_ssd_options
from .._attention._recurrences import refuse_gate_options, refuse_numbers, refuse_others
from .._core import _library
from . import _packed, _walks
from ._checks import check_arrays, check_number


@functools.lru_cache(maxsize=256)
def _make(kind, form, scale, starts, wants_state, packed, steps):
    """A recurrence of arrays, and of a state where it `starts` with one, and of the four tables of `packed` sequences, that gives
    (outputs,) or (outputs, the state behind). Where nothing keeps what gradients need, a recurrence that `steps` is one of one token."""

    def split(arrays):
        walks, arrays = kind(*form), list(arrays)
        if packed:
            *arrays, walks.table, walks.chunks = *arrays[:-4], arrays[-4:-2], arrays[-2:]
        state = arrays.pop() if starts else None
        return walks, arrays, state

    def compute(arrays, keeps):
        walks, arrays, state = split(arrays)
        out, last, kept = walks.run(scale, state, wants_state, keeps, *arrays)
        return ((out, last) if wants_state else (out,)), kept

    @jax.custom_vjp
    def run(*arrays):
        if steps:
            walks, arrays, state = split(arrays)
            return walks.step(scale, state, *arrays)
        return compute(arrays, keeps=False)[0]

    def forward(*arrays):
        outputs, kept = keep(arrays)
        return outputs, (arrays, kept)

    @_of_first_order
    def keep(arrays):
        return compute(arrays, keeps=True)

    @_of_first_order
    def differentiate(arrays, kept, gradients):
        walks, own, state = split(arrays)
        found, first = walks.run_back(scale, state, gradients[0], gradients[1] if wants_state else None, kept, *own)
        found = [None if gradient is None else gradient.astype(x.dtype) for gradient, x in zip(found, own)]
        return (*found, *([first] if starts else []), *([None] * 4 if packed else []))

    run.defvjp(forward, lambda residuals, gradients: differentiate(*residuals, gradients))
    return run


def _of_first_order(function):
    """A part of a rule of differentiation, which has no gradient itself."""
    run = jax.custom_vjp(function)
    run.defvjp(_refuse_gradients, lambda residuals, gradients: None)
    return run


def _refuse_gradients(*arrays):
    raise NotImplementedError(
        "gradients of recurrences have no gradients themselves: take those of the first order, or put these behind jax.lax.stop_gradient"
    )


def _check(kernel, names, arrays, state, of_state, starts=None, **gates):
    """Refuses what no kernel takes of the arrays that each recurrence has, and gates that are no arrays."""
    (of_q, of_k, of_v), (q, k, v) = names, arrays
    optional = {of_state: state, "cu_seqlens": starts}
    check_arrays({**dict(zip(names, arrays)), **gates, **{name: x for name, x in optional.items() if x is not None}})
    for name, x in zip(names, arrays):
        if x.ndim != 4:
            raise ValueError(f"argument '{name}' has shape {x.shape}; 4 dimensions, [batch, tokens, heads, head dimension], would work")
    if q.dtype.name not in _library.QUERY_TYPES:
        raise TypeError(f"argument '{of_q}' has type {q.dtype}; bfloat16 and float16 would work")
    widths = list_widths(kernel)
    for name, x in ((of_q, q), (of_v, v)):
        if x.shape[3] not in widths:
            among = ", ".join(map(str, widths))
            raise ValueError(f"argument '{name}' has a head dimension of {x.shape[3]}; {among} would work")
    if not q.shape[2] or v.shape[2] % q.shape[2]:
        raise ValueError(f"argument '{of_v}' has {v.shape[2]} heads and '{of_q}' {q.shape[2]}; a multiple of these would work")
    _check_array(of_k, k, q.shape, q.dtype)
    _check_array(of_v, v, (*q.shape[:2], *v.shape[2:]), q.dtype)
    if 0 in v.shape:
        raise ValueError(f"argument '{of_v}' has shape {v.shape}; one without 0 would work")
    if starts is not None:
        if starts.ndim != 1 or starts.shape[0] < 2:
            raise ValueError(f"argument 'cu_seqlens' has shape {starts.shape}; (sequences + 1,) would work")
        if not jnp.issubdtype(starts.dtype, jnp.integer):
            raise TypeError(f"argument 'cu_seqlens' has type {starts.dtype}; int32 would work")
        if v.shape[0] != 1:
            raise ValueError(
                f"argument 'cu_seqlens' is given for a batch of {v.shape[0]}; sequences one behind the other in a batch of 1 would work"
            )
    sequences = v.shape[0] if starts is None else starts.shape[0] - 1
    if state is not None:
        _check_array(of_state, state, (sequences, v.shape[2], q.shape[3], v.shape[3]), jnp.dtype(jnp.float32))


def _check_array(name, x, shape, dtype=None):
    if x.shape != tuple(shape):
        raise ValueError(f"argument '{name}' has shape {x.shape}; {tuple(shape)} would work")
    if dtype is not None and x.dtype != dtype:
        raise TypeError(f"argument '{name}' has type {x.dtype}; {dtype} would work")


def _check_gates(**gates):
    """Refuses gates, rates and steps, given as (array or None, shape), that are not of this shape and of floating point."""
    for name, (x, shape) in gates.items():
        if x is not None:
            _check_array(name, x, shape)
            if not jnp.issubdtype(x.dtype, jnp.floating):
                raise TypeError(f"argument '{name}' has type {x.dtype}; float32 and other types of floating point would work")


def _recur(kind, form, scale, arrays, whole, state, wants_state, starts):
    """The outputs and the state behind. Rows of gates begin at multiples of 16 bytes, so tokens are padded with zeros, which change
    nothing, in all arrays but those that are `whole`. Packed sequences have gates in chunks."""
    tokens, tables = arrays[0].shape[1], ()
    if starts is not None:
        tables = _packed.make_tables(starts, tokens)
    elif kind is not _walks.Retention:
        arrays = [jnp.pad(x, ((0, 0), (0, -tokens % 4), *[(0, 0)] * (x.ndim - 2))) for x in arrays]
    steps = tokens == 1 and state is not None and wants_state and not tables
    run = _make(kind, form, scale, state is not None, wants_state, bool(tables), steps)
    others = [*([] if state is None else [state]), *tables]
    out, *last = run(*arrays, *whole, *others)
    return out[:, :tokens], last[0] if last else None


def _default_scale(scale, q):
    if scale is None:
        return 1 / math.sqrt(q.shape[3])
    check_number("scale", scale, ", or multiply 'q' by it")
    if isinstance(scale, str) or not hasattr(scale, "__float__"):
        raise TypeError(f"argument 'scale' is {scale!r}; a number or None would work")
    return float(scale)


def retention(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    scale: float | None = None,
    initial_state: jax.Array | None = None,
    output_final_state: bool = False,
    cu_seqlens: jax.Array | None = None,
    **others: object,
) -> tuple[jax.Array, jax.Array | None]:
    """Retention: (o, final state or None), as `tessera.torch.retention`."""
    refuse_others("retention", others)
    _check("retention", ("q", "k", "v"), (q, k, v), initial_state, "initial_state", cu_seqlens)
    scale = _default_scale(scale, q)
    return _recur(_walks.Retention, (v.shape[2],), scale, (q, k, v), (), initial_state, output_final_state, cu_seqlens)


def gated_delta_rule(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    g: jax.Array,
    beta: jax.Array,
    scale: float | None = None,
    initial_state: jax.Array | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: jax.Array | None = None,
    *,
    use_gate_in_kernel: bool = False,
    A_log: jax.Array | None = None,
    dt_bias: jax.Array | None = None,
    lower_bound: float | None = None,
    safe_gate: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    **others: object,
) -> tuple[jax.Array, jax.Array | None]:
    """The gated delta rule: (o, final state or None), as `tessera.torch.gated_delta_rule`."""
    state_v_first = others.pop("transpose_state_layout", False) or state_v_first
    refuse_others("gated_delta_rule", others)
    options = A_log, dt_bias, lower_bound, safe_gate, use_beta_sigmoid_in_kernel, allow_neg_eigval
    refuse_gate_options(use_gate_in_kernel, *options)
    state, of_state = _turn_state(initial_state, state_v_first)
    of_channels = getattr(g, "ndim", None) == 4
    kernel = "kda" if of_channels else "delta_rule"
    _check(kernel, ("q", "k", "v"), (q, k, v), state, of_state, cu_seqlens, g=g, beta=beta)
    _check_gates(g=(g, q.shape if of_channels else v.shape[:3]), beta=(beta, v.shape[:3]))
    check_arrays({name: x for name, x in (("A_log", A_log), ("dt_bias", dt_bias)) if x is not None})
    g = _make_gates(g, A_log, dt_bias, lower_bound) if use_gate_in_kernel else g
    beta = jax.nn.sigmoid(beta.astype(jnp.float32)) if use_beta_sigmoid_in_kernel else beta
    beta = 2 * beta if allow_neg_eigval else beta
    if use_qk_l2norm_in_kernel:
        q, k = (_normalize(x) for x in (q, k))
    arrays = (q, k, v, g.astype(jnp.float32), beta.astype(jnp.float32))
    out, last = _recur(_walks.Delta, (), _default_scale(scale, q), arrays, (), state, output_final_state, cu_seqlens)
    return out, _walks.transpose(last) if state_v_first else last


def _turn_state(state, is_turned):
    """States as kernels have them, and by which name refusals call them."""
    if not is_turned:
        return state, "initial_state"
    return _walks.transpose(state) if getattr(state, "ndim", None) == 4 else state, "initial_state.mT"


def _make_gates(g, A_log, bias, lower_bound):
    """Logarithms of factors of heads or of channels, of checked numbers `g`."""

    def lay_out(name, x, *extents):
        if x.size != math.prod(extents):
            _check_array(name, x, (math.prod(extents),))
        _check_gates(**{name: (x, x.shape)})
        return x.reshape(extents).astype(jnp.float32)

    heads, channels = g.shape[2], g.shape[3:]
    wide = g.astype(jnp.float32) + (0 if bias is None else lay_out("dt_bias", bias, heads, *channels))
    rates = 1 if A_log is None else jnp.exp(lay_out("A_log", A_log, heads, *(1 for _ in channels)))
    return -rates * jax.nn.softplus(wide) if lower_bound is None else lower_bound * jax.nn.sigmoid(rates * wide)


def _normalize(x):
    wide = x.astype(jnp.float32)
    return (wide / jnp.maximum(jnp.linalg.norm(wide, axis=-1, keepdims=True), 1e-6)).astype(x.dtype)


def gla(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    g: jax.Array,
    scale: float | None = None,
    initial_state: jax.Array | None = None,
    output_final_state: bool = False,
    cu_seqlens: jax.Array | None = None,
    *,
    state_v_first: bool = False,
    **others: object,
) -> tuple[jax.Array, jax.Array | None]:
    """Gated linear attention: (o, final state or None), as `tessera.torch.gla`."""
    refuse_others("gla", others)
    state, of_state = _turn_state(initial_state, state_v_first)
    _check("gla", ("q", "k", "v"), (q, k, v), state, of_state, cu_seqlens, g=g)
    _check_gates(g=(g, q.shape))
    arrays = (q, k, v, g.astype(jnp.float32))
    out, last = _recur(_walks.Gla, (), _default_scale(scale, q), arrays, (), state, output_final_state, cu_seqlens)
    return out, _walks.transpose(last) if state_v_first else last


def ssd(
    x: jax.Array,
    dt: jax.Array,
    A: jax.Array,
    B: jax.Array,
    C: jax.Array,
    D: jax.Array | None = None,
    dt_bias: jax.Array | None = None,
    initial_states: jax.Array | None = None,
    dt_softplus: bool = False,
    return_final_states: bool = False,
    cu_seqlens: jax.Array | None = None,
    *,
    z: jax.Array | None = None,
    dt_limit: tuple[float, float] = POSITIVE,
    seq_idx: jax.Array | None = None,
    chunk_size: int | None = None,
    **others: object,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """State-space duality: y, or (y, final states), as `tessera.torch.ssd`."""
    refuse_others("ssd", others)
    dt_limit = read_ssd_options(dt_limit, chunk_size)
    _check("ssd", ("C", "B", "x"), (C, B, x), None, "initial_states", cu_seqlens, dt=dt, A=A)
    given = {"D": D, "dt_bias": dt_bias, "initial_states": initial_states, "z": z, "seq_idx": seq_idx}
    check_arrays({name: array for name, array in given.items() if array is not None})
    heads = x.shape[2]
    of_skip = x.shape[2:] if D is not None and D.ndim == 2 else (heads,)
    _check_gates(dt=(dt, x.shape[:3]), A=(A, (heads,)), D=(D, of_skip), dt_bias=(dt_bias, (heads,)), z=(z, x.shape))
    if seq_idx is not None:
        refuse_numbers(cu_seqlens)
        _check_array("seq_idx", seq_idx, x.shape[:2])
        if not jnp.issubdtype(seq_idx.dtype, jnp.integer):
            raise TypeError(f"argument 'seq_idx' has type {seq_idx.dtype}; int32 would work")
    if initial_states is not None:
        sequences = x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
        _check_array("initial_states", initial_states, (sequences, heads, x.shape[3], B.shape[3]), jnp.dtype(jnp.float32))
    steps = dt.astype(jnp.float32) + (0 if dt_bias is None else dt_bias.astype(jnp.float32))
    if dt_softplus:
        steps = jax.nn.softplus(steps)
    least, most = dt_limit
    # A step at a limit has its gradient, of which jnp.clip takes a half.
    steps = jnp.where(steps < least, least, jnp.where(steps > most, most, steps))
    resets = None if seq_idx is None else _find_resets(seq_idx)
    z = None if z is None else z if z.dtype.name in _library.QUERY_TYPES else z.astype(jnp.float32)
    of_tokens = {name: array for name, array in (("resets", resets), ("z", z)) if array is not None}
    whole = {"rates": A, "skip": D}
    whole = {name: array.astype(jnp.float32) for name, array in whole.items() if array is not None}
    form, arrays = (*of_tokens, *whole), (C, B, x, steps, *of_tokens.values())
    y, last = _recur(_walks.Ssd, (form,), 1.0, arrays, whole.values(), _walks.transpose(initial_states), return_final_states, cu_seqlens)
    return (y, _walks.transpose(last)) if return_final_states else y


def _find_resets(numbers):
    """1 where a token forgets all, as its number is not that of the token before, of the first one 0, and else 0."""
    return (numbers != jnp.pad(numbers, ((0, 0), (1, 0)))[:, :-1]).astype(jnp.float32)
