"""Programs for the fuzzer: what a program is, its text, its data, and random shardings.

A program is whole-array StableHLO over arguments, in the generic form, so that every op is one line of data. Values
hold small integers, in floats too: sums are then exact in any order, and a partitioned program must give the very
numbers of the whole one. A value that is not exact (after ``exponential``) is compared with a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from random import Random
from typing import Any

import ml_dtypes
import numpy as np

from shardpass.ops.mesh import prime_mesh
from shardpass.sharding import Mesh, Sharding

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {
    "i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui32": np.uint32,
    "ui64": np.uint64, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
    "complex<f32>": np.complex64,
}  # fmt: skip
FLOATS = ("f32", "f64", "bf16", "f16")
INTEGERS = ("i8", "i32", "i64", "ui8", "ui32", "ui64")
# greatest integer up to which every integer is exact
EXACT = {"bf16": 256, "f16": 2048, "f32": 2**24, "f64": 2**53, "complex<f32>": 2**22}


@dataclass(frozen=True, slots=True)
class Type:
    shape: tuple[int, ...]
    element: str

    def __str__(self) -> str:
        return f"tensor<{'x'.join([*map(str, self.shape), self.element])}>"

    @property
    def count(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a value: its type, a bound of its magnitude, whether every element is exact."""

    type: Type
    bound: float = 3.0
    exact: bool = True

    @property
    def can_grow(self) -> float:
        """By how much its magnitude may grow and stay exact; integers wrap around and have no limit."""
        limit = EXACT.get(self.type.element)
        return float("inf") if limit is None else limit / max(1.0, self.bound)


@dataclass(frozen=True, slots=True)
class Node:
    """One op: ``operands`` are indices of values, ``attributes`` and ``regions`` are text.

    ``captured`` are values that the regions name, as ``$0``, ``$1``.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[Fact, ...]
    attributes: str = ""
    regions: str = ""
    sharding: str = ""
    captured: tuple[int, ...] = ()

    def renumbered(self, number: Callable[[int], int]) -> Node:
        return replace(self, operands=tuple(map(number, self.operands)), captured=tuple(map(number, self.captured)))


@dataclass(frozen=True, slots=True)
class Program:
    """Values are numbered: arguments, then the results of each node. ``results`` are (value, sharding).

    ``eager``: ops are split wherever they can be, at any price; the shapes here are so small that it never pays.
    """

    devices: int
    arguments: tuple[tuple[Fact, str], ...]
    nodes: tuple[Node, ...]
    results: tuple[tuple[int, str], ...]
    seed: int = 0
    eager: bool = True

    def facts(self) -> list[Fact]:
        return [f for f, _ in self.arguments] + [f for node in self.nodes for f in node.results]

    def text(self) -> str:
        """The annotated module."""
        facts, names = self.facts(), [f"%a{i}" for i in range(len(self.arguments))]
        lines = []
        for index, node in enumerate(self.nodes):
            lines.append("    " + _line(index, node, names, facts))
            many = len(node.results) > 1
            names += [f"%v{index}#{k}" if many else f"%v{index}" for k in range(len(node.results))]
        takes = [f"%a{i}: {fact.type}{_said(s)}" for i, (fact, s) in enumerate(self.arguments)]
        gives = [f"{facts[v].type}{_said(s)}" for v, s in self.results]
        last = ", ".join(names[v] for v, _ in self.results)
        types = ", ".join(str(facts[v].type) for v, _ in self.results)
        return "\n".join(
            [
                f"module attributes {{mhlo.num_partitions = {self.devices} : i32, mhlo.num_replicas = 1 : i32}} {{",
                f"  func.func @main({', '.join(takes)}) -> ({', '.join(gives)}) {{",
                *lines,
                f"    return {last} : {types}" if self.results else "    return",
                "  }",
                "}",
                "",
            ]
        )

    def inputs(self) -> list[Array]:
        """Small integers, the same for the same seed and argument."""
        generator = np.random.default_rng(self.seed)
        return [numbers(generator, fact) for fact, _ in self.arguments]


def _said(sharding: str) -> str:
    return f' {{mhlo.sharding = "{sharding}"}}' if sharding else ""


def _line(index: int, node: Node, names: list[str], facts: list[Fact]) -> str:
    attributes = [node.attributes] if node.attributes else []
    if node.sharding:
        attributes.append(f'mhlo.sharding = "{node.sharding}"')
    count = f":{len(node.results)}" if len(node.results) > 1 else ""
    takes = ", ".join(str(facts[i].type) for i in node.operands)
    gives = ", ".join(str(f.type) for f in node.results)
    regions = node.regions
    for k, value in enumerate(node.captured):
        regions = regions.replace(f"${k}", names[value])
    inner = f" ({regions})" if regions else ""
    return (
        f'%v{index}{count} = "{node.name}"({", ".join(names[i] for i in node.operands)}){inner}'
        f" {{{', '.join(attributes)}}} : ({takes}) -> ({gives})"
    )


def numbers(generator: np.random.Generator, fact: Fact) -> Array:
    """An array of small integers that ``fact`` allows."""
    element, shape = fact.type.element, fact.type.shape
    dtype = np.dtype(DTYPES[element])
    high = int(min(3, fact.bound))
    if element == "i1":
        return generator.integers(0, 2, shape).astype(bool)
    low = 0 if element.startswith("ui") else -high
    found = generator.integers(low, high + 1, shape)
    if element.startswith("complex"):
        return (found + 1j * generator.integers(low, high + 1, shape)).astype(dtype)
    return np.asarray(found).astype(dtype)


# ---------------------------------------------------------------- shardings

MESHES = (
    Mesh((("x", 2), ("y", 2))),
    Mesh((("x", 4), ("y", 2))),
    Mesh((("x", 2), ("y", 3))),
    Mesh((("x", 8),)),
    Mesh((("x", 2), ("y", 2), ("z", 2))),
)


def random_sharding(rng: Random, mesh: Mesh, shape: tuple[int, ...]) -> str:
    """mhlo text of a sharding for a value of ``shape``: mostly of whole axes, at times in an order of its own."""
    dice = rng.random()
    if dice < 0.1:
        return "{replicated}"
    if dice < 0.13:
        return f"{{maximal device={rng.randrange(mesh.size)}}}"
    if dice < 0.2:
        ids = list(range(mesh.size))
        rng.shuffle(ids)
        mesh = Mesh(mesh.axes, tuple(ids))
    parts = list(prime_mesh(mesh).parts) if rng.random() < 0.25 else _axes(mesh)
    rng.shuffle(parts)
    dims: list[tuple[Any, ...]] = [()] * len(shape)
    fill = 0.7 if rng.random() < 0.8 else 1.0
    for part in parts:
        wide = [d for d, size in enumerate(shape) if size > 1 or rng.random() < 0.1]
        if wide and rng.random() < fill:
            dim = rng.choice(wide)
            dims[dim] += (part,)
    tiled = Sharding.tiled(mesh, tuple(dims))
    return "{replicated}" if tiled.is_replicated else str(tiled)


def _axes(mesh: Mesh) -> list[Any]:
    from shardpass.sharding import AxisRef

    return [AxisRef(name) for name, _ in mesh.axes]


def on_one_device(program: Program) -> Program:
    """``program`` without shardings."""

    def unsaid(node: Node) -> Node:
        return replace(node, sharding="{replicated}" if node.name == "stablehlo.custom_call" else "")

    return replace(
        program,
        devices=1,
        arguments=tuple((fact, "") for fact, _ in program.arguments),
        nodes=tuple(map(unsaid, program.nodes)),
        results=tuple((value, "") for value, _ in program.results),
    )


# ---------------------------------------------------------------- smaller programs


def without_dead(program: Program) -> Program:
    """``program`` without the ops and arguments that no result needs."""
    base = len(program.arguments)
    starts, at = [], base
    for node in program.nodes:
        starts.append(at)
        at += len(node.results)
    needed = {v for v, _ in program.results}
    kept: list[int] = []
    for index in range(len(program.nodes) - 1, -1, -1):
        node = program.nodes[index]
        if any(v in needed for v in range(starts[index], starts[index] + len(node.results))):
            kept.append(index)
            needed.update((*node.operands, *node.captured))
    kept.reverse()
    arguments = [i for i in range(base) if i in needed]
    number = {old: new for new, old in enumerate(arguments)}
    at = len(arguments)
    for index in kept:
        for k in range(len(program.nodes[index].results)):
            number[starts[index] + k] = at
            at += 1
    nodes = [program.nodes[i].renumbered(number.__getitem__) for i in kept]
    return replace(
        program,
        arguments=tuple(program.arguments[i] for i in arguments),
        nodes=tuple(nodes),
        results=tuple((number[v], s) for v, s in program.results),
    )


def node_to_arguments(program: Program, index: int) -> Program:
    """``program`` with node ``index`` gone: its results come in as new arguments."""
    base, node = len(program.arguments), program.nodes[index]
    start = base + sum(len(n.results) for n in program.nodes[:index])
    count = len(node.results)

    def number(value: int) -> int:
        if value < base:
            return value
        if value < start:
            return value + count
        return base + value - start if value < start + count else value

    fresh = tuple((fact, node.sharding if count == 1 else "") for fact in node.results)
    nodes = [n.renumbered(number) for i, n in enumerate(program.nodes) if i != index]
    return replace(
        program,
        arguments=program.arguments + fresh,
        nodes=tuple(nodes),
        results=tuple((number(v), s) for v, s in program.results),
    )


def smaller(program: Program) -> list[Program]:
    """Programs one step smaller, the boldest first."""
    found: list[Program] = []
    if len(program.results) > 1:
        found += [replace(program, results=(result,)) for result in program.results]
    # a constant stays one: an op may need this very value (the start of a reduction, an index in bounds)
    others = [i for i, node in enumerate(program.nodes) if node.name != "stablehlo.constant"]
    found += [node_to_arguments(program, i) for i in reversed(others)]
    for i, (fact, sharding) in enumerate(program.arguments):
        if sharding:
            row = (*program.arguments[:i], (fact, ""), *program.arguments[i + 1 :])
            found.append(replace(program, arguments=row))
    for i, node in enumerate(program.nodes):
        if node.sharding and node.name != "stablehlo.custom_call":
            nodes = (*program.nodes[:i], replace(node, sharding=""), *program.nodes[i + 1 :])
            found.append(replace(program, nodes=nodes))
    for i, (value, sharding) in enumerate(program.results):
        if sharding:
            rows = (*program.results[:i], (value, ""), *program.results[i + 1 :])
            found.append(replace(program, results=rows))
    return [without_dead(p) for p in found]
