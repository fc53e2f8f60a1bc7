"""Calls of functions for serving engines that are like earlier ones: known by what they are given but tensors, and computed by one
call of the library, which knows what it has prepared by their layouts.

What a key and layouts do not say is asked in each call: whether something sees it, and whether gradients are wanted. What was not
prepared is left to the usual way, which says what is wrong.
"""

import itertools
import operator
from typing import Any, NamedTuple

import torch

from .._compiler import _calls
from . import _compute, _direct, _kept, _op
from ._cache_recipes import NotReady

_is_grad_enabled = torch.is_grad_enabled
# None in a PyTorch with which nothing is prepared.
_require_grad = getattr(torch._C, "_any_requires_grad", None)
_NOTHING = itertools.repeat(None)
_KEPT = {bool, int, float, str, type(None), torch.dtype}


class _Functions(NamedTuple):
    """Functions past the dispatcher of a text: one that prepares calls which are like none before, and one that leaves them."""

    prepare: Any
    recall: Any


# By text. They live as long as the process: where there are many, no other ones are made.
_functions, _MOST_FUNCTIONS = {}, 512
# (function, constants, numbers) of calls that were checked, by their keys.
_plans, _MOST_PLANS = {}, 2048
# (apply of a function of autograd, constants) of those that want gradients. They live as long as the process.
_learned, _MOST_LEARNED = {}, 256


class NotPrepared(Exception):
    """A function of autograd is left, as its calls are not prepared."""


def _find_functions(text, count, kinds):
    """The _Functions of a text, None where there are none."""
    found = _functions.get(text)
    if found is None and len(_functions) < _MOST_FUNCTIONS and _op.has_native:
        made = [_direct.make(text, count, kinds, prepares) for prepares in (True, False)]
        found = _functions.setdefault(text, _Functions(*made)) if None not in made else None
    return found


def recall(given, *options, numbers=None):
    """(a key, the results) of a call of tensors `given`, of which those but the first may be None, and of options. The key is what
    such calls are known by, None where they are not kept; the results are those of a call like one before, None of others. Texts,
    numbers and refusals follow from options and from which tensors are given, so a type that they depend on is an option too.
    `numbers`, a tuple, are those of this call, where calls of a key differ in them."""
    if _direct.is_seen():  # Asked first: Dynamo would guard all plans, and compile again for each new one.
        return None, None
    first = given[0]
    if not isinstance(first, torch.Tensor) or not _KEPT.issuperset(map(type, options)):
        return None, None
    # Numbers that are equal may be of types of which one is refused. A generator would cost a call for each tensor.
    is_given = tuple(map(operator.is_not, given, _NOTHING))
    key = options, tuple(map(type, options)), is_given, first.get_device()
    if _is_grad_enabled() and _require_grad(*given):
        before = () if numbers is None else (numbers,)
        return key, _recall_learned(key, first, itertools.chain(before, itertools.compress(given, is_given)))
    plan = _plans.get(key)
    if plan is None:
        return key, None
    function, constants, kept = plan
    if constants and _kept.is_capturing(first.device):
        return key, None  # A graph may outlive them.
    return key, function(*itertools.compress(given, is_given), *constants, kept if numbers is None else numbers)


def _recall_learned(key, first, given):
    apply, constants = _learned.get(key, (None, ()))
    if apply is None or (constants and _kept.is_capturing(first.device)):
        return None
    try:
        return apply(*given, *constants)
    except NotPrepared:
        return None


def takes_learned(key, device, constants):
    """Whether `keep_learned` keeps something of a key that it has not."""
    if key in _learned or len(_learned) >= _MOST_LEARNED or not _op.has_native:
        return False
    return not (constants and _kept.is_capturing(device))


def keep_learned(key, apply, constants):
    """Computes calls of `key` that want gradients by a function of autograd, of the numbers of calls that differ in them, `given`, and
    behind them constants. It raises NotPrepared for calls that are not prepared."""
    _learned.setdefault(key, (apply, constants))


def compute(key, given, text, tensors, numbers=(), kinds="", constants=()):
    """The results of a text, a tuple. Calls of `key` are computed so from then on where `tensors` are all that is `given`.
    `kinds` are those of numbers, as `_direct.make` has them, and `constants` tensors that all calls of `key` have behind their own."""
    own, tensors = tensors, (*tensors, *constants)
    functions = None if _direct.is_seen() else _find_functions(text, len(tensors), kinds)
    results = functions and functions.prepare(*tensors, numbers)
    if results is None:
        if functions is not None and isinstance(cause := _calls.take_failure(), NotReady):
            raise cause
        return tuple(_compute.compute(text, tensors, numbers))
    given = [x for x in given if x is not None]
    if constants and _kept.is_capturing(tensors[0].device):
        key = None  # They may be the graph's.
    if key is not None and len(given) == len(own) and all(map(operator.is_, given, own)):
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        _plans[key] = functions.recall, constants, numbers
    return results if isinstance(results, tuple) else (results,)
