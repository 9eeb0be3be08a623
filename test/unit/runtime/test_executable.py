"""compile, place, run: hand-written per-device programs against NumPy, on XLA and on the reference interpreter."""

from types import SimpleNamespace

import jax
import ml_dtypes
import numpy as np
import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.element_types import element_type
from shardpass.runtime import compile, interpret
from shardpass.runtime.executable import Executable, _Placement
from shardpass.runtime.partitioned_signature import Boundary
from shardpass.sharding import parse_sharding

N = 8
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = {}, type = 1>"


def boundary(local, whole, sharding):
    return (
        f'{local} {{mhlo.sharding = "{{manual}}", shardpass.global_type = {whole}, shardpass.sharding = "{sharding}"}}'
    )


def module(arguments, results, body, devices=N):
    args = ", ".join(f"%arg{i}: {boundary(*a)}" for i, a in enumerate(arguments))
    return (
        f"module attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
        f"  func.func public @main({args}) -> ({', '.join(boundary(*r) for r in results)}) {{\n{body}\n  }}\n}}\n"
    )


def identity(element, local, whole, sharding, devices=N):
    local, whole = (f"tensor<{'x'.join([*map(str, s), element])}>" for s in (local, whole))
    row = (local, whole, sharding)
    return module([row], [row], f"    return %arg0 : {local}", devices)


RUNNERS = {"xla": lambda text, *arrays: [np.asarray(r) for r in compile(text)(*arrays)], "interpreter": interpret}
both = pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)

# a [8, 16] in 2x4 tiles, b [16, 4] by rows over the same four: partial products summed over groups of four
MATMUL = module(
    [
        ("tensor<4x4xf32>", "tensor<8x16xf32>", "{devices=[2,4]<=[8]}"),
        ("tensor<4x4xf32>", "tensor<16x4xf32>", "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"),
    ],
    [("tensor<4x4xf32>", "tensor<8x4xf32>", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}")],
    """    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = "stablehlo.all_reduce"(%0) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids, """
    + CHANNEL.format(1)
    + """} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>""",
)


@both
def test_matmul_with_partial_sums(run):
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (8, 16)).astype(np.float32)
    b = rng.integers(-4, 5, (16, 4)).astype(np.float32)
    (c,) = run(MATMUL, a, b)
    np.testing.assert_array_equal(c, a @ b)


def test_results_are_global_arrays_and_can_go_in_again():
    text = identity("f32", (4, 2), (8, 8), "{devices=[2,4]<=[8]}")
    exe = compile(text)
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    (y,) = exe(x)
    assert isinstance(y, jax.Array)
    assert y.shape == (8, 8)
    assert [s.data.shape for s in y.addressable_shards] == [(4, 2)] * N
    (z,) = exe.run(y)
    np.testing.assert_array_equal(np.asarray(z), x)


# rows of (local, whole, sharding): tile shapes, order of devices, copies, uneven ends, rank 0, empty
LAYOUTS = [
    ((4, 2), (8, 8), "{devices=[2,4]<=[8]}"),
    ((4, 2), (8, 8), "{devices=[2,4]<=[4,2]T(1,0)}"),
    ((2, 8), (8, 8), "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"),
    ((2, 8), (8, 8), "{devices=[4,1,2]0,2,1,3,4,6,5,7 last_tile_dim_replicate}"),
    ((1, 8), (8, 8), "{devices=[8,1]7,2,5,3,1,0,6,4}"),
    ((8, 8), (8, 8), "{replicated}"),
    ((8, 8), (8, 8), "{maximal device=3}"),
    ((), (), "{replicated}"),
    ((), (), "{maximal device=7}"),
    ((2, 3), (3, 5), "{devices=[2,2,2]<=[8] last_tile_dim_replicate}"),
    ((1, 2), (5, 2), "{devices=[8,1]<=[8]}"),  # tiles of nothing but padding
    ((0, 2), (0, 4), "{devices=[4,2]<=[8]}"),
]


@both
@pytest.mark.parametrize(("local", "whole", "sharding"), LAYOUTS)
def test_identity_keeps_the_array(run, local, whole, sharding):
    x = np.arange(np.prod(whole, dtype=int), dtype=np.int32).reshape(whole) + 1
    (y,) = run(identity("i32", local, whole, sharding), x)
    np.testing.assert_array_equal(y, x)
    assert y.dtype == x.dtype


@both
def test_each_device_holds_the_tile_of_its_offset(run):
    """partition_id beside the tile: what device d gets is what the sharding says, in any device order."""
    order = [7, 2, 5, 3, 1, 0, 6, 4]
    sharding = f"{{devices=[8,1]{','.join(map(str, order))}}}"
    row = ("tensor<1x2xi32>", "tensor<8x2xi32>", sharding)
    body = """    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<1x2xi32>
    %3 = stablehlo.add %arg0, %2 : tensor<1x2xi32>
    return %3 : tensor<1x2xi32>"""
    (y,) = run(module([row], [row], body), np.zeros((8, 2), np.int32))
    assert y[:, 0].tolist() == order


DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i1": np.bool_,
    "i4": ml_dtypes.int4,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}


@both
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("shape", [(), (6, 2)], ids=["scalar", "uneven"])
def test_every_element_type(run, element, shape):
    """An all_gather of tiles, padding included where rows do not divide; bits come out as they went in."""
    sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}" if shape else "{replicated}"
    local = (2, 2) if shape else ()
    x = np.array([0, 1, 2, 3, 4, 5, 6, 7, 1, 0, 2, 1], np.int8)[: max(1, np.prod(shape, dtype=int))].reshape(shape)
    if not shape:
        x = np.int8(3) + x
    x = np.asarray(x % 2 if element == "i1" else x).astype(DTYPES[element])
    if element.startswith("complex"):
        x = x + x.dtype.type(2j)
    (y,) = run(identity(element, local, shape, sharding), x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("padding", [0, np.nan])
def test_padding_is_what_place_is_told(padding):
    text = identity("f32", (2, 2), (3, 2), "{devices=[2,1,4]<=[8] last_tile_dim_replicate}")
    exe = compile(text)
    (x,) = exe.place(np.ones((3, 2), np.float32), padding=padding)
    assert x.shape == (4, 2)
    np.testing.assert_array_equal(np.asarray(x)[3], [padding, padding])
    (tiles,) = exe.run_tiles(x)
    np.testing.assert_array_equal(np.asarray(tiles[4]), [[1, 1], [padding, padding]])


def test_one_device():
    text = identity("f32", (3,), (3,), "{replicated}", devices=1)
    np.testing.assert_array_equal(np.asarray(compile(text)(np.arange(3, dtype=np.float32))[0]), [0, 1, 2])


def test_other_devices_in_another_order():
    devices = jax.devices()[11:3:-1]
    exe = compile(identity("i32", (1,), (8,), "{devices=[8]<=[8]}"), devices=devices)
    (y,) = exe(np.arange(8, dtype=np.int32))
    np.testing.assert_array_equal(np.asarray(y), np.arange(8))
    assert [next(iter(s.data.devices())).id for s in sorted(y.addressable_shards, key=lambda s: s.index[0].start)] == [
        11, 10, 9, 8, 7, 6, 5, 4,
    ]  # fmt: skip


def test_donated_arguments_survive():
    text = identity("f32", (4, 2), (8, 8), "{devices=[2,4]<=[8]}").replace(
        'mhlo.sharding = "{manual}"', 'jax.buffer_donor = true, mhlo.sharding = "{manual}"', 1
    )
    exe = compile(text)
    (x,) = exe.place(np.ones((8, 8), np.float32))
    exe.run(x)
    (y,) = exe.run(x)
    assert np.asarray(y).sum() == 64


def test_texts_and_numbers():
    exe = compile(MATMUL)
    assert "all-reduce" in exe.hlo_text()
    assert exe.memory_stats().argument_size_in_bytes == 2 * 4 * 4 * 4


# --- bad input

GOOD = identity("f32", (4, 2), (8, 8), "{devices=[2,4]<=[8]}")
BAD_MODULES = [
    ("SP501", GOOD.replace("mhlo.num_partitions = 8 : i32, ", ""), "num_partitions"),
    ("SP501", GOOD.replace("num_replicas = 1", "num_replicas = 2"), "num_replicas"),
    ("SP501", GOOD.replace('shardpass.sharding = "{devices=[2,4]<=[8]}"', "x.y = 1", 1), "argument 0"),
    ("SP501", GOOD.replace("shardpass.global_type = tensor<8x8xf32>, ", ""), "global_type"),
    ("SP501", GOOD.replace('"{manual}"', '"{replicated}"', 1), "{replicated}"),
    ("SP502", GOOD.replace("{devices=[2,4]<=[8]}", "{devices=[4,2]<=[8]}", 1), "tensor<2x4xf32>"),
    ("SP503", identity("f32", (4, 4), (8, 8), "{devices=[2,2]<=[4]}"), "4 devices"),
    ("SP504", identity("f32", (8, 8), (8, 8), "{manual}"), "{manual}"),
    ("SP504", identity("f32", (8, 8), (8, 8), "{unknown}"), "{unknown}"),
    ("SP505", identity("f32", ("?",), ("?",), "{replicated}"), "tensor<?xf32>"),
    (
        "SP506",
        GOOD.replace(
            "    return %arg0",
            "    %0 = stablehlo.custom_call @shardpass.redistribute(%arg0) : (tensor<4x2xf32>) -> tensor<4x2xf32>\n"
            "    return %0",
        ),
        "shardpass.redistribute",
    ),
    ("SP507", MATMUL.replace("type = 1>", "type = 0>"), "type = 0"),
    ("SP507", MATMUL.replace(", use_global_device_ids, " + CHANNEL.format(1), ""), "no channel handle"),
    ("SP510", identity("f32", (1,), (64,), "{devices=[64]<=[64]}", devices=64), "64 devices, and there are 12"),
]


@pytest.mark.parametrize(("code", "text", "says"), BAD_MODULES, ids=[f"{r[0]}-{i}" for i, r in enumerate(BAD_MODULES)])
def test_bad_modules(code, text, says):
    with pytest.raises(ShardpassError) as caught:
        compile(text)
    assert caught.value.code == code
    assert says in str(caught.value)
    assert caught.value.diagnostics[0].remedy


BAD_ARGUMENTS = [
    ("SP520", (), "1 arguments, and 0"),
    ("SP521", (np.zeros((8, 8)),), "float32[8,8], and is float64[8,8]"),
    ("SP521", (np.zeros((4, 2), np.float32),), "float32[4,2]"),
    ("SP521", (3.0,), "float64[]"),
]


@pytest.mark.parametrize(("code", "arrays", "says"), BAD_ARGUMENTS)
def test_bad_arguments(code, arrays, says):
    exe = compile(GOOD)
    with pytest.raises(ShardpassError) as caught:
        exe(*arrays)
    assert caught.value.code == code
    assert says in str(caught.value)
    with pytest.raises(ShardpassError) as caught:
        interpret(GOOD, *arrays)
    assert caught.value.code == code


def test_unplaced_arguments():
    exe = compile(GOOD)
    for array in (np.zeros((8, 8), np.float32), jax.numpy.zeros((8, 8))):
        with pytest.raises(ShardpassError, match="SP522"):
            exe.run(array)
    with pytest.raises(ShardpassError, match="SP520"):
        exe.run()


def test_what_xla_refuses_is_said():
    text = MATMUL.replace("f32", "i32").replace("stablehlo.add", "stablehlo.or")
    with pytest.raises(ShardpassError, match=r"SP51[12]"):
        compile(text)(np.zeros((8, 16), np.int32), np.zeros((16, 4), np.int32))


def test_what_the_interpreter_refuses_is_said():
    text = GOOD.replace(
        "    return %arg0",
        "    %0 = stablehlo.custom_call @nobody_knows(%arg0) : (tensor<4x2xf32>) -> tensor<4x2xf32>\n    return %0",
    )
    with pytest.raises(ShardpassError, match="SP540"):
        interpret(text, np.zeros((8, 8), np.float32))


def test_a_lost_process_is_told_from_a_failing_program(monkeypatch):
    exe = compile(identity("f32", (4, 2), (8, 8), "{devices=[2,4]<=[8]}"))
    placed = exe.place(np.zeros((8, 8), np.float32))
    for reason, code in (
        (
            "UNKNOWN: Gloo all-reduce failed: [pair.cc:538] Read error [127.0.0.1]:29: Connection reset by peer",
            "SP562",
        ),
        ("RESOURCE_EXHAUSTED: Out of memory", "SP512"),
    ):

        def fail(*args, reason=reason):
            raise jax.errors.JaxRuntimeError(reason)

        monkeypatch.setattr("shardpass.ir.jax_private.execute", fail)
        with pytest.raises(ShardpassError) as stopped:
            exe.run(*placed)
        assert stopped.value.code == code
        assert reason in str(stopped.value)


def test_tiles_of_other_processes_are_left_out(monkeypatch):
    """XLA returns those of this process's devices alone: here of the second and the fourth."""
    executable = SimpleNamespace(devices=[SimpleNamespace(process_index=k) for k in (1, 0, 1, 0)])
    tiles = [["a", "b"], ["c", "d"]]
    assert Executable._by_device(executable, tiles) == [[None, "a", None, "b"], [None, "c", None, "d"]]
    executable.devices = [SimpleNamespace(process_index=0)] * 2
    assert Executable._by_device(executable, tiles) == tiles


def test_what_one_device_holds_is_copied_to_all():
    """As of processes that cannot address that device: each gives what it has, and the third device's counts."""
    whole = Boundary("result 0", element_type("i64"), (3,), parse_sharding("{maximal device=2}"))
    placement = _Placement(whole, tuple(jax.devices()[:4]))
    tiles = [jax.device_put(np.full(3, device), device_) for device, device_ in enumerate(jax.devices()[:4])]
    copies = placement._from_one(tiles)
    np.testing.assert_array_equal([np.asarray(shard.data) for shard in copies.addressable_shards], [[2, 2, 2]] * 4)
