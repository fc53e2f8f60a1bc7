#!/usr/bin/env python3
"""Refits files of rules for a GPU: measures what rows choose, and writes rows for the card where something else wins.

  refit_rules.py RULES --list LIST --tessera PATH [--only TEXT] [--shapes N] [--record NAME] [-- ARG...]
  refit_rules.py RULES --list LIST --tessera PATH [--only TEXT] [--shapes N] --compile-only DIR [-- ARG...]
  refit_rules.py RULES --tessera PATH --measure DIR [--minutes M] [-- ARG...]
  refit_rules.py RULES --list LIST --tessera PATH --merge DIR [--record NAME]

RULES is a file, or a folder of which each file is refitted. The cases are those of LIST (kernels/tuning.json), in its order: the sources
that name RULES, with the parameters and the N longest shapes of each target. Where rows of RULES choose numbers for a case, the values
that the target varies are the candidates, or without any the present one and its neighbours among the allowed ones, with the schedules
that a compilation chooses for each; `tessera tune` measures them, and ARGs are its options. Where something else than now wins for the
longest shapes, by 1% or more, a row for the card takes it, under all parameters of the case, so that it counts before rows of no card.
It replaces the row that an earlier refit has written for the case.

The three steps are for a machine with a GPU that has no ptxas. --measure goes on where it has ended, and stops after M minutes; --merge
takes the cases that have been measured.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

#: Where the files lie that the command calls <tessera>/.
_SHIPPED = str(pathlib.Path(__file__).resolve().parent.parent / "kernels")
#: How many allowed values on each side of the present one are candidates.
_NEIGHBOURS = 1
#: Classes of shapes, the one whose winner counts first.
_CLASSES = ("many-long", "many-medium", "many-short", "few-long", "few-medium", "few-short")
#: Seconds that a candidate takes for a shape, and beside: six turns of 25 ms and half as much untimed; inputs, and the first run of each.
_SECONDS_OF_TURNS, _SECONDS_OF_SHAPE = 0.25, 2.0
#: What a row has to gain: less is what two runs of one kernel differ by.
_LEAST_GAIN = 0.01
#: How often a case is measured again where a kernel has ended the process.
_TRIES = 3


def read_json(path):
    return json.loads(pathlib.Path(path).read_text())


def expand(allowed):
    """The numbers that "128", "64..256" or "64..256 step 64" stands for."""
    low, high, step = re.fullmatch(r"(\d+)(?:\.\.(\d+))?(?: step (\d+))?", allowed).groups()
    return range(int(low), int(high or low) + 1, int(step or 1))


def list_values(parameter, named):
    """The values of a number to try: those of the target, or the present one and its neighbours."""
    if named:
        return named
    values = sorted({value for text in parameter["allowed"] for value in expand(text)})
    at = values.index(parameter["default"])
    return [str(value) for value in values[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS + 1]]


def spell_condition(name, value):
    """The condition that a parameter has a value of the JSON of `tessera params`."""
    if value["kind"] == "bool":
        return name if value["default"] in (True, "true") else f"!{name}"
    quoted = f'"{value["default"]}"' if value["kind"] == "name" else value["default"]
    return f"{name} == {quoted}"


def report(what, cases):
    """Says what has become of cases, if there are any; whether there are none."""
    if cases:
        print(f"{len(cases)} cases {what}: {', '.join(sorted({case['target']['file'] for case in cases}))}", flush=True)
    return not cases


class Rows:
    """A file of rules: a row is a line, or several, and those that a refit has written are lines of their own."""

    def __init__(self, path):
        self.path, self.text = path, path.read_text()
        if not self.text.rstrip().endswith("]}"):
            sys.exit(f"{path}: the file ends with the list of its rules")

    @staticmethod
    def is_for(row, line):
        """Whether a line is a row for the case of `row`."""
        return line.lstrip().startswith(json.dumps({name: row[name] for name in ("source", "when", "card")})[:-1])

    def write(self, row, is_kept):
        """Puts `row`, if it `is_kept`, behind all others in place of the one for the same case; other lines stay as they are."""
        kept = [old for old in self.text.rstrip()[:-2].rstrip().split("\n") if not self.is_for(row, old)]
        head = "\n".join(kept).rstrip().rstrip(",")
        if is_kept:
            head += f"{'' if head.endswith('[') else ','}\n  {json.dumps(row)}"
        self.restore(head + "\n ]}\n")

    def restore(self, text):
        self.text = text
        self.path.write_text(text)


class Refit:
    def __init__(self, arguments):
        self.arguments = arguments
        path = pathlib.Path(arguments.rules)
        self.files = {file.name: file for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])}
        self.folder = pathlib.Path(arguments.list or ".").resolve().parent
        self.tessera = os.path.abspath(shutil.which(arguments.tessera) or arguments.tessera)

    def tune(self, *words, **options):
        return subprocess.run([self.tessera, "tune", *map(str, words)], **options).returncode

    def read_parameters(self, file, define, *more):
        defines = [f"-D{name}={value}" for name, value in define.items()]
        # What ships has copies in the command, and sources of folders, as linear/ssd.tile, would find these.
        command = [self.tessera, "params", str(self.folder / file), "--json", "-I", str(self.folder), *defines, *more]
        return {parameter["name"]: parameter for parameter in json.loads(subprocess.check_output(command))["parameters"]}

    @staticmethod
    def find_rules(parameter):
        """The name of the file of which a row says what a parameter is, empty where it is given or has a default."""
        file = os.path.basename(parameter["origin"].rpartition(":")[0])
        return file if file.endswith(".json") else ""

    def follows(self, name, parameter):
        """Whether a row says what a parameter is by an expression of others."""
        if not self.find_rules(parameter):
            return False
        rules, _, line = parameter["origin"].rpartition(":")
        text = "".join(pathlib.Path(rules.replace("<tessera>", _SHIPPED)).read_text().splitlines(keepends=True)[int(line) - 1 :]).lstrip()
        return json.JSONDecoder().raw_decode(text)[0].get("take", {}).get(name) != parameter["default"]

    def list_cases(self):
        """Of each target, and each file of which rows choose numbers for it: the file, the target with these to vary, and conditions."""
        seen = set()
        for target in read_json(self.arguments.list)["targets"]:
            define = target.get("define", {})
            key = target["file"], json.dumps(define, sort_keys=True)
            if key in seen or (self.arguments.only or "") not in target["file"]:
                continue
            seen.add(key)
            parameters, named = self.read_parameters(target["file"], define), target.get("vary", {})
            for rules in self.files:
                vary = {name: list_values(parameter, named.get(name)) for name, parameter in parameters.items()
                        if (name in named or not named) and parameter["kind"] == "int"
                        and self.find_rules(parameter) == rules and not self.follows(name, parameter)}  # fmt: skip
                if not vary:
                    continue
                shapes = sorted(target["shapes"], key=lambda shape: -math.prod(map(int, shape.values())))[: self.arguments.shapes]
                others = [item for item in parameters.items() if item[0] not in vary and not self.follows(*item)]
                yield {"rules": rules,
                       "conditions": list(itertools.starmap(spell_condition, others)),
                       "target": {**target, "define": define, "vary": vary, "also": [], "shapes": shapes, "fields": [],
                                  "budget": math.prod(map(len, vary.values()))}}  # fmt: skip

    def compile(self, directory):
        """Compiles the candidates of all cases, and says how long they will take to measure."""
        directory.mkdir(parents=True, exist_ok=True)
        cases = list(self.list_cases())
        if not cases:
            sys.exit(f"{self.arguments.rules} chooses no number for a target of {self.arguments.list}")
        failed = []
        for number, case in enumerate(cases):
            place = directory / f"{number:03}"
            place.mkdir(exist_ok=True)
            source = (self.folder / case["target"]["file"]).resolve()
            file = os.path.relpath(source, place.resolve())
            (place / "list.json").write_text(json.dumps(
                {"format": "tessera-tuning-list", "version": 1, "targets": [{**case["target"], "file": file}]}))  # fmt: skip
            words = "--list", (place / "list.json").resolve(), "--compile-only", place.resolve(), *self.arguments.rest
            # What a source names is looked for beside it, and tuning knows it without its folder.
            if self.tune(*words, cwd=source.parent) != 0:
                failed.append(case)
                continue
            case["seconds"] = self.estimate(read_json(place / "manifest.json"))
        (directory / "cases.json").write_text(json.dumps(cases, indent=1))
        for file, each in itertools.groupby(cases, key=lambda case: case["target"]["file"]):
            seconds = [case["seconds"] for case in each if "seconds" in case]
            print(f"{file}: {len(seconds)} cases, about {sum(seconds):.0f} s to measure", flush=True)
        return report("do not compile", failed)

    @staticmethod
    def estimate(manifest):
        return sum(len(target["shapes"]) * (_SECONDS_OF_SHAPE + _SECONDS_OF_TURNS * sum(not c["error"] for c in target["contestants"]))
                   for target in manifest["targets"])  # fmt: skip

    def read_cases(self, directory):
        """(case, its folder, whether it has been measured) of each."""
        for number, case in enumerate(read_json(directory / "cases.json")):
            results = directory / f"{number:03}" / "results.json"
            yield case, results.parent, results.exists() and bool(read_json(results)["date"])

    def measure(self, directory):
        """Measures cases until the time is over; whether no kernel has failed."""
        begin, failed, left = time.monotonic(), [], []
        for case, place, is_done in self.read_cases(directory):
            spent = time.monotonic() - begin
            if is_done or "seconds" not in case:
                continue
            if self.arguments.minutes and spent + case["seconds"] > 60 * self.arguments.minutes:
                left.append(case)
                continue
            words = "--measure", place, "--out", place / "results.json", *self.arguments.rest
            if not any(self.tune(*words) == 0 for _ in range(_TRIES)):
                failed.append(case)
            took = time.monotonic() - begin - spent
            print(f"{case['target']['file']} {case['target']['define']}: {took:.0f} s, {case['seconds']:.0f} expected", flush=True)
        report("left for the next time", left)
        return report("failed", failed)

    def merge(self, directory):
        """Writes rows for what has won where that is not chosen already; whether all of them count."""
        count = True
        for case, place, is_done in self.read_cases(directory):
            if not is_done:
                continue
            with tempfile.TemporaryDirectory() as temporary:
                database = pathlib.Path(temporary, "database.json")
                self.tune("--merge", place / "results.json", "--database", database, check=True, stdout=subprocess.DEVNULL)
                entries = read_json(database)["entries"]
            longest = min((entry["class"] for entry in entries), key=_CLASSES.index)
            count &= self.take(case, [entry for entry in entries if entry["class"] == longest])
        return count

    def take(self, case, entries):
        """Takes what has won by an entry, or by those of the kernels of a sequence, which have the same numbers; whether that counts."""
        target, card = case["target"], entries[0]["gpu"]
        won = {name: int(entries[0]["parameters"][name]) for name in sorted(target["vary"])}
        row = {"source": pathlib.Path(target["file"]).name, "when": case["conditions"], "card": card, "take": won}
        if self.arguments.record:
            row["record"] = self.arguments.record
        times = [entry["measured"] for entry in entries]
        gain = max(1 - ms / model for each in times for ms, model in zip(each["ms"], each["model_ms"]))
        rows = Rows(self.files[case["rules"]])
        before, is_new = rows.text, gain >= _LEAST_GAIN
        if is_new:
            rows.write(row, is_kept=False)
            is_new = self.choose(target, card, won)[0] != won
        if is_new:
            rows.write(row, is_kept=True)
        else:
            print(f"{target['file']} {target['define']}: as before on {card}, {won} is {gain:.1%} faster", flush=True)
            return True
        try:
            chosen, origins = self.choose(target, card, won)
        except subprocess.CalledProcessError:
            rows.restore(before)
            print(f"{row['source']}: {target['define']} has no row: what its conditions name depends on what it takes", file=sys.stderr)
            return False
        for name, value in won.items():
            if chosen[name] != value:
                rows.restore(before)
                print(f"{row['source']}: for {target['define']} {name} is {chosen[name]} by {origins[name]}, "
                      f"and not {value}: a row with more conditions counts before that for {card}",
                      file=sys.stderr)  # fmt: skip
                return False
        print(f"{target['file']} {target['define']}: {won} on {card}, a new row, {gain:.1%} faster", flush=True)
        return True

    def choose(self, target, card, names):
        """What the parameters are for a card, and where that comes from."""
        parameters = self.read_parameters(target["file"], target["define"], "--gpu", card)
        return {name: parameters[name]["default"] for name in names}, {name: parameters[name]["origin"] for name in names}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", help="the file of rules, or a folder of such files")
    parser.add_argument("--list", help="sources, parameters and shapes, as kernels/tuning.json")
    parser.add_argument("--tessera", required=True, help="the command")
    parser.add_argument("--record", help="the name of the record, for the rows")
    parser.add_argument("--only", metavar="TEXT", help="only sources whose names have this text")
    parser.add_argument("--shapes", type=int, default=2, metavar="N", help="so many of the longest shapes of a target")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no case that would end later")
    steps = parser.add_mutually_exclusive_group()
    for step in ("--compile-only", "--measure", "--merge"):
        steps.add_argument(step, type=pathlib.Path, metavar="DIR", help="this step alone")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:end])
    if not arguments.list and not arguments.measure:
        parser.error("--list is missing")
    arguments.rest = words[end + 1 :]
    return arguments


def main():
    arguments = read_arguments()
    refit = Refit(arguments)
    if arguments.compile_only:
        sys.exit(not refit.compile(arguments.compile_only))
    if arguments.measure:
        sys.exit(not refit.measure(arguments.measure))
    if arguments.merge:
        sys.exit(not refit.merge(arguments.merge))
    with tempfile.TemporaryDirectory() as temporary:
        place = pathlib.Path(temporary)
        steps = [refit.compile(place), refit.measure(place), refit.merge(place)]
    sys.exit(not all(steps))


main()
