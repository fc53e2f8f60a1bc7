"""Bundles and kernels: launching compiled code."""

from __future__ import annotations

import collections
import ctypes
import json
import math
import numbers
import operator
import os
import sys
import threading
from ctypes import c_int64, c_void_p

from collections.abc import Callable, Mapping, Sequence

from . import _exchange, _library, _tensor, _typing
from ._compare import Comparison, compare, run_on_device
from ._errors import BundleError

# Argument signatures that a thread remembers for a kernel before it starts afresh.
_MAX_SIGNATURES = 1024
# What no tensor is like.
_NOTHING_KNOWN = ((None,) * 5,)


class Choice(collections.namedtuple("Choice", "name index microseconds")):
    """Which of its alternatives a kernel launches: name, position, and the microseconds that each may take, by name."""

    __slots__ = ()
    name: str
    index: int
    microseconds: dict[str, float]


class _Signature:
    """The argument array for tensors of one combination of shapes, strides, types and devices.

    A launch writes addresses and scalars into it, nothing else.
    """

    def __init__(self, kernel, keys):
        entries = kernel._entries
        self.array = (_library.Argument * len(entries))()
        self.address = ctypes.addressof(self.array)
        self.views, self.scalars, self.keep = [], [], []
        #: Of tensors of torch (shape, strides, dtype, device index, where the address goes).
        self.tensors = _NOTHING_KNOWN
        #: Of the workspaces of a sequence, when these have been asked for.
        self.workspace_bytes = None
        self.device = _library.CURRENT_DEVICE
        keys = iter(keys)
        for index, entry in enumerate(entries):
            argument = self.array[index]
            if entry["kind"] == "scalar":
                argument.type = _library.SCALARS[entry["type"]].scalar
                self.scalars.append(argument.scalar)
                continue
            shape, strides, type_code, device = next(keys)
            extents, steps = (c_int64 * len(shape))(*shape), (c_int64 * len(strides))(*strides)
            argument.shape, argument.strides = extents, steps
            argument.type, argument.rank = type_code, len(shape)
            self.keep += [extents, steps]
            self.views.append(argument)
            self._join_device(entry["name"], device)

    def set_pointers(self, pointers):
        for view, pointer in zip(self.views, pointers):
            view.pointer = pointer

    def _join_device(self, name, device):
        if device in (self.device, _library.CURRENT_DEVICE):
            return
        if self.device != _library.CURRENT_DEVICE:
            raise ValueError(
                f"argument '{name}' is on device {device}, an earlier one on device {self.device}; "
                "all arguments of a kernel lie on one device"
            )
        self.device = device


def _convert_scalar(entry, value):
    """A Python number for a scalar argument; TypeError or ValueError when it is none."""
    name, kind = entry["name"], _library.SCALARS[entry["type"]]
    if kind.is_float:
        if type(value) is not float and not isinstance(value, numbers.Real):
            raise TypeError(f"argument '{name}' is a {type(value).__name__}; the kernel takes a real number")
        return _convert_float(name, kind, value)
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"argument '{name}' is a {type(value).__name__}; the kernel takes an integer") from None
    limit = 1 << 8 * kind.size - 1
    if not -limit <= value < limit:
        raise ValueError(f"argument '{name}' is {value}, which does not fit in {kind.name}")
    return value


def _convert_float(name, kind, value):
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    # What is finite and does not fit would become infinite in C.
    if math.isinf(kind.c_type(number).value) and value not in (math.inf, -math.inf):
        raise ValueError(f"argument '{name}' is {value}, which does not fit in {kind.name}")
    return number


def _check_address(stream):
    if not 0 <= stream < 2**64:
        raise ValueError(f"stream is {stream}, which is not the address of a CUstream")
    return stream


def _raw_stream(stream):
    """The address of a stream given as a number or as a stream of torch, CuPy or cuda.core."""
    if isinstance(stream, int):
        return _check_address(stream)
    for attribute in ("cuda_stream", "ptr", "handle"):
        value = getattr(stream, attribute, None)
        if value is not None:
            return _check_address(int(value))
    if hasattr(stream, "__cuda_stream__"):
        return _check_address(int(stream.__cuda_stream__()[1]))
    raise TypeError(
        f"stream is a {type(stream).__name__}; pass a torch.cuda.Stream, an object with "
        "__cuda_stream__, or the address of a CUstream"
    )


def _check_device(device):
    """A device number that C takes for the same number."""
    number = operator.index(device)
    if not _library.CURRENT_DEVICE <= number < 2**31:
        raise ValueError(f"device is {number}; it is the number of a CUDA device")
    return number


class _BundleHandle(int):
    """The address of a tessera_bundle, which is destroyed with the last reference.

    Garbage collection does not know ints. So where a kernel is part of a cycle of garbage, what its objects do in
    __del__ with the kernel comes before this.
    """

    __slots__ = ()

    def __del__(self):
        # Not at exit: the driver is gone then, and takes the modules with it.
        if not sys.is_finalizing():
            _library.runtime().tessera_bundle_destroy(self)


def _name_alternative(entry):
    return entry["kernel"] if "kernel" in entry else entry["sequence"]


class Bundle:
    """The kernels, sequences and choices of a bundle (docs/bundle.md), by name.

    `source` is the path of a bundle, or its text as bytes. Raises BundleError.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        library, place = _library.runtime(), ""
        if not isinstance(source, bytes):
            place = f"{os.fspath(source)}: "
            try:
                with open(source, "rb") as file:
                    source = file.read()
            except OSError as error:
                raise BundleError(f"cannot read the bundle '{os.fspath(source)}': {error.strerror}") from error
        handle = c_void_p()
        try:
            _library.check(library.tessera_bundle_load(source, len(source), ctypes.byref(handle)))
        except BundleError as error:
            raise BundleError(f"{place}{error}") from None
        self._handle = _BundleHandle(handle.value)
        data = json.loads(source)
        #: The values of the source's parameters, by name.
        self.parameters: dict[str, _typing.Any] = data.get("parameters", {})
        self.target: str = data["target"]
        #: Those of kernels and sequences that are alternatives, by name.
        self.parameters_of: dict[str, dict[str, _typing.Any]] = {
            _name_alternative(alternative): alternative["parameters"]
            for choice in data.get("choices", ())
            for alternative in choice["alternatives"]
            if "parameters" in alternative
        }
        #: Kernel objects by name, behind the kernels the sequences and choices.
        self.kernels: dict[str, Kernel] = {}
        for index in range(library.tessera_bundle_kernel_count(handle)):
            kernel = c_void_p()
            _library.check(library.tessera_bundle_kernel_at(handle, index, ctypes.byref(kernel)))
            loaded = Kernel(self, kernel)
            self.kernels[loaded.name] = loaded

    def kernel(self, name: str | None = None) -> Kernel:
        """The kernel, sequence or choice of a name; otherwise the only choice, where there is none the only sequence, and where
        there is none of these the only kernel. Raises ValueError."""
        entries = [*self.kernels.values()]
        choices, sequences = ([entry for entry in entries if key in entry.description] for key in ("alternatives", "launches"))
        only = choices or sequences or entries
        if name is None and len(only) == 1:
            return only[0]
        if name is None:
            raise ValueError(f"the bundle has several kernels; name one of {', '.join(self.kernels)}")
        if name not in self.kernels:
            raise ValueError(f"the bundle has no kernel '{name}'; it has {', '.join(self.kernels)}")
        return self.kernels[name]


class Kernel:
    """A compiled kernel, a sequence of kernels that one call launches in order, or a choice among kernels and sequences, of
    which a call launches the one that should be the fastest for its extents; call it with its arguments.

        kernel(q, k, v, o, lse, scale=0.125)             # by position, by name or mixed
        kernel(q, k, v, o, lse, 0.125, stream=stream)    # torch's current stream when not given

    Tensors have the *order of the dimensions of the source's views*, in any strides: for a view
    [B, H, S, D] over BSHD storage pass `q.transpose(1, 2)`. Results are written into the tensors that the
    source writes. The call returns as soon as the kernel is queued. Torch tensors, objects with
    `__dlpack__` and objects with `__cuda_array_interface__` serve; without torch the default stream is
    the legacy default stream. Quickest are plain torch tensors and parameters of torch 2.10 or newer, with
    scalars that are floats or ints, by position: one call of the library reads them all.

    What an object says of its memory is checked for dimensions, extents, strides and an address that CUDA knows. That the
    memory reaches as far as they say cannot be.

    What a kernel writes may share no memory with its other arguments.

    A sequence keeps memory for its workspaces on each stream. `workspace=` gives it other memory for one call, of at
    least `workspace_bytes(...)`: a torch tensor, an object with `__cuda_array_interface__`, or (address, bytes); or a
    function that makes such of so many bytes, which is called where there are any.

    `alternative=` launches one kernel or sequence of a choice whatever its extents are, by name or position (`alternatives`).

    Calls may be captured in CUDA graphs, the first one too; the graphs hold what they need of the kernel.

    Raises TypeError (kind or element type), ValueError (shape, strides, device, numbers that do not fit, tensors that
    overlap), DeviceError, DriverError.
    """

    def __init__(self, bundle: Bundle, handle: c_void_p) -> None:
        library = _library.runtime()
        self.bundle = bundle
        self._bundle_handle = bundle._handle  # The kernel is part of it.
        self._handle = handle.value
        self._library_launch = library.tessera_kernel_launch
        #: The entry of the bundle: arguments, launch parameters, grid and so on.
        self.description: dict[str, _typing.Any] = json.loads(library.tessera_kernel_description(handle))
        self.name: str = self.description["name"]
        self._entries = self.description["arguments"]
        self._names = [entry["name"] for entry in self._entries]
        self._count = len(self._entries)
        self._view_positions = [i for i, entry in enumerate(self._entries) if entry["kind"] == "view"]
        self._scalar_entries = [
            (i, entry, entry["type"]) for i, entry in enumerate(self._entries) if entry["kind"] == "scalar"
        ]
        self._local = threading.local()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in their order."""
        return tuple(self._names)

    @property
    def report(self) -> dict[str, _typing.Any]:
        """What the compiler reports: registers, shared memory, spills, instruction counts."""
        return self.description.get("report", {})

    @property
    def schedule(self) -> str:
        """The schedule, as text."""
        return self.description.get("schedule", "")

    @property
    def parameters(self) -> dict[str, _typing.Any]:
        """The values of the source's parameters, by name; of a choice those of its first alternative."""
        return self.bundle.parameters_of.get(self.name, self.bundle.parameters)

    @property
    def alternatives(self) -> tuple[str, ...]:
        """The names of the kernels and sequences among which a choice chooses; empty for others."""
        return tuple(map(_name_alternative, self.description.get("alternatives", ())))

    def alternative(self, which: str | int) -> Kernel:
        """The kernel or sequence of a choice with a name or at a position. Raises ValueError."""
        names = self.alternatives
        if isinstance(which, str) and which in names:
            which = names.index(which)
        if not isinstance(which, int) or not 0 <= which < len(names):
            known = f"its alternatives are {', '.join(names)}" if names else "it is one kernel without alternatives"
            raise ValueError(f"{self.name} has no alternative {which!r}; {known}")
        return self.bundle.kernels[names[which]]

    def choice(self, /, **extents: int) -> Choice:
        """Which alternative a call with these extents launches, as a Choice. Expected times are those on the GPU for which
        the bundle was compiled; infinity stands for a kernel that does not take the extents.

        Raises TypeError (extents that the kernel does not have, or that are missing), ValueError.
        """
        dims = self.description["dims"]
        wrong = extents.keys() ^ set(dims)
        if wrong:
            raise TypeError(
                f"{self.name}.choice() takes the extents {', '.join(dims)}; '{sorted(wrong)[0]}' is missing or unknown"
            )
        names = self.alternatives
        values = (c_int64 * len(dims))(*(operator.index(extents[dim]) for dim in dims))
        index, times = ctypes.c_size_t(), (ctypes.c_double * len(names))()
        ask = _library.runtime().tessera_kernel_choice
        _library.check(ask(self._handle, values, len(dims), ctypes.byref(index), times))
        return Choice(names[index.value], index.value, dict(zip(names, times)))

    def compare(
        self,
        function: Callable[..., _typing.Any],
        shapes: Mapping[str, int] | Sequence[Mapping[str, int]],
        *,
        seed: int = 0,
        tolerance: float | None = None,
        device: _typing.Any = "cuda",
        **given: _typing.Any,
    ) -> list[Comparison]:
        """Compares what the kernel computes on a device with a function of numpy, as `Program.compare` does on the CPU. Tensors
        of torch hold what is drawn."""
        views = {entry["name"]: (entry["dims"], entry["element"]) for entry in self._entries if entry["kind"] == "view"}
        written = [entry["name"] for entry in self._entries if entry.get("access", "read") != "read"]

        def run(**arguments):
            run_on_device(self, views, written, device, arguments)

        return compare(run, self._names, views, written, function, shapes, seed, tolerance, given)

    def __repr__(self) -> str:
        arguments = ", ".join(
            (
                f"{entry['name']}: {entry['type']}"
                if entry["kind"] == "scalar"
                else f"{entry['name']}: {entry['element']}[{', '.join(map(str, entry['dims']))}]"
            )
            for entry in self._entries
        )
        return f"<tessera kernel {self.name}({arguments})>"

    def grid(self, device: int = _library.CURRENT_DEVICE, /, **dims: int) -> tuple[int, int, int]:
        """The blocks of a launch, (x, y, z), for extents by name.

        The grid of a persistent kernel depends on the device. Raises TypeError, ValueError (a sequence), DeviceError,
        DriverError.
        """
        if "launches" in self.description:
            names = ", ".join(dict.fromkeys(launch["kernel"] for launch in self.description["launches"]))
            raise ValueError(f"{self.name} launches several kernels, each with a grid of its own: {names}")
        if "alternatives" in self.description:
            return self.alternative(self.choice(**dims).index).grid(device, **dims)
        blocks = []
        for entry in self.description["grid"]:
            extent = entry["extent"]
            if isinstance(extent, str):
                if extent not in dims:
                    raise TypeError(f"{self.name}.grid() needs the extent '{extent}'")
                extent = dims[extent]
            blocks.append(-(-extent // entry["divisor"]))
        if self.description.get("persistent"):
            blocks = [min(math.prod(blocks) * self.description["cluster"][0], self._capacity(device))]
        return tuple(blocks + [1] * (3 - len(blocks)))

    def _capacity(self, device):
        """The most blocks that a launch of a persistent kernel has on a device."""
        blocks = ctypes.c_uint32()
        capacity = _library.runtime().tessera_kernel_capacity
        _library.check(capacity(self._handle, _check_device(device), ctypes.byref(blocks)))
        return blocks.value

    def prepare(self, device: int = _library.CURRENT_DEVICE) -> None:
        """Loads the code on a device, so that the first launch does not."""
        _library.check(_library.runtime().tessera_kernel_prepare(self._handle, _check_device(device)))

    def read_timeline(self, device: int = _library.CURRENT_DEVICE, stream: object = None) -> bytes:
        """What launches on a stream have recorded since the last call, as bytes for `tessera trace --bundle`.

        For kernels compiled with --instrument=timeline; ValueError for others. Waits for the device.
        """
        device, stream = _check_device(device), None if stream is None else _raw_stream(stream)
        read, size = _library.runtime().tessera_kernel_read_timeline, ctypes.c_size_t()
        _library.check(read(self._handle, device, stream, None, ctypes.byref(size)))
        memory = ctypes.create_string_buffer(size.value)
        _library.check(read(self._handle, device, stream, memory, ctypes.byref(size)))
        return memory.raw

    def workspace_bytes(self, *arguments: object, **named: object) -> int:
        """The bytes of memory that a call with these arguments needs for the workspaces of a sequence; 0 of a kernel."""
        arguments = self._bind(arguments, named)
        binding = _tensor.torch_binding()
        if binding and all(isinstance(arguments[position], binding.tensor) for position in self._view_positions):
            signature = self._find_torch(arguments)
        else:
            signature = self._find_foreign(arguments, self._default_stream(arguments))
        self._set_scalars(signature, arguments)
        return self._count_workspace_bytes(signature)

    def _count_workspace_bytes(self, signature):
        if signature.workspace_bytes is None:
            ask, size = _library.runtime().tessera_kernel_workspace_bytes, ctypes.c_size_t()
            _library.check(ask(self._handle, signature.address, self._count, ctypes.byref(size)))
            signature.workspace_bytes = size.value
        return signature.workspace_bytes

    def __call__(
        self,
        *arguments: object,
        stream: object = None,
        workspace: object = None,
        alternative: str | int | None = None,
        **named: object,
    ) -> None:
        if alternative is not None:
            return self.alternative(alternative)(*arguments, stream=stream, workspace=workspace, **named)
        if named or len(arguments) != self._count:
            arguments = self._bind(arguments, named)
        if workspace is not None:
            return self._call_lending(arguments, stream, workspace)
        binding = _tensor.torch_binding()
        if binding is None:
            return self._call_foreign(arguments, stream)
        if binding.launcher is not None:
            launch = binding.launcher.launch
            if stream is None:
                status = launch(self._handle, arguments)
            else:
                status = launch(self._handle, arguments, _raw_stream(stream))
            if status == 0:
                return
            if status != _exchange.NOT_TAKEN:
                _library.check(status)
        self._call_torch(binding, arguments, stream)

    def _call_torch(self, binding, arguments, stream):
        """A call whose tensors Python looks at: with a torch that offers no other way, or to say what is wrong."""
        signature = self._recall_torch(binding, arguments)
        if signature is None:
            return self._call_foreign(arguments, stream)
        stream = binding.current_stream(signature.device) if stream is None else _raw_stream(stream)
        self._launch(signature, arguments, stream)

    def _recall_torch(self, binding, arguments):
        """The signature of tensors of torch, with their addresses; None where some are of another kind."""
        # Most calls are like the one before: comparing takes less time than looking up.
        signature, tensor = getattr(self._local, "last", None), binding.tensor
        for position, known in zip(self._view_positions, signature.tensors if signature else _NOTHING_KNOWN):
            value = arguments[position]
            shape, strides, dtype, device, view = known
            if (
                not isinstance(value, tensor)
                or value.shape != shape
                or value.stride() != strides
                or value.dtype is not dtype
                or value.get_device() != device
            ):
                signature = None
                break
            view.pointer = value.data_ptr()
        if signature is None and all(isinstance(arguments[position], tensor) for position in self._view_positions):
            return self._find_torch(arguments)
        return signature

    def _call_lending(self, arguments, stream, workspace):
        """A call with memory for the workspaces, or with a function that makes it."""
        binding = _tensor.torch_binding()
        signature = None if binding is None else self._recall_torch(binding, arguments)
        if signature is None:
            stream = self._default_stream(arguments) if stream is None else _raw_stream(stream)
            signature = self._find_foreign(arguments, stream)
        else:
            stream = binding.current_stream(signature.device) if stream is None else _raw_stream(stream)
        if callable(workspace):
            self._set_scalars(signature, arguments)
            size = self._count_workspace_bytes(signature)
            workspace = workspace(size) if size else None
        self._launch(signature, arguments, stream, None if workspace is None else _tensor.lent_memory(workspace))

    def _find_torch(self, arguments):
        """The signature of tensors of torch, with their addresses, which is the last one from now on."""
        values = [arguments[position] for position in self._view_positions]
        key = tuple((value.shape, value.stride(), value.dtype, value.get_device()) for value in values)
        signature = self._signatures().get(key)
        if signature is None:
            signature = self._add_signature(key, self._describe_torch(arguments))
            signature.tensors = [(*known, view) for known, view in zip(key, signature.views)]
        signature.set_pointers(value.data_ptr() for value in values)
        self._local.last = signature
        return signature

    def _signatures(self):
        try:
            return self._local.signatures
        except AttributeError:
            self._local.signatures = {}
            return self._local.signatures

    def _add_signature(self, key, descriptions):
        for entry, described in zip(self._views(), descriptions):
            if described.read_only and entry["access"] != "read":
                raise ValueError(f"argument '{entry['name']}' is read-only; the kernel writes it")
        signature = _Signature(self, [described.key for described in descriptions])
        signatures = self._signatures()
        if len(signatures) >= _MAX_SIGNATURES:
            signatures.clear()
        signatures[key] = signature
        return signature

    def _views(self):
        return (self._entries[position] for position in self._view_positions)

    def _describe_torch(self, arguments):
        binding = _tensor.torch_binding()
        return [
            _tensor.describe_torch(self._entries[position]["name"], arguments[position], binding)
            for position in self._view_positions
        ]

    def _call_foreign(self, arguments, stream):
        """A call with a tensor that is not torch's."""
        stream = self._default_stream(arguments) if stream is None else _raw_stream(stream)
        self._launch(self._find_foreign(arguments, stream), arguments, stream)

    def _find_foreign(self, arguments, stream):
        """The signature of tensors of any kind, with their addresses."""
        descriptions = [
            _tensor.describe(self._entries[position]["name"], arguments[position], stream)
            for position in self._view_positions
        ]
        key = tuple((described.key, described.read_only) for described in descriptions)
        signature = self._signatures().get(key) or self._add_signature(key, descriptions)
        signature.set_pointers(described.pointer for described in descriptions)
        return signature

    def _default_stream(self, arguments):
        """torch's current stream when one of the tensors is torch's, otherwise the default stream."""
        binding = _tensor.torch_binding()
        for position in self._view_positions:
            value = arguments[position]
            if binding and isinstance(value, binding.tensor) and value.device.type == "cuda":
                return binding.current_stream(value.device.index)
        return 0

    def _set_scalars(self, signature, arguments):
        for (position, entry, kind), scalar in zip(self._scalar_entries, signature.scalars):
            setattr(scalar, kind, _convert_scalar(entry, arguments[position]))

    def _launch(self, signature, arguments, stream, lent=None):
        self._set_scalars(signature, arguments)
        call = self._handle, signature.device, stream, signature.address, self._count
        if lent:
            status = _library.runtime().tessera_kernel_launch_with_workspace(*call, *lent)
        else:
            status = self._library_launch(*call)
        if status:
            _library.check(status)

    def _bind(self, arguments, named):
        """All arguments by position; TypeError as Python's own calls raise."""
        names = self._names
        if len(arguments) + len(named) == len(names):
            try:
                return arguments + tuple(map(named.__getitem__, names[len(arguments) :]))
            except KeyError:
                pass  # What is wrong with the names is found below.
        if len(arguments) > len(names):
            raise TypeError(
                f"{self.name}() takes {len(names)} arguments ({', '.join(names)}); {len(arguments)} were given"
            )
        for name in named:
            if name not in names:
                raise TypeError(f"{self.name}() has no argument '{name}'; it takes {', '.join(names)}")
            if name in names[: len(arguments)]:
                raise TypeError(f"{self.name}() got argument '{name}' twice")
        missing = [name for name in names[len(arguments) :] if name not in named]
        raise TypeError(f"{self.name}() misses {', '.join(missing)}; it takes {', '.join(names)}")


def load(path: str | os.PathLike[str] | bytes, kernel: str | None = None) -> Kernel:
    """The kernel of a bundle file, by name when there are several. Raises BundleError, ValueError."""
    return Bundle(path).kernel(kernel)
