"""Rows of small JAX programs: what they are about, whose line it is, and why. Bytes come from arithmetic here."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.diagnostics import NOWHERE
from shardpass.ir.collectives import collectives
from shardpass.report.explanation import Explanation
from shardpass.report.groups import PROGRAM
from shardpass.report.naming import GRADIENT
from shardpass.report.rows import scopes
from shardpass.report.text import text

DATA, MODEL = 4, 2
MESH = AbstractMesh((DATA, MODEL), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
FILE = __file__


def array(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def explained(f: Any, *given: Any, effort: int = 0, **more: Any) -> Explanation:
    return shardpass.explain(f, *given, mesh=MESH, effort=effort, **more)


def line_of(f: Any, text: str) -> int:
    """The line of this file at which ``f`` says ``text``."""
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, line in enumerate(lines) if text in line)


def pin(x: Any, *spec: Any) -> Any:
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def contraction(x: Any, w: Any) -> Any:
    h = x @ w
    return jnp.tanh(h)


def test_a_jitted_function_that_constrains_its_argument_is_no_constraint() -> None:
    """Only with_sharding_constraint is called a constraint: the step has none."""
    rows = NamedSharding(MESH, P("data"))
    inner = jax.jit(jnp.tanh, in_shardings=rows, out_shardings=rows)

    def step(x: Any) -> Any:
        return inner(x) + 1

    found = explained(step, array(32, 128), in_shardings=(P(None, "model"),), out_shardings=P("data"))
    assert [row.reason for row in found.rows] == ["the sharding of jit(tanh) here says P('data')"]


def test_one_axis_of_four_devices_is_one_axis() -> None:
    """It has two factors of 2, of which the sentence knows nothing."""
    found = explained(contraction, array(32, 128), array(128, 64), in_shardings=(P(None, "data"), P("data")))
    (row,) = found.rows
    assert row.reason == "dot_general sums over a dimension that 'data' splits in x (argument x)"


def test_partial_sums_name_the_operand_that_splits_the_contraction() -> None:
    """A partial [32,64] of f32 on each device; the ring over 2 devices brings 2 * 8192 * 1/2 bytes."""
    found = explained(contraction, array(32, 128), array(128, 64), in_shardings=(P(None, "model"), P("model")))
    (row,) = found.rows
    assert (row.kind, row.axes, row.bytes_each, row.times) == ("all_reduce", ("model",), 32 * 64 * 4, 1)
    assert (row.array, row.type) == ("h", "f32[32,64]")
    assert (row.source, row.target) == ("partial over model", "P()")
    assert (row.place.file, row.place.line) == (FILE, line_of(contraction, "h = x @ w"))
    assert row.reason == "dot_general sums over a dimension that 'model' splits in x (argument x)"
    assert row.direction == "forward"
    assert row.names == "jit(contraction)/dot_general"


def gathered(x: Any, w: Any) -> Any:
    return pin(x, "data") @ pin(w)


def test_a_constraint_is_named_as_the_reason() -> None:
    """w, [128,64] of f32 in 4 tiles, is made whole: 3/4 of it is received."""
    found = explained(gathered, array(32, 128), array(128, 64), in_shardings=(P("data"), P("data")))
    (row,) = found.rows
    assert (row.kind, row.array, row.source, row.target) == ("all_gather", "w", "P('data')", "P()")
    assert row.bytes_received == 128 * 64 * 4 * 3 // 4
    assert row.reason == "the constraint here says P()"


def two_operands(x: Any, w: Any) -> Any:
    return pin(x @ w, "data")


def test_an_operand_that_is_moved_says_for_whom() -> None:
    """Rows of x and rows of w over one axis; the result's constraint keeps x split, so w is gathered."""
    found = explained(two_operands, array(256, 64), array(64, 64), in_shardings=(P("data"), P("data")))
    (row,) = found.rows
    assert (row.array, row.target) == ("w", "P()")
    assert row.reason.startswith("dot_general splits x over 'data' (argument x), so it takes this as P()")


def loss(w: Any, x: Any) -> Any:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def test_what_a_derivative_computes_is_backward_and_named_by_its_value() -> None:
    """The gradient of w sums over the batch: an all_reduce of [64,64] over 4 devices."""
    found = explained(jax.grad(loss), array(64, 64), array(256, 64), in_shardings=(P(), P("data")))
    (row,) = [row for row in found.rows if row.bytes_received > 1000]
    assert (row.kind, row.direction, row.array) == ("all_reduce", "backward", "gradient of w")
    assert row.bytes_received == 2 * 64 * 64 * 4 * 3 // 4
    assert row.place.line == line_of(loss, "x @ w")


def layer(h: Any, w: Any) -> Any:
    return jnp.tanh(h @ pin(w))


def layers(x: Any, weights: Any) -> Any:
    for w in weights:
        x = layer(x, w)
    return x


def test_layers_that_repeat_are_folded() -> None:
    weights = [array(64, 64)] * 6
    found = explained(layers, array(32, 64), weights, in_shardings=(P("data"), [P("data", None)] * 6))
    (group,) = found.by_line()
    assert group.place.line == line_of(pin, "with_sharding_constraint")
    (folded,) = group.folded
    assert (folded.row.kind, folded.array, folded.runs) == ("all_gather", "weights[*]", 6)
    assert group.bytes_received == 6 * 64 * 64 * 4 * 3 // 4  # each device has a quarter of each weight


def scanned(x: Any, weights: Any) -> Any:
    def body(h: Any, w: Any) -> Any:
        z = h @ w
        return jnp.tanh(pin(z)), None

    return jax.lax.scan(body, x, weights)[0]


def test_a_loop_multiplies() -> None:
    """12 trips, each an all_gather of half of z, [32,64]."""
    found = explained(scanned, array(32, 64), array(12, 64, 64), in_shardings=(P(), P(None, None, "model")))
    (row,) = found.rows
    assert (row.kind, row.array, row.times) == ("all_gather", "z", 12)
    assert row.bytes_received == found.total_bytes_received == 12 * 32 * 64 * 4 // 2
    assert "12 x all_gather over model: z" in str(found)


def until(x: Any, w: Any) -> Any:
    def going(state: Any) -> Any:
        return jnp.sum(state) < 1e9

    return jax.lax.while_loop(going, lambda h: pin(h @ w), x)


def test_a_loop_of_unknown_length_says_so_and_shows_a_range() -> None:
    given = {"in_shardings": (P(), P(None, "model"))}
    found = explained(until, array(64, 64), array(64, 64), trips=10, **given)
    assert found.unknown_loops
    once = found.total_bytes_received
    inside = sum(row.bytes_received for row in found.rows if row.unknown_loops)
    assert found.bytes_at_most(10) == once + 9 * inside
    assert "in loops whose trips are not known count once; with 10 the greater number" in " ".join(str(found).split())


def returned(x: Any) -> Any:
    return x + 1.0


def test_a_result_says_who_wants_it_so() -> None:
    found = explained(returned, array(64, 64), in_shardings=P("data"), out_shardings=P(None, "data"))
    (row,) = found.rows
    assert row.kind == "all_to_all"
    assert (row.source, row.target) == ("P('data')", "P(None, 'data')")
    assert "P(None, 'data')" in row.reason


def test_every_row_points_to_an_op_of_the_program() -> None:
    found = explained(jax.grad(loss), array(64, 64), array(256, 64), in_shardings=(P("model"), P("data")))
    numbers = {op.number: op for op in found.ops}
    assert found.rows
    assert {row.op for row in found.rows} <= numbers.keys()
    x = found.ops[0].results[1]
    assert (x.name, x.type, x.sharding, x.dims) == ("x", "f32[256,64]", "P('data')", (("data",), ()))
    assert x.bytes == 256 * 64 * 4 // DATA


def test_groups_add_up_to_the_whole() -> None:
    found = explained(jax.grad(loss), array(64, 64), array(256, 64), in_shardings=(P("model"), P("data")))
    for by in ("line", "axis", "kind", "array"):
        assert sum(group.bytes_received for group in found.grouped(by)) == found.total_bytes_received


def test_time_follows_the_profile() -> None:
    given = (array(32, 128), array(128, 64))
    shardings = {"in_shardings": (P(None, "model"), P("model"))}
    slow = explained(contraction, *given, machine="ethernet", **shardings)
    assert slow.seconds == pytest.approx(50e-6 + 32 * 64 * 4 / 3e9)  # its latency and bandwidth
    assert slow.seconds > explained(contraction, *given, machine="v5p", **shardings).seconds


def test_a_module_that_is_partitioned_already_is_taken_as_it_is() -> None:
    lowered = jax.jit(contraction, in_shardings=tuple(NamedSharding(MESH, s) for s in (P(None, "model"), P("model"))))
    text = lowered.trace(array(32, 128), array(128, 64)).lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
    module = shardpass.run_pipeline(text, "partition")
    (row,) = shardpass.explain(module).rows
    assert (row.axes, row.bytes_received) == (("model",), collectives(module)[0].bytes_received)
    assert row.place.line == line_of(contraction, "h = x @ w")


def test_what_the_search_settles_is_told_with_its_line() -> None:
    """Rows of x are whole and rows of w split: propagation alone sums [512,64] in each layer, the search does not."""

    def deep(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = x + jnp.tanh(x @ w)
        return x

    given = (array(512, 64), array(64, 64))
    shardings = {"in_shardings": (P(), P("data"))}
    alone, searched = (explained(deep, *given, effort=effort, **shardings) for effort in (0, 1))
    assert searched.total_bytes_received < alone.total_bytes_received
    assert alone.changes == ()
    assert any(one.saved > 0 for one in searched.changes)
    assert "decided, beyond what propagation finds:" in str(searched)
    assert "beyond what propagation finds" not in str(alone)


def test_arguments_behind_many_that_are_equal_are_named_by_their_own_places() -> None:
    """The search keeps equal layers once, so that its program has fewer arguments than main."""

    def deep(ps: Any, x: Any, u: Any, v: Any) -> Any:
        for p in ps:
            x = x + jnp.tanh(x @ p)
        return x, u @ v

    given = ([array(64, 64)] * 12, array(512, 64), array(2, 640), array(640, 2))
    found = explained(deep, *given, effort=1, in_shardings=([P("data")] * 12, P(), P(), P("model")))
    assert found.changes  # else no search's program is kept
    row = found.rows[-1]
    assert (row.kind, row.array) == ("all_reduce", "u @ v")
    # over data too: 4 x 640 points, shared by eight devices, save more work than 12 bytes of the sum cost
    assert row.reason == "dot_general sums over a dimension that 'model' and 'data' split in u (argument v)"
    assert found.decision is not None
    assert "least sum of communication and work" in str(found.decision["text"])
    assert str(found.decision["text"]) in " ".join(str(found).split())


LIBRARY = """
import jax
import jax.numpy as jnp


def rows(x, w):
    return jnp.tanh(x @ w)


def columns(x, w):
    return jnp.sin(x @ w)


def scoped(x, w):
    with jax.named_scope("block2d_7"):
        y = dense(x, w)
    with jax.named_scope("block2d_8"):
        y = y + dense(jnp.sin(x), w)
    with jax.named_scope("head"):
        return y + dense(jnp.cos(x), w)


def dense(x, w):
    return jnp.tanh(x @ w)


def fit(x, w):
    y = rows(x, w)
    return columns(x, w) + scoped(y, w)
"""


@pytest.fixture
def library(tmp_path: Path) -> Any:
    """A package as one that is installed: its file lies below site-packages."""
    path = tmp_path / "site-packages" / "trainer.py"
    path.parent.mkdir()
    path.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location("a_trainer", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbered(text: str) -> int:
    """The line of the library that says ``text``."""
    return 1 + next(k for k, line in enumerate(LIBRARY.split("\n")) if text in line)


def test_a_line_that_calls_a_library_goes_on_by_its_lines_and_scopes(library: Any) -> None:
    """Five products of [32,64] by [64,64], each summed over columns, of which a device has a quarter."""

    def train(x: Any, w: Any) -> Any:
        return library.fit(x, w)

    found = explained(train, array(32, 64), array(64, 64), in_shardings=(P(None, "data"), P("data")))
    (line,) = found.by_line()
    assert (line.place.file, line.place.line) == (FILE, line_of(train, "library.fit"))
    total = found.total_bytes_received
    parts = {part.place.line: part for part in line.parts(total)}
    assert {part.place.file for part in parts.values()} == {library.__file__}
    assert set(parts) == {numbered("y = rows(x, w)"), numbered("return columns(x, w)")}
    assert sum(part.bytes_received for part in parts.values()) == total
    # of fit's second line most is of scoped, which calls dense from three lines; in two of these the scopes are alike
    inside = parts[numbered("return columns")].parts(total)
    lines = [numbered("y = dense(x, w)"), numbered("y = y + dense"), numbered("return y + dense")]
    assert {part.place.line for part in inside} == {numbered("jnp.sin(x @ w)"), *lines}
    rows = [row for part in inside if part.place.line in lines for row in part.rows]
    assert {[step for step in row.path if isinstance(step, str)][-1] for row in rows} == {"block2d_*", "head"}


def test_what_lies_on_one_line_goes_on_by_scopes(library: Any) -> None:
    """The library's frames are all the same where a loop calls its layers."""

    def train(x: Any, w: Any) -> Any:
        for name in ("block_0", "block_1", "head"):
            with jax.named_scope(name):
                x = library.dense(x, w)
        return x

    found = explained(train, array(32, 64), array(64, 64), in_shardings=(P(None, "data"), P("data")))
    (line,) = found.by_line()
    parts = line.parts(found.total_bytes_received)
    assert sorted(part.key for part in parts) == ["block_*", "head"]
    assert sum(part.bytes_received for part in parts) == found.total_bytes_received
    assert all(part.parts(found.total_bytes_received) == () for part in parts)


def test_a_line_of_a_helper_goes_on_by_its_scopes_and_callers() -> None:
    """Four products of [32,64] by [64,64], each summed over columns: at one line, from two scopes and two lines."""

    def dense(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w)

    def train(x: Any, w: Any) -> Any:
        for name in ("mlp_0", "mlp_1"):
            with jax.named_scope(name):
                x = dense(x, w)  # of mlp
        with jax.named_scope("attention"):
            x = dense(jnp.sin(x), w)  # of attention
            return dense(jnp.cos(x), w)  # last

    found = explained(train, array(32, 64), array(64, 64), in_shardings=(P(None, "data"), P("data")))
    (line,) = found.by_line()
    total = found.total_bytes_received
    parts = {part.key: part for part in line.parts(total)}
    assert parts.keys() == {"mlp_*", "attention"}
    assert [len(part.rows) for part in parts.values()] == [2, 2]
    assert sum(part.bytes_received for part in parts.values()) == total
    assert parts["mlp_*"].parts(total) == ()
    callers = [line_of(train, "# of attention"), line_of(train, "# last")]
    assert [part.place.line for part in parts["attention"].parts(total, PROGRAM)] == callers
    assert all(f"{Path(FILE).name}:{line}  " in text(found) for line in callers)


def test_a_line_of_a_fifth_has_no_parts() -> None:
    """Five products of equal size: two of them are at one helper's line, which has parts; the other three have none."""

    def dense(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w)

    def train(x: Any, w: Any) -> Any:
        x = dense(x, w)
        x = dense(jnp.sin(x), w)
        x = jnp.cos(x @ w)
        x = jnp.sinh(x @ w)
        return jnp.cosh(x @ w)

    found = explained(train, array(32, 64), array(64, 64), in_shardings=(P(None, "data"), P("data")))
    parts = [len(line.parts(found.total_bytes_received)) for line in found.by_line()]
    assert parts == [2, 0, 0, 0]
    assert all(part.parts(found.total_bytes_received) == () for part in found.by_line()[0].parts(1))


def test_without_lines_rows_are_at_their_scopes() -> None:
    def train(x: Any, w: Any) -> Any:
        with jax.named_scope("encoder"):
            return jnp.tanh(x @ w).sum()

    sides = tuple(NamedSharding(MESH, spec) for spec in (P(None, "data"), P("data")))
    text = (
        jax.jit(train, in_shardings=sides)
        .trace(array(32, 64), array(64, 64))
        .lower(lowering_platforms=("cpu",))
        .as_text(debug_info=True)
    )
    bare = re.sub(r'"[^"\n]*":\d+:\d+(?: to (?:\d+)?:\d+)?', "unknown", text)
    found = shardpass.explain(bare, effort=0)
    assert found.rows
    assert {(row.place, row.where) for row in found.rows} == {(NOWHERE, "encoder")}
    assert "  encoder\n" in str(found)
    assert [line["place"] for line in json.loads(found.json())["lines"]] == ["encoder"]


@pytest.mark.parametrize(
    ("stack", "named"),
    [
        ("jit(step)/transpose(jvp(M))/Dense_0/dot_general", ("M", "Dense_*")),
        (
            "jit(step)/jit(main)/vmap(transpose(jvp(a(b))))/while/body/layers.3.attention/add",
            ("a(b)", "layers.*.attention"),
        ),
        ("jit(f)/jvp()/while/body/closed_call/conv2d_12/psum", ("conv2d_*",)),
        ("jit(f)/dot_general", ()),
        ("dot_general", ()),
        ("", ()),
    ],
)
def test_name_scopes(stack: str, named: tuple[str, ...]) -> None:
    assert scopes(stack) == named


def step(w: Any, x: Any, mean: Any) -> Any:
    """Adam's kind of update: forward ops take gradients, and what came of gradients, of the shape of the weights."""
    value, gradient = jax.value_and_grad(lambda w: (pin(jnp.tanh(x @ w["a"]) @ w["b"], "data") ** 2).sum())(w)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    return value, jax.tree.map(lambda p, m, g: p - m / (1 + g * g), w, mean, gradient), mean


def test_a_step_whose_code_is_all_on_one_line_of_a_library() -> None:
    """As a training loop of a library, and one that its tracer reduced to one frame: no name is found in a circle."""
    weights = {"a": array(64, 64), "b": array(64, 64)}
    split = {"a": P("data"), "b": P("model")}
    sides = jax.tree.map(lambda spec: NamedSharding(MESH, spec), (split, P("data"), split))
    traced = jax.jit(step, in_shardings=sides).trace(weights, array(32, 64), weights)
    text = traced.lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
    line = '"/usr/lib/python3/site-packages/keras/trainer.py":7:3 to :9'
    one, count = re.subn(r'"[^"\n]*":\d+:\d+(?: to (?:\d+)?:\d+)?', line, text)
    assert count > 20
    found = shardpass.explain(one, effort=0)
    assert found.rows
    assert {row.place.line for row in found.rows} == {7}
    assert all(not row.array.startswith(GRADIENT * 2) for row in found.rows)
