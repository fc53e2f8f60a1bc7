# RUN: %python %s %source %t
"""Slips of the keyboard and of thought, one line each, in three sources: each message names the place, the cause and what
would work."""

import pathlib
import re
import subprocess
import sys

FOLDER, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])

# What is replaced, by what, and what the message says. A replacement is made at the first match.
SLIPS = [
    # Operations.
    (r"tile\.load ", "tile.laod ", "no operation 'tile.laod'; did you mean 'tile.load'"),
    (r"tile\.dot ", "tile.dott ", "no operation 'tile.dott'; did you mean 'tile.dot'"),
    (r"tile\.dot ", "linalg.matmul ", "no operation 'linalg.matmul'; kernels have operations of tile, arith"),
    (r"tile\.transpose ", "transpose ", "did you mean 'tile.transpose'"),
    (r"arith\.mulf ", "arith.mul ", "no operation 'arith.mul'; did you mean 'arith.muli' or 'arith.mulf'"),
    (r"arith\.mulf ", "mulf ", "no operation 'mulf'; did you mean 'arith.mulf'"),
    (r"arith\.truncf ", "arith.trunc ", "did you mean 'arith.trunc[fi]'"),
    (r"arith\.constant ", "arith.const ", "no operation 'arith.const'"),
    (r"scf\.for ", "for ", "did you mean 'scf.for'"),
    (r"scf\.yield ", "tile.yeild ", "did you mean 'tile.yield"),
    (r"tile\.kernel @", "tile.kernal @", "did you mean 'tile.kernel'"),
    (r"tile\.broadcast ", "tile.brodcast ", "did you mean 'tile.broadcast'"),
    (r"tile\.dim ", "tile.size ", "no operation 'tile.size'"),
    # Values.
    (r"%row, %", "%rows, %", "no value '%rows'; did you mean '%row'"),
    (r"%zero\) ->", "%zer) ->", "no value '%zer'; did you mean '%zero'"),
    (r"\[%row, (%\w+)\]", r"[row, \1]", "got 'row'; values begin with %; tile.load is written"),
    (r"%row = ", "row = ", "the name of a value begins with %: %row"),
    (r"%row = ", "%row := ", "a value and its operation have = between them"),
    (r"grid\(%m", "grid(m", "expected a value, got 'm'; values begin with %"),
    (r"scf\.for %(\w+) = %\w+", r"scf.for %\1 = 0", "got '0'; a number becomes a value by arith.constant"),
    (r"tile\.transpose %(\w+) :", r"tile.transpose(%\1) :", "operands have no brackets around them"),
    (r"arith\.muli %m, %", "arith.muli %m %", r"expected ',', got '%\w+'; arith.muli is written `%c = arith.muli %a, %b : !T`"),
    (r"\[%row, %", "[%row %", r"expected '\]', got '%\w+'; tile.load is written"),
    (r"tile\.load (%\w+)\[(%\w+, %\w+)\]", r"tile.load \1(\2)", r"expected '\['.*, got '\('; tile.load is written"),
    (r"tile\.store (%\w+), (%\w+\[.*?\])", r"tile.store \2, \1", r"expected ',', got '\['; tile.store is written"),
    (r"(tile\.dot %\w+), %", r"\1 %", "expected ',', got '%.*'; tile.dot is written"),
    # Types.
    (r" : !Acc\b", " : Acc", "the name of a type begins with !: !Acc"),
    (r"!Acc = ", "Acc = ", "the name of a type begins with !: !Acc"),
    (r" : !Acc\b", " : !Ac", "there is no type '!Ac'; did you mean .*'!Acc'"),
    (r"!tile\.view<", "!tile.veiw<", "there is no type '!tile.veiw'; the dialect has !tile.view"),
    (r"xf32>", "xfloat32>", "there is no type 'float32'; did you mean 'f32'"),
    (r": index\b", ": int", "there is no type 'int'; did you mean 'i32'"),
    (r"= tensor<", "= tensr<", "there is no type 'tensr'; did you mean 'tensor'"),
    (r"(= tensor<[$\w]*?)x", r"\1,", "the sizes of a tensor have x between them"),
    (r"(!tile\.view<\[\w+, [$\w]+\]),", r"\1", "expected ',', got '\\w+'"),
    (r"arith\.constant 0 : index", "arith.constant 0", "is i64, and index is used here; a constant is one as in `arith.constant 0 : index`"),
    (r"arith\.constant dense<0.0> : !Acc", "arith.constant 0.0 : !Acc", "a constant tile has its number in dense, as in `arith.constant dense<0.0> : !Acc`"),
    (r"arith\.constant dense<0.0> : !Acc", "arith.constant dense<0.0>", "expected"),
    (r"arith\.constant 0 : index", "arith.constant 0.5 : index", "'0.5' is no number of type index"),
    (r"%c: !|%o: !|%d: !", "%c !", "expected ':', got '!"),
    # Structure.
    (r"axis 1 :", "axis=1 :", "got '='; tile.broadcast is written `%t = tile.broadcast %row axis 1|got '='; tile.\\w+ is written"),
    (r"axis 1 :", "1 :", "expected 'axis', got '1'; tile.\\w+ is written"),
    (r"axis 1 :", "axis 2 :", "axis"),
    (r"tile\.kernel @(\w+)", r"tile.kernel \1", "expected valid '@'-identifier for symbol name, got"),
    (r"\bgrid\(", "gird(", "expected 'grid', got 'gird'; tile.kernel is written"),
    (r"(\w) ceildiv ", r"\1 / ", "got '/'; extents are divided by ceildiv"),
    (r"tile\.dim \"(\w+)\"", r"tile.dim \1", "tile.dim is written `%n = tile.dim \"N\"`"),
    (r"tile\.dim \"\w+\"", 'tile.dim "ZZ"', "ZZ"),
    (r" step %\w+", "", "expected 'step', got .*; scf.for is written"),
    (r"(iter_args\(.*\)) ->", r"\1", r"expected '->', got '\('; scf.for is written"),
    (r"    scf\.yield (.*)\n  }", r"    scf.yield \1", "this '{' has no '}'"),
    (r"\n}\n*$", "\n", "this '{' has no '}'"),
    (r"\n}\n*$", "\n}\n}\n", "this '}' closes nothing"),
    (r"scf\.yield .*", "scf.yield", r"gives on 0 values .* to a loop that carries \d"),
    (r" to (!\w+|tensor<.*>)\n  tile\.store", r" -> \1\n  tile.store", "expected 'to', got '->'; arith.truncf is written"),
    (r"(tile\.reduce|tile\.broadcast)( sum| max|) (%\w+) axis", r"\1\2 \3; axis", "';' has no meaning here"),
    (r"arith\.constant 0 : index", "arith.constant 0 : index;", "';' has no meaning here"),
    # Parameters and comments.
    (r"\A// ", "# ", "a comment begins with //"),
    (r"\A// ", "/* ", "a comment begins with //"),
    (r"\n(  %c0 = )", r"\n  # the first column\n\1", "a comment begins with //"),
    (r'"(element type.*?)"', r"\1", "expected the end of the declaration, got 'element'; its description stands in quotes"),
    (r"\nparam T ", "\nparam t ", "the name of a parameter consists of upper-case letters, digits and underscores, got 't'"),
    (r": type = bf16", ": type bf16", "expected '=' and a default"),
    (r": type = bf16", ": dtype = bf16", "a parameter is of kind int, bool, type or name, got 'dtype'"),
    (r": type = bf16 in", ": type = float in", "float"),
    (r"x\$T>", "x$TT>", "unknown parameter 'TT'; did you mean 'T'"),
    (r"\nparam T ", "\nparam EPS : float = 1.0e-5\nparam T ", "other numbers are scalar arguments of a kernel"),
]


def block(page, number):
    text = (FOLDER / "docs" / page).read_text()
    return re.findall(r"```tile\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[number]


def compile_source(text):
    path = OUT / "slip.tile"
    path.write_text(text)
    done = subprocess.run(["tessera", "compile", path, "--emit", "tile", "-o", "/dev/null"], capture_output=True, text=True)
    return done.returncode, done.stderr


def find_lines(before, after):
    """The first line that the slip changed, and where a line is missing the one before it too."""
    before, after = before.splitlines(), after.splitlines()
    line = next((i for i, (x, y) in enumerate(zip(before, after)) if x != y), min(len(before), len(after)))
    return range(line, line + 3) if len(before) != len(after) else range(line + 1, line + 2)


def judge(source, slip):
    """What is wrong with the message of a slip; empty for nothing."""
    pattern, replacement, wanted = slip
    text, count = re.subn(pattern, replacement, source, count=1)
    if not count:
        return None
    code, message = compile_source(text)
    place = re.search(r"slip\.tile:(\d+):\d+: error: (.*)", message)
    if code != 3 or not place:
        return f"exit code {code}: {message}"
    if not re.search(wanted, place[2]):
        return f"says: {place[2]}"
    # A brace belongs to another line, and a value of the wrong type is seen where it is used.
    lines, elsewhere = find_lines(source, text), "has no '}'" in wanted or "is used here" in wanted
    return "" if int(place[1]) in lines or elsewhere else f"at line {place[1]}, not {lines}: {place[2]}"


def main():
    OUT.mkdir(exist_ok=True)
    sources = {"scaled": block("first-kernel.md", 0), "epilogue": block("kernels.md", 0),
               "attention": block("lessons.md", 2)}
    failures = 0
    for name, source in sources.items():
        code, message = compile_source(source)
        assert code == 0, message
        results = [(slip, judge(source, slip)) for slip in SLIPS]
        judged = [(slip, result) for slip, result in results if result is not None]
        for slip, result in judged:
            if result:
                failures += 1
                print(f"{name}: {slip[0]} -> {slip[1]}\n  {result}")
        print(f"{name}: {len(judged)} slips")
        assert len(judged) >= 60, [slip for slip, result in results if result is None]
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
