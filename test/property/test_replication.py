"""The replication check on random shard_map programs, held to brute force: run, and compare the devices.

No wrong program passes, in SDY's form or in GSPMD's. Of the right ones, those that are refused are listed, and none is
among them that JAX's own ``check_vma`` accepts. ``check_vma`` of jax 0.10.2 accepts some wrong ones (a branch or a trip
count that varies), so running decides, not JAX.
"""

from __future__ import annotations

import jax
import pytest
from support.shard_map_programs import Program, make

from shardpass.cli.check import run_and_collect
from shardpass.cli.check_replication import PIPELINE

PROGRAMS = 120
REFUSED_THOUGH_RIGHT = {
    33: "devices pick different rows of an array of zeros, which a sum of nothing made",
    39: "the result is x - x + 1",
}


def refused(program: Program) -> bool:
    """Whether the check refuses the program; both forms must say the same."""
    verdicts = []
    for shardy in (True, False):
        jax.config.update("jax_use_shardy_partitioner", shardy)
        try:
            text = program.jitted().lower(*program.arguments(0)).as_text()
        finally:
            jax.config.update("jax_use_shardy_partitioner", True)
        codes = {d.code for d in run_and_collect(text.encode(), "program.mlir", PIPELINE)}
        assert codes <= {"SP237"}
        verdicts.append(bool(codes))
    assert verdicts[0] == verdicts[1]
    return verdicts[0]


def accepted_by_jax(program: Program) -> bool:
    try:
        program.jitted(checked=True).lower(*program.arguments(0))
    except Exception:  # JAX raises ValueError, TypeError and others
        return False
    return True


@pytest.mark.turns(3)
@pytest.mark.parametrize("first", range(0, PROGRAMS, 20))
def test_no_wrong_program_passes(first: int) -> None:
    right = wrong = 0
    for seed in range(first, first + 20):
        program = make(seed)
        says_no = refused(program)
        if not program.agree(range(2)):
            wrong += 1
            assert says_no, f"program {seed} ({', '.join(program.names)}) is wrong and passes"
            continue
        right += 1
        if says_no:
            assert not accepted_by_jax(program), f"program {seed} is right, JAX accepts it, and it is refused"
            assert seed in REFUSED_THOUGH_RIGHT, f"program {seed} is right and refused"
    assert right > 4  # both kinds are drawn, or the test would say nothing
    assert wrong > 2
