"""The result of propagation: a sharding for each value, and how conflicts were decided.

The table is kept from one pass of a pipeline to the next; the text on the module (``mhlo.sharding``) is equivalent, and
where a pass starts from text the table is read from it (``annotated_shardings``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardpass.ir.annotations import CONFLICT, COPY, SPLIT, WAITS, get_text
from shardpass.ops.splits.factors import Axes
from shardpass.program.program import Op, Program
from shardpass.program.read import Handles
from shardpass.sharding import Sharding, parse_sharding

Factors = tuple[tuple[int, Axes], ...]  # by factor, those that are split


@dataclass(frozen=True)
class Shardings:
    """Shardings. ``of``: by value; ``results``: of main, None without annotation; ``conflicts``: by op.

    ``ways``: of an op whose split is decided, the sub-axes of its rule's factors; splits of other ops follow from the
    values around them (``planning.choose``).
    ``partial``: of a value that waits as partial sums, the sub-axes that these are over (``planning.partial``).
    ``copies``: of a value that the user fixed, a copy that several users start from.
    """

    of: Mapping[int, Sharding]
    results: tuple[Sharding | None, ...]
    conflicts: Mapping[int, str] = field(default_factory=dict)
    ways: Mapping[int, Factors] = field(default_factory=dict)
    partial: Mapping[int, Axes] = field(default_factory=dict)
    copies: Mapping[int, Sharding] = field(default_factory=dict)


def annotated_shardings(program: Program, handles: Handles) -> Shardings:
    """Read the shardings and the conflicts from the module's annotations."""
    of = {
        value: annotation.sharding
        for value, annotation in program.annotations.items()
        if annotation.sharding is not None
    }
    results = []
    for annotation in program.result_annotations:
        sharding = annotation.sharding
        if sharding is not None and sharding.is_unknown:
            sharding = Sharding.replicated()
        results.append(sharding)
    conflicts: dict[int, str] = {}
    ways: dict[int, Factors] = {}
    partial: dict[int, Axes] = {}
    arguments = zip(program.body.arguments, handles.signature.arguments, strict=True)
    texts = {value: row[COPY].value for value, row in arguments if COPY in row}
    for op in program.body.every_op():
        if (conflict := get_text(handles.ops[op.number], CONFLICT)) is not None:
            conflicts[op.number] = conflict
        if len(op.results) == 1 and (waits := get_text(handles.ops[op.number], WAITS)) is not None:
            vector = parse_sharding(waits)
            if isinstance(vector, Sharding) and (axes := op.mesh.dims(vector, 1)) is not None:
                partial[op.results[0]] = axes[0]
        if len(op.results) == 1 and (copy := get_text(handles.ops[op.number], COPY)) is not None:
            texts[op.results[0]] = copy
        if op.model is not None and (split := get_text(handles.ops[op.number], SPLIT)) is not None:
            nest, count = parse_sharding(split), len(op.model.rule.factors)
            if not isinstance(nest, Sharding) or len(nest.dims) not in (0, count):
                continue
            if (dims := op.mesh.dims(nest, count)) is not None:
                ways[op.number] = tuple([(factor, axes) for factor, axes in enumerate(dims) if axes])
    parsed = {value: parse_sharding(text) for value, text in texts.items()}
    copies = {value: sharding for value, sharding in parsed.items() if isinstance(sharding, Sharding)}
    return Shardings(of, tuple(results), conflicts, ways, partial, copies)


def split_text(op: Op, way: Factors) -> str:
    """Format how the loop nest of ``op`` is split, as mhlo text with one dimension for each factor of its rule."""
    assert op.model is not None
    given = dict(way)
    return str(op.mesh.sharding(tuple([given.get(factor, ()) for factor in range(len(op.model.rule.factors))])))
