# RUN: %python %s %source %build/bin/tessera
"""Holds docs/architecture.md to the pipeline: its table has the stages and their passes in the order in which they run, each
stage names folders that there are, and `tessera compile --emit` stops behind each. Folders of the stages behind the choice of a
schedule do not ask the model that chooses it."""

import pathlib
import re
import subprocess
import sys

# The reader runs them, and asks whoever compiles with --instrument.
ELSEWHERE = {
    "tile-differentiate", "tile-inline-functions", "tile-split-reductions", "tile-check-padding", "tile-widen-comparisons",
    "hop-instrument-timeline",
}  # fmt: skip


def read_tables(text):
    """(folders by stage, passes by stage) as the page has them."""
    folders, passes = {}, {}
    for line in text.splitlines():
        if found := re.match(r"\| `(\w+)` \| (`[\w/]+`(?:, `[\w/]+`)*) \| .* \| (`[\w-]+`(?:, `[\w-]+`)*) \|$", line):
            folders[found[1]] = re.findall(r"`([\w/]+)`", found[2])
            passes[found[1]] = [name for name in re.findall(r"`([\w-]+)`", found[3]) if name not in ELSEWHERE]
    return folders, passes


def find_problems(root, tessera):
    sys.path.insert(0, str(root / "scripts"))
    import pass_coverage

    folders, written = read_tables((root / "docs" / "architecture.md").read_text())
    stages = pass_coverage.list_stages(tessera)
    if list(folders) != list(stages):
        yield f"the page has the stages {', '.join(folders)}, and there are {', '.join(stages)}"
    for stage, passes in stages.items():
        if written.get(stage) != passes:
            yield f"the page has {written.get(stage)} in {stage}, and the pipeline runs {passes}"
        command = [tessera, "compile", str(root / "kernels" / "gemm.tile"), "--emit", stage, "-o", "-"]
        if subprocess.run(command, capture_output=True).returncode:
            yield f"--emit {stage} fails"
    behind = list(folders).index("chosen") + 1
    own = {name for names in list(folders.values())[behind:] for name in names}
    for name in own - {name for names in list(folders.values())[:behind] for name in names}:
        asking = (path for path in (root / name).glob("**/*") if path.suffix in (".cpp", ".h") and "CostModel.h" in path.read_text())
        yield from (f"{path} asks the model behind the choice" for path in asking)
    for stage, names in folders.items():
        yield from (f"{name} of {stage} is no folder" for name in names if not (root / name).is_dir())


if __name__ == "__main__":
    problems = list(find_problems(pathlib.Path(sys.argv[1]), sys.argv[2]))
    print(*problems, sep="\n")
    sys.exit(bool(problems))
