"""The machine that prices programs for a target: its chip, with the target's slice or hosts."""

from __future__ import annotations

from dataclasses import replace

from shardpass.cost.links import Link, Switch, Torus
from shardpass.cost.machine import Machine, find_machine
from shardpass.targets.target import CHIPS, CPU, CUDA, TPU, Target, chip
from shardpass.targets.versions import is_installed


def machine_of(target: Target) -> Machine:
    """Return the machine whose links are those of ``target``.

    A mesh axis of 16 lies along one dimension of a whole pod of v5e, and along two of a slice of 4x4; hosts of 4 cards
    join fewer of them by NVLink than hosts of 8.
    """
    machine = find_machine(target.machine)
    first, *others = machine.links
    return replace(machine, links=(_inner(first, target), *others))


def target_on(machine: str, devices: int) -> Target | None:
    """Return ``devices`` chips of the kind of ``machine``: whole hosts of GPUs, or a slice of TPUs that is as square
    as possible. None if there is no such chip, or no slice of that size.
    """
    if machine not in CHIPS or chip(machine).platform == CPU:
        return None
    kind, twos = chip(machine), devices.bit_length() - 1
    if kind.platform == CUDA:
        hosts = -(-devices // kind.host)
        return None if devices % hosts else Target(kind, (hosts, devices // hosts))
    if twos < kind.dimensions - (kind.dimensions > 2) or devices != 1 << twos:
        return None
    sizes = [1 << (twos + place) // kind.dimensions for place in range(kind.dimensions)]
    return Target(kind, tuple(sizes if sizes[0] > 1 else sizes[::-1]))


def installed_on(machine: str | None, devices: int) -> Target | None:
    """Return the result of ``target_on`` if its compiler is installed and the user named the machine; else None."""
    target = None if machine is None else target_on(machine, devices)
    return target if target is not None and is_installed(target) else None


def _inner(link: Link, target: Target) -> Link:
    if target.platform == TPU and isinstance(link, Torus):
        return replace(link, shape=target.shape)
    hosts, cards = target.shape if target.platform == CUDA else (1, 0)
    return replace(link, devices=cards) if hosts > 1 and isinstance(link, Switch) else link
