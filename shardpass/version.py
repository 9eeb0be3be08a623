"""The version of shardpass."""

from __future__ import annotations


def installed_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("shardpass")
    except PackageNotFoundError:  # a source tree that is on the path without being installed
        return "0+unknown"
