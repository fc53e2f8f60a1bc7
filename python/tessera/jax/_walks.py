"""Walks of recurrences for JAX: forward passes and gradients are walks of other arrays, each of which is one custom call.

Arrays are [B, T, H, D], as those of tessera.torch. Each class has what a recurrence computes: `run`, `step` of one token, and `run_back`.
"""

from __future__ import annotations

import functools
import math
import os

import jax
import jax.numpy as jnp
import numpy as np

from .._attention._recurrences import CHUNK, count_chunks, find_forgetting, find_source, list_decays, list_segments, pick, tell_sharing
from .._core import _library
from . import _kernels, _packed, _segments
from ._kernels import like, new


def _launch(name, *arguments):
    return _kernels.launch(f"linear/{name}", *arguments)


def _choose(name, rows, batch, heads, columns):
    """(what a walk is given, the source that computes it) by what rules choose for these extents."""
    chosen = _kernels.choose(find_source(name), ("B", batch), ("H", heads), ("V", columns), DK=rows)
    form = chosen["form"]
    return pick(chosen), name if form is None else os.path.basename(form).removesuffix(".tile")


def _walk(name, q, k, v, others, scale, state, wants_state=False, out=None, heads=None, given=(), results=(), table=None,
          chunks=None, behind=(), **parameters):
    """The results of a walk in their order: the state behind it where it is wanted, what `given` has, the outputs, and `results`. `table`
    says which chunks packed sequences have, and `chunks` which tokens these have, where they lie as the caller has them. `behind` are
    arguments behind all others."""
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
        ("o", like(v)) if out is None else out, *results, *places, *behind,
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


def _step(q, k, v, g, rates, scale, state, skip=None, z=None, **parameters):
    """(outputs, state behind) of the first token, which the others that arrays are padded with do not change. Gates are of heads, or of
    channels as in g of 4 dimensions."""
    (batch, _, heads, columns), rows = v.shape, q.shape[3]
    chosen, name = _choose("step", rows, batch, heads, columns)
    beside = [("v", x) for x in (skip, None if z is None else z[:, 0]) if x is not None]
    parameters.update(T=_library.QUERY_TYPES[q.dtype.name], DK=rows, **chosen, CHANNELS=g.ndim == 4, SKIP=skip is not None)
    if skip is not None:
        parameters["ELEMENTS"] = skip.ndim == 2
    if z is not None:
        parameters.update(GATED=True, GATE=_find_element(z))
    of_token = (("v", x[:, 0]) for x in (q, k, v, g, rates))
    out = "r", new(batch, heads, columns, dtype=v.dtype)
    last, out = _launch(name, parameters, *of_token, ("f", scale), *beside, ("v", state), ("r", like(state)), out)
    return jnp.pad(out[:, None], ((0, 0), (0, v.shape[1] - 1), (0, 0), (0, 0))), last


def _heads_first(x, chunks=None):
    """[B, H, T] of float32, or with `chunks` in rows of these."""
    x = x.astype(jnp.float32)
    return jnp.swapaxes(x, 1, 2) if chunks is None else _packed.take_chunks(x, chunks)


def _rates(g, beta, chunks):
    """Gates, of heads or of channels, and rates as kernels take them."""
    return [("t", g) if g.ndim == 4 else ("v", _heads_first(g, chunks)), ("v", _heads_first(beta, chunks))]


def transpose(state):
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
        form = {"RESETS": parameters.get("RESETS", False)}
        return _segments.join(left, source, gates, self.table, state, parameters.get("REVERSE", False), **form)

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


class Retention(_Walks):
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
        (dq,) = walk(q=grad, k=v, v=k, state=transpose(state), out=_parts(q, heads, self.chunks))
        (dk,) = walk(q=v, k=grad, v=q, state=transpose(grad_last), out=_parts(k, heads, self.chunks), REVERSE=True)
        out = _new_gradient(v, self.chunks)
        *first, dv = walk(q=k, k=q, v=grad, state=grad_last, wants_state=wants_first, out=out, REVERSE=True)
        return (_sum_parts(dq, q), _sum_parts(dk, k), dv), self.find_first(first)


class Delta(_Walks):
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


class Ssd(_Walks):
    """Walks of state-space duality: arrays are C, B, x, steps and those of `names`: resets, 1 where a token forgets all, z, rates, and
    skip, numbers of heads or of each element."""

    def __init__(self, names):
        self.names = names

    def begin(self, v, dt, arrays):
        """(the arrays by names, what walks take of tokens and heads, its parameters)."""
        self.cut(v)
        of = dict(zip(self.names, arrays))
        steps = gates = "v", _heads_first(dt, self.chunks)
        if "resets" in of:
            gates = "v", _heads_first(_make_logarithms(of, dt), self.chunks)
        return of, [gates, ("v", of["rates"]), steps], {"RESETS": "resets" in of}

    def run(self, scale, state, wants_state, keeps, q, k, v, dt, *arrays):
        of, others, form = self.begin(v, dt, arrays)
        state = self.find_states("ssd", q, k, v, others, (), state, "steps", others[:2], **form)
        skip, outputs = _find_skip(of)
        behind = []
        if "z" in of:
            outputs.update(GATED=True, GATE=_find_element(of["z"]), UNGATED=keeps)
            behind = [*([("o", like(v))] if keeps else []), ("t", of["z"])]
        found = list(self.walk("ssd", q, k, v, [*others, *skip], (), state, wants_state, behind=behind, **form, **outputs))
        kept = (found.pop(),) if "z" in of and keeps else ()
        return found[-1], self.find_last(found, wants_state), kept

    def step(self, scale, state, q, k, v, dt, *arrays):
        of = dict(zip(self.names, arrays))
        return _step(q, k, v, _make_logarithms(of, dt), dt, scale, state, of.get("skip"), of.get("z"))

    def run_back(self, scale, state, grad, grad_last, kept, q, k, v, dt, *arrays):
        (batch, tokens, heads, columns), rows, wants_first = v.shape, q.shape[3], state is not None
        of, others, form = self.begin(v, dt, arrays)
        found, wide = {}, grad.astype(jnp.float32)
        if "z" in of:
            gate, pull = jax.vjp(jax.nn.silu, of["z"].astype(jnp.float32))
            found["z"] = _packed.keep_tokens(pull(wide * kept[0].astype(jnp.float32))[0], self.chunks)
            wide = wide * gate
            grad = wide.astype(v.dtype)
        back = {"REVERSE": True, "STEPS": "own", **form}
        state = self.find_states("ssd", q, k, v, others, (), state, "steps", others[:2], **form)
        grad_last = self.find_states("ssd", k, q, grad, others, (), grad_last, "steps", others[:2], **back)
        chunks, parts = count_chunks(self.count_rows(v)), -(-rows // _choose("ssd", columns, self.count(batch), heads, rows)[0]["DV"])
        sums = ("r", new(batch, heads, parts, self.count_rows(v)))
        states = new(batch, heads, chunks * columns, rows, dtype=v.dtype)
        walk = functools.partial(self.walk, "ssd", scale=(), heads=heads)
        by_q, states, dq = walk(
            q=grad, k=v, v=k, others=[*others, ("t", q), sums, ("r", states)], state=transpose(state),
            out=_parts(q, heads, self.chunks), SUMS=True, KEEP=True, **form,
        )  # fmt: skip
        meets = ("r", new(batch, heads, parts, chunks))
        by_k, meets, dk = walk(
            q=v, k=grad, v=q, others=[*others, ("t", k), sums, ("v", states), meets], state=transpose(grad_last),
            out=_parts(k, heads, self.chunks), SUMS=True, MEET=True, **back,
        )  # fmt: skip
        skip, outputs = _find_skip(of)
        *first, dv = walk(
            q=k, k=q, v=grad, others=[*others, *skip], state=grad_last, wants_state=wants_first, out=_new_gradient(v, self.chunks),
            **outputs, **back,
        )  # fmt: skip
        found.update(self.sum_changes(of, others, by_q, by_k, meets, chunks, tokens))
        if skip:
            products = _packed.keep_tokens(wide * v.astype(jnp.float32), self.chunks)
            found["skip"] = products.sum((0, 1, 3) if of["skip"].ndim == 1 else (0, 1))
        return (_sum_parts(dq, q), _sum_parts(dk, k), dv, found["steps"], *map(found.get, self.names)), self.find_first(first)

    def sum_changes(self, of, others, by_q, by_k, meets, chunks, tokens):
        """Gradients of steps and of rates, by names."""
        gates, rates, (_, steps) = others
        logs = [gates] if "resets" in of else []
        results = ("r", like(steps)), ("r", new(*steps.shape[:2], chunks))
        given = *(("v", x) for x in (by_q, by_k, meets, steps)), rates, *logs
        dsteps, drates = _launch("ssd_changes", {"RESETS": bool(logs)}, *given, *results)
        return {"steps": _packed.restore_chunks(jnp.swapaxes(dsteps, 1, 2), self.chunks, tokens), "rates": drates.sum((0, 2))}


def _make_logarithms(of, steps):
    """Those of the factors of tokens, of arrays by names."""
    logs = of["rates"] * steps
    return jnp.where(of["resets"][..., None] > 0, find_forgetting(), logs) if "resets" in of else logs


def _find_skip(of):
    """What a walk takes of the part of values that passes by the state, and its parameters."""
    if "skip" not in of:
        return [], {"SKIP": False}
    return [("v", of["skip"])], {"SKIP": True, "ELEMENTS": of["skip"].ndim == 2}


def _find_element(z):
    return _library.QUERY_TYPES.get(z.dtype.name, "f32")


class Gla(_Walks):
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
