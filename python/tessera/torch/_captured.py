"""Captured tensors and numbers of torch, also under torch.compile."""

import sys

import torch

from .._attention import _block_lists
from .._functions import _captured, _computed, _reading
from .._functions._trace import TraceError
from . import _op

# Older compilers of torch do not list those of functions. A function that asks for some is refused then.
_KNOWS_ATTRIBUTES = torch.__version__ >= (2, 15)
_PLAIN = torch.Tensor, torch.nn.Parameter


@_op.mark_constant
def _refuse_to_dynamo(problem):
    # Runs while Dynamo traces the call. Of another exception Dynamo's own words come first, and the text far behind them.
    from torch._dynamo import exc

    raise exc.UserError(exc.UserErrorType.INVALID_INPUT, problem)


def refuse(problem):
    """Refuses functions with the text, which is also the first that a compilation says."""
    if torch.compiler.is_compiling():
        _refuse_to_dynamo(problem)
    raise TraceError(problem)


class _Found(_captured.Found):
    tensors, constants, sequences = torch.Tensor, (torch.dtype, torch.device), (tuple, list, torch.Size)
    elements = {getattr(torch, name): element for name, element in _captured.ELEMENTS.items()}

    def __init__(self, device):
        super().__init__()
        self.device = device  # Of the query.

    def find_problem(self, tensor):
        if tensor.device != self.device:
            return f"on {tensor.device}, and the query on {self.device}: move it there"
        if tensor.ndim and tensor.stride(-1) != 1 and tensor.shape[-1] != 1:
            return f"with stride {tensor.stride(-1)} in its last dimension; it must be 1: make it contiguous"
        return None

    def write_conditions(self, keep, value, element, rank):
        """What readers compare of a tensor. Those of types of their own are described in each call."""
        dtype = next(dtype for dtype, other in self.elements.items() if other == element)
        conditions = [
            f"type({value}) in {keep(_PLAIN)}", f"{value}.dtype is {keep(dtype)}", f"{value}.dim() == {rank}",
            f"{value}.get_device() == index",
        ]  # fmt: skip
        # A vector is contiguous just where its stride is 1 or its length, and a function without an argument takes less time.
        dense = f"{value}.is_contiguous()" if rank == 1 else f"({value}.stride(-1) == 1 or {value}.shape[-1] == 1)"
        return [*conditions, dense] if rank else conditions

    def write_view(self, keep, value, element, rank):
        """What `to_view` gives."""
        return value if rank and element != "i1" else f"{keep(to_view)}({value})"

    def is_compiling(self):
        return torch.compiler.is_compiling()

    def get_attributes(self, function):
        return vars(function) if _KNOWS_ATTRIBUTES or not torch.compiler.is_compiling() else {}

    def read_cell(self, cell):
        return _read_cell(cell) if torch.compiler.is_dynamo_compiling() else cell.cell_contents

    def compute(self, function, *values):
        return _compute(function, *values)


def _read_cell(cell):
    """What a cell holds, in code that Dynamo traces. Of a function that is made in what it compiles Dynamo reads cells that are older, as
    of a lambda that takes a variable from around, but has no attribute for what they hold."""
    from torch._dynamo.comptime import comptime

    contents, is_loaded, loaded = None, False, True
    comptime(_load_cell)
    return contents if is_loaded else cell.cell_contents


def _load_cell(context):
    """Gives a local variable of `_read_cell` what Dynamo reads from a cell of its own."""
    names = context._i_will_not_complain_if_bc_breaks_InstructionTranslator().symbolic_locals
    contents = context.get_local("cell")._i_will_not_complain_if_bc_breaks_VariableTracker()
    if contents is not names["cell"]:
        names["contents"], names["is_loaded"] = contents, names["loaded"]


@_op.mark_constant
def _compute(function, *values):
    return function(*values)


@_op.mark_constant
def _write(*described):
    return _captured.write(*described)


def find(device, score_mod, score_args, mask_mod, mask_args, sinks=None):
    """(a source or what says why there is none, captured tensors and numbers) of functions and their further arguments, and of
    sinks."""
    found, is_compiling = _Found(device), torch.compiler.is_compiling()
    mods = score_mod, score_args, mask_mod, mask_args, sinks
    if not is_compiling:
        known = _reading.recall(-1 if device.index is None else device.index, *mods)
        if known is not None and all(value.device == device for value in known[3] if isinstance(value, torch.Tensor)):
            return known[0], list(known[3])
    written = _captured.find(found, _write, *mods)
    if not is_compiling and written.problem is None:
        _reading.remember(found, score_mod, mask_mod, written)
    return written, found.values


def find_global_tensors(device, mask_mod, mask_args):
    """(module, name, index) of the captured tensors of a mask that are attributes of modules; `find` has them at the index."""
    return list(_walk_globals(_captured.describe_mod(_Found(device), "mask_mod", mask_mod, mask_args, 4)))


def _walk_globals(part):
    """`part` is a description of a function or a module, or a tuple with some."""
    if not isinstance(part, tuple):
        return
    own, attributes = None, ()
    if part[:1] == ("function",):
        own, attributes = part[3], part[8]
    if part[:1] == ("module",):
        _, own, attributes = part
    for name, value in attributes if own in sys.modules else ():
        if value is not None and value[0] == "view":
            yield sys.modules[own], name, value[1]
    for inner in part:
        yield from _walk_globals(inner)


def to_view(tensor):
    """A captured tensor as a kernel takes it."""
    if tensor.dtype is torch.bool:
        tensor = tensor.view(torch.int8)
    return tensor if tensor.dim() else tensor.reshape(1)


def list_given(written, found):
    """(views, numbers, integers) that the kernels of a source take, of what was found."""
    views = [to_view(found[index]) for index in written.views]
    numbers, integers = ([_computed.give(number, found) for number in part] for part in (written.numbers, written.integers))
    return views, numbers, integers


def name_given(views, numbers, integers, names):
    """What functions take, by name."""
    return {name: value for part, values in zip(names, (views, numbers, integers)) for name, value in zip(part, values)}


def _align(view):
    """A view whose rows begin at multiples of 16 bytes, as kernels load them that take tiles of it."""
    unit = 16 // view.element_size()
    if view.data_ptr() % 16 == 0 and all(step % unit == 0 for step in view.stride()[:-1]):
        return view
    width = view.shape[-1]
    padded = view.new_empty((*view.shape[:-1], -(-width // unit) * unit))[..., :width]
    return padded.copy_(view)


def lend(views, numbers, integers, names):
    """The same for a launch. Lists of blocks are read number by number."""
    given = name_given(views, numbers, integers, names)
    for name in names.views:
        if name not in _block_lists.LISTS:
            given[name] = _align(given[name])
    return given
