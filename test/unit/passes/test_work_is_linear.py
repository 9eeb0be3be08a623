"""How much work the passes do, counted and not timed: none does more for an op because there are many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import shardpass
from shardpass.diagnostics import ShardpassError
from shardpass.importing import inline_calls as inlining
from shardpass.importing import read_annotations
from shardpass.ir import walk
from shardpass.ir.context import parse_module
from shardpass.passes import check as checking
from shardpass.passes import combine, defer, redistribute
from shardpass.pipeline import run as running
from shardpass.pipeline.run import run_in_place

HEAD = "module attributes {mhlo.num_partitions = 2 : i32} {\n"
T = "tensor<8xf32>"
SPLIT = '{mhlo.sharding = "{devices=[2]<=[2]}"}'
OWN_PASSES = ("defer", "hoist", "redistribute", "combine", "join")


def function(name: str, body: str, result: str) -> str:
    visibility, split = ("", f" {SPLIT}") if name == "main" else ("private ", "")
    return f"func.func {visibility}@{name}(%x: {T}{split}) -> {T} {{\n{body}\n  return {result} : {T}\n}}\n"


def chain_of_calls(depth: int) -> str:
    """@main calls @f<depth>, which calls the one before, down to @f0; each negates once."""
    functions = [function("f0", f"  %0 = stablehlo.negate %x : {T}", "%0")]
    for k in range(1, depth + 1):
        call = f"  %0 = call @f{k - 1}(%x) : ({T}) -> {T}\n  %1 = stablehlo.negate %0 : {T}"
        functions.append(function(f"f{k}", call, "%1"))
    main = function("main", f"  %0 = call @f{depth}(%x) : ({T}) -> {T}", "%0")
    return HEAD + main + "".join(functions) + "}"


def doubling_calls(depth: int, innermost: str) -> str:
    """Each function calls the one before twice; the first is ``innermost``, whose value is %0 or %x."""
    functions = [function("f0", innermost, "%0" if innermost else "%x")]
    for k in range(1, depth + 1):
        calls = "\n".join(f"  %{i} = call @f{k - 1}({v}) : ({T}) -> {T}" for i, v in enumerate(("%x", "%0")))
        functions.append(function(f"f{k}", calls, "%1"))
    main = function("main", f"  %0 = call @f{depth}(%x) : ({T}) -> {T}", "%0")
    return HEAD + main + "".join(functions) + "}"


def nested_cases(depth: int) -> str:
    """A negation inside of ``depth`` case ops."""
    inner = f"%r = stablehlo.negate %x : {T}\nstablehlo.return %r : {T}"
    for k in range(depth):
        inner = (
            f'%r{k} = "stablehlo.case"(%i) ({{\n{inner}\n}}, {{\nstablehlo.return %x : {T}\n}}) '
            f": (tensor<i32>) -> {T}\nstablehlo.return %r{k} : {T}"
        )
    body = inner.removesuffix(f"stablehlo.return %r{depth - 1} : {T}")
    return (
        HEAD + f"func.func @main(%i: tensor<i32>, %x: {T} {SPLIT}) -> {T} {{\n{body}return %r{depth - 1} : {T}\n}}\n}}"
    )


def flat(ops: int) -> str:
    values = ["%x", *(f"%{k}" for k in range(ops))]
    body = "\n".join(f"  {values[k + 1]} = stablehlo.negate {values[k]} : {T}" for k in range(ops))
    return HEAD + function("main", body, values[-1]) + "}"


@pytest.fixture
def ops_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of ops of each block, once for each time that it is read."""
    found: list[int] = []
    original = walk.read_block

    def counted(block: Any, owner: Any) -> walk.OpList:
        read = original(block, owner)
        found.append(len(read.ops))
        return read

    monkeypatch.setattr(walk, "read_block", counted)
    return found


def test_import_reads_a_flat_module_once(ops_read: list[int]) -> None:
    module = parse_module(flat(50))
    run_in_place(module, "shardpass-import")
    assert ops_read == [1, 51]  # @main; the negations and the return


@pytest.mark.parametrize("name", OWN_PASSES)
def test_other_passes_read_a_module_once(name: str, ops_read: list[int]) -> None:
    module = parse_module(flat(50))
    run_in_place(module, "shardpass-import")
    ops_read.clear()
    run_in_place(module, f"shardpass-{name}")
    assert ops_read.count(51) == 1


def test_a_chain_of_calls_moves_each_op_once(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []
    original = inlining._inline_call

    def counted(call: Any, callee: Any, *, copy: bool) -> Any:
        assert not copy
        moved.append(len(callee.op.regions[0].blocks[0].operations))
        return original(call, callee, copy=copy)

    monkeypatch.setattr(inlining, "_inline_call", counted)
    depth = 1200  # more than Python's stack takes
    module = shardpass.run_pipeline(chain_of_calls(depth), "import")
    assert sum(moved) == 2 + 3 * depth  # as written: with calls and returns
    assert str(module).count("stablehlo.negate") == depth + 1


def test_each_of_two_calls_gets_a_body_and_one_is_the_callees_own(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[bool] = []
    original = inlining._inline_call

    def counted(call: Any, callee: Any, *, copy: bool) -> Any:
        copies.append(copy)
        return original(call, callee, copy=copy)

    monkeypatch.setattr(inlining, "_inline_call", counted)
    depth = 5
    module = shardpass.run_pipeline(doubling_calls(depth, f"  %0 = stablehlo.negate %x : {T}"), "import")
    assert str(module).count("stablehlo.negate") == 2**depth
    # @f5 once, @f4 twice, ..., @f0 32 times; of each function one body is its own
    assert len(copies) == 2 ** (depth + 1) - 1
    assert copies.count(False) == depth + 1


@pytest.mark.parametrize("innermost", [f"  %0 = stablehlo.negate %x : {T}", ""])
def test_calls_that_double_the_ops_too_often_are_refused_with_the_count(innermost: str) -> None:
    """Also where nothing is left of them: the calls alone would take as long."""
    depth = 60
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(doubling_calls(depth, innermost), "import")
    size = 2 if innermost else 1
    for _ in range(depth):
        size = 3 + 2 * size  # two calls and a return
    size += 2
    (found,) = caught.value.diagnostics
    assert found.code == "SP229"
    assert f"makes {size} ops" in found.message
    assert f"the {2 * depth + 1} calls" in found.message


def test_regions_may_be_nested_deeper_than_pythons_stack(ops_read: list[int]) -> None:
    depth = 1200
    module = parse_module(nested_cases(depth))
    run_in_place(module, "shardpass-import")
    once = sum(ops_read)
    # @main; its case and its return; and inside of each case an op and two returns
    assert once == 1 + 2 + 3 * depth
    for name in OWN_PASSES:
        ops_read.clear()
        run_in_place(module, f"shardpass-{name}")
        assert sum(ops_read) <= once


def test_the_types_of_main_are_listed_as_often_for_many_arguments_as_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at ``inputs`` makes a list of all."""
    seen = 0

    class Kind:
        def __init__(self, kind: Any) -> None:
            self.kind = kind

        @property
        def inputs(self) -> Any:
            nonlocal seen
            seen += 1
            return self.kind.inputs

        @property
        def results(self) -> Any:
            nonlocal seen
            seen += 1
            return self.kind.results

    class TypeAttr:
        def __init__(self, attribute: Any) -> None:
            self.value = Kind(original.TypeAttr(attribute).value)

    class Bindings:
        def __getattr__(self, name: str) -> Any:
            return TypeAttr if name == "TypeAttr" else getattr(original, name)

    original = read_annotations.ir
    monkeypatch.setattr(read_annotations, "ir", Bindings())

    def looks(count: int) -> int:
        nonlocal seen
        seen = 0
        names = [f"%a{k}" for k in range(count)]
        rows = ", ".join(f"{name}: {T} {SPLIT}" for name in names)
        types = ", ".join([T] * count)
        text = f"func.func @main({rows}) -> ({types}) {{ return {', '.join(names)} : {types} }}"
        shardpass.run_pipeline(HEAD + text + "}", "import")
        return seen

    assert looks(40) == looks(4) > 0


def test_check_looks_at_each_sharding_once_for_each_type(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[tuple[str, str]] = []
    original = checking.check

    def counted(sharding: Any, kind: Any, *rest: Any, **more: Any) -> Iterator[Any]:
        checked.append((str(sharding), str(kind)))
        return original(sharding, kind, *rest, **more)

    monkeypatch.setattr(checking, "check", counted)
    module = parse_module(flat(50))
    run_in_place(module, "check")
    assert checked == [("{devices=[2]<=[2]}", T)]


@pytest.mark.parametrize(("module", "name"), [(combine, "combine"), (defer, "defer"), (redistribute, "redistribute")])
def test_a_program_without_collectives_is_not_searched_for_channels(
    module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> Any:
        raise AssertionError("channels are looked for")

    monkeypatch.setattr(module, "channels", refuse)
    run_in_place(parse_module(flat(5)), f"shardpass-{name}")


def test_a_pass_that_changed_nothing_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without collectives: the passes behind partition have nothing to do."""
    verified: list[str] = []
    monkeypatch.setattr(running._Run, "_verify", lambda self, own: verified.append(own.name.removeprefix("shardpass-")))
    run_in_place(parse_module(flat(5)), "partition")
    assert verified == ["import", "propagate", "partition"]
