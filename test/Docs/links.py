# RUN: %python %s %source
"""Relative links of the documents lead to files that are there, and to headings that are there; tables are whole, and no page is
empty."""

import functools
import pathlib
import re
import sys

PLACES = ("README.md", "CONTRIBUTING.md", "docs", "bench", "kernels", "editors", "test", "python", "python_examples")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
RULE = re.compile(r"\|(?: *:?-+:? *\|)+")


def read(page):
    """The text of a page with the lines of its code blocks emptied, so that lines keep their numbers."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())


@functools.lru_cache(maxsize=None)
def anchors(page):
    """The anchors of a page's headings, as GitHub and GitLab name them."""
    names = set(re.findall(r'<a id="([^"]+)"', page.read_text()))
    for heading in re.findall(r"^#+ +(.*?) *#*$", read(page), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        same = len([other for other in names if re.fullmatch(rf"{re.escape(name)}(-\d+)?", other)])
        names.add(f"{name}-{same}" if same else name)
    return names


def check_link(page, target):
    """Says what is wrong with a link, or nothing."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return f"the link {target} leads nowhere"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return f"the link {target} leads to a heading that is not there"
    return None


def check_tables(text):
    """Yields (line, problem). The second line of a table is its rule; without one, rows are shown as raw text."""
    before = ""
    lines = text.splitlines() + [""]
    for number, (line, after) in enumerate(zip(lines, lines[1:]), 1):
        line = line.strip()
        if line.startswith("|") and not before.startswith("|") and not RULE.fullmatch(after.strip()):
            yield number, "a row that belongs to no table: an empty line before it, or no rule after it"
        before = line


def main(root):
    failures = links = 0
    for page in sorted(page for place in PLACES for page in [root / place, *(root / place).rglob("*.md")] if page.is_file()):
        text = read(page)
        problems = list(check_tables(text)) if text.strip() else [(1, "the page is empty")]
        for match in LINK.finditer(re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), text)):
            links += 1
            if problem := check_link(page, match[1]):
                problems.append((text.count("\n", 0, match.start()) + 1, problem))
        for line, problem in problems:
            print(f"{page.relative_to(root)}:{line}: {problem}")
        failures += len(problems)
    print(f"{links} links, {failures} failures")
    return failures > 0 or links == 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
