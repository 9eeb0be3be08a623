"""Flops of library routines on matrices, by textbook counts, and the names of the routines.

Counts are those of Golub and Van Loan, Matrix Computations (4th edition), for an m x n matrix with vectors and factors
formed, leading terms alone; LU and the triangles by the exact sum of their leading terms.

Example: LU of 64 x 64 takes 2/3 * 64^3 = 174,763 flops.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import log2

from shardpass.cost.fusion import Flops

Count = Callable[[int, int], float]  # of one matrix, from its rows and columns


def _lu(m: int, n: int) -> float:
    s = min(m, n)  # steps k, each an outer product of (m-k) x (n-k)
    return 2 * m * n * s - (m + n) * s**2 + 2 * s**3 / 3


def _qr(m: int, n: int) -> float:
    s = min(m, n)
    return 2 * s**2 * max(m, n) - 2 * s**3 / 3


def _svd(m: int, n: int) -> float:
    long, short = max(m, n), min(m, n)
    return 4 * long**2 * short + 8 * long * short**2 + 9 * short**3


OF_A_MATRIX: Mapping[Flops, Count] = {
    Flops.CHOLESKY: lambda m, n: n**3 / 3,
    Flops.LU: _lu,
    Flops.QR: _qr,
    Flops.HESSENBERG: lambda m, n: 10 * n**3 / 3,
    Flops.TRIDIAGONAL: lambda m, n: 4 * n**3 / 3,
    Flops.EIGH: lambda m, n: 9 * n**3,
    Flops.EIGEN: lambda m, n: 25 * n**3,
    Flops.SVD: _svd,
}

OF_AN_ELEMENT: Mapping[Flops, Callable[[int], float]] = {  # of right-hand sides, from the last size of operand 0
    Flops.SOLVE: lambda n: float(n),
    Flops.REFLECT: lambda n: 4.0 * n,
    Flops.BANDED: lambda n: 8.0,
}

# names of LAPACK's routines, which JAX's targets for CPUs and GPUs contain: lapack_sgetrf_ffi, cusolver_getrf_ffi
ROUTINES: Mapping[Flops, str] = {
    Flops.CHOLESKY: "potrf",
    Flops.LU: "getrf",
    Flops.QR: "geqrf geqp3 orgqr ungqr",
    Flops.HESSENBERG: "gehrd",
    Flops.TRIDIAGONAL: "sytrd hetrd",
    Flops.EIGH: "syevd heevd syevj syev heev",
    Flops.EIGEN: "geev gees",
    Flops.SVD: "gesdd gesvd gesvdj gesvdp",
    Flops.SOLVE: "trsm",
    Flops.REFLECT: "ormqr unmqr",
    Flops.BANDED: "gtsv gtsv2",
}

# targets of TPUs and of exported programs, by their whole name
NAMED: Mapping[str, Flops] = {
    "Cholesky": Flops.CHOLESKY,
    "Eigh": Flops.EIGH,
    "LuDecomposition": Flops.LU,
    "ProductOfElementaryHouseholderReflectors": Flops.QR,
    "Qr": Flops.QR,
    "QrDecompositionBlock": Flops.QR,
    "tridiagonal_solve_perturbed_ffi": Flops.BANDED,
    "cu_tridiagonal_solve_perturbed": Flops.BANDED,
    "hip_tridiagonal_solve_perturbed": Flops.BANDED,
}

_ROUTINE: Mapping[str, Flops] = {name: flops for flops, names in ROUTINES.items() for name in names.split()}
_TARGET = re.compile(r"(?:lapack_[sdcz]|(?:cu|hip)(?:solver|sparse|blas)_)(\w+?)(?:_ffi)?")


def flops_of_call(target: str) -> Flops | None:
    """Return the function that counts the flops of a custom call to ``target``; None for an unknown target."""
    match = _TARGET.fullmatch(target)
    return NAMED.get(target) or (_ROUTINE.get(match[1]) if match else None)


def comparisons(size: int) -> float:
    """Return flops of sorting ``size`` elements, for each element."""
    return log2(max(2, size))


def butterflies(size: int) -> float:
    """Return flops of a complex Fourier transform of ``size`` points, for each point: 5 log2 n, as FFTW counts them."""
    return 5 * log2(max(2, size))
