"""What the forward pass of a recurrence launches: where its sequences lie, gates as kernels take them, and the walk."""

from __future__ import annotations

import functools
import itertools
import json

import torch

from .._attention import _recipes, _recurrences
from .._attention._recurrences import CHUNK
from .._compiler._program import Program
from .._core._layouts import CONSTANT, NOTHING, RESULT, ZERO, Layout, Places, Recipe, list_strides
from . import _kernels
from ._step_recipes import choose, name_numbers

WALK, UNITS = "a walk of a recurrence", "rows of length 1"
# Gates of a head start at multiples of so many, as copies take them.
_GATES_APART = 4


def pad_gates(tokens):
    return -(-tokens // _GATES_APART) * _GATES_APART


def find_kernel(is_cpu, name, **parameters):
    return _kernels.find(is_cpu, _recurrences.find_source(name), **parameters)


def find_walk(is_cpu, name, device, extents, **parameters):
    """The kernel of a walk over states of extents (batch, heads, rows, columns), with what rules choose for these."""
    choice = choose(name, device, *extents)
    source = choice["form"] or _recurrences.find_source(name)
    return _kernels.find(is_cpu, source, DK=extents[2], **{**_recurrences.pick(choice), **parameters})


def count_rows(tokens, sequences, every=1):
    """The rows of all chunks of packed sequences, each of which has a multiple of so many."""
    block = CHUNK * every
    return block * (tokens // block + sequences)


@functools.lru_cache(maxsize=256)
def write(names, name, device, wants_state=False, keeps=False, norm=False, joins=False, made="given", form=()):
    """The text of a call with q and k [B, T, HK, K], v [B, T, H, V] and tensors of these names:

    g, beta, dt: gates, rates and what steps are made of, of heads, [B, T, H]; gates of channels are [B, T, HK, K].
    rates, bias, skip, log2_decay: numbers of heads, [H], or of each element, [H, V], as skip may be.
    numbers:     of sequences that lie one behind the other, [B, T] of int32 or int64.
    z:           [B, T, H, V], by whose silu outputs are multiplied.
    s0:          the states before sequences, [sequences, H, K, V] of float32.
    begins:      where packed sequences begin, [sequences + 1] of int32 or int64; or
    table:       the first chunk of each sequence or segment, and that behind its last, [2, sequences] of int32.
    first:       the state before the first segment, [1, H, K, V] of float32.
    o, s1:       memory for the results.

    name: the kernel.
    device: where it runs.
    wants_state: the states behind sequences are a result, behind the outputs.
    keeps: so is what gradients take: with z outputs before it, and of delta rules what is new of the values, the inverses of chunks, and
        with gates of channels scores.
    norm: whether queries and keys are divided by their lengths.
    joins: the only result is the states before segments, [segments, H, K, V], in the direction of the walk.
    made: how steps are made of dt, of which a call has the limits as numbers (given_steps.tile).
    form: further parameters of the kernel, (name, value) of each.
    """
    options = {"name": name, "device": str(device), "wants_state": wants_state, "keeps": keeps, "norm": norm, "joins": joins, "form": form}
    return f"{WALK}\n{','.join(names)}|{name_numbers(made)}|\n{json.dumps({**options, 'made': made})}"


def make_plain(*shape, element="f32", fill=NOTHING):
    """Memory without gaps."""
    return Layout(shape, list_strides(shape), element, fill=fill)


def make_rows(*shape):
    """Memory of gates of heads, or of numbers like these, [..., rows]."""
    padded = *shape[:-1], pad_gates(shape[-1])
    return Layout(shape, list_strides(padded), "f32")


class Call:
    """A call whose recipe is being made."""

    #: Whether what steps change by is needed.
    wants_slopes = False

    def __init__(self, kind, names, own, tensors, device, made, every=1):
        """`names` are those of the text, and `own` those of the tensors before its views. Steps are `made` so. Walks keep a state of
        `every` so many chunks."""
        self.is_cpu, self.device = kind is Program, torch.device(device)
        self.places = Places(names, tensors, own, plain=names[0])
        self.given = {name: x for name, x in zip((*own, *names[0]), tensors) if x is not None}
        self.steps, self.results, self.beside = [], [], []
        self.batch, self.tokens, self.heads, self.columns = self.given["v"].shape
        self.shared, self.width = self.given["q"].shape[2:]
        self.is_packed = "begins" in self.given
        self.sequences = self.given["begins"].shape[0] - 1 if self.is_packed else self.batch
        self.every, self.made = every, made
        self.rows = count_rows(self.tokens, self.sequences, every) if self.is_packed else self.tokens
        self.tables, self.form = {}, {"T": self.given["q"].element}
        if "numbers" in self.given:
            self.form["RESETS"] = True
        if self.is_packed:
            self._find_tables()
        elif "table" in self.given:
            self._show_table(self.given["table"])

    def launch(self, kernel, **places):
        self.steps.append(self.places.bind(kernel, **self.tables, **places))

    def add_temporary(self, name, layout):
        self.places.add_temporary(name, layout)
        return self.places.places[name]

    def add_result(self, name, layout):
        self.places.places[name] = RESULT, len(self.results)
        self.results.append(layout)

    def _find_tables(self):
        begins, count = self.given["begins"], self.rows // CHUNK
        if begins.strides != (1,):
            begins = make_plain(*begins.shape, element=begins.element)
            self.places.copy("begins", begins)
        extents = {"firsts": self.sequences, "pasts": self.sequences, "starts": count, "ends": count}
        tables = {name: self.add_temporary(name, make_plain(extent, element="i32")) for name, extent in extents.items()}
        self.launch(find_kernel(self.is_cpu, "tables", BEGIN=begins.element, EVERY=self.every))
        self.tables, self.form["PACKED"], self.form["IN_PLACE"] = tables, True, True

    def _show_table(self, table):
        self.sequences = table.shape[1]
        row = make_plain(self.sequences, element="i32")
        self.tables = {name: self.places.view("table", row, 4 * i * table.strides[0]) for i, name in enumerate(("firsts", "pasts"))}
        self.form["PACKED"] = True

    def find_rows(self, name):
        """The place of [B, T, H, D] with heads first."""
        return self.places.view(name, self.given[name].permute(0, 2, 1, 3))

    def lay_out_gates(self, names):
        """The places of gates of heads, by names, with heads first, of f32, each head at a multiple of 16 bytes: of two of a type by one
        launch."""
        made, found = {}, {}
        for name in names:
            element = self.lay_out_last(name)
            found[name] = self.add_rows_of(name)
            made.setdefault(element, []).append((self.places.places[name], found[name]))
        for element, pairs in made.items():
            self.launch_gates(pairs, GATE=element)
        return found

    def add_rows_of(self, name):
        """The place of rows of gates of heads, in memory for the time of the call."""
        return self.add_temporary(f"{name}_rows", make_rows(self.batch, self.heads, self.rows))

    def lay_out_last(self, name):
        """The element type of numbers of tokens, of a copy where the last dimension is not dense."""
        own = self.given[name]
        if own.strides[-1] != 1:
            self.places.copy(name, make_plain(*own.shape, element=own.element))
        return own.element

    def lay_out_steps(self):
        """The places of steps, made of what is given, of what they change by, and of logarithms of factors where there are numbers of
        sequences: by names of kernels."""
        form = {"GATE": self.lay_out_last("dt"), "MADE": self.made, "BIASED": "bias" in self.given, "PACKED": self.is_packed}
        places = {"dt": self.add_rows_of("dt")}
        if self.wants_slopes and self.made != "given":
            places["slopes"], form["SLOPES"] = self.add_rows_of("slopes"), True
        if "numbers" in self.given:
            places["logs"], form["NUMBER"], form["RESETS"] = self.add_rows_of("logs"), self.lay_out_last("numbers"), True
        kernel = find_kernel(self.is_cpu, "gates", **form)
        self.launch(kernel, tokens=self.places.places["dt"], rows=places["dt"], **places)
        return {**places, "gates": places.get("logs", places["dt"])}

    def launch_gates(self, pairs, **parameters):
        """Brings gates of tokens, [B, T, H], to rows [B, H, R] or back; `pairs` are places of one and the other."""
        for i in range(0, len(pairs), 2):
            own = pairs[i : i + 2]
            of = dict(zip(("tokens", "rows", "more", "more_rows"), itertools.chain(*own)))
            form = {"MORE": len(own) == 2, "PACKED": self.is_packed}
            self.launch(find_kernel(self.is_cpu, "gates", **form, **parameters), **of)

    def lay_out(self, name):
        """The layout of what kernels take as it lies where that is dense and of f32, of a copy elsewhere."""
        own, dense = self.given[name], make_plain(*self.given[name].shape)
        if own != dense:
            self.places.copy(name, dense)
        return dense

    def find_gates(self):
        """The places of what walks take of tokens beside rows, and of heads."""
        given = {name: len(self.given[name].shape) for name in ("g", "beta", "rates", "bias", "skip", "log2_decay") if name in self.given}
        places = self.lay_out_gates([name for name, rank in given.items() if rank == 3])
        for name, rank in given.items():
            if rank == 4:
                places[name] = self.places.view(name, self.lay_out(name).permute(0, 2, 1, 3))
            elif rank < 3:
                self.lay_out(name)
        return self.lay_out_steps() if "dt" in self.given else places

    def find_outputs(self, keeps):
        """(the parameters of what outputs have beside those of the state, places of these)."""
        form, z = {"SKIP": "skip" in self.given}, self.given.get("z")
        if form["SKIP"]:
            form["ELEMENTS"] = len(self.given["skip"].shape) == 2
        if z is None:
            return form, {}
        if not z.has_rows():
            z = z.make_dense()
            self.places.copy("z", z)
        return {**form, "GATED": True, "GATE": z.element, "UNGATED": keeps}, {"z": self.places.view("z", z.permute(0, 2, 1, 3))}

    def find_state(self, name, transposed=False):
        """The place of the states of this name before or behind sequences, [sequences, H, K, V], or transposed. Where none are given,
        all walks over packed sequences begin with the same zeros, and others have None."""
        shape = self.sequences, self.heads, self.width, self.columns
        plain = make_plain(*shape)
        laid = make_plain(*shape[:2], *shape[:1:-1]).permute(0, 1, 3, 2) if transposed else plain
        own = f"{name}_{transposed}"
        if name in self.given:
            self.places.places[own] = self.places.places[name]
            if self.given[name] != laid:
                self.places.copy(own, laid)
        elif self.tables:
            own = "no_states"
            if own not in self.places.places:
                self.add_temporary(own, plain._replace(fill=ZERO))
        else:
            return None
        return self.places.view(own, laid.permute(0, 1, 3, 2) if transposed else laid)

    def join_segments(self, of, is_reverse):
        """From what each segment leaves by itself, the states before them. `of` are the places of what the walk takes of tokens."""
        given, shape = self.given, (self.sequences, self.heads, self.width, self.columns)
        source = "steps" if "dt" in given else "channels" if "g" in given else "powers"
        of_channels = source == "channels"
        self.add_temporary("sums", make_plain(self.sequences, self.shared, self.width) if of_channels else make_plain(*shape[:2]))
        parameters = {"OF": source, "RESETS": "numbers" in given, **({"DK": self.width} if of_channels else {})}
        self.launch(find_kernel(self.is_cpu, "segment_sums", **parameters), **of, tokens=(CONSTANT, self.tokens))
        if "first" in given:
            self.lay_out("first")
        self.add_result("before", make_plain(*shape))
        form = {"CHANNELS": of_channels, "INITIAL": "first" in given, "REVERSE": is_reverse}
        first = {"s0": self.places.places["first"]} if "first" in given else {}
        self.launch(find_kernel(self.is_cpu, "join_segments", **form), left=self.places.places["s1"], **first)

    def make_unit_rows(self):
        """The places of queries and keys that are divided by their lengths."""
        made = {name: make_plain(*x.shape, element=x.element) for name, x in self.given.items() if name in ("q", "k")}
        of = {name: self.find_rows(name) for name in made}
        for name, layout in made.items():
            self.add_temporary(f"of_{name}", layout)
        units = {name: self.places.view(f"of_{name}", layout.permute(0, 2, 1, 3)) for name, layout in made.items()}
        kernel = find_kernel(self.is_cpu, "unit_rows", T=self.form["T"], DK=self.width)
        self.launch(kernel, **of, **{f"of_{name}": place for name, place in units.items()})
        return units

    def finish(self):
        places = self.places
        return Recipe(
            tuple(self.steps), tuple(self.results), tuple(places.temporaries), copies=tuple(places.copies), views=tuple(places.views),
            beside=tuple(self.beside),
        )  # fmt: skip


def make(kind, names, text, tensors):
    """The Recipe of a text. Results are the outputs [B, T, H, V], the states behind, and what gradients take."""
    options = json.loads(text)
    call, name = Call(kind, names, ("q", "k", "v"), tensors, options["device"], options["made"]), options["name"]
    v, of_channels = call.given["v"], len(call.given["g"].shape) == 4 if "g" in call.given else False
    of = call.make_unit_rows() if options["norm"] else {each: call.find_rows(each) for each in ("q", "k")}
    of.update(v=call.find_rows("v"), **call.find_gates())
    out, before = call.given.get("o", v.make_dense()), call.find_state("s0")
    form = {**call.form, "INITIAL": before is not None, "FINAL": options["wants_state"] or options["joins"], **dict(options["form"])}
    add = call.add_temporary if options["joins"] else call.add_result
    if "o" not in call.given:
        add("o", out)
    of.update(o=call.places.view("o", out.permute(0, 2, 1, 3)), s0=before)
    if form["FINAL"] and "s1" not in call.given:
        add("s1", make_plain(call.sequences, call.heads, call.width, call.columns))
    if name == "ssd":
        more, places = call.find_outputs(options["keeps"])
        form, of = {**more, **form}, {**of, **places}
    if name in ("delta_rule", "kda"):
        form["NEWS"] = options["keeps"]
    if options["keeps"] and name == "ssd":
        call.add_result("ungated", out)
        of["ungated"] = call.places.view("ungated", out.permute(0, 2, 1, 3))
    elif options["keeps"]:
        news = make_plain(call.batch, call.rows, call.heads, call.columns, element=v.element)
        call.add_result("news_of", news)
        of["news_of"] = call.places.view("news_of", news.permute(0, 2, 1, 3))
        call.add_result("inverses", make_plain(call.batch, call.heads, call.rows, CHUNK, element=v.element))
        if of_channels:
            call.add_result("scores", make_plain(call.batch, call.shared, call.rows, CHUNK, element=v.element))
    if name == "kda":
        form["OWN"] = call.shared == call.heads
    call.launch(find_walk(call.is_cpu, name, call.device, (call.sequences, call.heads, call.width, call.columns), **form), **of)
    if options["joins"]:
        call.join_segments(of, form.get("REVERSE", False))
    return call.finish()


@functools.lru_cache(maxsize=256)
def write_units(device, back=False):
    """The text of a call with q and k [B, T, H, K], which gives them divided by their lengths; with `back` of two gradients of these, which
    follow, those of q and k."""
    return f"{UNITS}\n{'dq,dk' if back else ''}||\n{device}"


def make_units(kind, names, text, tensors):
    """The Recipe of such a text."""
    given = dict(zip(("q", "k", *names[0]), tensors))
    places = Places(names, tensors, ("q", "k"), plain=names[0])
    results = {f"of_{name}": make_plain(*given[name].shape, element=given[name].element) for name in ("q", "k")}
    places.add_results(*results)
    of = {name: places.view(name, x.permute(0, 2, 1, 3)) for name, x in {**given, **results}.items()}
    form = {"T": given["q"].element, "DK": given["q"].shape[3], "BACK": bool(names[0])}
    step = places.bind(find_kernel(kind is Program, "unit_rows", **form), **of)
    return Recipe((step,), tuple(results.values()), views=tuple(places.views))


_recipes.MAKERS[WALK] = make
_recipes.MAKERS[UNITS] = make_units
