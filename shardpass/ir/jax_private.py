"""The only file that uses private APIs of JAX and jaxlib; its test names the part that changed.

Works with jax 0.10.2 and 0.12. What each function leans on stands in its docstring.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any

import jax
import numpy as np
from jax._src import compilation_cache as _cache
from jax._src import compiler as _compiler
from jax._src import core as _core
from jax._src import custom_partitioning as _custom
from jax._src import distributed as _distributed
from jax._src import lru_cache as _lru_cache
from jax._src import pjit as _pjit
from jax._src import source_info_util as _source_info
from jax._src import xla_bridge as _bridge
from jax._src.interpreters import mlir as _jax_mlir
from jax.experimental import topologies
from jaxlib import _jax
from jaxlib import xla_client as _xla

try:
    from jaxlib import _hlo
except ImportError:  # older
    _hlo = _jax
from jaxlib.cpu import _lapack
from jaxlib.mlir import ir


def make_ir_context() -> Any:
    """Make a fresh ``ir.Context`` with the dialects that JAX's modules use.

    Leans on ``jax._src.interpreters.mlir.make_ir_context``.
    """
    return _jax_mlir.make_ir_context()


def compile_and_load(module: bytes | str, devices: Sequence[Any], *, spmd: bool = True, shardy: bool = False) -> Any:
    """Compile StableHLO (text or bytecode) for one replica and ``len(devices)`` partitions.

    ``spmd``: XLA's partitioner runs; XLA demands it of more than one partition. It leaves manual values alone.
    ``shardy``: the annotations are those of the sdy dialect.

    Leans on ``jaxlib.xla_client.CompileOptions`` (with ``env_option_overrides``), ``DeviceAssignment``,
    ``jaxlib._jax.DeviceList`` and ``Client.compile_and_load``; for devices that are only described on ``compile``,
    whose program cannot run. Raises XLA's own error (a RuntimeError).
    """
    _load_lapack(module)
    count = len(devices)
    options = _xla.CompileOptions()
    options.num_replicas, options.num_partitions = 1, count
    ids = np.array([[device.id for device in devices]])
    options.device_assignment = _xla.DeviceAssignment.create(ids)
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, count
    build.use_spmd_partitioning = spmd
    build.use_shardy_partitioner = shardy
    overrides, client, placed = _overrides.get(), devices[0].client, _jax.DeviceList(tuple(devices))
    options.env_option_overrides = list(overrides)
    if isinstance(client, _jax.CompileOnlyPyClient):
        with make_ir_context():
            return client.compile(ir.Module.parse(module), placed, options)
    try:
        return client.compile_and_load(module, placed, options)
    except RuntimeError as error:
        if overrides is not _NO_KERNELS or "No such compile option" not in str(error):  # of jax 0.12
            raise
    options.env_option_overrides = []
    return client.compile_and_load(module, placed, options)


# XLA's CPU client hands reductions of some thousand elements to a library whose max and min lose NaN, and its algebraic
# simplifier makes select(p, x, 0) of x * float(p), which is NaN where x is NaN or infinite
_NAN_KEPT = (("xla_cpu_experimental_ynn_fusion_type", ""), ("xla_disable_hlo_passes", "algsimp"))
# two thirds of what a compile takes are kernels of fusions
_NO_KERNELS = (("xla_cpu_use_fusion_emitters", False),)
_NO_TRITON = (("xla_gpu_enable_triton_gemm", False),)
_overrides: ContextVar[tuple[tuple[str, object], ...]] = ContextVar("_overrides", default=())


def compiled_to_keep_nan() -> AbstractContextManager[None]:
    """Make ``compile_and_load`` build, inside the block, programs that keep NaN on one device."""
    return _overriding(_NAN_KEPT)


def drafts() -> AbstractContextManager[None]:
    """Make ``compile_and_load``, inside the block, compile three times as fast, with slower kernels.

    Collectives and products are the same; XLA fuses a little otherwise, so memory is the same within some percent.
    XLA of jax 0.12 has no such option: its drafts are whole compiles.
    """
    return _overriding(_NO_KERNELS)


def products_of_libraries() -> AbstractContextManager[None]:
    """Make ``compile_and_load``, inside the block, compile all products for GPUs as calls of cuBLAS."""
    return _overriding(_NO_TRITON)


@contextmanager
def _overriding(options: tuple[tuple[str, object], ...]) -> Iterator[None]:
    token = _overrides.set(options)
    try:
        yield
    finally:
        _overrides.reset(token)


def described_gpus(description: str, hosts: int, cards: int) -> tuple[Any, ...]:
    """Return devices that are only described: ``hosts`` hosts of ``cards`` GPUs. ``description``: XLA's text.

    Leans on ``jax._src.xla_bridge.canonicalize_platform``, which asks for GPUs that are present.
    """
    known = _bridge.canonicalize_platform
    _bridge.canonicalize_platform = lambda platform: platform if platform == "cuda" else known(platform)
    try:
        shape = f"1x{hosts}x{cards}"
        devices = topologies.get_topology_desc(platform="cuda", target_config=description, topology=shape).devices
    finally:
        _bridge.canonicalize_platform = known
    return tuple(devices)


def _load_lapack(module: bytes | str) -> None:
    """Load LAPACK's addresses: without these, calls from a module that was read from a file crash.

    Leans on ``jaxlib.cpu._lapack.initialize``, which does nothing the second time.
    """
    if ("lapack_" if isinstance(module, str) else b"lapack_") in module:  # type: ignore[operator]
        _lapack.initialize()


def execute(executable: Any, arguments: Sequence[Any]) -> list[list[Any]]:
    """Run ``executable`` on the tiles of all devices; return single-device arrays as [result][device].

    Leans on ``LoadedExecutable.execute_sharded`` and its results'
    ``disassemble_into_single_device_arrays``.
    """
    results = executable.execute_sharded(list(arguments))
    tiles: list[list[Any]] = results.disassemble_into_single_device_arrays()
    return tiles


def boundary_shardings(executable: Any) -> tuple[list[str], list[str]]:
    """Return the texts of the shardings that XLA chose for arguments and results of a partitioned program.

    Leans on ``get_parameter_shardings``, ``get_output_shardings`` and ``HloSharding.from_proto``.
    """

    def texts(protos: Any) -> list[str]:
        return [repr(_xla.HloSharding.from_proto(proto)) for proto in protos or ()]

    return texts(executable.get_parameter_shardings()), texts(executable.get_output_shardings())


def hlo_text_to_proto(text: str) -> bytes:
    """Convert HLO text to a serialized ``HloModuleProto``. Raises XLA's own error where the text does not parse.

    Leans on ``jaxlib._hlo.hlo_module_from_text``, or where jaxlib keeps it in ``_jax``.
    """
    proto: bytes = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return proto


def hlo_proto_to_mlir(proto: bytes) -> bytes:
    """Convert a serialized ``HloModuleProto`` to MLIR bytecode with StableHLO. Raises XLA's own error.

    Leans on ``jaxlib._jax.mlir.hlo_to_stablehlo``.
    """
    made: bytes = _jax.mlir.hlo_to_stablehlo(proto)
    return made


def hlo_proto_to_text(proto: bytes) -> str:
    """Convert a serialized ``HloModuleProto`` to HLO text. Raises XLA's own error.

    Leans on ``HloModule.from_serialized_hlo_module_proto`` of ``jaxlib._hlo``, or of ``_jax``, and its ``to_string``.
    """
    text: str = _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string()
    return text


def mlir_to_hlo_text(module: bytes) -> str:
    """Convert MLIR bytecode with StableHLO to HLO text with all its constants. Raises XLA's own error.

    Leans on ``jaxlib._jax.mlir.mlir_module_to_xla_computation`` and ``XlaComputation.as_hlo_text``.
    """
    computation = _jax.mlir.mlir_module_to_xla_computation(module, use_tuple_args=False, return_tuple=False)
    text: str = computation.as_hlo_text(True)
    return text


def new_primitive(name: str) -> Any:
    """Make a primitive of JAX's language.

    ``jax.extend.core.Primitive``, without ``jax.extend``, which loads Pallas and more, for as long as a quarter of this
    package takes. Leans on ``jax._src.core.Primitive``.
    """
    return _core.Primitive(name)


def leave_out_of_places(folder: str) -> None:
    """Attribute ops traced through files in ``folder`` to the user's line that called them, as for JAX's own files.

    ``jax.extend.source_info_util.register_exclusion``, without ``jax.extend``. Leans on the function of that name of
    ``jax._src.source_info_util``.
    """
    _source_info.register_exclusion(folder)


Compile = Callable[..., Any]


def compile_hook() -> Compile:
    """Return the function that compiles every program of JAX: ``jax._src.compiler.compile_or_get_cached``."""
    hook: Compile = _compiler.compile_or_get_cached
    return hook


def set_compile_hook(function: Compile) -> None:
    """Replace the function of ``compile_hook``. JAX's callers look it up in the module on every call."""
    _compiler.compile_or_get_cached = function


def cache_on_disk(backend: Any) -> Any | None:
    """Return JAX's compilation cache, with ``get(key)`` and ``put(key, data)``; None if the user wants none.

    None, too, where the user has JAX compare its entries (``jax_compilation_cache_check_contents``): JAX would check
    ours as its own. Leans on ``jax._src.compilation_cache``: ``is_cache_used``, ``is_persistent_cache_enabled`` and
    ``_get_cache``.
    """
    if not _cache.is_persistent_cache_enabled() or jax.config.jax_compilation_cache_check_contents:
        return None
    return _cache._get_cache(backend) if _cache.is_cache_used(backend) else None


def drop_from_disk(cache: Any, key: str) -> None:
    """Remove an entry from JAX's compilation cache, whose ``put`` does not overwrite.

    Leans on ``jax._src.lru_cache``: ``LRUCache.path`` and ``_CACHE_SUFFIX``.
    """
    (cache.path / f"{key}{_lru_cache._CACHE_SUFFIX}").unlink(missing_ok=True)


@contextmanager
def read_as_shardy(options: Any, shardy: bool) -> Iterator[None]:
    """Set for a block whether the ``CompileOptions`` of compiles expect Shardy's annotations, or GSPMD's.

    Leans on ``executable_build_options.use_shardy_partitioner``.
    """
    build = options.executable_build_options
    before = build.use_shardy_partitioner
    build.use_shardy_partitioner = shardy
    try:
        yield
    finally:
        build.use_shardy_partitioner = before


# --- what JAX traced


def equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr and of its inner jaxprs, in program order; those of a shared jaxpr once.

    Leans on ``jax._src.core.jaxprs_in_params`` and ``Jaxpr.eqns``.
    """
    seen: set[int] = set()
    open_ones = [getattr(jaxpr, "jaxpr", jaxpr)]
    while open_ones:
        one = open_ones.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        inside: list[Any] = []
        for equation in one.eqns:
            yield equation
            inside += _core.jaxprs_in_params(equation.params)
        open_ones += reversed(inside)


Span = tuple[int, int, int, int]  # first line, last line, first column, column behind the last; bytes, from 0


def frames_of(equation: Any) -> Iterator[tuple[str, str, Span]]:
    """Yield the file, the function and the span of each frame in which an equation was traced, innermost first.

    Leans on ``JaxprEqn.source_info.traceback``, whose ``raw_frames`` returns code objects and offsets.
    """
    traceback = equation.source_info.traceback
    if traceback is None:
        return
    for code, offset in zip(*traceback.raw_frames(), strict=True):
        span = _span(code, offset)
        if None not in span:
            yield code.co_filename, code.co_name, span  # type: ignore[misc]


@lru_cache(maxsize=65536)
def _span(code: Any, offset: int) -> tuple[int | None, int | None, int | None, int | None]:
    return next(islice(code.co_positions(), offset // 2, None), (None, None, None, None))


def call_being_compiled() -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
    """Return the jitted function whose call runs the compile hook, with its arguments; None under ``lower``.

    Leans on the frame of ``cache_miss`` of ``jax._src.pjit._cpp_pjit`` and on the variables of that frame.
    """
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "cache_miss" and frame.f_code.co_filename == _pjit.__file__:
            known = frame.f_locals
            return _pjit._cpp_pjit(known["fun"], known["jit_info"]), known["args"], known["kwargs"]
        frame = frame.f_back  # type: ignore[assignment]
    return None


def automatic_wrapper() -> Any:
    """Return the code object of the functions that ``jax.sharding.auto_axes`` makes.

    Their free variables are ``axes_``, ``fun`` and ``out_sharding``. Leans on ``jax._src.pjit._auto_axes``.
    """
    return jax.sharding.auto_axes(_identity, out_sharding=jax.sharding.PartitionSpec()).__code__


def _identity(value: Any) -> Any:
    return value


def raised_while_inspecting(error: Exception) -> bool:
    """Return whether XLA raised ``error`` because a function given to ``inspect_array_sharding`` raised an exception.

    JAX reads the sharding before it calls the function; where it cannot, the sharding is at fault, and not the user.

    Leans on XLA's words, which quote the traceback, and on ``parse_flatten_op_sharding``.
    """
    text = str(error)
    asked = isinstance(error, jax.errors.JaxRuntimeError) and "Error calling inspect_sharding:" in text
    return asked and ", in parse_flatten_op_sharding" not in text


# --- jax.experimental.custom_partitioning

Tensor = tuple[Any, tuple[int, ...]]  # dtype and shape


def call_partition(
    key: str,
    operands: Sequence[Tensor],
    operand_shardings: Sequence[str],
    results: Sequence[Tensor],
    result_shardings: Sequence[str],
) -> tuple[bytes, list[str], list[str]]:
    """Call the partition function of the ``custom_partitioning`` with ``key``, as XLA's partitioner does.

    Returns the module of one device, and the shardings of the operands and results that it works on. Raises whatever
    the function raises.

    Leans on ``jax._src.custom_partitioning._custom_partitioning_partition``, ``_sharding_callbacks`` and ``partition``
    of what these hold.
    """
    known = _known(key)
    parsed = [_xla.HloSharding.from_string(text) for text in result_shardings]
    with _remembering(_custom._sharding_callbacks[known]):
        module, takes, gives = _custom._custom_partitioning_partition(
            [_shape(tensor) for tensor in operands],
            [_xla.HloSharding.from_string(text) for text in operand_shardings],
            _result_shape(results),
            _custom._pack_result_sharding(_result_shape(results), parsed),
            known,
        )
    return module, [repr(sharding) for sharding in takes], _unpacked(gives, len(results))


_failed: ContextVar[list[tuple[Any, Any]] | None] = ContextVar("_failed", default=None)


@contextmanager
def failing_once() -> Iterator[None]:
    """Raise an earlier exception of a partition function again, inside the block, if it gets equal arguments.

    So XLA, which asks next, gets the answer without a second call; a different question calls the function.
    """
    kept: list[tuple[Any, Any]] = []
    token = _failed.set(kept)
    try:
        yield
    finally:
        _failed.reset(token)
        for info, function in kept:
            info.partition = function


@contextmanager
def _remembering(info: Any) -> Iterator[None]:
    """Record the arguments and exceptions of the partition function of ``info``, inside ``failing_once``."""
    kept, function = _failed.get(), info.partition
    if kept is None:
        yield
        return
    asked: list[Any] = []

    def noted(*arguments: Any) -> Any:
        asked.append(arguments)
        return function(*arguments)

    info.partition = noted
    try:
        yield
    except Exception as error:
        raised, trace = error, error.__traceback__
        while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next

        def again(*arguments: Any) -> Any:
            if [arguments] == asked:
                raise raised.with_traceback(trace)
            return function(*arguments)

        info.partition = again
        kept.append((info, function))
        raise
    info.partition = function


def knows_partition(key: str) -> bool:
    """Return whether this process lowered the ``custom_partitioning`` call with ``key``."""
    return key.encode() in _custom._sharding_callbacks


def call_infer_sharding(
    key: str, operands: Sequence[Tensor], split: tuple[int, int], results: Sequence[Tensor]
) -> list[str]:
    """Ask ``infer_sharding_from_operands`` for results' shardings if ``split`` = (operand, dimension) is split.

    The dimension is split over the first axis of the function's mesh. Raises as ``call_partition``, and LookupError
    for a key that this process does not know, where no such function was given, or no mesh is known.

    Leans on ``_custom_partitioning_infer_sharding_from_operands``, and ``mesh`` of what ``_sharding_callbacks`` holds.
    """
    known = _known(key)
    info = _custom._sharding_callbacks[known]
    if info.infer_sharding_from_operands is None or info.mesh.empty:
        raise LookupError("no function, or no mesh")
    axis = next(name for name, size in info.mesh.shape.items() if size > 1)
    shardings = []
    for index, (_, shape) in enumerate(operands):
        spec = [axis if (index, dim) == split else None for dim in range(len(shape))]
        named = jax.sharding.NamedSharding(info.mesh, jax.sharding.PartitionSpec(*spec))
        shardings.append(named._to_xla_hlo_sharding(len(shape)))
    inferred = _custom._custom_partitioning_infer_sharding_from_operands(
        [_shape(tensor) for tensor in operands], shardings, _result_shape(results), known
    )
    return _unpacked(inferred, len(results))


def _known(key: str) -> bytes:
    name = key.encode()
    if name not in _custom._sharding_callbacks:
        raise KeyError(key)
    return name


def _shape(tensor: Tensor) -> Any:
    dtype, shape = tensor
    return _xla.Shape.array_shape(np.dtype(dtype), shape)


def _result_shape(results: Sequence[Tensor]) -> Any:
    shapes = [_shape(tensor) for tensor in results]
    return shapes[0] if len(shapes) == 1 else _xla.Shape.tuple_shape(shapes)


def _unpacked(sharding: Any, count: int) -> list[str]:
    return [repr(part) for part in (sharding.tuple_elements() if count > 1 else [sharding])]


def only_described(devices: Sequence[Any]) -> bool:
    """Return whether ``devices`` are descriptions from ``jax.experimental.topologies``, which can only compile.

    Leans on ``jaxlib._jax.CompileOnlyPyClient``.
    """
    return any(isinstance(getattr(device, "client", None), _jax.CompileOnlyPyClient) for device in devices)


def wait_for_processes(name: str, seconds: float, processes: Sequence[int] | None = None) -> None:
    """Wait until all ``processes`` (by default all of the program) call this with ``name``. Use a name once.

    Leans on ``jax._src.distributed.global_state.client`` and its ``wait_at_barrier``. Raises XLA's own error (a
    RuntimeError), which names a process that is late.
    """
    client: Any = _distributed.global_state.client
    chosen = None if processes is None else list(processes)
    client.wait_at_barrier(name, int(1000 * seconds), chosen)


def exchange(topic: str, key: str, text: str, processes: Sequence[int], seconds: float) -> list[str]:
    """Return the texts of all ``processes`` on ``topic``; ``text`` is this process's. Use a topic once.

    Leans on ``jax._src.distributed.global_state.client``: ``key_value_set``, ``key_value_dir_get`` and as
    ``wait_for_processes``.
    """
    client: Any = _distributed.global_state.client
    client.key_value_set(f"{topic}/{key}", text)
    wait_for_processes(topic, seconds, processes)
    return [value for _, value in client.key_value_dir_get(topic)]


def tracing() -> bool:
    """Return whether JAX is tracing a function; ``jax.set_mesh`` raises an error then.

    Leans on ``jax._src.core.trace_state_clean``.
    """
    return not _core.trace_state_clean()


def devices_of_lowered(lowered: Any) -> list[Any]:
    """Return the devices for which JAX lowered a program; [] for an abstract mesh, or for other objects.

    Leans on ``jax.stages.Lowered._lowering.compile_args``, with ``in_shardings``, ``out_shardings``,
    ``intermediate_shardings`` and ``backend``.
    """
    arguments = getattr(getattr(lowered, "_lowering", None), "compile_args", None)
    if not isinstance(arguments, dict) or not {"in_shardings", "backend"} <= set(arguments):
        return []
    names = ("in_shardings", "out_shardings", "intermediate_shardings")
    shardings = [one for name in names for one in arguments.get(name) or () if isinstance(one, jax.sharding.Sharding)]
    if any(isinstance(getattr(one, "mesh", None), jax.sharding.AbstractMesh) for one in shardings):
        return []
    for one in sorted(shardings, key=lambda one: -one.num_devices):
        return sorted(one.device_set, key=lambda device: int(device.id))
    return list(arguments["backend"].devices())
