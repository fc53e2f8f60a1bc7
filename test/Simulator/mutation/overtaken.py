"""Takes away what orders reads by threads before the bulk copy that fills their slot again, in kernels that ship: the fences before
arrivals at a barrier, or the place of these arrivals behind what takes the values. Prints the slot of the read that the simulator
then finds overtaken. An arrival of the same threads that comes later, and that who loads has waited for, orders the read too: where
nothing is found, who loads waits for this barrier before others, undamaged and damaged.

    overtaken.py WORKDIR KERNEL.tile [OPTION...] -- [OPTION OF RUN...]

OPTIONs are of compile and of run. Copies of a loop are damaged together, as a launch may run one of them alone.
"""

import collections
import os
import re
import subprocess
import sys

REPORT = re.compile(
    r"error: \[overtaken-read\] asynchronous write of ([\w.]+).*\n(?:.*\n)?"
    r" *note: the read is at PTX line \d+ .*\n *note: what does not wait for it is at PTX line \d+"
)


def run(*command, fails=False):
    done = subprocess.run(["tessera", *command], capture_output=True, text=True, timeout=600)
    output = done.stdout + done.stderr
    if done.returncode and not (fails and done.returncode == 1):
        sys.exit(f"{' '.join(command)}\n{output}")
    return output


class Program:
    """The lines of a kernel behind the stage `barriers`."""

    def __init__(self, text):
        self.lines = text.split("\n")
        copies = self.places(r"hop\.bulk_load .*\], (%\w+), (%\w+)\[")
        #: The barriers that tell of a buffer which bulk copies fill.
        self.filled = {self.find_buffer(copy[1], place): self.label(copy[2], place) for place, copy in copies}

    def places(self, pattern):
        found = ((place, re.search(pattern, line)) for place, line in enumerate(self.lines))
        return [(place, match) for place, match in found if match]

    def kernel(self, place):
        return next(match[1] for match in (re.search(r"hop\.kernel @(\w+)", self.lines[i]) for i in range(place, -1, -1)) if match)

    def find(self, name, place):
        """The place of what defines a value that is used in this line."""
        return next(i for i in range(place, -1, -1) if i == 0 or re.match(rf"\s*{name}(:\d+)? = ", self.lines[i]))

    def label(self, name, place):
        label = re.search(r'hop\.(?:buffer|barriers) "([\w.]+)', self.lines[self.find(name, place)])
        return label and label[1]

    def find_buffer(self, name, place):
        """The label of the buffer of which a value is a slot, or a part of one."""
        while part := re.search(r"= hop\.(?:slot|slice) (%\w+)", self.lines[place := self.find(name, place)]):
            name = part[1]
        return self.label(name, place + 1)

    def find_read(self, arrival, given):
        """The last read in the block of an arrival of a slot that it gives back, with no fence behind it."""
        depth = len(re.match(" *", self.lines[arrival])[0])
        for place in range(arrival - 1, 0, -1):
            line = self.lines[place]
            if len(re.match(" *", line)[0]) < depth or "hop.proxy_fence" in line:
                return None
            read = re.search(r"= hop\.fetch (%\w+)", line)
            full = self.filled.get(self.find_buffer(read[1], place)) if read else None
            if full and given == full.replace(".full", ".empty"):
                return place
        return None

    def find_damages(self):
        """{(what, label of the barrier, kernel): [(place of a line, place where it goes or None)]}"""
        damages = collections.defaultdict(list)
        for place, arrival in self.places(r"hop\.barrier\.arrive (%\w+)"):
            given = self.label(arrival[1], place)
            if "hop.proxy_fence" in self.lines[place - 1]:
                damages["without the fence", given, self.kernel(place)].append((place - 1, None))
            elif read := self.find_read(place, given):
                damages["early", given, self.kernel(place)].append((place, read + 1))
        return damages

    def find_first(self, given, kernel):
        """What has a barrier waited for before others of a block: their waits and copies go behind its copies."""
        moves = []
        for wait, barriers in self.places(r"hop\.barrier\.wait (%\w+)"):
            if self.label(barriers[1], wait) != given or self.kernel(wait) != kernel:
                continue
            start, end = (next(i for i in way if "scf." in self.lines[i]) for way in (range(wait, 0, -1), range(wait, len(self.lines))))
            copies = [(i, re.search(r"hop\.bulk_load .*\], %\w+, (%\w+)", self.lines[i])) for i in range(wait, end)]
            own = [i for i, copy in copies if copy and self.label(copy[1], i) == given.replace(".empty", ".full")]
            others = [i for i in range(start, wait) if re.search(r"hop\.(barrier\.(wait|expect)|bulk_load) ", self.lines[i])]
            moves += [(i, own[-1] + 1) for i in others if own]
        return moves

    def damaged(self, changes):
        behind = collections.defaultdict(list)
        for place, to in sorted(changes):
            # An arrival that waits for a sum stood behind it.
            behind[to].append(re.sub(r" after %\w+ : tensor<[^>]*>+", "", self.lines[place]))
        gone = {place for place, _ in changes}
        lines = []
        for place, line in enumerate(self.lines):
            lines += behind[place]
            if place not in gone:
                lines.append(line)
        return "\n".join(lines)


def main(directory, kernel, *options):
    end = options.index("--")
    options, launch = options[:end], options[end + 1 :]
    stage, ptx = (os.path.join(directory, name) for name in ("kernel.mlir", "kernel.ptx"))
    run("compile", kernel, *options, "--emit", "barriers", "--mllvm=--mlir-print-debuginfo", "-o", stage)
    with open(stage) as f:
        program = Program(f.read())

    def simulate(changes):
        with open(stage, "w") as f:
            f.write(program.damaged(changes))
        run("compile", stage, "--from", "barriers", "--emit", "ptx", "-o", ptx)
        output = run("run", kernel, *options, *launch, "--device", "sim", "--ptx", ptx, fails=True)
        found = REPORT.search(output)
        return found[1] if found else "something else\n" + output if "error:" in output else "nothing"

    print("undamaged:", simulate([]))
    for (what, given, of), changes in program.find_damages().items():
        print(f"{of}, {given}, {what}:", found := simulate(changes))
        if found == "nothing":
            first = program.find_first(given, of)
            print("  waited for first:", simulate(first))
            print("  and so damaged:", simulate(changes + first))


if __name__ == "__main__":
    main(*sys.argv[1:])
