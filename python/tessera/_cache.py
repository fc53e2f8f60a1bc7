"""Bundles kept on disk. Nothing that lies in the cache's place can stop or mislead a compilation."""

import hashlib
import os
import stat
import warnings

# An entry is a line "tessera-cache 1 KEY SHA256" and the text of the bundle. KEY is what the entry was written for
# and SHA256 the digest of the text, so that a cut, damaged or renamed entry is known for one.
_MAGIC = b"tessera-cache 1"
# No bundle comes near; whatever is larger is not an entry and need not be read.
_MAX_ENTRY_BYTES = 1 << 28

_warned = set()


def directory():
    """Where bundles are kept; None for nowhere.

    $TESSERA_CACHE_DIR (empty: nowhere), $XDG_CACHE_HOME/tessera, ~/.cache/tessera.
    """
    chosen = os.environ.get("TESSERA_CACHE_DIR")
    if chosen is not None:
        return chosen or None
    # A relative XDG_CACHE_HOME is to be ignored (XDG Base Directory Specification).
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        # Without HOME and an entry for the user "~" stays what it is, a name in the working directory; an empty HOME
        # makes it the root.
        home = os.path.expanduser("~") if os.environ.get("HOME") != "" else ""
        if not os.path.isabs(home):
            _warn("~", "there is no home directory")
            return None
        base = os.path.join(home, ".cache")
    return os.path.join(base, "tessera")


#: Bundles of the kernels of this package, which its wheel has (scripts/compile_bundles.py).
OWN_BUNDLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "share", "tessera", "bundles")


def shipped_directories():
    """Where bundles are looked for first and never written, as $TESSERA_BUNDLES says: directories as on PATH."""
    return [place for place in os.environ.get("TESSERA_BUNDLES", "").split(os.pathsep) if place]


def _warn(place, reason):
    """Says once for each place that nothing is kept there."""
    if place in _warned:
        return
    _warned.add(place)
    warnings.warn(
        f"compiled kernels are not kept in '{place}': {reason}; TESSERA_CACHE_DIR names another directory, or is "
        "empty for none",
        RuntimeWarning,
        stacklevel=5,
    )


def _path(place, key):
    return os.path.join(place, key + ".entry")


def _header(key, text):
    return b"%s %s %s\n" % (_MAGIC, key.encode(), hashlib.sha256(text).hexdigest().encode())


def _read_file(path):
    """The contents of a regular file; OSError for anything else, without waiting for it."""
    # O_NONBLOCK: opening a fifo must not wait for a writer. O_NOFOLLOW: an entry is no link.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_ENTRY_BYTES:
            raise OSError(f"'{path}' is not an entry")
        return file.read(_MAX_ENTRY_BYTES)


def read(place, key):
    """The text kept under a key; None when there is none, or not the one that was written."""
    try:
        contents = _read_file(_path(place, key))
    except OSError:
        return None
    header, _, text = contents.partition(b"\n")
    return text if header + b"\n" == _header(key, text) else None


def write(place, key, text):
    """Keeps a text under a key, in place of whatever is there, or warns. Readers see all of it or nothing."""
    import tempfile  # Of all that the package imports it would take the longest.

    temporary = None
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".writing-")
        with os.fdopen(handle, "wb") as file:
            file.write(_header(key, text))
            file.write(text)
        os.replace(temporary, _path(place, key))
        temporary = None
    except OSError as error:
        _warn(place, error.strerror or str(error))
    finally:
        if temporary:
            _remove(temporary)


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass  # The directory went away, or is not ours any more.
