"""``Target``: the devices for which a program is compiled, with names such as v5e:4x4.

    v5e:16x16    a slice of 256 TPU v5e, as wide and high as written; v6e likewise
    v5p:2x2x4    a slice of 16 TPU v5p, a torus of three dimensions
    h100:8       8 cards in one host; h100:16, 2 hosts of 8
    h100:4x8     4 hosts of 8 cards
    cpu:8        8 virtual CPU devices of one process

A chip is a file under ``chips``. XLA's compiler for its platform is a package that needs no such device:
``shardpass.targets.versions`` says which, ``shardpass.targets.compiler`` runs it.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.arguments import shown
from shardpass.diagnostics.table_cost import UNKNOWN_TARGET

FOLDER = Path(__file__).parent / "chips"
CHIPS = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
CPU, TPU, CUDA = "cpu", "tpu", "cuda"
COMPILERS = {CPU: "XLA:CPU", TPU: "XLA:TPU", CUDA: "XLA:GPU"}
MOST_DEVICES = 65536
_TARGET = re.compile(r"([a-z0-9]+):([0-9]{1,5}(?:x[0-9]{1,5}){0,2})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Chip:
    """A kind of device.

    Attributes:
        platform: as JAX names it: "tpu", "cuda" or "cpu".
        machine: the name of the machine (``cost.machines``) whose prices are meant.
        dimensions: how many sizes a target of these chips has.
        clock: cycles a second, by which the compiler's cycles are seconds; 0.0 where it counts none.
        host: the number of cards in a host; 0 where the platform divides hosts itself.
        description: text in XLA's terms that stands for the device; "" where the platform knows its chips.
    """

    name: str
    about: str
    platform: str
    machine: str
    dimensions: int
    clock: float = 0.0
    host: int = 0
    description: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Target:
    """Devices of one kind. ``shape``: of the slice, or (hosts, cards per host)."""

    chip: Chip
    shape: tuple[int, ...]

    def __str__(self) -> str:
        """Return the canonical name, which ``parse_target`` reads."""
        sizes = self.shape[1:] if self.platform == CUDA and self.shape[0] == 1 else self.shape
        return f"{self.chip.name}:{'x'.join(map(str, sizes))}"

    @property
    def platform(self) -> str:
        return self.chip.platform

    @property
    def machine(self) -> str:
        """The name of the machine whose prices time programs for the target."""
        return self.chip.machine

    @property
    def devices(self) -> int:
        return math.prod(self.shape)

    @property
    def compiler(self) -> str:
        """The name of XLA's compiler for the target: "XLA:TPU"."""
        return COMPILERS[self.platform]


def cpu(devices: int) -> Target:
    """Return the target of virtual CPU devices."""
    return Target(chip("cpu"), (devices,))


def parse_target(text: object) -> Target:
    """Parse the name of a target, ``v5e:16x16``. Raises ShardpassError (SP908) for any other text."""
    match = _TARGET.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise _unknown(text, "a target is a chip, a colon and sizes")
    name, sizes = match[1].lower(), tuple(map(int, match[2].lower().split("x")))
    if name not in CHIPS:
        raise _unknown(text, f"no chip is called {name}")
    kind = chip(name)
    if 0 in sizes or math.prod(sizes) > MOST_DEVICES:
        raise _unknown(text, f"a target has 1 to {MOST_DEVICES:,} devices")
    if kind.platform == CUDA and len(sizes) == 1:
        return Target(kind, _hosts(text, kind, sizes[0]))
    if len(sizes) != kind.dimensions:
        raise _unknown(text, f"{kind.about} takes {_counted(kind.dimensions)}, not {len(sizes)}")
    return Target(kind, sizes)


def _hosts(text: object, kind: Chip, cards: int) -> tuple[int, int]:
    """Divide cards among hosts."""
    if cards <= kind.host:
        return 1, cards
    if cards % kind.host:
        raise _unknown(text, f"hosts have {kind.host} cards, which do not divide {cards}")
    return cards // kind.host, kind.host


def _counted(sizes: int) -> str:
    return "one size" if sizes == 1 else f"{sizes} sizes"


def _unknown(text: object, reason: str) -> ShardpassError:
    name = text.partition(":")[0].lower() if isinstance(text, str) else ""
    near = difflib.get_close_matches(name, CHIPS, 1, 0.5) if name not in CHIPS else []
    hint = f"did you mean {near[0]}? " if near else ""
    return UNKNOWN_TARGET.error(name=repr(shown(text)), reason=reason, near=hint, known=", ".join(CHIPS))


def clock_of(machine: str) -> float:
    """Return the cycles a second of the chip of a machine (``cost.machines``), which compilers count; else 0.0."""
    name = machine.removesuffix("-slices")
    return chip(name).clock if name in CHIPS else 0.0


@lru_cache(maxsize=64)
def chip(name: str) -> Chip:
    """Read the file of the chip ``name``."""
    table: Mapping[str, Any] = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    facts = {key: value for key, value in table.items() if key not in ("description", "sources")}
    return Chip(**facts, description=table.get("description", {}).get("text", ""))
