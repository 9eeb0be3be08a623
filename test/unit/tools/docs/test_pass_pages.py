"""Each pass's page: complete, and its Output is what the pass makes of its Input."""

import pytest

from shardpass.ir.context import make_context, parse_module
from shardpass.pipeline import registry
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.run import run_in_place
from tools.docs.pass_pages import page_of

OWN = registry.own_names()


@pytest.mark.parametrize("name", OWN)
def test_the_output_is_what_the_pass_makes_of_the_input(name):
    page = page_of(registry.find(name))
    context = make_context()
    module = parse_module(page.input, "input", context)
    expected = parse_module(page.output, "output", context)
    run_in_place(module, name + page.example)
    assert str(module) == str(expected)


@pytest.mark.parametrize("name", OWN)
def test_the_page_is_complete(name):
    page = page_of(registry.find(name))  # raises where a part is missing
    assert page.name == name
    assert len(page.summary) < 80
    assert "\n" not in page.summary


class Bare(ModulePass):
    """Options:
    lost: an option that the pass does not have
    """

    name, summary = "test-bare", "x"


def test_what_a_docstring_lacks_is_said():
    with pytest.raises(ValueError, match=r"lacks a description, Input, Output; it describes options.*lost"):
        page_of(Bare)
