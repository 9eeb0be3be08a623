"""The package and version of a platform's compiler, and how to install it."""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec

from shardpass.diagnostics.table_cost import NO_COMPILER
from shardpass.targets.target import CPU, CUDA, TPU, Target

# by platform: packages, the first of which has the compiler and the version that reports print, and their extra
PACKAGES = {
    TPU: (("libtpu",), "tpu"),
    CUDA: (("jax-cuda13-pjrt", "jax-cuda13-plugin"), "gpu"),
    CPU: (("jaxlib",), ""),
}
_MODULES = {"libtpu": "libtpu", "jax-cuda13-pjrt": "jax_plugins.xla_cuda13", "jax-cuda13-plugin": "jax_cuda13_plugin"}


def is_installed(target: Target) -> bool:
    """Return whether the compiler of ``target`` is here."""
    return not _missing(target)


def extra_of(target: Target) -> str:
    """Return the extra of shardpass that installs the compiler of ``target``; "" of CPUs."""
    return PACKAGES[target.platform][1]


def compiler_version(target: Target) -> str:
    """Return the package of the compiler and its version: "libtpu 0.0.42.1".

    Raises ShardpassError (SP909), which names the extra to install, where a package is missing.
    """
    packages, _ = PACKAGES[target.platform]
    if missing := _missing(target):
        raise NO_COMPILER.error(
            compiler=target.compiler, target=str(target), missing=" and ".join(missing), extra=extra_of(target)
        )
    return f"{packages[0]} {metadata.version(packages[0])}"


def _missing(target: Target) -> list[str]:
    packages, _ = PACKAGES[target.platform]
    return [name for name in packages if not _present(name)]


def _present(package: str) -> bool:
    try:
        metadata.version(package)
        return package not in _MODULES or find_spec(_MODULES[package]) is not None
    except (metadata.PackageNotFoundError, ModuleNotFoundError):
        return False
