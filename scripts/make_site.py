#!/usr/bin/env python3
"""Makes one site of the documents with Sphinx and MyST: the pages in the order of a ladder, with search and the version, the
functions and classes of the Python package by their docstrings, and an anchor for each error.

    scripts/make_site.py OUTPUT_DIRECTORY        pages in OUTPUT_DIRECTORY/html; a warning is an error
        [--into DIRECTORY]                       also in DIRECTORY/VERSION, and a first page with all versions that are there

Needs test/Docs/requirements.txt, and to list the functions for PyTorch and JAX these.
"""

import argparse
import importlib
import inspect
import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import make_wheel
import messages

LINK = re.compile(r"\]\(((?!\w+:|#)[^()\s#]+)(#[^()\s]*)?\)")
# The ladder: captions and pages; a folder stands for all of its pages.
LADDER = {
    "Begin": ["docs/getting-started", "docs/lessons"],
    "Tasks": ["docs/install", "docs/pytorch", "docs/jax", "docs/cpp", "docs/variants", "docs/backward", "docs/fp8",
              "docs/serving", "docs/recurrences", "docs/kernels", "docs/fast-kernels", "docs/seeing", "docs/tuning",
              "docs/editors", "docs/first-pass"],
    "Reference": ["docs/language", "docs/generated/", "api", "errors", "docs/environment", "docs/bundle", "docs/simulator", "CHANGELOG"],
    "Design and measurements": ["docs/architecture", "docs/performance", "docs/benchmarks", "docs/testing", "CONTRIBUTING",
                                "docs/lab/", "bench/results/README"],
}  # fmt: skip
MODULES = ("tessera", "tessera.masks", "tessera.torch", "tessera.jax", "tessera.transformers")
CONFIGURATION = """
project, author, version, release = "Tessera", "The Tessera contributors", {version!r}, {version!r}
extensions, html_theme, root_doc = ["myst_parser"], "furo", "index"
html_title = "Tessera " + version
myst_heading_anchors = 4
myst_enable_extensions = ["html_admonition"]
html_copy_source = html_show_sphinx = False
# Sources of languages that Pygments does not have; pages of operations begin with sections.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
"""


def list_pages(entry):
    """The pages of an entry of the ladder, the README of a folder first."""
    if not entry.endswith("/"):
        return [entry]
    paths = sorted((ROOT / entry).glob("*.md"), key=lambda path: (path.stem != "README", path.stem))
    return [f"{entry}{path.stem}" for path in paths]


def read_ladder():
    ladder = {caption: [page for entry in entries for page in list_pages(entry)] for caption, entries in LADDER.items()}
    known = {page for pages in ladder.values() for page in pages}
    new = [f"docs/{path.stem}" for path in sorted((ROOT / "docs").glob("*.md"))]
    ladder["Tasks"] += [page for page in new if page not in known and page != "docs/first-kernel"]
    return ladder


def stage_text(source, text, stage):
    """A page for the stage, with the files that it links to; a folder and a record have no page, so that their links are text."""

    def stage_link(found):
        target = (source.parent / found[1]).resolve()
        # Records are read by their summaries.
        if target.is_dir() or target.parent == ROOT / "bench/results" and target.name != "README.md":
            return "]"
        place = stage / target.relative_to(ROOT)
        if target.suffix != ".md" and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, place)
        lesson = re.match(r"#(\d)-", found[2] or "") if target == ROOT / "docs/lessons.md" else None
        if lesson:
            page = target.with_name("first-kernel.md" if lesson[1] == "3" else f"lesson-{lesson[1]}.md")
            return f"]({os.path.relpath(page, source.parent)})"
        if target == ROOT / "README.md":
            return f"]({os.path.relpath(ROOT / 'index.md', source.parent)}{found[2] or ''})"
        return found[0]

    return LINK.sub(stage_link, text)


def split_lessons(text):
    """The page of the lessons with a list of theirs, and a page for each; the third is a page of its own already."""
    before, *lessons = re.split(r"^## (?=\d\. )", text, flags=re.MULTILINE)
    names = ["first-kernel" if "](first-kernel.md)" in lesson else f"lesson-{number}" for number, lesson in enumerate(lessons, 1)]
    titles = [lesson.partition("\n")[0] for lesson in lessons]
    tree = ["```{toctree}", *(f"{title} <{name}>" for title, name in zip(titles, names)), "```"]
    yield "lessons", before + "\n".join(tree) + "\n"
    yield from ((name, f"# {lesson}") for name, lesson in zip(names, lessons) if name.startswith("lesson-"))


def write_trees(ladder):
    for caption, pages in ladder.items():
        yield "\n".join(["```{toctree}", f":caption: {caption}", ":hidden:", "", *pages, "```"])


def stage(output):
    """Writes the sources of the site."""
    shutil.rmtree(output, ignore_errors=True)
    ladder = read_ladder()
    for page in (*(page for pages in ladder.values() for page in pages if page not in ("api", "errors")), "docs/first-kernel"):
        source = ROOT / f"{page}.md"
        text = source.read_text()
        for name, part in split_lessons(text) if page == "docs/lessons" else [(source.stem, text)]:
            place = output / page
            place.parent.mkdir(parents=True, exist_ok=True)
            place.with_name(f"{name}.md").write_text(stage_text(source, part, output))
    readme = ROOT / "README.md"
    text = stage_text(readme, readme.read_text(), output)
    (output / "index.md").write_text("\n\n".join([text, *write_trees(ladder)]))
    (output / "api.md").write_text(write_api())
    (output / "errors.md").write_text(messages.write_page(ROOT))
    version = make_wheel.read_project()["version"]
    (output / "conf.py").write_text(CONFIGURATION.format(version=version))


def publish(pages, directory, version):
    """Puts the site beside those of other versions, and writes a first page with all of them, the newest first."""
    shutil.rmtree(directory / version, ignore_errors=True)
    shutil.copytree(pages, directory / version)
    versions = [path.parent.name for path in directory.glob("*/index.html")]
    versions.sort(key=lambda name: [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)], reverse=True)
    links = "".join(f'<li><a href="{name}/index.html">Tessera {name}</a></li>\n' for name in versions)
    (directory / "index.html").write_text(f"<!doctype html>\n<title>Tessera</title>\n<h1>Tessera</h1>\n<ul>\n{links}</ul>\n")


def describe(name, value, level):
    """Yields the lines of a function or a class, its methods behind it."""
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        signature = ""
    yield from ("#" * level + f" {name}", "")
    kind = "class " if inspect.isclass(value) else ""
    yield from ("```python", f"{kind}{name}{signature}", "```", "", inspect.getdoc(value) or "", "")
    for member in sorted(vars(value)) if kind else []:
        method = inspect.getattr_static(value, member)
        documented = inspect.isroutine(method) or isinstance(method, (property, staticmethod, classmethod))
        if not member.startswith("_") and documented:
            text = inspect.getdoc(getattr(value, member)) or ""
            if isinstance(method, property):
                yield from (f"**{name}.{member}** {text}", "")
            else:
                yield from describe(f"{name}.{member}", getattr(value, member), level + 1)


def write_api():
    lines = ["# Python", "", "The public functions and classes of the package, by their docstrings.", ""]
    for module_name in MODULES:
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            print(f"make_site: {module_name} is left out: {error}", file=sys.stderr)
            continue
        lines += [f"## {module_name}", "", inspect.getdoc(module) or "", ""]
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if not inspect.ismodule(value):
                lines += describe(f"{module_name}.{name}", value, 3)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path, help="folder of the sites of all versions")
    arguments = parser.parse_args()
    output = arguments.output
    sys.path.insert(0, str(ROOT / "python"))
    stage(output / "source")
    from sphinx.cmd.build import main as build

    if status := build(["-q", "-W", "--keep-going", "-b", "html", str(output / "source"), str(output / "html")]):
        sys.exit(status)
    if arguments.into:
        publish(output / "html", arguments.into, make_wheel.read_project()["version"])


if __name__ == "__main__":
    main()
