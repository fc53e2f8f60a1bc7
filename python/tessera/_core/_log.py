"""What the package writes to the logger "tessera": what is compiled, how long it takes, and what was there already.

TESSERA_LOG=info (or 1) and TESSERA_LOG=debug show it on standard error where the program sets up no logging of its own.
"""

import os
import sys


def _find_logger(always=False):
    """The logger; None where nobody can have asked for it, as the import of logging takes longer than a call."""
    wanted = os.environ.get("TESSERA_LOG", "")
    if not always and not wanted and "logging" not in sys.modules:
        return None
    import logging

    logger = logging.getLogger("tessera")
    if wanted and not logger.hasHandlers():
        logging.basicConfig(format="%(name)s: %(message)s")
        logger.setLevel(logging.DEBUG if wanted.lower() == "debug" else logging.INFO)
    return logger


def info(message, *arguments):
    if logger := _find_logger():
        logger.info(message, *arguments)


def debug(message, *arguments):
    if logger := _find_logger():
        logger.debug(message, *arguments)


def warning(message, *arguments):
    """What Python shows on standard error unless the program says otherwise."""
    _find_logger(always=True).warning(message, *arguments)


def describe(file_name, parameters):
    """What a line calls a kernel: "gemm.tile (BM=64, T=f16)"."""
    values = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"{os.path.basename(file_name)}{values and f' ({values})'}"
