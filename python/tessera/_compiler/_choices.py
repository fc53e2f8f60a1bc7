"""What the compiler answers about a source before it is compiled: what rules choose for it, and what its functions compute with."""

from __future__ import annotations

import ctypes
import functools
import json
import os
from collections.abc import Mapping, Sequence
from ctypes import c_void_p

from .._core import _classes, _imports, _library, _typing
from . import _compile, _frontend


def resolve(
    path_or_source: str | os.PathLike[str],
    *,
    gpu: str | None = None,
    shape: Mapping[str, int] | None = None,
    rules: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    **parameters: object,
) -> dict[str, _typing.Any]:
    """What is chosen for a source before it is compiled, and where that comes from: {"parameters": {"BN": {"value": "128", "origin":
    "rules.json:12", "allowed": ["64", "128"]}}, "schedules": {...}}; "form" where a rule chooses another source;
    "instead", lists of values of which the first that compiles is taken where registers or shared memory are short; "extents", the
    comparisons of extents that decided, as `_classes.evaluate` takes them, and whether they hold. Arguments are those of `compile`."""
    return _ask_of_source("resolve", path_or_source, _compile.make_request(parameters, gpu=gpu, shape=shape, rules=rules))


def describe_functions(path_or_source):
    """What the functions of a source load, compare and add, by their names: see tessera_resolution_text."""
    return _ask_of_source("describe_functions", path_or_source, _compile.make_request({}))


def _ask_of_source(question, path_or_source, request):
    """What tessera_source_... answers of a source, whose text is JSON."""
    source, file_name = _frontend._read_source(path_or_source)
    options = _compile.make_options(request, remarks=False)
    library, collector, resolution = _frontend._compiler(), _frontend._Collector(), c_void_p()
    status = getattr(library, f"tessera_source_{question}")(
        source, len(source), file_name.encode(), ctypes.byref(options), collector.handler, None, ctypes.byref(resolution),
    )  # fmt: skip
    collector.check(status, file_name)
    try:
        return json.loads(library.tessera_resolution_text(resolution))
    finally:
        library.tessera_resolution_destroy(resolution)


def choose(path_or_source, parameters, extents=(), card=None):
    """What `resolve` gives for a source, its parameters and extents, (name, extent) of each dimension, and a GPU. Extents that
    compare with what rules ask for as others did have the same answer, without the compiler."""
    source, file_name = _frontend._read_source(path_or_source)
    shape, texts = dict(extents), _frontend.to_texts(parameters)

    def identify():
        return "choices", texts, sorted(shape), card, _imports.read_whole(source, file_name).decode(errors="surrogateescape")

    identity = identify()
    answers = json.loads(_frontend.read_known(*identity) or "[]")
    for answer in answers:
        if all(_classes.evaluate(term, shape) == holds for term, holds in answer["extents"]):
            return answer
    answer = resolve(path_or_source, gpu=card, shape=shape, **parameters)
    # The compiler has read files that may have become others meanwhile.
    if identify() == identity:
        _frontend.keep_known(json.dumps([*answers, answer]), *identity)
    return answer


def read_values(answer):
    """The values of all parameters of an answer: numbers, truths and names."""
    return {name: _read_value(parameter["value"]) for name, parameter in answer["parameters"].items()}


@functools.lru_cache(maxsize=4096)
def choose_values(source, extents, card, parameters):
    """The values of all parameters of a source, as `choose` finds them; `form` beside them is the source that is to be taken instead, or
    None. `parameters` are pairs."""
    answer = choose(source, dict(parameters), extents, card)
    return {**read_values(answer), "form": find_form(answer)}


def find_form(answer):
    """The source that rules choose in place of the one that was asked for, None where they do not."""
    return _library.find_source(answer["form"]["value"].removesuffix(".tile")) if "form" in answer else None


def _read_value(text):
    if text in ("false", "true"):
        return text == "true"
    return int(text) if text.lstrip("-").isdecimal() else text


#: Multiprocessors where there is no device to ask.
INTERPRETED = 132


@functools.lru_cache(maxsize=256)
def list_allowed(path_or_source, name):
    """The values that a parameter of integers may have, by the source."""
    return tuple(dict.fromkeys(map(int, choose(path_or_source, {})["parameters"][name]["allowed"])))


@functools.lru_cache(maxsize=1)
def _ships_cards():
    """Whether a row of the rules that ship is for one GPU. It is asked where no file that the environment names has one."""
    folder = os.path.join(os.path.dirname(_library.find_source("gemm")), "choices")
    return _have_card(_imports.read_rules(os.path.join(folder, name) for name in os.listdir(folder)))


def _have_card(texts):
    return any(b'"card"' in text for text in texts)


def _names_cards():
    """Whether a row of the rules that ship, or of the files that the environment names as they are now, is for one GPU."""
    return _have_card(_imports.read_rules(())) or _ships_cards()


def compiler_for(card):
    """`compile`, for a GPU that rows of rules may name: what they choose for it otherwise than for others is given. For each it is
    one function."""
    return _compile.compile if card is None or not _names_cards() else _make_compiler(card)


@functools.lru_cache(maxsize=None)
def _make_compiler(card):
    def compile(path_or_source, kernel=None, schedule=None, **parameters):
        chosen, own = choose_for_card(path_or_source, parameters, card)
        return _compile.compile(path_or_source, kernel, schedule or own, **{**parameters, **chosen})

    compile.card = card
    return compile


def find_card(kind):
    """The GPU for which `kind`, of `compiler_for`, compiles; None for any."""
    return getattr(kind, "card", None)


def choose_for_card(path_or_source, parameters, card):
    """(parameters, schedule) that rules choose for a GPU otherwise than for others; {} and None where they do not."""
    if card is None or not _names_cards():
        return {}, None
    plain, own = (choose(path_or_source, parameters, card=name) for name in (None, card))
    return _find_values(plain, own), _find_schedule(plain, own)


def choose_for_extents(path_or_source, parameters, extents, card=None):
    """The arguments of `compile` that rules choose for a call with extents, (name, extent) of each dimension, otherwise than for
    others: parameters, and `schedule` with the fields of kernels that these parameters alone do not have."""
    plain, own = (choose(path_or_source, parameters, given, card) for given in ((), extents or ()))
    chosen = _find_values(plain, own)
    if chosen:
        plain = choose(path_or_source, {**parameters, **chosen}, (), card)
    schedule = _find_schedule(plain, own)
    return {**chosen, "schedule": schedule} if schedule else chosen


def _find_values(plain, own):
    """The parameters of an answer that another one has not."""
    values = read_values(plain)
    return {name: value for name, value in read_values(own).items() if values.get(name) != value}


def _find_schedule(plain, own):
    """The fields of kernels that an answer has and another one has not, as `compile` takes them; None where all are."""
    schedules = {name: choice["value"] for name, choice in own["schedules"].items() if plain["schedules"].get(name) != choice}
    return ";".join(f"{name}:{fields}" for name, fields in schedules.items()) or None
