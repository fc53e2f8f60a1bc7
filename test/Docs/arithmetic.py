# RUN: %python %s %source/docs/kernels.md
"""The arithmetic that docs/kernels.md lists compiles to PTX, on tiles and on scalars, and what it says is missing does
not."""

import pathlib
import re
import subprocess
import sys
import tempfile

HEAD = """tile.kernel @k(%x: !tile.view<[M, 64], bf16>,
    %y: !tile.view<[N, 64], bf16>, %o: !tile.view<[M, 64], f32>, %a: f32, %i: i32)
    grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %xt = tile.load %x[%row, %c0] : !tile.view<[M, 64], bf16> -> tensor<64x64xbf16>
  %yt = tile.load %y[%c0, %c0] : !tile.view<[N, 64], bf16> -> tensor<64x64xbf16>
  %d = tile.dot %xt, %yt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  %j = arith.fptosi %d : tensor<64x64xf32> to tensor<64x64xi32>
"""
# Other numbers of operands than two.
UNARY = "negf absf absi floor ceil sqrt rsqrt exp exp2 log log2 sin cos tanh erf expm1 log1p tan atan round trunc roundeven sigmoid".split()


def operation(name, result, value, other, type, boolean):
    dialect, short = name.split(".")
    if short in ("cmpf", "cmpi"):
        predicate = "ogt" if short == "cmpf" else "slt"
        return f"  {result}.p = {name} {predicate}, {value}, {other} : {type}\n" + operation(
            "arith.select", result, value, other, type, boolean
        ).replace("CONDITION", f"{result}.p")
    if short == "select":
        return f"  {result} = {name} CONDITION, {value}, {other} : {boolean}, {type}\n"
    operands = 1 if short in UNARY else 3 if short == "fma" else 2
    return f"  {result} = {name} {', '.join([value, other, other][:operands])} : {type}\n"


def kernel(names, kind):
    """A kernel that applies each operation to the one before, on tiles, and once more on scalars."""
    # A selection is compiled with the comparison.
    names = [name for name in names if name != "arith.select"]
    first, argument = ("%d", "%a") if kind == "f32" else ("%j", "%i")
    text, tile, scalar = HEAD, first, argument
    for n, name in enumerate(names):
        text += operation(name, f"%t{n}", tile, first, f"tensor<64x64x{kind}>", "tensor<64x64xi1>")
        text += operation(name, f"%s{n}", scalar, argument, kind, "i1").replace(" : i1, ", " : ")
        tile, scalar = f"%t{n}", f"%s{n}"
    text += f"  %both = tile.splat {scalar} : {kind} -> tensor<64x64x{kind}>\n"
    if kind == "i32":
        text += f"  %sum = arith.addi {tile}, %both : tensor<64x64xi32>\n"
        text += "  %r = arith.sitofp %sum : tensor<64x64xi32> to tensor<64x64xf32>\n"
    else:
        text += f"  %r = arith.addf {tile}, %both : tensor<64x64xf32>\n"
    return text + "  tile.store %r, %o[%row, %c0] : tensor<64x64xf32>, !tile.view<[M, 64], f32>\n}\n"


def compile_kernel(text):
    with tempfile.NamedTemporaryFile("w", suffix=".tile") as file:
        file.write(text)
        file.flush()
        command = ["tessera", "compile", file.name, "--emit=ptx", "--output=/dev/null"]
        return subprocess.run(command, capture_output=True, text=True)


def list_operations(cell):
    """Of "`arith.addf subf`, `math.exp`" arith.addf, arith.subf and math.exp."""
    for dialect, names in re.findall(r"`(arith|math|tile)\.([\w ]+)", cell):
        yield from (f"{dialect}.{name}" for name in names.split())


def main(path):
    section = path.read_text().split("## Arithmetic")[1].split("\n## ")[0]
    failures = 0
    for kind in ("f32", "i32"):
        (row,) = re.findall(rf"^\| `{kind}`: [^|]*\|([^|]*)\|", section, re.MULTILINE)
        names = list(list_operations(row))
        assert len(names) > 15, row
        text = kernel(names, kind)
        done = compile_kernel(text)
        if done.returncode:
            failures += 1
            print(f"operations of {kind}:\n{done.stderr}\n{text}")
    missing = section.split("| not there |")[1]
    rows = re.findall(r"^\| ([^|]*)\|([^|]*)\|", missing, re.MULTILINE)
    ways = {name: instead for cell, instead in rows for name in list_operations(cell)}
    assert "math.erf" in ways, ways
    for name, instead in ways.items():
        done = compile_kernel(kernel([name], "f32"))
        # The error has one of the ways out of the page, and nothing about schedules.
        operations = re.findall(r"`(\w+\.\w+)`", instead)
        says = "has no instructions on the machine" in done.stderr and any(way in done.stderr for way in operations)
        if done.returncode != 3 or not says or "note:" in done.stderr:
            failures += 1
            print(f"{name} is said to be missing: {done.returncode}\n{done.stderr}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
