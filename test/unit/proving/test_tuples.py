"""Reductions of several operands by parts: each device reduces its part of a row, and the parts are reduced again.

Rows of 2^20 elements are more than are walked one by one, so the proofs are of terms, as in a loop.
"""

import pytest

from shardpass.proving import prove

SIZE, DEVICES = 2**20, 4
PART = SIZE // DEVICES
COLUMNS = f"{{devices=[1,{DEVICES}]<=[{DEVICES}]}}"


def side(kind, sharding):
    return f'{{mhlo.sharding = "{{manual}}", shardpass.global_type = {kind}, shardpass.sharding = "{sharding}"}}'


GREATEST = """  %gt = stablehlo.compare GT, %a0, %b0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %nan = stablehlo.compare NE, %a0, %a0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %is = stablehlo.or %gt, %nan : tensor<i1>
    %eq = stablehlo.compare EQ, %a0, %b0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %lt = stablehlo.compare LT, %a1, %b1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %tie = stablehlo.and %eq, %lt : tensor<i1>
    %here = stablehlo.or %is, %tie : tensor<i1>
    %v = stablehlo.select %is, %a0, %b0 : tensor<i1>, tensor<f32>
    %i = stablehlo.select %here, %a1, %b1 : tensor<i1>, tensor<i32>"""
# not commutative: of equal elements the one that comes last
LAST = """  %is = stablehlo.compare GT, %a0, %b0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %is, %a0, %b0 : tensor<i1>, tensor<f32>
    %i = stablehlo.select %is, %a1, %b1 : tensor<i1>, tensor<i32>"""


def best(name, values, places, rows, columns, body=GREATEST, start="inf", marks=None):
    """Return a reduction to the greatest of each row and its place; with ``marks``, of the elements that count."""
    kinds = [f"tensor<{rows}x{columns}x{kind}>" for kind in ("f32", "i32", "i1")]
    ends = [f"tensor<{rows}x{kind}>" for kind in ("f32", "i32", "i1")]
    count = 2 if marks is None else 3
    operands = [*[values, places, marks][:count], *[start, "zero", "no"][:count]]
    scalars = ["tensor<f32>", "tensor<i32>", "tensor<i1>"][:count]
    arguments = ", ".join(f"%{side}{k}: {kind}" for side in "ab" for k, kind in enumerate(scalars))
    returned = ["v", "i"]
    if marks is not None:
        body += """
    %vb = stablehlo.select %b2, %v, %a0 : tensor<i1>, tensor<f32>
    %va = stablehlo.select %a2, %vb, %b0 : tensor<i1>, tensor<f32>
    %ib = stablehlo.select %b2, %i, %a1 : tensor<i1>, tensor<i32>
    %ia = stablehlo.select %a2, %ib, %b1 : tensor<i1>, tensor<i32>
    %any = stablehlo.or %a2, %b2 : tensor<i1>"""
        returned = ["va", "ia", "any"]
    return f"""%{name}:{count} = "stablehlo.reduce"({", ".join("%" + o for o in operands)})
      <{{dimensions = array<i64: 1>}}> ({{
    ^bb0({arguments}):
    {body}
      stablehlo.return {", ".join("%" + r for r in returned)} : {", ".join(scalars)}
    }}) : ({", ".join([*kinds[:count], *scalars])}) -> ({", ".join(ends[:count])})"""


STARTS = """%inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %two = stablehlo.constant dense<2.0> : tensor<f32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %no = stablehlo.constant dense<false> : tensor<i1>"""


def whole(body=GREATEST):
    return f"""module {{ func.func @main(%x: tensor<2x{SIZE}xf32>) -> tensor<2xi32> {{
    {STARTS}
    %at = stablehlo.iota dim = 1 : tensor<2x{SIZE}xi32>
    {best("r", "x", "at", 2, SIZE, body)}
    return %r#1 : tensor<2xi32> }} }}"""


def local(body=GREATEST, offset="%d", order=(0, 1, 2, 3), start="inf", marks=None):
    """``order``: of the devices in the gather of their parts; ``marks``: the text that makes %marks."""
    count = 2 if marks is None else 3
    gathered = "\n".join(
        f"""%col{k} = stablehlo.reshape %own#{k} : (tensor<2x{kind}>) -> tensor<2x1x{kind}>
    %all{k} = "stablehlo.all_gather"(%col{k}) <{{all_gather_dim = 1 : i64, use_global_device_ids,
      channel_handle = #stablehlo.channel_handle<handle = {k + 1}, type = 1>,
      replica_groups = dense<{[list(order)]}> : tensor<1x4xi64>}}> : (tensor<2x1x{kind}>) -> tensor<2x4x{kind}>"""
        for k, kind in enumerate(("f32", "i32", "i1")[:count])
    )
    return f"""module attributes {{mhlo.num_partitions = {DEVICES} : i32}} {{
  func.func @main(%x: tensor<2x{PART}xf32> {side(f"tensor<2x{SIZE}xf32>", COLUMNS)})
      -> (tensor<2xi32> {side("tensor<2xi32>", "{replicated}")}) {{
    {STARTS}
    %p = stablehlo.partition_id : tensor<ui32>
    %d = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>
    %size = stablehlo.constant dense<{PART}> : tensor<i32>
    %begin = stablehlo.multiply {offset}, %size : tensor<i32>
    %begins = stablehlo.broadcast_in_dim %begin, dims = [] : (tensor<i32>) -> tensor<2x{PART}xi32>
    %own_places = stablehlo.iota dim = 1 : tensor<2x{PART}xi32>
    %at = stablehlo.add %own_places, %begins : tensor<2x{PART}xi32>
    {marks or ""}
    {best("own", "x", "at", 2, PART, body, marks=None if marks is None else "marks")}
    {gathered}
    {best("r", "all0", "all1", 2, DEVICES, body, start, None if marks is None else "all2")}
    return %r#1 : tensor<2xi32>
  }}
}}"""


ALL = f"%marks = stablehlo.constant dense<true> : tensor<2x{PART}xi1>"
NOT_OF_DEVICE_0 = f"""%counts = stablehlo.compare NE, %d, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %marks = stablehlo.broadcast_in_dim %counts, dims = [] : (tensor<i1>) -> tensor<2x{PART}xi1>"""


@pytest.mark.parametrize("body", [GREATEST, LAST])
@pytest.mark.parametrize("marks", [None, ALL])
def test_parts_of_a_row_are_the_row(body, marks):
    verdict = prove(whole(body), local(body, marks=marks), refute=False)
    assert verdict.proved, str(verdict)


@pytest.mark.parametrize(
    ("what", "program"),
    [
        ("places within the part", local(offset="%zero")),
        ("places of the next device", local(offset="%size")),
        ("another order of the parts", local(LAST, order=(1, 0, 2, 3))),
        ("parts from the last to the first", local(LAST, order=(3, 2, 1, 0))),
        ("another initial value", local(start="two")),
        ("another body", local(LAST)),
        ("a part left out", local(marks=NOT_OF_DEVICE_0)),
    ],
)
def test_other_reductions_of_parts_are_not(what, program):
    body = LAST if "order" in what or "first" in what else GREATEST
    verdict = prove(whole(body), program, refute=False)
    assert not verdict.proved, what
