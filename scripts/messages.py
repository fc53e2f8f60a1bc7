"""The errors that the project can say, as its tests and its Python sources have them: each refusal has a test."""

import ast
import collections
import pathlib
import re

EXPECTED = re.compile(r"expected-error[^{\n]*\{\{(.*?)\}\}\s*$", re.MULTILINE)
CHECKED = re.compile(r"^\W*[A-Z][A-Z0-9_-]*:\s(?:.*?\b)??error: (.*)$", re.MULTILINE)
# What a pattern of FileCheck leaves open.
OPEN = re.compile(r"\{\{.*?\}\}|\[\[.*?\]\]")
TESTS = {".mlir", ".tile", ".test", ".ptx"}
RAISED = re.compile(r"(Error|Exception)$")


def clean(text):
    return re.sub(r"\s+", " ", OPEN.sub("…", text)).strip(" …")


def read_tests(root):
    """Yields (area, text, place) of the errors that lit tests expect."""
    for path in sorted(path for path in (root / "test").rglob("*") if path.suffix in TESTS and "Inputs" not in path.parts):
        text = path.read_text(errors="replace")
        area = "/".join(path.relative_to(root / "test").parts[:-1]) or "all"
        for found in (*EXPECTED.finditer(text), *CHECKED.finditer(text)):
            yield area, clean(found[1]), f"{path.relative_to(root)}:{text.count(chr(10), 0, found.start()) + 1}"


def render(node):
    """The text of a string of Python, with "…" for what it computes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(render(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return render(node.left) + render(node.right)
    return "…"


def read_package(root):
    """Yields (area, text, place) of what the Python package raises."""
    package = root / "python" / "tessera"
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                name = getattr(node.exc.func, "id", getattr(node.exc.func, "attr", ""))
                if RAISED.search(name):
                    yield f"Python: {name}", clean(render(node.exc.args[0])), f"{path.relative_to(root)}:{node.lineno}"


def collect(root):
    """{area: {text: place}}, each text once, where it is first."""
    areas, seen = collections.defaultdict(dict), set()
    for area, text, place in (*read_tests(root), *read_package(root)):
        # A part of a text does not say what is wrong.
        if len(text.split()) >= 4 and text not in seen:
            seen.add(text)
            areas[area][text] = place
    return areas


def name_anchor(text, taken):
    """An anchor of the words of a text that is not among `taken`."""
    name = "-".join(re.findall(r"[a-z]+", re.sub(r"'[^']*'", "", text.lower()))[:9])
    number = sum(other == name or re.fullmatch(re.escape(name) + r"-\d+", other) is not None for other in taken)
    return f"{name}-{number}" if number else name


def write_page(root):
    """A page with an anchor for each error, in the Markdown of MyST."""
    lines = ["# Errors", "", "What is refused, by the part that refuses it. Behind each text is where it is tested or raised.",
             "Values are those of the test; … stands for what depends on the input.", ""]  # fmt: skip
    taken = set()
    for area, texts in sorted(collect(pathlib.Path(root)).items()):
        lines += [f"## {area}", ""]
        for text, place in sorted(texts.items()):
            anchor = name_anchor(text, taken)
            taken.add(anchor)
            lines += [f"({anchor})=", "", f"``{text.replace('``', '`` ``')}`` — `{place}`", ""]
    return "\n".join(lines)
