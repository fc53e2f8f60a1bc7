# REQUIRES: pygments
# RUN: %pygments-python %s %source
"""The Pygments lexer: every source that ships has a token for each of its characters, and tokens are what they seem."""

import importlib.util
import pathlib
import sys
import unittest

from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String

SOURCE = pathlib.Path(sys.argv.pop())
# Without the package around it, which looks for its libraries.
spec = importlib.util.spec_from_file_location("lexer", SOURCE / "python" / "tessera" / "_compiler" / "_lexer.py")
lexer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lexer)


def get_tokens(text):
    return list(lexer.TileLexer(stripnl=False, ensurenl=False).get_tokens(text))


class LexerTest(unittest.TestCase):
    def test_sources(self):
        sources = sorted(SOURCE.glob("kernels/**/*.tile"))
        self.assertGreater(len(sources), 20)
        for path in sources:
            text = path.read_text()
            tokens = get_tokens(text)
            self.assertEqual("".join(value for _, value in tokens), text)
            self.assertEqual([value for kind, value in tokens if kind is Error], [], path)

    def check(self, text, expected):
        self.assertEqual([(kind, value) for kind, value in get_tokens(text) if value.strip()], expected)

    def test_parameters(self):
        self.check('param D : int = 64 in 64..128 step 64 "text"', [
            (Keyword.Declaration, "param"), (Name.Constant, "D"), (Punctuation, ":"), (Keyword.Type, "int"), (Operator, "="),
            (Number.Integer, "64"), (Keyword, "in"), (Number.Integer, "64"), (Operator, ".."), (Number.Integer, "128"),
            (Keyword, "step"), (Number.Integer, "64"), (String.Double, '"text"'),
        ])  # fmt: skip

    def test_substitutions(self):
        self.check("tensor<$BMx$(2 * (D + 1))x64xbf16>", [
            (Keyword.Type, "tensor"), (Operator, "<"), (Name.Constant, "$BM"), (Operator, "x"), (String.Interpol, "$("),
            (Number.Integer, "2"), (Operator, "*"), (Punctuation, "("), (Name.Constant, "D"), (Operator, "+"),
            (Number.Integer, "1"), (Punctuation, ")"), (String.Interpol, ")"), (Operator, "x"), (Number.Integer, "64"),
            (Operator, "x"), (Keyword.Type, "bf16"), (Operator, ">"),
        ])  # fmt: skip

    def test_conditions(self):
        self.check('$if D <= 64 // why\n%x = tile.load %q : !Q\n$end', [
            (Comment.Preproc, "$if"), (Name.Constant, "D"), (Operator, "<="), (Number.Integer, "64"),
            (Comment.Single, "// why"), (Name.Variable, "%x"), (Operator, "="), (Name.Builtin, "tile.load"),
            (Name.Variable, "%q"), (Punctuation, ":"), (Name.Class, "!Q"), (Comment.Preproc, "$end"),
        ])  # fmt: skip

    def test_conditions_of_one_line(self):
        self.check('$if D ? A : B: %x\n$else: %y', [
            (Comment.Preproc, "$if"), (Name.Constant, "D"), (Operator, "?"), (Name.Constant, "A"), (Operator, ":"), (Name.Constant, "B"),
            (Punctuation, ":"), (Name.Variable, "%x"), (Comment.Preproc, "$else"), (Punctuation, ":"), (Name.Variable, "%y"),
        ])  # fmt: skip


unittest.main()
