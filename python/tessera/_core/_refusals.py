"""Why a source does not compile, as data that is kept in place of a bundle: it takes as long to find out as compiling."""

import json

from ._errors import CompileError, Diagnostic

_BEGIN = b'{"refusal":'


class Refusal:
    """The status of a CompileError, and its diagnostics with None for the name of the source, which is no part of a key."""

    def __init__(self, status, diagnostics):
        self.status, self.diagnostics = status, diagnostics

    def make_error(self, file_name, on_diagnostic=None):
        """What a compilation of the source by that name raises, after it has called `on_diagnostic`."""
        diagnostics = [_unpack(fields, file_name) for fields in self.diagnostics]
        for diagnostic in diagnostics if on_diagnostic else ():
            on_diagnostic(diagnostic)
        return CompileError("\n".join(map(str, diagnostics)), self.status, diagnostics)

    def to_text(self):
        fields = {"status": self.status, "diagnostics": self.diagnostics}
        return _BEGIN + json.dumps(fields, separators=(",", ":")).encode() + b"}"


def _pack(diagnostic, file_name):
    file = None if diagnostic.file == file_name else diagnostic.file
    notes = [_pack(note, file_name) for note in diagnostic.notes]
    return [diagnostic.severity, file, diagnostic.line, diagnostic.column, diagnostic.message, notes, diagnostic.kind]


def _unpack(fields, file_name):
    severity, file, line, column, message, notes, kind = fields
    notes = tuple(_unpack(note, file_name) for note in notes)
    return Diagnostic(severity, file_name if file is None else file, line, column, message, notes, kind)


def read(error, file_name):
    """The Refusal of a CompileError; None of one that says nothing of the source."""
    shown = [entry for entry in error.diagnostics if entry.severity != "remark"]
    if error.status != "source" or not shown:
        return None
    return Refusal(error.status, [_pack(entry, file_name) for entry in shown])


def parse(text):
    """The Refusal of a text that was kept; None of any other."""
    if not text.startswith(_BEGIN):
        return None
    try:
        refusal = Refusal(**json.loads(text)["refusal"])
        return refusal if refusal.make_error("").diagnostics else None
    except (TypeError, ValueError):
        return None
