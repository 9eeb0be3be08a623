"""The page of the machines that come with shardpass, from their files."""

from __future__ import annotations

import math

from shardpass.cost.links import described, shown_rate
from shardpass.cost.machine import MACHINES, Machine, find_machine

ELEMENTS = {"f64": "f64", "f32": "f32", "bf16, f16": "bf16", "f8": "f8E4M3FN", "i8": "i8"}


def machines_page() -> str:
    machines = [find_machine(name) for name in MACHINES]
    lines = [
        "# Machines",
        "",
        "What `machine=` and `--machine` take by name. Each is a file under",
        "`shardpass/cost/machines/`; [Cost](../cost.md) says what the numbers mean. Rates are of one device: that of",
        "a link is what a device receives by it.",
        "",
        "| machine | | memory | memory's bandwidth | links, the innermost first |",
        "|---|---|---|---|---|",
        *(_row(machine) for machine in machines),
        "",
        "## Flops",
        "",
        "Additions and multiplications of dense matrices, a second. A type without a rate has that of the next wider",
        "one, or of the widest; complex numbers have that of their parts.",
        "",
        f"| machine | {' | '.join(ELEMENTS)} |",
        "|---|" + "---|" * len(ELEMENTS),
        *(_flops(machine) for machine in machines),
        "",
        "## Sources",
        "",
        "| machine | number | source | date |",
        "|---|---|---|---|",
        *(
            f"| `{machine.name}` | {source.of} | {_linked(source.where)} | {source.date} |"
            for machine in machines
            for source in machine.sources
        ),
    ]
    return "\n".join(lines)


def _row(machine: Machine) -> str:
    memory = "no limit" if machine.memory == math.inf else f"{machine.memory / 1e9:g} GB"
    links = "; ".join(map(described, machine.links))
    return f"| `{machine.name}` | {machine.about} | {memory} | {shown_rate(machine.memory_bandwidth)} | {links} |"


def _flops(machine: Machine) -> str:
    rates = [f"{machine.rate(element) / 1e12:g} T" for element in ELEMENTS.values()]
    return f"| `{machine.name}` | {' | '.join(rates)} |"


def _linked(text: str) -> str:
    """``text`` with its address as a link."""
    if not text.startswith("https://"):
        return text
    address, colon, rest = text.partition(": ")
    if not colon:
        address, colon, rest = text.partition(", ")
    return f"<{address}>{colon}{rest}"
