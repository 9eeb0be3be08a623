"""The benchmark of reshards that cost more than they must: that its count can fail, and three of its programs."""

import pytest

from tools.bench.explicit_reshards.__main__ import PROGRAMS, outcome


def test_there_are_twenty_programs_with_one_marked_line_each():
    assert len(PROGRAMS) == 20
    assert all(len(one.lines) == 1 for one in PROGRAMS.values())


@pytest.mark.parametrize("name", ["fsdp_gathers_an_activation", "mlp_repeats_a_type"])
def test_the_marked_line_is_found_and_no_other(name):
    got = outcome(PROGRAMS[name])
    assert (got.missed, got.wrong) == ((), ())


def test_a_line_that_is_marked_wrongly_counts_as_missed_and_wrong():
    program = PROGRAMS["mlp_gathers_its_batch"]
    (line,) = program.lines
    other = type(program)(program.name, program.make, program.file, (line + 2,))  # the product, which needs its type
    got = outcome(other)
    assert (got.missed, got.wrong) == ((line + 2,), (line,))
