"""Highlighting of `.tile` sources by Pygments, which finds this by an entry point of the package."""

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

_PARAMETER = r"[A-Z_][A-Z0-9_]*"
_SYNTAX = (
    "to", "step", "iter_args", "grid", "requires", "fixed_sums", "divides", "ceildiv", "axis", "period", "box", "attributes",
    "exact", "dense", "in", "alternatives", "alike",
)  # fmt: skip


class TileLexer(RegexLexer):
    """MLIR's syntax with what a source adds: parameters, substitutions, conditional lines and imports."""

    name = "Tile"
    aliases = ["tile"]
    filenames = ["*.tile"]

    tokens = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (rf"(param)(\s+)({_PARAMETER})(\s*)(:)(\s*)(int|bool|type|name)\b",
             bygroups(Keyword.Declaration, Whitespace, Name.Constant, Whitespace, Punctuation, Whitespace, Keyword.Type)),
            (r"\$(?:import|rules)\b|\$(?:else|end)\b", Comment.Preproc),
            (r"\$(?:if|elif)\b", Comment.Preproc, "condition"),
            (r"\$\(", String.Interpol, "substitution"),
            (rf"\${_PARAMETER}", Name.Constant),
            (r'"(?:\\.|[^"\\\n])*"', String.Double),
            (r"%[\w$.-]+(?:[:#]\d+)?", Name.Variable),
            (r"@[\w$.-]+", Name.Function),
            (r"![A-Za-z_][\w.]*", Name.Class),
            (r"#[A-Za-z_][\w.]*", Name.Attribute),
            (r"\b(?:tensor|index|none|bf16|f8E\dM\d\w*|f\d+|i\d+)\b", Keyword.Type),
            (r"(?<=x)(?:bf16|f8E\dM\d\w*|f\d+|i\d+)\b", Keyword.Type),
            (r"\b(?:tile|arith|math|scf|func)\.[\w.]+", Name.Builtin),
            (words(_SYNTAX, prefix=r"\b", suffix=r"\b"), Keyword),
            (r"\b(?:true|false)\b", Keyword.Constant),
            (r"0x[0-9A-Fa-f]+", Number.Hex),
            (r"-?\d+\.(?!\.)\d*(?:[eE][+-]?\d+)?", Number.Float),
            # What follows a substitution.
            (r"\.\d+", Number.Float),
            (r"-?\d+", Number.Integer),
            (r"x(?=[\d$bif])", Operator),
            (rf"\b{_PARAMETER}\b", Name.Constant),
            (r"[A-Za-z_][\w.]*", Name),
            (r"->|\.\.|[=?*+/&|^~%<>!-]", Operator),
            (r"[()\[\]{},:;$]", Punctuation),
        ],
        "expression": [
            (r"[ \t]+", Whitespace),
            (r'"[^"\n]*"', String.Double),
            (r"\b(?:min|max|ceildiv)\b", Name.Builtin),
            (r"\b(?:true|false)\b", Keyword.Constant),
            (rf"\$?{_PARAMETER}\b", Name.Constant),
            (r"\d+", Number.Integer),
            (r"[A-Za-z_]\w*", Name),
            (r"\|\||&&|[=!<>]=|[-+*/%!<>?:]", Operator),
            (r",", Punctuation),
            (r"\(", Punctuation, "parenthesis"),
        ],
        # Up to a colon that belongs to no `?`, or to the end of the line.
        "condition": [
            (r"//[^\n]*", Comment.Single), (r"\n", Whitespace, "#pop"), (r":", Punctuation, "#pop"), (r"\?", Operator, "choice"),
        ],
        "choice": [(r":", Operator, "#pop"), (r"\?", Operator, "#push"), (r"(?=\n)", Whitespace, "#pop")],
        "substitution": [(r"\n", Whitespace), (r"//[^\n]*", Comment.Single), (r"\)", String.Interpol, "#pop")],
        "parenthesis": [(r"\n", Whitespace), (r"//[^\n]*", Comment.Single), (r"\)", Punctuation, "#pop")],
    }
    for _state in ("condition", "choice", "substitution", "parenthesis"):
        tokens[_state] = [*tokens[_state], *tokens["expression"]]
