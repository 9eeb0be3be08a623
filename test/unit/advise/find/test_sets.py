"""Sets of arrays that belong together: of one size, of a teacher and a student, or of one shard_map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from shardpass.advise.find.propose import KINDS
from shardpass.advise.find.propose.alike import aligned
from shardpass.advise.find.propose.borders import borders
from shardpass.advise.find.propose.decided import decided
from shardpass.advise.find.propose.mesh import shapes
from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.find.propose.states import frozen
from shardpass.advise.find.propose.unplaced import batches
from shardpass.advise.find.rank import Trial, best
from shardpass.advise.find.scheme import is_unfounded, moves
from shardpass.advise.find.sentences import sentence, specs_of
from shardpass.advise.place.sites import CONSTRAINT, Sites, read
from shardpass.advise.place.write import Change, with_changes
from shardpass.ir.context import parse_module
from shardpass.report.findings import Figures
from shardpass.report.naming import Sources
from shardpass.sharding import Sharding

MODULE = """
module @step attributes {{mhlo.num_partitions = 8 : i32}} {{
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func @main({arguments}) -> tensor<f32> {{
{body}
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    return %z : tensor<f32>
  }}
}}
"""


BASE, SAVED = Figures(1000, 1000, 0, 1.0), Figures(500, 1000, 0, 0.5)


def argument(place: int, name: str, shape: str, *dims: str) -> str:
    """An argument that is split over the axes ``dims``, "" for none."""
    spec = ", ".join(f'{{"{axis}"}}' if axis else "{}" for axis in dims)
    return f'%{place}: tensor<{shape}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{spec}]>}} loc("{name}")'


def edits_of(
    propose: Callable[[Context], Iterator[Edit]], *arguments: str, body: str = "", **more: object
) -> list[dict[str, object]]:
    """The specs by name of each proposed edit."""
    text = MODULE.format(arguments=", ".join(arguments), body=body)
    reading = read(text, "step.mlir", Sources(()))
    with reading.module.context:
        edits = list(propose(Context(Sites(reading), **more)))  # type: ignore[arg-type]
    return [{change.site.pattern: change.spec for change in edit} for edit in edits]


def test_an_axis_is_moved_to_the_experts_in_all_arguments() -> None:
    """Experts' weights of both layers have their hidden dimension over 'model', each another one; the gate stays."""
    up = argument(0, "p['up']", "8x16x64", "", "", "model")
    down = argument(1, "p['down']", "8x64x16", "", "model", "")
    gate = argument(2, "p['gate']", "16x8", "", "model")
    experts = (("model",), (), ())
    assert {"p['up']": experts, "p['down']": experts} in edits_of(aligned, up, down, gate)


def test_a_batch_that_is_time_major_is_split_along_the_other_dimension() -> None:
    rows = argument(0, "b['rows']", "32x16x64", "data", "", "")
    done = argument(1, "b['done']", "32x16", "data", "")
    first = argument(2, "b['first']", "16x64", "data", "")
    other = {"b['rows']": ((), ("data",), ()), "b['done']": ((), ("data",))}
    assert other in edits_of(aligned, rows, done, first)


def test_both_factors_of_an_adapter_are_moved_without_the_square_weight() -> None:
    weight = argument(0, "p['w']", "64x64", "model", "")
    first, second = argument(1, "p['a']", "64x8", "", "model"), argument(2, "p['b']", "8x64", "model", "")
    moved = {"p['a']": (("model",), ()), "p['b']": ((), ("model",))}
    assert moved in edits_of(aligned, weight, first, second)


def test_a_batch_is_moved_to_a_dimension_over_which_others_are_split() -> None:
    """Of (time, environments, ...) the environments are split in another array; the features nowhere."""
    rows, first = argument(0, "rows", "32x16x64", "data", "", ""), argument(1, "first", "16x48", "data", "")
    reading = read(MODULE.format(arguments=f"{rows}, {first}", body=""), "step.mlir", Sources(()))
    with reading.module.context:
        context = Context(Sites(reading))
        site = context.sites.arguments[0]
        assert not is_unfounded(context, (Change(site, ((), ("data",), ())),))
        assert is_unfounded(context, (Change(site, ((), (), ("data",))),))
        assert not is_unfounded(context, (Change(site, (("model",), (), ())),))


def test_a_batch_is_not_moved_because_a_weight_is_split_so() -> None:
    rows, weight = argument(0, "x", "32x16", "data", ""), argument(1, "w", "16x48", "data", "")
    text = MODULE.format(arguments=f"{rows}, {weight}", body="").replace("-> tensor<f32>", "-> tensor<16x48xf32>")
    reading = read(text.replace("%z : tensor<f32>", "%1 : tensor<16x48xf32>"), "step.mlir", Sources(()))
    with reading.module.context:
        context = Context(Sites(reading))
        assert is_unfounded(context, (Change(context.sites.arguments[0], ((), ("data",))),))


def test_soft_targets_are_split_as_the_batch_and_the_head() -> None:
    rows, head = argument(0, "x", "32x16", "data", ""), argument(1, "head", "16x64", "", "model")
    soft = argument(2, "soft", "32x64", "", "")
    assert {"soft": (("data",), ("model",))} in edits_of(batches, rows, head, soft)


def test_a_teacher_is_split_as_the_student() -> None:
    """The larger teacher's arrays have other types; its bias has no counterpart of its rank that is split."""
    student = argument(0, "student['up']", "16x32", "data", "")
    teacher = argument(1, "teacher['up']", "64x128", "", "")
    bias = argument(2, "teacher['b']", "128", "")
    assert edits_of(frozen, student, teacher, bias) == [{"teacher['up']": (("data",), ())}]


def test_a_decided_spec_is_proposed_where_propagation_has_another() -> None:
    """Values of a line without a name are no places; of the arguments only those without an annotation."""
    plain = '%0: tensor<32x16xf32> loc("x")'
    written = argument(1, "y", "32x16", "data", "")
    text = MODULE.format(arguments=f"{plain}, {written}", body="")
    reading = read(text, "step.mlir", Sources(()))
    with reading.module.context:
        mesh = reading.program.mesh.mesh
        whole, split = (Sharding.tiled(mesh, spec) for spec in (((), ()), (("data",), ())))
        values = reading.program.body.arguments
        now, there = dict.fromkeys(values, whole), dict.fromkeys(values, split)
        edits = list(decided(Context(Sites(reading), now=now, decided=there)))
        assert [[(one.site.pattern, one.spec) for one in edit] for edit in edits] == [[("x", (("data",), ()))]]
        assert not list(decided(Context(Sites(reading), now=there, decided=there)))


def test_the_axes_of_the_mesh_exchange_their_sizes_where_all_arrays_divide() -> None:
    x, w = argument(0, "x", "32x16", "data", ""), argument(1, "w", "6x16", "", "model")
    text = MODULE.format(arguments=f"{x}, {w}", body="")
    reading = read(text, "step.mlir", Sources(()))
    with reading.module.context:
        (edit,) = shapes(Context(Sites(reading)))
        assert specs_of(edit[0]) == ("data=4, model=2", "data=2, model=4")
        assert sentence(edit, BASE, SAVED).startswith("the mesh has data=4, model=2, which costs")
        assert moves(Context(Sites(reading)), edit)
        module = parse_module(text)
        with module.context:
            changed = str(parse_module(with_changes(module, reading.program.mesh.mesh, edit)))
    assert '<["data"=2, "model"=4]>' in changed
    assert not edits_of(shapes, x, argument(1, "w", "16x6", "", "model"))


REGION = """
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>]
        manual_axes={"data", "model"} (%a: tensor<32x16xf32>) {
      sdy.return %a : tensor<32x16xf32>
    } : (tensor<32x16xf32>) -> tensor<32x16xf32> loc("train.py":7:5)
"""


def test_in_specs_get_the_spec_that_the_array_has() -> None:
    field = argument(0, "field", "32x16", "data", "model")
    text = MODULE.format(arguments=field, body=REGION)
    reading = read(text, "step.mlir", Sources(()))
    with reading.module.context:
        sites = Sites(reading)
        placed = {0: Sharding.tiled(reading.program.mesh.mesh, (("data",), ("model",)))}
        ((change,),) = borders(Context(sites, now=placed))
        assert (change.site.pattern, change.site.spec, change.spec) == ("field", ((), ()), (("data",), ("model",)))
        assert change.site.pieces == ((0, 1),)
        assert not list(borders(Context(sites, now={0: Sharding.tiled(reading.program.mesh.mesh, ((), ()))})))


def test_a_whole_state_with_less_memory_contains_the_first_edit() -> None:
    """The first saves more time; the set of its tree holds less, and is one mistake."""
    kind = {one.name: one for one in KINDS}["state"]
    text = MODULE.format(arguments=f"{argument(0, 'a', '8x8', '', '')}, {argument(1, 'b', '4x8', '', '')}", body="")
    reading = read(text, "step.mlir", Sources(()))
    with reading.module.context:
        one, other = (Change(site, (("data",), ())) for site in Sites(reading).arguments)
    base = Figures(1000, 1000, 0, 1.0)
    part = Trial((one,), kind, 0.5, after=Figures(500, 900, 0, 0.5))
    every = Trial((one, other), kind, 0.5, after=Figures(700, 600, 0, 0.9))
    heavy = Trial((one, other), kind, 0.5, after=Figures(700, 950, 0, 0.9))
    assert best(base, [part, every]) is every
    assert best(base, [part, heavy]) is part


def test_a_batch_takes_no_axis_over_from_another_dimension_of_a_constraint() -> None:
    """Of a constraint to P('data', 'model'), P(('data', 'model')) is data parallelism for tensor parallelism."""
    rows = argument(0, "x", "32x16", "data", "model")
    reading = read(MODULE.format(arguments=rows, body=""), "step.mlir", Sources(()))
    with reading.module.context:
        context = Context(Sites(reading))
        site = replace(context.sites.arguments[0], kind=CONSTRAINT)
        both = (("data", "model"), ())
        assert is_unfounded(context, (Change(site, both),))
        assert not is_unfounded(context, (Change(site, (("model",), ("data",))),))
        assert not is_unfounded(context, (Change(replace(site, spec=(("data",), ())), both),))
