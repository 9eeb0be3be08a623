"""Running pipelines: order, failures of every kind, and what happens to the input."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from jaxlib.mlir import ir

import shardpass.pipeline.registry as registry
from shardpass.diagnostics import Code, Place, Severity, ShardpassError, collect, report
from shardpass.ir.context import make_context, parse_module
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.resolve import resolve
from shardpass.pipeline.run import run_in_place, run_pipeline

MODULE = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  %1 = stablehlo.add %a, %a : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
BAD = Code("SP901", "bad {what}", "do better")
WORSE = Code("SP902", "worse {what}")
ODD = Code("SP903", "odd {what}", severity=Severity.WARNING)


class SpecialError(ShardpassError):
    pass


SPECIAL = Code("SP904", "special", exception=SpecialError)


@dataclass(frozen=True)
class Probe(ModulePass):
    """Does what its option says."""

    name = "test-probe"
    summary = "does what its option says"

    act: str = "mark"
    times: int = 1
    loud: bool = False
    weight: float = 0.5

    def run(self, module):
        getattr(self, f"do_{self.act}")(module)

    def do_mark(self, module):
        attributes = module.operation.attributes
        trail = attributes["probe.trail"].value if "probe.trail" in attributes else ""
        attributes["probe.trail"] = ir.StringAttr.get(trail + str(len(list(main(module).operations))) * self.times)

    def do_warn(self, module):
        report(ODD.at(Place("m", 2), what="smell"))

    def do_report(self, module):
        report(ODD.at(what="smell"))
        report(BAD.at(Place("m", 3), what="one"))
        report(BAD.at(Place("m", 4), what="two"))

    def do_error(self, module):
        report(ODD.at(what="smell"))
        raise WORSE.error(what="thing")

    def do_special(self, module):
        raise SPECIAL.error()

    def do_crash(self, module):
        raise KeyError("lost")

    def do_interrupt(self, module):
        raise KeyboardInterrupt

    def do_break(self, module):
        function = module.body.operations[0]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.Type.parse("() -> ()"))


@pytest.fixture(autouse=True)
def probe(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    registry.register(Probe)


def main(module):
    return module.body.operations[0].regions[0].blocks[0]


def failure(pipeline, module=MODULE):
    with pytest.raises(ShardpassError) as caught:
        run_pipeline(module, pipeline, filename="m.mlir")
    return caught.value


def test_python_and_mlir_passes_run_in_the_order_written():
    # three ops; cse leaves two, as the sums are equal
    module = run_pipeline(MODULE, "test-probe,func.func(cse),test-probe{times=2},canonicalize")
    assert module.operation.attributes["probe.trail"].value == "3" + "22"


def test_options_reach_the_pass():
    context = make_context()
    (step,) = resolve("test-probe{ act=warn  times=7 loud weight=2.5}", context)
    assert step.own == Probe("warn", 7, True, 2.5)
    assert str(step) == "test-probe{act=warn times=7 loud=true weight=2.5}"
    (again,) = resolve(str(step), context)
    assert again == step


@pytest.mark.parametrize(
    ("said", "value"), [("true", True), ("True", True), ("1", True), ("false", False), ("0", False), ("FALSE", False)]
)
def test_booleans_are_read_as_llvm_reads_them(said, value):
    assert resolve(f"test-probe{{loud={said}}}", make_context())[0].own.loud is value


def test_text_with_spaces_is_quoted_and_read_back():
    probe = Probe(act='a "b", {c}')
    assert resolve(str(probe), make_context())[0].own == probe


def test_the_input_module_stays_as_it_is():
    module = parse_module(MODULE)
    before = str(module)
    result = run_pipeline(module, "test-probe,cse")
    assert str(module) == before != str(result)
    assert result.context is module.context


def test_a_copy_keeps_locations_and_attributes():
    text = 'module @name attributes {u.x = 1 : i32} { func.func @main() { return loc("u.py":7:1) } }'
    module = parse_module(text, "f.mlir")
    copied = run_pipeline(module, "canonicalize")
    assert copied.operation.get_asm(enable_debug_info=True) == module.operation.get_asm(enable_debug_info=True)


def test_warnings_are_handed_on_where_all_succeeds():
    with collect() as found:
        run_pipeline(MODULE, "test-probe{act=warn},cse")
    assert [(d.code, d.place.line) for d in found] == [("SP903", 2)]


def test_reported_errors_fail_after_the_pass_with_all_findings_errors_first():
    error = failure("test-probe{act=report},test-probe")
    assert [d.code for d in error.diagnostics] == ["SP901", "SP901", "SP903"]
    assert [d.message for d in error.diagnostics[:2]] == ["bad one", "bad two"]


def test_a_raised_error_stops_the_pipeline_and_keeps_earlier_findings():
    module = parse_module(MODULE)
    with pytest.raises(ShardpassError) as caught:
        run_in_place(module, "test-probe,test-probe{act=error},test-probe")
    assert [d.code for d in caught.value.diagnostics] == ["SP902", "SP903"]
    assert module.operation.attributes["probe.trail"].value == "3"


def test_the_type_of_a_raised_error_is_kept():
    with pytest.raises(SpecialError):
        run_pipeline(MODULE, "test-probe{act=special}")


def test_any_other_exception_of_a_users_pass_is_a_fault_of_that_pass():
    (found,) = failure("test-probe{act=crash}").diagnostics
    assert found.code == "SP139"
    assert found.place.file == __file__
    assert "raise KeyError" in Path(__file__).read_text().splitlines()[found.place.line - 1]
    assert found.message == f"pass test-probe failed in Probe.do_crash of {__name__}: KeyError: 'lost'"
    assert "the fault is not in shardpass" in found.remedy
    assert "Traceback" not in str(found)


def test_the_traceback_is_shown_on_request(monkeypatch):
    monkeypatch.setenv("SHARDPASS_TRACEBACK", "1")
    error = failure("test-probe{act=crash}")
    assert "do_crash" in str(error)


def test_an_interrupt_goes_through():
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(MODULE, "cse,test-probe{act=interrupt}")


def test_an_invalid_module_is_blamed_on_the_pass_that_left_it():
    error = failure("test-probe,test-probe{act=break},cse")
    (found,) = error.diagnostics
    assert found.code == "SP112"
    assert "pass test-probe{act=break} left an invalid module" in found.message
    assert (found.place.file, found.place.line) == ("m.mlir", 2)
    assert len(str(error)) < 1000  # the verifier's note holds the whole function


def test_parse_errors_come_before_any_pass():
    error = failure("test-probe", "func.func @main( {")
    assert error.code == "SP101"
    assert error.diagnostics[0].place.file == "m.mlir"


@pytest.mark.parametrize(
    ("pipeline", "code", "column"),
    [
        ("no-such", "SP105", 1),
        ("cse,func.func(no-such)", "SP105", 15),
        ("test-probe{nothing=1}", "SP106", 12),
        ("test-probe{times=1 nothing}", "SP106", 20),
        ("cse,test-probe{times=many}", "SP107", 16),
        ("test-probe{times}", "SP107", 12),
        ("test-probe{loud=maybe}", "SP107", 12),
        ("canonicalize{nothing=1}", "SP108", 14),
        ("func.func(test-probe)", "SP109", 11),
        ("builtin.module(func.func(cse,partition))", "SP109", 30),
    ],
)
def test_a_wrong_pipeline_is_refused_with_its_place(pipeline, code, column):
    (found,) = failure(pipeline).diagnostics
    assert (found.code, found.place.column) == (code, column)


def test_several_modules_in_a_row_are_one_pipeline():
    module = run_pipeline(MODULE, "builtin.module(test-probe),builtin.module(cse,test-probe)")
    assert module.operation.attributes["probe.trail"].value == "32"


def test_bytecode_is_taken():
    import io

    data = io.BytesIO()
    parse_module(MODULE).operation.write_bytecode(data)
    assert "probe.trail" in run_pipeline(data.getvalue(), "test-probe").operation.attributes


def test_anything_else_is_a_type_error():
    with pytest.raises(TypeError, match="text_or_module is 5 of type int"):
        run_pipeline(5, "cse")


def test_a_module_from_jax_is_taken_in_its_own_context():
    import jax
    import jax.numpy as jnp

    lowered = jax.jit(lambda x: jnp.sin(x) + jnp.sin(x)).lower(jnp.ones(8))
    module = lowered.compiler_ir("stablehlo")
    before = str(module)
    result = run_pipeline(module, "partition")
    assert str(result).count("stablehlo.sine") == 1
    assert str(module) == before
    assert lowered.compile() is not None


@pytest.mark.parametrize("pipeline", ["import", "builtin.module(shardpass-partition)"])
@pytest.mark.parametrize("searching", [True, False])
def test_the_collector_is_as_it_was(pipeline, searching):
    """Passes run without the search for cycles, those that fail too (this one: the module was not imported)."""
    import gc

    before = gc.isenabled()
    (gc.enable if searching else gc.disable)()
    try:
        with collect():
            if pipeline == "import":
                run_pipeline(MODULE, pipeline)
            else:
                with pytest.raises(ShardpassError):
                    run_pipeline(MODULE, pipeline)
        assert gc.isenabled() is searching
    finally:
        (gc.enable if before else gc.disable)()


def test_a_pass_of_mlirs_own_that_fails_is_named():
    with pytest.raises(ShardpassError) as error:
        run_pipeline(MODULE, "func.func(inline)")
    (found,) = error.value.diagnostics
    assert (found.code, found.place.line > 0) == ("SP136", True)
    assert found.message.startswith("MLIR's pass func.func(inline) failed: 'func.func' op")
