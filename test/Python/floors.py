# RUN: %python %s %source/python/tessera
"""The floors of the Python package: a module imports what is below it, and modules import each other in no circle."""

import ast
import pathlib
import sys

# From the ground up. What stands on one floor does not know the others there.
FLOORS = [["_core"], ["_compiler"], ["_functions"], ["_attention", "masks"], ["torch", "jax"], ["transformers", "vllm"]]
HEIGHT = {name: height for height, names in enumerate(FLOORS) for name in names}


def list_modules(root):
    """The modules below a folder, by name, and their texts."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path.read_text()


def list_imports(name, is_package, text, known):
    """The modules of the package that one imports, wherever it does."""
    folder = name.split(".") if name else []
    folder = folder if is_package else folder[:-1]
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = folder[: len(folder) - node.level + 1] + (node.module.split(".") if node.module else [])
        for alias in node.names:
            module = ".".join([*base, alias.name])
            yield module if module in known else ".".join(base)


def find_faults(imports):
    """What is wrong with {module: modules that it imports}."""
    faults = []
    for name, others in imports.items():
        own = name.partition(".")[0]
        for other in sorted(others):
            top = other.partition(".")[0]
            if own not in HEIGHT and name not in ("", "__main__"):
                faults.append(f"{name} is on no floor")
            elif own in HEIGHT and top != own and HEIGHT.get(top, len(FLOORS)) >= HEIGHT[own]:
                faults.append(f"{name} imports {other or 'the package'}, which is not below it")
    done, path = set(), []

    def visit(name):
        if name in path:
            faults.append("a circle: " + " -> ".join([*path[path.index(name) :], name]))
        elif name not in done:
            path.append(name)
            for other in sorted(imports.get(name, ())):
                visit(other)
            done.add(path.pop())

    for name in imports:
        visit(name)
    return faults


def main(root):
    texts = dict(list_modules(root))
    packages = {name for name in texts if (root / name.replace(".", "/") / "__init__.py").exists()}
    imports = {name: set(list_imports(name, name in packages, text, texts)) - {name} for name, text in texts.items()}
    assert len(imports) > 80 and sum(map(len, imports.values())) > 300, "the package is not there"
    # The package itself names what is public, and nothing that is in it needs it.
    faults = find_faults({name: others for name, others in imports.items() if name})
    print("\n".join(faults))
    return bool(faults)


# What the test is for is found.
assert find_faults({"_core.a": {"_core.b"}, "_core.b": {"_core.a"}}) == ["a circle: _core.a -> _core.b -> _core.a"]
assert find_faults({"_core.a": {"_compiler.b"}, "_compiler.b": set()}) == ["_core.a imports _compiler.b, which is not below it"]
assert find_faults({"jax.a": {"torch.b"}, "torch.b": {"_core.c"}, "_core.c": set()}) == ["jax.a imports torch.b, which is not below it"]
sys.exit(main(pathlib.Path(sys.argv[1])))
