"""Names of arguments, out of locations as MLIR prints them."""

import pytest
from jaxlib.mlir import ir

from shardpass.ir.argument_names import argument_names
from shardpass.ir.context import make_context
from shardpass.ir.frames import user_place
from shardpass.ir.locations import place_of

NAMES = ["params['w1']", 'a "quoted" name', "back\\slash", "épée\u202e", "two\nlines", "\\0A", ""]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_what_was_given(name: str) -> None:
    with make_context():
        named = ir.Location.name(name or "none", ir.Location.file("f.py", 1, 2))
        assert argument_names([str(named)]) == [name or "none"]


def test_equal_names_get_their_places() -> None:
    with make_context():
        texts = [str(ir.Location.name(name)) for name in ("XLA_Args", "w", "XLA_Args")]
        unknown = str(ir.Location.file("f.py", 1, 2))
    assert argument_names([*texts, unknown, unknown]) == ["XLA_Args 0", "w", "XLA_Args 2", "", ""]


@pytest.mark.parametrize("file", ["a\nb: error: forged.py", "épée.py", "a\\b.py", 'a"b.py'])
def test_files_too(file: str) -> None:
    with make_context():
        location = ir.Location.file(file, 3, 4)
        for place in (place_of(location), user_place(location)):
            assert (place.file, place.line, place.column) == (file, 3, 4)
