"""From one sharding to another: plans of collectives, proved before they leave (docs/redistribution.md)."""

from shardpass.redistribute.plan import Plan, Refusal, Step
from shardpass.redistribute.planner import PLANNERS, estimate_bytes, plan_redistribution
from shardpass.redistribute.terms.costs import PROFILES, Link, Profile

__all__ = [
    "PLANNERS",
    "PROFILES",
    "Link",
    "Plan",
    "Profile",
    "Refusal",
    "Step",
    "estimate_bytes",
    "plan_redistribution",
]
