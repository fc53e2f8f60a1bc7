"""Writes out the cases of a test, each in the frame that it shares with others.

A frame is the text from `// FRAME` to `// CASE`. In it `// HERE` stands for the lines of a case, and NAME for the word behind `// CASE`.
Comments that a case begins with go before its frame. Behind `// -----` or `// END` text stands for itself. Where the command has
`-split-input-file`, cases are pieces of their own.
"""

import re
import sys


def write_cases(text):
    frame, pieces = "", []
    for part in re.split(r"^(?=// (?:FRAME|CASE\b|END|-----))", text, flags=re.M):
        first, _, body = part.partition("\n")
        if first == "// FRAME":
            frame = re.split(r"^ *// HERE\n", body, flags=re.M)
        elif first.startswith("// CASE"):
            head = re.match(r"(?://.*\n)*", body).group()
            before, after = (side.replace("NAME", first.removeprefix("// CASE").strip()) for side in frame)
            pieces.append(f"{head}{before}{body[len(head) :].rstrip()}\n{after}")
        else:
            pieces.append(body if first in ("// -----", "// END") else part)
    return ("// -----\n" if "-split-input-file" in text else "\n").join(pieces)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        print(write_cases(file.read()), end="")
