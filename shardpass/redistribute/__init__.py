"""From one sharding to another: plans of collectives, proved before they leave (docs/redistribution.md)."""

from shardpass.redistribute.costs import PROFILES, Link, Profile
from shardpass.redistribute.plan import Plan, Refusal, Step
from shardpass.redistribute.planner import PLANNERS, estimate_bytes, plan_redistribution

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
