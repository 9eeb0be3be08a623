"""From what says a machine to the terms by which it is priced: the one place where a ``Machine`` becomes a ``Profile``.

``ideal`` is priced as programs without a machine were: the search by a latency of 512 bytes, redistributions and times
by the profile "default".
"""

from __future__ import annotations

import os
from typing import Any

from shardpass.cost.chosen import IDEAL, OLD, machine_text, named_machine
from shardpass.redistribute.terms.costs import PROFILES, Profile, of_machine
from shardpass.redistribute.terms.profiles import find_profile

USUAL = "default"


def text_of_machine(given: Any = None) -> str:
    """The machine ``given`` as text. Raises ShardpassError: SP901 to SP903, SP414."""
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if isinstance(given, str) and given.endswith(".json"):  # the file of a profile, as they were
        find_profile(given)
        return given
    return machine_text(given)


def profile_of(given: Any = None) -> Profile:
    """The profile by which redistributions are planned, and times modelled, on the machine ``given``."""
    if isinstance(given, Profile):
        return find_profile(given)
    text = text_of_machine(given)
    if text == IDEAL:
        return PROFILES[USUAL]
    if text in OLD or text.endswith(".json"):
        return find_profile(text)
    return PROFILES[text] if text in PROFILES else of_machine(named_machine(text))


def prices_of(given: Any = None) -> Profile | None:
    """The profile by which the search prices programs on the machine ``given``; None (its own prices) for ``ideal``."""
    return None if not isinstance(given, Profile) and text_of_machine(given) == IDEAL else profile_of(given)
