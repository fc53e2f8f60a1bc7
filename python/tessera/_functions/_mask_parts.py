"""A mask as two functions of a source: the part by places, and the part by what is loaded (@mask_by_data).

Reads and writes the lines that `_tracing` writes.
"""

import re

_RESULT = re.compile(r"  (%\w+) = (.*)")
_AND = re.compile(r"arith\.andi (%\w+), (%\w+) : i1")


class _Lines:
    """What computes each value of a function, and where Python asks for it."""

    def __init__(self, lines, places):
        self.order = {}
        for line, place in zip(lines, places):
            result, operation = _RESULT.fullmatch(line).groups()
            self.order[result] = operation, place

    def list_terms(self, value):
        """What a condition is combined of by `and`."""
        operation, _ = self.order.get(value, ("", ""))
        parts = _AND.fullmatch(operation)
        return [term for part in parts.groups() for term in self.list_terms(part)] if parts else [value]

    def list_needed(self, values):
        """The values of the function that others are computed of, with these."""
        needed, left = set(), list(values)
        while left:
            value = left.pop()
            if value in self.order and value not in needed:
                needed.add(value)
                left += re.findall(r"%\w+", self.order[value][0])
        return needed

    def loads(self, value):
        return any(self.order[name][0].startswith("tile.load") for name in self.list_needed([value]))

    def write(self, head, terms, place):
        """(lines, places) of a function of what all terms say."""
        needed = self.list_needed(terms)
        lines, places = [head], [place]
        for name, (operation, own) in self.order.items():
            if name in needed:
                lines.append(f"  {name} = {operation}")
                places.append(own)
        value = terms[0]
        for number, term in enumerate(terms[1:], 1):
            lines.append(f"  %both{number} = arith.andi {value}, {term} : i1")
            places.append(place)
            value = f"%both{number}"
        return [*lines, f"  func.return {value} : i1", "}"], [*places, place, place]


def split(lines, places):
    """The functions, (lines, places), in place of that of a mask: one or two; None where no part of it loads anything."""
    head, *body, last, _ = lines
    own = _Lines(body, places[1:-2])
    terms = own.list_terms(last.split()[1])
    by_data = [term for term in terms if own.loads(term)]
    by_place = [term for term in terms if term not in by_data]
    if not by_data:
        return None
    parts = [own.write(head.replace("@mask(", "@mask_by_data("), by_data, places[0])]
    if by_place:
        parts.insert(0, own.write(head, by_place, places[0]))
    return parts
