"""Kernels beside functions of numpy that compute what they should."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Mapping, Sequence

from . import _library, _typing
from ._errors import Error

_VIEW = re.compile(r"!tile\.view<\[(.*)\], (\w+)>")
#: Bits of the significand, and the least exponent of a number that has all of them as frexp counts, by type.
_FORMATS = {"f8E5M2": (3, -13), "f8E4M3FN": (4, -5), "bf16": (8, -125), "f16": (11, -13), "f32": (24, -125)}
# Operands and results are rounded, and errors of a sum add up.
_MOST_ROUNDINGS = 8
# What approximations and sums in f32 cost at most, of the largest number.
_LEAST_TOLERANCE = 2.0**-15


class MismatchError(Error, AssertionError):
    """A kernel gives something else than the function that it was compared with."""


class Comparison(collections.namedtuple("Comparison", "name shape error largest tolerance norm_error")):
    """How far a result is from what was expected: the extents of the launch, the largest difference, the largest number that
    was expected, and how much of it the difference may be; and the norm of all differences as a part of that of the numbers.
    Roundings differ from element to element, and what is wrong everywhere does not: of the norm half as much is allowed."""

    __slots__ = ()
    name: str
    shape: dict[str, int]
    error: float
    largest: float
    tolerance: float
    norm_error: float

    @property
    def holds(self) -> bool:
        return self.error <= self.tolerance * self.largest and self.norm_error <= self.tolerance / 2

    def __str__(self) -> str:
        extents = ", ".join(f"{name}={extent}" for name, extent in self.shape.items())
        verdict = "ok" if self.holds else "FAILED"
        return (
            f"{self.name} ({extents}): max error {self.error:.3g} of {self.largest:.3g}, "
            f"{self.tolerance * self.largest:.3g} is allowed; {self.norm_error:.3g} in the norm, "
            f"{self.tolerance / 2:.3g} is allowed: {verdict}"
        )


def read_views(types):
    """(names of dimensions or extents, element type) by the names of views, of types as a source has them."""
    views = {}
    for name, type_ in types.items():
        if found := _VIEW.fullmatch(type_):
            dims = [int(dim) if dim.isdecimal() else dim for dim in found[1].split(", ")]
            views[name] = (dims, found[2])
    return views


def _round(numpy, element, array):
    """The nearest numbers of a type, of which ties are even."""
    if element not in _FORMATS:
        return array
    bits, least = _FORMATS[element]
    exponents = numpy.maximum(numpy.frexp(array)[1], least) - bits
    return numpy.ldexp(numpy.rint(numpy.ldexp(array.astype(numpy.float64), -exponents)), exponents).astype(numpy.float32)


def _draw(numpy, views, written, shape, given, seed):
    """An array for each view: what is given, what a kernel reads from a normal distribution, what it writes of NaN."""
    arrays, random = {}, numpy.random.default_rng(seed)
    for name, (dims, element) in views.items():
        missing = [dim for dim in dims if isinstance(dim, str) and dim not in shape]
        if missing and name not in given:
            raise ValueError(f"a shape lacks the extent of '{missing[0]}', a dimension of '{name}': {shape}")
        is_float = not element.startswith("i")
        kind = numpy.float32 if is_float else numpy.dtype(f"int{element[1:]}")
        if name in given:
            arrays[name] = _round(numpy, element, numpy.array(given[name], kind))
            continue
        extents = [dim if isinstance(dim, int) else shape[dim] for dim in dims]
        if name in written:
            arrays[name] = numpy.full(extents, numpy.nan if is_float else 0, kind)
        else:
            drawn = random.standard_normal(extents)
            arrays[name] = _round(numpy, element, (drawn if is_float else drawn * 32).astype(kind))
    return arrays


def _name_results(results, written):
    """What a function gives, by the names of the views that the kernel writes."""
    if isinstance(results, Mapping):
        unknown = [name for name in results if name not in written]
        if unknown:
            raise ValueError(f"the function gives '{unknown[0]}', and the kernel writes {', '.join(written)}")
        return dict(results)
    several = results if isinstance(results, tuple) else (results,)
    if len(several) > len(written):
        raise ValueError(f"the function gives {len(several)} results, and the kernel writes {', '.join(written)}")
    return dict(zip(written, several))


def _measure(numpy, name, shape, actual, expected, tolerance):
    expected = numpy.asarray(expected, numpy.float64)
    if actual.shape != expected.shape:
        raise ValueError(f"the function gives '{name}' of shape {expected.shape}; the kernel's has {actual.shape}")
    finite = numpy.isfinite(expected)
    # What should not be finite is the same, or infinitely far away.
    differs = (numpy.isfinite(actual) != finite) | ~(finite | (actual == expected) | (numpy.isnan(actual) & numpy.isnan(expected)))
    error = numpy.inf if differs.any() else numpy.abs(actual - expected)[finite].max(initial=0.0)
    largest = numpy.abs(expected)[finite].max(initial=0.0)
    norm = numpy.linalg.norm(expected[finite])
    norm_error = numpy.linalg.norm((actual - expected)[finite]) / norm if norm else 0.0
    return Comparison(name, shape, float(error), float(largest), tolerance, float(norm_error))


def run_on_device(kernel, views, written, device, arguments):
    """Calls a compiled kernel with arrays of numpy, which tensors of torch on the device stand for."""
    import torch

    types = {element.name: getattr(torch, element.torch) for element in _library.ELEMENTS if hasattr(torch, element.torch)}
    tensors = {name: torch.from_numpy(arguments[name]).to(device, types[element]) for name, (_, element) in views.items()}
    kernel(**{**arguments, **tensors})
    for name in written:
        arguments[name][...] = tensors[name].to("cpu", torch.from_numpy(arguments[name]).dtype).numpy()


def compare(run, names, views, written, function, shapes, seed, tolerance, given):
    """What `Program.compare` says; `run` takes arrays and numbers by name, and writes into arrays."""
    import numpy

    scalars = [name for name in names if name not in views]
    missing = [name for name in scalars if name not in given]
    if missing:
        raise TypeError(f"the kernel takes the scalar '{missing[0]}'; give it by name")
    if tolerance is None:
        fewest = min((_FORMATS[element][0] for _, element in views.values() if element in _FORMATS), default=24)
        tolerance = max(_MOST_ROUNDINGS * 2.0**-fewest / 2, _LEAST_TOLERANCE)
    comparisons = []
    for number, shape in enumerate([shapes] if isinstance(shapes, Mapping) else shapes):
        arrays = _draw(numpy, views, written, shape, given, seed + number)
        values = {name: given[name] for name in scalars}
        inputs = {name: array.copy() for name, array in arrays.items() if name not in written}
        run(**arrays, **values)
        results = _name_results(function(**inputs, **values), written)
        comparisons += [
            _measure(numpy, name, dict(shape), arrays[name], expected, tolerance) for name, expected in results.items()
        ]
    if not all(comparison.holds for comparison in comparisons):
        raise MismatchError("\n".join(map(str, comparisons)))
    return comparisons
