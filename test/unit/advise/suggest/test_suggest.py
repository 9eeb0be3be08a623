"""Suggestions: by hand, beside an expert's annotations, and put into the JAX program that they are for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

import shardpass
from shardpass.advise.find.price import planned as planned_module
from shardpass.advise.place.sites import Sites
from shardpass.advise.place.write import Change
from shardpass.advise.suggest import places
from shardpass.advise.suggest.report import Suggestion
from shardpass.advise.suggest.take import imported
from shardpass.diagnostics import ShardpassError, collect
from shardpass.partition.splices import spliced_table
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program

P = PartitionSpec
EIGHT = Mesh(np.array(jax.devices()[:8]), ("data",), axis_types=(AxisType.Auto,))
FOUR_TWO = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
KIB, MIB = 1 << 10, 1 << 20


def array(*shape: int, dtype: str = "float32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def mlp_loss(p: Any, x: Any, y: Any) -> Any:
    h = jax.nn.relu(x @ p["w1"])
    return jnp.mean((h @ p["w2"] - y) ** 2)


def adam_step(p: Any, m: Any, x: Any, y: Any) -> Any:
    """Momentum beside the weights: four arrays of 1 MiB that a device holds where nothing is split."""
    value, gradients = jax.value_and_grad(mlp_loss)(p, x, y)
    m = jax.tree.map(lambda m, g: 0.9 * m + g, m, gradients)
    return value, jax.tree.map(lambda p, m: p - 0.1 * m, p, m), m


WEIGHTS = {"w1": array(256, 1024), "w2": array(1024, 256)}
MLP = (WEIGHTS, WEIGHTS, array(512, 256), array(512, 256))


def attention_step(p: Any, t: Any) -> Any:
    """Two layers alike behind a lookup."""

    def logits(p: Any) -> Any:
        x = p["table"][t]
        for one in p["layers"]:
            q, k = x @ one["q"], x @ one["k"]
            weights = jax.nn.softmax(jnp.einsum("bse,bte->bst", q, k))
            x = x + jnp.einsum("bst,bte->bse", weights, x) @ one["o"]
        return x @ p["table"].T

    value, gradients = jax.value_and_grad(lambda p: jnp.mean(jax.nn.log_softmax(logits(p))[..., 0]))(p)
    return value, jax.tree.map(lambda a, b: a - 0.1 * b, p, gradients)


LAYER = {"q": array(64, 64), "k": array(64, 64), "o": array(64, 64)}
ATTENTION = ({"table": array(512, 64), "layers": [LAYER, LAYER]}, array(16, 32, dtype="int32"))


def two_layers(x: Any, w1: Any, w2: Any) -> Any:
    hidden = jnp.tanh(x @ w1)
    return hidden @ w2


def specs_of(found: Suggestion, arguments: Any, names: tuple[str, ...]) -> Any:
    """For each argument the PartitionSpec that is said of it, None where nothing is."""
    return tuple(
        jax.tree_util.tree_map_with_path(_saying(found, "argument", name), argument)
        for name, argument in zip(names, arguments, strict=True)
    )


def result_specs_of(found: Suggestion, f: Any, arguments: Any) -> Any:
    """Likewise of the results."""
    return jax.tree_util.tree_map_with_path(_saying(found, "result", "result"), jax.eval_shape(f, *arguments))


def _saying(found: Suggestion, kind: str, name: str) -> Any:
    said = {path: eval(one.spec, {"P": P}) for one in found.advice if one.kind == kind for path in one.paths}
    patterns = [(re.compile(re.escape(path).replace(r"\[\*\]", r"\[\d+\]")), spec) for path, spec in said.items()]

    def of(path: Any, _: Any) -> Any:
        whole = name + jax.tree_util.keystr(path)
        return next((spec for pattern, spec in patterns if pattern.fullmatch(whole)), None)

    return of


def over(mesh: Any, specs: Any) -> Any:
    return jax.tree.map(
        lambda spec: None if spec is None else NamedSharding(mesh, spec),
        specs,
        is_leaf=lambda leaf: leaf is None or isinstance(leaf, P),
    )


def planned(
    f: Any, arguments: Any, specs: Any, mesh: Any, results: Any = None, propagate: str = "shardpass-propagate"
) -> ProgramPlan:
    """The plan of the JAX program ``f`` with these specs, and where nothing is said, nothing."""
    lowered = jax.jit(f, in_shardings=over(mesh, specs), out_shardings=over(mesh, results)).lower(*arguments)
    with collect():
        text = lowered.as_text(debug_info=True)
        module = shardpass.run_pipeline(text, f"shardpass-import,{propagate}")
        with module.context:
            table = spliced_table(module)
            return plan_program(table.program, table.all_shardings())


CASES = [
    pytest.param(adam_step, MLP, ("p", "m", "x", "y"), EIGHT, "3MiB", id="mlp-8"),
    pytest.param(adam_step, MLP, ("p", "m", "x", "y"), FOUR_TWO, "3MiB", id="mlp-4x2"),
    pytest.param(adam_step, MLP, ("p", "m", "x", "y"), EIGHT, None, id="mlp-8-no-limit"),
    pytest.param(attention_step, ATTENTION, ("p", "t"), EIGHT, "1.2MiB", id="attention-8"),
    pytest.param(attention_step, ATTENTION, ("p", "t"), FOUR_TWO, None, id="attention-4x2"),
    pytest.param(
        two_layers, (array(1024, 64), array(64, 256), array(256, 64)), ("x", "w1", "w2"), EIGHT, None, id="forward"
    ),
]


@pytest.mark.parametrize(("f", "arguments", "names", "mesh", "limit"), CASES)
def test_what_is_printed_gives_what_is_promised(f: Any, arguments: Any, names: Any, mesh: Any, limit: Any) -> None:
    """Annotations of arguments put into the JAX program: the passes receive these bytes, at this price and peak."""
    found = shardpass.suggest(f, *arguments, mesh=mesh, memory_limit=limit)
    assert {one.kind for one in found.advice} <= {"argument", "result"}
    specs, results = specs_of(found, arguments, names), result_specs_of(found, f, arguments)
    plan = planned(f, arguments, specs, mesh, results)
    assert plan.bytes_received == found.figures.bytes
    assert plan.alive.peak == found.figures.memory
    with collect():
        report = shardpass.explain(f, *arguments, mesh=mesh, in_shardings=specs, out_shardings=results)
    assert report.step_seconds == pytest.approx(found.figures.seconds)
    assert price(plan) >= found.figures.seconds * (1 - 1e-9)  # later passes join collectives
    for one in found.advice:
        assert one.saves_seconds > 0 or one.saves_memory > 0 or (one.kind == "result" and "as it came in" in str(one))
    if f is not two_layers:
        weights = plan.body.arguments[: len(jax.tree.leaves(arguments[: len(arguments) - 1 - (f is adam_step)]))]
        assert plan.returned[1:] == tuple(sharding for _, sharding in weights)  # the value comes first


def test_replication_breaks_the_limit_and_weights_are_split() -> None:
    """Weights, momentum, and what of these is new: six arrays of 1 MiB; x and y are 512 KiB each.

    Whole, the arguments alone take 2 * 2 + 1 = 5 MiB. Split over data, arguments take 5 / 8 MiB.
    """
    found = shardpass.suggest(adam_step, *MLP, mesh=EIGHT, memory_limit="3MiB")
    assert found.before.alive.arguments == 5 * MIB
    assert found.figures_before.memory > 3 * MIB >= found.figures.memory
    assert found.plan.alive.arguments < 5 * MIB
    assert any("'data'" in one.spec for one in found.advice)


def test_a_machine_may_be_named() -> None:
    """The machine is the search's, which is a pass with an option for it."""
    found = shardpass.suggest(mlp_loss, WEIGHTS, array(512, 256), array(512, 256), mesh=EIGHT, machine="h100")
    assert found.plan is not None


def test_it_is_as_cheap_as_an_expert() -> None:
    """FSDP as an expert writes it: weights and momentum in rows or columns over data, and the batch."""
    found = shardpass.suggest(adam_step, *MLP, mesh=EIGHT, memory_limit="3MiB")
    split = {"w1": P(None, "data"), "w2": P("data", None)}
    expert = planned(adam_step, MLP, (split, split, P("data"), P("data")), EIGHT)
    assert expert.alive.peak <= 3 * MIB
    assert found.figures.seconds <= 1.01 * price(expert)


def test_layers_are_annotated_together() -> None:
    found = shardpass.suggest(attention_step, *ATTENTION, mesh=EIGHT, memory_limit="1.2MiB")
    paths = dict(found.arguments)
    assert "p['layers'][*]['q']" in paths
    assert not any("layers'][0]" in path for path in paths)


def test_what_the_user_says_is_kept() -> None:
    """A weight that the user splits by columns stays so and is not suggested again."""

    def f(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w)

    arguments = (array(1024, 64), array(64, 256))
    jitted = jax.jit(f, in_shardings=(None, NamedSharding(EIGHT, P(None, "data"))))
    found = shardpass.suggest(jitted, *arguments, mesh=EIGHT)
    assert [one.paths for one in found.advice if "w" in one.paths] == []
    spec = str(dict(found.plan.body.arguments)[1])
    assert spec == "{devices=[1,8]<=[8]}"


def test_the_least_memory_is_said_where_nothing_fits() -> None:
    with pytest.raises(ShardpassError) as error:
        shardpass.suggest(adam_step, *MLP, mesh=EIGHT, memory_limit=100)
    assert error.value.code == "SP804"
    least = int(re.findall(r"at least (\d+) bytes", str(error.value))[0])
    found = shardpass.suggest(adam_step, *MLP, mesh=EIGHT, memory_limit=least)
    assert found.figures.memory <= least


def test_a_line_is_constrained_as_jax_does() -> None:
    """Columns of ``hidden`` over data, where the search would have rows: the bytes are those of JAX's constraint."""

    def f(x: Any, w1: Any, w2: Any, pin: Any = lambda h: h) -> Any:
        hidden = pin(jnp.tanh(x @ w1))
        return hidden @ w2

    arguments = (array(512, 64), array(64, 256), array(256, 64))
    shardings = (None, NamedSharding(EIGHT, P(None, "data")), NamedSharding(EIGHT, P("data", None)))
    text = jax.jit(f, in_shardings=shardings).lower(*arguments).as_text(debug_info=True)
    reading = imported(text, "-", None)
    line = next(site for site in places.lines(Sites(reading)) if site.names == ("jnp.tanh(x @ w1)",))
    assert line.place.line == f.__code__.co_firstlineno + 1
    assert Path(line.place.file) == Path(__file__)
    free = planned_module(reading.module, [], "shardpass-propagate")
    ours = planned_module(reading.module, [Change(line, ((), ("data",)))], "shardpass-propagate")
    columns = NamedSharding(EIGHT, P(None, "data"))
    constrained = jax.jit(
        lambda x, w1, w2: f(x, w1, w2, lambda h: jax.lax.with_sharding_constraint(h, columns)), in_shardings=shardings
    )
    with collect():
        jaxs = shardpass.run_pipeline(constrained.lower(*arguments).as_text(debug_info=True), "propagate")
        with jaxs.context:
            table = spliced_table(jaxs)
            theirs = plan_program(table.program, table.all_shardings())
    assert ours.bytes_received == theirs.bytes_received
    assert ours.returned == theirs.returned
    assert str(ours) != str(free)


@pytest.mark.parametrize(("given", "code"), [(17, "SP801"), (lambda x: x, "SP802")])
def test_errors_have_codes(given: Any, code: str) -> None:
    with pytest.raises(ShardpassError) as error:
        shardpass.suggest(given, *([] if given == 17 else [array(8)]))
    assert error.value.code == code


def test_a_mesh_of_another_size_is_refused() -> None:
    jitted = jax.jit(lambda x: x + 1, in_shardings=NamedSharding(EIGHT, P("data")))
    with pytest.raises(ShardpassError, match="SP803"):
        shardpass.suggest(jitted, array(64), mesh=AbstractMesh((4,), ("data",)))


def test_every_way_to_give_a_program_gives_the_same(tmp_path: Path) -> None:
    arguments = (array(1024, 64), array(64, 256), array(256, 64))
    lowered = jax.jit(two_layers).lower(*arguments)
    text = lowered.as_text(debug_info=True)
    (tmp_path / "m.mlir").write_text(text)
    ways = [(two_layers, arguments), (jax.jit(two_layers), arguments), (lowered, ()), (text, ())]
    ways += [(tmp_path / "m.mlir", ()), (str(tmp_path / "m.mlir"), ()), (lowered.compiler_ir("stablehlo"), ())]
    found = [str(shardpass.suggest(f, *given, mesh=EIGHT)) for f, given in ways]
    assert set(found) == {found[0]}


def test_the_machine_is_that_of_the_mesh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its devices; an abstract mesh has none, and those that are here are others."""
    monkeypatch.delenv("SHARDPASS_MACHINE", raising=False)
    product = lambda x, w: x @ w  # noqa: E731
    arguments = array(64, 64), array(64, 64)
    for mesh, machine in (
        (EIGHT, "cpu"),
        (AbstractMesh((8,), ("data",)), "h100"),
        (shardpass.Mesh((("data", 8),)), "h100"),
    ):
        found = shardpass.suggest(product, *arguments, mesh=mesh)
        assert found.plan.machine.name == machine
        assert found.memory_limit == (None if machine == "cpu" else 80 * 10**9)
    found = shardpass.suggest(
        product, *arguments, mesh=AbstractMesh((8,), ("data",)), machine="v5e", memory_limit="none"
    )
    assert (found.plan.machine.name, found.memory_limit) == ("v5e", None)


def test_shardings_of_the_signature_are_given_as_to_explain() -> None:
    """Witness: ``jax.jit`` with the same shardings. Without them, the search splits the batch itself."""

    def step(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w)

    given = (array(512, 256), array(256, 256))
    specs = (P(None, "data"), P())
    jitted = jax.jit(step, in_shardings=tuple(NamedSharding(EIGHT, spec) for spec in specs))
    asked = shardpass.suggest(step, *given, mesh=EIGHT, in_shardings=specs)
    assert str(asked) == str(shardpass.suggest(jitted, *given, mesh=EIGHT))
    assert str(asked) != str(shardpass.suggest(step, *given, mesh=EIGHT))
