"""Reads and writes .npy files of float32."""

import array


def read(path):
    """Returns the shape and the elements."""
    data = open(path, "rb").read()
    start = 10 + int.from_bytes(data[8:10], "little")
    header = eval(data[10:start], {})
    assert data[:8] == b"\x93NUMPY\1\0" and start % 64 == 0, path
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    return header["shape"], array.array("f", data[start:])


def write(path, shape, elements):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)})
    header = header.ljust(64 * 2 - 11) + "\n"
    data = array.array("f", elements).tobytes()
    open(path, "wb").write(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + data)
