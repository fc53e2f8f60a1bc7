# RUN: %python %s %source/docs %source/README.md
"""Parses every ```mlir example of the documentation with tessera-opt, compiles every ```tile source as far as the tile
dialect, and asks an example of each operation of `tile`.

An MLIR example may be a fragment: it is tried as a module, as the body of a tile.kernel and of a hop.kernel, and as an
attribute or a type. Values that it uses and does not define are given the types that the parser asks for. The page
of the passes is left out: what a pass does to a loop is shown with details elided.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

VIEWS = "%view: !tile.view<[B, H, SQ, 64], f16>, %other: !tile.view<[B, HK, SK, 64], f16>"
SCHEDULE = "#tile.schedule<consumers = 2, cluster = 2>"
WRAPPERS = [
    "{}",
    f"tile.kernel @example({VIEWS}ARGUMENTS) grid(%point = B) {{{{\n{{}}\n}}}}",
    f"hop.kernel @example attributes {{{{argument_names = [], argument_types = [], grid = [], schedule = {SCHEDULE}}}}}"
    " {{\n{}\n}}",
    '"example.attribute"() {{value = {}}} : () -> ()',
]
UNDECLARED = re.compile(r"<stdin>:(\d+):(\d+): error: use of undeclared SSA value name")
WANTED = re.compile(r"use of value '(%[\w.$-]+)' expects different type than prior uses: '(.*)' vs 'none'")


def parse(text):
    """Returns the diagnostics of tessera-opt, empty when the text parses and verifies."""
    command = ["tessera-opt", "--allow-unregistered-dialect", "-o", "/dev/null"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def parse_fragment(fragment, wrapper):
    types = {}
    while True:
        # Views are arguments of the kernel, and nothing else.
        views = {name: type for name, type in types.items() if type.startswith("!tile.view") and "ARGUMENTS" in wrapper}
        values = [f'{name} = "example.value"() : () -> ({type})\n' for name, type in types.items() if name not in views]
        arguments = "".join(f", {name}: {type}" for name, type in views.items())
        text = wrapper.replace("ARGUMENTS", arguments).format("".join(values) + fragment)
        errors = parse(text)
        if wanted := WANTED.search(errors):
            types[wanted[1]] = wanted[2]
        elif undeclared := UNDECLARED.search(errors):
            line, column = map(int, undeclared.groups())
            name = re.match(r"%[\w.$-]+", text.splitlines()[line - 1][column - 1:])[0]
            if name in types:
                return errors
            types[name] = "none"
        else:
            return errors


def compile_source(text):
    """Returns the diagnostics of tessera, empty when it accepts the text."""
    with tempfile.NamedTemporaryFile("w", suffix=".tile") as file:
        file.write(text)
        file.flush()
        command = ["tessera", "compile", file.name, "--emit=tile", "--output=/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main(paths):
    failures = examples = 0
    for path in map(pathlib.Path, paths):
        for page in sorted(path.rglob("*.md")) if path.is_dir() else [path]:
            if page.name == "passes.md":
                continue
            text = page.read_text()
            for block in re.finditer(r"^```(mlir|tile)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
                examples += 1
                if block[1] == "tile":
                    errors = [compile_source(block[2])]
                else:
                    errors = [parse_fragment(block[2], wrapper) for wrapper in WRAPPERS]
                if all(errors):
                    failures += 1
                    line = text.count("\n", 0, block.start()) + 1
                    print(f"{page}:{line}: no valid example:\n{block[2]}\n" + "\n".join(errors))
            if page.name == "tile.md":
                for section in re.split(r"^### ", text, flags=re.MULTILINE):
                    if section.startswith("`tile.") and "```mlir" not in section:
                        failures += 1
                        print(f"{page}: no example of {section.split()[0]}")
    print(f"{examples} examples, {failures} failures")
    return failures > 0 or examples == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
