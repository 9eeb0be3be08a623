"""The redistributions that are timed: random ones as in section 8 of Rink et al., those of a file, the paper's own."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MESHES = {
    "2x2x2": (2, 2, 2),
    "2x4": (2, 4),
    "8": (8,),
    "2x3": (2, 3),
    "4x6": (4, 6),
    "2x2x3x2": (2, 2, 3, 2),
}
AXES = "abcdef"
PAPER: tuple[
    tuple[str, tuple[int, ...], tuple[str, ...], tuple[str, ...]], ...
] = (  # figure 13, on {a:2, b:2, c:2}; per dimension the axes, major to minor
    ("P1", (360, 368, 320), ("", "c", ""), ("ac", "", "b")),
    ("P2", (80, 80, 72, 64), ("", "c", "", ""), ("b", "", "c", "")),
    ("P3", (296, 360, 312), ("", "", "c"), ("cb", "a", "")),
    ("P4", (16,) * 6, ("c", "", "", "a", "", "b"), ("", "", "", "", "", "a")),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """An f32 array of ``shape`` on a mesh of axes a, b, c... of the sizes ``mesh``.

    ``source`` and ``target`` name for each dimension the axes that split it, major to minor: ("ac", "", "b").
    """

    name: str
    mesh: tuple[int, ...]
    shape: tuple[int, ...]
    source: tuple[str, ...]
    target: tuple[str, ...]

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Problem:
        """The problem of which ``row`` is the dict, lists in place of tuples."""
        parts = (tuple(row[name]) for name in ("mesh", "shape", "source", "target"))
        return cls(row["name"], *parts)

    @property
    def devices(self) -> int:
        return math.prod(self.mesh)

    @property
    def uneven(self) -> bool:
        """Whether some dimension does not divide."""
        sizes = dict(zip(AXES, self.mesh, strict=False))
        return any(
            n % math.prod(sizes[axis] for axis in axes)
            for side in (self.source, self.target)
            for n, axes in zip(self.shape, side, strict=True)
        )


def sample(mesh: str, seed: int, index: int, low: float, high: float, uneven: bool) -> Problem:
    """A random problem of ``low`` to ``high`` bytes of f32, not an identity."""
    sizes = MESHES[mesh]
    rng = random.Random(f"{mesh}/{seed}/{index}/{low:.0f}/{high:.0f}/{uneven}")
    while True:
        rank = rng.randint(1, 6)
        sides = []
        for _ in range(2):
            dims = [""] * rank
            for axis in rng.sample(range(len(sizes)), len(sizes)):
                place = rng.randint(-1, rank - 1)
                if place >= 0:
                    dims[place] += AXES[axis]
            sides.append(dims)
        if sides[0] == sides[1]:
            continue
        counts = [[math.prod(sizes[AXES.index(a)] for a in dim) for dim in dims] for dims in sides]
        need = [math.lcm(*pair) for pair in zip(*counts, strict=True)]
        elements = rng.uniform(low, high) / 4
        weights = [rng.uniform(0.3, 1.7) for _ in need]
        free = math.log(max(elements / math.prod(need), 1))
        shape = [n * max(1, round(math.exp(free * w / sum(weights)))) for n, w in zip(need, weights, strict=True)]
        if uneven:
            shape = [max(1, s - (rng.randrange(n) if n > 1 else 0)) for s, n in zip(shape, need, strict=True)]
        if uneven and all(s % n == 0 for s, n in zip(shape, need, strict=True)):
            continue
        if 0.7 * low <= 4 * math.prod(shape) <= 1.4 * high:
            name = f"{mesh}/{'u' if uneven else 'e'}{seed}/{index}"
            return Problem(name, sizes, tuple(shape), tuple(sides[0]), tuple(sides[1]))


def named(name: str, low: float, high: float) -> Problem:
    """The sample that is called so: mesh, e or u and the seed, number."""
    mesh, kind, index = name.split("/")
    return sample(mesh, int(kind[1:]), int(index), low, high, kind[0] == "u")


def hard(path: str) -> list[Problem]:
    """The problems of a file of ``{"problem": {mesh, shape, src, dst}}`` entries."""
    return [
        Problem(
            p["id"],
            tuple(size for _, size in p["mesh"]),
            tuple(p["shape"]),
            tuple("".join(dim) for dim in p["src"]),
            tuple("".join(dim) for dim in p["dst"]),
        )
        for p in (entry["problem"] for entry in json.loads(Path(path).read_text()))
    ]


def paper() -> list[Problem]:
    return [Problem(name, (2, 2, 2), shape, source, target) for name, shape, source, target in PAPER]
