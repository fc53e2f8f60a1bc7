# RUN: rm -rf %t && mkdir -p %t && cd %t && env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s %source
"""The cells of the example notebooks, one after the other: numpy is there, and what a shell of IPython gives is here."""

import json
import pathlib
import sys
import types

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "python"))


class Shell:
    """Runs cells as IPython does, as far as the notebooks need it."""

    def __init__(self):
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        self.user_ns, self.magics = vars(module), {}

    def register_magic_function(self, function, magic_kind, magic_name):
        self.magics[f"{'%%' if magic_kind == 'cell' else '%'}{magic_name}"] = function

    def run(self, cell):
        """Runs a cell; returns the value of its last line where that is an expression."""
        first, _, rest = cell.partition("\n")
        name, _, line = first.partition(" ")
        if name == "%load_ext":
            __import__(line).load_ipython_extension(self)
        elif name.startswith("%%"):
            self.magics[name](line, rest)
        else:
            exec(compile(cell, "<cell>", "exec"), self.user_ns)
            last = cell.splitlines()[-1]
            return self.user_ns.get(last)


def main():
    notebooks = sorted((SOURCE / "python_examples").glob("*.ipynb"))
    assert notebooks
    for path in notebooks:
        shell, shown = Shell(), []
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        for cell in cells:
            assert not cell["outputs"], "notebooks are kept without outputs"
            value = shell.run("".join(cell["source"]))
            if value is not None:
                shown.append(value._repr_html_())
        print(f"{path.name}: {len(cells)} cells")
        assert len(shown) == 1 and "<svg" in shown[0], shown
        # Of masks, which blocks are visited: a causal one leaves a triangle.
        assert path.stem == "why_slow" or "blocks are visited" in shown[0], shown
        assert path.stem != "variants" or shell.user_ns["page"].startswith("<!DOCTYPE html>")


main()
