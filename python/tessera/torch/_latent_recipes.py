"""What latent attention launches: mla_decode.tile or mla_sparse.tile, and what divides keys and joins the parts."""

from __future__ import annotations

import functools
import json

import torch

from .._attention import _latent, _recipes, _shares
from .._attention._latent import ROWS, STEP, VALUE
from .._compiler._program import Program
from .._core import _free, _library
from .._core._layouts import CONSTANT, Layout, Places, Recipe, list_strides
from . import _kernels, _share_recipes

LATENT = "latent attention"


def write(names, **options):
    """The text of a call with q [B, SQ, H, 576], a cache [pages, rows, 1, 576], or of bytes, and tensors of these names: `pages` or
    `indices`, and maybe `lengths`, `sinks`, `shares` and `starts`. Without pages q may be [tokens, H, 576], and the cache [rows, 1, 576].

    device: where it runs.
    causal: whether a query sees the keys up to its own.
    share: how many keys a part has; None to find it.
    """
    return f"{LATENT}\n{','.join(names)}||\n{json.dumps(options, sort_keys=True)}"


def count_shares(rows, device):
    return _latent.count_shares(rows, _kernels.count_multiprocessors(device))


def make(kind, names, text, tensors):
    """The Recipe of a text. Results are output and LSE, of tokens the largest scores between them."""
    scope = _free.Scope()
    tensors = scope.open(tensors, _list_free(names[0], tensors))
    return scope.close(_Call(kind, names, json.loads(text), tensors).make())


def _list_free(names, tensors):
    """The extents that may be free, (tensor, dim): entries of a table, and tokens of lists with the rows that these name."""
    if "pages" in names:
        return [(2 + names.index("pages"), 1)]
    if len(tensors[0].shape) == 4:
        return []
    return [(0, 0), (1, 0), *((place, 0) for place, name in enumerate(names, 2) if name in ("indices", "lengths"))]


_recipes.MAKERS[LATENT] = make


class _Call:
    def __init__(self, kind, names, options, tensors):
        self.is_cpu, self.device, self.options = kind is Program, torch.device(options["device"]), options
        self.given, self.places = dict(zip(names[0], tensors[2:])), Places(names, tensors, ("q", "cache"), plain=names[0])
        q, self.cache = tensors[:2]
        self.is_listed, self.has_maxima = "indices" in self.given, len(q.shape) == 3
        self.table = self.places.align("indices", self.given["indices"]) if self.is_listed else self.given["pages"]
        self.shape, self.element = q.shape[:-1], q.element
        if self.has_maxima:
            self.cache, self.table = self.cache.insert(1), self.table.drop(1)
        elif self.is_listed:
            q, self.table, self.cache = self._join(q)
        self.q = q.insert(1) if self.is_listed else q
        self.batch, self.rows, self.heads, self.width = self.q.shape
        self.packed = _shares.count_packed(self.heads, self.rows, ROWS)
        self.tiles = self.batch * (self.heads // self.packed)
        self.most = self.table.shape[1] * (1 if self.is_listed else self.cache.shape[1])

    def _join(self, q):
        """Queries of sequences and their lists as those of tokens, and all rows of the cache as one page."""
        places, (batch, count) = self.places, q.shape[:2]
        if "lengths" in self.given and count > 1:
            # The length of a sequence for each of its queries.
            places.copy("lengths", Layout((count, batch), (1, count), "i32"))
            places.places["lengths"] = places.view("lengths", Layout((batch * count,), (1,), "i32"))
        return places.join("q", q), places.join("indices", self.table), self.cache.join(0).insert(1)

    def make(self):
        results = self._add_results()
        if self._is_balanced():
            steps = self._attend_shares()
        else:
            steps = self._attend_parts(self._find_share() if self.options["share"] is None else self.options["share"])
        places = self.places
        return Recipe(tuple(steps), results, tuple(places.temporaries), tuple(places.copies), tuple(places.views))

    def _add_results(self):
        """The layouts of what a call gives. Notes those of [B, SQ, H, 512] and [B, H, SQ]."""
        shape = (*self.shape, VALUE)
        out, numbers = Layout(shape, list_strides(shape), self.element), Layout(self.shape, list_strides(self.shape), "f32")
        dense = (self.batch, self.rows, self.heads, VALUE), (self.batch, self.heads, self.rows)
        self.out, self.lse = (Layout(own, list_strides(own), kind) for own, kind in zip(dense, (self.element, "f32")))
        if self.has_maxima:
            self.places.add_results("out", "largest", "lse")
            return out, numbers, numbers
        self.places.add_results("out", "lse")
        if self.is_listed:  # A query of a sequence has the largest scores and the LSE of all heads one behind the other.
            self.places.add_temporary("largest", self.lse)
            return out, numbers.permute(0, 2, 1)
        return out, self.lse

    def _is_balanced(self):
        if self.is_listed or self.options["share"] is not None:
            return False
        find = functools.partial(_kernels.find_numbers, self.device, ("TILES", self.tiles))
        return _free.ask(self.most, lambda steps: find(("STEPS", steps))["BALANCED"], STEP)

    def _find_share(self):
        """How many keys a part has."""
        if not self.is_listed:
            return _latent.count_steps(self.most) * STEP
        least, multiprocessors = _kernels.find_numbers(self.device)["LEAST_OF_PART"], _kernels.count_multiprocessors(self.device)
        tiles = _free.peek(self.tiles)
        share = _latent.find_keys_per_part(self.most, tiles, multiprocessors, least)
        # Lists are divided into the same parts as long as so many of a tile fill the GPU.
        parts = max(1, multiprocessors // tiles)
        _free.limit(self.tiles, multiprocessors // (parts + 1) + 1, multiprocessors // parts if parts > 1 else _free.MOST)
        return share

    def _bind(self, out, lse, more, source=None, of_parts=False, **parameters):
        """A step of the kernel, to places of an output as it takes it and of an LSE. `more` are its last arguments. Parts have no sinks."""
        places = self.places
        rows = self._view_rows()
        if len(rows) > 1:
            parameters["CACHED"] = rows[0][1].element
        rows = [place for place, _ in rows]
        if self.is_listed:
            parameters.update(_latent.describe_lists("lengths" in self.given))
        else:
            parameters.update(_latent.describe_pages(self.rows, self.cache.shape[1], self.options["causal"]))
        sinks = [places.places["sinks"]] if "sinks" in self.given and not of_parts else []
        if sinks:
            parameters["SINK"] = True
        source = _library.find_source(source or ("mla_sparse" if self.is_listed else "mla_decode"))
        kernel = _kernels.find(self.is_cpu, source, T=self.element, HEADS=self.packed, KEY=self.width, **parameters)
        table = places.view("indices" if self.is_listed else "pages", self.table)
        lengths = [places.places["lengths"]] if "lengths" in self.given else []
        q = places.view("q", self.q.permute(0, 2, 1, 3))
        return kernel, (q, *rows, table, *lengths, out, lse, places.places["scale"], *sinks, *more)

    def _view_rows(self):
        """(place, Layout) of the rows of the cache as kernels take them: of bytes each of their parts."""
        x = self.cache.permute(0, 2, 1, 3)
        parts = [(x, 0)]
        if x.element != self.element:
            parts = [(x.take(element, first, count), first) for element, first, count in _latent.PARTS]
        return [(self.places.view("cache", own, offset), own) for own, offset in parts]

    def _view_out(self, name, layout):
        return self.places.view(name, layout.permute(0, 2, 1, 3))

    def _attend_parts(self, share):
        """All keys in parts, which are joined in their order."""
        places, count, constant = self.places, _latent.count_parts(_free.peek(self.most), share), (CONSTANT, share)
        _free.limit(self.most, (count - 1) * share + 1, count * share)
        if count == 1:
            largest = [places.view("largest", self.lse)] if self.is_listed else []
            return [self._bind(self._view_out("out", self.out), places.view("lse", self.lse), [constant, *largest])]
        parts, logs = self._lay_parts(count * self.batch)
        for name, layout in (("parts", parts), ("logs", logs), *([("scores", logs)] if self.is_listed else [])):
            places.add_temporary(name, layout)
        more = [constant, *(places.places[name] for name in ("scores",) if name in places.places)]
        own = self._bind(self._view_out("parts", parts), places.places["logs"], more, of_parts=True)
        # Where a caller asks for parts of so many keys, bits depend on no batch.
        known = count if self.options["share"] is None else None
        return [own, self._bind_merge(parts, logs, count=known, scores=("scores", "largest") if self.has_maxima else ())]

    def _bind_merge(self, parts, logs, **of_parts):
        return _share_recipes.bind_merge(
            _kernels.find, self.is_cpu, self.places, self.device, parts, logs, self.out, self.lse, **of_parts
        )  # fmt: skip

    def _lay_parts(self, slots):
        """The layouts of parts of outputs, [slots, SQ, H, 512], and of their LSE, [slots, H, SQ]."""
        shapes = ((slots, self.rows, self.heads, VALUE), self.element), ((slots, self.heads, self.rows), "f32")
        return (Layout(shape, list_strides(shape), element) for shape, element in shapes)

    def _attend_shares(self):
        """The keys of all sequences in as many equal shares as fill the GPU."""
        places, steps = self.places, []
        count = count_shares(self.tiles // self.batch * ROWS, self.device)
        shares, starts = _share_recipes.list_layouts(self.batch, count)
        if "shares" in self.given:
            shares = self.given["shares"]
        else:
            places.add_temporary("starts", starts), places.add_temporary("shares", shares)
            steps.append(_share_recipes.bind_balance(_kernels.find, self.is_cpu, places, shares, count, self.device))
        slots = _shares.count_slots(self.batch, shares.shape[1])
        parts, logs = self._lay_parts(slots)
        places.add_temporary("parts", parts), places.add_temporary("logs", logs)
        more = *_share_recipes.list_operands(places, shares), self._view_out("parts", parts), places.places["logs"]
        few, is_bytes = _kernels.find_numbers(self.device)["FEW_ROWS"], self.cache.element != self.element
        source, parameters = _latent.describe_shares(self.heads, self.rows, self.cache.shape[1], is_bytes, few)
        steps.append(self._bind(self._view_out("out", self.out), places.places["lse"], more, source, **parameters))
        return [*steps, self._bind_merge(parts, logs, shares=shares)]
