# RUN: %python %s %source/docs %source/README.md
"""Parses and verifies every ```mlir example of the documentation with tessera-opt, compiles every ```tile source to PTX,
and asks an example of each operation, type and attribute of the dialects and of each pass. Of a "tile fragment" the operations
have to be there.

An MLIR example may be a fragment: it is tried as a module, as the body of a tile.kernel, of a hop.kernel and of a
consumer role, and as an attribute or a type. Values that it uses and does not define are given the types that the
parser asks for: views become arguments of the kernel, pipes, buffers and barriers are declared, all others come from an
operation that nothing knows. In the page of the passes an example is one program or several, with lines
`// becomes ...` between them, after the aliases (`!T = ...`) that all of them use.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
import pages

VIEWS = {"%view": "!tile.view<[B, H, SQ, 64], f16>", "%other": "!tile.view<[B, HK, SK, 64], f16>"}
OPERATION = re.compile(r"(?:^|=) *((?:tile|hop|arith|math|scf|func)\.\w+)", re.MULTILINE)
UNDECLARED = re.compile(r"<stdin>:(\d+):(\d+): error: use of undeclared SSA value name")
WANTED = re.compile(r"use of value '(%[\w.$-]+)' expects different type than prior uses: '(.*)' vs 'none'")
ALIASES = re.compile(r"^ *[!#]\w+ = .*\n", re.MULTILINE)
BECOMES = re.compile(r"^ *// .*\bbecomes\b.*$", re.MULTILINE)
# What comes straight from its declaration in a hop.kernel, and the declaration.
DECLARATIONS = {
    "!hop.pipe<": 'hop.pipe.create "example"',
    "!hop.buffer<": 'hop.buffer "example"',
    "!hop.barriers<": 'hop.barriers "example" count 1',
}


def values(types):
    """Operations that give the values of `types`, a dictionary from names."""
    return "".join(f'{name} = "example.value"() : () -> ({type})\n' for name, type in types.items())


def split(types, prefixes):
    """Those of `types` that begin with one of the prefixes, and the others."""
    chosen = {name: type for name, type in types.items() if type.startswith(prefixes)}
    return chosen, {name: type for name, type in types.items() if name not in chosen}


def as_module(fragment, types):
    return values(types) + fragment


def as_tile_kernel(fragment, types):
    views, others = split(types, ("!tile.view",))
    arguments = ", ".join(f"{name}: {type}" for name, type in {**VIEWS, **views}.items())
    return f"tile.kernel @example({arguments}) grid(%point = B) {{\n{values(others)}{fragment}\n}}"


def hop_kernel(types, body):
    """A hop.kernel with `types` declared around `body`, a function of the values that are left."""
    views, others = split(types, ("!tile.view",))
    declared, others = split(others, tuple(DECLARATIONS))
    names = ", ".join(f'"{name[1:]}"' for name in views)
    arguments = ", ".join(f"{name}: {type}" for name, type in views.items())
    declarations = "".join(
        f"{name} = {DECLARATIONS[type[:type.index('<') + 1]]} : {type}\n" for name, type in declared.items())
    return (f"hop.kernel @example attributes {{argument_names = [{names}], argument_types = [{', '.join(views.values())}],"
            f" grid = [], schedule = #tile.schedule<consumers = 2, cluster = exchange>}} {{\n^bb0({arguments}):\n"
            f"{declarations}{body(values(others))}\n}}")


def as_hop_kernel(fragment, types):
    return hop_kernel(types, lambda given: given + fragment)


def as_role(fragment, types):
    role = "hop.role @consumer warpgroups(2) {{\n^bb0(%wg: index):\n{}{}\n}}"
    types = {name: type for name, type in types.items() if name != "%wg"}
    return hop_kernel(types, lambda given: role.format(given, fragment))


def as_attribute(fragment, types):
    return f'"example.attribute"() {{value = {fragment}}} : () -> ()'


WRAPPERS = [as_module, as_tile_kernel, as_hop_kernel, as_role, as_attribute]


def parse(text):
    """Returns the diagnostics of tessera-opt, empty when the text parses and verifies."""
    command = ["tessera-opt", "--allow-unregistered-dialect", "-o", "/dev/null"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def parse_fragment(fragment, wrapper, aliases, types):
    """Returns the diagnostics of the fragment in `wrapper`; adds to `types` those of the values that it lacks."""
    while True:
        text = aliases + wrapper(fragment, types)
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


def parse_example(text, aliases):
    """Returns diagnostics, empty when some wrapper makes a valid program of the text."""
    all_errors, types = [], {}
    for wrapper in WRAPPERS:
        errors = parse_fragment(text, wrapper, aliases, types)
        if not errors:
            return ""
        all_errors.append(errors)
    return "\n".join(all_errors)


def compile_source(text):
    """Returns the diagnostics of tessera, empty when it accepts the text."""
    with tempfile.NamedTemporaryFile("w", suffix=".tile") as file:
        file.write(text)
        file.flush()
        command = ["tessera", "compile", file.name, "--emit=ptx", "--output=/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def find_unknown(text):
    """Says which operations of a fragment there are not."""
    names = sorted(set(OPERATION.findall(text)))
    uses = "\n// -----\n".join(f'"{name}"() : () -> ()' for name in names)
    done = subprocess.run(["tessera-opt", "-split-input-file"], input=uses, capture_output=True, text=True)
    unknown = re.findall(r"unregistered operation '([\w.]+)'", done.stderr)
    return f"there are no operations {unknown}" if unknown else "" if names else "no operation"


def check(example):
    """Returns what is wrong with an example: a block of a page."""
    text = example.text
    if example.kind == "tile":
        return find_unknown(text) if "fragment" in example.tags else compile_source(text)
    aliases = "".join(ALIASES.findall(text))
    programs = BECOMES.split(ALIASES.sub("", text))
    return "\n".join(errors for program in programs if (errors := parse_example(program, aliases)))


def find_missing(page, text):
    """Yields what the page describes without an example."""
    for chapter in re.split(r"^## ", text, flags=re.MULTILINE):
        if chapter.startswith("Enums"):
            continue
        for section in re.split(r"^### ", chapter, flags=re.MULTILINE)[1:]:
            if "```mlir" not in section:
                yield section.split("\n")[0]


def main(paths):
    examples, failures = [], 0
    for path in map(pathlib.Path, paths):
        for page in sorted(path.rglob("*.md")) if path.is_dir() else [path]:
            text = page.read_text()
            blocks = (block for block in pages.read_blocks(text) if block.kind in ("mlir", "tile"))
            examples += ((f"{page}:{block.line}", block) for block in blocks)
            if page.parent.name == "generated":
                for section in find_missing(page, text):
                    failures += 1
                    print(f"{page}: no example of {section}")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for (place, block), errors in zip(examples, pool.map(check, [example for _, example in examples])):
            if errors:
                failures += 1
                print(f"{place}: no valid example:\n{block.text}\n{errors}")
    print(f"{len(examples)} examples, {failures} failures")
    return failures > 0 or not examples


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
