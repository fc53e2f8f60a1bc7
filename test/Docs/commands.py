# REQUIRES: ptxas, torch
# RUN: rm -rf %t && mkdir %t
# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s %source %t
"""The pages that a newcomer reads first say what is so: each command of tessera runs as it is written, in the order of its
page, with the sources that the page has one save and its Python, and prints what the page quotes.

What takes a GPU (--device cuda, tune) is left out. A command behind "$ " is followed by what it prints.
"""

import os
import pathlib
import re
import subprocess
import sys

PAGES = ("README.md", "docs/lessons.md", "docs/first-kernel.md", "docs/fast-kernels.md", "docs/variants.md")
ELSEWHERE = re.compile(r"--device cuda|^tessera tune ")
# Python that stands alone: it takes what the page has saved, or what ships.
RUNS = re.compile(r"\.compare\(|import numpy")
SAVED = re.compile(r"[Ss]ave this as\s+`([\w.-]+)`")


def read_blocks(text):
    """Yields (kind, text, line) of fenced blocks by their kind, and of indented ones as "shell"."""
    pattern = r"^```(\w*)\n(.*?)^```$|((?:^    [^\n]*\n)+)"
    for block in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        before = text[: block.start()]
        if block[3] and not before.endswith("\n\n"):
            continue  # A paragraph or a list goes on.
        yield (block[1] or "shell"), (block[2] or block[3]), before.count("\n") + 1


def read_commands(block):
    """Yields (command, what it prints or None) of an indented block."""
    lines = [line[4:] for line in block.replace("\\\n", " ").splitlines()]
    while lines:
        line = lines.pop(0)
        command = line.removeprefix("$ ").partition(" #")[0].strip().removeprefix("build/bin/")
        quoted = [] if line.startswith("$ ") else None
        while quoted is not None and lines and not lines[0].startswith("$ "):
            quoted.append(lines.pop(0))
        if command.startswith("tessera ") and not ELSEWHERE.search(command):
            yield command, quoted


def run_command(command, quoted, folder):
    """What is wrong with a command; empty for nothing."""
    done = subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if quoted is None:
        return done.stdout if done.returncode else ""
    printed = done.stdout.splitlines()
    return "" if printed[: len(quoted)] == quoted else "\n".join(["prints:", *printed, "and not:", *quoted])


def run_python(text, folder):
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, stderr=subprocess.PIPE, text=True)
    return done.stderr if done.returncode else ""


def check_page(page, text, folder):
    """The number of commands of a page, and of those that do something else."""
    count, failures = 0, 0
    for kind, block, line in read_blocks(text):
        saved = SAVED.search(text[: text.find(block)].rsplit("\n\n", 2)[-2] if kind == "tile" else "")
        if saved:
            (folder / saved[1]).write_text(block)
        runs = list(read_commands(block)) if kind == "shell" else []
        if kind == "python" and RUNS.search(block):
            runs = [(block, None)]
        for command, quoted in runs:
            count += 1
            wrong = run_python(command, folder) if kind == "python" else run_command(command, quoted, folder)
            if wrong:
                failures += 1
                print(f"{page}:{line}: {command}\n{wrong}")
    return count, failures


def main(root, folder):
    os.symlink(root / "kernels", folder / "kernels")
    total = 0
    for page in PAGES:
        count, failures = check_page(page, (root / page).read_text(), folder)
        total += failures
        print(f"{page}: {count} commands, {failures} failures")
        total += not count
    return total > 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
