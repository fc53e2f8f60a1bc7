"""The library's kernels of the ops for tensors of the CPU, which a fake driver launches: for tests and counts of
instructions without a device. The process runs with the directory of the fake libcuda.so.1 in LD_LIBRARY_PATH."""

import ctypes
import functools
import unittest.mock

import fake_cuda
import torch

from tessera._compiler import _compile
from tessera.torch import _backward, _bytes, _direct, _functions, _native, _op, _prepared, _recalled

_library = torch.library.Library("tessera_test", "DEF")
_FAKES = {
    "attention_forward": _op._with_lse(_op._make_fake), "attention_inference": _op._without_lse(_op._make_fake),
    "attention_backward": _backward._make_fake, "variant_forward": _functions._make_fake_forward,
    "variant_backward": _functions._make_fake_backward, "attention_fp8_forward": _bytes._make_fake,
}  # fmt: skip
for _name, _fake in _FAKES.items():
    _schema = str(getattr(torch.ops.tessera, _name).default._schema)
    _library.define(_schema.removeprefix("tessera::"))
    torch.library.register_fake(f"tessera_test::{_name}", _fake, lib=_library)
#: False where PyTorch is older than 2.10.
has_native = _native.register("tessera_test", "CPU")
forward, inference, backward, variant_forward, variant_backward, fp8_forward = (
    getattr(torch.ops.tessera_test, name).default for name in _FAKES
)
_compile_real = _compile.compile


def _compile_ptx(source, *entry, **options):
    return _compile_real(source, *entry, image="ptx", **options)


def compile_without_ptxas():
    """A patch: what is compiled holds PTX, which takes no assembler."""
    return unittest.mock.patch.object(_compile, "compile", _compile_ptx)


def _forget(module, *names):
    """Functions of a module that remember, by their names, as if they had not been called."""
    return {name: functools.lru_cache(maxsize=None)(getattr(module, name).__wrapped__) for name in names}


def call_ops(direct=True):
    """Patches: `attention` calls these ops, or the direct functions where it may."""
    make = functools.partial(_direct.make, device_type=_direct._CPU) if direct else lambda *_: None
    applies = {name: {} for name in vars(_backward) if name.endswith(("_applies", "_applies_with_lse"))}
    return (
        unittest.mock.patch.multiple(_op, forward=forward, inference=inference, has_native=has_native),
        unittest.mock.patch.multiple(_direct, functions={}, functions_with_lse={}, make=make),
        unittest.mock.patch.multiple(_backward, backward=backward, **applies),
        unittest.mock.patch.multiple(
            _functions, forward=variant_forward, backward=variant_backward, _applies={},
            **_forget(_functions, "_find_function", "find_form"),
        ),
        unittest.mock.patch.multiple(_recalled, _plans={}),
        unittest.mock.patch.multiple(_prepared, _plans={}, _functions={}),
        unittest.mock.patch.multiple(_bytes, forward=fp8_forward, **_forget(_bytes, "_find_function")),
        compile_without_ptxas(),
    )


class Parameters:
    """What launches of a kernel pass to the driver, recorded from now on."""

    def __init__(self, kernel):
        # All alternatives of a kernel have the same parameters.
        described = kernel.alternative(0) if kernel.alternatives else kernel
        entries = described.description["launch_parameters"]
        types = {"tensor_map": ctypes.c_char * 128, "i64": ctypes.c_int64, "i32": ctypes.c_int32, "f32": ctypes.c_float}
        types = [types.get(entry["kind"]) or types.get(entry.get("type")) or ctypes.c_uint64 for entry in entries]
        self._entries = list(zip(entries, types))
        fake_cuda.set_parameters(types)

    def read(self):
        """The scalars and addresses of the last launch by the names of arguments."""
        found = {}
        for index, (entry, kind) in enumerate(self._entries):
            if entry["kind"] in ("scalar", "pointer") and "argument" in entry:
                value = fake_cuda.last_parameter(index, kind)
                found[entry["argument"]] = getattr(value, "value", value)
        return found
