"""Whether what a command wrote is what it was asked for: MLIR, XLA, XML or protobuf read it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.fuzz.door_case import OUT, Case


def faulty(case: Case, status: int) -> str:
    """Why what ``case`` wrote is not what it asked for; "" where all is well."""
    path = Path(OUT)
    if not case.form or not path.exists() or (case.form == "split" and status == 0):
        return ""
    try:
        _READ[case.form](path.read_bytes())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _as_text(data: bytes) -> None:
    from jaxlib.mlir import ir

    from shardpass.ir.context import make_context

    with make_context():
        ir.Module.parse(data)


def _as_unregistered(data: bytes) -> None:
    from jaxlib.mlir import ir

    from shardpass.ir.context import make_context

    with make_context() as context:
        context.allow_unregistered_dialects = True
        ir.Module.parse(data)


def _as_portable(data: bytes) -> None:
    from jaxlib.mlir.dialects import stablehlo as hlo

    from shardpass.ir.context import make_context

    hlo.deserialize_portable_artifact(make_context(), data)


def _as_hlo(data: bytes) -> None:
    from shardpass.ir.jax_private import hlo_text_to_proto

    hlo_text_to_proto(data.decode())


def _as_page(data: bytes) -> None:
    if not data.rstrip().endswith(b"</html>"):
        raise ValueError("the page has no end")
    if b"<script>alert" in data:
        raise ValueError("an element that the input named is in the page")


def _as_picture(data: bytes) -> None:
    from xml.etree import ElementTree

    ElementTree.fromstring(data)


def _as_model(data: bytes) -> None:
    import onnx

    onnx.load_model_from_string(data)


_READ: dict[str, Callable[[bytes], None]] = {
    "stablehlo": _as_text,
    "unregistered": _as_unregistered,
    "bytecode": _as_text,
    "vhlo": _as_portable,
    "hlo": _as_hlo,
    "html": _as_page,
    "svg": _as_picture,
    "onnx": _as_model,
    "split": lambda data: None,
}
