"""Inputs of attention that are made to break speculation, which bench/retries.py times and test/Torch/retries.py checks.

The row maximum of a tile's first block of keys serves all blocks (docs/lab/speculation.md). So inputs change what later blocks have
beside the first one: how scores run from key to key, single keys and rows that are far from all others, and what is no number.
"""

import dataclasses
import math
import statistics
from collections.abc import Callable

# Rows of which a tile has some, whatever its height, and the height of the tallest tile.
_ROWS, _TALLEST = 64, 256
# Keys that every tile takes as its first block, or some blocks.
_FIRST = 256


class Tensors:
    """q, k, v [B, S, H, D] of float32 whose scores are normal, of deviation 1 with a scale of 1 / sqrt(D)."""

    def __init__(self, batch, length, heads, d, device="cpu", seed=0):
        import torch

        self._torch, self._generator = torch, torch.Generator(device).manual_seed(seed)
        self._device, self.length, self.heads = device, length, heads
        self.q, self.k, self.v = (self.draw(batch, length, heads, d) for _ in range(3))
        #: The number of each key or row, and the same from 0 to 1, [S, 1].
        self.number = torch.arange(length, device=device)[:, None]
        self.place = self.number / max(1, length - 1)

    def draw(self, *shape):
        return self._torch.randn(shape, generator=self._generator, device=self._device)

    def add(self, of_key, of_row=1.0):
        """Adds a number of each key times one of each row to scores, both [S, 1], [S, H] or one for all. A channel has it alone."""
        self.q[..., 0] = of_row * self.q.shape[-1] ** 0.5
        self.k[..., 0] = of_key

    def to(self, dtype):
        return tuple(x.to(dtype) for x in (self.q, self.k, self.v))


@dataclasses.dataclass(frozen=True)
class Input:
    name: str
    #: Changes Tensors.
    change: Callable


def _multiply(rows, factor, of="q"):
    """Multiplies rows, a slice or a function of the length."""

    def change(x):
        getattr(x, of)[:, rows(x.length) if callable(rows) else rows] *= factor

    return change


def _run(most, of_row=1.0):
    """Adds what runs from 0 to `most` with the key; `of_row` may be a function of Tensors."""
    return lambda x: x.add(most * x.place, of_row(x) if callable(of_row) else of_row)


def _walk(step):
    return lambda x: x.add(step * x.draw(x.length, x.heads).cumsum(0))


def _spoil_tiles(share):
    """Multiplies the first rows of so many of the tiles by 100."""

    def change(x):
        of_tile, height = x.number // _TALLEST, _TALLEST if share < 1 else _ROWS
        head = x.number.new_tensor(range(x.heads))
        is_spoilt = (of_tile * x.heads + head) % round(1 / share) == 0
        x.q[:, (is_spoilt & (x.number % height < _ROWS))] *= 100

    return change


def _scatter(share, factor):
    """Multiplies some elements of queries and keys."""

    def change(x):
        for tensor in (x.q, x.k):
            tensor[x.draw(*tensor.shape) > statistics.NormalDist().inv_cdf(1 - share)] *= factor

    return change


def _widen(channel, factor):
    def change(x):
        for tensor in (x.q, x.k):
            tensor[..., channel] *= factor

    return change


def _turn(x):
    """Scores are highest where a row meets its own key, and fall and rise again with the distance."""
    angle = 2 * math.pi * 8 * x.place
    for tensor, factor in ((x.q, 100 * x.q.shape[-1] ** 0.5), (x.k, 1.0)):
        tensor[..., 0], tensor[..., 1] = factor * angle.cos(), factor * angle.sin()


def _spoil_number(name, value):
    """One element, in the middle of the first sequence and head."""

    def change(x):
        getattr(x, name)[0, x.length // 2, 0, 3] = value

    return change


def _sign_of_rows(x):
    return 1.0 - 2.0 * (x.number % 2)


def _sign_of_heads(x):
    return x.place.new_tensor([1 - 2 * head / max(1, x.heads - 1) for head in range(x.heads)])


INPUTS = (
    Input("deviation 1", lambda x: None),
    Input("deviation 8", _multiply(slice(None), 8)),
    Input("deviation 16", _multiply(slice(None), 16)),
    Input("deviation 64", _multiply(slice(None), 64)),
    Input("rising by 20", _run(20)),
    Input("rising by 200", _run(200)),
    Input("rising by 5000", _run(5000)),
    Input("falling by 200", _run(-200)),
    Input("falling by 5000", _run(-5000)),
    Input("a step up", lambda x: x.add(200.0 * (x.place >= 0.5))),
    Input("a step down", lambda x: x.add(-200.0 * (x.place >= 0.5))),
    Input("a walk by 1", _walk(1)),
    Input("a walk by 8", _walk(8)),
    Input("waves", lambda x: x.add(100 * (2 * math.pi * 16 * x.place).sin())),
    Input("keys of either sign", lambda x: x.add(100 * _sign_of_rows(x))),
    Input("a huge key at the end", _multiply(slice(-1, None), 60, "k")),
    Input("a huge key in the middle", _multiply(lambda length: length // 2, 60, "k")),
    Input("a huge key at the beginning", _multiply(slice(1), 60, "k")),
    Input("a sink", lambda x: x.add(100.0 * (x.number == 0))),
    Input("low first blocks", lambda x: x.add(-200.0 * (x.number < _FIRST))),
    Input("growing keys", lambda x: x.k.mul_((1 + 31 * x.place)[:, :, None])),
    Input("a channel of outliers", _widen(3, 30)),
    Input("scattered outliers", _scatter(0.01, 30)),
    Input("1% of the tiles", _spoil_tiles(0.01)),
    Input("all tiles", _spoil_tiles(1)),
    Input("slopes of either sign by row", _run(200, _sign_of_rows)),
    Input("slopes of either sign by head", _run(200, _sign_of_heads)),
    Input("near keys", _turn),
    Input("NaN in a query", _spoil_number("q", math.nan)),
    Input("NaN in a key", _spoil_number("k", math.nan)),
)
