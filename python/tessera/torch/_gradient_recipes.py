"""What gradients of recurrences launch."""

from __future__ import annotations

import functools
import json
import math

import torch

from .._attention import _recipes
from .._attention._recurrences import CHUNK, count_chunks, count_head_parts, list_block_columns
from .._core._layouts import ZERO, Layout, element_bytes, list_strides
from . import _kernels, _walk_recipes
from ._step_recipes import choose, name_numbers
from ._walk_recipes import make_plain, make_rows, pad_gates

GRADIENTS = "gradients of a recurrence"


# Those that go on with what others give.
_SECOND = {"channels", "gla_gradients"}


def list_names(name, others, states):
    """(the names of a text, whether it gives the gradients of the states before) of a call with others and of s0, begins and table those
    of `states`. s1 is a name of each that begins with gradients of states, and may be left out of its calls."""
    states = set(states) - {"s0"} if name in _SECOND else {"s1", *states}
    return (*others, *[each for each in ("s0", "s1", "begins", "table") if each in states]), "s0" in states


@functools.lru_cache(maxsize=256)
def write(names, name, device, wants_first, made="given"):
    """The text of a call with q, k, v, the gradient of the outputs and tensors of these names:

    g, beta, dt, rates, bias, numbers, skip, log2_decay, s0, begins, table: as _walk_recipes.py has them.
    news, inverses, scores:   what the forward pass of a delta rule keeps.
    dv, states, back, meets:  what `_make_kda` gives, of which dv is z, or `_make_gla`.
    s1:                       the gradients of the states behind.

    name: the kernel of the forward pass; channels behind kda, and gla_gradients behind gla.
    device: where it runs.
    wants_first: the gradients of the states before sequences are the last result.
    made: how steps are made of dt.
    """
    options = {"name": name, "device": str(device), "wants_first": wants_first, "made": made}
    return f"{GRADIENTS}\n{','.join(names)}|{name_numbers(made)}|\n{json.dumps(options)}"


class _Gradients(_walk_recipes.Call):
    """A call that computes gradients."""

    wants_slopes = True

    def __init__(self, kind, names, tensors, device, wants_first, made, every):
        super().__init__(kind, names, ("q", "k", "v", "d"), tensors, device, made, every)
        self.chunks, self.wants_first = count_chunks(self.rows), wants_first
        self.shares = self.heads != self.shared
        # What is behind the walks: (parts, results, layouts of parts), and results whose rows of no sequence are 0.
        self.summed, self.cleared = [], []
        d = self.given["d"]
        if d != (dense := make_plain(*d.shape, element=d.element)):
            self.places.copy("d", dense)
            self.given["d"] = dense

    def add_rows(self, name, like, element=None):
        """The place of a gradient of rows [B, T, H, D]: 0 where rows in place are of no sequence."""
        layout = make_plain(*like.shape, element=element or like.element)
        self.add_result(name, layout)
        if self.is_packed:
            self.cleared.append((name, layout))
        return self.places.view(name, layout.permute(0, 2, 1, 3))

    def add_shared(self, name, count):
        """The same of queries or keys, or the place of so many parts of it, of heads that share them."""
        like = self.given[name]
        place = self.add_rows(f"d{name}", like)
        if count == self.shared:
            return place
        parts = make_plain(self.batch, self.tokens, count, self.width, element=like.element)
        self.add_temporary(f"d{name}_parts", parts)
        self.summed.append((f"d{name}_parts", f"d{name}", parts))
        return self.places.view(f"d{name}_parts", parts.permute(0, 2, 1, 3))

    def sum_parts(self):
        for parts, sums, layout in self.summed:
            rows, count = self.batch * self.tokens * self.shared, layout.shape[2] // self.shared
            of_parts = Layout((1, count, rows, self.width), (0, self.width, count * self.width, 1), layout.element)
            of_sums = make_plain(1, rows, self.width, element=self.form["T"])
            form = {"FROM": layout.element, "T": of_sums.element, "D": self.width}
            self.launch_sums(self.places.view(parts, of_parts), self.places.view(sums, of_sums), **form)

    def launch_sums(self, parts, sums, **form):
        self.launch(_walk_recipes.find_kernel(self.is_cpu, "part_sums", **form), parts=parts, sums=sums)

    def sum_heads(self, layout, **results):
        """Adds up numbers of heads [B, H, N] that lie where what one or two results are named after begins, to these, [H]."""
        names = ("parts", "sums"), ("more", "more_sums")
        pairs = [(self.places.view(parts, layout), self.places.places[name]) for name, parts in results.items()]
        of = {each: place for own, pair in zip(names, pairs) for each, place in zip(own, pair)}
        self.launch(_walk_recipes.find_kernel(self.is_cpu, "head_sums", MORE=len(pairs) == 2), **of)

    def clear_rows(self):
        """Two of a shape by one launch."""
        of_shapes = {}
        for name, layout in self.cleared:
            rows = make_plain(self.tokens, math.prod(layout.shape[2:]), element=layout.element)
            of_shapes.setdefault(rows, []).append(self.places.view(name, rows))
        for rows, places in of_shapes.items():
            for i in range(0, len(places), 2):
                of = dict(zip(("rows", "more"), places[i : i + 2]))
                form = {"T": rows.element, "BEGIN": self.given["begins"].element, "MORE": len(of) == 2}
                self.launch(_walk_recipes.find_kernel(self.is_cpu, "outside", **form), **of)

    def finish(self):
        self.sum_parts()
        self.clear_rows()
        return super().finish()

    def find_memory(self, name, layout, result=None):
        """The name of memory that nothing needs any more when `result` is written: of this where it is large enough, else a temporary's."""
        count_bytes = lambda x: x.shape[0] * x.strides[0] * element_bytes(x.element)
        if result and count_bytes(layout) <= count_bytes(self.results[self.places.places[result][1]]):
            return result
        self.add_temporary(name, layout)
        return name

    def add_gates(self, name):
        """The place of a gradient of gates of heads: of packed sequences rows, which `restore_gates` brings to their tokens."""
        if self.is_packed:
            self.add_result(name, make_plain(1, self.tokens, self.heads, fill=ZERO))
            return self.add_temporary(f"{name}_rows", make_plain(1, self.heads, self.rows))
        padded = pad_gates(self.tokens)
        layout = Layout((self.batch, self.tokens, self.heads), (self.heads * padded, 1, padded), "f32")
        self.add_result(name, layout)
        return self.places.view(name, layout.permute(0, 2, 1))

    def restore_gates(self, *names):
        if self.is_packed:
            self.launch_gates([(self.places.places[name], self.places.places[f"{name}_rows"]) for name in names], BACK=True)

    def add_first(self):
        """The gradients of the states before sequences."""
        if self.wants_first:
            self.add_result("ds0", make_plain(self.sequences, self.heads, self.width, self.columns))

    def walk(self, name, rows, columns, state=None, **places):
        """Launches a walk over states of so many rows and columns. `places` are those of arguments, and parameters of the kernel."""
        form = {key: places.pop(key) for key in list(places) if key.isupper()}
        extents, form = (self.sequences, self.heads, rows, columns), {**self.form, "INITIAL": state is not None, "FINAL": False, **form}
        self.launch(_walk_recipes.find_walk(self.is_cpu, name, self.device, extents, **form), s0=state, **places)

    def walk_beside(self, *walk, **places):
        """The same beside the steps behind it, as far as these take nothing of it."""
        self.beside.append(len(self.steps))
        self.walk(*walk, **places)

    def launch_chunks(self, name, places, **parameters):
        """Launches a kernel of chunks beside each other."""
        form = {"T": self.form["T"], **parameters, **({"IN_PLACE": True} if self.is_packed else {})}
        self.launch(_walk_recipes.find_kernel(self.is_cpu, name, **form), **places)

    def count_parts(self, name):
        """How many grid points a walk has for each state, which each give a part of what states and their gradients have in common."""
        return -(-self.columns // choose(name, self.device, self.sequences, self.heads, self.width, self.columns)["DV"])


def make(kind, names, text, tensors):
    """The Recipe of a text. Results are the gradients of q, k and v, of gates and rates, and of the states before where they are wanted."""
    options = json.loads(text)
    every = _count_kept(names, tensors, options)
    call = _Gradients(kind, names, tensors, options["device"], options["wants_first"], options["made"], every)
    of = {name: call.find_rows(name) for name in ("q", "k", "v", "d")}
    of.update(call.find_gates())
    _MAKERS[options["name"]](call, of)
    return call.finish()


def _count_kept(names, tensors, options):
    """The chunks for each state that walks keep."""
    given = dict(zip(("q", "k", "v", "d", *names[0]), tensors))
    batch, _, heads, columns = given["v"].shape
    # Chunks beside each other take no logarithms, of which some may be resets, and all columns of a state.
    if options["name"] != "ssd" or "numbers" in given or columns not in list_block_columns():
        return 1
    sequences = given["begins"].shape[0] - 1 if "begins" in given else batch
    return choose("ssd_gradients", torch.device(options["device"]), sequences, heads, given["q"].shape[3], columns)["EVERY"]


def _make_retention(call, of):
    parts = {name: call.add_shared(name, call.heads) for name in ("q", "k")}
    dv = call.add_rows("dv", call.given["v"])
    call.add_first()
    d, q, k, v, behind = of["d"], of["q"], of["k"], of["v"], call.find_state("s1")
    rows, columns = call.columns, call.width
    call.walk("retention", rows, columns, call.find_state("s0", True), q=d, k=v, v=k, o=parts["q"])
    call.walk("retention", rows, columns, call.find_state("s1", True), q=v, k=d, v=q, o=parts["k"], REVERSE=True)
    last = {"s1": call.places.places.get("ds0"), "FINAL": call.wants_first}
    call.walk("retention", columns, rows, behind, q=k, k=q, v=d, o=dv, REVERSE=True, **last)


def _make_gla(call, of):
    """The gradients of values, and what `_walk_states` gives."""
    of["dv"] = call.add_rows("dv", call.given["v"])
    _add_faded(call, of)
    _walk_states(call, "gla_bwd", of, call.add_result, k=of["until_k"], ADDED="faded", VALUES="VO")


def _make_gla_gradients(call, of):
    """Gradients of queries, keys and gates, of what `_make_gla` gives."""
    of.update({f"d{name}": call.add_rows(f"d{name}", call.given[name]) for name in ("q", "k")})
    of["dg"] = call.add_rows("dg", call.given["g"], element="f32")
    of["meets"] = call.places.view("meets", make_plain(call.batch, call.heads, call.chunks, call.width))
    call.launch_chunks("gla_gradients", of, DW=call.columns, OWN=not call.shares)


def _make_ssd(call, of):
    """Gradients of what steps are made of, of rates and, where they are given, of a bias and of skip of heads follow those of rows. Where a
    state is kept of each chunk, those of queries and keys are walks, and have parts of heads. Else they are of blocks of chunks beside each
    other, and heads of a block are added up."""
    makes_walks, count = call.every == 1, call.heads
    if not makes_walks:
        count = count_head_parts(call.batch * call.chunks, call.shared, count, _kernels.count_multiprocessors(call.device))
    of.update({f"d{name}": call.add_shared(name, count) for name in ("q", "k")}, dv=call.add_rows("dv", call.given["v"]))
    of["dsteps"] = call.add_gates("dsteps")
    call.add_result("of_rates", make_plain(call.heads))
    if "bias" in call.given:
        call.add_result("of_bias", make_plain(call.heads))
    if _skips_heads(call):
        call.add_result("dskip", make_plain(call.heads))
    call.add_first()
    (_walk_ssd if makes_walks else _launch_ssd_blocks)(call, of)
    call.restore_gates("dsteps")


def _skips_heads(call):
    """Whether a number of each head is given by which values pass."""
    form, _ = call.find_outputs(False)
    return form["SKIP"] and not form["ELEMENTS"]


def _launch_ssd_changes(call, of, blocks, parts=1, of_k="of_k"):
    """Gradients of what steps are made of, and of rates and biases, of `blocks`, of sums of rows, those of keys in memory of a name, and
    of what states and their gradients have in common, in parts."""
    sums, of_blocks = make_rows(call.batch, call.heads, parts, call.rows), make_plain(call.batch, call.heads, blocks)
    places = {name: call.places.view(memory, sums) for name, memory in (("of_q", "of_q"), ("of_k", of_k))}
    added = {"of_rates": "drates", **({"of_bias": "dbias"} if "bias" in call.given else {})}
    for name in added.values():
        call.add_temporary(name, of_blocks)
    form = {"RESETS": "logs" in of, "SLOPES": "slopes" in of, "BIASED": "of_bias" in added}
    kernel = _walk_recipes.find_kernel(call.is_cpu, "ssd_changes", C=CHUNK * call.every, **form)
    places.update({name: of[name] for name in ("logs", "slopes") if name in of})
    call.launch(kernel, **places, gates=of["dt"], dsteps=of["dsteps"])
    call.sum_heads(of_blocks, **added)


def _find_last_ssd(call):
    """What the walk takes that gives the gradients of values: from the end over gradients of states."""
    form, _ = call.find_outputs(False)
    last = {"s1": call.places.places.get("ds0"), "FINAL": call.wants_first, **form}
    return call.find_state("s1"), {"REVERSE": True, "STEPS": "own", **last}


def _walk_ssd(call, of):
    """Those of rates have a part of each chunk [B, H, N], and so has the product of queries and keys of the same token [B, H, P, N], of
    which the first of the P parts is enough."""
    rows, columns, skips, has_logs = call.columns, call.width, _skips_heads(call), "logs" in of
    count = -(-columns // choose("ssd", call.device, call.sequences, call.heads, rows, columns)["DV"])
    of_chunks = call.batch, call.heads, count, call.chunks
    if skips:
        call.add_temporary("same", make_plain(*of_chunks, fill=ZERO))
    call.add_temporary("meets", make_plain(*of_chunks))
    call.add_temporary("states", make_plain(call.batch, call.heads, call.chunks * rows, columns, element=call.form["T"]))
    sums = make_rows(*of_chunks[:3], call.rows)
    of_q, of_k = (call.add_temporary(name, sums) for name in ("of_q", "of_k"))
    d, q, k, v, gates = of["d"], of["q"], of["k"], of["v"], {name: of[name] for name in ("gates", "dt")}
    before, behind = call.find_state("s0", True), call.find_state("s1", True)
    state, last = _find_last_ssd(call)
    # Few blocks walk over few sequences, and leave multiprocessors idle.
    call.walk_beside("ssd", columns, rows, state, q=k, k=q, v=d, o=of["dv"], **gates, **last)
    # Of the walk that has registers for it.
    of_queries, of_keys = ({"SUMS": True, "SAME": skips and of_walk == has_logs} for of_walk in (False, True))
    call.walk("ssd", rows, columns, before, q=d, k=v, v=k, w=q, sums=of_q, o=of["dq"], **gates, **of_queries, KEEP=True)
    form = {"REVERSE": True, "STEPS": "own", **of_keys, "MEET": True}
    call.walk("ssd", rows, columns, behind, q=v, k=d, v=q, w=k, sums=of_k, o=of["dk"], **gates, **form)
    _launch_ssd_changes(call, of, call.chunks, count)
    if skips:
        strides = list_strides(of_chunks)
        call.sum_heads(Layout((call.batch, call.heads, call.chunks), (*strides[:2], 1), "f32"), dskip="same")


def _launch_ssd_blocks(call, of):
    """States and their gradients are kept of blocks of chunks, from walks over both, of which the latter has the gradients of values."""
    rows, columns, skips, every = call.width, call.columns, _skips_heads(call), call.every
    of_heads, blocks, form = (call.batch, call.heads), -(-call.chunks // every), {"EVERY": every}
    of_rows = make_rows(*of_heads, call.rows)
    of_q = call.add_temporary("of_q", of_rows)
    sums = call.add_temporary("block_sums", make_plain(*of_heads, blocks * every * CHUNK))
    keeps = call.add_temporary("keeps", make_plain(*of_heads, call.chunks))
    for name in ("states", "back"):
        call.add_temporary(name, make_plain(*of_heads, blocks * rows, columns, element=call.form["T"]))
    call.add_temporary("meets", make_plain(*of_heads, every, blocks, fill=ZERO))
    if skips:
        call.add_temporary("same", make_plain(*of_heads, call.chunks))
    d, q, k, v, dt = of["d"], of["q"], of["k"], of["v"], of["dt"]
    # What tokens leave is read for the last time before sums of rows are written.
    call.launch_chunks("ssd_factors", {"dt": dt, "sums": sums, "leaves": of_q, "keeps": keeps}, **form)
    added = {"ADDED": "values", "VALUES": "VO", **form}
    # Few blocks walk over few sequences, and leave multiprocessors idle.
    call.walk_beside("states", rows, columns, call.find_state("s0"), k=k, v=v, leaves=of_q, keeps=keeps, **added)
    state, last = _find_last_ssd(call)
    back = call.places.places["back"]
    call.walk("ssd", rows, columns, state, q=k, k=q, v=d, o=of["dv"], gates=of["gates"], dt=dt, states=back, KEEP=True, **form, **last)
    form.update(DK=rows, DV=columns)
    tokens = {"sums": sums, "dt": dt}
    of_queries = {"x": d, "y": v, "z": k, "w": q, "of": of_q, "o": of["dq"], **tokens}
    call.launch_chunks("ssd_gradients", of_queries, MEET=True, SAME=skips, **form)
    # Nothing needs the states before blocks any more.
    of_k = call.places.view("states", of_rows)
    of_keys = {"x": v, "y": d, "z": q, "w": k, "of": of_k, "o": of["dk"], "states": back, **tokens}
    call.launch_chunks("ssd_gradients", of_keys, REVERSE=True, **form)
    _launch_ssd_changes(call, of, blocks, of_k="states")
    if skips:
        call.sum_heads(make_plain(*of_heads, call.chunks), dskip="same")


def _make_delta(call, of):
    of.update({f"d{name}": call.add_rows(f"d{name}", call.given[name]) for name in ("q", "k", "v")})
    of.update({name: call.add_gates(name) for name in ("dg", "dbeta")}, u=call.find_rows("news"), z=of["dv"])
    rows = make_rows(call.batch, call.heads, call.rows)
    for name, result in (("since", "dk"), ("until", "dq")):
        of[name] = call.places.view(call.find_memory(name, rows, result), rows)
    of["keeps"] = call.add_temporary("keeps", make_plain(call.batch, call.heads, call.chunks))
    _walk_states(call, "delta_rule_bwd", of, call.add_temporary, "dk", v=of["u"], leaves=of["until"])
    call.launch_chunks("delta_rule_gradients", of, DK=call.width, DW=call.columns, OWN=not call.shares)
    call.restore_gates("dg", "dbeta")


def _make_kda(call, of):
    """What gradients take of a delta rule with gates of channels: the gradients of news, in memory of those of values, and what
    `_walk_states` gives."""
    of["z"] = call.add_rows("z", call.given["v"])
    _add_faded(call, of)
    _walk_states(call, "kda_bwd", of, call.add_result, k=of["until_k"], v=call.find_rows("news"), ADDED="faded")


def _add_faded(call, of):
    """Adds the places of keys until the end of their chunk, and of what chunks keep of channels, which both walks take."""
    keys = make_plain(call.batch, call.shared, call.rows, call.width, element=call.form["T"])
    of["until_k"] = call.add_temporary("until_k", keys)
    of["keeps"] = call.add_temporary("keeps", make_plain(call.batch, call.shared, call.chunks * call.width))


def _walk_states(call, name, of, add, of_parts=None, **own):
    """A walk from the end over gradients of states, and one over states behind it, of which `own` are places and parameters. What `add`
    makes room for are the states before chunks and their gradients behind [B, H, N K, V], and what these have in common [B, H, N K], in
    parts where the result `of_parts` will be. The gradients of the states before sequences are the next result."""
    numbers, parts, element = call.chunks * call.width, call.count_parts("states"), call.form["T"]
    for each in ("states", "back"):
        add(each, make_plain(call.batch, call.heads, numbers, call.columns, element=element))
        of[each] = call.places.places[each]
    add("sums", make_plain(call.batch, call.heads, numbers))
    of["meets"] = call.places.places["sums"]
    call.add_first()
    # W is read for the last time before states are written.
    w, behind = make_plain(call.batch, call.heads, call.rows, call.width, element=element), call.find_state("s1")
    form = {"INITIAL": behind is not None, "FINAL": call.wants_first}
    call.walk(name, call.width, call.columns, **of, w=call.places.view("states", w), s1=behind, **form)
    meets = make_plain(call.batch, call.heads, parts, numbers)
    memory = call.find_memory("meets", meets, of_parts) if parts > 1 else "sums"
    places = {**of, "meets": call.places.view(memory, meets), **own}
    call.walk("states", call.width, call.columns, call.find_state("s0"), **places, MEET=True)
    if parts > 1:
        count = call.batch * call.heads
        added, sums = (make_plain(count, *each, call.chunks, call.width) for each in ((parts,), ()))
        call.launch_sums(call.places.view(memory, added), call.places.view("sums", sums), D=call.width)


def _make_channels(call, of):
    """Gradients of a delta rule with gates of channels, of what `_make_kda` gives. Those of values are written where those of news are
    read."""
    of.update({f"d{name}": call.add_rows(f"d{name}", call.given[name]) for name in ("q", "k")})
    of.update(dg=call.add_rows("dg", call.given["g"], "f32"), dbeta=call.add_gates("dbeta"))
    of.update(u=call.find_rows("news"), dv=call.find_rows("dv"))
    call.launch_chunks("kda_gradients", of, DW=call.columns, OWN=not call.shares)
    call.restore_gates("dbeta")


_MAKERS = {
    "retention": _make_retention, "gla": _make_gla, "ssd": _make_ssd, "delta_rule": _make_delta, "kda": _make_kda,
    "channels": _make_channels, "gla_gradients": _make_gla_gradients,
}  # fmt: skip
_recipes.MAKERS[GRADIENTS] = make
