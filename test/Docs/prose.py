# RUN: %python %s %source
"""No sentence of the hand-written documents has more than 40 words, and half of those of docs/performance.md have less
than 18. Code, tables and headings do not count; an item of a list is a paragraph of its own."""

import pathlib
import re
import statistics
import sys

LONGEST, MEDIAN = 40, 18
ITEM = re.compile(r"(?:[*-]|\d+\.)\s+")


def paragraphs(text):
    """Yields (line, text) of the paragraphs and list items of a page."""
    fenced, begin, words = False, 0, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        fence = stripped.startswith("```")
        # Text that begins four columns in is code, unless it goes on with a paragraph.
        code = fenced or (line.startswith("    ") and not words and not ITEM.match(stripped))
        apart = fence or code or not stripped or re.match(r"#+ |\||<!--|!\[", stripped)
        item = ITEM.match(stripped)
        if words and (apart or item):
            yield begin, " ".join(words)
            words = []
        fenced ^= fence
        if not apart:
            begin = begin if words else number
            words.append(stripped[item.end():] if item else stripped)


def sentences(paragraph):
    """Yields the sentences of a paragraph; links count as their text."""
    text = re.sub(r"\]\([^)]*\)", "]", paragraph)
    yield from re.split(r"(?<=[.!?])[\")*]*\s+(?=[^a-z])", text)


def count_words(sentence):
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def main(root):
    pages = [root / "README.md", root / "CONTRIBUTING.md", root / "bench/results/README.md", *root.glob("docs/*.md")]
    failures = 0
    for page in [*pages, *root.glob("docs/lab/*.md")]:
        counts = []
        for line, paragraph in paragraphs(page.read_text()):
            for sentence in sentences(paragraph):
                counts.append(count_words(sentence))
                if counts[-1] > LONGEST:
                    failures += 1
                    print(f"{page.relative_to(root)}:{line}: {counts[-1]} words: {sentence}")
        if page.name == "performance.md" and statistics.median(counts) >= MEDIAN:
            failures += 1
            print(f"{page.relative_to(root)}: the median sentence has {statistics.median(counts)} words")
    print(f"{len(pages)} pages, {failures} failures")
    return failures > 0 or len(pages) < 10


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
