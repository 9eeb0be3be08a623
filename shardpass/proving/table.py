"""All rules by the names of their ops."""

from __future__ import annotations

from shardpass.proving import effects, promises, tuples
from shardpass.proving.relations.evaluate import Rule
from shardpass.proving.rules import (
    blocks,
    calls,
    collectives,
    contraction,
    control,
    decomposed,
    elementwise,
    lookups,
    movement,
    rows,
    windows,
)

FAMILIES = (
    blocks,
    calls,
    elementwise,
    lookups,
    movement,
    contraction,
    collectives,
    control,
    windows,
    decomposed,
    effects,
)
_FALLBACKS: dict[str, Rule] = {
    "stablehlo.reduce": blocks.either(tuples.reduce, blocks.reduce_rows),
    "stablehlo.dynamic_slice": rows.dynamic_slice_rows,
    "stablehlo.dynamic_update_slice": rows.dynamic_update_slice_rows,
    "stablehlo.pad": rows.pad_rows,
}
_FIRST: dict[str, Rule] = {name: rule for family in FAMILIES for name, rule in family.RULES.items()}
_BOTH: dict[str, Rule] = _FIRST | {name: blocks.either(_FIRST[name], rule) for name, rule in _FALLBACKS.items()}
RULES: dict[str, Rule] = _BOTH | {name: promises.noted(_BOTH[name]) for name in promises.OPS}
