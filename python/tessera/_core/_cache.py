"""Bundles kept on disk. Nothing that lies in the cache's place can stop or mislead a compilation."""

import binascii
import hashlib
import os
import stat
import warnings

# An entry is a line "tessera-cache 2 KEY SHA256 PLACE LENGTH" and the bundle. KEY is what the entry was written for and SHA256
# the digest of all that follows it, so that a cut, damaged or renamed entry is known for one. The machine code of the
# bundle stands in front of the text without it, LENGTH bytes that belong to byte PLACE of the text: in base64 it is a third
# larger, and a wheel hardly compresses it.
_MAGIC = b"tessera-cache 2"
_IMAGE = b'"base64":"'
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
WHEEL_BUNDLES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "share", "tessera", "bundles")


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


def _header(key, contents, place, length):
    where = b"%d %d" % (place, length)
    digest = hashlib.sha256(where + b"\n" + contents).hexdigest()
    return b"%s %s %s %s" % (_MAGIC, key.encode(), digest.encode(), where)


def _take_image(text):
    """(machine code of a bundle, where its base64 begins, the text without it); nothing of a text that has none."""
    place = text.find(_IMAGE) + len(_IMAGE)
    end = text.find(b'"', place)
    if place >= len(_IMAGE) and end > place:
        try:
            image = binascii.a2b_base64(text[place:end])
        except binascii.Error:
            return b"", 0, text
        if _encode(image) == text[place:end]:
            return image, place, text[:place] + text[end:]
    return b"", 0, text


def _encode(image):
    return binascii.b2a_base64(image, newline=False)


def make_entry(key, text):
    """What is kept of a text under a key."""
    image, place, rest = _take_image(text)
    contents = image + rest
    return _header(key, contents, place, len(image)) + b"\n" + contents


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
        return parse_entry(key, _read_file(_path(place, key)))
    except OSError:
        return None


def parse_entry(key, contents):
    """The text of which `make_entry` made these contents; None of any others."""
    header, _, contents = contents.partition(b"\n")
    try:
        place, length = map(int, header.split()[-2:])
    except ValueError:
        return None
    if header != _header(key, contents, place, length):
        return None
    text = contents[length:]
    return text[:place] + _encode(contents[:length]) + text[place:]


def write(place, key, text, warns=True):
    """Keeps a text under a key, in place of whatever is there, or `warns`. Readers see all of it or nothing."""
    import tempfile  # Of all that the package imports it would take the longest.

    temporary = None
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".writing-")
        with os.fdopen(handle, "wb") as file:
            file.write(make_entry(key, text))
        os.replace(temporary, _path(place, key))
        temporary = None
    except OSError as error:
        if warns:
            _warn(place, error.strerror or str(error))
    finally:
        if temporary:
            _remove(temporary)


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass  # The directory went away, or is not ours any more.
