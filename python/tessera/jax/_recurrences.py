"""Recurrences for JAX, with gradients: each walk is one custom call, and gradients are walks of other arrays.

Arrays are [B, T, H, D]. docs/recurrences.md says what is computed; the walks are those of tessera.torch.
"""

from __future__ import annotations

import functools
import math
import os

import jax
import jax.numpy as jnp
import numpy as np

from .._attention._recurrences import CHUNK, POSITIVE, count_chunks, find_source, limits_steps, list_decays, list_segments
from .._attention._recurrences import list_widths, pick, read_ssd_options, tell_sharing
from .._core import _library
from . import _kernels, _packed, _segments
from ._checks import check_arrays, check_number
from ._kernels import like, new


def _launch(name, *arguments):
    return _kernels.launch(f"linear/{name}", *arguments)


def _choose(name, rows, batch, heads, columns):
    """(what a walk is given, the source that computes it) by what rules choose for these extents."""
    chosen = _kernels.choose(find_source(name), ("B", batch), ("H", heads), ("V", columns), DK=rows)
    form = chosen["form"]
    return pick(chosen), name if form is None else os.path.basename(form).removesuffix(".tile")


def _walk(name, q, k, v, others, scale, state, wants_state=False, out=None, heads=None, given=(), results=(), table=None,
          chunks=None, **parameters):
    """The results of a walk in their order: the state behind it where it is wanted, what `given` has, the outputs, and `results`. `table`
    says which chunks packed sequences have, and `chunks` which tokens these have, where they lie as the caller has them."""
    batch, _, own, columns = v.shape
    rows, heads = q.shape[3], own if heads is None else heads
    batch, state, places = _pack(table, batch, state, (heads, rows, columns), parameters, chunks)
    chosen, name = _choose(name, rows, batch, heads, columns)
    parameters.update(T=_library.QUERY_TYPES[q.dtype.name], DK=rows, **chosen, INITIAL=state is not None, FINAL=wants_state)
    states = [] if state is None else [("v", state)]
    last = [("r", new(batch, heads, rows, columns))] if wants_state else []
    tensors = [("t", q), ("t", k), ("t", v)]
    return _launch(
        name, parameters, *tensors, *others, *(("f", x) for x in scale), *states, *last, *given,
        ("o", like(v)) if out is None else out, *results, *places,
    )  # fmt: skip


def _pack(table, batch, state, shape, parameters, chunks):
    """(how many states there are, the first ones, arguments that say which chunks sequences have, and which tokens these)."""
    if table is None:
        return batch, state, ()
    parameters["PACKED"] = True
    sequences = table[0].shape[0]
    state = jnp.zeros((sequences, *shape), jnp.float32) if state is None else state
    if chunks is not None:
        parameters["IN_PLACE"] = True
    return sequences, state, tuple(("v", row) for rows in (table, chunks) if rows is not None for row in rows)


def _step(q, k, v, g, rates, scale, state, *skip, **parameters):
    """(outputs, state behind) of the first token, which the others that arrays are padded with do not change. Gates are of heads, or of
    channels as in g of 4 dimensions."""
    (batch, _, heads, columns), rows = v.shape, q.shape[3]
    chosen, name = _choose("step", rows, batch, heads, columns)
    parameters.update(T=_library.QUERY_TYPES[q.dtype.name], DK=rows, **chosen, CHANNELS=g.ndim == 4, SKIP=bool(skip))
    of_token = (("v", x[:, 0]) for x in (q, k, v, g, rates))
    out = "r", new(batch, heads, columns, dtype=v.dtype)
    last, out = _launch(name, parameters, *of_token, ("f", scale), *(("v", x) for x in skip), ("v", state), ("r", like(state)), out)
    return jnp.pad(out[:, None], ((0, 0), (0, v.shape[1] - 1), (0, 0), (0, 0))), last


def _heads_first(x, chunks=None):
    """[B, H, T] of float32, or with `chunks` in rows of these."""
    x = x.astype(jnp.float32)
    return jnp.swapaxes(x, 1, 2) if chunks is None else _packed.take_chunks(x, chunks)


def _rates(g, beta, chunks):
    """Gates, of heads or of channels, and rates as kernels take them."""
    return [("t", g) if g.ndim == 4 else ("v", _heads_first(g, chunks)), ("v", _heads_first(beta, chunks))]


def _transposed(state):
    return None if state is None else jnp.swapaxes(state, 2, 3)


def _new_gradient(x, chunks, shape=None, dtype=None):
    """Where a gradient of rows is written: 0 where packed rows are of no sequence."""
    shape, dtype = x.shape if shape is None else shape, x.dtype if dtype is None else dtype
    return ("o", new(*shape, dtype=dtype)) if chunks is None else ("d", jnp.zeros(shape, dtype))


def _parts(q, heads, chunks):
    """Where a walk writes of each head of values a part of the gradient of q."""
    batch, tokens, _, width = q.shape
    return _new_gradient(q, chunks, (batch, tokens, heads, width))


def _sum_parts(parts, q):
    batch, tokens, shared, width = q.shape
    return parts.reshape(batch, tokens, shared, -1, width).astype(jnp.float32).sum(3)


class _Walks:
    """What forward and gradients compute of arrays. A table says which chunks packed sequences have, or segments of `own` tokens of one
    sequence, and one of chunks which tokens these have where sequences are packed."""

    table = chunks = own = None

    def cut(self, v):
        """Walks over segments of one sequence from here on, where these are worth it."""
        self.own = None if self.table is not None else _segments.find_own(v)
        if self.own is not None:
            self.table = tuple(jnp.asarray(np.array(numbers, np.int32)) for numbers in list_segments(v.shape[1], self.own))

    def find_states(self, name, q, k, v, others, scale, state, source, gates, **parameters):
        """The states before segments, or the one that is given. `source` and `gates` are those of `_segments.join`."""
        if self.own is None:
            return state
        left, _ = self.walk(name, q, k, v, others, scale, None, True, **parameters)
        return _segments.join(left, source, gates, self.table, state, parameters.get("REVERSE", False))

    def find_last(self, found, wants_state):
        """The state behind the last token, of the results of a walk."""
        return None if not wants_state else found[0] if self.own is None else found[0][-1:]

    def find_first(self, found):
        """The gradient of the state before the first token, of the results of a walk but the outputs."""
        return None if not found else found[0] if self.own is None else found[0][:1]

    def walk(self, *arguments, **named):
        return _walk(*arguments, **named, table=self.table, chunks=self.chunks)

    def launch_chunks(self, name, parameters, *arguments):
        """The results of a kernel of chunks beside each other."""
        places = () if self.chunks is None else (("v", row) for row in self.chunks)
        return _launch(name, {**parameters, **({} if self.chunks is None else {"IN_PLACE": True})}, *arguments, *places)

    def walk_back(self, name, q, v, given, scale, between, out, state, grad_last):
        """A walk from the end over gradients of states, of arrays that are `given`: (the gradients of the states before, where there are
        any, what it leaves of `between`, the gradients of states behind chunks, `out`)."""
        batch, shape = v.shape[0], (v.shape[2], q.shape[3], v.shape[3])
        parameters = self.choose(name, q, v)
        _, grad_last, places = _pack(self.table, batch, grad_last, shape, parameters, self.chunks)
        _, state, _ = _pack(self.table, batch, state, shape, parameters, self.chunks)
        parameters.update(INITIAL=grad_last is not None, FINAL=state is not None)
        behind = [] if grad_last is None else [("v", grad_last)]
        first = [] if state is None else [("r", like(state))]
        *found, back, out = _launch(name, parameters, *given, ("f", scale), *behind, *first, *between, self.new_states(q, v), out, *places)
        return found[: len(first)], found[len(first) :], back, out

    def walk_states(self, q, v, given, back, state, **form):
        """A walk over states, of what it adds: (the states before chunks, what those behind have in common with their gradients)."""
        batch, heads, rows, columns = v.shape[0], v.shape[2], q.shape[3], v.shape[3]
        parameters = {**self.choose("states", q, v), **form, "MEET": True}
        _, state, places = _pack(self.table, batch, state, (heads, rows, columns), parameters, self.chunks)
        parameters["INITIAL"] = state is not None
        meets = "r", new(batch, heads, -(-columns // parameters["DV"]), count_chunks(self.count_rows(v)) * rows)
        before = [] if state is None else [("v", state)]
        meets, states = _launch("states", parameters, *given, *before, ("v", back), meets, self.new_states(q, v), *places)
        return states, meets.sum(2)

    def choose(self, name, q, v):
        """The parameters of a walk of gradients."""
        chosen, _ = _choose(name, q.shape[3], self.count(v.shape[0]), v.shape[2], v.shape[3])
        return {"T": _library.QUERY_TYPES[q.dtype.name], "DK": q.shape[3], **chosen}

    def new_states(self, q, v):
        """Where the states of all chunks are written, or their gradients."""
        return "r", new(v.shape[0], v.shape[2], count_chunks(self.count_rows(v)) * q.shape[3], v.shape[3], dtype=v.dtype)

    def new_faded(self, q, v):
        """Where keys until the end of their chunk are written, and what chunks keep of channels."""
        batch, _, shared, rows = q.shape
        tokens = self.count_rows(v)
        return ("r", new(batch, shared, tokens, rows, dtype=q.dtype)), ("r", new(batch, shared, count_chunks(tokens) * rows))

    def count_rows(self, v):
        """How many rows have what walks leave each other, of which each chunk has its own where arrays are not laid out so."""
        return v.shape[1] if self.chunks is None else CHUNK * self.chunks[0].shape[0]

    def count(self, batch):
        """How many sequences there are."""
        return batch if self.table is None else self.table[0].shape[0]


class _Retention(_Walks):
    """Walks of retention: arrays are q, k, v, numbers scale."""

    def __init__(self, heads):
        self.decays = np.array(list_decays(heads), np.float32)

    def begin(self, v, scale):
        self.cut(v)
        decays = "v", jnp.asarray(self.decays)
        return [decays], (scale,), [decays, ("i", v.shape[1])]

    def run(self, scale, state, wants_state, keeps, q, k, v):
        others, scale, powers = self.begin(v, scale)
        state = self.find_states("retention", q, k, v, others, scale, state, "powers", powers)
        found = self.walk("retention", q, k, v, others, scale, state, wants_state)
        return found[-1], self.find_last(found, wants_state), ()

    def step(self, scale, state, q, k, v):
        gates = jnp.broadcast_to(math.log(2) * self.decays, v.shape[:3])
        return _step(q, k, v, gates, jnp.ones(v.shape[:3], jnp.float32), scale, state)

    def run_back(self, scale, state, grad, grad_last, kept, q, k, v):
        heads, wants_first = v.shape[2], state is not None
        others, scale, powers = self.begin(v, scale)
        state = self.find_states("retention", q, k, v, others, scale, state, "powers", powers)
        grad_last = self.find_states("retention", k, q, grad, others, scale, grad_last, "powers", powers, REVERSE=True)
        walk = functools.partial(self.walk, "retention", others=others, scale=scale, heads=heads)
        (dq,) = walk(q=grad, k=v, v=k, state=_transposed(state), out=_parts(q, heads, self.chunks))
        (dk,) = walk(q=v, k=grad, v=q, state=_transposed(grad_last), out=_parts(k, heads, self.chunks), REVERSE=True)
        out = _new_gradient(v, self.chunks)
        *first, dv = walk(q=k, k=q, v=grad, state=grad_last, wants_state=wants_first, out=out, REVERSE=True)
        return (_sum_parts(dq, q), _sum_parts(dk, k), dv), self.find_first(first)


class _Delta(_Walks):
    """Walks of the gated delta rule: arrays are q, k, v, g, beta, with gates of heads, or of channels as in g of 4 dimensions."""

    def run(self, scale, state, wants_state, keeps, q, k, v, g, beta):
        batch, _, heads, columns = v.shape
        rows = self.count_rows(v)
        kept = ("o", new(batch, rows, heads, columns, dtype=v.dtype)), ("r", new(batch, heads, rows, CHUNK, dtype=v.dtype))
        given = [*kept] if keeps else []
        name = "kda" if g.ndim == 4 else "delta_rule"
        if keeps and g.ndim == 4:
            given.append(("r", new(batch, q.shape[2], rows, CHUNK, dtype=v.dtype)))
        form = {"NEWS": keeps, **tell_sharing(q, v, g)}
        found = list(self.walk(name, q, k, v, _rates(g, beta, self.chunks), (scale,), state, wants_state, given=given, **form))
        last = found.pop(0) if wants_state else None
        return found[-1], last, tuple(found[:-1])

    def step(self, scale, state, q, k, v, g, beta):
        return _step(q, k, v, g, beta, scale, state, DELTA=True)

    def run_back(self, scale, state, grad, grad_last, kept, q, k, v, g, beta):
        (batch, tokens, heads, columns), rows = v.shape, self.count_rows(v)
        of_channels = g.ndim == 4
        news, *of_chunks = kept
        rates = _rates(g, beta, self.chunks)
        given = [("t", q), ("t", k), ("t", grad), *rates, *(("v", x) for x in of_chunks)]
        w, of_rows = ("r", new(batch, heads, rows, q.shape[3], dtype=v.dtype)), ("r", new(batch, heads, rows))
        between = self.new_faded(q, v) if of_channels else (of_rows, of_rows, ("r", new(batch, heads, count_chunks(rows))))
        name, out = "kda_bwd" if of_channels else "delta_rule_bwd", _new_gradient(v, self.chunks)
        first, found, back, z = self.walk_back(name, q, v, given, scale, (w, *between), out, state, grad_last)
        *leaves, keeps = (("v", x) for x in found[2:])
        adding, form = (("v", found[1]), {"ADDED": "faded"}) if of_channels else (("t", k), {})
        states, meets = self.walk_states(q, v, (adding, ("t", news), *leaves, keeps), back, state, **form)
        of_g = _new_gradient(q, self.chunks, dtype=jnp.float32) if of_channels else of_rows
        # Gradients of values are written where those of news are read.
        results = *(_new_gradient(x, self.chunks) for x in (q, k)), ("d", z), of_g, of_rows
        form = {"T": _library.QUERY_TYPES[q.dtype.name], "DW": columns, "OWN": q.shape[2] == heads}
        of_states = (("v", x) for x in (states, back, meets))
        dq, dk, dv, dg, dbeta = self.launch_chunks(
            "kda_gradients" if of_channels else "delta_rule_gradients", form if of_channels else {**form, "DK": q.shape[3]},
            ("t", q), ("t", k), ("t", v), ("t", news), ("t", grad), *rates, *of_states, ("f", scale), *results,
        )  # fmt: skip
        dg = dg if of_channels else _packed.restore_chunks(jnp.swapaxes(dg, 1, 2), self.chunks, tokens)
        dbeta = _packed.restore_chunks(jnp.swapaxes(dbeta, 1, 2), self.chunks, tokens)
        return (dq, dk, dv, dg, dbeta), first[0] if state is not None else None


class _Ssd(_Walks):
    """Walks of state-space duality: arrays are C, B, x, steps, rates and, with a part that passes by the state, skip."""

    def __init__(self, skips):
        self.skips = skips

    def run(self, scale, state, wants_state, keeps, q, k, v, dt, rates, *skip):
        self.cut(v)
        gates = ("v", _heads_first(dt, self.chunks))
        others = [gates, ("v", rates), gates, *(("v", x) for x in skip)]
        state = self.find_states("ssd", q, k, v, others, (), state, "steps", others[:2], SKIP=self.skips)
        found = self.walk("ssd", q, k, v, others, (), state, wants_state, SKIP=self.skips)
        return found[-1], self.find_last(found, wants_state), ()

    def step(self, scale, state, q, k, v, dt, rates, *skip):
        return _step(q, k, v, rates * dt, dt, scale, state, *skip)

    def run_back(self, scale, state, grad, grad_last, kept, q, k, v, dt, rates, *skip):
        (batch, tokens, heads, columns), rows, wants_first = v.shape, q.shape[3], state is not None
        of_chunks, back = _heads_first(dt, self.chunks), {"REVERSE": True, "STEPS": "own"}
        gates = "v", of_chunks
        others = [gates, ("v", rates), gates]
        self.cut(v)
        state = self.find_states("ssd", q, k, v, others, (), state, "steps", others[:2])
        grad_last = self.find_states("ssd", k, q, grad, others, (), grad_last, "steps", others[:2], **back)
        chunks, parts = count_chunks(self.count_rows(v)), -(-rows // _choose("ssd", columns, self.count(batch), heads, rows)[0]["DV"])
        sums = ("r", new(batch, heads, parts, self.count_rows(v)))
        states = new(batch, heads, chunks * columns, rows, dtype=v.dtype)
        walk = functools.partial(self.walk, "ssd", scale=(), heads=heads)
        by_q, states, dq = walk(
            q=grad, k=v, v=k, others=[*others, ("t", q), sums, ("r", states)], state=_transposed(state),
            out=_parts(q, heads, self.chunks), SUMS=True, KEEP=True,
        )  # fmt: skip
        meets = ("r", new(batch, heads, parts, chunks))
        by_k, meets, dk = walk(
            q=v, k=grad, v=q, others=[*others, ("t", k), sums, ("v", states), meets], state=_transposed(grad_last),
            out=_parts(k, heads, self.chunks), SUMS=True, MEET=True, **back,
        )  # fmt: skip
        passing = [("v", x) for x in skip]
        *first, dv = walk(
            q=k, k=q, v=grad, others=[*others, *passing], state=grad_last, wants_state=wants_first, out=_new_gradient(v, self.chunks),
            SKIP=self.skips, **back,
        )  # fmt: skip
        of_heads = ("r", like(of_chunks)), ("r", new(batch, heads, chunks))
        steps, of_rates = _launch("ssd_changes", {}, *(("v", x) for x in (by_q, by_k, meets, of_chunks, rates)), *of_heads)
        steps = _packed.restore_chunks(jnp.swapaxes(steps, 1, 2), self.chunks, tokens)
        of_skip = ()
        if skip:
            of_skip = (_packed.keep_tokens(grad.astype(jnp.float32) * v.astype(jnp.float32), self.chunks).sum((0, 1, 3)),)
        dq, dk = _sum_parts(dq, q), _sum_parts(dk, k)
        return (dq, dk, dv, steps, of_rates.sum((0, 2)), *of_skip), self.find_first(first)


class _Gla(_Walks):
    """Walks of gated linear attention: arrays are q, k, v, g."""

    def run(self, scale, state, wants_state, keeps, q, k, v, g):
        self.cut(v)
        state = self.find_states("gla", q, k, v, [("t", g)], (scale,), state, "channels", [("t", g)])
        found = self.walk("gla", q, k, v, [("t", g)], (scale,), state, wants_state)
        return found[-1], self.find_last(found, wants_state), ()

    def step(self, scale, state, q, k, v, g):
        return _step(q, k, v, g, jnp.ones(v.shape[:3], jnp.float32), scale, state)

    def run_back(self, scale, state, grad, grad_last, kept, q, k, v, g):
        (batch, _, heads, columns), width, wants_first = v.shape, q.shape[3], state is not None
        self.cut(v)
        state = self.find_states("gla", q, k, v, [("t", g)], (scale,), state, "channels", [("t", g)])
        grad_last = self.find_states("gla", k, q, grad, [("t", g)], (scale,), grad_last, "channels", [("t", g)], REVERSE=True)
        given = ("t", q), ("t", k), ("t", grad), ("t", g)
        first, (until_k, keeps), back, dv = self.walk_back(
            "gla_bwd", q, v, given, scale, self.new_faded(q, v), _new_gradient(v, self.chunks), state, grad_last
        )
        form = {"ADDED": "faded", "VALUES": "VO"}
        states, meets = self.walk_states(q, v, (("v", until_k), ("t", v), ("v", keeps)), back, state, **form)
        meets = meets.reshape(batch, heads, -1, width)
        results = (_new_gradient(x, self.chunks, dtype=dtype) for x, dtype in ((q, q.dtype), (k, k.dtype), (q, jnp.float32)))
        form = {"T": _library.QUERY_TYPES[q.dtype.name], "DW": columns, "OWN": q.shape[2] == heads}
        of_states = (("v", x) for x in (states, back, meets))
        dq, dk, dg = self.launch_chunks(
            "gla_gradients", form, ("t", q), ("t", k), ("t", v), ("t", grad), ("t", g), *of_states, ("f", scale), *results
        )
        return (dq, dk, dv, dg), self.find_first(first) if wants_first else None


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
        found = [gradient.astype(x.dtype) for gradient, x in zip(found, own)]
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
    elif kind is not _Retention:
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
) -> tuple[jax.Array, jax.Array | None]:
    """Retention: (o, final state or None), as `tessera.torch.retention`."""
    _check("retention", ("q", "k", "v"), (q, k, v), initial_state, "initial_state", cu_seqlens)
    scale = _default_scale(scale, q)
    return _recur(_Retention, (v.shape[2],), scale, (q, k, v), (), initial_state, output_final_state, cu_seqlens)


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
) -> tuple[jax.Array, jax.Array | None]:
    """The gated delta rule: (o, final state or None), as `tessera.torch.gated_delta_rule`."""
    of_channels = getattr(g, "ndim", None) == 4
    kernel = "kda" if of_channels else "delta_rule"
    _check(kernel, ("q", "k", "v"), (q, k, v), initial_state, "initial_state", cu_seqlens, g=g, beta=beta)
    _check_gates(g=(g, q.shape if of_channels else v.shape[:3]), beta=(beta, v.shape[:3]))
    if use_qk_l2norm_in_kernel:
        q, k = (_normalize(x) for x in (q, k))
    arrays = (q, k, v, g.astype(jnp.float32), beta.astype(jnp.float32))
    return _recur(_Delta, (), _default_scale(scale, q), arrays, (), initial_state, output_final_state, cu_seqlens)


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
) -> tuple[jax.Array, jax.Array | None]:
    """Gated linear attention: (o, final state or None), as `tessera.torch.gla`."""
    _check("gla", ("q", "k", "v"), (q, k, v), initial_state, "initial_state", cu_seqlens, g=g)
    _check_gates(g=(g, q.shape))
    arrays = (q, k, v, g.astype(jnp.float32))
    return _recur(_Gla, (), _default_scale(scale, q), arrays, (), initial_state, output_final_state, cu_seqlens)


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
    chunk_size: int | None = None,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """State-space duality: y, or (y, final states), as `tessera.torch.ssd`."""
    dt_limit = read_ssd_options(dt_limit, chunk_size)
    _check("ssd", ("C", "B", "x"), (C, B, x), None, "initial_states", cu_seqlens, dt=dt, A=A)
    given = {"D": D, "dt_bias": dt_bias, "initial_states": initial_states, "z": z}
    check_arrays({name: array for name, array in given.items() if array is not None})
    heads = x.shape[2]
    each, skip = (D, None) if D is not None and D.ndim == 2 else (None, D)
    _check_gates(dt=(dt, x.shape[:3]), A=(A, (heads,)), D=(skip, (heads,)), dt_bias=(dt_bias, (heads,)))
    _check_gates(D=(each, x.shape[2:]), z=(z, x.shape))
    if initial_states is not None:
        sequences = x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
        _check_array("initial_states", initial_states, (sequences, heads, x.shape[3], B.shape[3]), jnp.dtype(jnp.float32))
    steps = dt.astype(jnp.float32) + (0 if dt_bias is None else dt_bias.astype(jnp.float32))
    if dt_softplus:
        steps = jax.nn.softplus(steps)
    if limits_steps(dt_limit, dt_softplus):
        least, most = dt_limit
        # A step at a limit has its gradient, of which jnp.clip takes a half.
        steps = jnp.where(steps < least, least, jnp.where(steps > most, most, steps))
    whole = (A.astype(jnp.float32), *(() if skip is None else (skip.astype(jnp.float32),)))
    state = _transposed(initial_states)
    y, last = _recur(_Ssd, (skip is not None,), 1.0, (C, B, x, steps), whole, state, return_final_states, cu_seqlens)
    if each is not None:
        y = (y.astype(jnp.float32) + each.astype(jnp.float32) * x.astype(jnp.float32)).astype(y.dtype)
    if z is not None:
        y = (y.astype(jnp.float32) * jax.nn.silu(z.astype(jnp.float32))).astype(y.dtype)
    return (y, _transposed(last)) if return_final_states else y
