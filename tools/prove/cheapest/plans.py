"""Plans of one program under thousands of assignments, and their prices: what is optimised.

The planner's tables (prices of redistributions, splits that ops choose) are functions of their keys, so all plans of a
program share one of each (``Decided``), which makes a plan three times as fast. A test holds these plans to those that
begin with empty tables.
"""

from __future__ import annotations

from shardpass.cost.machine import IDEAL, Machine
from shardpass.planning.options.choose import Decided
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.price.clock import clock_of
from shardpass.planning.price.prices import Prices
from shardpass.program.program import Program
from shardpass.program.shardings import Shardings


class Plans:
    """Plans of one program; see the module's text."""

    def __init__(self, program: Program, machine: Machine = IDEAL) -> None:
        self.program = program
        self._decided = Decided(Prices(program.mesh.num_devices), clock_of(machine))

    def price(self, shardings: Shardings) -> float:
        """The price of the plan under ``shardings``, in seconds."""
        return price(plan_program(self.program, shardings, self._decided))
