"""Every name of the reference can be imported from where it says."""

import importlib

import pytest

from tools.docs.reference import EXTENDING, READING, python_page


@pytest.mark.parametrize("name", [*EXTENDING, *READING])
def test_names_are_where_the_page_says(name: str) -> None:
    module, _, last = name.rpartition(".")
    assert hasattr(importlib.import_module(module), last)
    assert f"::: {name}\n" in python_page()
