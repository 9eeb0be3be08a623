"""``hold`` asserts a law and names it in ``Broken`` where it does not hold."""

from __future__ import annotations


class Broken(Exception):
    """A law that a plan does not keep."""


def hold(kept: bool, law: str) -> None:
    if not kept:
        raise Broken(law)
