"""Leave out tests of a session, others each day: of combinations that cover each value, and of all with --part.

A test of several parameters, each with a list of values, has a case for each combination. A session runs a fifth of
them, and as many more as it takes to meet each value of each parameter. The cases of a test with the mark ``turns(n)``
take turns: a session runs one of ``n``, and ``n`` days run all. It runs all of them with SHARDPASS_TEST_WHOLE=1, and
where the command line names a test. Files with a long test come first.
"""

from __future__ import annotations

import random
import zlib
from collections import defaultdict
from collections.abc import Hashable, Sequence

import pytest

from support import daily

SHARE = 5
FEW = 5  # combinations, which are all run
LEAST = 4  # cases that take turns: of fewer each may be of other code


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --part."""
    parser.addoption("--part", type=int, default=1, metavar="N", help="run one test of N, others each day")


def pytest_report_header() -> str:
    """Says how today's tests are drawn."""
    if daily.is_whole():
        return "sweeps: whole"
    return f"sweeps: a part, drawn with {daily.SEED}={daily.seed()}; all with {daily.WHOLE}=1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the combinations and the part that the seed says; files with a long test come first."""
    kept = set(items)
    if not daily.is_whole() and not any("::" in word for word in config.args):
        kept -= combinations_left_out(items)
    if (count := config.getoption("--part")) > 1:
        kept = {item for item in kept if zlib.crc32(f"{daily.seed()} {item.nodeid}".encode()) % count == 0}
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)  # no process waits at the end for one that began such a test


def combinations_left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Returns the items that are combinations of parameters and not drawn today."""
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            functions[item.nodeid.partition("[")[0]].append(item)
    found: set[pytest.Item] = set()
    for name, cases in functions.items():
        values = [_values(case) for case in cases]
        if len(values[0]) > 1 and len(cases) > FEW:
            drawn = covering(values, len(cases) // SHARE, f"{daily.seed()} {name}")
            found |= {case for place, case in enumerate(cases) if place not in drawn}
        elif (turns := cases[0].get_closest_marker("turns")) and len(cases) >= LEAST:
            order = random.Random(name).sample(cases, len(cases))
            found |= {case for place, case in enumerate(order, daily.seed()) if place % turns.args[0]}
    return found


def _values(case: pytest.Item) -> list[Hashable]:
    """Returns what stands for the value of each list of parameters of ``case``."""
    given = dict(case.callspec.params)  # type: ignore[attr-defined]
    values: list[Hashable] = []
    for mark in case.iter_markers("parametrize"):
        names = mark.args[0].replace(",", " ").split() if isinstance(mark.args[0], str) else mark.args[0]
        values.append((*names, *(id(given.pop(name)) for name in names)))
    return [*values, *((name, id(value)) for name, value in given.items())]


def covering(cases: Sequence[Sequence[Hashable]], least: int, seed: str) -> set[int]:
    """Returns places of ``least`` cases, or of more, among which each value of ``cases`` occurs."""
    order = random.Random(seed).sample(range(len(cases)), len(cases))
    met: set[Hashable] = set()
    found: set[int] = set()
    for place in order:
        if not met.issuperset(cases[place]):
            met.update(cases[place])
            found.add(place)
    for place in order:
        if len(found) >= least:
            break
        found.add(place)
    return found
