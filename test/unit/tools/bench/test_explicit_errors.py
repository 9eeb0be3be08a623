"""The benchmark of errors of types: each error is one, and the edits of three programs cost as little as known ones."""

from importlib.util import find_spec

import jax
import pytest

from tools.bench.explicit_errors.__main__ import outcome, over_a_mesh
from tools.bench.explicit_errors.table import MISTAKES, Mistake

BY_NAME = {one.function: one for one in MISTAKES}


def test_there_are_forty_programs_with_other_texts() -> None:
    assert len(BY_NAME) == len(MISTAKES) >= 40
    assert all(one.wrong != one.right for one in MISTAKES)


@pytest.mark.parametrize("name", ["choice", "scores", "combine"])
def test_the_edits_cost_no_more_than_the_known_ones(name: str) -> None:
    if BY_NAME[name].file == "modules" and not find_spec("flax"):
        pytest.skip("flax is not installed")
    made = outcome(BY_NAME[name])
    assert made.good
    assert made.bytes <= made.right_bytes


def test_an_error_that_is_none_is_noticed() -> None:
    mistake = BY_NAME["combine"]
    same = Mistake(mistake.file, mistake.function, (('"ecd,tec->td", outputs', '"ecd, tec->td", outputs'),))
    with pytest.raises(ValueError, match="traces as it is"):
        outcome(same)


def test_the_mesh_is_explicit() -> None:
    with over_a_mesh():
        assert jax.sharding.get_abstract_mesh().explicit_axes == ("data", "model")
