# REQUIRES: ptxas, nvdisasm, torch, jax, pygments
# RUN: rm -rf %t && mkdir %t
# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= CUDA_VISIBLE_DEVICES= %torch-python %s %source %t
"""Every block of the documents says what is so. In the order of its page, with the sources that the page has one save:

* Commands of tessera run as they are written, and print what the page quotes. What takes a GPU has to get as far as the
  driver. Of other commands the program, its subcommand and the files that they name have to be there.
* Python runs on the CPU, by the interpreter, with few tokens for thousands. What a page takes as given is in
  Inputs/given/PAGE.py.
* Lines of C, C++ and CMake stand in the examples, in this order. JSON is read.
* Errors of the simulator that are quoted as text have the words of its source.
* `.tile` sources and IR are held by examples.py.

A fence has one of these kinds, or one that is shown alone. "gpu" behind the kind: the last line has to ask for a tensor on a GPU.
"untested": what it takes is neither here nor made.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
import pages

# The environment that runs this is active, for its programs, ptxas and nvdisasm; tessera is that of the build.
BUILT = str(pathlib.Path(os.environ["TESSERA_LIBRARY"]).resolve().parent / "bin")
os.environ["PATH"] = os.pathsep.join([BUILT, os.path.dirname(sys.executable), os.environ["PATH"]])
os.environ["VIRTUAL_ENV"] = sys.prefix
NEEDS_GPU = re.compile(r"--device cuda|^tessera tune (?!.*--compile-only)")
WRITES = re.compile(r"(?:-o|--out|--output|--trace|--svg|--perfetto|--export) (\S+)|> (\S+)")
SAVED = re.compile(r"[Ss]ave this as\s+`([\w.-]+)`")
ERROR = re.compile(r"error: \[[\w-]+\] (?:[^\n]|\n  )*")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SHOWN = ("lua", "elisp", "tablegen")
EXCERPTS = {"c": ("*.c",), "cpp": ("*.cpp", "*.h"), "cmake": ("CMakeLists.txt",)}
# Programs of others, whose commands are not run.
OTHERS = ("pip", "source", "cmake", "git", "ncu", "torchrun", "code")
# Of what ptxas makes numbers change with its version, and what is left out with "...".
NUMBERS = re.compile(r"\b(?:0x)?[0-9a-f]*\d[0-9a-f.]*\b|(?<=[xR])\d+")


def differ(quoted, printed, loose):
    """Says whether a page quotes what was not printed: lines in their order from the first on, "..." for any."""
    lines = iter([NUMBERS.sub("N", line) for line in printed] if loose else printed)
    anywhere = loose
    for line in quoted:
        wanted = NUMBERS.sub("N", line) if loose else line
        if line.strip() == "...":
            anywhere = True
        elif not (wanted in lines if anywhere else next(lines, None) == wanted):
            return True
        else:
            anywhere = loose
    return False


class Page:
    """Runs the blocks of a page in a folder."""

    def __init__(self, root, folder, name):
        self.root, self.folder, self.name = root, folder, name
        self.absent = set()  # files that a command which was left out would have written
        self.subcommands = set(re.findall(r"^\./dev (\S+)", (root / "dev").read_text(), re.MULTILINE))
        given = pathlib.Path(__file__).parent / "Inputs/given" / f"{pathlib.Path(name).stem}.py"
        self.names = {"__name__": "page"}
        # Before each block what it takes as given; what stands behind "# next" is for the block after.
        self.given = given.read_text().split("# next\n") if given.exists() else []

    def run(self, command, quoted):
        """What is wrong with a command; empty for nothing."""
        program, *words = (word for word in command.split() if not re.match(r"[A-Z_]+=", word))
        if program == "./dev":
            return "" if words[0] in self.subcommands else "./dev help does not list it"
        if not program.startswith(("tessera", "pygmentize")):
            files = [word for word in (program, *words) if re.fullmatch(r"(?!build/)[a-z_]+/[\w./-]+", word)]
            lacking = [file for file in files if not (self.root / file).exists()]
            known = program in OTHERS or program.startswith("python3") or "/" in program
            return "no such files: " + ", ".join(lacking) if lacking else "" if known else "no such program"
        if self.absent.intersection(words):
            return ""
        done = subprocess.run(command, shell=True, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if NEEDS_GPU.search(command):
            self.absent.update(name for pair in WRITES.findall(command) for name in pair if name)
            return "" if done.returncode == 4 and "driver" in done.stdout else done.stdout
        if quoted is None:
            return done.stdout if done.returncode else ""
        printed = done.stdout.splitlines()
        if differ(quoted, printed, "inspect" in words):
            return "\n".join(["prints:", *printed, "and not:", *quoted])
        return ""

    def execute(self, block):
        """Runs Python, with lines of their page in tracebacks."""
        text = block.text.replace('"cuda"', '"cpu"').replace("4096", "128")
        try:
            if self.given:
                exec(self.given.pop(0), self.names)
            exec(compile("\n" * (block.line - 1) + text, self.name, "exec"), self.names)
        except Exception as error:
            # As far as the driver: a tensor that is not on the device.
            needs_gpu = "gpu" in block.tags and "CUDA" in str(error)
            return "" if needs_gpu else traceback.format_exc()
        return ""

    def find_excerpt(self, block):
        """What no example has of a block."""
        wanted = [line.strip() for line in block.text.splitlines() if line.strip() not in ("", "...", "// ...")]
        best = wanted
        for path in (path for pattern in EXCERPTS[block.kind] for path in (self.root / "examples").rglob(pattern)):
            lines = iter([line.strip() for line in path.read_text().splitlines()])
            lacking = [line for line in wanted if line not in lines]
            best = min(best, lacking, key=len)
        return "no example has: " + "\n".join(best) if best else ""

    def find_messages(self, text):
        """Yields the errors of the simulator that a block quotes, with what is wrong: its source has their words."""
        strings = (literal for path in (self.root / "lib/Simulator").rglob("*.cpp") for literal in STRING.findall(path.read_text()))
        said = set(re.findall(r"[a-z]+", " ".join(strings)))
        for found in ERROR.finditer(text):
            lacking = set(re.findall(r"\b[a-z]{4,}\b", re.sub(r"'[^']*'|\w+\[|\bof [a-z]\b", "", found[0]))) - said
            yield found[0], f"the simulator does not say {sorted(lacking)}" if len(lacking) > 1 else ""

    def check(self, block):
        """Yields (what, what is wrong with it) of the parts of a block."""
        if "untested" in block.tags or block.kind in ("mlir", *SHOWN):
            return
        if block.kind == "tile":
            if saved := SAVED.search(block.before):
                (self.folder / saved[1]).write_text(block.text)
        elif block.kind == "shell":
            for command, quoted in pages.read_commands(block):
                yield command, self.run(command, quoted)
        elif block.kind == "python":
            yield block.text, self.execute(block)
        elif block.kind == "text":
            yield from self.find_messages(block.text)
        elif block.kind in EXCERPTS:
            yield block.text, self.find_excerpt(block)
        elif block.kind == "json":
            try:
                json.loads(block.text)
            except ValueError as error:
                yield block.text, str(error)
        else:
            yield block.text, f"a block of kind '{block.kind}', which nothing holds"


def check_page(root, folder, name):
    folder.mkdir()
    os.symlink(root / "kernels", folder / "kernels")
    os.chdir(folder)
    page = Page(root, folder, name)
    count = failures = 0
    for block in pages.read_blocks((root / name).read_text()):
        for what, wrong in page.check(block):
            count += 1
            if wrong:
                failures += 1
                print(f"{name}:{block.line}: {what.rstrip()}\n{wrong}")
    print(f"{name}: {count} commands, {failures} failures", flush=True)
    return failures > 0


def main(root, folder):
    names = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((root / "docs").glob("*.md")))]

    def run(name):
        command = [sys.executable, __file__, root, folder / name.replace("/", "-"), name]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = list(pool.map(run, names))
    print("".join(page.stdout for page in done))
    commands = [int(count) for page in done for count in re.findall(r": (\d+) commands", page.stdout)]
    return any(page.returncode for page in done) or len(commands) != len(names) or sum(commands) < 80


if __name__ == "__main__":
    root, folder, *name = sys.argv[1:]
    sys.exit(check_page(pathlib.Path(root), pathlib.Path(folder), *name) if name else main(pathlib.Path(root), pathlib.Path(folder)))
