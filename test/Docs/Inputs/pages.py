"""The blocks of code in a page of the documents, and what a page prints of its commands."""

import re
import typing

# A fence with its kind and what else stands there, or lines of four columns in behind an empty one or a heading: commands.
BLOCK = re.compile(r"^(?P<in> *)```(?P<kind>[^\n]*)\n(?P<fenced>.*?)^ *```$|(?P<shell>(?:^    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ [^\n]*\n\Z", re.MULTILINE)
ITEM = re.compile(r"^(?:[*-]|\d+\.) ", re.MULTILINE)


class Block(typing.NamedTuple):
    kind: str  # "tile", "python", ...; "shell" for lines of four columns in
    tags: tuple  # what else stands behind the fence
    text: str
    line: int  # of the first line of the text
    before: str  # the paragraph before it


def read_blocks(text):
    for found in BLOCK.finditer(text):
        before = text[: found.start()]
        line = before.count("\n") + 1
        paragraph = before.rstrip("\n").rpartition("\n\n")[2]
        if found["shell"] is None:
            kind, *tags = found["kind"].split() or [""]
            yield Block(kind, tuple(tags), found["fenced"], line + 1, paragraph)
        elif (before.endswith("\n\n") and not ITEM.match(paragraph)) or HEADING.search(before):
            yield Block("shell", (), re.sub("^    ", "", found["shell"], flags=re.MULTILINE), line, paragraph)


def read_commands(block):
    """Yields (command, what it prints or None). A command behind "$ " is followed by what it prints."""
    lines = block.text.replace("\\\n", " ").splitlines()
    while lines:
        line = lines.pop(0)
        command = re.sub(r"(?:^|\s+)#.*", "", line.removeprefix("$ ")).strip().removeprefix("build/bin/")
        quoted = [] if line.startswith("$ ") else None
        while quoted is not None and lines and not lines[0].startswith("$ "):
            quoted.append(lines.pop(0))
        if command:
            yield command, quoted
