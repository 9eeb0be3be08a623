"""Run a partitioned module once on random inputs, and compare the results: the report of shardpass-run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from shardpass.diagnostics import Diagnostic, ShardpassError, table_runtime
from shardpass.ir import annotations as names
from shardpass.ir.annotations import mesh_of
from shardpass.ir.argument_names import argument_names
from shardpass.ir.collectives import CollectiveUse, collectives, total_bytes
from shardpass.runtime.compare import Difference, compare
from shardpass.runtime.compiling import compile as compile_partitioned
from shardpass.runtime.executable import Executable
from shardpass.runtime.hlo import HloCollective, added_by_xla
from shardpass.runtime.inputs import poison, random_inputs
from shardpass.runtime.partitioned_signature import Boundary, Signature, read_signature, tensor_type
from shardpass.runtime.processes import whole_value
from shardpass.runtime.special import Reference, Run, Special, Subject, run_special
from shardpass.runtime.specification import specification_of
from shardpass.runtime.tiles import Array
from shardpass.sharding import Mesh

XLA, INTERPRETER = "XLA", "reference interpreter"
ROUNDING = 2  # tolerances within which XLA on one device and the interpreter differ by rounding alone
ONE_DEVICE, BY_XLA = "the unpartitioned program on one device, by XLA", "the program partitioned by XLA"


@dataclass(frozen=True, slots=True)
class Check:
    """The comparison of a run with a reference: differences of results, and differences of NaN and infinities.

    ``remarks``: SP558, where XLA on one device differs from the reference.
    """

    reference: str
    differences: tuple[Difference, ...]
    special: Special = field(default_factory=Special)
    special_reference: str = ""  # what special inputs were compared with, where that is another
    remarks: tuple[Diagnostic, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failed and not self.special.mismatches

    @property
    def failed(self) -> tuple[Difference, ...]:
        return tuple(d for d in self.differences if not d.passed)

    @property
    def worst(self) -> Difference | None:
        """Return the result with the greatest relative difference, among failed results if any; else None."""
        return max(self.failed or self.differences, key=lambda d: d.relative, default=None)


@dataclass(frozen=True, slots=True)
class Trial:
    """A run. ``added``: None without XLA's collectives. ``check``: None without a comparison."""

    engine: str
    seed: int
    mesh: Mesh | None
    signature: Signature
    labels: tuple[str, ...]  # of arguments, then results: the user's names
    collectives: tuple[CollectiveUse, ...]
    added: tuple[HloCollective, ...] | None
    check: Check | None

    @property
    def bytes_received(self) -> int:
        return total_bytes(self.collectives)

    @property
    def passed(self) -> bool:
        return not self.added and (self.check is None or self.check.passed)

    def as_dict(self) -> dict[str, Any]:
        """Return the trial as plain values for JSON."""
        boundaries = [
            boundary_as_dict(label, b, self.mesh)
            for label, b in zip(self.labels, (*self.signature.arguments, *self.signature.results), strict=True)
        ]
        count = len(self.signature.arguments)
        row: dict[str, Any] = {
            "engine": self.engine,
            "devices": self.signature.num_devices,
            "mesh": None if self.mesh is None else str(self.mesh),
            "seed": self.seed,
            "arguments": boundaries[:count],
            "results": boundaries[count:],
            "collectives": [use.as_dict() for use in self.collectives],
            "bytes_received": self.bytes_received,
            "added_by_xla": None if self.added is None else [str(exchange) for exchange in self.added],
            "passed": self.passed,
        }
        if self.check is not None:
            row["check"] = {
                "reference": self.check.reference,
                "passed": self.check.passed,
                "results": [difference_as_dict(d) for d in self.check.differences],
                "remarks": [remark.message for remark in self.check.remarks],
                "special_values": {
                    "runs": self.check.special.compared,
                    "differ": list(map(str, self.check.special.mismatches)),
                    "remarks": [remark.message for remark in self.check.special.remarks],
                },
            }
        return row


def try_out(
    module: Any,
    *,
    original: Any = None,
    seed: int = 0,
    interpreter: bool = False,
    known: Mapping[int, Array] | None = None,
    witness: Reference | None = None,
) -> Trial:
    """Run a partitioned ``ir.Module`` on random inputs, its padding poisoned.

    With ``original``, the annotated module (text or ``ir.Module``), its results are compared with a reference
    (``_checked``). ``known``: values of arguments by number, such as weights. ``witness``: what the results are
    compared with in place of one device.

    Raises:
        ShardpassError: as ``compile``, ``interpret`` and ``compile_single`` do.
    """
    signature = read_signature(module)
    inputs = random_inputs(signature.arguments, seed)
    for index, value in (known or {}).items():
        inputs[index] = value
    added = None
    if interpreter:
        make: Callable[[Any], Run] = _interpreted
        run = make(module)
    else:
        make = _compiled
        executable = compile_partitioned(module)
        run = _placing(executable)
        added = tuple(added_by_xla(executable.hlo_text(), module))
    results = run(inputs)
    ran = _Ran(module, make, run, inputs, results)
    checked = None if original is None else _checked(original, ran, signature, seed, witness)
    return Trial(
        engine=INTERPRETER if interpreter else XLA,
        seed=seed,
        mesh=mesh_of(module),
        signature=signature,
        labels=labels_of(module),
        collectives=tuple(collectives(module)),
        added=added,
        check=checked,
    )


@dataclass(frozen=True, slots=True)
class _Ran:
    """A partitioned module with its run. ``make``: compile another module; ``run``: the compiled ``module``."""

    module: Any
    make: Callable[[Any], Run]
    run: Run
    inputs: Sequence[Array]
    results: Sequence[Array]


def _checked(original: Any, ran: _Ran, signature: Signature, seed: int, witness: Reference | None) -> Check:
    """Compare with ``witness``, if any; else with StableHLO's interpreter on one device, where it can run the program
    (``specification``); else with XLA: on one device, or by its partitioner for a program with manual regions.

    Where XLA on one device differs from the interpreter, a remark says so (SP558). A difference of at most ``ROUNDING``
    tolerances is no fault: the program magnifies rounding, and what XLA's tanh or exp leave. The partitioned program
    may be as far apart. It is judged by its own run; where that gives what XLA gives on one device, its run is XLA's
    fault too, and the interpreter runs it.
    Special inputs (``special``) are compared with XLA, unless XLA differs.
    """
    refer: Callable[[], Reference] = partial(reference_of, original)
    reference = refer()
    wanted = reference.run(ran.inputs)
    held_to = reference, wanted
    remarks: tuple[Diagnostic, ...] = ()
    rounded: set[int] = set()
    if witness is not None:
        held_to = witness, witness.run(ran.inputs)
    elif (specified := _specified(original, ran.inputs)) is not None:
        apart = _apart(wanted, specified[1])
        rounding = all(one.relative <= ROUNDING * one.tolerance for one in apart)
        held_to = specified
        if rounding:
            rounded = {one.index for one in apart}
        elif apart:
            worst = max(apart, key=lambda one: one.relative)
            differ = table_runtime.XLA_DIFFERS.at(
                count=len(apart), total=len(wanted), index=worst.index, difference=worst
            )
            remarks = (differ,)
            ran = _as_specified(ran, wanted, specified[1])
            reference, wanted = specified
            refer = partial(_same, reference)
    differences = (one.within(ROUNDING) if one.index in rounded else one for one in compare(ran.results, held_to[1]))
    check = Check(held_to[0].name, tuple(differences), special_reference=reference.name, remarks=remarks)
    if check.failed:
        return check
    subject = Subject(ran.module, ran.make, ran.run, refer, reference, ran.inputs, wanted)
    return replace(check, special=run_special(subject, signature.arguments, seed))


def _same(reference: Reference) -> Reference:
    return reference


def _specified(original: Any, inputs: Sequence[Array]) -> tuple[Reference, Sequence[Array]] | None:
    """Return the interpreter as reference, with its results; None if it cannot run the program."""
    reference = specification_of(original)
    results = None if reference is None else _if_interpreted(reference.run, inputs)
    return None if reference is None or results is None else (reference, results)


def _as_specified(ran: _Ran, by_xla: Sequence[Array], specified: Sequence[Array]) -> _Ran:
    """Return the run on the interpreter if the first run gave the results of XLA on one device."""
    if not _apart(ran.results, specified) or _apart(ran.results, by_xla):
        return ran
    run = _interpreted(ran.module)
    results = _if_interpreted(run, ran.inputs)
    return ran if results is None else _Ran(ran.module, _interpreted, run, ran.inputs, results)


def _if_interpreted(run: Run, inputs: Sequence[Array]) -> Sequence[Array] | None:
    """Return the results of ``run`` on the interpreter; None if the interpreter fails."""
    try:
        return run(inputs)
    except ShardpassError as error:
        if error.code != table_runtime.INTERPRETER_FAILED.id:
            raise
        return None


def _apart(results: Sequence[Array], wanted: Sequence[Array]) -> list[Difference]:
    return [one for one in compare(results, wanted) if not one.passed]


def _interpreted(module: Any) -> Run:
    from shardpass.runtime.interpreter import interpret

    return lambda inputs: interpret(module, *inputs, padding=poison)


def _compiled(module: Any) -> Run:
    return _placing(compile_partitioned(module))


def _placing(executable: Executable) -> Run:
    return lambda inputs: [whole_value(r) for r in executable.run(*executable.place(*inputs, padding=poison))]


def reference_of(original: Any) -> Reference:
    """Return the reference by XLA: on one device, or by its partitioner for programs with manual regions."""
    from shardpass.runtime.reference import compile_by_xla, compile_single

    try:
        return Reference(ONE_DEVICE, _whole(compile_single(original)))
    except ShardpassError as error:
        if error.code != table_runtime.MANUAL_REGION.id:
            raise
    executable = compile_by_xla(original)
    return Reference(BY_XLA, _whole(executable), executable.hlo_text())


def _whole(executable: Executable) -> Run:
    return lambda inputs: [whole_value(r) for r in executable(*inputs)]


def labels_of(module: Any) -> tuple[str, ...]:
    """Return the user's names of main's arguments and results, from locations and `jax.result_info`."""
    main = names.main_of(module)
    annotated = names.Signature(main)
    named = argument_names([str(argument.location) for argument in main.arguments])
    arguments = [name or f"argument {k}" for k, name in enumerate(named)]
    results = [
        names.text(row["jax.result_info"]) if row.get("jax.result_info") else f"result {k}"
        for k, row in enumerate(annotated.results)
    ]
    return (*arguments, *results)


def by_axes(boundary: Boundary, mesh: Mesh | None) -> str:
    """Format the sharding with the user's axes, ``[{"data"}, {}]``, or in full if that is impossible."""
    sharding = boundary.sharding
    if sharding.is_replicated:
        return "replicated"
    named = sharding.on(mesh) if mesh is not None and sharding.is_tiled else None
    if named is None:
        return str(sharding)
    return f"[{', '.join('{' + ', '.join(map(str, axes)) + '}' for axes in named.dims)}]"


def boundary_as_dict(label: str, boundary: Boundary, mesh: Mesh | None) -> dict[str, str]:
    return {
        "name": label,
        "type": boundary.type,
        "tile": tensor_type(boundary.tile, boundary.element.mlir),
        "sharding": str(boundary.sharding),
        "axes": by_axes(boundary, mesh),
    }


def finite(number: float) -> float | str:
    """Replace infinity, for which JSON has no form."""
    return number if np.isfinite(number) else str(number)


def difference_as_dict(difference: Difference) -> dict[str, Any]:
    return {
        "index": difference.index,
        "greatest": finite(difference.greatest),
        "relative": finite(difference.relative),
        "tolerance": difference.tolerance,
        "passed": difference.passed,
    }
