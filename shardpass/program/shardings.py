"""What propagation found: for each value its sharding, and how conflicts were settled.

The table is kept from one pass of a pipeline to the next; the text on the module (``mhlo.sharding``) says the same, and
where a pass starts from text the table is read from it (``shardings_said``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardpass.ir.annotations import CONFLICT, get_text
from shardpass.program.program import Program
from shardpass.program.read import Handles
from shardpass.sharding import Sharding


@dataclass(frozen=True)
class Shardings:
    """``of``: by value; ``results``: of main's results, None where nothing is said; ``conflicts``: by op."""

    of: Mapping[int, Sharding]
    results: tuple[Sharding | None, ...]
    conflicts: Mapping[int, str] = field(default_factory=dict)


def shardings_said(program: Program, handles: Handles) -> Shardings:
    """The shardings, and the conflicts, that the module's annotations say."""
    of = {value: said.sharding for value, said in program.said.items() if said.sharding is not None}
    results = []
    for said in program.results_said:
        sharding = said.sharding
        if sharding is not None and sharding.is_unknown:
            sharding = Sharding.replicated()
        results.append(sharding)
    conflicts = {}
    for op in program.body.every_op():
        if (told := get_text(handles.ops[op.number], CONFLICT)) is not None:
            conflicts[op.number] = told
    return Shardings(of, tuple(results), conflicts)
