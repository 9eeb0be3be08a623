"""What the check says of a program before anything is built: bytes, times, and waste, worked out by hand."""

from __future__ import annotations

import pytest

import shardpass
from shardpass.diagnostics import Diagnostic, Severity
from shardpass.partition.findings import Sends, planned

ROWS, COLUMNS, WHOLE = "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "{replicated}"


def findings(
    body: str, argument: str = ROWS, result: str = ROWS, devices: int = 4, **options: object
) -> list[Diagnostic]:
    text = f"""module attributes {{mhlo.num_partitions = {devices} : i32}} {{
      func.func @main(%x: tensor<8x8xf32> {{mhlo.sharding = "{argument}"}})
          -> (tensor<8x8xf32> {{mhlo.sharding = "{result}"}}) {{ {body} }} }}"""
    module = shardpass.run_pipeline(text, "import,shardpass-propagate{effort=0}")
    before = str(module)
    found = list(planned(module, **options))  # type: ignore[arg-type]
    assert str(module) == before
    return found


def constraint(name: str, of: str, sharding: str) -> str:
    return (
        f'%{name} = stablehlo.custom_call @Sharding(%{of}) {{mhlo.sharding = "{sharding}"}}'
        " : (tensor<8x8xf32>) -> tensor<8x8xf32>\n"
    )


MOVED = constraint("0", "x", COLUMNS) + "%1 = stablehlo.tanh %0 : tensor<8x8xf32> return %1 : tensor<8x8xf32>"


def test_a_redistribution_with_its_bytes() -> None:
    """Rows to columns of 256 bytes in four: a device has a quarter of its 64 bytes and is sent 48."""
    (found,) = findings(MOVED, result=COLUMNS)
    assert (found.code, found.severity) == ("SP240", Severity.REMARK)
    assert "48 bytes" in found.message
    assert "tensor<8x8xf32>" in found.message


def test_none_or_all_of_them_as_the_caller_wants() -> None:
    assert findings(MOVED, result=COLUMNS, sends=Sends.NONE) == []
    assert {d.severity for d in findings(MOVED, result=COLUMNS, sends=Sends.ALL)} == {Severity.ERROR}
    sliced = "%0 = stablehlo.tanh %x : tensor<8x8xf32> return %0 : tensor<8x8xf32>"
    assert findings(sliced, WHOLE, ROWS, sends=Sends.BYTES) == []  # nothing is sent: a slice


def test_what_gathers_all_is_said_once_more_with_the_whole() -> None:
    """From rows to every device: 192 of 256 bytes are sent to each."""
    body = constraint("0", "x", WHOLE) + "return %0 : tensor<8x8xf32>"
    found = findings(body, ROWS, WHOLE, remarks=True)
    assert any("192 bytes" in d.message and "256 bytes" in d.message for d in found)
    assert not any("256 bytes" in d.message for d in findings(body, ROWS, WHOLE))


@pytest.mark.parametrize("trips", [5, None])
def test_in_a_loop_it_is_said_how_often(trips: int | None) -> None:
    limit = (
        "%n = stablehlo.constant dense<5> : tensor<i32>"
        if trips
        else (
            "%s = stablehlo.slice %x [0:1, 0:1] : (tensor<8x8xf32>) -> tensor<1x1xf32> "
            "%r = stablehlo.reshape %s : (tensor<1x1xf32>) -> tensor<f32> "
            "%n = stablehlo.convert %r : (tensor<f32>) -> tensor<i32>"
        )
    )
    body = f"""%z = stablehlo.constant dense<0> : tensor<i32> {limit}
      %w:2 = stablehlo.while(%i = %z, %v = %x) : tensor<i32>, tensor<8x8xf32>
      cond {{ %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %p : tensor<i1> }}
      do {{ %one = stablehlo.constant dense<1> : tensor<i32> %j = stablehlo.add %i, %one : tensor<i32>
           %b = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0]
             : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
           stablehlo.return %j, %b : tensor<i32>, tensor<8x8xf32> }}
      return %w#1 : tensor<8x8xf32>"""
    (found,) = [d.message for d in findings(body) if "192 bytes" in d.message]
    assert (", 5 times" if trips else ", each time round a loop") in found


def test_repeated_work_and_unsplit_arguments() -> None:
    """A product of whole arrays on 4 devices: three quarters of the work is repeated, and of the argument."""
    body = """%0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> return %0 : tensor<8x8xf32>"""
    found = findings(body, WHOLE, WHOLE, remarks=True)
    (repeated,) = [d for d in found if "75%" in d.message]
    assert "4 devices" in repeated.message
    (argument,) = [d for d in found if "256 bytes" in d.message]
    assert "instead of 64" in argument.message
    assert findings(body, WHOLE, WHOLE) == []


def test_on_one_device_nothing_is_wasted() -> None:
    body = "%0 = stablehlo.tanh %x : tensor<8x8xf32> return %0 : tensor<8x8xf32>"
    assert findings(body, WHOLE, WHOLE, devices=1, remarks=True) == []
