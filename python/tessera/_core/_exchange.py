"""Launching in one call that reads a framework's tensors by itself (tessera-c/Python.h)."""

import ctypes
from ctypes import c_char_p, c_int, c_uint32, c_void_p

from . import _library

# TESSERA_PYTHON_NOT_TAKEN
NOT_TAKEN = -1

_CAPSULE_NAME = b"dlpack_exchange_api"


class _ExchangeAPI(ctypes.Structure):
    """DLPackExchangeAPI of dlpack.h, major version 1."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("older", c_void_p),
        ("allocate", c_void_p),
        ("managed_from_object", c_void_p),
        ("managed_to_object", c_void_p),
        ("tensor_from_object", c_void_p),
        ("current_work_stream", c_void_p),
    ]


class Framework(ctypes.Structure):
    """tessera_python_framework"""

    _fields_ = [("read_tensor", c_void_p), ("current_stream", c_void_p), ("tensor_types", c_void_p * 2)]


class _Method(ctypes.Structure):
    """PyMethodDef of CPython's stable ABI."""

    _fields_ = [("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p)]


_METH_FASTCALL = 0x80

_is_valid_capsule = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
#: The address in a PyCapsule, of which the name is given.
capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.py_object, c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def _find_exchange_api(tensor):
    """The _ExchangeAPI of a type of tensors, or None when it has none that launching can use."""
    capsule = getattr(tensor, "__dlpack_c_exchange_api__", None)
    if not _is_valid_capsule(capsule, _CAPSULE_NAME):
        return None
    api = _ExchangeAPI.from_address(capsule_pointer(capsule, _CAPSULE_NAME))
    # A later major version has other members; its functions for version 1, if any, come after it.
    while api.major != 1:
        if not api.older:
            return None
        api = _ExchangeAPI.from_address(api.older)
    return api if api.tensor_from_object and api.current_work_stream else None


def _list_tensor_types(torch):
    """The types whose objects are plain tensors of torch."""
    parameter = getattr(getattr(torch, "nn", None), "Parameter", torch.Tensor)
    return torch.Tensor, parameter


def create_framework(torch):
    """A Framework for tensors of torch; None when torch has no exchange API (before 2.10)."""
    api = _find_exchange_api(torch.Tensor)
    if api is None:
        return None
    types = (c_void_p * 2)(*map(id, _list_tensor_types(torch)))
    return Framework(api.tensor_from_object, api.current_work_stream, types)


# What functions of Python point to, which live as long as the process.
_methods = []


def make_function(name, function, address):
    """A function of Python by one of a library for METH_FASTCALL, whose `self` is an address. One that ctypes makes would
    serve too; calling it takes longer than reading the tensors."""
    method = _Method(name.encode(), ctypes.cast(function, c_void_p), _METH_FASTCALL)
    _methods.append(method)
    return _new_function(ctypes.addressof(method), address, None)


class Launcher:
    """Launches kernels with the tensors of a Framework.

    `launch` is tessera_python_launch: launch(kernel handle, arguments[, stream]) returns 0, NOT_TAKEN or what
    _library.check raises an exception for.
    """

    def __init__(self, framework):
        self._framework = framework
        function = _library.runtime().tessera_python_launch
        self.launch = make_function("tessera_python_launch", function, ctypes.addressof(framework))


def create_launcher(torch):
    """A Launcher for tensors of torch; None when torch has no exchange API (before 2.10)."""
    framework = create_framework(torch)
    return Launcher(framework) if framework else None
