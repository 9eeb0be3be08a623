"""A law that is held to, and the exception that says which one is broken."""

from __future__ import annotations


class Broken(Exception):
    """A law that a plan does not keep."""


def hold(kept: bool, law: str) -> None:
    if not kept:
        raise Broken(law)
