"""All rules by the names of their ops."""

from __future__ import annotations

from shardpass.proving.relations.evaluate import Rule
from shardpass.proving.rules import collectives, contraction, control, elementwise, movement

FAMILIES = (elementwise, movement, contraction, collectives, control)
RULES: dict[str, Rule] = {name: rule for family in FAMILIES for name, rule in family.RULES.items()}
