"""The bundles that the package's wheel has, and which of them a request is for.

`index.json` beside them (scripts/compile_bundles.py) has for each source, by the digest of its text and of what it imports,
an entry for each bundle: what it was compiled with, and which of its parameters have to be given, for the others have these
values anyway.
"""

import functools
import hashlib
import json
import os

#: The class that a compilation without a shape is for.
DEFAULT_CLASS = "many-long"
INDEX = "index.json"


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


def find_key(directory, digest, request, find_class):
    """The key of the bundle for a request, None when there is none. `find_class()` is the class of the request's shape."""
    # Another ptxas, database or schedule may make something else.
    others = ("schedule", "ptxas", "database", "gpu", "instrument")
    if request["image"] != "cubin" or any(request[name] is not None for name in others):
        return None
    found = [entry for entry in read_index(directory).get(digest, ()) if _fits(entry, request)]
    if not found:
        return None
    wanted = find_class() if request["shape"] else request["shape_class"]
    classes = (wanted,) if wanted or request["shape"] else (None, DEFAULT_CLASS)
    return next((entry["key"] for entry in found if entry["shape_class"] in classes), None)
