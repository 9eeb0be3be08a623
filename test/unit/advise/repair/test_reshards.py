"""Reshards that cost more than they must, in programs of this file; bytes by arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, auto_axes, reshard
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.advise.find.source import Replacement, SourceFile
from shardpass.advise.repair import reshards
from shardpass.advise.repair.trace import CannotTrace, Retracer
from shardpass.advise.repair.written import Calls
from shardpass.report.naming import Sources

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2, devices=jax.devices()[:8])
F32 = 4


@pytest.fixture(autouse=True)
def _mesh():
    with jax.set_mesh(MESH):
        yield


def array(*shape, spec):
    return jax.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(MESH, spec))


X, W1, W2 = (
    array(16, 32, spec=P("data", None)),
    array(32, 64, spec=P(None, "model")),
    array(64, 32, spec=P("model", None)),
)


def line_of(mark):
    """The line of this file that ends with ``# mark``."""
    with open(__file__) as file:
        return next(number for number, row in enumerate(file, 1) if row.rstrip().endswith(f"# {mark}"))


def found_in(function, *arguments, **options):
    return shardpass.explain(function, *arguments, **options).findings


def gathered_first(x, w):
    x = reshard(x, P(None, None))  # gathered
    return reshard(jnp.tanh(x) @ w, P("data", "model"))


def test_a_gather_that_is_split_again_is_dropped():
    (finding,) = found_in(gathered_first, X, W1)
    assert finding.place.line == line_of("gathered")
    assert finding.before.bytes == (16 - 4) * 32 * F32  # the rows that a device has not
    assert finding.after.bytes == 0
    removed = [row for row in finding.diff.splitlines() if row.startswith("-") and not row.startswith("---")]
    assert removed == ["-    x = reshard(x, P(None, None))  # gathered"]


def test_the_function_is_as_it_was_behind_the_search():
    code = gathered_first.__code__
    assert len(found_in(gathered_first, X, W1)) == 1
    assert gathered_first.__code__ is code
    assert len(found_in(gathered_first, X, W1)) == 1  # no trace with an edit is kept for one without


def contracted(x, w1, w2):
    h = jnp.maximum(x @ w1, 0)
    return jnp.matmul(h, w2, out_sharding=P("data", None))


def test_a_sum_over_a_split_dimension_needs_its_spec():
    assert shardpass.explain(contracted, X, W1, W2).total_bytes_received > 0
    assert not found_in(contracted, X, W1, W2)


def repeated(x, w):
    h = x @ w
    h = reshard(  # repeated
        h,
        P("data", "model"),
    )
    return 2 * h


def test_a_reshard_to_the_type_that_is_there_is_found_though_it_costs_nothing():
    (finding,) = found_in(repeated, X, W1)
    assert finding.place.line == line_of("repeated")
    assert "repeats the type" in finding.sentence
    assert finding.before.bytes == finding.after.bytes == 0
    assert "received 0 B before and after" in str(shardpass.explain(repeated, X, W1))


def both_operands(x, y):
    return reshard(reshard(x, P("model", None)) + reshard(y, P("model", None)), P("data", None))


def test_two_reshards_that_only_go_together():
    (finding,) = found_in(both_operands, X, X)
    assert len(finding.annotations) == 2
    assert finding.before.bytes >= 2 * (16 // 2 - 16 // 4) * 32 * F32  # a half lacks at least this of a quarter
    assert finding.after.bytes == 0
    assert '+    return reshard(x + y, P("data", None))' in finding.diff


@auto_axes(out_sharding=P(None, None))  # region
def doubled(x):
    return jnp.sin(x) * 2


def through_a_region(x):
    return reshard(doubled(x), P("data", None))


def test_a_region_of_a_module_is_dropped_with_its_decorator():
    wrapper, cells = doubled.__code__, [cell.cell_contents for cell in doubled.__closure__]
    (finding,) = found_in(through_a_region, X)
    assert "-@auto_axes(out_sharding=P(None, None))  # region" in finding.diff.splitlines()
    assert (finding.before.bytes, finding.after.bytes) == ((16 - 4) * 32 * F32, 0)
    assert doubled.__code__ is wrapper
    assert [cell.cell_contents for cell in doubled.__closure__] == cells


def sorted_rows(x):
    y = auto_axes(lambda a: jnp.sort(a, axis=1), out_sharding=P())(x)  # sorted
    return reshard(y * 2, P("data", None))


def test_a_region_inside_of_the_function():
    (finding,) = found_in(sorted_rows, X)
    assert finding.place.line == line_of("sorted")
    assert (finding.before.bytes, finding.after.bytes) == ((16 - 4) * 32 * F32, 0)


def to(x, *names):
    """A helper, as many programs have one."""
    return reshard(x, P(*names))


def helped(x, w):
    h = to(jnp.exp(x), None, None) @ w  # helped
    return to(h, "data", "model")


def test_a_call_of_a_helper_is_edited_and_not_the_helper():
    (finding,) = found_in(helped, X, W1)
    assert finding.place.line == line_of("helped")
    assert "+    h = jnp.exp(x) @ w  # helped" in finding.diff.splitlines()


def another_spec(x, w1, w2):
    h = jnp.maximum(x @ w1, 0)
    y = jnp.matmul(h, w2, out_sharding=P(None, None))  # another
    return reshard(y, P("data", None))


def test_another_spec_where_one_is_needed():
    (finding,) = found_in(another_spec, X, W1, W2)
    assert finding.action == "replace"
    assert finding.place.line == line_of("another")
    assert finding.annotations[0].spec == "P('data')"
    assert finding.after.bytes == 2 * 4 * 32 * F32 // 2  # all_reduce over two devices of a tile of 4 rows


def results_differ(x):
    return reshard(x, P(None, None))


def test_a_reshard_that_says_the_type_of_a_result_stays():
    assert shardpass.explain(results_differ, X).total_bytes_received == (16 - 4) * 32 * F32
    assert not found_in(results_differ, X)


def test_closures_whose_variable_an_edit_leaves_unused():
    def make(spec):
        def step(x, w):
            x = reshard(x, spec)  # of a closure
            return reshard(x @ w, P("data", "model"))

        return step

    (finding,) = found_in(make(P(None, None)), X, W1)
    assert finding.place.line == line_of("of a closure")
    assert finding.after.bytes == 0


def with_gradient(x, w):
    return jax.grad(lambda w, x: jnp.sum(gathered_first(x, w) ** 2))(w, x)


def test_one_place_with_equations_of_a_gradient_too():
    calls = Calls(Sources()).of(jax.jit(with_gradient).trace(X, W1).jaxpr)
    assert [str(one.target.sharding.spec) for one in calls] == ["P(None, None)", "P('data', 'model')"]


def test_xla_says_the_same():
    (finding,) = found_in(gathered_first, X, W1, partitioner="xla")
    assert finding.place.line == line_of("gathered")
    assert (finding.before.bytes, finding.after.bytes) == ((16 - 4) * 32 * F32, 0)


def on_auto_axes(x):
    return jax.lax.with_sharding_constraint(x, P())


def test_programs_on_auto_axes_are_left_alone():
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,), devices=jax.devices()[:8])
    x = jax.ShapeDtypeStruct((16, 32), np.float32, sharding=NamedSharding(mesh, P("d")))
    with jax.set_mesh(mesh):
        assert shardpass.explain(on_auto_axes, x).findings is None


def test_findings_are_looked_for_under_the_mesh_of_the_call():
    report = shardpass.explain(gathered_first, X, W1)
    other = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:8])
    with jax.set_mesh(other):
        assert len(report.findings) == 1


def test_a_file_that_changed_since_it_was_imported_is_not_tried(tmp_path):
    path = tmp_path / "changed.py"
    path.write_text("def f(x):\n    return 2 * x\n")
    space: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    retracer = Retracer(jax.jit(space["f"]), (X,), {})

    def traced(old, new):
        source = SourceFile(str(path), path.read_text())
        start = source.raw.index(old)
        edit = Replacement(start, start + len(old), new)
        return [one.primitive.name for one in retracer.trace({source: [edit]}).jaxpr.eqns]

    assert traced(b"2 * x", "2 + x") == ["add"]
    with pytest.raises(CannotTrace, match="adds or removes functions"):
        traced(b"2 * x", "(lambda: 2)() * x")
    path.write_text("\ndef f(x):\n    return 2 * x\n")
    with pytest.raises(CannotTrace, match="changed since it was imported"):
        traced(b"2 * x", "2 + x")


def test_programs_are_lowered_for_the_platform_of_the_target():
    """Candidates are compared with the program, which is lowered for the target."""

    def by_platform(x):
        return jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos)

    for platform, op in ((None, "sine"), ("tpu", "cosine")):
        retracer = Retracer(jax.jit(by_platform), (X,), {}, platform)
        text = retracer.lower(retracer.traced())
        assert [one for one in ("sine", "cosine") if f"stablehlo.{one} " in text] == [op]


def test_large_programs_are_traced_less_often(monkeypatch):
    """Equations bound the traces: here none is left for the gather that costs."""
    monkeypatch.setattr(reshards, "MOST_EQUATIONS", 1)
    monkeypatch.setattr(reshards, "FEWEST_TRACED", 0)
    assert not found_in(gathered_first, X, W1)
