"""What the compiler answers about a source before it is compiled: what rules choose for it, and what its functions compute with."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping, Sequence
from ctypes import c_void_p

from . import _classes, _compile, _imports, _typing


def resolve(
    path_or_source: str | os.PathLike[str],
    *,
    gpu: str | None = None,
    shape: Mapping[str, int] | None = None,
    rules: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    **parameters: object,
) -> dict[str, _typing.Any]:
    """What is chosen for a source before it is compiled, and where that comes from: {"parameters": {"BN": {"value": "128", "origin":
    "rules.json:12"}}, "schedules": {...}}; "form" where a rule chooses another source; "instead", lists of values of which the first
    that compiles is taken where registers or shared memory are short; "extents", the comparisons of extents that decided, as
    `_classes.evaluate` takes them, and whether they hold. Arguments are those of `compile`."""
    return _ask_of_source("resolve", path_or_source, _compile.make_request(parameters, gpu=gpu, shape=shape, rules=rules))


def describe_functions(path_or_source):
    """What the functions of a source load, compare and add, by their names: see tessera_resolution_text."""
    return _ask_of_source("describe_functions", path_or_source, _compile.make_request({}))


def _ask_of_source(question, path_or_source, request):
    """What tessera_source_... answers of a source, whose text is JSON."""
    source, file_name = _compile._read_source(path_or_source)
    options = _compile.make_options(request, remarks=False)
    library, collector, resolution = _compile._compiler(), _compile._Collector(), c_void_p()
    status = getattr(library, f"tessera_source_{question}")(
        source, len(source), file_name.encode(), ctypes.byref(options), collector.handler, None, ctypes.byref(resolution),
    )  # fmt: skip
    collector.check(status, file_name)
    try:
        return json.loads(library.tessera_resolution_text(resolution))
    finally:
        library.tessera_resolution_destroy(resolution)


def choose(path_or_source, parameters, extents=()):
    """What `resolve` gives for a source, its parameters and extents, (name, extent) of each dimension. Extents that compare
    with what rules ask for as others did have the same answer, without the compiler."""
    source, file_name = _compile._read_source(path_or_source)
    shape, texts = dict(extents), _compile.to_texts(parameters)

    def identify():
        return "choices", texts, sorted(shape), _imports.read_whole(source, file_name).decode(errors="surrogateescape")

    identity = identify()
    answers = json.loads(_compile.read_known(*identity) or "[]")
    for answer in answers:
        if all(_classes.evaluate(term, shape) == holds for term, holds in answer["extents"]):
            return answer
    answer = resolve(path_or_source, shape=shape, **parameters)
    # The compiler has read files that may have become others meanwhile.
    if identify() == identity:
        _compile.keep_known(json.dumps([*answers, answer]), *identity)
    return answer
