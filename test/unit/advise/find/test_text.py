"""Edits of a user's source: constraints, values, and the leaves of in_shardings."""

from __future__ import annotations

import ast
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from shardpass.advise.find.propose.mesh import shapes
from shardpass.advise.find.propose.program import Context
from shardpass.advise.find.propose.specs import variants
from shardpass.advise.find.propose.written import arguments
from shardpass.advise.find.source import Replacement, SourceFile, sharding_of
from shardpass.advise.find.text import JaxText, _leaf, _with_sharding
from shardpass.advise.place.sites import Sites, read
from shardpass.advise.place.specs import spec_text
from shardpass.advise.place.write import Change
from shardpass.diagnostics import Place
from shardpass.ir.frames import Frame
from shardpass.report.naming import Sources
from tools.bench.unified_diff import applied

SOURCE = """import jax
from jax.sharding import NamedSharding, PartitionSpec as P


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def step(params, x):
    é = "a"; h = jax.lax.with_sharding_constraint(x + 1, P("a"))
    return h


rows = s("data")
specs = {"w": [s(None, "model"), rows], "b": s()}
jitted = jax.jit(step, in_shardings=(specs, NamedSharding(mesh, P())), out_shardings=rows)
"""


@pytest.fixture
def file() -> SourceFile:
    return SourceFile("train.py", SOURCE)


def test_a_call_is_known_by_its_place_in_bytes(file: SourceFile) -> None:
    """`é` takes two bytes: the call starts at column 18 of letters, 19 of bytes."""
    row = SOURCE.splitlines()[9]
    column = len(row[: row.index("jax.")].encode())
    call = file.constraint_at(Frame(Place("train.py", 10, column)))
    assert call is not None
    assert file.text(call.args[0]) == "x + 1"


@pytest.mark.parametrize(
    ("steps", "text", "done"),
    [
        ((0, "w", 0), 's(None, "model")', (0, "w", 0)),
        ((0, "w", 1), "rows", (0, "w", 1)),  # said elsewhere too: the name is edited, not its value
        ((0, "b", "inner"), "s()", (0, "b")),  # a leaf for a whole tree
        ((1,), "NamedSharding(mesh, P())", (1,)),
    ],
)
def test_leaves(file: SourceFile, steps: tuple[str | int, ...], text: str, done: tuple[str | int, ...]) -> None:
    node = file.shardings("step", "in_shardings")
    assert node is not None
    found = _leaf(file, node, steps)
    assert found is not None
    assert (file.text(found[0]), found[1]) == (text, done)


def test_a_place_that_is_not_certain_is_none(file: SourceFile) -> None:
    node = file.shardings("step", "in_shardings")
    assert node is not None
    assert _leaf(file, node, (0, "missing")) is None
    assert _leaf(file, node, (5,)) is None
    assert file.shardings("other", "in_shardings") is None


def test_shardings_in_the_form_of_what_they_replace(file: SourceFile) -> None:
    def node(text: str) -> ast.expr:
        return ast.parse(text, mode="eval").body

    assert file.sharding("P('x')", node("P()")) == 'P("x")'
    assert file.sharding("P('x')", node("s()")) == 's("x")'
    assert file.sharding("P('x')") == 's("x")'
    inner = SourceFile("a.py", "a = NamedSharding(mesh, P())").tree.body[0]
    assert isinstance(inner, ast.Assign)
    other = SourceFile("a.py", "a = NamedSharding(mesh, P())")
    assert other.sharding("P('x')", inner.value) == "NamedSharding(mesh, P('x'))"


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ('a, b = P("x"), "y"\n', 'P("m", None, ("n", "o"))'),
        ("a, b = P(), 'y'\n", "P('m', None, ('n', 'o'))"),
        ('a, b, c = P(\'x\'), "y", "z"\n', "P('m', None, ('n', 'o'))"),  # as in the text that is replaced
        ("a = P()\n", "P('m', None, ('n', 'o'))"),
        ("a = P()\n'y'; \"z\"; \"z\"; r'w'; f'{a}'; '''u'''\n", 'P("m", None, ("n", "o"))'),
        ('"""Of a\'s."""\na, b = P(), \'y\'\n', "P('m', None, ('n', 'o'))"),  # a docstring has its own marks
    ],
)
def test_strings_have_the_quotation_marks_of_the_file(text: str, edited: str) -> None:
    file = SourceFile("train.py", text)
    call = next(node for node in ast.walk(file.tree) if isinstance(node, ast.Call))
    assert file.sharding("P('m', None, ('n', 'o'))", call) == edited


def test_names_with_quotation_marks_stay_as_python_writes_them() -> None:
    names = ("it's", 'an "x"', "\n", "\\", "é")
    text = SourceFile("train.py", 'a = P("x")\n').sharding(spec_text(tuple((name,) for name in names)))
    assert eval(text, {"P": lambda *spec: spec}) == names


@pytest.mark.parametrize(
    ("body", "edited"),
    [
        (["x = lax.with_sharding_constraint(x, P())  # a note", "return x"], ["return x"]),
        (["x = lax.with_sharding_constraint(x, P()); y = 1", "return x"], ["pass; y = 1", "return x"]),
        (["y = 1; x = lax.with_sharding_constraint(x, P())", "return x"], ["y = 1; pass", "return x"]),
        (["if x:", "    y = 1", "    y = 2", "else:", "    x = lax.with_sharding_constraint(x, P())", "return x"],
         ["if x:", "    y = 1", "    y = 2", "else:", "    pass", "return x"]),
        (["z = lax.with_sharding_constraint(x, P())", "return z"], ["z = x", "return z"]),
    ],
)  # fmt: skip
def test_a_dropped_constraint_takes_nothing_else_with_it(body: list[str], edited: list[str]) -> None:
    def text(lines: list[str]) -> str:
        return "".join(f"{line}\n" for line in ["def f(x):", *(f"    {line}" for line in lines)])

    file = SourceFile("train.py", text(body))
    line = next(number for number, one in enumerate(text(body).splitlines(), 1) if "constraint" in one)
    call = file.constraint_at(Frame(Place("train.py", line)))
    assert call is not None
    assert file.changed(file.unwrapped(call, call.args[0])).decode() == text(edited)


def test_specs_as_text() -> None:
    assert spec_text((("a",), (), ("b", "c"), ())) == "P('a', None, ('b', 'c'))"
    assert spec_text(((), ())) == "P()"


def test_variants_divide_and_differ() -> None:
    found = list(variants(((), ("m",)), (6, 8), {"d": 4, "m": 2}))
    assert ((), ()) in found
    assert (("m",), ()) in found  # elsewhere
    assert ((), ("d",)) in found  # the other axis
    assert ((), ("m", "d")) in found  # 8 over both
    assert all("d" not in one[0] for one in found)  # 4 does not divide 6
    assert ((), ("m",)) not in found


def test_diffs_apply() -> None:
    file = SourceFile("train.py", SOURCE)
    start = SOURCE.encode().index(b'P("a")')
    diff = file.diff([Replacement(start, start + len(b'P("a")'), "P('b')")])
    assert applied(SOURCE, diff) == SOURCE.replace('P("a")', "P('b')")
    first, second = SOURCE.encode().index(b"rows = s("), SOURCE.encode().index(b"NamedSharding(mesh, P())")
    made = Replacement(first, first, "wide = s()\n")
    more = file.diff([Replacement(second, second + 24, "rows")], [made])
    edited = SOURCE.replace("rows = s(", "wide = s()\nrows = s(")
    assert applied(edited, more) == edited.replace("NamedSharding(mesh, P())", "rows")
    with pytest.raises(ValueError, match="is not"):
        applied(SOURCE.replace("x + 1", "x + 2"), diff)


SHARED = """def step(params, mu, nu):
    return params, mu, nu


specs = {"w": s("model")}
zeros = {"w": s()}
jitted = jit(step, in_shardings=(specs, zeros, zeros), out_shardings=(specs, zeros, zeros))
"""

STATES = (Path(__file__).parent / "states.txt").read_text()  # (params, mu, nu) -> (params, mu, nu)
SPLIT, WHOLE = 'sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>', "sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>"


def test_a_tree_that_stands_for_two_states_is_not_edited_for_one() -> None:
    """Witness: the edited source, run with a ``jit`` that keeps what it is given."""
    rows = STATES.splitlines(keepends=True)
    states = "mu['w']", "nu['w']", "result[1]", "result[2]"
    module = "".join(row.replace(SPLIT, WHOLE) if any(name in row for name in states) else row for row in rows)
    reading = read(module, "train.py", Sources(()))
    with reading.module.context:
        sites = Sites(reading)
        edit = next(
            edit
            for edit in arguments(Context(sites))
            if [name for one in edit for name in one.site.names] == ["mu['w']", "result[1]['w']"]
            and edit[0].spec == (("model",), ())
        )
        text = JaxText(sites, Sources(()), "step")
        text._files._known["train.py"] = SourceFile("train.py", SHARED)
        edited = applied(SHARED, text.written(edit).diff)
    said = {}
    jit = lambda function, **given: said.update(given)  # noqa: E731
    exec(edited, {"s": lambda *spec: spec, "P": lambda *spec: spec, "jit": jit})
    assert said.keys() == {"in_shardings", "out_shardings"}
    for tree in said.values():
        one, two, three = (each["w"] if isinstance(each, dict) else each for each in tree)
        assert (one, two, three) == (("model",), ("model",), ())


def test_lines_of_a_traced_text_are_those_of_the_file() -> None:
    """A removed line stays as an empty one; of an added line, the line above is named."""
    text = "a = 1\nb = 2\nc = 3\nd = 4\n"
    file = SourceFile("train.py", text)
    made = [Replacement(6, 12, ""), Replacement(18, 18, "x = 0\n")]
    assert file.traced(made).decode() == "a = 1\n\nc = 3\nx = 0\nd = 4\n"
    assert [file.line_before(line, made) for line in (1, 3, 4, 5)] == [1, 3, 3, 4]


def test_diffs_have_paths_of_the_repository(tmp_path: Path) -> None:
    """Witness: ``git apply`` at the root of the repository."""
    (tmp_path / "pkg").mkdir()
    path = tmp_path / "pkg" / "train.py"
    path.write_text(SOURCE)
    run = partial(subprocess.run, cwd=tmp_path, check=True)
    run(["git", "init", "-q"])
    file = SourceFile(str(path), SOURCE)
    start = SOURCE.encode().index(b'P("a")')
    diff = file.diff([Replacement(start, start + len(b'P("a")'), "P('b')")])
    assert diff.startswith("--- a/pkg/train.py\n+++ b/pkg/train.py\n")
    run(["git", "apply"], input=diff.encode())
    assert path.read_text() == SOURCE.replace('P("a")', "P('b')")


HELPER = """def shard(v, *s):
    return jax.lax.with_sharding_constraint(v, on(*s))


def step(x, w):
    x = shard(x, "data")
    return shard(x @ w, None, "data")
"""
HELPERS_CALLS = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func @main(%x: tensor<64x64xf32> loc("x"), %w: tensor<64x64xf32> loc("w")) -> tensor<64x64xf32> {
    %0 = sdy.sharding_constraint %x <@mesh, [{"data"}, {}]> : tensor<64x64xf32>
        loc(callsite("train.py":2:11 to :54 at "train.py":6:8 to :24))
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("train.py":7:17 to :22)
    %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"data"}]> : tensor<64x64xf32>
        loc(callsite("train.py":2:11 to :54 at "train.py":7:11 to :37))
    return %2 : tensor<64x64xf32>
  }
}
"""


def test_one_call_of_a_helper_is_edited_at_the_call() -> None:
    """Both constraints stand at line 2: dropping one drops its call; dropping both edits the helper."""
    reading = read(HELPERS_CALLS, "train.py", Sources(()))
    with reading.module.context:
        sites = Sites(reading)
        first, second = sites.constraints
        text = JaxText(sites, Sources(()), "step")
        text._files._known["train.py"] = SourceFile("train.py", HELPER)
        one, both = text.written((Change(second, None),)), text.written((Change(first, None), Change(second, None)))
        assert one is not None
        assert both is not None
        assert applied(HELPER, one.diff) == HELPER.replace('shard(x @ w, None, "data")', "x @ w")
        assert applied(HELPER, both.diff) == HELPER.replace("jax.lax.with_sharding_constraint(v, on(*s))", "v")
        assert text.helper_of((Change(second, None),)) == ("", 0)
        assert text.helper_of((Change(first, None), Change(second, None))) == ("shard", 2)


@pytest.mark.parametrize(
    ("made", "call", "edited"),
    [
        ("v, *s):\n    return jax.lax.with_sharding_constraint(v, on(*s))", 'None, "data"', '"data"'),
        ("v, s):\n    return jax.lax.with_sharding_constraint(v, s)", 'P(None, "data")', 'P("data")'),
        ("v, s):\n    return jax.lax.with_sharding_constraint(v, on(s))", 's=P(None, "data")', 's=P("data")'),
    ],
    ids=["entries", "spec", "keyword"],
)
def test_a_helper_is_handed_another_spec(made: str, call: str, edited: str) -> None:
    source = f'def shard({made}\n\n\ndef step(x, w):\n    x = shard(x, "data")\n    return shard(x @ w, {call})\n'
    module = HELPERS_CALLS.replace(":11 to :37", f":11 to :{25 + len(call)}")
    reading = read(module, "train.py", Sources(()))
    with reading.module.context:
        sites = Sites(reading)
        text = JaxText(sites, Sources(()), "step")
        text._files._known["train.py"] = SourceFile("train.py", source)
        one = text.written((Change(sites.constraints[1], (("data",), ())),))
    assert one is not None
    assert applied(source, one.diff) == source.replace(f"@ w, {call}", f"@ w, {edited}")


TYPED = """class Config:
    act_seq: jax.P = jax.P(None, None)
    act_hidden: jax.P = jax.P(None, None)


def step(config, x, w):
    return jnp.einsum("bd,de->be", x, w, out_sharding=config.act_seq)
"""
TYPE = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func @main(%x: tensor<64x64xf32> loc("x"), %w: tensor<64x64xf32> loc("w")) -> tensor<64x64xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        loc("jit(step)/dot_general"("train.py":7:11 to :69))
    %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<64x64xf32>
        loc("jit(step)/dot_general"("train.py":7:11 to :69))
    return %1 : tensor<64x64xf32>
  }
}
"""


def test_the_spec_of_a_type_is_edited_where_the_line_has_it_from() -> None:
    lines = TYPED.splitlines()
    sources = SimpleNamespace(
        line=lambda place: lines[place.line - 1], text=lambda file: TYPED if file == "train.py" else ""
    )
    reading = read(TYPE, "train.py", Sources(()))
    with reading.module.context:
        sites = Sites(reading)
        text = JaxText(sites, sources, "step")  # type: ignore[arg-type]
        one = text.written((Change(sites.constraints[0], (("data",), ())),))
        assert text.written((Change(sites.constraints[0], None),)) is None
    assert one is not None
    assert not one.is_certain
    assert applied(TYPED, one.diff) == TYPED.replace(
        "act_seq: jax.P = jax.P(None, None)", 'act_seq: jax.P = jax.P("data")'
    )


NAMES = """import functools
import jax
from jax.lax import with_sharding_constraint as put

wsc = jax.lax.with_sharding_constraint
rows = functools.partial(wsc, shardings=P("x"))
keep = lambda v: wsc(v, P("x"))


def step(x):
    a = put(x + 1, P("x"))
    b = wsc(x + 2, shardings=P("x"))
    return rows(x + 3)
"""


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        (11, 'put(x + 1, P("y"))'),
        (12, 'wsc(x + 2, shardings=P("y"))'),
        (13, 'put(x + 3, P("y"))'),
        (7, 'wsc(v, P("y"))'),
    ],
)
def test_constraints_by_other_names(line: int, edited: str) -> None:
    file = SourceFile("train.py", NAMES)
    call = file.constraint_at(Frame(Place("train.py", line)))
    assert call is not None
    change = _with_sharding(file, call, call.args[0], sharding_of(call), (("y",),))
    before = file.text(call)
    assert file.changed([change]).decode() == NAMES.replace(before, edited)


def test_a_call_of_a_lambda_is_edited_as_that_of_a_helper() -> None:
    reading = read(HELPERS_CALLS, "train.py", Sources(()))
    source = HELPER.replace("def shard(v, *s):\n    return jax", "shard = lambda v, *s: (\n           jax").replace(
        "(*s))\n", "(*s)))\n", 1
    )
    with reading.module.context:
        sites = Sites(reading)
        text = JaxText(sites, Sources(()), "step")
        text._files._known["train.py"] = SourceFile("train.py", source)
        one = text.written((Change(sites.constraints[1], None),))
    assert one is not None
    assert applied(source, one.diff) == source.replace('shard(x @ w, None, "data")', "x @ w")


MESH_MODULE = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x")) -> tensor<8x8xf32> {
  %0 = stablehlo.negate %x : tensor<8x8xf32> loc("jit(step)/neg"("FILE":2:4))
  return %0 : tensor<8x8xf32>
}
"""


@pytest.mark.parametrize(
    ("made", "mended"),
    [
        ("jax.make_mesh((2, 4), ('data', 'model'))", "jax.make_mesh((4, 2), ('data', 'model'))"),
        ("Mesh(np.array(devices()).reshape(2, 4), names)", "Mesh(np.array(devices()).reshape(4, 2), names)"),
        ("jax.make_mesh((DATA, MODEL), ('data', 'model'))", ""),
        ("jax.make_mesh((2, 4), names) or jax.make_mesh((2, 4), others)", ""),  # which of both
    ],
)
def test_the_sizes_of_a_mesh_are_edited_where_they_are_written_once(tmp_path: Path, made: str, mended: str) -> None:
    file = tmp_path / "train.py"
    source = f"mesh = {made}\nstep = lambda x: -x\n"
    file.write_text(source)
    sources = Sources((tmp_path,))
    reading = read(MESH_MODULE.replace("FILE", str(file)), "step.mlir", sources)
    with reading.module.context:
        sites = Sites(reading)
        (edit,) = shapes(Context(sites))
        written = JaxText(sites, sources, "step").written(edit)
    assert (applied(source, written.diff) if written else "") == (source.replace(made, mended) if mended else "")
