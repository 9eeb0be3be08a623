"""The programs of the partition fuzzer: their data structure, their text and their inputs.

A program is whole-array StableHLO over arguments, in the generic form, so that every op is one line of data. Values
hold small integers, in floats too: sums are then exact in any order, and a partitioned program must give the same
numbers as the whole one. A value that is not exact (after ``exponential``) is compared with a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shardpass.sharding import Mesh, Sharding, parse_sharding
from tools.values import Array, Fact, numbers

CALLS = ("func.call", "stablehlo.composite")  # their block is a function


@dataclass(frozen=True, slots=True)
class Block:
    """The body of control flow or of a function. Its values are numbered: what the op captures, ``arguments``, and
    the results of each node. ``returns`` are such numbers."""

    arguments: tuple[Fact, ...]
    nodes: tuple[Node, ...]
    returns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One op: ``operands`` are indices of values, ``attributes`` and ``regions`` are text.

    ``captured`` are values that ``blocks`` use, or that the text of ``regions`` names, as ``$0``, ``$1``. An op that
    has another form on one device (a manual region) is ``lines`` of text, ``sdy`` in the other notation, and ``whole``
    on one device: ``$0``, ``$1`` are its operands there, ``$r`` its result, and names that begin with ``%@`` its own.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[Fact, ...]
    attributes: str = ""
    regions: str = ""
    sharding: str = ""
    captured: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()
    lines: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    sdy: tuple[str, ...] = ()

    def renumbered(self, number: Callable[[int], int]) -> Node:
        return replace(self, operands=tuple(map(number, self.operands)), captured=tuple(map(number, self.captured)))


@dataclass(frozen=True, slots=True)
class Program:
    """Values are numbered: arguments, then the results of each node. ``results`` are (value, sharding).

    ``eager``: ops are split wherever they can be, at any price; the shapes here are so small that it never pays.
    ``mesh``: shardings are written in SDY's notation, over its axes; None: as ``mhlo.sharding``.
    """

    devices: int
    arguments: tuple[tuple[Fact, str], ...]
    nodes: tuple[Node, ...]
    results: tuple[tuple[int, str], ...]
    seed: int = 0
    eager: bool = True
    mesh: Mesh | None = None

    def facts(self) -> list[Fact]:
        return [f for f, _ in self.arguments] + [f for node in self.nodes for f in node.results]

    def text(self) -> str:
        """The annotated module."""
        facts, names = self.facts(), [f"%a{i}" for i in range(len(self.arguments))]
        page = _Page(self.mesh)
        lines = page.nodes(self.nodes, facts[: len(names)], names, "v")
        takes = [f"%a{i}: {fact.type}{page.boundary(s, fact)}" for i, (fact, s) in enumerate(self.arguments)]
        gives = [f"{facts[v].type}{page.boundary(s, facts[v])}" for v, s in self.results]
        last = ", ".join(names[v] for v, _ in self.results)
        types = ", ".join(str(facts[v].type) for v, _ in self.results)
        return "\n".join(
            [
                f"module attributes {{mhlo.num_partitions = {self.devices} : i32, mhlo.num_replicas = 1 : i32}} {{",
                *([f"  {declared(self.mesh)}"] if self.mesh else []),
                f"  func.func @main({', '.join(takes)}) -> ({', '.join(gives)}) {{",
                *(f"    {line}" for line in lines),
                f"    return {last} : {types}" if self.results else "    return",
                "  }",
                *page.functions,
                "}",
                "",
            ]
        )

    def inputs(self) -> list[Array]:
        """Small integers, the same for the same seed and argument."""
        generator = np.random.default_rng(self.seed)
        return [numbers(generator, fact) for fact, _ in self.arguments]


def every_node(nodes: Sequence[Node]) -> Iterator[Node]:
    """``nodes`` and those in their blocks."""
    for node in nodes:
        yield node
        for block in node.blocks:
            yield from every_node(block.nodes)


def declared(mesh: Mesh) -> str:
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.axes)
    return f"sdy.mesh @mesh = <[{axes}]>"


def in_sdy(text: str, mesh: Mesh, rank: int) -> str | None:
    """``@mesh, [{"x"}, {}]``; None where the axes of ``mesh`` cannot say it."""
    said = parse_sharding(text)
    assert isinstance(said, Sharding)
    found = said if said.is_replicated else said.on(mesh)
    if said.is_maximal or found is None:
        return None
    dims = found.dims or ((),) * rank

    def axis(ref: Any) -> str:
        return f'"{ref.name}"' + ("" if ref.size is None else f":({ref.pre}){ref.size}")

    return f"@mesh, [{', '.join('{' + ', '.join(map(axis, dim)) + '}' for dim in dims)}]"


@dataclass(slots=True)
class _Page:
    """Text that is being written: lines go to the caller, functions are kept, equal ones once."""

    mesh: Mesh | None = None
    functions: dict[str, str] = field(default_factory=dict)  # text -> name

    def boundary(self, sharding: str, fact: Fact) -> str:
        """What is said of an argument or a result of main."""
        if not sharding:
            return ""
        if self.mesh is None:
            return f' {{mhlo.sharding = "{sharding}"}}'
        return f" {{sdy.sharding = #sdy.sharding<{in_sdy(sharding, self.mesh, len(fact.type.shape))}>}}"

    def nodes(self, nodes: Sequence[Node], facts: list[Fact], names: list[str], prefix: str) -> list[str]:
        """The lines of ``nodes``; ``facts`` and ``names`` grow by their results."""
        lines = []
        for index, node in enumerate(nodes):
            own, many = f"%{prefix}{index}", len(node.results) > 1
            if node.lines:
                lines += _filled(node.sdy if self.mesh else node.lines, node, own, names)
            else:
                lines.append(self._op(node, own, facts, names))
            names += [f"{own}#{k}" if many else own for k in range(len(node.results))]
            facts += node.results
        return lines

    def _op(self, node: Node, own: str, facts: list[Fact], names: list[str]) -> str:
        attributes = [node.attributes] if node.attributes else []
        if node.sharding and self.mesh is None:
            attributes.append(f'mhlo.sharding = "{node.sharding}"')
        elif node.sharding and self.mesh:
            said = in_sdy(node.sharding, self.mesh, len(node.results[0].type.shape))
            if '"Sharding"' in node.attributes:
                kind = node.results[0].type
                sharding = f"{{sharding = #sdy.sharding<{said}>}}"
                return f'{own} = "sdy.sharding_constraint"({names[node.operands[0]]}) {sharding} : ({kind}) -> {kind}'
            attributes.append(f"sdy.sharding = #sdy.sharding_per_value<[<{said}>]>")
        if node.name in CALLS:
            key = "callee" if node.name == "func.call" else "decomposition"
            attributes.append(f"{key} = @{self._function(node.blocks[0])}")
            inner = ""
        else:
            inner = self._regions(node, own, facts, names)
        count = f":{len(node.results)}" if len(node.results) > 1 else ""
        takes = ", ".join(str(facts[i].type) for i in node.operands)
        gives = ", ".join(str(f.type) for f in node.results)
        return (
            f'{own}{count} = "{node.name}"({", ".join(names[i] for i in node.operands)}){inner}'
            f" {{{', '.join(attributes)}}} : ({takes}) -> ({gives})"
        )

    def _regions(self, node: Node, own: str, facts: list[Fact], names: list[str]) -> str:
        text = _named(node.regions, [names[v] for v in node.captured])
        found = [text] if text else []
        for number, block in enumerate(node.blocks):
            outer = [facts[v] for v in node.captured], [names[v] for v in node.captured]
            found.append("{ " + self._block(block, *outer, f"{own[1:]}_{number}_", "stablehlo.return") + " }")
        return f" ({', '.join(found)})" if found else ""

    def _block(self, block: Block, facts: list[Fact], names: list[str], prefix: str, end: str) -> str:
        arguments = [f"%{prefix}a{i}" for i in range(len(block.arguments))]
        head = ", ".join(f"{n}: {f.type}" for n, f in zip(arguments, block.arguments, strict=True))
        facts, names = [*facts, *block.arguments], [*names, *arguments]
        lines = self.nodes(block.nodes, facts, names, prefix)
        given, types = ", ".join(names[v] for v in block.returns), ", ".join(str(facts[v].type) for v in block.returns)
        return " ".join([f"^bb0({head}):", *lines, f'"{end}"({given}) : ({types}) -> ()'])

    def _function(self, block: Block) -> str:
        inner = self._block(block, [], [], "x", "func.return")
        facts = [*block.arguments, *(f for node in block.nodes for f in node.results)]
        kind = (
            f"({', '.join(str(f.type) for f in block.arguments)}) -> "
            f"({', '.join(str(facts[v].type) for v in block.returns)})"
        )
        for text, name in self.functions.items():
            if inner in text:
                return name
        name = f"f{len(self.functions)}"
        text = (
            f'  "func.func"() ({{ {inner} }}) {{sym_name = "{name}", function_type = {kind}, '
            'sym_visibility = "private"} : () -> ()'
        )
        self.functions[text] = name
        return name


def _named(text: str, names: Sequence[str]) -> str:
    for k, name in enumerate(names):
        text = text.replace(f"${k}", name)
    return text


def _filled(lines: Sequence[str], node: Node, own: str, names: list[str]) -> list[str]:
    inputs = [names[i] for i in node.operands]
    return [_named(line, inputs).replace("$r", own).replace("%@", f"{own}_") for line in lines]


def on_one_device(program: Program) -> Program:
    """``program`` without shardings, and without manual regions."""
    return replace(
        program,
        devices=1,
        mesh=None,
        arguments=tuple((fact, "") for fact, _ in program.arguments),
        nodes=tuple(map(_unsaid, program.nodes)),
        results=tuple((value, "") for value, _ in program.results),
    )


def over(program: Program, mesh: Mesh) -> Program:
    """``program`` in SDY's notation over ``mesh``; as it is where that cannot say all of its shardings."""
    facts = program.facts()
    said = [(s, len(f.type.shape)) for f, s in program.arguments] + [
        (s, len(facts[v].type.shape)) for v, s in program.results
    ]
    said += [(n.sharding, len(n.results[0].type.shape)) for n in every_node(program.nodes)]
    can = all(in_sdy(s, mesh, rank) is not None for s, rank in said if s)
    return replace(program, mesh=mesh) if can else program


def _unsaid(node: Node) -> Node:
    said = "{replicated}" if node.name == "stablehlo.custom_call" and node.sharding else ""
    blocks = tuple(replace(block, nodes=tuple(map(_unsaid, block.nodes))) for block in node.blocks)
    return replace(node, sharding=said, blocks=blocks, lines=node.whole)
