"""``suggest`` repairs sharding-type errors: the edited program traces, and takes as long as the right one."""

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import pytest
from integration.explicit_errors.table import MISTAKES, Mistake
from jax.sharding import AxisType

import shardpass
from shardpass.advise.repair.repair import Repairs
from tools.bench.unified_diff import applied
from tools.load_file import loaded

NEAR = 1.02  # times the step of the right program
BY_NAME = {one.function: one for one in MISTAKES}
_numbers = count()


@pytest.fixture(autouse=True)
def mesh() -> Iterator[None]:
    with jax.set_mesh(jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)):
        yield


def test_there_are_forty_programs_with_other_texts() -> None:
    assert len(BY_NAME) == len(MISTAKES) >= 40
    assert all(one.wrong != one.right for one in MISTAKES)


@pytest.mark.turns(40)
@pytest.mark.parametrize("name", BY_NAME)
def test_the_first_edits_that_keep_the_arguments_are_as_good_as_the_right_program(name: str, tmp_path: Path) -> None:
    mistake = BY_NAME[name]
    if mistake.file == "modules" and not find_spec("flax"):
        pytest.skip("flax is not installed")
    right = explained(mistake, module_of(mistake, mistake.right, tmp_path))
    wrong = module_of(mistake, mistake.wrong, tmp_path)
    repairs = suggested(mistake, wrong)
    assert isinstance(repairs, Repairs)
    best = next(one for one in repairs.alternatives if not one.arguments)
    edited = module_of(mistake, applied(Path(wrong.__file__ or "").read_text(), best.diff), tmp_path)
    repaired = explained(mistake, edited)
    assert repaired.step_seconds <= NEAR * right.step_seconds
    assert repaired.total_bytes_received <= right.total_bytes_received


def test_a_program_without_an_error_is_not_repaired(tmp_path: Path) -> None:
    mistake = BY_NAME["combine"]
    assert not isinstance(suggested(mistake, module_of(mistake, mistake.right, tmp_path)), Repairs)


def module_of(mistake: Mistake, text: str, folder: Path) -> ModuleType:
    """Load ``text`` as a module with a file of its own."""
    return loaded(folder / f"{mistake.file}_{next(_numbers)}.py", text)


def suggested(mistake: Mistake, module: ModuleType) -> Any:
    """Ask for suggestions about the function of ``mistake`` in ``module``."""
    return shardpass.suggest(getattr(module, mistake.function), *arguments(mistake, module))


def explained(mistake: Mistake, module: ModuleType) -> Any:
    """Explain the function of ``mistake`` in ``module``, by propagation alone."""
    return shardpass.explain(getattr(module, mistake.function), *arguments(mistake, module), effort=0)


def arguments(mistake: Mistake, module: ModuleType) -> tuple[Any, ...]:
    made: tuple[Any, ...] = getattr(module, f"{mistake.function}_arguments")()
    return made
