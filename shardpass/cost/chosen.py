"""Choose a machine: the machine named by the user, or the default.

A user says a machine by a name, by the path of a file NAME.toml, or as a ``Machine``. Without a word the environment
variable SHARDPASS_MACHINE says it, and else it is ``h100``. (In JAX, the machine is that of the devices: ``jax.here``.)

A module carries the machine for which it was decided as text (``shardpass.machine``): a name of ``cost.machines``, a
path as the user gave it, or, of an object, its name and a digest, "lab@0123456789ab", which only this process knows.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from shardpass.cost.checked import read_machine
from shardpass.cost.links import Switch
from shardpass.cost.machine import MACHINES, Machine, find_machine
from shardpass.diagnostics.arguments import shown
from shardpass.diagnostics.table_cost import MEASURED_ELSEWHERE, UNKNOWN_MACHINE

VARIABLE = "SHARDPASS_MACHINE"
USUAL = "h100"
IDEAL = "ideal"
DIGITS = 12  # of a digest

_objects: dict[str, Machine] = {}  # those that were given as objects, by name and digest


def machine_text(given: object = None) -> str:
    """Return the text by which ``named_machine`` finds ``given``; for None, the text for the machine of the
    environment.

    Raises ShardpassError: SP901, SP902, SP903.
    """
    where = ""
    if given is None or (isinstance(given, str) and not given):
        given, where = os.environ.get(VARIABLE) or USUAL, f" ({VARIABLE})"
    if isinstance(given, Machine):
        return identity(given)
    given = path_or_name(given)
    if not isinstance(given, str):
        raise _unknown(given, where)
    text = "".join([given])  # of a class of the user's
    _find(text, where)
    return text


def path_or_name(given: object) -> object:
    """Return ``given``, a path as text. Raises ShardpassError (SP901) where the object raises."""
    if not isinstance(given, os.PathLike):
        return given
    try:
        return os.fspath(given)
    except Exception:  # of an object that says that it is a path
        raise _unknown(given, "") from None


def chosen(given: object = None) -> Machine:
    """Return the machine that ``given`` names or is. Raises as ``machine_text``."""
    return given if isinstance(given, Machine) else named_machine(machine_text(given))


def content_text(given: object = None) -> str:
    """Return a key for caches: like ``machine_text``, but for a file, the digest of its content."""
    text = machine_text(given)
    return identity(named_machine(text)) if is_file(text) else text


def named_machine(text: str) -> Machine:
    """Return the machine that a module or an option names. Raises ShardpassError: SP901, SP902, SP903, SP907."""
    return _find(text, "")


def identity(machine: Machine) -> str:
    """Return a text that identifies a machine: its name, with a digest of its content if the user defined it."""
    if machine.name in MACHINES and find_machine(machine.name) == machine:
        return machine.name
    content = [getattr(machine, field.name) for field in fields(machine)]
    text = f"{machine.name}@{hashlib.sha256(repr(content).encode()).hexdigest()[:DIGITS]}"
    _objects[text] = machine
    return text


def is_file(text: str) -> bool:
    """Return whether ``text`` names a file."""
    return text.endswith(".toml") or os.sep in text


def _find(text: str, where: str) -> Machine:
    if text in MACHINES:
        return find_machine(text)
    if text in OLD:
        return OLD[text]
    if text in _objects:
        return _objects[text]
    name, at, digest = text.rpartition("@")
    if at and len(digest) == DIGITS and not is_file(text):
        raise MEASURED_ELSEWHERE.error(name=shown(name), known=", ".join(MACHINES))
    if not is_file(text):
        raise _unknown(text, where)
    try:
        status = os.stat(text)
        version = status.st_mtime_ns, status.st_size
    except (OSError, ValueError):
        version = 0, 0  # which reading says better
    return _read(text, *version)


@lru_cache(maxsize=64)
def _read(path: str, changed: int, size: int) -> Machine:
    return read_machine(path)


def _unknown(given: Any, where: str) -> Exception:
    near = difflib.get_close_matches(given.lower(), MACHINES, 1, 0.5) if isinstance(given, str) else []
    hint = f"did you mean {near[0]}? " if near else ""
    return UNKNOWN_MACHINE.error(name=repr(shown(given)), where=where, near=hint, known=", ".join(MACHINES))


def _flat(name: str, about: str, *links: Switch) -> Machine:
    return replace(find_machine(IDEAL), name=name, about=about, links=links)


OLD = {
    machine.name: machine
    for machine in (
        _flat("default", "an old name: a fast network of latency", Switch(None, 10e-6, 50e9)),
        _flat("ethernet", "an old name: hosts on a 25 Gbit/s network", Switch(None, 50e-6, 3e9)),
        _flat("pod", "an old name: hosts of 8", Switch(8, 5e-6, 150e9), Switch(None, 25e-6, 12.5e9)),
        replace(_flat("paper", "an old name: bytes alone", Switch(None, 0.0, 1.0)), memory_bandwidth=float("inf")),
    )
}
"""Machines that were called profiles; their names work for one version."""
