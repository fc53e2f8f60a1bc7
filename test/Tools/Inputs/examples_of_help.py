"""Each subcommand that takes a file says exit codes and examples in its help, whose options and subcommands there are."""

import re
import subprocess

COMMANDS = ("compile", "params", "run", "check", "trace", "inspect", "explain", "tune")


def read_help(command):
    return subprocess.run(["tessera", "help", command], capture_output=True, text=True, check=True).stdout


helps = {command: read_help(command) for command in COMMANDS}
for command, text in helps.items():
    assert "Exit codes: 0 done" in text, f"{command} says no exit codes"
    examples = re.findall(r"tessera [a-z]+ [^;\n]*", text.partition("Examples:")[2].partition("Exit codes:")[0])
    assert examples, f"{command} has no examples"
    for example in examples:
        named, *words = example.split()[1:]
        for option in (word for word in words if re.match(r"--?[A-Za-z]", word)):
            found = re.search(rf"(?:^|[\s,]){option}(?:[,{{ ]|$)", helps[named].partition("Examples:")[0], re.MULTILINE)
            assert found, f"the help of {command} has {example!r}, and tessera {named} no option {option}"
