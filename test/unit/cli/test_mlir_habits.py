"""The flags of mlir-opt: each does what it does there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shardpass.cli import opt
from shardpass.ir.context import make_context
from shardpass.pipeline.resolve import resolve

MODULE = """
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
    -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) {
  %c = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %0 = stablehlo.sine %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
BROKEN = MODULE.replace("[2,1]<=[2]", "[3,1]<=[3]")
DUMP = re.compile(r"IR Dump (Before|After) ([^\s/]+)")


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "m.mlir"
    path.write_text(MODULE)
    return str(path)


def dumps(text: str) -> list[tuple[str, ...]]:
    return [found.groups() for found in DUMP.finditer(text)]


def test_before_and_after_a_pass(module: str, capfd: pytest.CaptureFixture[str]) -> None:
    flags = ["-mlir-print-ir-before=shardpass-partition", "--mlir-print-ir-after", "cse"]
    assert opt.main([module, "partition", *flags]) == 0
    said = capfd.readouterr().err
    # cse runs twice in the pipeline
    assert dumps(said) == [("Before", "shardpass-partition"), ("After", "cse"), ("After", "cse")]
    before, after, _ = re.split(r"// -----// IR Dump .*\n", said)[1:]
    assert "func.func @main(%arg0: tensor<8x8xf32>" in before
    assert "func.func @main(%arg0: tensor<4x8xf32>" in after


def test_a_pass_in_an_anchor(module: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert opt.main([module, "builtin.module(func.func(cse,canonicalize))", "--mlir-print-ir-after=cse"]) == 0
    assert dumps(capfd.readouterr().err) == [("After", "cse")]


def test_a_pass_that_there_is_not(module: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert opt.main([module, "cse", "--mlir-print-ir-before=csse"]) == 1
    assert "there is no pass called 'csse' [SP105]" in capfd.readouterr().err


def test_after_change(module: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The unused constant goes in the first cse; the second finds nothing."""
    assert opt.main([module, "cse,symbol-dce", "--mlir-print-ir-after-change"]) == 0
    assert len(dumps(capfd.readouterr().err)) == 1


def test_a_tree_of_files(module: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert opt.main([module, "shardpass-import,cse", f"--mlir-print-ir-tree-dir={tmp_path / 'tree'}"]) == 0
    files = sorted(path.name for path in (tmp_path / "tree").rglob("*.mlir"))
    assert len(files) == 2
    assert any("cse" in name for name in files)
    assert dumps(capfd.readouterr().err) == []


def test_the_generic_form(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([module, "--mlir-print-op-generic"]) == 0
    assert '"stablehlo.sine"(' in capsys.readouterr().out


@pytest.mark.parametrize(("most", "shown"), [(3, "__elided__"), (4, "dense<[1, 2, 3, 4]>")])
def test_large_constants_are_elided(most: int, shown: str, module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([module, f"--mlir-elide-elementsattrs-if-larger={most}"]) == 0
    assert shown in capsys.readouterr().out


def test_the_pipeline_is_dumped_as_one_that_can_be_given(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([module, "partition{planner=rink}", "--dump-pass-pipeline"]) == 0
    first = capsys.readouterr()
    heading, dumped = first.err.splitlines()[:2]
    assert heading == f"Pass Manager with {len(resolve('partition', make_context()))} passes:"
    assert "shardpass-redistribute{planner=rink}" in dumped
    assert opt.main([module, dumped]) == 0
    assert capsys.readouterr().out == first.out


def test_options_of_a_named_pipeline() -> None:
    """They go to the passes that have them; the others stay as they are."""
    context = make_context()
    plain, given = resolve("partition", context), resolve("partition{planner=rink remarks=true}", context)
    changed = [(str(a), str(b)) for a, b in zip(plain, given, strict=True) if str(a) != str(b)]
    assert changed == [
        ("shardpass-check", "shardpass-check{remarks=true}"),
        ("shardpass-redistribute", "shardpass-redistribute{planner=rink}"),
    ]


def test_an_option_that_no_pass_of_the_pipeline_has(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([module, "partition{colour=red}"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("<pipeline>:1:11: error: pipeline partition has no option 'colour' [SP106]")
    assert "planner: str = best" in said


def test_an_option_that_two_passes_of_the_pipeline_have(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one it bounds what a loop may keep, of the other what is joined."""
    assert opt.main([module, "partition{most=5}"]) == 1
    said = capsys.readouterr().err
    assert "'most' of pipeline partition could be for shardpass-hoist or shardpass-join [SP129]" in said


def test_a_reproducer_does_it_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, kept = tmp_path / "m.mlir", tmp_path / "crash.mlir"
    path.write_text(BROKEN)
    flag = f"--mlir-pass-pipeline-crash-reproducer={kept}"
    assert opt.main([str(path), "partition", flag]) == 1
    first = capsys.readouterr().err
    assert f"note: shardpass-opt {kept} --run-reproducer does it again" in first
    text = kept.read_text()
    assert text.startswith("// configuration: --pass-pipeline='builtin.module(shardpass-import,")
    assert "shardpass.mesh" not in text  # as it was before the first pass
    assert opt.main([str(kept), "--run-reproducer"]) == 1
    again = capsys.readouterr().err
    assert again.splitlines()[0] == first.splitlines()[1]  # the same error, at the user's line


def test_a_run_that_succeeds_leaves_no_reproducer(module: str, tmp_path: Path) -> None:
    kept = tmp_path / "crash.mlir"
    assert opt.main([module, "cse", f"--mlir-pass-pipeline-crash-reproducer={kept}"]) == 0
    assert not kept.exists()


def test_a_file_that_is_no_reproducer(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([module, "--run-reproducer"]) == 1
    assert "[SP128]" in capsys.readouterr().err
    assert opt.main([module, "cse", "--run-reproducer"]) == 2


UNKNOWN = 'func.func @main() {\n  "mystery.op"() : () -> ()\n  return\n}\n'


def test_unregistered_dialects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(UNKNOWN)
    assert opt.main([str(path)]) == 1
    assert "SP101" in capsys.readouterr().err
    assert opt.main([str(path), "--allow-unregistered-dialect"]) == 0
    assert '"mystery.op"()' in capsys.readouterr().out
    assert opt.main([str(path), "import", "--allow-unregistered-dialect"]) == 1
    assert "SP228" in capsys.readouterr().err


def test_dialects(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["--show-dialects"]) == 0
    listed = capsys.readouterr().out.strip().removeprefix("Available Dialects: ").split(", ")
    assert {"builtin", "func", "stablehlo", "chlo", "mhlo", "sdy"} <= set(listed)
    assert listed == sorted(listed)


@pytest.mark.parametrize("value", ["--verify-each=0", "--verify-each=false"])
def test_without_verification(value: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from shardpass.pipeline.run import _Run

    seen: list[str] = []
    monkeypatch.setattr(_Run, "_verify", lambda self, own: seen.append(own.name))
    assert opt.main([module, "import", value]) == 0
    assert seen == []
    assert opt.main([module, "import", "--verify-each"]) == 0
    assert seen == ["shardpass-import"]
