"""Bytes that a device receives: counted piece by piece, and stated in one module of shardpass."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardpass
from shardpass.cost.collective import KINDS, Axis, Collective, bytes_received

PACKAGE = Path(shardpass.__file__).parent
HOME = PACKAGE / "cost" / "collective.py"


def by_pieces(kind, whole, devices):
    """Device 0's bytes, by sending pieces: a ring for gathers and sums, one block from each for an exchange."""
    part = whole // devices
    rings = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}
    if kind in rings:
        return sum(part for _ in range(rings[kind]) for _ in range(1, devices))
    if kind == "all_to_all":
        return sum(part for peer in range(devices) if peer != 0)
    return whole if devices > 1 else 0


@given(kind=st.sampled_from(KINDS), part=st.integers(0, 10**12), devices=st.integers(1, 4096))
def test_received_is_the_sum_of_what_comes(kind, part, devices):
    assert bytes_received(kind, part * devices, devices) == by_pieces(kind, part * devices, devices)


def test_the_group_of_a_collective_is_the_product_of_its_axes():
    gather = Collective("all_gather", (Axis(4, 8), Axis(8)), 320)
    assert (gather.devices, gather.received) == (32, 310)
    assert Collective("all_reduce", (), 320).received == 0


STATEMENTS = (
    "whole * (g - 1) // g",
    "2 * element.bytes(prod(tile)) * (group - 1) // group",
    "size * (group - 1) * (2 if kind == 'all_reduce' else 1) // group",
    "moved - moved // count",
    "self.bytes(self.tile) * (size - 1)",
    "(count - 1) * tile_of(size, count) * cross_bytes",
    "Fraction(size - 1, size)",
    "(g - 1) / g",
    "total_bytes * (1 - 1 / g)",
)


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_search_for_formulas_finds_one(text):
    assert formulas(ast.parse(text))


def test_no_other_module_states_the_formula():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != HOME
        for line, text in formulas(ast.parse(path.read_text()))
    ]
    assert not found
    assert formulas(ast.parse(HOME.read_text()))


def formulas(tree):
    """(line, text) of each expression that looks like a share of the others in a group."""
    return [(node.lineno, ast.unparse(node)) for node in ast.walk(tree) if is_formula(node)]


def is_formula(node):
    match node:
        case ast.BinOp(left, ast.Div() | ast.FloorDiv(), group):  # x * (g - 1) // g
            return any(is_one_less(part, group) for part in factors(left))
        case ast.BinOp(whole, ast.Sub(), ast.BinOp(again, ast.FloorDiv() | ast.Div(), _)):  # w - w // g
            return not isinstance(whole, ast.Constant) and ast.dump(whole) == ast.dump(again)
        case ast.BinOp(_, ast.Mult(), _):  # bytes * (g - 1)
            parts = factors(node)
            others = any(is_one_less(part) or is_share(part) for part in parts)
            return others and any("bytes" in ast.unparse(part) for part in parts)
        case ast.Call(ast.Name("Fraction"), [others, group]):
            return is_one_less(others, group)
    return False


def factors(node):
    match node:
        case ast.BinOp(left, ast.Mult(), right):
            return [*factors(left), *factors(right)]
    return [node]


def is_one_less(node, group=None):
    match node:
        case ast.BinOp(one, ast.Sub(), ast.Constant(1)):
            return group is None or ast.dump(one) == ast.dump(group)
    return False


def is_share(node):
    """1 - 1 / g"""
    match node:
        case ast.BinOp(ast.Constant(1), ast.Sub(), ast.BinOp(ast.Constant(1), ast.Div(), _)):
            return True
    return False
