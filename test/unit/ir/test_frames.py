"""The user's frame of a location: the innermost that is of no library. Locations are written as JAX writes them."""

from __future__ import annotations

import pytest

from shardpass.diagnostics import NOWHERE, Place
from shardpass.ir.frames import Frame, inner_places, is_library, user_frame, user_place

FLAX = '"/usr/lib/python3.11/site-packages/flax/linen/linear.py":271:8 to :30'
MODULE = '"/usr/lib/python3.11/site-packages/flax/linen/module.py":1216:4 to :9'
MINE = '"/home/me/train.py":41:4 to :17'


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ('loc("jit(f)/add"("train.py":3:4))', Place("train.py", 3, 4)),
        (f'loc("jit(f)/dot"(callsite("apply"({FLAX}) at "step"({MINE}))))', Place("/home/me/train.py", 41, 4)),
        (f'loc("jit(f)/dot"(callsite("step"({MINE}) at "main"("/home/me/run.py":9:0 to :5))))',
         Place("/home/me/train.py", 41, 4)),
        (f'loc(callsite("apply"({FLAX}) at "g"("/opt/venv/dist-packages/x.py":7:0 to :5)))',
         Place("/opt/venv/dist-packages/x.py", 7, 0)),  # all are of libraries: the outermost
        ('loc("params[\'w1\']")', NOWHERE),
        ("loc(unknown)", NOWHERE),
    ],
)  # fmt: skip
def test_the_line_is_the_users(location: str, place: Place) -> None:
    assert user_place(location) == place


@pytest.mark.parametrize(
    ("location", "inner"),
    [
        (f'loc("jit(f)/dot"(callsite("a"({FLAX}) at callsite("b"({MODULE}) at "step"({MINE})))))',
         [("module.py", 1216), ("linear.py", 271)]),
        (f'loc("jit(f)/dot"(callsite("a"({FLAX}) at "b"({MODULE}))))', [("linear.py", 271)]),  # all are of libraries
        (f'loc("jit(f)/dot"(callsite("step"({MINE}) at "b"({MODULE}))))', []),  # a callback: the user's is innermost
        (f"loc({FLAX})", []),
        ("loc(unknown)", []),
    ],
)  # fmt: skip
def test_lines_of_libraries_inside_of_the_users(location: str, inner: list[tuple[str, int]]) -> None:
    assert [(place.file.rsplit("/", 1)[-1], place.line) for place in inner_places(location)] == inner


@pytest.mark.parametrize(
    ("location", "end"),
    [
        ('loc("f.py":3:4 to :17)', (3, 17)),
        ('loc("f.py":3:4 to 5:9)', (5, 9)),
        ('loc("f.py":3:4)', (0, 0)),
    ],
)
def test_where_an_expression_ends(location: str, end: tuple[int, int]) -> None:
    assert user_frame(location) == Frame(Place("f.py", 3, 4), *end)


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/usr/lib/python3.11/functools.py", True),
        (r"C:\py\Lib\site-packages\jax\numpy.py", True),
        ("<frozen runpy>", True),
        ("/home/me/python3/model.py", False),
        ("<ipython-input-3-aa>", False),
        ("train.py", False),
    ],
)
def test_libraries(file: str, library: bool) -> None:
    assert is_library(file) is library


def test_this_package_is_a_library_to_its_user() -> None:
    import shardpass.advise.suggest.take as take

    assert is_library(take.__file__)
