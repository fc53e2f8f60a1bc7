#!/usr/bin/env python3
"""Refits files of rules for the GPU of this machine: measures what rows choose, and writes rows for the card.

  refit_rules.py RULES --list LIST --tessera PATH [--record NAME] [--only TEXT] [-- ARG...]

RULES is a file, or a folder of which each file is refitted. The cases are those of LIST (kernels/tuning.json): the sources that name
RULES, with the parameters and the shapes of each target. Where rows of RULES choose numbers for a case, these and their neighbours
among the allowed values are the candidates, and `tessera tune` measures them with the schedules that it finds; ARGs are its options. A
row for the card takes what wins for the longest shapes, under all parameters of the case, so that it counts before rows of no card. It
replaces the row that an earlier refit has written for the case.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

#: How many allowed values on each side of the present one are candidates.
_NEIGHBOURS = 1
#: Classes of shapes, the one whose winner counts first.
_CLASSES = ("many-long", "many-medium", "many-short", "few-long", "few-medium", "few-short")


def expand(allowed):
    """The numbers that "128", "64..256" or "64..256 step 64" stands for."""
    low, high, step = re.fullmatch(r"(\d+)(?:\.\.(\d+))?(?: step (\d+))?", allowed).groups()
    return range(int(low), int(high or low) + 1, int(step or 1))


def list_neighbours(parameter):
    values = sorted({value for text in parameter["allowed"] for value in expand(text)})
    at = values.index(parameter["default"])
    return [str(value) for value in values[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS + 1]]


def spell_condition(name, value):
    """The condition that a parameter has a value of the JSON of `tessera params`."""
    if value["kind"] == "bool":
        return name if value["default"] in (True, "true") else f"!{name}"
    quoted = f'"{value["default"]}"' if value["kind"] == "name" else value["default"]
    return f"{name} == {quoted}"


class Refit:
    def __init__(self, arguments, rules):
        self.arguments, self.rules = arguments, rules
        self.folder = pathlib.Path(arguments.list).parent
        arguments.tessera = os.path.abspath(shutil.which(arguments.tessera) or arguments.tessera)

    def read_parameters(self, file, define, *more):
        defines = [f"-D{name}={value}" for name, value in define.items()]
        command = [self.arguments.tessera, "params", str(self.folder / file), "--json", *defines, *more]
        return {parameter["name"]: parameter for parameter in json.loads(subprocess.check_output(command))["parameters"]}

    def list_cases(self):
        """(target, its parameters) of each case for which rows choose numbers."""
        seen = set()
        for target in json.loads(pathlib.Path(self.arguments.list).read_text())["targets"]:
            define = target.get("define", {})
            key = target["file"], json.dumps(define, sort_keys=True)
            parameters = self.read_parameters(target["file"], define)
            place = f"{self.rules.name}:"
            vary = {name: list_neighbours(parameter) for name, parameter in parameters.items()
                    if place in parameter["origin"] and parameter["kind"] == "int"}  # fmt: skip
            if vary and key not in seen and (self.arguments.only or "") in target["file"]:
                seen.add(key)
                yield {**target, "define": define, "vary": vary, "also": []}, parameters

    def measure(self, target):
        """The entry that wins for the longest shapes of a target."""
        with tempfile.TemporaryDirectory() as place:
            targets, database = pathlib.Path(place, "list.json"), pathlib.Path(place, "database.json")
            file = os.path.relpath((self.folder / target["file"]).resolve(), place)
            targets.write_text(json.dumps({"format": "tessera-tuning-list", "version": 1, "targets": [{**target, "file": file}]}))
            command = [self.arguments.tessera, "tune", "--list", str(targets), "--database", str(database), *self.arguments.rest]
            # What a source names is looked for beside it, and tuning knows it without its folder.
            subprocess.run(command, check=True, cwd=(self.folder / target["file"]).resolve().parent)
            entries = json.loads(database.read_text())["entries"]
        return min(entries, key=lambda entry: _CLASSES.index(entry["class"]))

    def make_row(self, target, parameters, entry):
        conditions = [spell_condition(name, parameter) for name, parameter in parameters.items() if name not in target["vary"]]
        row = {"source": pathlib.Path(target["file"]).name, "when": conditions, "card": entry["gpu"],
               "take": {name: int(entry["parameters"][name]) for name in sorted(target["vary"])}}  # fmt: skip
        if self.arguments.record:
            row["record"] = self.arguments.record
        return row

    def write(self, rows):
        """Puts rows behind those of the file, a line each, in place of those for the same cases; other lines stay as they are."""
        text = self.rules.read_text()
        head, end = text.rstrip()[:-2].rstrip(), "\n ]}\n"
        if not text.rstrip().endswith("]}"):
            sys.exit(f"{self.rules}: the file ends with the list of its rules")
        for row in rows:
            begin = json.dumps({name: row[name] for name in ("source", "when", "card")})[:-1]
            line = json.dumps(row)
            kept = [old for old in head.split("\n") if not old.lstrip().startswith(begin)]
            head = "\n".join(kept).rstrip().rstrip(",")
            head += f"{'' if head.endswith('[') else ','}\n  {line}"
        self.rules.write_text(head + end)

    def check(self, target, row):
        """Ends the program where the new row is not the one that counts."""
        chosen = self.read_parameters(target["file"], target["define"], "--gpu", row["card"])
        for name, value in row["take"].items():
            if chosen[name]["default"] != value:
                sys.exit(f"{row['source']}: for {target['define']} {name} is {chosen[name]['default']} by {chosen[name]['origin']}, "
                         f"and not {value}: a row with more conditions counts before that for {row['card']}")  # fmt: skip

    def run(self):
        """Whether rows of the file choose a number for any target."""
        rows = []
        for target, parameters in self.list_cases():
            entry = self.measure(target)
            rows.append((target, self.make_row(target, parameters, entry)))
            print(f"{target['file']} {target['define']}: {rows[-1][1]['take']} on {entry['gpu']}", flush=True)
        if rows:
            self.write([row for _, row in rows])
        for target, row in rows:
            self.check(target, row)
        return bool(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", help="the file of rules, or a folder of such files")
    parser.add_argument("--list", required=True, help="sources, parameters and shapes, as kernels/tuning.json")
    parser.add_argument("--tessera", required=True, help="the command")
    parser.add_argument("--record", help="the name of the record, for the rows")
    parser.add_argument("--only", metavar="TEXT", help="only sources whose names have this text")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:end])
    arguments.rest = words[end + 1 :]
    rules = pathlib.Path(arguments.rules)
    if not any([Refit(arguments, file).run() for file in (sorted(rules.glob("*.json")) if rules.is_dir() else [rules])]):
        sys.exit(f"{rules} chooses no number for a target of {arguments.list}")


main()
