"""A call of XLA as a handler meets it (xla/ffi/api/c_api.h), made by hand: a stream and memory without a device."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_float, c_int32, c_int64, c_size_t, c_uint32, c_void_p

BF16, F32 = 16, 11


class Buffer(Structure):
    _fields_ = [
        ("size", c_size_t), ("extensions", c_void_p), ("type", c_int32), ("data", c_void_p), ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    ]  # fmt: skip


class Text(Structure):
    _fields_ = [("data", c_char_p), ("size", c_size_t)]


class Scalar(Structure):
    _fields_ = [("type", c_int32), ("value", c_void_p)]


class Buffers(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("extensions", c_void_p), ("size", c_int64), ("kinds", c_void_p), ("values", c_void_p)
    ]  # fmt: skip


class Attributes(Structure):
    _fields_ = [*Buffers._fields_[:4], ("names", c_void_p), ("values", c_void_p)]


class Request(Structure):
    """Of a stream (whose address is in `first`), of memory, or of an error (whose text is in `context`)."""

    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("context", c_void_p), ("first", c_size_t),
                ("second", c_size_t), ("data", c_void_p)]  # fmt: skip


Function = CFUNCTYPE(c_void_p, POINTER(Request))


class Api(Structure):
    _fields_ = [
        ("size", c_size_t), ("extensions", c_void_p), ("version", c_void_p * 3), ("internal", c_void_p),
        ("make_error", Function), ("others", c_void_p * 3), ("get_stream", Function), ("more", c_void_p * 4),
        ("allocate", Function), ("release", Function),
    ]  # fmt: skip


class CallFrame(Structure):
    _fields_ = [
        ("size", c_size_t), ("extensions", c_void_p), ("api", POINTER(Api)), ("context", c_void_p), ("stage", c_int32),
        ("arguments", Buffers), ("results", Buffers), ("attributes", Attributes),
    ]  # fmt: skip


class Metadata(Structure):
    _fields_ = [("size", c_size_t), ("version", c_int64 * 3), ("traits", c_uint32)]


class MetadataExtension(Structure):
    _fields_ = [("size", c_size_t), ("type", c_int32), ("next", c_void_p), ("metadata", POINTER(Metadata))]


EXECUTE = 3
# Bytes.
XLA_ALIGNMENT = 16


class Frame:
    """A call with buffers of bf16, or f32 where they have three dimensions, at addresses of the fake device."""

    def __init__(self, arguments, results, **attributes):
        self.keep, self.allocations, self.released, self.error, self.fails = [], [], [], None, False
        self.end = 1 << 40
        functions = (self._make_error, self._get_stream, self._allocate, self._release)
        make_error, get_stream, allocate, release = map(Function, functions)
        self.api = Api(make_error=make_error, get_stream=get_stream, allocate=allocate, release=release)
        self.frame = CallFrame(
            api=ctypes.pointer(self.api), stage=EXECUTE, arguments=self._list(arguments), results=self._list(results),
            attributes=self._name(attributes),
        )  # fmt: skip

    def call(self, handler, fails=False):
        """The text of the error, or None."""
        self.error, self.fails = None, fails
        handler.restype = c_void_p
        failed = handler(ctypes.byref(self.frame))
        assert bool(failed) == (self.error is not None)
        return self.error

    def ask_traits(self, handler):
        metadata = Metadata()
        extension = MetadataExtension(type=1, metadata=ctypes.pointer(metadata))
        frame = CallFrame(extensions=ctypes.addressof(extension), api=ctypes.pointer(self.api))
        handler.restype = c_void_p
        assert not handler(ctypes.byref(frame))
        return metadata.traits

    def _take(self, size):
        address = self.end
        self.end += (size + 255) // 256 * 256
        return address

    def _array(self, kind, values):
        self.keep += [(kind * len(values))(*values), values]
        return ctypes.addressof(self.keep[-2])

    def _list(self, shapes):
        buffers = []
        for shape in shapes:
            kind, size = (F32, 4) if len(shape) == 3 else (BF16, 2)
            for extent in shape:
                size *= extent
            dims = (c_int64 * len(shape))(*shape)
            buffers.append(Buffer(type=kind, data=self._take(size), rank=len(shape), dims=dims))
        self.keep.append(buffers)
        values = self._array(c_void_p, [ctypes.addressof(buffer) for buffer in buffers])
        return Buffers(size=len(shapes), kinds=self._array(c_int32, [1] * len(shapes)), values=values)

    def _name(self, attributes):
        names = [Text(name.encode(), len(name)) for name in attributes]
        values = []
        for value in attributes.values():
            if isinstance(value, str):
                values.append(Text(value.encode(), len(value)))
            else:
                self.keep.append(c_float(value))
                values.append(Scalar(F32, ctypes.addressof(self.keep[-1])))
        self.keep += [names, values]
        return Attributes(
            size=len(names), kinds=self._array(c_int32, [4 if isinstance(value, Text) else 3 for value in values]),
            names=self._array(c_void_p, list(map(ctypes.addressof, names))),
            values=self._array(c_void_p, list(map(ctypes.addressof, values))),
        )  # fmt: skip

    def _make_error(self, request):
        self.error = ctypes.string_at(request.contents.context).decode()
        return 1

    def _get_stream(self, request):
        request.contents.first = 0
        return None

    def _allocate(self, request):
        if self.fails:
            self.error = "no memory"
            return 1
        size, alignment = request.contents.first, request.contents.second
        if alignment > XLA_ALIGNMENT:  # As XLA's own allocators.
            self.error = f"Unsupported alignment: {alignment}"
            return 1
        self.allocations.append((self._take(size + XLA_ALIGNMENT) + XLA_ALIGNMENT, size))
        request.contents.data = self.allocations[-1][0]
        return None

    def _release(self, request):
        self.released.append(request.contents.first)
        return None
