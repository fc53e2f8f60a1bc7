"""Checks the structure of a page of tessera explain and prints what its data says, a line each.

--link FORM PATTERN prints also each line of a form in which the pattern occurs, with the lines of the source that it is
linked with; --code PATTERN the instructions of the loops in whose lines of the source the pattern occurs.
"""

import argparse
import html.parser
import json
import pathlib
import re


class Page(html.parser.HTMLParser):
    """Collects scripts, and what could load something or is not closed."""

    def __init__(self):
        super().__init__()
        self.scripts, self.open, self.loads, self.policy = [], [], [], ""

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.loads += [f"{tag} {name}" for name in attributes if name in ("src", "href", "srcset", "action")]
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((attributes.get("type", ""), ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            kind, text = self.scripts[-1]
            self.scripts[-1] = kind, text + data


def read(path):
    """The data of a page, whose structure is checked."""
    page = Page()
    page.feed(pathlib.Path(path).read_text(encoding="utf-8"))
    assert not page.open and not page.loads, (page.open, page.loads)
    assert page.policy.startswith("default-src 'none'"), page.policy
    kinds = [kind for kind, _ in page.scripts]
    assert kinds == ["application/json", ""], kinds
    data = json.loads(page.scripts[0][1])
    assert data["format"] == "tessera-explain" and data["version"] == 2
    assert all(data["fields"].values()) and "warpgroups that compute" in data["fields"]["consumers"], data["fields"]
    return data


def place(data, entry):
    name = data["files"][entry["file"]]["name"] if "file" in entry else entry["path"]
    return f"{pathlib.Path(name).name}:{entry['line']}" if name else "nowhere"


def quote(data, file, line):
    source = data["files"][file]
    return f"{pathlib.Path(source['name']).name}:{line}: {source['text'].splitlines()[line - 1].strip()}"


def print_forms(data):
    for form in data["forms"]:
        failed = " failed" if form.get("failed") else ""
        if "text" not in form:
            print(f"form {form['pass']}{failed}: no change")
            continue
        lines = form["text"].split("\n")
        assert len(lines) == len(form["at"]), "a place for each line"
        linked = [places for places in form["at"] if data["places"][places]]
        print(f"form {form['pass']}{failed}: {len(lines)} lines, {len(linked)} of them linked")


def print_links(data, name, pattern):
    form = next(form for form in data["forms"] if form["pass"] == name and "text" in form)
    for line, number in zip(form["text"].split("\n"), form["at"], strict=True):
        if not re.search(pattern, line):
            continue
        for file, position in data["places"][number]:
            print(f"link {line.strip()} <- {quote(data, file, position)}")


def print_code(data, pattern):
    for function in data["code"]["functions"]:
        for _, text, _, *position in (entry for loop in function["loops"] for entry in loop):
            if position and re.search(pattern, quote(data, *position)):
                print(f"instruction {text} <- {quote(data, *position)}")


def print_kernel(kernel):
    print(f"kernel {kernel['name']}")
    picture = kernel["picture"]
    print("  shape " + ", ".join(f"{name}={extent}" for name, extent in sorted(picture.get("shape", {}).items())))
    if "problem" in picture:
        print(f"  no picture: {picture['problem']}")
    for mask in picture.get("masks", []):
        if "problem" in mask:
            print(f"  mask of a {mask['kind']}, no picture: {mask['problem']}")
            continue
        rows = 1
        for dim in mask["grid"]:
            rows *= dim["extent"]
        assert rows == len(mask["rows"]) and len(set(map(len, mask["rows"]))) == 1
        letters = "".join(mask["rows"])
        counts = {name: letters.count(name[0]) for name in mask["counts"]}
        assert counts == mask["counts"], (counts, mask["counts"])
        visited = 100 * (1 - letters.count("s") / len(letters))
        assert abs(visited - mask["visited_percent"]) < 1e-9
        names = ", ".join(f"{dim['name']} of {dim['extent']}" for dim in mask["grid"]) or "all alike"
        print(f"  mask of a {mask['kind']}: {mask['visited_percent']:.2f} % visited; rows {names}, {mask['points_per_row']} "
              f"points each; columns {mask['columns']} from {mask['first']} by {mask['unit']}")
        for row in mask["rows"]:
            print(f"    {row}")
    if "masks" in picture and not picture["masks"]:
        print("  no masks")
    for choice in kernel.get("schedules", []):
        print(f"  trial {choice['trial']} asked: {choice['asked']}")
        print(f"  trial {choice['trial']} chosen: {choice.get('schedule', 'none')}")
        for rejection in choice.get("rejections", []):
            print(f"  trial {choice['trial']} rejected: {rejection['candidate']}: {rejection['reason']}")
        if "model" in choice:
            print(f"  the model by itself: {choice['model'].get('schedule', 'none')}")
    if "description" in kernel:
        print(f"  resources: {json.dumps(kernel['description']['report'].get('resources'))}")
        print("  roles: " + ", ".join(role["name"] for role in kernel["description"]["roles"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--link", nargs=2, metavar=("FORM", "PATTERN"))
    parser.add_argument("--code", metavar="PATTERN")
    options = parser.parse_args()
    data = read(options.page)
    print(f"status {data['status']}")
    print(f"parameters {json.dumps(data['parameters'], sort_keys=True)}")
    for file in data["files"]:
        print(f"file {pathlib.Path(file['name']).name}: {file['text'].count(chr(10))} lines")
    for entry in data["diagnostics"]:
        print(f"{entry['severity']} {place(data, entry)}: {entry['message']}")
    print_forms(data)
    if options.link:
        print_links(data, *options.link)
    for kernel in data["kernels"]:
        print_kernel(kernel)
    if "problem" in data["code"]:
        print(f"no code: {data['code']['problem']}")
    for function in data["code"].get("functions", []):
        loops = [len(loop) for loop in function["loops"]]
        linked = sum(len(entry) == 5 for loop in function["loops"] for entry in loop)
        print(f"code {function['name']}: {len(loops)} loops, {linked} of {sum(loops)} instructions linked")
    if options.code:
        print_code(data, options.code)
    timeline = data.get("timeline", {"problem": "not asked for"})
    print(f"no timeline: {timeline['problem']}" if "problem" in timeline else "timeline")
    for launch in timeline.get("launches", []):
        print(f"launch of {launch['kernel']}: {launch.get('problem', 'drawn')}")
        print(launch.get("svg", ""), launch["summary"], sep="\n")


main()
