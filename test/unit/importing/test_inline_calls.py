"""Inlining of calls, and which functions are left."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from support.differential import check_jax

import shardpass
from shardpass.diagnostics import ShardpassError
from shardpass.importing.inline_calls import inline_calls, most_ops
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import operation, walk_blocks

LEAF = """
func.func private @leaf(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32> loc("leaf.py":7:3)
  return %0 : tensor<4xf32>
}
"""


def inlined(text: str) -> Any:
    module = parse_module(text, "program.mlir")
    with module.context:
        inline_calls(module)
        module.operation.verify()
    return module


def functions(module: Any) -> list[str]:
    return [op.attributes["sym_name"].value for op in module.body.operations]


def names(module: Any) -> list[str]:
    """The ops of main, those in regions too."""
    main = next(op for op in module.body.operations if op.attributes["sym_name"].value == "main")
    return [operation(op).name for block in walk_blocks(operation(main)) for op in block.operations]


def test_a_body_for_each_call_with_its_own_values_and_the_callees_lines() -> None:
    module = inlined(
        LEAF
        + """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = call @leaf(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @leaf(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}"""
    )
    assert functions(module) == ["main"]
    block = module.body.operations[0].regions[0].blocks[0]
    first, second, last = map(operation, block.operations)
    assert [first.name, second.name, last.name] == ["stablehlo.negate", "stablehlo.negate", "func.return"]
    assert [first.operands[0], second.operands[0]] == list(block.arguments)
    assert list(last.operands) == [first.results[0], second.results[0]]
    assert 'leaf.py":7:3' in str(first.location)


def test_a_deep_chain_and_a_diamond() -> None:
    """@a calls @b twice, which calls @leaf twice: four negations, in order."""
    text = LEAF + "\n".join(
        f"""
func.func {visibility}@{name}(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = call @{callee}(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @{callee}(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}}"""
        for visibility, name, callee in (("private ", "b", "leaf"), ("", "main", "b"))
    )
    module = inlined(text)
    assert names(module) == ["stablehlo.negate"] * 4 + ["func.return"]
    assert functions(module) == ["main"]


def test_a_callee_that_returns_its_argument() -> None:
    module = inlined(
        """
func.func private @same(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  return %y, %y : tensor<4xf32>, tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = call @same(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}"""
    )
    block = module.body.operations[0].regions[0].blocks[0]
    (last,) = map(operation, block.operations)
    assert list(last.operands) == [block.arguments[1], block.arguments[1]]


def test_a_call_inside_a_loop_is_inlined_there() -> None:
    module = inlined(
        LEAF
        + """
func.func @main(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = stablehlo.while(%a = %i, %b = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %t = stablehlo.compare LT, %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %c = func.call @leaf(%b) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %a, %c : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}"""
    )
    assert "func.call" not in names(module)
    assert names(module).count("stablehlo.negate") == 1


def test_a_composite_becomes_what_it_is_composed_of() -> None:
    module = inlined(
        LEAF
        + """
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "my.negate" %x {decomposition = @leaf} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    )
    assert functions(module) == ["main"]
    assert names(module).count("stablehlo.negate") == 1
    assert "stablehlo.composite" not in names(module)


def test_a_composite_of_jax_is_split() -> None:
    """By its decomposition, equal to one device; nothing is computed whole."""

    @partial(jax.lax.composite, name="my.softmax")
    def softmax(x: Any) -> Any:
        e = jnp.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    x = np.random.default_rng(5).standard_normal((8, 6)).astype(np.float32)
    seen = check_jax(softmax, [x], [P("x", "y")], out_specs=P("x", "y"))
    assert not [d for d in seen.diagnostics if d.code == "SP301"]
    assert "stablehlo.composite" in jax.jit(softmax).lower(x).as_text()


@pytest.mark.parametrize(
    ("callee", "code", "words"),
    [("main", "SP205", "@main -> @main"), ("nowhere", "SP206", "@nowhere")],
)
def test_calls_that_cannot_be_inlined(callee: str, code: str, words: str) -> None:
    text = f"""
func.func private @nowhere(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = call @{callee}(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""
    with pytest.raises(ShardpassError) as caught:
        inlined(text)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert words in found.message
    assert (found.place.file, found.place.line) == ("program.mlir", 4)


def test_functions_that_call_each_other() -> None:
    text = "\n".join(
        f"""func.func @{name}(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = call @{callee}(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""
        for name, callee in (("main", "a"), ("a", "b"), ("b", "c"), ("c", "a"))
    )
    with pytest.raises(ShardpassError, match="@a -> @b -> @c -> @a"):
        inlined(text)


def test_a_circle_of_calls_in_a_manual_region_is_refused() -> None:
    """Copies for the region are made once for each function and set of axes, so that the circle comes to an end."""
    text = """
sdy.mesh @m = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}]>] out_shardings=[<@m, [{"a"}]>] manual_axes={"a"}
      (%t: tensor<4xf32>) {
    %1 = func.call @f(%t) : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(text, "import")
    assert caught.value.code == "SP205"


def test_copies_for_manual_regions_do_not_double_with_each_level() -> None:
    """Forty functions, each of which calls the next twice but the last: 2^40 calls, and one copy of each function."""
    levels = "".join(
        f"func.func private @f{n}(%x: tensor<4xf32>) -> tensor<4xf32> {{\n"
        f"  %0 = func.call @f{n + 1}(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
        f"  %1 = func.call @f{n + 1}(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  return %1 : tensor<4xf32>\n}\n"
        for n in range(40)
    )
    text = (
        'sdy.mesh @m = <["a"=2]>\nfunc.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n'
        '  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}]>] out_shardings=[<@m, [{"a"}]>] '
        'manual_axes={"a"}\n'
        "      (%t: tensor<4xf32>) {\n    %1 = func.call @f0(%t) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "    sdy.return %1 : tensor<4xf32>\n  } : (tensor<8xf32>) -> tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n"
        f"{levels}func.func private @f40(%x: tensor<4xf32>) -> tensor<4xf32> {{ return %x : tensor<4xf32> }}\n"
    )
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(text, "import")
    assert caught.value.code == "SP229"


def doubling(levels: int) -> str:
    """Functions that call the next twice: the last one's sine stands 2^levels times in what inlining makes."""
    one, head = "tensor<4xf32>", "func.func {} @{}(%x: tensor<4xf32>) -> tensor<4xf32> {{"
    call = "  %{} = func.call @f{}(%{}) : (tensor<4xf32>) -> tensor<4xf32>"
    rows = [head.format("public", "main"), call.format(0, 0, "x"), f"  return %0 : {one}\n}}"]
    for n in range(levels):
        rows += [head.format("private", f"f{n}"), call.format(0, n + 1, "x"), call.format(1, n + 1, 0)]
        rows += [f"  return %1 : {one}\n}}"]
    rows += [head.format("private", f"f{levels}"), f"  %0 = stablehlo.sine %x : {one}", f"  return %0 : {one}\n}}"]
    return "\n".join(rows)


def test_calls_that_double_are_refused_before_they_fill_memory() -> None:
    """18 levels: a level has 3 ops and twice the next one's, the last 2, and main 2: 2 + 5 * 2^18 - 3."""
    with pytest.raises(ShardpassError) as caught:
        shardpass.run_pipeline(doubling(18), "import")
    (problem,) = caught.value.diagnostics
    count, held = 5 * 2**18 - 1, 2 + 3 * 18 + 2
    assert problem.code == "SP229"
    assert f"makes {count} ops" in problem.message
    assert f"{count // held} times the {held} that" in problem.message


def test_calls_that_double_a_few_times_are_inlined() -> None:
    assert str(shardpass.run_pipeline(doubling(8), "import")).count("stablehlo.sine") == 2**8


def test_a_large_module_may_become_larger() -> None:
    """Each of 80 layers holds 2,000 ops, of which half are its own function's and are called once for each layer."""
    assert most_ops(1000 + 80 * 1000) > 80 * 2000
    assert most_ops(10) < 2**17
