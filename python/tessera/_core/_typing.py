"""What annotations of this package name of `typing`, which takes longer to import than the package: it is imported where
something evaluates them."""

# Type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any as Any
    from typing import Literal as Literal


def __getattr__(name):
    import typing

    return getattr(typing, name)
