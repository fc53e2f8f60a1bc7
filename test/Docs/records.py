# RUN: %python %s %source
"""Holds bench/results to what is of use: each record there is the latest of its benchmark, by the table of
bench/results/README.md, or cited by a document or a source, and has the times of each turn beside a table only where a script
or a picture needs them; each record that is cited is there; and the table has a row for each benchmark of bench that left a record."""

import collections
import pathlib
import re
import sys

# <date>-<machine>-[<commit>-]<benchmark>; what a record is called has no dots.
NAME = re.compile(r"\b\d{4}-\d\d-\d\d-[a-z]\w*(?:-\w+)+")
KIND = re.compile(r"(\d{4}-\d\d-\d\d)-(.+?)-[0-9a-f]{7,40}-(.+)")
SOURCES = ("docs", "kernels", "dialects", "passes", "lib", "bench", "include", "tools", "README.md", "CONTRIBUTING.md")
SUFFIXES = {".md", ".cpp", ".h", ".td", ".py", ".json", ".tile"}


def list_texts(root, results):
    """Every document and source that may cite a record; the records themselves do not count."""
    for place in (root / name for name in SOURCES):
        files = place.rglob("*") if place.is_dir() else [place]
        yield from (file for file in files if file.suffix in SUFFIXES and file.parent != results)


def list_unread(results, texts):
    """The times of each turn, beside a table, that no text names and of which there is no picture."""
    for times in results.glob("*.json"):
        twins = [times.with_suffix(suffix).exists() for suffix in (".md", ".svg")]
        if twins == [True, False] and not any(times.name in text for text in texts):
            yield times.name


def check_latest(table, stems, benchmarks):
    """Says what is wrong with the table of the latest records of `benchmarks`."""
    newest = {}
    for stem in stems:
        if match := KIND.fullmatch(stem):
            date, *kind = match.groups()
            newest[tuple(kind)] = max(date, newest.get(tuple(kind), ""))
    listed = collections.defaultdict(set)
    for name in set(NAME.findall(table)):
        if match := KIND.fullmatch(name):
            date, *kind = match.groups()
            listed[tuple(kind)].add(name)
            if date < newest.get(tuple(kind), ""):
                yield f"{name} is listed as the latest, and there is one of {newest[tuple(kind)]}"
    for machine, name in sorted(newest.keys() - listed.keys()):
        if name in benchmarks:
            yield f"there are records of {name} on {machine}, and the table lists none as the latest"
    for names in listed.values():
        if len(names) > 1:
            yield f"listed as the latest of one benchmark: {', '.join(sorted(names))}"


def main(root):
    results = root / "bench" / "results"
    stems = {file.stem for file in results.iterdir() if file.name != "README.md"}
    table = (results / "README.md").read_text()
    cited = {(name, results / "README.md") for name in NAME.findall(table)}
    texts = {file: file.read_text(errors="replace") for file in list_texts(root, results)}
    for file, text in texts.items():
        cited |= {(name, file) for name in NAME.findall(text)}
    problems = [f"{file.relative_to(root)} cites {name}, which is not there" for name, file in cited if name not in stems]
    unused = stems - {name for name, _ in cited}
    problems += [f"{stem} is neither the latest of its benchmark nor cited: cite it or remove it" for stem in unused]
    problems += [f"no script reads {name}: keep the table alone" for name in list_unread(results, [table, *texts.values()])]
    benchmarks = {file.stem.replace("_", "-") for file in (root / "bench").glob("*.py")}
    problems += check_latest(table, stems, benchmarks)
    print("\n".join(sorted(problems)))
    print(f"{len(stems)} records, {len(problems)} problems")
    return bool(problems) or not stems


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
