"""What calls compute where the library does not launch: by the interpreter on the CPU, and with a PyTorch before 2.10."""

import torch

from .._attention import _recipes, _variants
from .._compiler._program import Program
from .._core import _layouts, _library
from . import _kernels

_ELEMENTS = {getattr(torch, element.torch): element.name for element in _library.ELEMENTS}
_TYPES = {name: dtype for dtype, name in _ELEMENTS.items()}
_FILLS = {_layouts.ZERO: 0.0, _layouts.MINUS_INFINITY: float("-inf")}
# Recipes of CUDA devices by (what compiles kernels, text, layouts).
_recipes_of = {}


def read_layout(x):
    """The Layout of a tensor, or None."""
    if x is None:
        return None
    element = _ELEMENTS.get(x.dtype)
    if element is None:
        raise TypeError(f"a tensor has type {x.dtype}; kernels take {_library.TORCH_NAMES}")
    return _layouts.Layout(tuple(x.shape), x.stride(), element, x.data_ptr() % 16 == 0)


def _find_recipe(device, text, layouts):
    kind = _kernels.find_kind(device.type == "cpu")
    if kind is Program:
        return _recipes.make(kind, text, layouts)
    recipe = _recipes_of.get((kind, text, layouts))
    if recipe is None:
        recipe = _recipes.make(kind, text, layouts)
        if len(_recipes_of) >= _variants.MAX_SHAPES:
            _recipes_of.clear()
        if recipe.is_final:
            _recipes_of[kind, text, layouts] = recipe
    return recipe


def _make_empty(layout, device):
    made = torch.empty_strided(layout.shape, layout.strides, dtype=_TYPES[layout.element], device=device)
    return made if layout.fill == _layouts.NOTHING else made.fill_(_FILLS[layout.fill])


def launch(kernel, *arguments, **named):
    """Launches a kernel, a sequence with memory of torch."""
    if isinstance(kernel, Program) or "launches" not in kernel.description:
        return kernel(*arguments, **named)
    device = arguments[0].device
    return kernel(*arguments, workspace=lambda size: torch.empty(size, dtype=torch.uint8, device=device), **named)


def compute(text, tensors, numbers, integers=()):
    """The results of a call, as the ops of the library compute them. A scale that is None is that of the first tensor's rows."""
    device = tensors[0].device
    if numbers and numbers[0] is None:
        numbers = tensors[0].shape[-1] ** -0.5, *numbers[1:]
    recipe = _find_recipe(device, text, tuple(map(read_layout, tensors)))
    results, temporaries = ([_make_empty(layout, device) for layout in part] for part in (recipe.results, recipe.temporaries))
    copies = [_make_empty(layout, device).copy_(tensors[index]) for index, layout in recipe.copies]
    # In the order of tessera_call_source; a constant is its own index.
    sources = [tensors, results, temporaries, copies, numbers, integers, _Itself()]
    sources.append([_show(sources[source][index], *view) for (source, index), *view in recipe.views])
    for kernel, operands in recipe.steps:
        launch(kernel, *(sources[source][index] for source, index in operands))
    return results


class _Itself:
    def __getitem__(self, index):
        return index


def _show(x, layout, offset):
    x = x.view(_TYPES[layout.element])
    return x.as_strided(layout.shape, layout.strides, x.storage_offset() + offset // x.element_size())
