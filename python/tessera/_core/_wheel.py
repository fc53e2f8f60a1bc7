"""The bundles that the package's wheel has, and which of them a request is for.

`index.json` beside them (scripts/compile_bundles.py) has for each source, by the digest of its text and of what it imports,
an entry for each bundle: what it was compiled with, which of its parameters have to be given, for the others have these
values anyway, and where it is: bytes of what an archive holds. Bundles of one kernel, type, width and mask differ little, so
that one archive of all of them takes fewer bytes. They are as entries of the cache in it, by which damage is found.
"""

import functools
import hashlib
import json
import os
import warnings

from . import _cache

#: The class that a compilation without a shape is for.
DEFAULT_CLASS = "many-long"
INDEX = "index.json"
ARCHIVES = ".xz"


def make_digest(text):
    """What the index calls a source with the sources that it imports."""
    return hashlib.sha256(text).hexdigest()


def make_entry(key, kernel, request, parameters, needed):
    """The entry of a bundle: the key that it is kept under, the name of what it launches, the request for it, the values
    of those parameters as text that a request for it may give, and the names of those that it must."""
    return {
        "key": key, "kernel": kernel, "shape_class": request["shape_class"], "alternatives": request["alternatives"],
        "parameters": parameters, "needed": sorted(needed),
    }  # fmt: skip


@functools.lru_cache(maxsize=None)
def read_index(directory):
    """The entries by the digests of their sources; without a wheel there are none."""
    try:
        with open(os.path.join(directory, INDEX)) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def _fits(entry, request):
    given = request["parameters"]
    return (
        request["kernel"] in (None, entry["kernel"])
        and request["alternatives"] in (None, entry["alternatives"])
        and all(name in given for name in entry["needed"])
        and all(entry["parameters"].get(name) == value for name, value in given.items())
    )


def write_archive(directory, texts):
    """Writes bundles, (key, text), to an archive. Returns where each is, as entries have it."""
    import lzma

    parts = [_cache.make_entry(key, text) for key, text in texts]
    contents = lzma.compress(b"".join(parts), preset=6 | lzma.PRESET_EXTREME)
    name = hashlib.sha256(contents).hexdigest()[:16] + ARCHIVES
    with open(os.path.join(directory, name), "wb") as file:
        file.write(contents)
    places, begin = [], 0
    for part in parts:
        places.append({"archive": name, "begin": begin, "end": begin + len(part)})
        begin += len(part)
    return places


def read_bundle(directory, entry):
    """The text of the bundle of an entry; None when it is not there, or not the one that was written."""
    try:
        import lzma
    except ImportError:
        _warn_of_lzma()
        return None
    try:
        with open(os.path.join(directory, entry["archive"]), "rb") as file:
            contents = lzma.LZMADecompressor().decompress(file.read(), max_length=entry["end"])
    except (OSError, lzma.LZMAError):
        return None
    return _cache.parse_entry(entry["key"], contents[entry["begin"] :])


@functools.lru_cache(maxsize=None)
def _warn_of_lzma():
    warnings.warn(
        "this Python has no module lzma, without which bundles that the package has cannot be read; kernels are compiled",
        RuntimeWarning,
        stacklevel=2,
    )


def find_entry(directory, digest, request, find_class):
    """The entry of the bundle for a request, None when there is none. `find_class()` is the class of the request's shape."""
    # Another ptxas, database or schedule may make something else.
    others = ("schedule", "ptxas", "database", "gpu", "instrument")
    if request["image"] != "cubin" or any(request[name] is not None for name in others):
        return None
    found = [entry for entry in read_index(directory).get(digest, ()) if _fits(entry, request)]
    if not found:
        return None
    wanted = find_class() if request["shape"] else request["shape_class"]
    classes = (wanted,) if wanted or request["shape"] else (None, DEFAULT_CLASS)
    return next((entry for entry in found if entry["shape_class"] in classes), None)
