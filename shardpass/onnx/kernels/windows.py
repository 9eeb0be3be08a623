"""The windows of convolutions and pools: their number along each spatial axis, and their positions.

Example: 5 elements, a kernel of 3, a stride of 2 and one element of padding on both sides: 3 windows, which begin at
-1, 1 and 3. With ``ceil_mode`` a last window that only begins inside of the array or its padding counts too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardpass.onnx.kernels.common import Unsupported
from shardpass.onnx.model import Node


@dataclass(frozen=True, slots=True)
class Window:
    """A window along one axis. ``after``: padding after the array needed by all ``count`` windows. ``declared``: the
    node's declared padding, which ``count_include_pad`` counts.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    declared: int
    count: int

    @property
    def extent(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    def elements(self, padding: bool) -> np.ndarray:
        """Count the elements in each window; with ``padding``, including the declared padding."""
        places = np.arange(self.count)[:, None] * self.stride + np.arange(self.kernel) * self.dilation - self.before
        low, high = (-self.before, self.size + self.declared) if padding else (0, self.size)
        return np.asarray(((places >= low) & (places < high)).sum(1))


def windows(node: Node, sizes: Sequence[int], kernel: Sequence[int]) -> list[Window]:
    """Return the windows along each spatial axis, of the given ``sizes``."""
    rank = len(sizes)
    strides = list(node.attributes.get("strides") or [1] * rank)
    dilations = list(node.attributes.get("dilations") or [1] * rank)
    pads = list(node.attributes.get("pads") or [0] * (2 * rank))
    if not len(kernel) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise Unsupported(f"its kernel, strides, dilations and pads are not for {rank} spatial axes")
    auto = node.attributes.get("auto_pad", "NOTSET")
    ceil = bool(node.attributes.get("ceil_mode"))
    return [
        _window(auto, ceil, size, kernel[k], strides[k], dilations[k], (pads[k], pads[k + rank]))
        for k, size in enumerate(sizes)
    ]


def _window(auto: str, ceil: bool, size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]) -> Window:
    extent = (kernel - 1) * dilation + 1
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        count = -(-size // stride)
        total = max(0, (count - 1) * stride + extent - size)
        before = total // 2 if auto == "SAME_UPPER" else -(-total // 2)
        return Window(size, kernel, stride, dilation, before, total - before, total - before, count)
    before, after = (0, 0) if auto == "VALID" else pads
    room = size + before + after - extent
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= size + before:  # the last window would begin behind the array
        count -= 1
    needed = (count - 1) * stride + extent - size - before
    return Window(size, kernel, stride, dilation, before, max(after, needed) if ceil else after, after, max(0, count))
