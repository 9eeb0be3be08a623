"""Every collective: XLA, the interpreter in step, the interpreter with a thread a device, and NumPy agree."""

import numpy as np
import pytest

from shardpass.element_types import element_type
from shardpass.runtime import compile, interpret

BOUNDARY = (
    '{{mhlo.sharding = "{{manual}}", shardpass.global_type = tensor<{whole}>, shardpass.sharding = "{sharding}"}}'
)


HANDLE = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def program(devices, body, local, whole, result_local, result_whole):
    """Every device has rows of its own, of the argument and of the result."""
    sharding = f"{{devices=[{devices},1]<=[{devices}]}}"
    return f"""module attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: tensor<{local}> {BOUNDARY.format(whole=whole, sharding=sharding)})
      -> (tensor<{result_local}> {BOUNDARY.format(whole=result_whole, sharding=sharding)}) {{
    {body}
    return %0 : tensor<{result_local}>
  }}
}}"""


def attributes(groups, *, ids=True):
    rows = f"dense<{groups}> : tensor<{len(groups)}x{len(groups[0])}xi64>"
    return f"replica_groups = {rows}, {HANDLE}" + (", use_global_device_ids" if ids else "")


def reduction(op, element="i32"):
    return f"""({{
      ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
        %s = stablehlo.{op} %a, %b : tensor<{element}>
        stablehlo.return %s : tensor<{element}>
    }})"""


def next_device(devices):
    """Pairs of a permute in which nobody sends to device 0."""
    return [[source, source + 1] for source in range(devices - 1)]


def zeros(tiles, device):
    return 0 * tiles[device]


def total(fold, tiles, group):
    return fold(np.stack([tiles[d] for d in group]), axis=0).astype(np.int32)


def pair_rows(pairs):
    return f"source_target_pairs = dense<{pairs}> : tensor<{len(pairs)}x2xi64>, {HANDLE}"


def permuted(tiles, devices):
    source = {target: source for source, target in next_device(devices)}
    return [tiles[source[d]] if d in source else 0 * tiles[d] for d in range(devices)]


# kind -> (op with its attributes, the result's tile, what device d of group g holds); tiles are 4x4
KINDS = {
    "all_gather": (
        lambda n, g: f'"stablehlo.all_gather"(%x) {{all_gather_dim = 1 : i64, {attributes(g)}}}',
        lambda k: (4, 4 * k),
        lambda t, d, g: np.concatenate([t[s] for s in g], 1),
    ),
    "all_to_all": (
        lambda n, g: (
            '"stablehlo.all_to_all"(%x) {split_dimension = 1 : i64, concat_dimension = 0 : i64, '
            f"split_count = {len(g[0])} : i64, {attributes(g, ids=False)}}}"
        ),
        lambda k: (4 * k, 4 // k),
        lambda t, d, g: np.concatenate([np.split(t[s], len(g), 1)[g.index(d)] for s in g], 0),
    ),
    "collective_permute": (
        lambda n, g: f'"stablehlo.collective_permute"(%x) {{{pair_rows(next_device(n))}}}',
        lambda k: (4, 4),
        lambda t, d, g: permuted(t, len(t))[d],
    ),
    # of the first group alone: who is in none has zeros
    "collective_broadcast": (
        lambda n, g: f'"stablehlo.collective_broadcast"(%x) {{{attributes(g[:1], ids=False)}}}',
        lambda k: (4, 4),
        lambda t, d, g: t[g[0]] if d in FIRST[len(t)] else zeros(t, d),
    ),
    "all_reduce": (
        lambda n, g: f'"stablehlo.all_reduce"(%x) {reduction("add")} {{{attributes(g)}}}',
        lambda k: (4, 4),
        lambda t, d, g: total(np.sum, t, g),
    ),
    "all_reduce_max": (
        lambda n, g: f'"stablehlo.all_reduce"(%x) {reduction("maximum")} {{{attributes(g)}}}',
        lambda k: (4, 4),
        lambda t, d, g: total(np.max, t, g),
    ),
    "reduce_scatter": (
        lambda n, g: (
            f'"stablehlo.reduce_scatter"(%x) {reduction("add")} {{scatter_dimension = 1 : i64, {attributes(g)}}}'
        ),
        lambda k: (4, 4 // k),
        lambda t, d, g: np.split(total(np.sum, t, g), len(g), 1)[g.index(d)],
    ),
}
RUNNERS = {
    "xla": (lambda m, x: np.asarray(compile(m)(x)[0]), 8, [[0, 4, 1, 5], [2, 6, 3, 7]]),
    "in step": (lambda m, x: interpret(m, x)[0], 8, [[0, 4, 1, 5], [2, 6, 3, 7]]),
    "in this process": (lambda m, x: interpret(m, x, isolated=False)[0], 4, [[2, 0], [1, 3]]),
}


FIRST = {devices: groups[0] for _, devices, groups in RUNNERS.values()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("run", "devices", "groups"), RUNNERS.values(), ids=RUNNERS)
def test_collective(kind, run, devices, groups):
    if (kind, run) == ("collective_broadcast", RUNNERS["xla"][0]):
        pytest.skip("XLA:CPU has no collective-broadcast")
    op, result, expected = KINDS[kind]
    rows, columns = result(len(groups[0]))
    local = f"{rows}x{columns}xi32"
    module = program(
        devices,
        f"%0 = {op(devices, groups)} : (tensor<4x4xi32>) -> tensor<{local}>",
        "4x4xi32",
        f"{4 * devices}x4xi32",
        local,
        f"{rows * devices}x{columns}xi32",
    )
    x = np.random.default_rng(len(kind)).integers(-9, 10, (4 * devices, 4)).astype(np.int32)
    tiles, group = np.split(x, devices), {d: row for row in groups for d in row}
    wanted = np.concatenate([expected(tiles, d, group[d]) for d in range(devices)])
    np.testing.assert_array_equal(run(module, x), wanted)


BODIES = {
    # partition_id inside a region, a value from outside it, and a call: each device adds its id three times
    "while": """%one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<1x2xi32>
     cond {
      %go = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
     } do {
      %p = stablehlo.partition_id : tensor<ui32>
      %c = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>
      %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1x2xi32>
      %n = stablehlo.add %acc, %b : tensor<1x2xi32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %n : tensor<i32>, tensor<1x2xi32>
     }
    %0 = stablehlo.add %r#1, %zero2 : tensor<1x2xi32>""",
    # squares, which JAX writes in CHLO: (x + 3 id) from (x + 3 id)^2 and its sign
    "square": """%p = stablehlo.partition_id : tensor<ui32>
    %c = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
    %three = stablehlo.constant dense<3.0> : tensor<f32>
    %d = stablehlo.multiply %c, %three : tensor<f32>
    %b = stablehlo.broadcast_in_dim %d, dims = [] : (tensor<f32>) -> tensor<1x2xf32>
    %x32 = stablehlo.convert %x : (tensor<1x2xi32>) -> tensor<1x2xf32>
    %n = stablehlo.add %x32, %b : tensor<1x2xf32>
    %s = chlo.square %n : tensor<1x2xf32> -> tensor<1x2xf32>
    %q = stablehlo.sqrt %s : tensor<1x2xf32>
    %r = stablehlo.round_nearest_even %q : tensor<1x2xf32>
    %0 = stablehlo.convert %r : (tensor<1x2xf32>) -> tensor<1x2xi32>""",
    "call": "%0 = func.call @thrice(%x) : (tensor<1x2xi32>) -> tensor<1x2xi32>",
}
THRICE = """  func.func private @thrice(%x: tensor<1x2xi32>) -> tensor<1x2xi32> {
    %p = stablehlo.partition_id : tensor<ui32>
    %c = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %d = stablehlo.multiply %c, %three : tensor<i32>
    %b = stablehlo.broadcast_in_dim %d, dims = [] : (tensor<i32>) -> tensor<1x2xi32>
    %n = stablehlo.add %x, %b : tensor<1x2xi32>
    return %n : tensor<1x2xi32>
  }
}"""


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("run", [RUNNERS["xla"][0], RUNNERS["in step"][0]], ids=["xla", "in step"])
def test_regions_and_calls(run, body):
    zero = "%zero2 = stablehlo.constant dense<0> : tensor<1x2xi32>\n    "
    text = program(4, zero + body, "1x2xi32", "4x2xi32", "1x2xi32", "4x2xi32")
    text = text[: text.rindex("}")] + THRICE
    x = np.arange(8, dtype=np.int32).reshape(4, 2)
    np.testing.assert_array_equal(run(text, x), x + 3 * np.arange(4)[:, None])


SUM = """"stablehlo.all_reduce"({x}) ({{
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %s = stablehlo.add %a, %b : tensor<i32>
        stablehlo.return %s : tensor<i32>
      }}) {{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids,
      channel_handle = #stablehlo.channel_handle<handle = {k}, type = 1>}} : (tensor<1x2xi32>) -> tensor<1x2xi32>"""
TOGETHER = {
    # three rounds of acc = sum over the group + partition_id, the count being the same everywhere
    "while": f"""%r:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<1x2xi32>
     cond {{
      %go = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
     }} do {{
      %t = {SUM.format(x="%acc", k=1)}
      %n = stablehlo.add %t, %id : tensor<1x2xi32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %n : tensor<i32>, tensor<1x2xi32>
     }}
    %0 = stablehlo.add %r#1, %id : tensor<1x2xi32>""",
    "case": f"""%0 = "stablehlo.case"(%one) ({{
      stablehlo.return %x : tensor<1x2xi32>
    }}, {{
      %t = {SUM.format(x="%x", k=1)}
      %n = stablehlo.add %t, %id : tensor<1x2xi32>
      stablehlo.return %n : tensor<1x2xi32>
    }}) : (tensor<i32>) -> tensor<1x2xi32>""",
}
BEFORE = """%zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.partition_id : tensor<ui32>
    %c = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>
    %id = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1x2xi32>
    """


@pytest.mark.parametrize("kind", TOGETHER)
@pytest.mark.parametrize("run", [RUNNERS["xla"][0], RUNNERS["in step"][0]], ids=["xla", "in step"])
def test_collectives_in_control_flow(run, kind):
    text = program(4, BEFORE + TOGETHER[kind], "1x2xi32", "4x2xi32", "1x2xi32", "4x2xi32")
    x = np.arange(8, dtype=np.int32).reshape(4, 2)
    ids, partner = np.arange(4)[:, None], [2, 3, 0, 1]
    wanted = x
    for _ in range({"while": 3, "case": 1}[kind]):
        wanted = wanted + wanted[partner] + ids
    np.testing.assert_array_equal(run(text, x), wanted + (ids if kind == "while" else 0))


# the element types of every collective that XLA runs on CPU; small values, so that sums are exact in each
ELEMENTS = [
    "f64",
    "f32",
    "f16",
    "bf16",
    "f8E4M3FN",
    "f8E5M2",
    "i1",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "ui8",
    "ui16",
    "ui32",
    "ui64",
    "complex<f32>",
    "complex<f64>",
]
TYPED = {"xla": RUNNERS["xla"][0], "in step": RUNNERS["in this process"][0]}


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("run", TYPED.values(), ids=TYPED)
def test_who_receives_nothing_has_zeros_of_its_type(run, element):
    body = f"""%0 = "stablehlo.collective_permute"(%x) {{{pair_rows([[3, 1], [0, 2]])}}}
      : (tensor<2x4x{element}>) -> tensor<2x4x{element}>"""
    module = program(4, body, f"2x4x{element}", f"8x4x{element}", f"2x4x{element}", f"8x4x{element}")
    x = np.ones((8, 4)) * (1 + 1j if element.startswith("complex") else 1)
    x[6:] *= 0 if element == "i1" else 3
    found = run(module, x.astype(element_type(element).dtype))
    wanted = np.concatenate([0 * x[:2], x[6:], x[:2], 0 * x[:2]])
    np.testing.assert_array_equal(found.astype(np.complex128), wanted)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("run", TYPED.values(), ids=TYPED)
def test_element_types(run, element):
    """all_to_all, then all_reduce, over groups whose order is not that of the devices."""
    groups = [[2, 0], [1, 3]]
    op = "or" if element == "i1" else "add"
    second = attributes(groups).replace("handle = 1", "handle = 2")
    body = f"""%t = "stablehlo.all_to_all"(%x) {{split_dimension = 1 : i64, concat_dimension = 0 : i64,
      split_count = 2 : i64, {attributes(groups, ids=False)}}} : (tensor<2x4x{element}>) -> tensor<4x2x{element}>
    %0 = "stablehlo.all_reduce"(%t) {reduction(op, element)} {{{second}}}
      : (tensor<4x2x{element}>) -> tensor<4x2x{element}>"""
    module = program(4, body, f"2x4x{element}", f"8x4x{element}", f"4x2x{element}", f"16x2x{element}")
    dtype = element_type(element).dtype
    x = np.random.default_rng(5).integers(0, 2, (8, 4))
    exact = x * (1 + 2j) if element.startswith("complex") else x
    tiles = np.split(exact, 4)
    group = {d: row for row in groups for d in row}
    moved = [np.concatenate([np.split(tiles[s], 2, 1)[group[d].index(d)] for s in group[d]]) for d in range(4)]
    fold = np.max if element == "i1" else np.sum
    wanted = np.concatenate([fold([moved[s] for s in group[d]], axis=0) for d in range(4)])
    found = run(module, exact.astype(dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype(np.complex128), wanted)
