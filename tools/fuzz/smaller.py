"""Programs one step smaller than a program that fails.

The fuzzer tries them one after the other and goes on from the first that fails in the same way, until none does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tools.fuzz.programs import Block, Node, Program
from tools.values import Fact


def smaller(program: Program) -> list[Program]:
    """Programs one step smaller, the boldest first."""
    found: list[Program] = []
    if len(program.results) > 1:
        found += [replace(program, results=(result,)) for result in program.results]
    # a constant stays one: an op may need this very value (the start of a reduction, an index in bounds)
    others = [i for i, node in enumerate(program.nodes) if node.name != "stablehlo.constant"]
    found += [node_to_arguments(program, i) for i in reversed(others)]
    found += bypassed(program)
    for i, (fact, sharding) in enumerate(program.arguments):
        if sharding:
            row = (*program.arguments[:i], (fact, ""), *program.arguments[i + 1 :])
            found.append(replace(program, arguments=row))
    for i, node in enumerate(program.nodes):
        for less in _less(node, [program.facts()[v] for v in node.captured]):
            found.append(replace(program, nodes=(*program.nodes[:i], less, *program.nodes[i + 1 :])))
    for i, (value, sharding) in enumerate(program.results):
        if sharding:
            rows = (*program.results[:i], (value, ""), *program.results[i + 1 :])
            found.append(replace(program, results=rows))
    return [without_dead(p) for p in found]


def without_dead(program: Program) -> Program:
    """``program`` without the ops and arguments that no result needs."""
    base = len(program.arguments)
    needed, kept = _live(program.nodes, base, [v for v, _ in program.results])
    arguments = [i for i in range(base) if i in needed]
    number = _numbering(program.nodes, base, arguments, kept)
    return replace(
        program,
        arguments=tuple(program.arguments[i] for i in arguments),
        nodes=tuple(program.nodes[i].renumbered(number.__getitem__) for i in kept),
        results=tuple((number[v], s) for v, s in program.results),
    )


def _live(nodes: Sequence[Node], base: int, wanted: Sequence[int]) -> tuple[set[int], list[int]]:
    """The values and the nodes that ``wanted`` needs."""
    starts = _starts(nodes, base)
    needed, kept = set(wanted), []
    for index in range(len(nodes) - 1, -1, -1):
        node = nodes[index]
        if any(v in needed for v in range(starts[index], starts[index] + len(node.results))):
            kept.append(index)
            needed.update((*node.operands, *node.captured))
    return needed, kept[::-1]


def _starts(nodes: Sequence[Node], base: int) -> list[int]:
    """The number of each node's first result."""
    starts = [base]
    for node in nodes:
        starts.append(starts[-1] + len(node.results))
    return starts


def _numbering(nodes: Sequence[Node], base: int, inputs: Sequence[int], kept: Sequence[int]) -> dict[int, int]:
    """Old number -> new number, where only ``inputs`` of the first ``base`` values and the nodes ``kept`` stay."""
    starts = _starts(nodes, base)
    old = [*inputs, *(starts[i] + k for i in kept for k in range(len(nodes[i].results)))]
    return {value: new for new, value in enumerate(old)}


def node_to_arguments(program: Program, index: int) -> Program:
    """``program`` with node ``index`` gone: its results come in as new arguments."""
    base, node = len(program.arguments), program.nodes[index]
    start, count = _starts(program.nodes, base)[index], len(node.results)

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


def _swapped(node: Node, swap: Mapping[int, int]) -> Node:
    """``node`` with other values in place of those that ``swap`` names."""
    return node.renumbered(lambda value: swap.get(value, value))


def bypassed(program: Program) -> Iterator[Program]:
    """``program`` with one op left out, whose operand of the same type takes the place of its result."""
    base, facts = len(program.arguments), program.facts()
    starts = _starts(program.nodes, base)
    for index, node in enumerate(program.nodes):
        same = [v for v in node.operands if facts[v].type == node.results[0].type]
        if len(node.results) == 1 and same:
            swap = {starts[index]: same[0]}
            nodes = tuple(_swapped(n, swap) for n in program.nodes)
            results = tuple((swap.get(v, v), s) for v, s in program.results)
            yield replace(program, nodes=nodes, results=results)


# ---------------------------------------------------------------- inside an op


def _less(node: Node, captured: Sequence[Fact]) -> Iterator[Node]:
    """``node`` without its sharding, or with less in one of its blocks."""
    if node.sharding and node.name != "stablehlo.custom_call":
        yield replace(node, sharding="")
    for i, block in enumerate(node.blocks):
        if node.name == "stablehlo.while" and i == 0:
            continue
        for less in _less_block(block, captured, counts=node.name == "stablehlo.while"):
            yield replace(node, blocks=(*node.blocks[:i], less, *node.blocks[i + 1 :]))


def _less_block(block: Block, captured: Sequence[Fact], counts: bool) -> Iterator[Block]:
    """``counts``: the first value that it returns is a loop's counter, and stays as it is."""
    facts = [*captured, *block.arguments, *(f for node in block.nodes for f in node.results)]
    base = len(captured) + len(block.arguments)
    for position in range(counts, len(block.returns)):
        value = block.returns[position]
        for other in range(min(base, value)):
            if facts[other].type == facts[value].type:
                returns = (*block.returns[:position], other, *block.returns[position + 1 :])
                yield _pruned(replace(block, returns=returns), base)
                break
    starts = _starts(block.nodes, base)
    for index, node in enumerate(block.nodes):
        start = starts[index]
        if len(node.results) != 1 or (counts and start == block.returns[0]):
            continue
        same = [v for v in range(start) if facts[v].type == node.results[0].type]
        if same and node.name != "stablehlo.constant":
            swap = {start: same[0]}
            nodes = tuple(_swapped(n, swap) for n in block.nodes)
            returns = tuple(swap.get(v, v) for v in block.returns)
            yield _pruned(replace(block, nodes=nodes, returns=returns), base)
        for less in _less(node, [facts[v] for v in node.captured]):
            yield replace(block, nodes=(*block.nodes[:index], less, *block.nodes[index + 1 :]))


def _pruned(block: Block, base: int) -> Block:
    """Without dead ops; what the op captures stays, needed or not."""
    _, kept = _live(block.nodes, base, block.returns)
    number = _numbering(block.nodes, base, range(base), kept)
    nodes = tuple(block.nodes[i].renumbered(number.__getitem__) for i in kept)
    return replace(block, nodes=nodes, returns=tuple(number[v] for v in block.returns))
