"""Print MLIR text in pieces, without a copy of large constants in memory.

MLIR's printer writes the elements of a constant as hexadecimal digits, and holds four times their bytes as it does so
(the digits, twice). So, while the text is printed, each large constant has a resource of no content instead, and where
its name passes by, the elements are written:

    %c = stablehlo.constant dense_resource<shardpass.elements_7> : tensor<64x4096xf32>     as MLIR prints it
    %c = stablehlo.constant dense<"0x0000803F..."> : tensor<64x4096xf32>                   as it is written

MLIR makes the names unique. Pieces end anywhere, so what may be the start of such a name waits for the next piece.
MLIR itself prints elements that Python cannot access without a copy (bf16, i1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from jaxlib.mlir import ir

from shardpass.ir.doors import PIECE
from shardpass.ir.tensors import every_op, operation

LEAST = 1 << 16  # bytes of a large constant; MLIR prints digits from 101 elements on
CONSTANT, VALUE = "stablehlo.constant", "value"
_NAME = re.compile(rb"dense_resource<(shardpass\.elements[_\d]*)>")
_LONGEST = 64  # of what _NAME matches


class Sink(Protocol):
    """A writer that accepts text in pieces."""

    def write(self, piece: bytes, /) -> Any: ...


def print_to(sink: Sink, module: Any, **form: Any) -> None:
    """Print ``module`` to ``sink`` as ``module.operation.print(**form)``. Changes ``module`` while it prints."""
    if form.get("large_elements_limit") is not None:  # large constants are left out
        module.operation.print(file=sink, binary=True, **form)
        return
    with _without_elements(module) as elements:
        filled = _Filled(sink, elements)
        module.operation.print(file=filled, binary=True, **form)
        filled.finish()


@contextmanager
def _without_elements(module: Any) -> Iterator[dict[bytes, memoryview]]:
    """Replace large constants by empty resources inside the block; yields their elements by name."""
    elements: dict[bytes, memoryview] = {}
    before: list[tuple[Any, Any]] = []
    try:
        with module.context:
            for op in [op for top in module.body.operations for op in every_op(operation(top)) if op.name == CONSTANT]:
                raw = _raw(op)
                if raw is not None:
                    before.append((op, op.attributes[VALUE]))
                    named = ir.Attribute.parse(f"dense_resource<shardpass.elements> : {op.results[0].type}")
                    op.attributes[VALUE] = named
                    elements[_NAME.findall(str(named).encode())[0]] = raw
        yield elements
    finally:
        for op, value in before:
            op.attributes[VALUE] = value


def _raw(op: Any) -> memoryview | None:
    """Return a view of the elements of a large constant; None for any other op."""
    kind = op.results[0].type
    width = getattr(kind.element_type, "width", 0)  # of integers and floats alone
    size = math.prod(kind.shape) * width // 8
    if size < LEAST or width % 8:
        return None
    value = op.attributes[VALUE]
    if not isinstance(value, ir.DenseElementsAttr) or value.is_splat:
        return None
    try:
        raw = memoryview(value)
    except (BufferError, TypeError, ValueError):
        return None
    return raw.cast("B") if raw.c_contiguous and raw.nbytes == size else None


class _Filled:
    """Writes MLIR's output to ``sink``, with the elements of large constants inserted."""

    def __init__(self, sink: Sink, elements: dict[bytes, memoryview]) -> None:
        self.sink, self.elements = sink, elements
        self.waiting: list[bytes] = []
        self.size = 0

    def write(self, piece: bytes) -> None:
        self.waiting.append(piece)
        self.size += len(piece)
        if self.size >= LEAST:
            self._pass_on(_LONGEST)

    def finish(self) -> None:
        self._pass_on(0)

    def _pass_on(self, kept: int) -> None:
        """Write the pending text except the last ``kept`` bytes, which may be the start of a name."""
        text, at = b"".join(self.waiting), 0
        for match in _NAME.finditer(text):
            self.sink.write(text[at : match.start()])
            self._elements(self.elements[match[1]])
            at = match.end()
        end = max(at, len(text) - kept)
        self.sink.write(text[at:end])
        self.waiting, self.size = [text[end:]], len(text) - end

    def _elements(self, raw: memoryview) -> None:
        self.sink.write(b'dense<"0x')
        for start in range(0, len(raw), PIECE):
            self.sink.write(raw[start : start + PIECE].hex().upper().encode())
        self.sink.write(b'">')
