"""Compare a program with its budget file, and write the program into the file."""

from __future__ import annotations

from pathlib import Path

from shardpass.diagnostics import Place
from shardpass.diagnostics.table_driver import CANNOT_READ
from shardpass.diagnostics.table_testing import NO_BUDGET
from shardpass.ir.whole_file import write_whole
from shardpass.report.collectives import Collectives
from shardpass.testing.budget import TOLERANCE, Budget, budget_of, causes, excesses, read_budgets, write_budgets
from shardpass.testing.expectation import CollectivesError


def check_budget(path: Path, name: str, program: Collectives) -> None:
    """Assert that ``program`` is within the budget ``name`` of the file.

    Raises:
        CollectivesError: with the table of what is over the budget.
        ShardpassError: SP642 where the file has no such budget, SP640 where the file is no budget.
    """
    __tracebackhide__ = True
    budget = budget_at(path, name)
    broken = excesses(program, budget)
    if broken:
        raise CollectivesError(program, broken, f"budget: {path.name}, {name}", causes(program, budget))


def budget_at(path: Path, name: str) -> Budget:
    """Return the budget ``name`` of a file. Raises as ``check_budget``."""
    __tracebackhide__ = True
    budgets = budgets_at(path) if path.exists() else {}
    if name not in budgets:
        listed = ", ".join(sorted(budgets)[:3]) or "none"
        raise NO_BUDGET.error(Place(str(path)), file=path.name, program=name, programs=listed)
    return budgets[name]


def budgets_at(path: Path) -> dict[str, Budget]:
    """Return all budgets of a file.

    Raises:
        ShardpassError: SP120 where the file cannot be read, SP640 where the file is no budget.
    """
    try:
        return read_budgets(path)
    except OSError as error:
        reason, hint = error.strerror or str(error), "write the file with `shardpass budget FILE:FUNCTION -o FILE`"
        raise CANNOT_READ.error(Place(str(path)), reason=reason, hint=hint) from None


def updated(path: Path, name: str, program: Collectives, target: str = "") -> str:
    """Return the text of the budget file with the budget ``name`` replaced; other budgets and tolerances are kept."""
    budgets = budgets_at(path) if path.exists() else {}
    known = budgets.get(name)
    budgets[name] = budget_of(program, target, known.tolerance if known else TOLERANCE)
    return write_budgets(budgets)


def update_budget(path: Path, name: str, program: Collectives, target: str = "") -> None:
    """Write ``updated`` to the file atomically."""
    write_whole(path, updated(path, name, program, target))
