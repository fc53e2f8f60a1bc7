# REQUIRES: sphinx, torch, jax
# RUN: rm -rf %t && mkdir -p %t/all/0.0.9 %t/all/0.0.10
# RUN: touch %t/all/0.0.9/index.html %t/all/0.0.10/index.html
# RUN: env TESSERA_LIBRARY=%build/lib %sphinx-python %source/scripts/make_site.py %t --into %t/all
# RUN: %python %s %t/html
"""The site of the documents: each link leads to a page and a place that are there, each page is in the ladder, and there are
search, the version, lessons of their own pages in their order, functions of Python and an anchor for each error."""

import collections
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.text = [], set(), path.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(filter(None, (attributes.get("id"), attributes.get("name"))))
        self.links += filter(None, (attributes.get("href"), attributes.get("src")))


def check_links(root, pages):
    """Yields what is wrong, and counts the links."""
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{path.relative_to(root)}: {link} leads nowhere"
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path.relative_to(root)}: {link} leads to a place that is not there"


def main(root):
    pages = {path: Page(path) for path in root.rglob("*.html")}
    problems = list(check_links(root, pages))
    index = pages[root / "index.html"]
    # The side of each page has the ladder.
    ladder = [link for link in index.links if link.endswith(".html")]
    lessons = [f"docs/{name}.html" for name in ("lesson-1", "lesson-2", "first-kernel", "lesson-4", "lesson-5")]
    wanted = ["docs/getting-started.html", "docs/lessons.html", *lessons, "docs/install.html", "docs/generated/tile.html",
              "api.html", "errors.html", "docs/architecture.html", "docs/lab/README.html"]  # fmt: skip
    places = [ladder.index(link) if link in ladder else -1 for link in wanted]
    if -1 in places or places != sorted(places):
        problems.append(f"the ladder of the first page is not in order: {dict(zip(wanted, places))}")
    problems += [f"{path} is not in the ladder" for path in pages if path.stem not in ("index", "search", "genindex")
                 and str(path.relative_to(root)) not in ladder]  # fmt: skip
    if "Tessera 0." not in index.text or not (root / "searchindex.js").exists():
        problems.append("no version, or no search")
    for name in ("tessera-program-compare", "tessera-torch-attention", "tessera-jax-attention", "tessera-masks-window"):
        if name not in pages[root / "api.html"].anchors:
            problems.append(f"api.html lacks {name}")
    # The sites of all versions, the newest first.
    versions = [link.partition("/")[0] for link in Page(root.parent / "all" / "index.html").links]
    if versions[1:] != ["0.0.10", "0.0.9"] or not (root.parent / "all" / versions[0] / "api.html").exists():
        problems.append(f"the first page of all versions has {versions}")
    errors = collections.Counter(anchor.split("-")[0] for anchor in pages[root / "errors.html"].anchors)
    if sum(errors.values()) < 500:
        problems.append(f"errors.html has {sum(errors.values())} anchors")
    print(*problems, sep="\n")
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
