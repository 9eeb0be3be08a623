"""The laws that proofs take, on all numbers of small types: each is exact, or a proof that takes it says so.

A law is checked by pairs of programs, its two sides. The interpreter runs both on every number of a type of 4 or 8
bits, signed zeros, infinities and NaN among them, and on all pairs of two numbers. The prover is given the same
programs of a few elements.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support.pairs import Pair, Side, constant, equal_bits, reduced, same, summed

from shardpass.element_types import element_type
from shardpass.proving import prove
from shardpass.proving.relations import laws as law_table
from shardpass.proving.relations.laws import EXACT, INEXACT, LAWS, Law

INTEGERS = ("i4", "ui4", "i8", "ui8")
FLOATS = ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ")
WITH_NEGATIVE_ZERO = ("f8E4M3FN", "f8E5M2")
MIXED = ("i4", "ui8", "f8E5M2")
FEW = 4  # elements of what is proved


def every(kind: str) -> Any:
    """All numbers of a type, each once; -0 and all NaN among them."""
    dtype, bits = element_type(kind).dtype, int("".join(c for c in kind[:3] if c.isdigit())[:1])
    assert dtype is not None
    if kind in INTEGERS:
        low = 0 if kind.startswith("u") else -(2 ** (bits - 1))
        return np.arange(low, low + 2**bits).astype(dtype)
    return np.arange(256).astype(np.uint8).view(dtype)


def grid(kind: str, operands: int) -> list[Any]:
    """All combinations of numbers; where there are three, of the corners of the type, with all of the first operand."""
    values = every(kind)
    count = len(values)
    ends = [range(0, count, max(count // 8, 1)), range(count * 15 // 32, count // 2), range(count * 31 // 32, count)]
    corners = values[sorted({k for part in ends for k in part})] if operands > 2 else values
    axes = np.meshgrid(*(np.arange(count), *[np.arange(len(corners))] * (operands - 1)), indexing="ij")
    return [(values if k == 0 else corners)[axis.ravel()] for k, axis in enumerate(axes)]


@dataclass(frozen=True)
class Sides:
    """The two sides of a law for arrays of ``n`` elements, as bodies of a function of the operands x and y."""

    whole: Callable[[str, int], str]
    local: Callable[[str, int], str]
    kinds: tuple[str, ...]
    operands: int = 1
    over_devices: bool = False  # the operand is a row on each device, and the local side adds up over devices
    result: str = ""  # the type of the result, where it is another one

    def pair(self, kind: str, n: int) -> Pair:
        arguments = [same(f"{n}x{kind}") for _ in range(self.operands)]
        if self.over_devices:
            arguments[0] = Side(f"1x{n}x{kind}", f"2x{n}x{kind}", "{devices=[2,1]<=[2]}")
        return Pair(arguments, same(f"{n}x{self.result or kind}"), self.whole(kind, n), self.local(kind, n))

    def arrays(self, kind: str) -> list[Any]:
        if not self.over_devices:
            return grid(kind, self.operands)
        first, second, *more = grid(kind, self.operands + 1)
        return [np.stack([first, second]), *more]


def itself(kind: str, n: int) -> str:
    return f"  %r = stablehlo.optimization_barrier %x : tensor<{n}x{kind}>"


def with_constant(op: str, value: str) -> Callable[[str, int], str]:
    return lambda kind, n: constant("c", value, f"{n}x{kind}") + f"\n  %r = stablehlo.{op} %x, %c : tensor<{n}x{kind}>"


def lines(*texts: str) -> Callable[[str, int], str]:
    """Ops whose types are all that of the operands."""
    return lambda kind, n: "\n".join(f"  {text} : tensor<{n}x{kind}>" for text in texts)


def row(name: str, kind: str, n: int, rows: int) -> str:
    return f"  %{name} = stablehlo.reshape %x : (tensor<{rows}x{n}x{kind}>) -> tensor<{n}x{kind}>"


def total(kind: str, n: int, name: str = "t") -> str:
    """The sum of the two rows."""
    return f"""  %{name}_i = stablehlo.constant dense<0{"" if kind in INTEGERS else ".0"}> : tensor<{kind}>
  %{name} = stablehlo.reduce(%x init: %{name}_i) applies stablehlo.add across dimensions = [0]
    : (tensor<2x{n}x{kind}>, tensor<{kind}>) -> tensor<{n}x{kind}>"""


def own(kind: str, n: int, name: str = "t") -> str:
    return total(kind, n, name).replace("tensor<2x", "tensor<1x")


def neutral() -> Iterator[Sides]:
    for op, value in (("add", "-0.0"), ("subtract", "0.0"), ("multiply", "1.0"), ("divide", "1.0")):
        yield Sides(itself, with_constant(op, value), WITH_NEGATIVE_ZERO)
        yield Sides(itself, with_constant(op, value.removeprefix("-")), ("f8E4M3FNUZ",))
    for op, bits in (("maximum", "0xFC"), ("minimum", "0x7C")):
        yield Sides(itself, with_constant(op, bits), ("f8E5M2",))
    for op, value in (("add", "0"), ("subtract", "0"), ("multiply", "1"), ("divide", "1"), ("or", "0"), ("xor", "0")):
        yield Sides(itself, with_constant(op, value), INTEGERS)
    for op, signed in (("maximum", ("-8", "-128")), ("minimum", ("7", "127")), ("and", ("-1", "-1"))):
        for kind, value in zip(("i4", "i8"), signed, strict=True):
            yield Sides(itself, with_constant(op, value), (kind,))


def swapped(op: str) -> Sides:
    ops = lines(f"%r = stablehlo.{op} %x, %y"), lines(f"%r = stablehlo.{op} %y, %x")
    return Sides(*ops, (*INTEGERS, *FLOATS), operands=2)


def bits(kind: str, n: int) -> str:
    there = f"  %b = stablehlo.bitcast_convert %x : (tensor<{n}x{kind}>) -> tensor<{n}xui8>"
    return f"{there}\n  %r = stablehlo.bitcast_convert %b : (tensor<{n}xui8>) -> tensor<{n}x{kind}>"


def counted(op: str, by: int) -> Sides:
    """Positions of type i8 or ui8 as f32, and ``by``, which is added to them or with which they are multiplied."""

    def whole(kind: str, n: int) -> str:
        return "\n".join((
            f"  %i = stablehlo.iota dim = 0 : tensor<{n}xi32>",
            f"  %f = stablehlo.convert %i : (tensor<{n}xi32>) -> tensor<{n}xf32>",
            constant("c", f"{by}.0", f"{n}xf32"),
            f"  %r = stablehlo.{op} %f, %c : tensor<{n}xf32>",
        ))  # fmt: skip

    def local(kind: str, n: int) -> str:
        return "\n".join((
            f"  %i = stablehlo.iota dim = 0 : tensor<{n}xi32>",
            constant("c", str(by), f"{n}xi32"),
            f"  %s = stablehlo.{op} %i, %c : tensor<{n}xi32>",
            f"  %r = stablehlo.convert %s : (tensor<{n}xi32>) -> tensor<{n}xf32>",
        ))  # fmt: skip

    return Sides(whole, local, ("f8E5M2",), result="f32")


def shifted(first: int, second: int) -> Sides:
    def two(kind: str, n: int) -> str:
        constants = (constant("a", str(first), f"{n}x{kind}"), constant("b", str(second), f"{n}x{kind}"))
        return "\n".join((*constants, lines("%s = stablehlo.add %x, %a", "%r = stablehlo.add %s, %b")(kind, n)))

    def one(kind: str, n: int) -> str:
        bits = int(kind[-1])
        low = 0 if kind.startswith("u") else -(2 ** (bits - 1))
        both = (first + second - low) % 2**bits + low
        return with_constant("add", str(both))(kind, n)

    return Sides(two, one, INTEGERS)


def is_at(offset: int) -> Sides:
    """Whether x less the offset is 1, and whether x is 1 more than it."""

    def test(name: str, value: str, kind: str, n: int) -> str:
        types = f"(tensor<{n}x{kind}>, tensor<{n}x{kind}>) -> tensor<{n}xi1>"
        return f"{constant('v', value, f'{n}x{kind}')}\n  %r = stablehlo.compare EQ, %{name}, %v : {types}"

    def whole(kind: str, n: int) -> str:
        less = constant("c", str(offset), f"{n}x{kind}") + f"\n  %s = stablehlo.subtract %x, %c : tensor<{n}x{kind}>\n"
        return less + test("s", "1", kind, n)

    return Sides(whole, lambda kind, n: test("x", str(offset + 1), kind, n), INTEGERS, result="i1")


def clamp(low: int, high: int) -> Sides:
    def body(kind: str, n: int, times: int) -> str:
        bounds = constant("a", str(low), f"{n}x{kind}") + "\n" + constant("b", str(high), f"{n}x{kind}")
        if times == 1:
            return f"{bounds}\n  %r = stablehlo.clamp %a, %x, %b : tensor<{n}x{kind}>"
        return f"{bounds}\n{lines('%s = stablehlo.clamp %a, %x, %b', '%r = stablehlo.clamp %a, %s, %b')(kind, n)}"

    return Sides(lambda kind, n: body(kind, n, 1), lambda kind, n: body(kind, n, 2), INTEGERS)


def written(first: str, second: str, low: str, high: str, kinds: tuple[str, ...]) -> Sides:
    """A clamp, and two ops in its place: the first by its lower bound if that is a maximum, else by its upper one."""

    def bounds(kind: str, n: int) -> str:
        return constant("a", low, f"{n}x{kind}") + "\n" + constant("b", high, f"{n}x{kind}") + "\n"

    own, other = ("%a", "%b") if first == "maximum" else ("%b", "%a")
    ops = lines(f"%s = stablehlo.{first} {own}, %x", f"%r = stablehlo.{second} {other}, %s")
    one = lines("%r = stablehlo.clamp %a, %x, %b")
    return Sides(lambda kind, n: bounds(kind, n) + one(kind, n), lambda kind, n: bounds(kind, n) + ops(kind, n), kinds)


def between() -> Sides:
    """A clamp whose bounds are no constants."""
    ops = lines("%s = stablehlo.maximum %y, %x", "%r = stablehlo.minimum %s, %z")
    return Sides(lines("%r = stablehlo.clamp %x, %y, %z"), ops, MIXED, operands=3)


def compared(direction: str, turned: str) -> Sides:
    def body(kind: str, n: int, text: str) -> str:
        return f"  %r = stablehlo.compare {text} : (tensor<{n}x{kind}>, tensor<{n}x{kind}>) -> tensor<{n}xi1>"

    return Sides(lambda kind, n: body(kind, n, f"{direction}, %x, %y"),
                 lambda kind, n: body(kind, n, f"{turned}, %y, %x"),
                 MIXED, operands=2, result="i1")  # fmt: skip


def bounded(op: str, other: str) -> Sides:
    """``other`` of y, or a clamp, of the rows that ``op`` joins; and ``op`` of that of each row."""

    def rows(kind: str, n: int, count: int) -> str:
        init = "0" if kind in INTEGERS else {"maximum": "0xFC", "minimum": "0x7C"}[op]
        return reduced("t", "x", f"{count}x{n}x{kind}", f"{n}x{kind}", init, op)

    def of_rows(name: str, kind: str, n: int) -> str:
        if other != "clamp":
            return f"\n  %{name} = stablehlo.{other} %t, %y : tensor<{n}x{kind}>\n"
        bounds = constant("a", "1", f"{n}x{kind}"), constant("b", "5", f"{n}x{kind}")
        return "\n".join(("", *bounds, f"  %{name} = stablehlo.clamp %a, %t, %b : tensor<{n}x{kind}>", ""))

    def whole(kind: str, n: int) -> str:
        return rows(kind, n, 2) + of_rows("r", kind, n)

    def local(kind: str, n: int) -> str:
        return rows(kind, n, 1) + of_rows("p", kind, n) + summed("r", "p", f"{n}x{kind}", op)

    if other == "clamp":
        return Sides(whole, local, ("i4", "ui8"), over_devices=True)
    return Sides(whole, local, MIXED if op in ("maximum", "minimum") else ("i4", "ui8"), operands=2, over_devices=True)


def deciding(op: str, value: str, kinds: tuple[str, ...]) -> Sides:
    return Sides(lambda kind, n: constant("r", value, f"{n}x{kind}"), with_constant(op, value), kinds)


def zero_twice(times: int) -> Callable[[str, int], str]:
    texts = ["%a = stablehlo.add %c, %x", "%b = stablehlo.add %c, %a"][:times]
    texts[-1] = "%r" + texts[-1][2:]
    return lambda kind, n: constant("c", "0.0", f"{n}x{kind}") + "\n" + lines(*texts)(kind, n)


def scaled(op: str) -> Sides:
    """A sum times y, and the sum of rows times y."""

    def whole(kind: str, n: int) -> str:
        return f"{total(kind, n)}\n  %r = stablehlo.{op} %t, %y : tensor<{n}x{kind}>"

    def local(kind: str, n: int) -> str:
        return "\n".join((own(kind, n), f"  %p = stablehlo.{op} %t, %y : tensor<{n}x{kind}>",
                          summed("r", "p", f"{n}x{kind}")))  # fmt: skip

    return Sides(whole, local, FLOATS, operands=2, over_devices=True)


def narrowed(to: str) -> Sides:
    """A sum that is converted, and the sum of converted rows."""

    def convert(name: str, of: str, kind: str, n: int) -> str:
        return f"  %{name} = stablehlo.convert %{of} : (tensor<{n}x{kind}>) -> tensor<{n}x{to}>"

    def whole(kind: str, n: int) -> str:
        return f"{total(kind, n)}\n{convert('r', 't', kind, n)}"

    def local(kind: str, n: int) -> str:
        return "\n".join((own(kind, n), convert("p", "t", kind, n), summed("r", "p", f"{n}x{to}")))

    return Sides(whole, local, WITH_NEGATIVE_ZERO, over_devices=True, result=to)


def apart(op: str, wide: str, other: str = "") -> Sides:
    """``op`` of two integers, and the same, or ``other``, in a wider type, of which the lowest bits are kept."""

    def local(kind: str, n: int) -> str:
        types = f"(tensor<{n}x{kind}>) -> tensor<{n}x{wide}>", f"(tensor<{n}x{wide}>) -> tensor<{n}x{kind}>"
        return "\n".join((
            f"  %a = stablehlo.convert %x : {types[0]}", f"  %b = stablehlo.convert %y : {types[0]}",
            f"  %s = stablehlo.{other or op} %a, %b : tensor<{n}x{wide}>", f"  %r = stablehlo.convert %s : {types[1]}",
        ))  # fmt: skip

    return Sides(lines(f"%r = stablehlo.{op} %x, %y"), local, INTEGERS, operands=2)


def products(last: int = 2) -> Sides:
    """(x - 1) * (y - 2), and its four products; ``last``: the one of the constants."""

    def texts(kind: str, n: int, *ops: str) -> str:
        rows = (constant(name, str(value), f"{n}x{kind}") for name, value in (("a", 1), ("b", 2), ("c", last)))
        return "\n".join((*rows, lines(*ops)(kind, n)))

    one = ("%s = stablehlo.subtract %x, %a", "%t = stablehlo.subtract %y, %b", "%r = stablehlo.multiply %s, %t")
    four = ("%p = stablehlo.multiply %x, %y", "%s = stablehlo.add %p, %c", "%q = stablehlo.multiply %x, %b",
            "%t = stablehlo.subtract %s, %q", "%r = stablehlo.subtract %t, %y")  # fmt: skip
    return Sides(lambda kind, n: texts(kind, n, *one), lambda kind, n: texts(kind, n, *four), INTEGERS, operands=2)


def counts(whole: str, op: str, direction: str, least: int) -> Sides:
    """A truth value of two numbers that are not 0, and a comparison of their count, their least or their greatest."""

    def tests(kind: str, n: int) -> str:
        types = f"(tensor<{n}x{kind}>, tensor<{n}x{kind}>) -> tensor<{n}xi1>"
        rows = (f"  %{name} = stablehlo.compare NE, %{of}, %zero : {types}" for name, of in (("a", "x"), ("b", "y")))
        return "\n".join((constant("zero", "0", f"{n}x{kind}"), *rows, ""))

    def local(kind: str, n: int) -> str:
        wide = (f"  %{name}_i = stablehlo.convert %{name} : (tensor<{n}xi1>) -> tensor<{n}xi32>" for name in "ab")
        types = f"(tensor<{n}xi32>, tensor<{n}xi32>) -> tensor<{n}xi1>"
        return tests(kind, n) + "\n".join((
            *wide, f"  %s = stablehlo.{op} %a_i, %b_i : tensor<{n}xi32>", constant("k", str(least), f"{n}xi32"),
            f"  %r = stablehlo.compare {direction}, %s, %k : {types}",
        ))  # fmt: skip

    return Sides(lambda kind, n: f"{tests(kind, n)}  %r = stablehlo.{whole} %a, %b : tensor<{n}xi1>", local,
                 ("i4", "ui8"), operands=2, result="i1")  # fmt: skip


def function(
    first: Sequence[str],
    second: Sequence[str],
    *constants: tuple[str, str],
    operands: int = 1,
) -> Sides:
    def body(kind: str, n: int, texts: Sequence[str]) -> str:
        return "\n".join((*(constant(*c, f"{n}x{kind}") for c in constants), lines(*texts)(kind, n)))

    return Sides(
        lambda kind, n: body(kind, n, first), lambda kind, n: body(kind, n, second), WITH_NEGATIVE_ZERO, operands
    )


def chosen(select: str, direction: str, other: str, *constants: str) -> Sides:
    """A selection by a comparison of x and y, and another program of both."""

    def body(kind: str, n: int, texts: Sequence[str]) -> str:
        types = f"(tensor<{n}x{kind}>, tensor<{n}x{kind}>) -> tensor<{n}xi1>"
        ends = {
            "compare": types,
            "select": f"tensor<{n}xi1>, tensor<{n}x{kind}>",
            "convert": f"(tensor<{n}xi1>) -> tensor<{n}x{kind}>",
        }
        rows = (f"  {text} : {ends.get(text.split('.')[1].split()[0], f'tensor<{n}x{kind}>')}" for text in texts)
        return "\n".join((*(constant("c", value, f"{n}x{kind}") for value in constants), *rows))

    compare = f"%p = stablehlo.compare {direction}, %x, %y"
    return Sides(lambda kind, n: body(kind, n, [compare, f"%r = stablehlo.select %p, {select}"]),
                 lambda kind, n: body(kind, n, [compare, *other.split("; ")]),
                 WITH_NEGATIVE_ZERO, operands=2)  # fmt: skip


def negation() -> Sides:
    def body(kind: str, n: int, text: str) -> str:
        return f"  {text} : (tensor<{n}x{kind}>, tensor<{n}x{kind}>) -> tensor<{n}xi1>"

    return Sides(lambda kind, n: body(kind, n, "%r = stablehlo.compare LE, %y, %x"),
                 lambda kind, n: body(kind, n, "%p = stablehlo.compare LT, %x, %y")
                 + f"\n  %r = stablehlo.not %p : tensor<{n}xi1>",
                 WITH_NEGATIVE_ZERO, operands=2, result="i1")  # fmt: skip


ARGMAX = """  %i = stablehlo.iota dim = 0 : tensor<{0}xi32>
  %least = stablehlo.constant dense<0xFC> : tensor<{1}>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %v, %k = stablehlo.reduce(%{2} init: %least), (%w init: %none) across dimensions = [0]
    : (tensor<{0}x{3}{1}>, tensor<{0}x{3}i32>, tensor<{1}>, tensor<i32>) -> (tensor<{3}{1}>, tensor<{3}i32>)
    reducer(%a: tensor<{1}>, %b: tensor<{1}>) (%c: tensor<i32>, %d: tensor<i32>) {{
      %0 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<{1}>, tensor<{1}>) -> tensor<i1>
      %1 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<{1}>, tensor<{1}>) -> tensor<i1>
      %2 = stablehlo.or %0, %1 : tensor<i1>
      %3 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<{1}>, tensor<{1}>) -> tensor<i1>
      %4 = stablehlo.compare LT, %c, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %5 = stablehlo.and %3, %4 : tensor<i1>
      %6 = stablehlo.or %2, %5 : tensor<i1>
      %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<{1}>
      %8 = stablehlo.select %6, %c, %d : tensor<i1>, tensor<i32>
      stablehlo.return %7, %8 : tensor<{1}>, tensor<i32>
    }}"""


def first(offset: str = "add", beyond: str = "99", joined: str = "minimum") -> Sides:
    """The place of the greatest of two rows, and the least place among the rows that have the greatest."""

    def index(kind: str, n: int, rows: int) -> str:
        wide = f"  %w = stablehlo.broadcast_in_dim %i, dims = [0] : (tensor<{rows}xi32>) -> tensor<{rows}x{n}xi32>"
        first, rest = ARGMAX.format(rows, kind, "x", f"{n}x").split("\n", 1)
        return "\n".join((first, wide, rest))

    def local(kind: str, n: int) -> str:
        types = f"(tensor<{n}x{kind}>, tensor<{n}x{kind}>) -> tensor<{n}xi1>"
        return "\n".join((
            index(kind, n, 1), "  %id = stablehlo.partition_id : tensor<ui32>",
            "  %at = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>",
            f"  %o = stablehlo.broadcast_in_dim %at, dims = [] : (tensor<i32>) -> tensor<{n}xi32>",
            f"  %l = stablehlo.{offset} %k, %o : tensor<{n}xi32>",
            reduced("m", "x", f"1x{n}x{kind}", f"{n}x{kind}", "0xFC", "maximum"),
            summed("g", "m", f"{n}x{kind}", "maximum"), f"  %e = stablehlo.compare EQ, %m, %g : {types}",
            constant("big", beyond, f"{n}xi32"),
            f"  %s = stablehlo.select %e, %l, %big : tensor<{n}xi1>, tensor<{n}xi32>",
            summed("r", "s", f"{n}xi32", joined),
        ))  # fmt: skip

    def whole(kind: str, n: int) -> str:
        return f"{index(kind, n, 2)}\n  %r = stablehlo.optimization_barrier %k : tensor<{n}xi32>"

    return Sides(whole, local, ("f8E5M2",), over_devices=True, result="i32")


CHECKS: Mapping[str, tuple[Sides, ...]] = {
    "neutral element": tuple(neutral()),
    "difference": (
        Sides(lines("%r = stablehlo.subtract %x, %y"), lines("%m = stablehlo.negate %y", "%r = stablehlo.add %x, %m"),
              (*INTEGERS, *FLOATS), operands=2),
    ),
    "double negative": (
        Sides(itself, lines("%m = stablehlo.negate %x", "%r = stablehlo.negate %m"), ("i4", "i8", *FLOATS)),
    ),
    "order of operands": tuple(swapped(op) for op in ("add", "multiply", "maximum", "minimum")),
    "one operand": (
        *(Sides(itself, lines(f"%r = stablehlo.{op} %x, %x"), (*INTEGERS, *FLOATS)) for op in ("maximum", "minimum")),
        *(Sides(itself, lines(f"%r = stablehlo.{op} %x, %x"), INTEGERS) for op in ("and", "or")),
    ),
    "deciding operand": (
        deciding("multiply", "0", INTEGERS), deciding("and", "0", INTEGERS), deciding("or", "-1", ("i4", "i8")),
        deciding("maximum", "127", ("i8",)), deciding("minimum", "-8", ("i4",)),
    ),
    "written clamp": (
        written("maximum", "minimum", "1", "5", ("i4", "ui8")), written("minimum", "maximum", "1", "5", ("i4", "ui8")),
        written("maximum", "minimum", "5", "1", ("i8",)), written("maximum", "minimum", "0.0", "-0.0", FLOATS),
        written("minimum", "maximum", "-0.5", "2.0", FLOATS), between(),
    ),
    "turned comparison": tuple(compared(*pair) for pair in (("GT", "LT"), ("LE", "GE"), ("EQ", "EQ"), ("NE", "NE"))),
    "common bound": tuple(bounded(*pair) for pair in (("maximum", "minimum"), ("minimum", "maximum"), ("and", "or"),
                                                      ("or", "and"), ("maximum", "clamp"))),
    "clamp of a clamp": (clamp(1, 5), clamp(5, 1)),
    "wrap of sums": (shifted(5, 6), shifted(7, 2), is_at(3), is_at(6)),
    "repeated zero": (Sides(zero_twice(1), zero_twice(2), FLOATS),),
    "there and back": (Sides(itself, bits, (*FLOATS, "i8")),),
    "whole numbers": (counted("add", 3), counted("subtract", 5), counted("multiply", 3)),
    "narrower integers": (apart("add", "i16"), apart("multiply", "i32"), apart("subtract", "ui16")),
    "products of sums": (products(),),
    "counts": (
        counts("or", "add", "GE", 1), counts("or", "add", "GT", 0), counts("and", "add", "EQ", 2),
        counts("and", "minimum", "EQ", 1), counts("or", "maximum", "NE", 0),
    ),
    "cancellation": (
        function(["%s = stablehlo.add %x, %y", "%r = stablehlo.subtract %s, %y"],
                 ["%r = stablehlo.optimization_barrier %x"], operands=2),
        function(["%r = stablehlo.multiply %x, %c"], ["%r = stablehlo.optimization_barrier %c"], ("c", "0.0")),
    ),
    "exponents": (
        function(["%s = stablehlo.add %x, %y", "%r = stablehlo.exponential %s"],
                 ["%a = stablehlo.exponential %x", "%b = stablehlo.exponential %y", "%r = stablehlo.multiply %a, %b"],
                 operands=2),
        function(["%e = stablehlo.exponential %x", "%p = stablehlo.multiply %e, %y", "%r = stablehlo.log %p"],
                 ["%l = stablehlo.log %y", "%r = stablehlo.add %l, %x"], operands=2),
    ),
    "written functions": (
        function(["%r = stablehlo.rsqrt %x"], ["%s = stablehlo.sqrt %x", "%r = stablehlo.divide %c, %s"], ("c", "1.0")),
        function(["%r = stablehlo.log_plus_one %x"], ["%s = stablehlo.add %x, %c", "%r = stablehlo.log %s"],
                 ("c", "1.0")),
        function(["%r = stablehlo.exponential_minus_one %x"],
                 ["%e = stablehlo.exponential %x", "%r = stablehlo.subtract %e, %c"], ("c", "1.0")),
    ),
    "selection": (
        chosen("%x, %y", "GT", "%r = stablehlo.maximum %x, %y"),
        chosen("%x, %y", "LE", "%r = stablehlo.minimum %x, %y"),
        chosen("%x, %c", "GT", "%q = stablehlo.convert %p; %r = stablehlo.multiply %q, %x", "0.0"),
        chosen("%x, %c", "GT",
               "%q = stablehlo.convert %p; %s = stablehlo.multiply %q, %x; %r = stablehlo.multiply %q, %s", "0.0"),
    ),
    "cancelled divisor": (
        function(["%r = stablehlo.optimization_barrier %y"],
                 ["%s = stablehlo.multiply %x, %x", "%t = stablehlo.add %s, %c", "%d = stablehlo.divide %y, %t",
                  "%r = stablehlo.multiply %d, %t"], ("c", "1.0"), operands=2),
        function(["%r = stablehlo.optimization_barrier %y"],
                 ["%e = stablehlo.exponential %x", "%t = stablehlo.add %e, %c", "%d = stablehlo.divide %y, %t",
                  "%r = stablehlo.multiply %d, %t"], ("c", "1.0"), operands=2),
    ),
    "negated comparison": (negation(),),
    "first of the greatest": (first(),),
    "zero": (
        Sides(itself, with_constant("add", "0.0"), WITH_NEGATIVE_ZERO),
        Sides(itself, with_constant("subtract", "-0.0"), WITH_NEGATIVE_ZERO),
    ),
    "negated sum": (
        Sides(lines("%s = stablehlo.add %x, %y", "%r = stablehlo.negate %s"),
              lines("%a = stablehlo.negate %x", "%b = stablehlo.negate %y", "%r = stablehlo.add %a, %b"),
              WITH_NEGATIVE_ZERO, operands=2),
    ),
    "common factor": (scaled("multiply"),),
    "common divisor": (scaled("divide"),),
    "conversion of a sum": (narrowed("f8E4M3"), narrowed("f16")),
}  # fmt: skip


def test_each_law_has_a_check():
    """A law that proofs take and that nothing checks fails here."""
    named = [value for value in vars(law_table).values() if isinstance(value, Law)]
    assert set(named) == set(LAWS)
    assert {law.name for law in LAWS} == set(CHECKS)
    assert not any(law.risk for law in EXACT)
    assert all(law.risk for law in INEXACT)


def cases(laws):
    return [pytest.param(law, sides, kind, id=f"{law.name}-{number}-{kind}".replace(" ", "_"))
            for law in laws for number, sides in enumerate(CHECKS[law.name]) for kind in sides.kinds]  # fmt: skip


@pytest.mark.turns(6)
@pytest.mark.parametrize(("law", "sides", "kind"), cases(EXACT))
def test_an_exact_law_changes_no_number(law, sides, kind):
    arrays = sides.arrays(kind)
    pair = sides.pair(kind, arrays[0].shape[-1])
    used = arrays if law.name != "whole numbers" else arrays[:1]
    assert equal_bits(*pair.run(*used))
    few = sides.pair(kind, FEW)
    verdict = prove(few.whole, few.local, refute=False, strict=True)
    assert verdict.proved, str(verdict)
    assert not verdict.laws


@pytest.mark.turns(6)
@pytest.mark.parametrize(("law", "sides", "kind"), cases(INEXACT))
def test_an_inexact_law_is_stated(law, sides, kind):
    """Some numbers do not keep it, a proof by it lists it, and a strict proof does without."""
    arrays = sides.arrays(kind)
    assert not equal_bits(*sides.pair(kind, arrays[0].shape[-1]).run(*arrays))
    few = sides.pair(kind, FEW)
    verdict = prove(few.whole, few.local, refute=False)
    assert verdict.proved, str(verdict)
    assert law in [use.law for use in verdict.laws]
    strict = prove(few.whole, few.local, refute=False, strict=True)
    assert not strict.proved
    assert not strict.laws


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("law", ["zero", "negated sum", "common factor"])
def test_integers_keep_each_of_these(law, kind):
    if law == "zero":
        sides = Sides(itself, with_constant("add", "0"), (kind,))
    elif law == "negated sum":
        sides = CHECKS[law][0]
    else:
        sides = scaled("multiply")
    arrays = sides.arrays(kind)
    assert equal_bits(*sides.pair(kind, arrays[0].shape[-1]).run(*arrays))
    few = sides.pair(kind, FEW)
    verdict = prove(few.whole, few.local, refute=False, strict=True)
    assert verdict.proved, str(verdict)
    assert not verdict.laws


def means(whole: str, divisor: str) -> Sides:
    """A sum over devices that is divided by ``whole``, and the sum of what each device divides by ``divisor``."""

    def body(kind: str, n: int, text: str, by: str, result: str) -> str:
        return "\n".join((text, constant("c", by, f"{n}x{kind}"),
                          f"  %{result} = stablehlo.divide %t, %c : tensor<{n}x{kind}>"))  # fmt: skip

    return Sides(
        lambda kind, n: body(kind, n, total(kind, n), whole, "r"),
        lambda kind, n: body(kind, n, own(kind, n), divisor, "p") + "\n" + summed("r", "p", f"{n}x{kind}"),
        ("f8E5M2",), over_devices=True,
    )  # fmt: skip


NEAR: Mapping[str, tuple[Sides, ...]] = {
    "products of sums": (products(3), products(1)),
    "mask": (
        chosen("%c, %x", "GT",
               "%q = stablehlo.convert %p; %s = stablehlo.multiply %q, %x; %r = stablehlo.multiply %q, %s", "0.0"),
    ),
    "cancelled divisor": tuple(
        function(["%r = stablehlo.optimization_barrier %y"],
                 [*texts, "%d = stablehlo.divide %y, %t", "%r = stablehlo.multiply %d, %t"], ("c", "-1.0"), operands=2)
        for texts in (["%t = stablehlo.multiply %x, %x"], ["%t = stablehlo.abs %x"], ["%t = stablehlo.add %x, %c"],
                      ["%s = stablehlo.multiply %x, %x", "%t = stablehlo.add %s, %c"])
    ),
    "common divisor": (means("2.0", "4.0"), means("2.0", "1.0"), means("4.0", "3.0")),
    "narrower integers": (apart("add", "i16", "multiply"), apart("add", "i16", "or"), apart("multiply", "i32", "add")),
    "counts": (
        counts("or", "add", "GE", 2), counts("and", "add", "EQ", 1), counts("or", "minimum", "EQ", 1),
        counts("and", "maximum", "NE", 0), counts("or", "add", "GE", 0),
    ),
    "cancellation": (
        function(["%s = stablehlo.add %x, %y", "%r = stablehlo.subtract %s, %y"],
                 ["%r = stablehlo.optimization_barrier %y"], operands=2),
        function(["%s = stablehlo.subtract %x, %y", "%r = stablehlo.subtract %s, %y"],
                 ["%r = stablehlo.optimization_barrier %x"], operands=2),
        function(["%r = stablehlo.divide %x, %x"], ["%r = stablehlo.optimization_barrier %c"], ("c", "1.0")),
    ),
    "exponents": (
        function(["%s = stablehlo.add %x, %y", "%r = stablehlo.exponential %s"],
                 ["%a = stablehlo.exponential %x", "%b = stablehlo.exponential %y", "%r = stablehlo.add %a, %b"],
                 operands=2),
        function(["%s = stablehlo.subtract %x, %y", "%r = stablehlo.exponential %s"],
                 ["%a = stablehlo.exponential %x", "%b = stablehlo.exponential %y", "%r = stablehlo.multiply %a, %b"],
                 operands=2),
        function(["%e = stablehlo.exponential %x", "%p = stablehlo.multiply %e, %y", "%r = stablehlo.log %p"],
                 ["%l = stablehlo.log %y", "%r = stablehlo.subtract %l, %x"], operands=2),
    ),
    "written functions": (
        function(["%r = stablehlo.rsqrt %x"], ["%r = stablehlo.divide %c, %x"], ("c", "1.0")),
        function(["%r = stablehlo.logistic %x"],
                 ["%e = stablehlo.exponential %x", "%d = stablehlo.add %c, %e", "%r = stablehlo.divide %c, %d"],
                 ("c", "1.0")),
        function(["%r = stablehlo.log_plus_one %x"], ["%s = stablehlo.add %x, %c", "%r = stablehlo.log %s"],
                 ("c", "2.0")),
    ),
    "selection": (
        chosen("%x, %y", "GT", "%r = stablehlo.minimum %x, %y"),
        chosen("%y, %x", "GE", "%r = stablehlo.maximum %x, %y"),
        chosen("%x, %c", "GE", "%r = stablehlo.maximum %x, %c", "0.0"),
        chosen("%x, %c", "GT", "%q = stablehlo.convert %p; %r = stablehlo.multiply %q, %y", "0.0"),
    ),
    "first of the greatest": (first("subtract"), first(beyond="0"), first(joined="maximum")),
}  # fmt: skip


@pytest.mark.turns(4)
@pytest.mark.parametrize(("name", "sides"), [(name, sides) for name, rows in NEAR.items() for sides in rows])
def test_nothing_near_a_law_is_proved(name, sides):
    kind = sides.kinds[-1]
    arrays = sides.arrays(kind)
    assert not equal_bits(*sides.pair(kind, arrays[0].shape[-1]).run(*arrays))
    few = sides.pair(kind, FEW)
    assert not prove(few.whole, few.local, refute=False).proved
