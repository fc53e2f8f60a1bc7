"""What recurrences go by, whatever the tensors are of."""

import functools
import math

from .._compiler import _choices
from .._core import _library

#: Tokens of a chunk: C of chunk.tile.
CHUNK = 64
#: The limits that mamba-ssm keeps steps within where calls name none.
POSITIVE = (0.0, math.inf)
#: The logarithm of a factor that is 0 in f32, by which a sequence forgets the one before it. Sums of larger ones would cost more digits.
FORGETS = -110.0


@functools.lru_cache(maxsize=None)
def find_source(kernel):
    return _library.find_source(f"linear/{kernel}")


def list_widths(kernel):
    """The head dimensions of queries and keys, rows of its states, that a kernel has."""
    return _choices.list_allowed(find_source(kernel), "DK")


def pick(choice):
    """What a walk is given of the values that rules choose for extents."""
    return {name: choice[name] for name in ("DV", "SHARE") if name in choice}


def tell_sharing(q, v, g):
    """The parameters that say whether heads of values share queries and keys, which kernels with gates of channels ask."""
    return {"OWN": q.shape[2] == v.shape[2]} if g.ndim == 4 else {}


def read_ssd_options(dt_limit, chunk_size):
    """The limits of steps, a tuple. Refuses what are none, and what is no number of tokens."""
    if dt_limit != POSITIVE:
        numbers = dt_limit if isinstance(dt_limit, (tuple, list)) and len(dt_limit) == 2 else ("", "")
        if not all(isinstance(x, (int, float)) for x in numbers) or not numbers[0] <= numbers[1]:
            raise ValueError(f"argument 'dt_limit' is {dt_limit!r}; two numbers, the least step and the largest, would work")
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"argument 'chunk_size' is {chunk_size!r}; any positive number of tokens would work, and gives the same")
    return tuple(dt_limit)


def refuse_numbers(starts):
    """Refuses numbers of sequences beside their starts."""
    if starts is not None:
        raise ValueError(
            "argument 'seq_idx' is given beside 'cu_seqlens'; one of them would work, of which 'cu_seqlens' gives each sequence its states"
        )


def limits_steps(limit, softplus):
    """Whether limits change steps; those behind a softplus are not negative."""
    least, most = limit
    return most < math.inf or least > (0 if softplus else -math.inf)


def count_chunks(tokens):
    return -(-tokens // CHUNK)


def cut(tokens, heads, columns, multiprocessors, numbers):
    """The tokens of each segment of a sequence that multiprocessors have room for, None where segments are not worth two walks.
    `numbers` are the parameters of segments.tile."""
    points = max(1, heads * -(-columns // numbers["COLUMNS"]))
    count = min(multiprocessors // points, tokens // (CHUNK * numbers["FEWEST_CHUNKS"]))
    own = -(-tokens // (CHUNK * max(1, count))) * CHUNK
    return own if -(-tokens // max(1, own)) >= numbers["FEWEST"] else None


def list_segments(tokens, own):
    """Of each segment of so many tokens the first chunk, and that behind its last."""
    firsts = range(0, tokens, own)
    return [first // CHUNK for first in firsts], [count_chunks(min(first + own, tokens)) for first in firsts]


def list_decays(heads):
    """Of each head of retention the logarithm to the base 2 of its factor."""
    return [math.log2(1 - 2.0 ** (-5 - head)) for head in range(heads)]
