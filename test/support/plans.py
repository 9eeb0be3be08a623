"""Whether ``emit`` builds the collectives that ``plan`` lists: both are called on one op, for each split of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, count
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.collectives import collectives
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import operation, shape_of
from shardpass.ops.model import Collective, LocalPlan, OpModel, Shapes, Site, Split
from shardpass.ops.registry import find
from shardpass.ops.splits.assign import Side, settle
from shardpass.ops.splits.factors import Axes, Kind, Rule
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.sharding import parse_mesh

MESHES = ("mesh['x'=4, 'y'=2]", "mesh['x'=3, 'y'=2]")


@dataclass(frozen=True)
class Sample:
    """A function whose last op but the return is looked at; ``module`` keeps the others alive."""

    module: Any
    main: Any
    op: Any
    model: OpModel[Any]

    @property
    def operands(self) -> Shapes:
        return tuple(shape_of(v) for v in self.op.operands)

    @property
    def results(self) -> Shapes:
        return tuple(shape_of(v) for v in self.op.results)


def check_plans(body: str) -> list[Collective]:
    """All collectives of all plans of the last op, but the return, of the function ``body``.

    Each split of each mesh is planned and built; the module that was built must be valid, its results have the shapes
    of tiles, and its collectives are those of the plan in their order: kind, axes, bytes and cause.
    """
    listed: list[Collective] = []
    for text in MESHES:
        mesh, sample = prime_mesh(parse_mesh(text)), _read(body, text)
        for factors in splits(sample.model.rule, sample.operands, sample.results, mesh):
            listed += _check(_read(body, text), mesh, factors)
    return listed


def splits(rule: Rule, operands: Shapes, results: Shapes, mesh: PrimeMesh) -> Iterator[dict[int, Axes]]:
    """No split; every factor over one or more axes; every pair of factors over different axes."""
    sides = [
        Side(shape, dim_map, None, 4)
        for dim_map, shape in zip((*rule.operands, *rule.results), (*operands, *results), strict=True)
    ]
    whole = tuple(range(len(mesh.sizes)))
    free = [f for f, about in enumerate(rule.factors) if about.kind is not Kind.REPLICATED]
    wanted: list[dict[int, Axes]] = [{}]
    wanted += [{f: axes} for f in free for axes in (whole, whole[:1], whole[-1:])]
    wanted += [{f: whole[:-1], g: whole[-1:]} for f, g in combinations(free, 2)]
    found: list[dict[int, Axes]] = []
    for one in wanted:
        settled = settle(rule, sides, one, mesh.sizes)
        if settled not in found:
            found.append(settled)
            yield settled


def _check(sample: Sample, mesh: PrimeMesh, factors: dict[int, Axes]) -> tuple[Collective, ...]:
    split = Split.of(sample.model.rule, mesh, factors, sample.operands, sample.results)
    plan = sample.model.plan(split)
    with sample.module.context, sample.op.location:
        values = _emit(sample, plan)
        _close(sample.main, values)
        assert sample.module.operation.verify()
    assert [shape_of(value) for value in values] == [split.result_tile(i) for i in range(len(values))], factors
    built = [(use.kind, use.axes, use.bytes_received, use.reason) for use in collectives(sample.module)]
    listed = [(c.kind, mesh.names(c.axes), c.bytes, c.cause) for c in plan.collectives]
    assert built == listed, (built, listed, mesh.mesh, factors)
    return plan.collectives


def _emit(sample: Sample, plan: LocalPlan) -> list[Any]:
    """Tiles for the results of the op, in the function that takes tiles."""
    op, block = sample.op, sample.main.regions[0].blocks[0]
    end = operation(list(block.operations)[-1])
    places = {argument: i for i, argument in reversed(list(enumerate(op.operands)))}
    for argument in block.arguments:
        tile = plan.split.operand_tile(places[argument]) if argument in places else shape_of(argument)
        argument.set_type(ir.RankedTensorType.get(list(tile), argument.type.element_type))
    site = Site(op, plan.split, end, count(1))
    made = list(sample.model.emit(plan, site))
    for index, value in enumerate(made):
        end.operands[index] = value
    if site.discarded:
        op.erase()
    return made


def _close(main: Any, results: list[Any]) -> None:
    """The function's type, once its arguments and results are tiles."""
    inputs = [argument.type for argument in main.regions[0].blocks[0].arguments]
    kind = ir.FunctionType.get(inputs, [value.type for value in results])
    main.attributes["function_type"] = ir.TypeAttr.get(kind)


def _read(body: str, mesh: str) -> Sample:
    attributes = f'mhlo.num_partitions = {parse_mesh(mesh).size} : i32, shardpass.mesh = "{mesh}"'
    module = parse_module(f"module attributes {{{attributes}}} {{ {body} }}")
    main = operation(next(iter(module.body.operations)))
    *_, op, _ = [operation(inner) for inner in main.regions[0].blocks[0].operations]
    entry = find(op.name)
    assert entry is not None
    model = entry.read(op)
    assert model is not None
    return Sample(module, main, op, model)
