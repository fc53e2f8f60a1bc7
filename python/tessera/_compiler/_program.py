"""Kernels as their source says them: run on the CPU, without compiling (tessera-c/Program.h)."""

from __future__ import annotations

import ctypes
import functools
import json
import operator
import os
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p

from collections.abc import Callable, Mapping, Sequence

from .._core import _imports, _library, _typing
from .._core._compare import Comparison, compare, read_views
from .._core._errors import CompileError
from . import _frontend


@functools.lru_cache(maxsize=None)
def _interpreter():
    define, extent, handler = POINTER(_frontend._Define), POINTER(_frontend._Extent), _frontend._Handler
    signatures = {
        "tessera_program_read": (
            c_int, c_char_p, c_size_t, c_char_p, c_char_p, define, c_size_t, handler, c_void_p, POINTER(c_void_p),
        ),
        "tessera_program_argument_count": (c_size_t, c_void_p),
        "tessera_program_argument_name": (c_char_p, c_void_p, c_size_t),
        "tessera_program_argument_type": (c_char_p, c_void_p, c_size_t),
        "tessera_program_argument_is_written": (c_int, c_void_p, c_size_t),
        "tessera_program_run": (c_int, c_void_p, c_void_p, c_size_t, handler, c_void_p),
        "tessera_program_shape_class": (c_char_p, c_void_p, extent, c_size_t, handler, c_void_p),
        "tessera_program_shape_rule": (c_char_p, c_void_p),
        "tessera_program_parameters": (c_char_p, c_void_p),
        "tessera_program_visits": (c_char_p, c_void_p),
        "tessera_program_destroy": (None, c_void_p),
    }  # fmt: skip
    return _library.declare(_frontend._compiler(), signatures)


def _describe_torch(name, tensor):
    if tensor.device.type != "cpu":
        raise ValueError(f"argument {name} is on {tensor.device}; the interpreter takes tensors of the CPU")
    if str(getattr(tensor, "layout", "torch.strided")) != "torch.strided":
        raise TypeError(f"argument {name} is sparse; it is a strided tensor")
    if getattr(tensor, "is_neg", bool)():
        raise ValueError(f"argument {name} is a view that reads its memory negated; pass its resolve_neg()")
    element = _library.TORCH_TYPES.get(str(tensor.dtype))
    if element is None:
        raise TypeError(f"argument {name} has type {tensor.dtype}; kernels take {_library.TORCH_NAMES}")
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), element


def _describe_array(name, array, is_written):
    interface = array.__array_interface__
    element = _library.TYPESTRS.get(interface["typestr"])
    if element is None:
        names = _library.list_names(_library.TYPESTRS)
        hint = ", and float32 for floating-point views of fewer bits: .astype('f4')" if interface["typestr"][1:] == "f8" else ""
        raise TypeError(f"argument {name} has type '{interface['typestr']}'; kernels take {names}{hint}")
    size = element.size
    shape, strides = interface["shape"], interface.get("strides")
    if strides is None:
        strides = [size] * len(shape)
        for dim in range(len(shape) - 1, 0, -1):
            strides[dim - 1] = strides[dim] * shape[dim]
    if any(stride % size for stride in strides):
        raise ValueError(f"argument {name} has strides that are no multiples of its elements")
    if is_written and interface["data"][1]:
        raise ValueError(f"argument {name} is read-only; the kernel writes it")
    return interface["data"][0], shape, [stride // size for stride in strides], element.name


class Program:
    """A kernel of a source, which the interpreter runs on the CPU.

        program = Program("kernels/attention_fwd.tile", D=64)
        program(q, k, v, o, lse, 0.125)

    The source and its parameters are those of `compile`. Arguments are given by position or name: tensors of torch on the
    CPU, or objects with __array_interface__ (arrays of numpy), and numbers. Views of fewer bits take float32 too, which is
    rounded: numpy has no bf16. Results are written into the tensors that the kernel stores. Every value is rounded as the
    kernel's types say, so results are those of the GPU up to the order of sums. What the source prints (`tile.print`,
    `tessera.print`) is printed when the run ends. Raises CompileError, also where an assertion of the source does not hold,
    TypeError, ValueError, LibraryError.
    """

    def __init__(
        self, path_or_source: str | os.PathLike[str], kernel: str | None = None, **parameters: object
    ) -> None:
        self._handle = c_void_p()
        self._library = _interpreter()
        source, self._file_name = _frontend._read_source(path_or_source)
        defines, collector = _frontend._make_defines(_frontend.to_texts(parameters, Program)), _frontend._Collector()
        status = self._library.tessera_program_read(
            source, len(source), self._file_name.encode(), kernel and kernel.encode(), defines, len(defines),
            collector.handler, None, ctypes.byref(self._handle),
        )  # fmt: skip
        collector.check(status, self._file_name)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.tessera_program_destroy(self._handle)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in their order."""
        name, count = self._library.tessera_program_argument_name, self._library.tessera_program_argument_count
        return tuple(name(self._handle, i).decode() for i in range(count(self._handle)))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}: {type_}" for name, type_ in self.types.items())
        return f"<tessera.Program of {self._file_name}: {arguments}>"

    @functools.cached_property
    def types(self) -> dict[str, str]:
        """The types of the arguments as the source has them, by name."""
        type_ = self._library.tessera_program_argument_type
        return {name: type_(self._handle, i).decode() for i, name in enumerate(self.names)}

    @functools.cached_property
    def written(self) -> tuple[str, ...]:
        """The names of the views that the kernel writes."""
        is_written = self._library.tessera_program_argument_is_written
        return tuple(name for i, name in enumerate(self.names) if is_written(self._handle, i))

    def compare(
        self,
        function: Callable[..., _typing.Any],
        shapes: Mapping[str, int] | Sequence[Mapping[str, int]],
        *,
        seed: int = 0,
        tolerance: float | None = None,
        **given: _typing.Any,
    ) -> list[Comparison]:
        """Compares the kernel with a function of numpy that computes what it should.

            program.compare(lambda a, b, s: s[:, None] * (a @ b.T), {"M": 100, "N": 96, "K": 136})

        function:  gets the arguments that the kernel does not write, by name: float32 arrays, as rounded as the views have
                   them, and numbers. It gives what the kernel writes: one array, several, or a dict by name.
        shapes:    extents of the dimensions, or several of them.
        tolerance: how much of the largest number that is expected an error may be; by default a few roundings of the type
                   with the fewest bits.
        given:     scalars, and arrays in place of those that are drawn from a normal distribution by `seed`.

        Returns a Comparison for each result. Raises MismatchError where one is too far away.
        """
        return compare(self, self.names, read_views(self.types), self.written, function, shapes, seed, tolerance, given)

    def __call__(self, *arguments: object, **named: object) -> None:
        arguments = arguments + self._order(arguments, named) if named else arguments
        array, keep = (_library.Argument * len(arguments))(), []
        for position, (argument, value) in enumerate(zip(array, arguments)):
            if isinstance(value, (int, float)):
                self._set_scalar(argument, value)
            else:
                keep.append(self._set_view(argument, position, value))
        collector = _frontend._Collector()
        status = self._library.tessera_program_run(self._handle, array, len(array), collector.handler, None)
        for shown in collector.take_shown():
            print(shown)
        try:
            collector.check(status, self._file_name)
        except CompileError as error:
            if error.status == "usage":
                raise ValueError(str(error)) from None
            raise

    def _order(self, arguments, named):
        """What is given by name, in the order of the arguments that are not given by position."""
        rest = self.names[len(arguments) :]
        faults = [(name, "given twice" if name in self.names else "unknown") for name in named if name not in rest]
        faults += [(name, "missing") for name in rest if name not in named]
        if faults:
            name, fault = faults[0]
            raise TypeError(f"the argument '{name}' is {fault}; the kernel takes {', '.join(self.names)}")
        return tuple(named[name] for name in rest)

    @staticmethod
    def _set_scalar(argument, value):
        if isinstance(value, float):
            argument.type, argument.scalar.f32 = _library.SCALARS["f32"].scalar, value
        else:
            argument.type, argument.scalar.i64 = _library.SCALARS["i64"].scalar, operator.index(value)

    def _set_view(self, argument, position, value):
        """Fills in a view; returns what has to live as long as the argument."""
        # Where there are too many arguments the run says so.
        name = f"'{self.names[position]}'" if position < len(self.names) else position
        if hasattr(value, "data_ptr"):
            pointer, shape, strides, element = _describe_torch(name, value)
        elif hasattr(value, "__array_interface__"):
            is_written = self._library.tessera_program_argument_is_written(self._handle, position)
            pointer, shape, strides, element = _describe_array(name, value, is_written)
        else:
            raise TypeError(
                f"argument {name} is a {type(value).__name__}; the interpreter takes numbers, tensors of torch "
                "and objects with __array_interface__"
            )
        extents, steps = (c_int64 * len(shape))(*shape), (c_int64 * len(strides))(*strides)
        argument.pointer, argument.shape, argument.strides = pointer, extents, steps
        argument.type, argument.rank = _library.ELEMENT_TYPES[element], len(shape)
        return extents, steps

    def shape_class(self, **extents: int) -> str | None:
        """The class of shapes of a launch, for `compile(shape_class=)`; None when the extents do not decide it."""
        array = _frontend._make_extents(extents)
        name = self._library.tessera_program_shape_class(
            self._handle, array, len(array), _frontend._Handler(), None
        )
        return name and name.decode()

    @functools.cached_property
    def shape_rule(self) -> str:
        """What `_classes.find` tells the class of a shape from."""
        return self._library.tessera_program_shape_rule(self._handle).decode()

    @functools.cached_property
    def parameters(self) -> dict[str, _typing.Any]:
        """The values of the source's parameters, by name."""
        return json.loads(self._library.tessera_program_parameters(self._handle))

    @functools.cached_property
    def visits(self) -> str:
        """What the compiler finds of the blocks that a mask leaves, as JSON: `loose`, why their interval may have others, "" where it
        has none, `end_moves`, whether its end follows the rows of a tile, and `work`, how the work of tiles changes as the first
        grid index grows: "increasing", "decreasing", or ""."""
        return self._library.tessera_program_visits(self._handle).decode()


def find_fact(name, path_or_source, details, find):
    """`find()`, a text that the compiler finds of a source and of `details`, data for JSON. Where another process has kept it
    this one need not open the compiler, which takes longer than all else that a kernel on disk takes."""
    source, file_name = _frontend._read_source(path_or_source)

    def identify():
        return name, details, _imports.read_whole(source, file_name).decode(errors="surrogateescape")

    identity = identify()
    known = _frontend.read_known(*identity)
    if known is None:
        known = find()
        # The compiler has read files that may have become others meanwhile.
        if identify() == identity:
            _frontend.keep_known(known, *identity)
    return known
