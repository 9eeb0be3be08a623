"""What a plan says of memory, for reports: the peak, where it is, and what is alive there."""

from __future__ import annotations

from shardpass.planning.plan import ProgramPlan
from shardpass.report.naming import Names
from shardpass.report.rows import MemoryFacts


def memory_facts(plan: ProgramPlan, names: Names) -> MemoryFacts:
    """The account of ``plan``."""
    alive = plan.alive
    temporaries = max(0, alive.peak - alive.arguments - alive.results)
    return MemoryFacts(alive.arguments, alive.results, temporaries, alive.at)
