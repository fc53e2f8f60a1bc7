"""Recurrences with gradients past PyTorch's dispatcher: functions of autograd around the calls that the ops make (_walks.py).

Tensors have the names of _walk_recipes.py and _gradient_recipes.py.
"""

from __future__ import annotations

import itertools

from .._attention._recurrences import GIVEN
from . import _direct, _gradient_recipes, _output_recipes, _prepared, _segments, _walk_ops, _walk_recipes

# What walks take of tokens and heads, and what delta rules keep for their gradients.
_OTHERS = {
    "retention": ("log2_decay",), "ssd": ("dt", "rates", "bias", "numbers", "skip", "z"), "gla": ("g",), "delta_rule": ("g", "beta"),
    "kda": ("g", "beta"),
}  # fmt: skip
_KEPT = {"delta_rule": ("news", "inverses"), "kda": ("news", "inverses", "scores")}
# How many of these ops take.
_PLACES = {"delta_rule": 3, "ssd": 1}
_GRADIENTS = {
    "q": "dq", "k": "dk", "v": "dv", "g": "dg", "beta": "dbeta", "dt": "dsteps", "rates": "of_rates", "bias": "of_bias",
    "skip": "dskip", "z": "dz", "s0": "ds0",
}  # fmt: skip


class _Chain:
    """Calls that follow each other, with tensors by names."""

    def __init__(self, names):
        self.places, self.stages = {name: place for place, name in enumerate(names)}, []
        self._next = itertools.count(len(names))

    def add(self, text, names, results):
        self.stages.append(_direct.Stage(text, tuple(map(self.places.get, names))))
        self.places.update(zip(results, self._next))

    def find(self, names):
        return tuple(map(self.places.get, names))


class _Walk:
    """A recurrence of tensors that are given by `names`, behind a tuple of their scale where it has no numbers of its own, `numbers`."""

    def __init__(self, name, names, device, wants_state, norm, made, passes_elements):
        self.name, self.names, self.device, self.wants_state, self.norm, self.made = name, names, device, wants_state, norm, made
        numbers, self.kinds = _segments.list_numbers(None, made)
        self.numbers, self.passes_elements = numbers if name == "ssd" else None, passes_elements
        self.rows = ("unit_q", "unit_k", "v") if norm else ("q", "k", "v")
        self.others = tuple([each for each in _OTHERS[name] if each in names])
        self.states = tuple([each for each in ("s0", "begins") if each in names])
        self.results = ("out", "last") if wants_state else ("out",)
        self.made_by_walk = ("ungated",) if "z" in names else _KEPT.get(name, ())
        # In the order in which the ops save them, as checkpoints ask.
        self.kept = (*(("q", "k") if norm else ()), *self.rows, *self.others, *self.states, *self.made_by_walk)
        self.wants_first = "s0" in names

    def list_forward(self):
        chain, kept = _Chain(self.names), self.made_by_walk
        if self.norm:
            chain.add(_walk_recipes.write_units(self.device), ("q", "k"), ("unit_q", "unit_k"))
        others = *self.others, *self.states
        text = _walk_recipes.write(others, self.name, self.device, self.wants_state, bool(kept), made=self.made.made)
        chain.add(text, (*self.rows, *others), (*self.results, *kept))
        return chain

    def list_backward(self):
        chain = _Chain((*self.kept, "d", *(["s1"] if self.wants_state else [])))
        first = ("ds0",) if self.wants_first else ()
        others = *[each for each in self.others if each != "z"], *_KEPT.get(self.name, ())
        if self.name == "kda":
            self._add(chain, "kda", others, ("dv", "states", "back", "meets", *first))
            self._add(chain, "channels", ("g", "beta", "news", "states", "back", "meets", "dv"), ("dq", "dk", "dg", "dbeta"))
        elif self.name == "gla":
            self._add(chain, "gla", others, ("dv", "states", "back", "meets", *first))
            self._add(chain, "gla_gradients", ("g", "states", "back", "meets"), ("dq", "dk", "dg"))
        else:
            found = self._add_outputs(chain) if self.name == "ssd" else ()
            gradients = [_GRADIENTS[each] for each in ("q", "k", "v", *others) if each in _GRADIENTS]
            gradients = [each for each in gradients if each not in found]
            self._add(chain, self.name, others, (*gradients, *first), "dy" if "dy" in found else "d")
        if self.norm:
            chain.add(_walk_recipes.write_units(self.device, True), ("q", "k", "dq", "dk"), ("dq", "dk"))
        return chain

    def _add_outputs(self, chain):
        """Adds a call of _output_recipes.py where it gives something: what it gives."""
        given = {"y": "ungated", "z": "z", "v": "v", "begins": "begins"}
        names, results = _output_recipes.list_names(
            [each for each in given if (self.passes_elements if each == "v" else given[each] in self.kept)]
        )
        if results:
            chain.add(_output_recipes.write(names, self.device), ("d", *map(given.get, names)), results)
        return results

    def _add(self, chain, name, others, results, gradient="d"):
        """Adds a call of _gradient_recipes.py, of the gradient of outputs of this name."""
        names, wants_first = _gradient_recipes.list_names(name, others, self.states)
        text = _gradient_recipes.write(names, name, self.device, wants_first, self.made.made)
        chain.add(text, (*self.rows, gradient, *names), results)

    def describe(self):
        """The Calls of a function of autograd."""
        forward, backward = self.list_forward(), self.list_backward()
        return _direct.Calls(
            self.kinds, len(self.names), tuple(forward.stages), forward.find(self.kept), forward.find(self.results),
            lambda _: tuple(backward.stages), backward.find([_GRADIENTS.get(name) for name in self.names]),
        )  # fmt: skip

    def differentiate(self, saved, numbers, grad, grad_last=None):
        """The gradients of what is given, by ops."""
        of = dict(zip(self.kept, saved))
        width = of[self.rows[0]].shape[3]
        options = self.made if self.name == "ssd" else (width**-0.5 if numbers[0] is None else numbers[0],)
        others, kept = _OTHERS[self.name], self.made_by_walk
        states = of.get("s0"), of.get("begins")
        states = (*states, *options) if self.name == "ssd" else (*options, *states)
        given = [*map(of.get, (*self.rows, *others)), *states, *map(of.get, kept)]
        op = "delta_rule" if self.name == "kda" else self.name
        given += [of["v"].new_empty(0)] * (_PLACES.get(op, 0) - len(kept))
        found = _walk_ops.differentiate(op, grad, grad_last, given)
        gradients = dict(zip([_GRADIENTS.get(each) for each in ("q", "k", "v", *others, "s0") if each in _GRADIENTS], found))
        if self.norm:
            gradients["dq"], gradients["dk"] = _walk_ops.differentiate_units(gradients["dq"], gradients["dk"], of["q"], of["k"])
        return *([] if self.numbers else [None]), *[gradients.get(_GRADIENTS.get(name)) for name in self.names]


def _leave(*_):
    raise _prepared.NotPrepared


def keep(key, named, name, wants_state, norm=False, constants={}, made=GIVEN):
    """Computes calls of `key` by a function of autograd from then on where its calls are prepared, as the ops prepare them. `named` are the
    tensors of a call by names, in its order, of which some may be None; `constants` what all calls of `key` have behind them, and `made`
    their Steps."""
    v, q = named["v"], named["q"]
    if key is None or 0 in v.shape or 0 in q.shape or not _prepared.takes_learned(key, v.device, constants):
        return
    # A segment is walked over by calls of its own.
    if named["begins"] is None and name in _segments.JOINED and _segments.cut(v) is not None:
        return
    names = *[each for each, x in named.items() if x is not None], *constants
    skip = named.get("skip")
    walk = _Walk(name, names, v.device, bool(wants_state), norm, made, skip is not None and skip.dim() == 2)
    apply = _direct.make_apply(walk.describe(), walk.numbers, False, _leave, walk.differentiate)
    _prepared.keep_learned(key, apply, tuple(constants.values()))
