"""Recurrences whose state stays on the chip: retention, gated attention, state-space duality and delta rules.

Tensors are [B, T, H, D] in any strides but the innermost, which is 1. docs/recurrences.md says what is supported.
"""

from __future__ import annotations

import functools
import math

import torch

from .._attention import _recurrences
from . import _compute, _direct, _kept, _kernels, _op, _packed, _prepared, _step_recipes
from ._step_recipes import choose
from ._types import TYPES

#: What ops compute, by their names, and of those with gradients what keeps tensors for them and what gives them (_walks.py).
functions, gradients = {}, {}
_PLAIN = torch.Tensor, torch.nn.Parameter
_are_transforms_active = torch._C._are_functorch_transforms_active
_GATES = torch.float32, *TYPES

# Gates of a head start at multiples of so many, as copies take them.
_GATES_APART = 4


class _Learned(torch.autograd.Function):
    """A function with its gradient, as the op of its name has it."""

    @staticmethod
    def forward(ctx, name, *arguments):
        output = functions[name](*arguments)
        keep, ctx.back = gradients[name]
        keep(ctx, arguments, output)
        return output

    @staticmethod
    def backward(ctx, *grads):
        return None, *ctx.back(ctx, *grads)


class _Transformed(torch.autograd.Function):
    """The same where torch.func transforms calls, whose setup costs the host more."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name, *arguments):
        return call(name, *arguments)

    @staticmethod
    def setup_context(ctx, inputs, output):
        name, *arguments = inputs
        keep, ctx.back = gradients[name]
        keep(ctx, arguments, output)

    backward = _Learned.backward


def call(name, *arguments):
    """What an op gives: past PyTorch's dispatcher and its autograd of ops in Python, which cost the host time, where nobody sees ops."""
    learns, wants = torch.is_grad_enabled(), False
    for x in arguments:
        if isinstance(x, torch.Tensor):
            if type(x) not in _PLAIN:
                break
            wants = wants or learns and x.requires_grad
    else:
        if not _direct.is_seen():
            if not wants:
                return functions[name](*arguments)
            if name in gradients:
                return _Learned.apply(name, *arguments)
    if _are_transforms_active() and name in gradients and _wants_gradients(*(x for x in arguments if isinstance(x, torch.Tensor))):
        return _Transformed.apply(name, *arguments)
    return getattr(torch.ops.tessera, name)(*arguments)


def find_kernel(name, q, **parameters):
    return _kernels.find(q.device.type == "cpu", _recurrences.find_source(name), **parameters)


def _refuse_shape(name, tensor, wanted):
    raise ValueError(f"argument '{name}' has shape {tuple(tensor.shape)}; {wanted} would work")


def _wants_gradients(*tensors):
    return torch.is_grad_enabled() and _op.require_grad(*(x for x in tensors if x is not None))


def _check_gradients(kernel, **tensors):
    """Whether gradients are wanted of these, of which the first are values. In their walks the columns of values are rows of a state."""
    _op.check_tangents(tensors, *tensors.values())
    name, v = next(iter(tensors.items()))
    wanted, widths = _wants_gradients(*tensors.values()), _list_widths(kernel)
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
        _packed.refuse(starts, batch, q.device)
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


def heads_first(tensor):
    return tensor.transpose(1, 2)


def new_gates(like, batch, heads, tokens):
    """Memory for [B, H, T] of float32, of which each head starts at a multiple of 16 bytes."""
    padded = -(-tokens // _GATES_APART) * _GATES_APART
    return like.new_empty((batch, heads, padded), dtype=torch.float32)[:, :, :tokens]


def lay_out_gates(tensor, chunks=None):
    if chunks is not None:
        tensor = _packed.take_chunks(tensor, chunks)
    batch, tokens, heads = tensor.shape
    return new_gates(tensor, batch, heads, tokens).copy_(heads_first(tensor))


class Beside:
    """A stream beside that of a call, for a walk that others do not wait for: few blocks walk over few sequences, and leave multiprocessors
    idle. Its tensors are of the call's stream, which waits for its end."""

    def __init__(self, device):
        self.own = torch.cuda.current_stream(device) if device.type == "cuda" else None
        self.held = None

    def begin(self, *held):
        """What a launch is given. Tensors that are `held` stay until the end."""
        if self.own is None:
            return {}
        self.held = held
        other = _find_beside(self.own)
        other.wait_stream(self.own)
        return {"stream": other}

    def end(self):
        if self.held is not None:
            self.own.wait_stream(_find_beside(self.own))
            self.held = None


@functools.lru_cache(maxsize=64)
def _find_beside(stream):
    """One for each stream, so that what one captures holds no launch of another."""
    return torch.cuda.Stream(stream.device)


def launch(name, q, k, v, others, scale, state, wants_state, out=None, heads=None, given=(), results=(), table=None,
           chunks=None, beside=None, **parameters):
    """The outputs of a kernel and the state behind the last token, or None. `heads` are those of the states, if values share them;
    `given` and `results` are further tensors, before the outputs and behind them. `table` says which chunks packed sequences have, and
    `chunks` which tokens these have, where they lie as the caller has them. `beside` is the Beside that a kernel without workspaces runs
    on."""
    batch, _, _, columns = v.shape
    heads = v.shape[2] if heads is None else heads
    if table is not None:
        batch = table.shape[1]
        state = v.new_zeros((batch, heads, q.shape[3], columns), dtype=torch.float32) if state is None else state
        results = (*results, *table.unbind())
        parameters["PACKED"] = True
    if chunks is not None:
        results = (*results, *chunks.unbind())
        parameters["IN_PLACE"] = True
    out = torch.empty_like(v, memory_format=torch.contiguous_format) if out is None else out
    last = v.new_empty((batch, heads, q.shape[3], columns), dtype=torch.float32) if wants_state else None
    if 0 in v.shape or 0 in q.shape:
        return out, None if last is None else last.zero_() if state is None else last.copy_(state)
    choice = choose(name, q.device, batch, heads, q.shape[3], columns)
    chosen = {"T": TYPES[q.dtype], "DK": q.shape[3], **_recurrences.pick(choice), "INITIAL": state is not None, "FINAL": wants_state}
    source = choice["form"] or _recurrences.find_source(name)
    kernel = _kernels.find(q.device.type == "cpu", source, **{**chosen, **parameters})
    states = [x for x in (None if state is None else state.contiguous(), last) if x is not None]
    named = {} if beside is None else beside.begin(*states)
    _compute.launch(kernel, *map(heads_first, (q, k, v)), *others, *scale, *states, *given, heads_first(out), *results, **named)
    return out, last


def launch_chunks(name, q, v, *arguments, chunks=None, **parameters):
    """Launches a kernel of chunks beside each other, where there are any. `chunks` says which tokens they have."""
    if chunks is not None:
        arguments, parameters["IN_PLACE"] = (*arguments, *chunks.unbind()), True
    if v.numel() and q.numel():
        find_kernel(name, q, T=TYPES[q.dtype], **parameters)(*arguments)


def _steps(v, state, wants_state):
    """Whether a call is a step of decoding: one token, with a state before it and behind. A step is no op: what traces or transforms
    calls gets the walk."""
    if _direct.is_traced():
        return False
    return v.shape[1] == 1 and state is not None and wants_state and v.numel() > 0


def _recall_step(given, wants_state, starts, *options):
    """(a key, the results) of a step of decoding as `_prepared.recall` has them, None where a call is none. The state comes last."""
    if given[-1] is None or not wants_state or starts is not None:
        return None, None
    return _prepared.recall(given, *options)


def _launch_step(known, q, k, v, scale, constants={}, delta=False, norm=False, **others):
    """The output of one token and the state behind it, from tensors as _step_recipes.py has them, the last ones of which are `constants`.
    `known` are what further calls are known by and given."""
    text = _step_recipes.write([*others, *constants], device=str(q.device), delta=delta, norm=norm)
    return _prepared.compute(*known, text, (q, k, v, *others.values()), (_read_scale(scale),), "s", tuple(constants.values()))


def _read_scale(scale, default=None):
    """A scale as a number. A tensor would lose its gradient."""
    if scale is None:
        return default
    problem = _op.find_number_problem("scale", scale, "multiply 'q' by it")
    if problem is None and (isinstance(scale, str) or not hasattr(scale, "__float__")):
        problem = TypeError(f"argument 'scale' is {scale!r}; a number or None would work")
    if problem is not None:
        raise problem
    return float(scale)


def _default_scale(scale, q):
    return _read_scale(scale, 1 / math.sqrt(q.shape[3]))


@_kept.kept
def _make_decays(heads, device):
    """`_recurrences.list_decays` on a device, where graphs that are captured make them too."""
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
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Retention (Sun et al. 2023): o_t = scale q_t S_t with S_t = g S_(t-1) + k_t^T v_t, where g = 1 - 2^(-5 - h) of head h.

    q, k: [B, T, H, K], v: [B, T, H, V], initial_state: [B, H, K, V] of float32. Returns (o, final state or None), as
    `chunk_retention` of flash-linear-attention does. The scale is 1 / sqrt(K) where it is None. With `cu_seqlens`, [sequences + 1] of
    int32 or int64, the batch is 1 and sequence i has the tokens from the i-th of these up to the next, and a state of its own.
    """
    given = q, k, v, initial_state
    key, results = _recall_step(given, output_final_state, cu_seqlens, "retention", scale)
    if results is not None:
        return results
    _check("retention", ("q", "k", "v"), q, k, v, initial_state, "initial_state", cu_seqlens)
    decays = _make_decays(v.shape[2], v.device)
    wants_gradients = _check_gradients("retention", v=v, q=q, k=k, initial_state=initial_state)
    if _steps(v, initial_state, output_final_state) and not wants_gradients and cu_seqlens is None:
        return _launch_step((key, given), q, k, v, scale, _find_step_gates(v.shape[2], v.device), s0=initial_state)
    scale, tables = _default_scale(scale, q), _packed.find_chunks(cu_seqlens, v.shape[1])
    out, last = call("retention", q, k, v, decays, scale, initial_state, *tables, output_final_state)
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
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The gated delta rule (Yang et al. 2024): S_t = exp(g_t) S_(t-1) + k_t^T u_t with u_t = beta_t (v_t - exp(g_t) k_t S_(t-1)), and
    o_t = scale q_t S_t.

    q, k: [B, T, H, K], v: [B, T, HV, V] with HV a multiple of H, g (logarithms) and beta: [B, T, HV], initial_state:
    [B, HV, K, V] of float32. Returns (o, final state or None), as `chunk_gated_delta_rule` of flash-linear-attention does.
    With g of [B, T, H, K] each channel of the keys has its own gate, as in Kimi Delta Attention (`chunk_kda`). Keys have length 1,
    which `use_qk_l2norm_in_kernel` sees to: beyond sqrt(2 / beta) the state grows without end, and from 256 on products of keys, which
    are float16, overflow. The scale is 1 / sqrt(K) where it is None. `cu_seqlens` are starts of packed sequences, as of `retention`.
    """
    given = q, k, v, g, beta, initial_state
    key, results = _recall_step(given, output_final_state, cu_seqlens, "gated_delta_rule", scale, use_qk_l2norm_in_kernel)
    if results is not None:
        return results
    of_channels = isinstance(g, torch.Tensor) and g.dim() == 4
    kernel = "kda" if of_channels else "delta_rule"
    _check(kernel, ("q", "k", "v"), q, k, v, initial_state, "initial_state", cu_seqlens, g=g, beta=beta)
    _check_gates(q, g=(g, q.shape if of_channels else v.shape[:3]), beta=(beta, v.shape[:3]))
    wants_gradients = _check_gradients(kernel, v=v, q=q, k=k, g=g, beta=beta, initial_state=initial_state)
    if _steps(v, initial_state, output_final_state) and not wants_gradients and cu_seqlens is None:
        # A step copies gates of these types itself.
        g, beta = (x if x.dtype in _GATES else x.float() for x in (g, beta))
        norm = bool(use_qk_l2norm_in_kernel)
        return _launch_step((key, given), q, k, v, scale, delta=True, norm=norm, g=g, rates=beta, s0=initial_state)
    if use_qk_l2norm_in_kernel:
        q, k = call("unit_rows", q, k)
    scale = _default_scale(scale, q)
    g, beta = g.float(), beta.float()
    own = q, k, v, g, beta, scale, initial_state
    tables = _packed.find_chunks(cu_seqlens, v.shape[1])
    out, last, *_ = call("delta_rule", *own, *tables, output_final_state, wants_gradients)
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
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Gated linear attention (Yang et al. 2024): o_t = scale q_t S_t with S_t = exp(g_t)^T * S_(t-1) + k_t^T v_t.

    q, k, g (finite logarithms): [B, T, H, K], v: [B, T, HV, V] with HV a multiple of H, initial_state: [B, HV, K, V] of float32.
    Returns (o, final state or None), as `chunk_gla` of flash-linear-attention does. The scale is 1 / sqrt(K) where it is None. `cu_seqlens`
    are starts of packed sequences, as of `retention`.
    """
    given = q, k, v, g, initial_state
    key, results = _recall_step(given, output_final_state, cu_seqlens, "gla", scale)
    if results is not None:
        return results
    _check("gla", ("q", "k", "v"), q, k, v, initial_state, "initial_state", cu_seqlens, g=g)
    _check_gates(q, g=(g, q.shape))
    wants_gradients = _check_gradients("gla", v=v, q=q, k=k, g=g, initial_state=initial_state)
    if _steps(v, initial_state, output_final_state) and not wants_gradients and cu_seqlens is None:
        g, rates = g if g.dtype in _GATES else g.float(), _kept.full((v.shape[2],), 1.0, torch.float32, v.device)
        return _launch_step((key, given), q, k, v, scale, {"rates": rates}, g=g, s0=initial_state)
    scale, tables = _default_scale(scale, q), _packed.find_chunks(cu_seqlens, v.shape[1])
    out, last = call("gla", q, k, v, g.float(), scale, initial_state, *tables, output_final_state)
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
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """State-space duality (Mamba-2, Dao and Gu 2024): y_t = C_t S_t + D x_t with S_t = exp(dt_t A) S_(t-1) + dt_t B_t^T x_t.

    x: [B, T, H, P], dt: [B, T, H], A, D, dt_bias: [H], B, C: [B, T, G, N] with H a multiple of G, initial_states:
    [B, H, P, N] of float32. Returns y, or (y, final states), as `mamba_chunk_scan_combined` of mamba-ssm does.
    `cu_seqlens` are starts of packed sequences, as of `retention`, and states are of each.
    """
    _check("ssd", ("C", "B", "x"), C, B, x, None, "initial_states", cu_seqlens, dt=dt, A=A)
    _op.check_types({}, {"D": D, "dt_bias": dt_bias, "initial_states": initial_states})
    state = None
    if initial_states is not None:
        sequences = x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
        _check_tensor("initial_states", initial_states, x, (sequences, x.shape[2], x.shape[3], B.shape[3]), torch.float32)
        state = initial_states.transpose(2, 3).contiguous()
    of_heads = x.shape[2:3]
    _check_gates(x, dt=(dt, x.shape[:3]), A=(A, of_heads), D=(D, of_heads), dt_bias=(dt_bias, of_heads))
    steps = dt.float() if dt_bias is None else dt.float() + dt_bias.float()
    if dt_softplus:
        steps = torch.nn.functional.softplus(steps)
    skip = None if D is None else D.float().contiguous()
    wants_gradients = _check_gradients("ssd", x=x, dt=dt, A=A, B=B, C=C, D=D, dt_bias=dt_bias, initial_states=initial_states)
    if _steps(x, state, return_final_states) and not wants_gradients and cu_seqlens is None:
        passing = {} if skip is None else {"skip": skip}
        y, last = _launch_step((None, ()), C, B, x, 1.0, g=A.float() * steps, rates=steps, s0=state, **passing)
    else:
        tables = _packed.find_chunks(cu_seqlens, x.shape[1])
        y, last = call("ssd", C, B, x, steps, A.float().contiguous(), skip, state, *tables, return_final_states)
    return (y, last.transpose(2, 3)) if return_final_states else y
