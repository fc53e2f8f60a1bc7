"""What torch.vmap makes of the ops: one call, in which the mapped dimension joins the batch."""

import torch

from .._attention import _block_lists
from .._functions import _names, _places


def _fold(tensor, dim, size, at=0):
    """A tensor of vmap with its dimension `dim` of `size` (None: it has none) folded into the batch, which is dimension `at`
    without it. None stays None."""
    if tensor is None:
        return None
    tensor = tensor.unsqueeze(at).expand(*tensor.shape[:at], size, *tensor.shape[at:]) if dim is None else tensor.movedim(dim, at)
    return tensor.flatten(at, at + 1)


def _find_batch(tensor, dim):
    return tensor.shape[0] if dim is None else tensor.movedim(dim, 0).shape[1]


def register(library, op, count):
    """For an op that takes `count` tensors of the batch first, then slopes, and whose results are all of the batch."""

    def run(info, dims, *arguments, **named):
        tensors, alibi, others = arguments[:count], arguments[count], arguments[count + 1 :]
        if dims[count] is not None:
            raise NotImplementedError("argument 'alibi' is mapped over by vmap; its slopes are the same for all")
        size, batch = info.batch_size, _find_batch(tensors[0], dims[0])
        results = op(*(_fold(tensor, dim, size) for tensor, dim in zip(tensors, dims)), alibi, *others, **named)
        if isinstance(results, torch.Tensor):
            return results.unflatten(0, (size, batch)), 0
        return tuple(result.unflatten(0, (size, batch)) for result in results), (0,) * len(results)

    torch.library.register_vmap(op, run, lib=library)


def _find_places(source, names, views, view_dims, batch):
    """Which dimension of each view is the batch, None where it has none; None where one call does not do for all: where the
    batch counts anew in each, or what is mapped, or a list of blocks, is not of the batch."""
    known, free = _places.read(source)
    if "b" in free:
        return None
    places = []
    for name, view, dim in zip(names, views, view_dims):
        letters = known.get(name, ())
        at = letters.index("b") if "b" in letters else None
        own = view if dim is None else view.select(dim, 0)
        if name in _block_lists.LISTS or (at is None and dim is not None) or (at is not None and own.shape[at] != batch):
            return None
        places.append(at)
    return places


def _call_each(op, dims, size, arguments):
    """One call after the other, of which the results are stacked."""

    def pick(value, dim, index):
        if isinstance(value, list):
            return [pick(one, of_one, index) for one, of_one in zip(value, dim)] if isinstance(dim, list) else value
        if dim is None:
            return value
        return value.select(dim, index) if size else value.new_zeros(value.movedim(dim, 0).shape[1:])

    # Of no call the results have their shapes still.
    results = [op(*(pick(value, dim, index) for value, dim in zip(arguments, dims))) for index in range(max(size, 1))]

    def stack(*parts):
        return [stack(*of_one) for of_one in zip(*parts)] if isinstance(parts[0], list) else torch.stack(parts)[:size]

    stacked = tuple(stack(*parts) for parts in zip(*results))
    return stacked, tuple([0] * len(one) if isinstance(one, list) else 0 for one in stacked)


def register_functions(library, op, count, learns, unfold):
    """For an op that takes `count` tensors of the batch first, then views, numbers, integers, the names of these, where it
    `learns` those of the views whose gradients are its last result, and a source, which `unfold` reads."""

    def run(info, dims, *arguments):
        tensors, views, names = arguments[:count], arguments[count], arguments[count + 3]
        size, batch = info.batch_size, _find_batch(tensors[0], dims[0])
        view_dims = list(dims[count] or [None] * len(views))
        names, learned = _names.read(names).views, _names.read_list(arguments[count + 4]) if learns else ()
        source = unfold(arguments[count + 4 + learns])
        places = _find_places(source, names, views, view_dims, batch) if size else None
        # A gradient of what the batch has in common is a sum over it.
        if places is None or any(places[names.index(name)] is None for name in learned):
            return _call_each(op, (*dims[:count], view_dims, *dims[count + 1 :]), size, arguments)
        views = [view if at is None else _fold(view, dim, size, at) for view, dim, at in zip(views, view_dims, places)]
        results = op(*(_fold(tensor, dim, size) for tensor, dim in zip(tensors, dims)), views, *arguments[count + 1 :])
        parts = [result.unflatten(0, (size, batch)) for result in results[: len(results) - learns]]
        if not learns:
            return tuple(parts), (0,) * len(parts)
        ats = [places[names.index(name)] for name in learned]
        sums = [one.unflatten(at, (size, batch)) for one, at in zip(results[-1], ats)]
        return (*parts, sums), (*(0 for _ in parts), ats)

    torch.library.register_vmap(op, run, lib=library)
