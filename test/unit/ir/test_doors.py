"""Every kind of file that holds a program, made by JAX here, is known by its bytes and read; others are named."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.cli import check, opt
from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.ir.doors import Format, format_of


def step(x: jax.Array) -> jax.Array:
    return jnp.sin(x) @ x.T


@pytest.fixture(scope="module")
def lowered() -> jax.stages.Lowered:
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    return jax.jit(step, in_shardings=NamedSharding(mesh, P("x"))).lower(jnp.zeros((8, 4), jnp.float32))


@pytest.fixture(scope="module")
def files(lowered: jax.stages.Lowered) -> dict[Format, bytes]:
    module = lowered.compiler_ir("stablehlo")
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    hlo = lowered.compiler_ir("hlo")
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    exported = export.export(jax.jit(step, in_shardings=NamedSharding(mesh, P("x"))))(jnp.zeros((8, 4), jnp.float32))
    portable = bytes(exported.mlir_module_serialized)
    return {
        Format.TEXT: lowered.as_text().encode(),
        Format.BYTECODE: bytecode.getvalue(),
        Format.PORTABLE: portable,
        Format.EXPORT: flat_buffer(portable),
        Format.HLO_TEXT: hlo.as_hlo_text().encode(),
        Format.HLO_PROTO: hlo.as_serialized_hlo_module_proto(),
    }


def flat_buffer(content: bytes) -> bytes:
    """As FlatBuffers lay out a table with one vector of bytes: its root, its fields, the vector with its count."""
    head = bytes.fromhex("0c00000006000800040000000600000004000000")
    return head + len(content).to_bytes(4, "little") + content + b"\0" * 3


READ = [found for found in Format if found is not Format.EMPTY]


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.name)
def test_what_a_file_is(kind: Format, files: dict[Format, bytes]) -> None:
    assert format_of(files[kind]) is kind


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.name)
def test_a_file_of_each_kind_is_partitioned_and_runs(kind: Format, files: dict[Format, bytes]) -> None:
    """The sharding comes through, and the program computes the same as the text does on one device."""
    module = shardpass.run_pipeline(files[kind], "partition", filename="program")
    main = str(module)
    assert "%arg0: tensor<2x4xf32>" in main
    x = np.random.default_rng(0).uniform(-1, 1, (8, 4)).astype(np.float32)
    np.testing.assert_allclose(np.asarray(shardpass.compile(module)(x)[0]), np.sin(x) @ x.T, rtol=1e-5, atol=1e-6)


def test_what_jax_export_writes_itself(files: dict[Format, bytes]) -> None:
    pytest.importorskip("flatbuffers")
    exported = export.export(jax.jit(step))(jnp.zeros((8, 4), jnp.float32))
    data = bytes(exported.serialize())
    assert format_of(data) is Format.EXPORT
    assert "stablehlo.sine" in str(parse_module(data))


FOUR_TWO = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])


def regions(x: jax.Array, w: jax.Array) -> tuple[jax.Array, ...]:
    """Manual regions of two results and of one, one in another, and one that takes nothing."""

    def both(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.psum(x @ w, "y"), x

    def outer(x: jax.Array) -> jax.Array:
        doubled = jax.shard_map(
            lambda t: t * jax.lax.psum(1.0, "y"), in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}
        )(x)
        return doubled + jax.lax.axis_index("x").astype(np.float32)

    on = {"mesh": FOUR_TWO}
    product, same = jax.shard_map(both, **on, in_specs=(P("x", "y"), P("y")), out_specs=(P("x"), P("x", "y")))(x, w)
    inner = jax.shard_map(outer, **on, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(x)
    numbers = jax.shard_map(lambda: jax.lax.axis_index("x")[None], **on, in_specs=(), out_specs=P("x"))()
    return jax.lax.with_sharding_constraint(product, NamedSharding(FOUR_TWO, P(None, "x"))), same, inner, numbers


@pytest.mark.parametrize("kind", [Format.HLO_TEXT, Format.HLO_PROTO], ids=lambda kind: kind.name)
def test_manual_regions_and_the_names_of_axes_come_through_hlo(kind: Format) -> None:
    """XLA writes Shardy's regions and meshes as calls and texts; a dump of a program with shard_map has no others."""
    rng = np.random.default_rng(1)
    x, w = rng.integers(-4, 4, (8, 16)).astype(np.float32), rng.integers(-4, 4, (16, 32)).astype(np.float32)
    columns = NamedSharding(FOUR_TWO, P(None, "y"))
    lowered = jax.jit(regions, in_shardings=(None, columns), out_shardings=(columns, None, None, None)).lower(x, w)
    hlo = lowered.compiler_ir("hlo")
    data = hlo.as_hlo_text().encode() if kind is Format.HLO_TEXT else hlo.as_serialized_hlo_module_proto()
    text = str(parse_module(data))
    assert text.count("sdy.manual_computation") == lowered.as_text().count("sdy.manual_computation") >= 4
    assert "xla.sdy" not in text
    module = shardpass.run_pipeline(data, "partition")
    assert "shardpass.mesh = \"mesh['x'=4,'y'=2]\"" in str(module)
    made = [np.asarray(value) for value in shardpass.compile(module)(x, w)]
    inner = x * 2 + np.repeat(np.arange(4), 2)[:, None]
    for found, expected in zip(made, (x @ w, x, inner, np.arange(4)), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_what_jit_lowers_is_taken_as_it_is(lowered: jax.stages.Lowered) -> None:
    """The module in JAX's hands stays whole."""
    module = shardpass.run_pipeline(lowered, "partition")
    assert "%arg0: tensor<2x4xf32>" in str(module)
    assert "%arg0: tensor<8x4xf32>" in lowered.as_text()


def test_what_is_no_program() -> None:
    with pytest.raises(TypeError, match=r"text_or_module is 3 of type int"):
        shardpass.run_pipeline(3, "partition")


def test_collectives_of_a_portable_artefact_have_their_channels() -> None:
    """VHLO keeps the number of a channel alone, and XLA needs the type of channels between devices."""
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    summed = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    x = np.arange(8, dtype=np.float32)
    data = bytes(export.export(jax.jit(summed))(x).mlir_module_serialized)
    assert format_of(data) is Format.PORTABLE
    made = shardpass.compile(shardpass.run_pipeline(data, "partition"))(x)[0]
    np.testing.assert_array_equal(np.asarray(made), x.reshape(4, 2).sum(0))


def test_an_hlo_proto_around_a_module(files: dict[Format, bytes]) -> None:
    """--xla_dump_hlo_as_proto writes an HloProto, whose first field is the module."""
    module = files[Format.HLO_PROTO]
    count, left = b"", len(module)
    while left > 0x7F:
        count, left = count + bytes([left & 0x7F | 0x80]), left >> 7
    data = b"\x0a" + count + bytes([left]) + module
    assert format_of(data) is Format.HLO_PROTO
    assert "stablehlo.sine" in str(parse_module(data))


def test_notes_of_layouts_do_not_stay(files: dict[Format, bytes]) -> None:
    """``xla_shape = "f32[4,8]{0,1}"`` of a transpose would be wrong of a tile, and XLA believes it."""
    text = str(parse_module(files[Format.HLO_PROTO]))
    assert "stablehlo.transpose" in text
    for note in ("xla_shape", "result_layout", "xla.sdy"):
        assert note not in text


def test_hlo_text_as_a_string(lowered: jax.stages.Lowered) -> None:
    assert "stablehlo.sine" in str(parse_module(lowered.compiler_ir("hlo").as_hlo_text()))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", Format.EMPTY),
        (b" \n\t\n", Format.EMPTY),
        (b"// a comment\n\nHloModule x\n", Format.HLO_TEXT),
        (b"/* HloModule y */ module {}", Format.TEXT),
        (b"HloModules", Format.TEXT),
        (b"module {}", Format.TEXT),
        (b"\x0a\x01", Format.TEXT),
        (b"\x0a\x03abc\x12\x01m", Format.TEXT),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", Format.TEXT),
        (gzip.compress(b"module {}", mtime=0), Format.TEXT),  # the time would be in the test's name
    ],
)
def test_what_other_bytes_are(data: bytes, kind: Format) -> None:
    assert format_of(data) is kind


TORN = {
    Format.PORTABLE: lambda data: data[: len(data) // 2],
    Format.EXPORT: lambda data: data.replace(b"StableHLO_v", b"StableHLO_v9", 1),
    Format.HLO_TEXT: lambda data: data + b"nonsense",
    Format.HLO_PROTO: lambda data: data[: 3 * len(data) // 4],
}


@pytest.mark.parametrize("kind", [Format.PORTABLE, Format.EXPORT, Format.HLO_TEXT], ids=lambda kind: kind.name)
def test_a_torn_file_is_named_and_ends_no_process(kind: Format, files: dict[Format, bytes]) -> None:
    data = TORN[kind](files[kind])
    with pytest.raises(ShardpassError) as caught:
        parse_module(data, "torn")
    (found,) = caught.value.diagnostics
    assert (found.code, found.place.file) == ("SP127", "torn")
    assert found.message.startswith(f"this is {kind.value}, and jaxlib cannot make StableHLO of it: ")
    assert found.remedy


def test_bytecode_with_bytes_for_a_name_ends_no_process(files: dict[Format, bytes], tmp_path: Path) -> None:
    """MLIR's complaint quotes the string, and jaxlib ends the process where it is no text."""
    data = files[Format.BYTECODE]
    for name in (b"stablehlo", b"main", b"mhlo.sharding", b"func"):
        codes = []
        try:
            shardpass.run_pipeline(data.replace(name, b"\xff" + name[1:]), "partition", filename="torn")
        except ShardpassError as error:
            codes = [error.diagnostics[0].code]
        # without its annotation the program is partitioned all the same
        assert codes in ([[]] if name == b"mhlo.sharding" else [["SP101"], ["SP127"], ["SP135"], ["SP203"]]), name


def test_an_attribute_may_hold_any_bytes() -> None:
    attributes = 'attributes {a.b = "\\FF\\00"}'
    text = f"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {attributes} {{ return %x : tensor<2xf32> }}"
    buffer = io.BytesIO()
    parse_module(text).operation.write_bytecode(buffer)
    assert "\\FF\\00" in str(parse_module(buffer.getvalue()))


def test_bytecode_of_a_dialect_that_nobody_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, data = tmp_path / "m.mlir", tmp_path / "m.mlirbc"
    text.write_text('"foreign.op"() : () -> ()')
    allow = "--allow-unregistered-dialect"
    assert opt.main([str(text), allow, "--emit", "bytecode", "-o", str(data)]) == 0
    assert opt.main([str(data), allow]) == 0
    assert '"foreign.op"()' in capsys.readouterr().out
    assert opt.main([str(data)]) == 1
    said = capsys.readouterr().err
    assert "dialect 'foreign' is unknown" in said
    assert "[SP127]" in said
    assert str(data) in said


@pytest.mark.parametrize("seed", range(4))
def test_torn_files_end_in_documented_errors(seed: int, files: dict[Format, bytes]) -> None:
    rng = np.random.default_rng(seed)
    codes = set()
    for kind in (Format.BYTECODE, Format.PORTABLE, Format.HLO_PROTO):
        data = bytearray(files[kind])
        for place in rng.integers(0, len(data), 3):
            data[place] = int(rng.integers(0, 256))
        try:
            parse_module(bytes(data), "torn")
        except ShardpassError as error:
            codes.add(error.code)
    assert codes <= {"SP101", "SP102", "SP127"}


# --- the commands


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.mlir"
    path.write_bytes(content)
    for command, rest in ((check.main, []), (opt.main, []), (opt.main, ["partition"])):
        assert command([str(path), *rest]) == 1
        assert capsys.readouterr().err.startswith(f"{path}: error: this file is empty [SP126]\n")


def test_a_folder_names_the_modules_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("module_0001.jit_step.before_optimizations.txt", "module_0001.jit_step.thunk.txt", "a.mlir"):
        (tmp_path / name).touch()
    assert check.main([str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "name a file in it (a.mlir, module_0001.jit_step.before_optimizations.txt)" in said


@pytest.mark.parametrize("name", ["opt", "check", "check_replication", "explain", "run", "suggest"])
@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_stdin_with_or_without_a_dash(name: str, arguments: list[str], files: dict[Format, bytes]) -> None:
    partitioned = str(shardpass.run_pipeline(files[Format.TEXT], "partition")).encode()
    code = f"import sys; from shardpass.cli.{name} import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=partitioned if name in ("run", "opt") else files[Format.PORTABLE],
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
