"""The cases of ``faults``: a command, and what happens to it.

Problem: a command may be interrupted, may find no room for its output or nobody who reads it, may lose the process that
converts a file, and may be given anything as input. In each case its output must be whole or untouched, its exit status
what docs/reference/commands.md says, and no process may stay behind.

Every case is made from its number alone, so that one that fails can be run again.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass


class Fault(enum.Enum):
    """What happens; ``amount`` of the case says when, or how much."""

    INTERRUPT = "Ctrl-C after a part of the usual time"
    BETWEEN = "Ctrl-C before the n-th pass"
    FULL = "no room for more than n bytes"
    LEAVES = "the reader leaves after n bytes"
    CHILD = "the process that converts a file is killed"
    UNWRITABLE = "the output cannot be where it should"
    TORN = "the input is torn at a part of its length"
    CHANGED = "bytes of the input are changed"
    SIZE = "the input is large, deep or wide"
    NAMES = "names that are no names"


@dataclass(frozen=True, slots=True)
class Case:
    number: int
    fault: Fault
    command: str  # of COMMANDS
    amount: float = 0
    input: str = "text"  # of the inputs that ``faults`` makes, or that ``odd_module`` makes

    def __str__(self) -> str:
        return f"{self.number}: {self.command} of {self.input}: {self.fault.value} ({self.amount:g})"


# name -> (words after shardpass-; IN and OUT stand for files), whether OUT is written
COMMANDS = {
    "opt": (["opt", "IN", "partition", "-o", "OUT"], True),
    "bytecode": (["opt", "IN", "--emit", "bytecode", "-o", "OUT"], True),
    "vhlo": (["opt", "IN", "--emit", "vhlo", "-o", "OUT"], True),
    "hlo": (["opt", "IN", "partition", "--emit", "hlo", "-o", "OUT"], True),
    "html": (["explain", "IN", "--html", "OUT"], True),
    "svg": (["plan", "f32[8,8]", "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "--svg", "OUT"], True),
    "stdout": (["opt", "IN", "partition"], False),
    "check": (["check", "IN"], False),
    "explain": (["explain", "IN", "--json"], False),
    "replication": (["check-replication", "IN"], False),
    "suggest": (["suggest", "IN"], False),
    "run": (["run", "IN", "partition", "--devices", "4"], False),
}
WRITING = [name for name, (_, writes) in COMMANDS.items() if writes]
FORMATS = ("text", "bytecode", "portable", "hlo", "proto")
UNWRITABLE = ("no-such-folder/out", "a-folder", "x" * 300, "a-file/out", "/proc/no-such-file")
SIZES = (
    "arguments",
    "results",
    "deep-regions",
    "deep-brackets",
    "deep-types",
    "long-line",
    "constant",
    "calls",
    "axes",
)
NAMES = ("html", "controls", "quotes", "newlines", "letters", "long", "paths")


def cases(seed: int = 0) -> Iterator[Case]:
    """All of them, numbered; ``seed``: of when interrupts come, and which bytes are torn or changed."""
    for number, (fault, command, amount, given) in enumerate(_made(seed)):
        yield Case(number, fault, command, amount, given)


def _made(seed: int) -> Iterator[tuple[Fault, str, float, str]]:
    rng = random.Random(seed)
    for command in ("opt", "hlo", "html", "svg", "suggest", "run"):
        for k in range(8):
            yield Fault.INTERRUPT, command, (k + rng.random()) / 8, "text"
    for command in ("opt", "html"):
        for k in range(11):
            yield Fault.BETWEEN, command, k, "text"
    for command in WRITING:
        for share in (0, 0.01, 0.5, 0.99, 1):
            yield Fault.FULL, command, share, "text"
    for command in ("stdout", "check", "explain", "replication", "run"):
        for size in (0, 1, 100, 5000):
            yield Fault.LEAVES, command, size, "text"
    for command, given in (("vhlo", "text"), ("hlo", "text"), ("opt", "portable"), ("opt", "hlo"), ("html", "proto")):
        for k in range(5):
            yield Fault.CHILD, command, k / 5, given
    for command in WRITING:
        for k in range(len(UNWRITABLE)):
            yield Fault.UNWRITABLE, command, k, "text"
    for given in FORMATS:
        for k in range(6):
            yield Fault.TORN, "opt", (k + rng.random()) / 6, given
            yield Fault.CHANGED, "opt", rng.randrange(10**6), given
    for given in SIZES:
        for command in ("opt", "check", "html"):
            yield Fault.SIZE, command, 0, given
    for given in NAMES:
        for command in ("opt", "html", "check", "explain"):
            yield Fault.NAMES, command, 0, given


def odd_module(name: str) -> bytes:
    """The input of that name in SIZES or NAMES."""
    return _ODD[name]().encode("utf-8", "surrogateescape")


SPLIT = '{mhlo.sharding = "{devices=[4]<=[4]}"}'


def _arguments() -> str:
    count = 10_000
    given = ", ".join(f"%a{i}: tensor<4xf32> {SPLIT if i % 2 else ''}" for i in range(count))
    return f"func.func @main({given}) -> tensor<4xf32> {{ return %a0 : tensor<4xf32> }}"


def _results() -> str:
    count = 10_000
    kinds, values = ", ".join(["tensor<4xf32>"] * count), ", ".join(["%x"] * count)
    return f"func.func @main(%x: tensor<4xf32> {SPLIT}) -> ({kinds}) {{ return {values} : {kinds} }}"


def _regions() -> str:
    depth = 200
    body = "%r = stablehlo.negate %x : tensor<4xf32>"
    for k in range(depth):
        give = f"stablehlo.return %{'r' if k == 0 else f'r{k - 1}'} : tensor<4xf32>"
        body = f'%r{k} = "stablehlo.case"(%i) ({{\n{body}\n{give}\n}}) : (tensor<i32>) -> tensor<4xf32>'
    return (
        f"func.func @main(%x: tensor<4xf32> {SPLIT}, %i: tensor<i32>) -> tensor<4xf32> {{\n{body}\n"
        f"return %r{depth - 1} : tensor<4xf32>\n}}"
    )


def _axes() -> str:
    axes = ",".join(["2"] * 18)
    return f'func.func @main(%x: tensor<4xf32> {{mhlo.sharding = "{{devices=[{axes}]<=[262144]}}"}}) {{ return }}'


def _calls() -> str:
    depth = 300
    names = [f"@f{k}" for k in range(depth)]
    bodies = [
        f"func.func private {name}(%x: tensor<4xf32>) -> tensor<4xf32> {{\n"
        f"%0 = call {after}(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>\n}}"
        for name, after in zip(names, [*names[1:], "@end"], strict=True)
    ]
    end = "func.func private @end(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    main = (
        f"func.func @main(%x: tensor<4xf32> {SPLIT}) -> tensor<4xf32> {{\n"
        "%0 = call @f0(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>\n}"
    )
    return "\n".join([main, *bodies, end])


def _named(name: str) -> str:
    """A module that moves an array, in which ``name`` is a function's, a location's and a mesh axis's."""
    said = "".join(c if c.isprintable() and c not in '"\\' else f"\\{ord(c):02X}" for c in name if ord(c) < 0x110000)
    return f"""#where = loc("{said}":1:1)
module @"{said}" attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<8x8xf32> {{mhlo.sharding = "{{devices=[4,1]<=[4]}}", jax.buffer_name = "{said}"}}
      loc("{said}")) -> (tensor<8x8xf32> {{mhlo.sharding = "{{devices=[1,4]<=[4]}}", jax.result_info = "{said}"}}) {{
    %0 = stablehlo.sine %x : tensor<8x8xf32> loc("{said}"(#where))
    return %0 : tensor<8x8xf32> loc(#where)
  }}
}}"""


SCRIPT = "<script>alert(1)</script>"
_ODD: dict[str, Callable[[], str]] = {
    "arguments": _arguments,
    "results": _results,
    "deep-regions": _regions,
    "deep-brackets": lambda: "(" * 100_000,
    "deep-types": lambda: "func.func @main(%x: " + "tuple<" * 20_000 + "f32" + ">" * 20_000 + ") { return }",
    "long-line": lambda: "// " + "x" * 5_000_000 + "\n" + _named("plain"),
    "constant": lambda: (
        f'func.func @main() -> tensor<4194304xf32> {{ %0 = stablehlo.constant dense<"0x{"0000803F" * 4194304}"> : '
        "tensor<4194304xf32> return %0 : tensor<4194304xf32> }"
    ),
    "calls": _calls,
    "axes": _axes,
    "html": lambda: _named(SCRIPT),
    "controls": lambda: _named("a\x1b[31mb\x07\x00c"),
    "quotes": lambda: _named("\"'`\\"),
    "newlines": lambda: _named("one\ntwo\r\nthree"),
    "letters": lambda: _named("\u202egnidaer\u202c \u00e9\u4e2d\U0001f600"),
    "long": lambda: _named("n" * 100_000),
    "paths": lambda: _named("../../../../etc/passwd"),
}
