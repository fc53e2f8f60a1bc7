# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""What functions of scores and masks are refused for, on the CPU."""

import math
import time
import unittest
from typing import NamedTuple

import problems
import torch

import tessera
from tessera import TraceError, masks
from tessera.torch import attention

CAP, TABLE = 2.5, torch.tensor([0.5, -0.25])


def cap(x):
    return CAP * torch.tanh(x / CAP)


def tuned(s, b, h, q, k):
    return s * tuned.factor


class Named(NamedTuple):
    factor: float
    table: torch.Tensor


def recursive(x):
    return recursive(x)


class Config:
    width = 3

    def bend(self, score, b, h, q, k):
        return score * self.width


CONFIG = Config()


class Refusals(problems.Mods):
    def refuse(self, text, score_mod=None, mask_mod=None, error=TraceError, **named):
        with self.subTest(text), self.assertRaises(error) as caught:
            attention(self.q, self.k, self.v, score_mod=score_mod, mask_mod=mask_mod, **named)
        self.assertRegex(str(caught.exception), f"mod_refusals.py:[0-9]+: .*{text}" if error is TraceError else text)

    def test_captured(self):
        double = torch.ones(2, dtype=torch.double)
        far, turned, plain = torch.ones(2, device="meta"), torch.ones(2, 2)[:, 0], torch.tensor([1, 0])
        self.refuse("'double' is a captured tensor of torch.float64", lambda s, b, h, q, k: s + double[h])
        self.refuse("'x' is a captured tensor on meta", lambda s, b, h, q, k, x: s - x[h], score_args=(far,))
        self.refuse("'turned' is a captured tensor with stride 2", lambda s, b, h, q, k: s + turned[h])
        self.refuse("the view 'plain' is used without an index", lambda s, b, h, q, k: s + plain)
        self.refuse("the view 'plain' is used without an index", lambda s, b, h, q, k: torch.where(q > k, plain, 0))
        self.refuse("'plain' has 1 dimensions .*, got 2 indices", lambda s, b, h, q, k: s + plain[h, q])
        self.refuse("an index of 'plain' is a slice", lambda s, b, h, q, k: s + plain[1:])
        self.refuse("'sum' of the view 'plain'", lambda s, b, h, q, k: s + plain.sum())
        self.refuse("'CONFIG' is a Config, whose parts may change", mask_mod=lambda b, h, q, k: q < CONFIG.width)
        self.refuse("'Config' is a type, whose parts", mask_mod=lambda b, h, q, k: q < Config.width)
        self.refuse("'score_mod' is a method, whose parts", CONFIG.bend)
        self.refuse("the score calls a function that calls itself without end", lambda s, b, h, q, k: recursive(s))
        self.refuse("'prefix' is a Mask with arguments", mask_mod=self.make_prefix())

        if far is None:
            late = 1
        self.refuse("'late' is a variable that has no value yet", lambda s, b, h, q, k: s + late)

    def test_hidden(self):
        """Values that a function would find where nothing sees them."""
        get, Sum = {"a": 2}.get, type("Sum", (Named,), {"__mul__": lambda self, x: x * CAP})
        sum_of_two = Sum(0.5, TABLE)

        def imports(s, b, h, q, k):
            import no_module_of_this_name

            return s * no_module_of_this_name.x

        self.refuse("imports 'no_module_of_this_name' where it runs, which is no module", imports)
        self.refuse("asks for 'globals'", lambda s, b, h, q, k: s * globals()["CAP"])
        self.refuse("asks for 'eval'", lambda s, b, h, q, k: s * eval("CAP"))
        self.refuse("asks for 'open'", lambda s, b, h, q, k: s * len(open(__file__).read()))
        self.refuse("asks for '__globals__'", lambda s, b, h, q, k: s * cap.__globals__["CAP"])
        self.refuse("'Config' is a type, whose parts", lambda s, b, h, q, k: s if isinstance(s, Config) else s * 2)
        self.refuse("asks for 'is_tensor'", lambda s, b, h, q, k: s if torch.is_tensor(s) else s * 2)
        self.refuse("asks for 'type'.*use isinstance", lambda s, b, h, q, k: s if type(CAP) is float else s * 2)
        self.refuse("isinstance of a traced value and Tensor", lambda s, b, h, q, k: s if isinstance(s, torch.Tensor) else 0)
        self.refuse("'get' is a method of a dict, whose parts may change", lambda s, b, h, q, k: s * get("a"))
        self.refuse("'sum_of_two' is a Sum, whose parts may change", lambda s, b, h, q, k: sum_of_two * s)
        self.refuse("'time' is a function of 'time', whose results may change", lambda s, b, h, q, k: s * (time.time() // 1e6))
        self.check(lambda s, b, h, q, k: s if isinstance(s, (int, float)) else s * 2)

    def test_changes(self):
        """A function runs once for all calls: what it changes outside of itself would stay as it is then."""
        count, factors = 0, [1.0, 2.0]

        def count_calls(s, b, h, q, k):
            nonlocal count
            count += 1
            return s * count

        def flip(s, b, h, q, k):
            factors[0] = -factors[0]
            return s * factors[0]

        def assign(s, b, h, q, k):
            global CAP
            CAP = 3
            return s * CAP

        def count_in_attribute(s, b, h, q, k):
            tuned.factor = 3
            return s * tuned.factor

        tuned.factor = 2
        self.refuse("'count_calls' .* assigns 'count' outside of itself", count_calls)
        self.refuse("changes a list outside of itself", flip)
        self.refuse("changes a list outside of itself", lambda s, b, h, q, k: s + (factors.append(1.0) or len(factors)))
        self.refuse("assigns 'CAP' outside of itself", assign)
        self.refuse("assigns 'factor' outside of itself", count_in_attribute)

        def count_within(s, b, h, q, k):
            n = 0

            def add():
                nonlocal n
                n += 1
                return n

            return s * add() * add()

        self.check(count_within)

    def make_prefix(self):
        prefix = masks.prefix
        return lambda b, h, q, k: prefix(b, h, q, k)

    def test_functions(self):
        self.refuse("the score says something else each time", lambda s, b, h, q, k: s + torch.rand(()))
        self.refuse("a condition on a traced value", lambda s, b, h, q, k: s if q > k else 0)
        self.refuse("a traced value as a Python integer", lambda s, b, h, q, k: s + sum(range(q)))
        self.refuse("a traced value as a Python float", lambda s, b, h, q, k: math.tanh(s))
        self.refuse("a loop over a traced value", lambda s, b, h, q, k: sum(s))
        self.refuse("torch.erf of a traced value is unknown", lambda s, b, h, q, k: torch.erf(s))
        self.refuse("is indexed by a traced value", mask_mod=lambda b, h, q, k: torch.arange(4)[q] > k)
        self.refuse("a Tensor of shape \\(3,\\) meets a traced value", lambda s, b, h, q, k: s + torch.ones(3))
        self.refuse("a traced value as torch.float16", lambda s, b, h, q, k: s.to(torch.float16))
        self.refuse("a tensor of shape \\(2,\\)", lambda s, b, h, q, k: s.new_ones((2,)))
        self.refuse("rounds towards zero is unknown", lambda s, b, h, q, k: s + torch.div(q, 2, rounding_mode="trunc"))
        self.refuse("an exponent from 1 to 8", lambda s, b, h, q, k: s**1.5)
        self.refuse("3 \\*\\* an integer is exact for 2, 4, 8", lambda s, b, h, q, k: s + 3**h)
        self.refuse("a shift of an integer of 32 bits by 32 places", lambda s, b, h, q, k: s + (q << 32))
        self.refuse("a division of integers by 0", lambda s, b, h, q, k: s + q % 0)
        self.refuse("sub of two conditions", lambda s, b, h, q, k: s + ((q > k) - (k > 3)))
        self.refuse("- of a condition", lambda s, b, h, q, k: s + -(q > k))
        self.refuse("the mask gives an i32", mask_mod=lambda b, h, q, k: q - k)
        self.refuse(r"the mask gives a NoneType; it is a condition", mask_mod=lambda b, h, q, k: None)
        self.refuse(r"the score gives a tuple; it is one number$", lambda s, b, h, q, k: (s, s))
        # Once, and not in the words of a second refusal.
        called = r"a score is called with \(score, b, h, q, k\); this one takes others: too many positional arguments"
        self.refuse(f"{called}$", lambda s, b, h, q: s)
        with self.assertRaisesRegex(TraceError, f"^[^ ]*: {called}$"):
            attention(self.q, self.k, self.v, score_mod=lambda s, b, h, q: s)
        self.refuse("missing a required argument: 'n'", mask_mod=lambda b, h, q, k, n: k < n)
        self.refuse("with \\(b, h, q, k\\) and 1 further", mask_mod=lambda b, h, q, k: k < q, mask_args=(3,))

    def test_caught(self):
        """What a function does after it caught a refusal is no answer."""

        def catch(s, b, h, q, k):
            try:
                return s if q > k else s * 2
            except Exception:
                return s * 3

        self.refuse("a condition on a traced value", catch)
        number = 2

        def catch_all(s, b, h, q, k):
            try:
                return s * range(number)[-1]
            except:  # noqa: E722
                return s * 5

        self.check(catch_all)

    def test_constant_indices(self):
        table, row = torch.randn(3, 4), torch.randn(2)
        self.check(lambda s, b, h, q, k: s + table[2, -4] + table[-3][3] + row[1] + row[-2])
        self.refuse("index 3 of 'table' lies outside, as dimension 0 has an extent of 3", lambda s, b, h, q, k: s + table[3, h])
        self.refuse("index -5 of 'table' lies outside, as dimension 1 has", lambda s, b, h, q, k: s + table[h][-5])
        given = {"score_mod": lambda s, b, h, q, k, x: s + x[1], "score_args": (torch.randn(1),)}
        self.refuse("index 1 of 'x' lies outside", **given)
        # The source is the same for a longer one.
        self.check(given["score_mod"], score_args=(row,))

    def test_large_numbers(self):
        width = 100000
        self.refuse("computed_1_i32", mask_mod=lambda b, h, q, k: k < width * width, error=Exception)

    def test_numbers_of_python(self):
        for function in (float, int, round, math.floor, math.trunc):
            self.refuse("a traced value as a Python float; functions of it are", lambda s, b, h, q, k: function(s))

    def test_arguments(self):
        score = {"score_mod": lambda s, b, h, q, k: s}
        self.refuse("argument 'score_mod' is a int", 3, error=TypeError)
        self.refuse("argument 'score_args' is a Tensor; it is a tuple", error=TypeError, score_args=TABLE, **score)
        self.refuse("'mask_args' is given without 'mask_mod'", error=ValueError, mask_args=(3,))
        self.refuse("argument 'causal' is given with functions", error=ValueError, causal=True, **score)
        self.refuse("argument 'scale' is 0", error=ValueError, scale=0, **score)
        variant = tessera.Variant(mask=masks.causal)
        self.refuse("are given with a variant", error=ValueError, variant=variant, **score)


if __name__ == "__main__":
    unittest.main()
