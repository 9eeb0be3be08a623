"""Map the names of ops and custom calls to their families, so that a family is loaded at the first use of its ops.

A program contains ops of few families, and to load all of them takes as long as to partition a small program. ``OPS``
has a row for each family and dialect, ``TARGETS`` the targets of custom calls by family; a family is a file of
``ops/families``. An op without a row that ``cost.fusion`` lists as elementwise is of the family elementwise. Tests
compare all with what the families define.
"""

from __future__ import annotations

from collections.abc import Mapping

from shardpass.cost.collective import KINDS
from shardpass.cost.fusion import ELEMENTWISE

OPS: tuple[tuple[str, str, str], ...] = (
    (
        "replicated",
        "stablehlo",
        "while if case return composite tuple get_tuple_element after_all create_token async_start async_done "
        "infeed outfeed send recv collective_reduce partition_id replica_id dynamic_broadcast_in_dim dynamic_conv "
        "dynamic_gather dynamic_iota dynamic_pad dynamic_reshape real_dynamic_slice set_dimension_size "
        "cross-replica-sum einsum unary_einsum",
    ),
    ("replicated", "chlo", "scan"),
    ("elementwise", "stablehlo", "optimization_barrier"),
    ("elementwise", "chlo", "constant_like"),
    ("elementwise", "mhlo", "copy"),
    ("collectives", "stablehlo", " ".join(KINDS)),
    ("constant_iota", "stablehlo", "constant iota"),
    ("batch_norm", "stablehlo", "batch_norm_inference batch_norm_training batch_norm_grad"),
    ("written_out", "stablehlo", "broadcast dot torch_index_select"),
    (
        "written_out",
        "chlo",
        "constant broadcast_add broadcast_and broadcast_atan2 broadcast_compare broadcast_complex "
        "broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply broadcast_or broadcast_power "
        "broadcast_remainder broadcast_select broadcast_shift_left broadcast_shift_right_arithmetic "
        "broadcast_shift_right_logical broadcast_subtract broadcast_xor broadcast_next_after broadcast_polygamma "
        "broadcast_zeta",
    ),
    ("ragged_dot", "chlo", "ragged_dot"),
    ("ragged_dot", "mhlo", "ragged_dot"),
    ("broadcast_transpose", "stablehlo", "broadcast_in_dim transpose"),
    ("reshape", "stablehlo", "reshape"),
    ("slice_pad_reverse", "stablehlo", "slice pad reverse"),
    ("concatenate", "stablehlo", "concatenate"),
    ("dot_general", "stablehlo", "dot_general"),
    ("convolution", "stablehlo", "convolution"),
    ("reduce_window", "stablehlo", "reduce_window"),
    ("select_and_scatter", "stablehlo", "select_and_scatter"),
    ("dynamic_slice", "stablehlo", "dynamic_slice dynamic_update_slice"),
    ("gather", "stablehlo", "gather"),
    ("scatter", "stablehlo", "scatter"),
    ("sort", "stablehlo", "sort"),
    ("sort", "chlo", "top_k"),
    ("reduce", "stablehlo", "reduce"),
    ("rng", "stablehlo", "rng_bit_generator rng"),
    ("map", "stablehlo", "map get_dimension_size"),
    ("custom_call", "stablehlo", "custom_call"),
    ("cholesky", "stablehlo", "cholesky"),
    ("fft", "stablehlo", "fft"),
    ("triangular_solve", "stablehlo", "triangular_solve"),
)

TARGETS: Mapping[str, str] = {
    "concatenate": "shardpass.splice",
    "custom_partitioning": "CustomSPMDPartitioning",
    "host_targets": "xla_ffi_partitioned_python_cpu_callback xla_ffi_partitioned_python_gpu_callback InspectSharding",
    "xla_targets": "LayoutConstraint annotate_device_placement MoveToHost MoveToDevice mhlo.topk TopK ApproxTopK",
    "cholesky": "Cholesky Eigh LuDecomposition ProductOfElementaryHouseholderReflectors Qr QrDecompositionBlock",
    "triangular_solve": (
        "lapack_strsm_ffi lapack_dtrsm_ffi lapack_ctrsm_ffi lapack_ztrsm_ffi lapack_sgtsv_ffi lapack_dgtsv_ffi "
        "lapack_cgtsv_ffi lapack_zgtsv_ffi tridiagonal_solve_perturbed_ffi cusparse_gtsv2_ffi hipsparse_gtsv2_ffi "
        "cu_tridiagonal_solve_perturbed hip_tridiagonal_solve_perturbed lapack_sormqr_ffi lapack_dormqr_ffi "
        "lapack_cunmqr_ffi lapack_zunmqr_ffi cusolver_ormqr_ffi hipsolver_ormqr_ffi"
    ),
}

FAMILY_OF_OP: Mapping[str, str] = {
    **dict.fromkeys(ELEMENTWISE, "elementwise"),
    **{f"{dialect}.{op}": family for family, dialect, ops in OPS for op in ops.split()},
}
FAMILY_OF_TARGET: Mapping[str, str] = {name: family for family, targets in TARGETS.items() for name in targets.split()}
