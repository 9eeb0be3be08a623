"""planning/ and ops/ hold no price: what a byte or a flop takes stands in cost/, and in machines' files."""

import ast
import re
from pathlib import Path

import pytest

import shardpass

PACKAGE = Path(shardpass.__file__).parent
ROOMS = ("planning", "ops")
MAKES_MACHINES = {"Machine", "from_table", "Switch", "Direct", "Torus"}
UNITS = re.compile(r"^_?[A-Z][A-Z_]*(?:: [^=]+)? = -?[\d.].*#.*\b(bytes?|seconds?|latency|flops|cost|price|worth)\b")

# What looks like a price and is none, or is left; by file, a part of its line, and why.
KNOWN = {
    ("planning/options/reshards.py", "ALIKE ="): "rounding",
    ("planning/decide/bound.py", "SAME ="): "a part of the program's price",
    ("planning/decide/candidates.py", "ENOUGH ="): "rounding",
    ("planning/decide/search.py", "WEIGHTS ="): "parts of prices in further solutions",
    ("planning/decide/search.py", "FASTER ="): "a part of a makespan",
    ("planning/decide/bound.py", "BUSY ="): "a part of a makespan",
    ("planning/decide/bound.py", "WEIGHTS ="): "parts of prices in solutions that serve a bound",
    ("planning/decide/search.py", "NEAR ="): "a part of a makespan",
    ("planning/decide/search.py", "HIDEABLE ="): "a part of a makespan",
    ("planning/decide/search.py", "ROUNDING ="): "rounding",
    ("planning/decide/bound.py", "within {max("): "a percentage for people",
    ("planning/solve/highs.py", "mip_rel_gap"): "a part of the price",
    ("planning/solve/reduce.py", "CLOSE ="): "a part of a bound",
    ("planning/solve/reduce.py", "ROUNDING ="): "rounding",
    ("planning/solve/result.py", "PROVED ="): "rounding",
    ("planning/solve/toulbar2.py", "PRECISE ="): "rounding",
    ("planning/solve/toulbar2.py", "FINE, FINER ="): "units in a price",
    ("planning/solve/toulbar2.py", "LARGEST ="): "a number of units",
    ("planning/solve/toulbar2.py", "ACCURATE ="): "a part of a bound",
    ("planning/options/equal_ways.py", "EQUAL ="): "rounding",
    ("planning/decide/solver.py", "CLOSE ="): "a part of a bound",
    ("planning/decide/solver.py", "RESIDENT ="): "a part of the program's price",
    ("planning/decide/solver.py", "CHANGE ="): "a part of the program's price",
    ("planning/decide/solver.py", "RESCALED ="): "a part of a price",
    ("planning/price/clock.py", "MADE ="): "what decides between equal splits",
    ("planning/plan/task.py", "RESIDENT ="): "left: what memory is worth in time",
    ("planning/decide/within.py", "CLOSE ="): "a part of a bound",
    ("planning/decide/within.py", "SAME ="): "a part of a price",
    ("planning/price/clock.py", "MANY ="): "a size at which the machine is asked",
    ("planning/plan/text.py", "* 1000000.0"): "microseconds for people",
    ("ops/families/static_windows.py", "1 / 2"): "a share of what is copied",
}


def found_in(text: str) -> list[tuple[int, str]]:
    """(line, text) of what looks like a price: fractions, machines that are made, constants in units of a price."""
    lines, out = text.splitlines(), set()
    for number, line in enumerate(lines, 1):
        if UNITS.search(line):
            out.add((number, line))
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Constant(value=float(value)) if value not in (0.0, 1.0):
                out.add((node.lineno, f"{lines[node.lineno - 1]}  * {value}"))
            case ast.BinOp(ast.Constant(), ast.Div(), ast.Constant()):
                out.add((node.lineno, f"{lines[node.lineno - 1]}  {ast.unparse(node)}"))
            case ast.Call(func) if ast.unparse(func).rpartition(".")[2] in MAKES_MACHINES:
                out.add((node.lineno, ast.unparse(node)))
    return sorted(out)


def is_known(file: str, line: str) -> bool:
    return any(file == known and part in line for known, part in KNOWN)


def test_no_price_is_stated_outside() -> None:
    found = [
        f"{file}:{number}: {line}"
        for room in ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for file in [path.relative_to(PACKAGE).as_posix()]
        for number, line in found_in(path.read_text())
        if not is_known(file, line)
    ]
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "LATENCY = 512  # bytes that take as long as a collective starts",
        "def price(n):\n    return n * 1e-6",
        "SHARE = 1 / 64",
        "USUAL = Switch(None, 1e-6, 1e9)",
    ],
)
def test_the_search_for_prices_finds_one(text: str) -> None:
    assert found_in(text)
    assert not is_known("planning/decide/search.py", found_in(text)[0][1])
