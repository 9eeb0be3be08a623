"""``shardpass-check --strict`` on random programs: it passes exactly where partitioning redistributes nothing.

The witness is the partitioned module: ``custom_call @shardpass.redistribute`` stands at each change of sharding.
"""

from __future__ import annotations

from support import daily

from shardpass.cli.check_module import check_module
from shardpass.diagnostics import collect
from shardpass.pipeline.run import run_pipeline
from tools.fuzz.random_program import random_program

PROGRAMS = 500
STEPS = "shardpass-import,shardpass-propagate,shardpass-partition"


def test_strict_is_the_absence_of_redistributions() -> None:
    passed = refused = 0
    programs = daily.drawn(range(PROGRAMS), PROGRAMS // 4)
    for seed in programs:
        # every value is said then; checking and partitioning decide the ways of ops alike
        text = str(run_pipeline(random_program(seed, 5).text(), "propagate{effort=0}"))
        errors = [d for d in check_module(text.encode(), "p.mlir", strict=True).findings if d.severity == "error"]
        assert {d.code for d in errors} <= {"SP240"}, f"seed {seed}: {errors[0]}"
        with collect():
            redistributions = str(run_pipeline(text, STEPS)).count("@shardpass.redistribute")
        assert bool(errors) == bool(redistributions), f"seed {seed}: {len(errors)} errors, {redistributions} changes"
        passed, refused = passed + (not errors), refused + bool(errors)
    assert min(passed, refused) > len(programs) / 8  # both are drawn, or the test would say nothing
