"""What is known of the functions of a source, and what it says of their loads, additions and factors."""

import functools
import json

from .._compiler import _choices
from .._compiler._program import find_fact
from .._core._errors import CompileError

# The numbers of the arguments of a mask. Those of a score come after the product.
B, H, Q, K = range(4)
# What `describe` says of a function that there is not.
_NO_FACTS = {
    "uses": [], "computes": [], "extents": [], "divides": False, "loads": [], "compares": [],
    "result": {"on": [], "scaled_by": [], "factor": None},
}  # fmt: skip

# What `know` has said, by sources.
_known = {}


def know(source, facts):
    """Lets `describe` find facts of a source that are those of another one, from which it differs in parameters alone."""
    if len(_known) >= 256:
        _known.clear()
    _known[source] = facts


@functools.lru_cache(maxsize=256)
def describe(source):
    """What the functions of a source compute with, by their names (`_choices.describe_functions`)."""
    if source in _known:
        return _known[source]
    try:
        return json.loads(find_fact("functions", source, [], lambda: json.dumps(_choices.describe_functions(source))))
    except CompileError:
        return {}  # Whoever asks for the kernel gets the error.


def get(facts, function):
    return facts.get(function, _NO_FACTS)


def list_loaded(facts, function):
    """The names of the views of floats that a function loads of, as it comes to them."""
    loads = get(facts, function)["loads"]
    return list(dict.fromkeys(load["view"] for load in loads if load["type"] in ("f32", "f16", "bf16")))


def name_loads(facts):
    """What functions load for tiles, LOADS of attention_score.tile: for each query and key where the last two indices are these; by
    a distance where a score has an index that differs with both; for each row where a mask has one that differs with the query."""
    found, score = set(), get(facts, "score")
    for name, function in facts.items():
        pair = [place + (name == "score") for place in (Q, K)]
        for load in function["loads"]:
            if [place["is"] for place in load["places"][-2:]] == pair:
                found.add("pair" if load["type"] in ("bf16", "f16") else "wide_pair")
    if any({Q + 1, K + 1}.issubset(place["on"]) for load in score["loads"] for place in load["places"]):
        found.add("distance")
    if any(Q in place["on"] for load in get(facts, "mask")["loads"] for place in load["places"]):
        found.add("row")
    return next((name for name in ("wide_pair", "pair", "distance", "row") if name in found), None)


def loads_by_key(score):
    """Whether a score loads a number of each key, whatever the query is."""
    return any(
        load["places"][-1]["is"] == K + 1 and not any(Q + 1 in place["on"] for place in load["places"]) for load in score["loads"]
    )


def adds_by_key(score):
    """Whether a score adds what depends on the key to the product, as a bias by distance or the gate of a key. The scores of a block
    far from the query may be far below those next to it. What multiplies the product lowers none by its place."""
    return K + 1 in score["result"]["on"] and 0 not in score["result"]["scaled_by"]


def takes_lengths(mask):
    """Whether a mask compares keys with what a call gives, whatever the query is."""
    return any(compared["given"] and {Q, K}.intersection(compared["on"]) == {K} for compared in mask["compares"])


def read_derivative(facts):
    """(what the derivative of the score with respect to the product depends on, DERIVATIVE of attention_gradients.tile; the names of
    what the factor of the product alone asks for, where rows have one)."""
    if "score" not in facts:
        return "head", ()
    factor = facts["score"]["result"]["factor"]
    if factor is None or K + 1 in factor["on"]:
        return "any", ()
    return ("row" if Q + 1 in factor["on"] else "head"), factor["alone"]
