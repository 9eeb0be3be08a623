"""Findings about programs with Explicit axes: each names the wasteful reshard, and none names another line."""

from importlib.util import find_spec

import jax
import pytest
from integration.explicit_reshards import plain
from integration.explicit_reshards.cases import PROGRAMS, Program, lines_of, mesh

import shardpass

if find_spec("flax"):
    from integration.explicit_reshards import with_nnx  # noqa: F401  registers its programs

assert plain  # imported to register its programs


def lines_about(program: Program) -> tuple[set[int], set[int]]:
    """Return the marked lines without a finding, and the lines of findings that are not marked."""
    over = mesh()
    with jax.set_mesh(over):
        function, arguments = program.make(over)
        findings = shardpass.explain(function, *arguments).findings or ()
    places = [annotation.place for one in findings for annotation in one.annotations]
    marked = {line: lines_of(program.file, line) for line in program.lines}
    named = {place.line for place in places if place.file == program.file}
    missed = {line for line, rows in marked.items() if not named.intersection(rows)}
    return missed, {place.line for place in places if not any(place.line in rows for rows in marked.values())}


@pytest.mark.skipif(find_spec("flax") is None, reason="flax is not installed")
def test_there_are_twenty_programs_with_one_marked_line_each() -> None:
    assert len(PROGRAMS) == 20
    assert all(len(one.lines) == 1 for one in PROGRAMS.values())


@pytest.mark.turns(10)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_marked_line_is_found_and_no_other(name: str) -> None:
    assert lines_about(PROGRAMS[name]) == (set(), set())


def test_a_line_that_is_marked_wrongly_counts_as_missed_and_wrong() -> None:
    program = PROGRAMS["mlp_gathers_its_batch"]
    (line,) = program.lines
    other = Program(program.name, program.make, program.file, (line + 2,))  # the product, which needs its type
    assert lines_about(other) == ({line + 2}, {line})
