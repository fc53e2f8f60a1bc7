"""What gradients of delta rules launch."""

from __future__ import annotations

import functools
import json

from .._attention import _recipes
from .._attention._recurrences import count_chunks
from .._core._layouts import NOTHING, ZERO, Layout
from . import _walk_recipes
from ._step_recipes import choose
from ._walk_recipes import make_plain, pad_gates

DELTA = "gradients of a delta rule"


@functools.lru_cache(maxsize=256)
def write(names, device):
    """The text of a call with the gradient of the outputs, q, k and v, and tensors of these names:

    g, beta, s0, begins:      as _walk_recipes.py has them, of float32 but for the last.
    news, inverses, scores:   what the forward pass keeps.
    s1:                       the gradients of the states behind.
    """
    return f"{DELTA}\n{','.join(names)}||\n{device}"


class _Gradients(_walk_recipes.Call):
    """A call that computes gradients, of which results are those of q, k, v, g and beta, and of the states before where they are given."""

    def __init__(self, kind, names, tensors, device):
        super().__init__(kind, names, ("d", "q", "k", "v"), tensors, device)
        self.chunks = count_chunks(self.rows)
        # Where heads of values share queries and keys, each adds its part.
        self.adds = self.heads != self.shared

    def add_rows(self, name, like, adds, element=None):
        """The place of a gradient of rows [B, T, H, D]: 0 where rows in place are of no sequence."""
        fill = ZERO if self.is_packed or adds else NOTHING
        layout = make_plain(*like.shape, element=element or like.element, fill=fill)
        self.add_result(name, layout)
        return self.places.view(name, layout.permute(0, 2, 1, 3))

    def add_gates(self, name):
        """The place of a gradient of gates of heads: of packed sequences rows, which `restore_gates` brings to their tokens."""
        if self.is_packed:
            self.add_result(name, make_plain(1, self.tokens, self.heads, fill=ZERO))
            return self.add_temporary(f"{name}_rows", make_plain(1, self.heads, self.rows))
        padded = pad_gates(self.tokens)
        layout = Layout((self.batch, self.tokens, self.heads), (self.heads * padded, 1, padded), "f32")
        self.add_result(name, layout)
        return self.places.view(name, layout.permute(0, 2, 1))

    def restore_gates(self, name):
        if self.is_packed:
            of_rows = self.places.view(f"{name}_rows", make_plain(self.heads, self.rows))
            self.launch_gates(self.places.view(name, make_plain(self.tokens, self.heads)), of_rows, BACK=True)

    def add_states(self):
        """The parameters that say which states there are."""
        form = {"INITIAL": self.find_state("s1"), "FINAL": self.find_state("s0")}
        if "s0" in self.given:
            self.add_result("ds0", make_plain(*self.given["s0"].shape))
        elif form["FINAL"]:
            self.add_temporary("ds0", make_plain(self.sequences, self.heads, self.width, self.columns))
        return form

    def add_meets(self, name, extents):
        """How many parts there are of what states and their gradients have in common."""
        parts = -(-self.columns // choose(name, self.device, *extents)["DV"])
        self.add_temporary("meets", make_plain(self.batch, self.heads, parts, self.chunks * self.width, fill=ZERO))
        return parts

    def sum_meets(self, parts):
        """The place of the sums of parts."""
        count, numbers = self.batch * self.heads, self.chunks * self.width
        sums = make_plain(self.batch, self.heads, numbers)
        if parts == 1:
            return self.places.view("meets", sums)
        place = self.add_temporary("sums", sums)
        of_parts, of_sums = (
            self.places.view(name, make_plain(*shape)) for name, shape in (("meets", (count, parts, numbers)), ("sums", (count, numbers)))
        )
        self.launch(_walk_recipes.find_kernel(self.is_cpu, "part_sums"), parts=of_parts, sums=of_sums)
        return place


def make(kind, names, text, tensors):
    """The Recipe of a text. Gradients of q and k are sums of float32 where heads of values share them."""
    call = _Gradients(kind, names, tensors, text)
    of_channels = len(call.given["g"].shape) == 4
    of = {name: call.find_rows(name) for name in ("d", "q", "k", "v")}
    of.update(call.find_gates(), u=call.find_rows("news"))
    for name in ("q", "k"):
        of[f"d{name}"] = call.add_rows(f"d{name}", call.given[name], call.adds, "f32" if call.adds else None)
    of["dv"] = call.add_rows("dv", call.given["v"], False)
    of["dg"] = call.add_rows("dg", call.given["g"], call.adds) if of_channels else call.add_gates("dg")
    of["dbeta"] = call.add_gates("dbeta")
    form, extents = {**call.form, **call.add_states()}, (call.sequences, call.heads, call.width, call.columns)
    (_launch_of_channels if of_channels else _launch_of_heads)(call, of, form, extents)
    call.restore_gates("dbeta")
    return call.finish()


def _launch_of_heads(call, of, form, extents):
    call.add_meets("delta_rule_bwd", extents)
    form.update(ADD=call.adds, DW=call.columns)
    call.launch(_walk_recipes.find_walk(call.is_cpu, "delta_rule_bwd", call.device, extents, **form), **of)
    call.restore_gates("dg")


def _launch_of_channels(call, of, form, extents):
    parts, element = call.add_meets("kda_bwd", extents), call.form["T"]
    for name in ("states", "back"):
        call.add_temporary(name, make_plain(call.batch, call.heads, call.chunks * call.width, call.columns, element=element))
    # Gradients of values are written where those of news are read, but for packed rows in place.
    of["z"] = of["dv"]
    if call.is_packed:
        news = make_plain(call.batch, call.rows, call.heads, call.columns, element=element)
        call.add_temporary("z", news)
        of["z"] = call.places.view("z", news.permute(0, 2, 1, 3))
    own = not call.adds
    call.launch(_walk_recipes.find_walk(call.is_cpu, "kda_bwd", call.device, extents, **form, OWN=own), **of)
    of["meets"] = call.sum_meets(parts)
    form = {"T": element, "DW": call.columns, "ADD": call.adds, **({"IN_PLACE": True} if call.is_packed else {})}
    call.launch(_walk_recipes.find_kernel(call.is_cpu, "kda_gradients", **form), **of)


_recipes.MAKERS[DELTA] = make
