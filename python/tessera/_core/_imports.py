"""The files that a source consists of, and its rules, by the rule of the compiler (lib/Source/Imports.cpp): a file is looked for beside its
importer as that is called, so that a link is where it lies, and read once, whatever it is called. The compiler is not
asked, since a process that finds its kernels on disk has no use for it."""

import os
import re

# Strings, which may have what looks like a comment in them, and comments.
_STRING_OR_COMMENT = re.compile(rb'("[^"\n]*")|//[^\n]*')
_IMPORT = re.compile(rb'\$\s*(?:import|rules)\s*"([^"\n]+)"')
# The compiler reads no file that is larger, and refuses more files.
_MOST_BYTES, _MOST_FILES = 1 << 24, 64


def _read_file(path):
    """The text of a regular file, None where there is none."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
            return None
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _follow(source, file_name, known):
    """What a source imports, as bytes: of each import the name, and the number of a file that is `known`, or else its text and what
    that imports. Of one that ships the compiler has the text."""
    for name in _IMPORT.findall(_STRING_OR_COMMENT.sub(rb"\1", source)):
        path = os.path.join(os.path.dirname(file_name), os.fsdecode(name))
        text, identity = _read_file(path), os.path.realpath(path)
        if text is None:
            yield b"%s\0ships" % name
        elif identity in known:
            yield b"%s\0%d" % (name, known[identity])
        elif len(known) < _MOST_FILES:
            known[identity] = len(known)
            yield b"%s\0%d\0%s" % (name, known[identity], _quote(text))
            yield from _follow(text, path, known)


def _quote(text):
    return b"%d\0%s" % (len(text), text)


def read_rules(paths):
    """The texts of the files of rules that a user names, by a call and by the environment."""
    named = os.environ.get("TESSERA_RULES", "").split(os.pathsep)
    return [_quote(_read_file(path) or b"") for path in (*paths, *named) if path]


def read_whole(source, file_name, rules=()):
    """The text of a source with those of the files that it imports, each with its name, and of rules: what is compiled, but for
    what the compiler has itself."""
    files = _follow(source, file_name, {os.path.realpath(file_name): 0})
    return b"".join([_quote(source), *files, *read_rules(rules)])
