"""What recurrences go by, whatever the tensors are of."""

import functools
import math
from typing import NamedTuple

from .._compiler import _choices
from .._core import _library

#: Tokens of a chunk: C of chunk.tile.
CHUNK = 64
#: The limits that mamba-ssm keeps steps within where calls name none.
POSITIVE = (0.0, math.inf)


@functools.lru_cache(maxsize=None)
def find_source(kernel):
    return _library.find_source(f"linear/{kernel}")


def list_widths(kernel):
    """The head dimensions of queries and keys, rows of its states, that a kernel has."""
    return _choices.list_allowed(find_source(kernel), "DK")


def list_block_columns():
    """The head dimensions of values of which gradients of ssd have chunks beside each other."""
    return _choices.list_allowed(find_source("ssd_gradients"), "DV")


def find_forgetting():
    """The logarithm of a factor that is 0 in f32, by which a sequence forgets the one before it."""
    return float(*_choices.list_allowed(find_source("forgets"), "FORGETS"))


def pick(choice):
    """What a walk is given of the values that rules choose for extents."""
    return {name: choice[name] for name in ("DV", "SHARE") if name in choice}


def tell_sharing(q, v, g):
    """The parameters that say whether heads of values share queries and keys, which kernels with gates of channels ask."""
    return {"OWN": q.shape[2] == v.shape[2]} if g.ndim == 4 else {}


def read_ssd_options(dt_limit, chunk_size):
    """The limits of steps, a tuple of float. Refuses what are none, and what is no number of tokens."""
    if dt_limit != POSITIVE:
        least, most = dt_limit if isinstance(dt_limit, (tuple, list)) and len(dt_limit) == 2 else ("", "")
        if not isinstance(least, (int, float)) or not isinstance(most, (int, float)) or not least <= most:
            raise ValueError(f"argument 'dt_limit' is {dt_limit!r}; two numbers, the least step and the largest, would work")
        dt_limit = float(least), float(most)
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"argument 'chunk_size' is {chunk_size!r}; any positive number of tokens would work, and gives the same")
    return dt_limit


#: Arguments of the peers' functions that change nothing here, as kernels have chunks, parts and precisions of their own.
_IGNORED = {
    "retention": {"chunk_size"},
    "gla": {"cu_seqlens_cpu"},
    "gated_delta_rule": {"cu_seqlens_cpu", "chunk_indices", "chunk_size", "disable_recompute", "use_graph", "max_num_seqs"},
    "ssd": {"state_dtype"},
}
_HEAD_FIRST = {"head_first": "tensors [B, T, H, D], as .transpose(1, 2) gives them, would work"}
#: Those that no function takes, and what would work. None and False ask for nothing.
_REFUSED = {
    "retention": _HEAD_FIRST,
    "gla": _HEAD_FIRST,
    "gated_delta_rule": {
        **_HEAD_FIRST,
        "cp_context": "None, and states that devices hand on as 'initial_state' and by 'output_final_state', would work",
        "return_intermediate_states": "False, and a call of each part of the sequence that gives its final state, would work",
    },
    "ssd": {"return_varlen_states": "'cu_seqlens' with return_final_states, which gives the states of each sequence, would work"},
}


def refuse_others(function, others):
    """Refuses arguments beside a function's own but those of its peers that change nothing."""
    for name, value in others.items():
        works = _REFUSED[function].get(name)
        if works is None and name not in _IGNORED[function]:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
        if works is not None and value is not None and value is not False:
            raise NotImplementedError(f"argument '{name}' is given, which {function} does not take; {works}")


def refuse_gate_options(makes_gates, A_log, dt_bias, lower_bound, safe_gate, makes_rates, allow_neg_eigval):
    """Refuses what gates and rates of a delta rule cannot be made of."""
    if not makes_gates:
        for name, given in (("A_log", A_log), ("dt_bias", dt_bias), ("lower_bound", lower_bound)):
            if given is not None:
                raise ValueError(f"argument '{name}' is given, of which use_gate_in_kernel=True makes gates; that or None would work")
    elif lower_bound is None:
        if safe_gate:
            raise ValueError("argument 'lower_bound' is None with safe_gate=True; a number below 0 would work")
        if A_log is None:
            raise ValueError("argument 'A_log' is None with use_gate_in_kernel=True; logarithms of rates, or a 'lower_bound', would work")
    elif not isinstance(lower_bound, (int, float)) or not -math.inf < lower_bound < 0:
        raise ValueError(f"argument 'lower_bound' is {lower_bound!r}; a number below 0 would work")
    if allow_neg_eigval and not makes_rates:
        raise ValueError(
            "argument 'allow_neg_eigval' is given without use_beta_sigmoid_in_kernel=True; that, or twice the rates, would work"
        )


def refuse_numbers(starts):
    """Refuses numbers of sequences beside their starts."""
    if starts is not None:
        raise ValueError(
            "argument 'seq_idx' is given beside 'cu_seqlens'; one of them would work, of which 'cu_seqlens' gives each sequence its states"
        )


class Steps(NamedTuple):
    """How steps are made of what calls give (given_steps.tile)."""

    made: str = "given"
    least: float = -math.inf
    most: float = math.inf

    @property
    def limits(self):
        """The numbers that kernels take."""
        return () if self.made == "given" else self[1:]


#: Those that are what calls give.
GIVEN = Steps()


def find_steps(softplus, has_bias, least, most):
    """The Steps of a call."""
    if softplus:
        return Steps("softplus", least, most)
    return Steps("limited", least, most) if has_bias or least > -math.inf or most < math.inf else GIVEN


def count_chunks(tokens):
    return -(-tokens // CHUNK)


def cut(tokens, heads, columns, multiprocessors, numbers):
    """The tokens of each segment of a sequence that multiprocessors have room for, None where segments are not worth two walks.
    `numbers` are the parameters of segments.tile."""
    points = max(1, heads * -(-columns // numbers["COLUMNS"]))
    count = min(multiprocessors // points, tokens // (CHUNK * numbers["FEWEST_CHUNKS"]))
    own = -(-tokens // (CHUNK * max(1, count))) * CHUNK
    return own if -(-tokens // max(1, own)) >= numbers["FEWEST"] else None


def count_head_parts(points, shared, heads, multiprocessors):
    """The parts of `heads` that share queries and keys, of which each grid point of as many as `points` for each has one, so that
    multiprocessors have grid points: as few as that takes, of as many heads each."""
    counts = [count for count in range(shared, heads + 1, shared) if heads % count == 0]
    return next((count for count in counts if points * count >= multiprocessors), heads)


def list_segments(tokens, own):
    """Of each segment of so many tokens the first chunk, and that behind its last."""
    firsts = range(0, tokens, own)
    return [first // CHUNK for first in firsts], [count_chunks(min(first + own, tokens)) for first in firsts]


def list_decays(heads):
    """Of each head of retention the logarithm to the base 2 of its factor."""
    return [math.log2(1 - 2.0 ** (-5 - head)) for head in range(heads)]
