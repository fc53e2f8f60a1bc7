"""What functions of scores and masks take besides a score and its place, by names."""

from __future__ import annotations

from typing import NamedTuple


class Names(NamedTuple):
    """The names of views, of numbers of f32 and of integers, each in the order of the arguments of kernels."""

    views: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    integers: tuple[str, ...] = ()

    def add_views(self, more: tuple[str, ...]) -> Names:
        return Names((*self.views, *more), self.numbers, self.integers)


def write(names: Names) -> str:
    """The text that ops and texts of calls hold: names separated by commas, and the three parts by bars."""
    return "|".join([",".join(part) for part in names])


def read(text: str) -> Names:
    return Names(*[read_list(part) for part in text.split("|")])


def read_list(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(text.split(",")) if text else ()


def find_label(name: str) -> str:
    """What users call a thing, without the index that makes its name differ from others."""
    return name.rpartition("_")[0] or name
