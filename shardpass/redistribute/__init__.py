"""Plan the conversion of an array from one sharding to another: sequences of collectives, each proved before use
(docs/redistribution.md).

Its layers, the lowest first; each imports those above it in this list and none below:

    problem/     which tile of the array each device has before and after, as index arrays
    program/     the small language of plans: its ops, proof by simulation, NumPy model, memory, StableHLO, builder
    terms/       the criteria for candidates: machines, prices, memory limits, the choice
    plan         ``Plan``, the answer
    candidates/  one file for each way to build a program for a problem
    between/     from one set of devices to another: messages in rounds
    planner      ``plan_redistribution``: builds the candidates, chooses one, proves it
    stages       the tiles of devices after each step of a plan
    drawing      a plan as SVG

MLIR is touched by ``program.lower`` and its parts and by ``program.module`` alone, which are imported when a plan is
lowered: planning works without it.
"""

from shardpass.redistribute.between.plan import TransferPlan
from shardpass.redistribute.between.tree import plan_reshard_tree
from shardpass.redistribute.plan import Plan
from shardpass.redistribute.planner import PLANNERS, estimate_bytes, plan_redistribution
from shardpass.redistribute.program.steps import Refusal, Step

__all__ = [
    "PLANNERS",
    "Plan",
    "Refusal",
    "Step",
    "TransferPlan",
    "estimate_bytes",
    "plan_redistribution",
    "plan_reshard_tree",
]
