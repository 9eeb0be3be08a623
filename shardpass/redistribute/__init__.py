"""From one sharding to another: plans of collectives, proved before they leave (docs/redistribution.md)."""

from shardpass.redistribute.plan import Plan, Step
from shardpass.redistribute.planner import PLANNERS, estimate_bytes, plan_redistribution

__all__ = ["PLANNERS", "Plan", "Step", "estimate_bytes", "plan_redistribution"]
