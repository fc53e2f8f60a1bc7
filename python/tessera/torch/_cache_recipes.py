"""What calls of attention over caches launch: kv_append.tile for new keys, attention_cache.tile with a variant, and merge_states.tile
where keys are divided.

It follows from the layouts of tensors and from a text alone. So it is found once for calls that are alike, also of engines. How many
rows contiguous keys have, how long tables are and how many tokens are packed are free where nothing depends on them.
"""

from __future__ import annotations

import json
import operator
import warnings

import torch

from .._attention import _recipes, _shares, _variants
from .._compiler import _choices
from .._compiler._program import Program
from .._core import _free, _library
from .._core._layouts import CONSTANT, Layout, Places, Recipe, list_strides, make_dense
from . import _append_recipes, _kernels, _state_recipes

CACHE = "attention over a cache"
# A window that does not end.
_FARTHEST = 2**30
# Rows of the smallest tile, and what the steps of all kernels divide.
ROWS, STEP = 64, 128
# Among so many sequences kernels find the one of a tile, in four steps of 32, and so many heads have the rows of one.
MOST_SEQUENCES, MOST_HEADS = 32**4, 64

# Tensors that have no batch.
_OF_HEADS = "slopes", "sinks", "cos", "sin", "ones"
# What is compiled beside the program, by source and parameters.
_begun = {}


class NotReady(Exception):
    """A kernel is compiled beside the program, or cannot be."""


def find_ready(is_cpu, source, kernel, **parameters):
    """`_kernels.find` of what need not be waited for. Raises NotReady."""
    if is_cpu:
        return _kernels.find(is_cpu, source, kernel, **parameters)
    key = source, *sorted(parameters.items())
    future = _begun.get(key)
    if future is None:
        future = _begun[key] = _variants.begin_aside(_kernels.find, is_cpu, source, kernel, **parameters)
    if not future.done():
        raise NotReady
    if future.exception() is not None:
        # As each warning, Python says it once.
        warnings.warn(f"calls of few queries go on with kernels for others: {future.exception()}", RuntimeWarning)
        raise NotReady
    return future.result()


def write(names, **options):
    """The text of a call with q, k, v and tensors of these names.

    device: where it runs.
    layout: "BSHD" of q [B, SQ, H, D] and caches [pages, rows, HK, D], "BHSD" of these three with heads before rows.
    left, right: the window, None where it does not end.
    softcap: whether scores have one, which is the second number.
    count, share: into how many parts keys are divided, 0 to find it; or how many a part has, or None.
    variant: a mask of its own: the source's name, integers that it takes, and its parameters; or None.
    most: of packed queries, q [tokens, H, D] with `query_starts`, how many a sequence has at most, by `round_most`; or None. Keys lie
          so too, or in pages. They begin at `key_starts`, and `lengths` say how many there are if these do not.
    new: of new keys `new_k` and `new_v` and maybe `cos` and `sin`, whether pairs are neighbours; or None.
    Caches of 8 bits come with `k_descale` and `v_descale`, or `ones`, [1, 1].
    invariant: whether the bits of a query depend on nothing but it and its keys.
    aside: whether the call goes on without kernels that are not compiled yet.
    """
    return f"{CACHE}\n{','.join(names)}|cap|\n{json.dumps(options, sort_keys=True)}"


def round_most(most):
    """A number of queries, rounded up so that calls of about as many launch the same: tiles have a power of 2 of rows, 64 at least."""
    return 1 << (most - 1).bit_length() if most <= ROWS else -(-most // ROWS) * ROWS


def make(kind, names, text, tensors):
    """The Recipe of a text. Results are the output, unless there is an `out`, and the LSE."""
    options, scope = json.loads(text), _free.Scope()
    is_single = options["most"] == 1 and "pages" in names[0] and not options["invariant"]
    tensors = scope.open(tensors, _list_free(names[0], options, tensors))
    return scope.close((_SingleCall if is_single else _Call)(kind, names, options, tensors).make())


def _list_free(names, options, tensors):
    """The extents that may be free, (tensor, dim)."""
    if "pages" in names:
        free = [(3 + names.index("pages"), 1)]
    elif options["most"] is not None:
        free = [(1, 0), (2, 0)]
    else:
        free = [(place, 2 if options["layout"] == "BHSD" else 1) for place in (1, 2)]
    if options["most"] is not None:
        return free + [(0, 0), *((3 + names.index(name), 0) for name in names if name == "out")]
    of_batch = [0, *(() if "pages" in names else (1, 2)), *(3 + place for place, name in enumerate(names) if name not in _OF_HEADS)]
    return free + [(place, 0) for place in of_batch]


_recipes.MAKERS[CACHE] = make


class _Call:
    #: Whether attention is of rows of sequences, whose queries lie one behind the other as tokens.
    is_single = False

    def __init__(self, kind, names, options, tensors):
        self.is_cpu, self.options = kind is Program, options
        self.find = find_ready if options["aside"] else _kernels.find
        self.device = torch.device(options["device"])
        self.given = dict(zip(names[0], tensors[3:]))
        self.places = Places(names, tensors, ("q", "k", "v"), plain=names[0])
        self.original = tensors[0]
        sinks = self.given.get("sinks")
        if sinks is not None and sinks.element != "f32":
            self.places.copy("sinks", Layout(sinks.shape, (1,), "f32"))
        self.has_table, self.has_tokens = "pages" in self.given, options["most"] is not None
        self.is_packed = self.has_tokens and not self.is_single
        self.q, self.k, self.v = (self._turn(x) for x in tensors[:3])
        self.batch, self.rows, self.heads, self.width = self.q.shape
        if self.has_tokens:
            self.batch, self.rows = self.given["query_starts"].shape[0] - 1, options["most"]
        self.key_heads, self.value = self.k.shape[2], self.v.shape[3]
        self.most = self.given["pages"].shape[1] * self.k.shape[1] if self.has_table else self.k.shape[1]
        #: Nothing depends on the number of queries then.
        self.is_invariant = options["invariant"]
        #: The heads of one query are rows of a tile, whatever their number; of several queries as many as fill it.
        has_one = self.rows == 1 and not self.is_packed and not self.is_invariant
        self.grouped = has_one and not {"slopes", "sinks"} & self.given.keys()
        self.all_heads = False

    def _turn(self, x):
        if len(x.shape) == 3:
            return x.insert(0)
        return x.permute(0, 2, 1, 3) if self.options["layout"] == "BHSD" else x

    def _append(self):
        """The step that stores new keys. The queries and lengths of what follows are those behind it."""
        step = _append_recipes.bind_places(self.find, self.is_cpu, self.places, self.given, self.options["new"], self.q, self.k, self.v)
        if "cos" in self.given:
            self.q = self.q._replace(strides=list_strides(self.q.shape))
        return step

    def make(self):
        places, results = self.places, self._add_results()
        first = [] if self.options["new"] is None else [self._append()]
        steps = self._attend() if self.rows else []
        return Recipe((*first, *steps), results, tuple(places.temporaries), tuple(places.copies), tuple(places.views))

    def _attend(self):
        group = self.heads // self.key_heads
        packed = 1 if self.grouped else _shares.count_packed(group, 1 if self.is_invariant else self.rows, ROWS)
        if not self.grouped and packed < group:
            packed = self._pack_all(group) or packed
        # One kernel serves all batches of packed queries where they get the same bits.
        source, extras, parameters = self._describe_kernel(packed, is_uneven=self.is_packed and self.is_invariant)
        if self.is_packed and not self.is_invariant:
            source, extras, parameters = self._describe_prompts(packed, parameters) or (source, extras, parameters)
        for name, shape, kind in (("q", self.q, "q"), ("o", self.out, "out")):
            self.places.places[name] = self.places.view(kind, self._lay(shape))
        if self.is_packed:
            return self._bind_tokens(source, extras, parameters)
        rows = group if self.grouped else self.rows * packed
        of_heads = self.key_heads if self.grouped or self.all_heads else self.heads // packed
        tiles = self.batch * of_heads * -(-rows // parameters["BM"])
        if self._is_balanced(tiles, parameters):
            return self._bind_parts(source, extras, {**parameters, "SHARES": parameters["BLOCKS"]}, None)
        return self._bind_parts(source, extras, parameters, self._find_parts(tiles, parameters))

    def _pack_all(self, group):
        """Of how many heads a tile has room, if one has all of a key head, whatever their number, and all queries. Others have a power of 2
        that divides it, and read keys once for each."""
        slots, queries = 1 << (group - 1).bit_length(), 1 if self.is_invariant else self.rows
        self.all_heads = slots <= min(MOST_HEADS, self.heads) and slots * queries <= _kernels.find_numbers(self.device)["MOST_ROWS"]
        return slots if self.all_heads else 0

    def _is_balanced(self, tiles, parameters):
        """Whether the keys of all sequences, whose lengths lie on the device, are cut into equal shares. A producer that gathers rows has
        registers for a walk over sequences where rules give it some: for runs, with two thread blocks on a multiprocessor."""
        is_asked = self.is_invariant or self.options["share"] is not None or self.options["count"]
        is_gathered = "GATHERED" in parameters and not (parameters.get("RUN", 1) > 1 and parameters["BLOCKS"] == 2)
        if is_asked or is_gathered or "CLUSTER" in parameters or "lengths" not in self.given:
            return False
        return _free.ask(tiles, lambda count: _kernels.find_numbers(self.device, ("TILES", count))["CACHES_BALANCED"])

    def _add_results(self):
        """The layouts of what a call gives. Notes the one of the output, [B, SQ, H, DV]."""
        by_rows, shape = self.options["layout"] == "BSHD", (*self.original.shape[:-1], self.value)
        out = Layout(shape, list_strides(shape), self.q.element) if by_rows else make_dense(
            self.original, *self.original.shape[:3], self.value
        )  # fmt: skip
        shape = (self.heads, self.q.shape[1]) if self.has_tokens else (self.batch, self.heads, self.rows)
        lse = Layout(shape, list_strides(shape), "f32")
        if "out" in self.given:
            out = self.given["out"]
            self.places.add_results("lse")
            self.out = self._turn(out)
            return (lse,)
        self.places.add_results("out", "lse")
        self.out = self._turn(out)
        return out, lse

    def _lay(self, x):
        """[B, SQ, H, D] as kernels take it."""
        if self.is_packed:
            return x.drop(0).permute(1, 0, 2)
        return x.drop(1).split(1, self.heads // self.key_heads) if self.grouped else x.permute(0, 2, 1, 3)

    def _lay_sums(self, x):
        """[B, H, SQ], as kernels take it."""
        if self.all_heads:
            return x.split(1, self.heads // self.key_heads)
        return x.drop(2).split(1, self.heads // self.key_heads) if self.grouped else x

    def _bind(self, kernel, lse, extras):
        """A step of the kernel, whose first arguments are q, k, v, o, an LSE and the scale."""
        places = self.places
        for name, x in (("k", self.k), ("v", self.v)):
            places.places[f"{name}_heads"] = places.view(name, x.permute(2, 0, 1, 3))
        for name in ("k_descale", "v_descale") if self.k.element != self.q.element else ():
            # What is not given is a number for all.
            source, strides = (name, self.given[name].strides) if name in self.given else ("ones", (0, 0))
            places.places[name] = places.view(source, Layout((self.batch, self.key_heads, 1), (*strides, 1), "f32"))
        own = [places.places[name] for name in ("q", "k_heads", "v_heads", "o")]
        known = {**places.places, **{name: (CONSTANT, number) for name, number in extras.items()}}
        return kernel, (*own, lse, places.places["scale"], *(known[name] for name in kernel.names[6:]))

    def _describe_prompts(self, packed, parameters):
        """The kernel of sequences with more queries than a tile of those parameters, or None. More heads share a tile: of fewer queries a
        mask hides less, and those of short sequences fill more. There is a tile for each that the queries of all sequences may fill,
        where these are fewer than as many of each sequence as of the longest one."""
        if self.all_heads or self.rows * packed <= parameters["BM"]:
            return None
        least = _kernels.find_numbers(self.device)["LEAST_QUERIES"]
        packed_more = _shares.count_packed(self.heads // self.key_heads, max(least, parameters["BM"] // MOST_HEADS), parameters["BM"])
        found = self._describe_kernel(packed_more, is_uneven=True)
        queries = found[2]["BM"] // packed_more
        # Each sequence has a tile beside those that tokens fill.
        most = queries * (self.batch * (-(-self.rows // queries) - 1) - 1) if self.batch <= MOST_SEQUENCES else 0
        tokens = self.q.shape[1]
        is_fewer = _free.peek(tokens) <= most
        _free.limit(tokens, *((0, most) if is_fewer else (max(most, 0) + 1, _free.MOST)))
        return found if is_fewer else self._describe_kernel(packed_more)

    def _bind_tokens(self, source, extras, parameters):
        kernel = self.find(self.is_cpu, source, "attention", **parameters)
        places = self.places
        places.places["sums"] = places.places["lse"]
        # Of the LSE of each sequence only the extents count.
        heads = (self.key_heads, self.heads // self.key_heads) if self.all_heads else (self.heads,)
        extents = self.batch, *heads, self.rows
        if "UNEVEN" in parameters:
            room = _free.add(self.q.shape[1], self.batch * parameters["BM"] // parameters.get("HEADS", 1))
            extents = room, *heads, self.batch
        places.add_temporary("extents", Layout(extents[-1:], (1,), "f32"))
        lse = places.view("extents", Layout(extents, (*(0 for _ in extents[1:]), 1), "f32"))
        return [*self._find_sequences(), self._bind(kernel, lse, extras)]

    def _find_sequences(self):
        """Where keys begin that are packed, and a step that finds how many there are, if that is not given."""
        places = self.places
        if "key_starts" not in self.given:
            return []
        if not self.has_table:
            places.places["slots"] = places.view("key_starts", Layout((self.batch,), (1,), "i32"))
        if "lengths" in self.given:
            return []
        places.add_temporary("lengths", Layout((self.batch,), (1,), "i32"))
        kernel = self.find(self.is_cpu, _library.find_source("sequence_lengths"), "sequence_lengths")
        return [places.bind(kernel, starts=places.places["key_starts"])]

    def _bind_parts(self, source, extras, parameters, parts):
        """The steps of `parts`, how many and of how many keys at least, or of one that computes all."""
        places, divided = self.places, parts is not None
        if divided:
            parameters = {**parameters, "PARTS": True, "OUT": "f32"}
        kernel = self.find(self.is_cpu, source, "attention", **parameters)
        shape = self.batch, self.heads, self.rows
        if not divided:
            lse = Layout(shape, list_strides(shape), "f32")
            return [self._bind(kernel, places.view("lse", self._lay_sums(lse)), extras)]
        count, share = parts
        parts, lses = (count * self.batch, self.rows, self.heads, self.value), (count * self.batch, self.heads, self.rows)
        parts, lses = (Layout(x, list_strides(x), "f32") for x in (parts, lses))
        places.add_temporary("parts", parts)
        places.add_temporary("lses", lses)
        places.places["o"] = places.view("parts", self._lay(parts))
        step = self._bind(kernel, places.view("lses", self._lay_sums(lses)), {**extras, "share": share})
        return [step, self._bind_merge(count)]

    def _bind_merge(self, count):
        places, shape = self.places, (count, self.batch, self.heads, self.rows)
        extents = 1 if self.is_invariant else count, self.value
        merge = _state_recipes.find_merge(self.find, self.is_cpu, self.device, extents, "f32", self.q.element)
        rows = count, self.batch, self.rows * self.heads, self.value
        operands = (
            places.view("parts", Layout(rows, list_strides(rows), "f32").permute(1, 2, 0, 3)),
            places.view("lses", Layout(shape, list_strides(shape), "f32")),
            places.view("out", self.out), places.places["lse"],
        )  # fmt: skip
        return merge, operands

    def _find_room(self, step):
        """How many keys the queries of a sequence see at most."""
        left, (name, _, more) = self.options["left"], self.options["variant"] or (None, {}, {})
        seen = more["CHUNK_KEYS"] if name == "chunks" else None if left in (None, _FARTHEST) else left
        if seen is None or self.is_invariant:
            return self.most
        # Of a block where they begin some are before them.
        seen += operator.index(self.rows) + step
        is_all = _free.peek(self.most) <= seen
        _free.limit(self.most, *((0, seen) if is_all else (seen + 1, _free.MOST)))
        return self.most if is_all else seen

    def _find_parts(self, tiles, parameters):
        """How many parts each sequence has, and how many keys these have at least; None where keys are not divided. By its own length a
        sequence has all of them, so that nothing but their number depends on what there is room for."""
        if "CLUSTER" in parameters:
            return None
        share, count, least = self.options["share"], self.options["count"], parameters["BN"]
        room = self._find_room(least)
        if share is None and not count:
            rows, numbers = parameters["BM"], _kernels.find_numbers(self.device)
            least = numbers["LEAST_SHARE"]
            count = count_parts(tiles, room, self.device, 1, least)
            # A block of fewer rows than a product has leaves most of a multiprocessor to others.
            if count > 1 or rows < ROWS:
                extents = lambda batch: (("SEQUENCES", batch), ("ROWS", rows))  # noqa: E731
                blocks = _free.ask(self.batch, lambda batch: _kernels.find_numbers(self.device, *extents(batch))["BLOCKS_FILLED"])
                count = max(count, count_parts(tiles, room, self.device, blocks, numbers["LEAST_FILLED"]))
            return (count, least) if count > 1 else None
        # Parts of a number of keys are as many as there is room for; of a number of parts each has a block at least.
        least = least if share is None else share
        most = -(-_free.peek(room) // least)
        is_all = share is None and count <= most
        _free.limit(room, ((count if is_all else most) - 1) * least + 1, _free.MOST if is_all else most * least)
        count = count if is_all else most
        return (count, least) if share is not None or count > 1 else None

    def _find_cluster(self, choose):
        """Among how many blocks of a cluster the keys of each sequence are divided, by what rules choose for tiles and keys; 0 where other
        kernels join parts, or there are none."""
        is_asked = self.options["share"] is not None or self.options["count"]
        is_cut = self.options["left"] not in (None, _FARTHEST) or self.options["variant"] is not None
        if not self.grouped or is_asked or is_cut:
            return 0
        ask = lambda tiles: _free.ask(self.most, lambda keys: choose(("TILES", tiles), ("KEYS", keys))["CLUSTER"])  # noqa: E731
        return _free.ask(self.batch * self.key_heads, ask)

    def _find_run(self, tile_rows):
        """How many rows of pages that are shorter than a step are copied at once; 1 where each thread copies some of one."""
        page, widths = self.k.shape[1], (self.width, self.value)
        allowed = _choices.list_allowed(_library.find_source("attention_cache"), "RUN")
        run = max(run for run in allowed if page % run == 0)
        is_short = self.k.element != self.q.element and tile_rows <= ROWS
        least = _kernels.find_numbers(self.device)["LEAST_BYTE_RUN"] if is_short else 1
        return run if run >= least and all(_variants.find_width("k_cache", width) % 64 == 0 for width in widths) else 1

    def _describe_kernel(self, packed, is_uneven=False):
        """The source of the kernel, integers that its variant takes, and parameters, those of tiles by rules."""
        left, right = (_FARTHEST if self.options[side] is None else self.options[side] for side in ("left", "right"))
        extras, imports = {}, ["attention_cache"]
        if self.grouped and right >= 0:
            right = _FARTHEST
        if left != _FARTHEST or right not in (0, _FARTHEST):
            imports.append("variants/window")
            extras.update(left=left, right=right)
        elif right == 0:
            imports.append("variants/causal")
        named = (("softcap", self.options["softcap"]), ("alibi", "slopes" in self.given), ("sink", "sinks" in self.given))
        imports += [f"variants/{name}" for name, is_given in named if is_given]
        width, value = (_variants.find_width(name, size) for name, size in (("q", self.width), ("v_cache", self.value)))
        parameters = {"T": self.q.element, "D": width, "DV": value}
        flags = {
            "PADDED": (width, value) != (self.width, self.value), "GROUPED": self.grouped, "ALL_HEADS": self.all_heads,
            "PAGED": self.has_table, "TOKENS": self.is_packed, "INVARIANT": self.is_invariant, "UNEVEN": is_uneven,
        }  # fmt: skip
        parameters.update({name: True for name, is_set in flags.items() if is_set})
        if self.options["variant"] is not None:
            name, numbers, more = self.options["variant"]
            imports.append(f"variants/{name}")
            extras.update(numbers)
            parameters.update(more)
        own = {*self.given, *(("lengths", "slots") if "key_starts" in self.given else ())}
        parameters.update({name.upper(): False for name in ("lengths", "slots") if name not in own or (name == "slots" and self.has_table)})
        is_short = self.k.element != self.q.element
        if is_short:
            parameters["CACHED"] = self.k.element
        if packed > 1:
            parameters["HEADS"] = packed
        source = "".join(['$rules "choices/serving.json" as "cache.tile"\n', *(f'$import "{name}.tile"\n' for name in imports)])
        # What the kernel calls rows are those of a query of all heads that share keys.
        rows, page = self.heads // self.key_heads if self.grouped else self.rows, self.k.shape[1] if self.has_table else 1
        # Blocks of gathered keys begin where they do whatever the length is.
        extents = (("SQ", 1), ("ROWS", 1)) if self.is_invariant else (("SQ", rows), ("ROWS", page))
        if cluster := self._find_cluster(lambda *more: _kernels.choose(self.device, source, (*extents, *more), **parameters)):
            parameters["CLUSTER"] = cluster
        chosen = _kernels.choose(self.device, source, extents, **parameters)
        parameters.update({name: chosen[name] for name in ("BM", "BN", "BLOCKS")})
        if chosen.get("UPWARDS"):
            parameters["UPWARDS"] = True
        if self.is_invariant or (self.has_table and page % chosen["BN"]):
            # Without pages all rows of a block follow each other.
            parameters.update(GATHERED=True)
            if self.has_table:
                run = self._find_run(chosen["BM"])
                parameters.update(RUN=run, **({"ONE_RUN": True} if 1 < run == page else {}))
        return source, extras, parameters


class _SingleCall(_Call):
    """Packed queries over pages, of which no sequence has more than one: attention is that of [B, 1, H, D], between kernels that take
    queries from tokens and give results back."""

    is_single = True

    def make(self):
        places, results, rows = self.places, self._add_results(), (self.batch, self.heads)
        tokens = {name: places.places[name] for name in ("q", "out", "lse")}
        own = {name: self._add_rows(name, (*rows, width), self.q.element) for name, width in (("q", self.width), ("out", self.value))}
        lse = places.view("lse", self._add_rows("lse", (*rows, 1), "f32").drop(2))
        sequences = self._find_sequences()
        take = self._move(tokens["q"], "q", self.width)
        back = self._move(tokens["out"], "out", self.value, lse=lse, sums=tokens["lse"])
        self.q, self.out = (own[name].insert(1) for name in ("q", "out"))
        steps = (*sequences, take, *self._attend(), back)
        return Recipe(steps, results, tuple(places.temporaries), tuple(places.copies), tuple(places.views))

    def _add_rows(self, name, shape, element):
        layout = Layout(shape, list_strides(shape), element)
        self.places.add_temporary(name, layout)
        return layout

    def _move(self, tokens, name, width, **back):
        """A step from tokens to the rows of a temporary or, with more operands, back."""
        places, columns = self.places, next(columns for columns in (64, 128, 256) if width <= columns)
        kernel = self.find(self.is_cpu, _library.find_source("token_rows"), T=self.q.element, D=columns, BACK=bool(back))
        return places.bind(kernel, tokens=tokens, rows=places.places[name], starts=places.places["query_starts"], **back)


def is_full(tiles, device, blocks=1):
    """Whether tiles fill a GPU as they are, with so many thread blocks a multiprocessor."""
    return 100 * tiles >= _kernels.find_numbers(device)["FULL"] * blocks * _kernels.count_multiprocessors(device)


def count_parts(tiles, keys, device, blocks, least):
    """Into how many parts of `least` keys or more keys are divided so that tiles fill the GPU, `blocks` of them a multiprocessor: as few
    as come near to the best."""
    numbers, multiprocessors = _kernels.find_numbers(device), blocks * _kernels.count_multiprocessors(device)
    if is_full(_free.peek(tiles), device, blocks):
        _free.limit(tiles, -(-numbers["FULL"] * multiprocessors // 100), _free.MOST)
        return 1
    tiles = operator.index(tiles)
    most = min(numbers["MOST_PARTS"], _free.peek(keys) // least)
    _free.limit(keys, most * least, (most + 1) * least - 1 if most < numbers["MOST_PARTS"] else _free.MOST)
    if most <= 1:
        return 1
    fills = []
    for count in range(1, most + 1):
        waves = tiles * count / multiprocessors
        fills.append(waves / -(-tiles * count // multiprocessors))
    return 1 + next(i for i, fill in enumerate(fills) if 100 * fill >= numbers["ENOUGH"] * max(fills))
