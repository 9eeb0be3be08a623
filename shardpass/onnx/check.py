"""Check every node of a model in order, for each configuration: structure and group rules; infer missing specs.

State: for each tensor the layout at the node that makes it; None where nothing is known, since an op without a rule
made it from split inputs. Graph inputs and initializers are unsharded (D2): available wherever they are needed.

At each node: the layouts of the inputs are those of its own specs, or else of the producers (D1), which may differ from
the producer's (D5, a remark). The rules of the node's group are applied to them. A broken rule is an error where all
inputs concerned have specs at the node: it claims to run on these shards, and cannot. An input without a spec at the
node is repartitioned as the others need: a remark with bytes, and an error under ``strict``. Then
the outputs without specs are inferred (D3), and those with specs may differ from that (D4, a remark).

A node without any split is fine, whatever its op. Cost: O(nodes * shards).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shardpass.diagnostics import Code, Diagnostic, Severity
from shardpass.diagnostics.table_onnx import (
    BROADCAST_AXIS,
    COMPOSITION,
    NO_CONFIGURATION,
    NO_RULE_GIVEN,
    PROPAGATED,
    REPARTITIONED,
    RESHARD_AFTER,
    RESHARD_BEFORE,
    SAME_CONTRACTION,
    SAME_SPLIT,
    TOO_FEW_INPUTS,
    UNKNOWN_SHAPE,
    UNSUPPORTED,
)
from shardpass.onnx.distributed import annotated
from shardpass.onnx.groups import EVIDENT, OpGroup, group_of
from shardpass.onnx.layout import Devices, Layout, bytes_received, layout_of, unsharded
from shardpass.onnx.loops import PREVIOUS, NoLoops, Stage, array_inputs, label_sizes, stages
from shardpass.onnx.model import Configuration, Dim, Model, Node, Tensor
from shardpass.onnx.rules import Names, Violation, inferred, required, violations
from shardpass.onnx.structure import check_configurations, check_stages, sound_specs

RULES: Mapping[str, Code] = {
    "ONNX-B1": SAME_SPLIT,
    "ONNX-M2": SAME_CONTRACTION,
    "ONNX-B2": BROADCAST_AXIS,
    "ONNX-B3": COMPOSITION,
}


@dataclass(frozen=True, slots=True)
class Placed:
    """The layout of a tensor at a node, with its source: "given" or the inference rule."""

    layout: Layout
    source: str


@dataclass(frozen=True, slots=True)
class Completed:
    """The layouts of each node's tensors, for one configuration: [node number][tensor]."""

    configuration: Configuration
    nodes: Sequence[Mapping[str, Placed]]


@dataclass(frozen=True, slots=True)
class Report:
    findings: tuple[Diagnostic, ...]
    completed: tuple[Completed, ...]


Beyond = Callable[[Model, Configuration], Mapping[str, Layout]]


def check_model(model: Model, *, strict: bool = False, extended: bool = False, beyond: Beyond | None = None) -> Report:
    """Return all diagnostics of a model, errors first, and its layouts for each configuration.

    ``strict``: report an error for a rule that needs a redistribution, and for a split without a rule. ``extended``:
    apply the rules of a group to ops that the documents do not list but that evidently belong to the group. ``beyond``:
    a function that infers the outputs of ops without rules, such as ``shardpass.onnx.propagated``.
    """
    model = annotated(model)
    findings = [*model.remarks, *check_configurations(model)]
    if not model.configurations:
        findings.append(NO_CONFIGURATION.at(model.place))
    completed = []
    for configuration in model.configurations:
        layouts = beyond(model, configuration) if beyond else {}
        flow = _Flow(model, configuration, strict, extended, layouts)
        if configuration == model.configurations[0]:
            flow.made.update((name, layout_of(spec, flow.rank(name))) for name, spec in model.given.items())
        completed.append(Completed(configuration, [flow.node(node) for node in model.nodes]))
        findings += flow.findings
        findings += check_stages(model, configuration)
    order = list(Severity)
    unique = list(dict.fromkeys(findings))  # two configurations may say the same
    return Report(tuple(sorted(unique, key=lambda d: order.index(d.severity))), tuple(completed))


@dataclass
class _Flow:
    model: Model
    configuration: Configuration
    strict: bool
    extended: bool
    beyond: Mapping[str, Layout]
    findings: list[Diagnostic] = field(default_factory=list)
    made: dict[str, Layout | None] = field(default_factory=dict)  # of each node's outputs, at that node

    def node(self, node: Node) -> dict[str, Placed]:
        given = self._given(node)
        placed: dict[str, Placed] = {}
        known = True
        for name in dict.fromkeys(filter(None, node.inputs)):
            checked = self._input(node, name, given)
            if checked is None:
                known = False
            else:
                placed[name] = checked
        results = self._results(node, placed, known)
        for name in filter(None, node.outputs):
            layout = self._output(node, name, given.get(name), results.get(name))
            self.made[name] = None if layout is None else layout.layout
            if layout is not None:
                placed[name] = layout
        return placed

    def _given(self, node: Node) -> dict[str, Layout]:
        layouts = {}
        for name, spec in sound_specs(self.model, node, self.configuration, self.findings).items():
            shape = self.model.tensor(name).shape
            if shape is None:
                self._say(UNKNOWN_SHAPE, node=node, tensor=name, op=node.op)
            else:
                layouts[name] = layout_of(spec, len(shape))
        return layouts

    def _say(self, code: Code, *, error: bool = False, **values: Any) -> None:
        diagnostic = code.at(self.model.place, **values)
        self.findings.append(replace(diagnostic, severity=Severity.ERROR) if error else diagnostic)

    # --------------------------------------------------------------------------------- inputs and outputs

    def _input(self, node: Node, name: str, given: Mapping[str, Layout]) -> Placed | None:
        """Check an input by D1, D2 and D5, and return the layout of the input."""
        shape = self.model.tensor(name).shape
        source = self.made.get(name, unsharded(len(shape or ())))
        if name not in given:
            rule = "ONNX-D1" if name in self.made else "ONNX-D2"
            return None if source is None else Placed(source, rule)
        wanted = given[name]
        if source is not None and not source.is_anywhere and source != wanted:
            tensor = self.model.tensor(name)
            self._say(
                RESHARD_BEFORE, node=node, tensor=name, found=source, given=wanted, bytes=_moved(source, wanted, tensor)
            )
        return Placed(wanted, "given")

    def _output(self, node: Node, name: str, given: Layout | None, inferred: Placed | None) -> Placed | None:
        """Check an output by D3 and D4, and return the layout of the output."""
        if given is None:
            return inferred
        if inferred is not None and not inferred.layout.is_anywhere and inferred.layout != given:
            moved = _moved(inferred.layout, given, self.model.tensor(name))
            self._say(
                RESHARD_AFTER,
                node=node,
                tensor=name,
                found=inferred.layout,
                rule=inferred.source,
                given=given,
                bytes=moved,
            )
        return Placed(given, "given")

    # --------------------------------------------------------------------------------- the op

    def _results(self, node: Node, placed: dict[str, Placed], known: bool) -> dict[str, Placed]:
        """Infer the layouts of the outputs, or none; updates the layouts of moved inputs in ``placed``."""
        group = group_of(node.op, node.domain, extended=self.extended)
        split = next((name for name, one in placed.items() if one.layout.is_split), None)
        anywhere = all(one.layout.is_anywhere for one in placed.values())
        if known and split is None and (anywhere or group in (None, OpGroup.UNSUPPORTED)):
            return self._whole(node, placed)
        if group is OpGroup.SOURCE:
            return {name: Placed(unsharded(self.rank(name)), "ONNX-D2") for name in filter(None, node.outputs)}
        ruled = known and group not in (None, OpGroup.UNSUPPORTED)
        if not ruled and (results := self._beyond(node, "ONNX-X2" if group is None else "ONNX-X1")):
            return results
        if group is OpGroup.UNSUPPORTED:
            self._say(UNSUPPORTED, node=node, op=node.op, tensor=split or _unknown(node, placed))
        elif group is None:
            hint = " (or pass --extended)" if node.op in EVIDENT else ""
            tensor = split or _unknown(node, placed)
            self._say(NO_RULE_GIVEN, error=self.strict, node=node, op=node.op, tensor=tensor, hint=hint)
        elif known:
            return self._by_rules(node, group, placed)
        return {}

    def _beyond(self, node: Node, rule: str) -> dict[str, Placed]:
        """Infer the outputs of an op without rules by ``beyond``."""
        names = [name for name in node.outputs if name in self.beyond]
        if names:
            layouts = " and ".join(f"'{name}' {self.beyond[name]}" for name in names)
            self._say(PROPAGATED, rule=rule, node=node, op=node.op, layouts=layouts)
        return {name: Placed(self.beyond[name], "propagation") for name in names}

    def rank(self, name: str) -> int:
        return len(self.model.tensor(name).shape or ())

    def _whole(self, node: Node, placed: dict[str, Placed]) -> dict[str, Placed]:
        """Infer the outputs of an op without rules from whole inputs: whole on the devices that have all inputs."""
        located = {name: one for name, one in placed.items() if not one.layout.is_anywhere}
        fixed = {name: one for name, one in located.items() if one.source == "given"} or dict(list(located.items())[:1])
        common: Devices = frozenset()
        if fixed:
            common = frozenset.intersection(*(one.layout.devices for one in fixed.values()))
        listed = " and ".join(f"'{name}' {one.layout}" for name, one in located.items())
        if fixed and not common:
            self._say(COMPOSITION, node=node, reason=f"no device holds all inputs: {listed}")
        for name, one in located.items() if common else ():
            if not common <= one.layout.devices:
                needed = Layout(one.layout.counts, (common,))
                self._move(node, "ONNX-B3", f"no device holds all inputs: {listed}", name, placed, needed)
        results = {}
        for name in filter(None, node.outputs):
            rank = self.rank(name)
            layout = Layout((1,) * rank, (common,)) if common else unsharded(rank)
            results[name] = Placed(layout, "ONNX-B5" if common else "ONNX-D2")
        return results

    def _move(self, node: Node, rule: str, reason: str, name: str, placed: dict[str, Placed], needed: Layout) -> None:
        """Report that an input without a spec at the node is repartitioned for the rule."""
        moved = _moved(placed[name].layout, needed, self.model.tensor(name))
        self._say(
            REPARTITIONED,
            error=self.strict,
            rule=rule,
            node=node,
            reason=reason,
            tensor=name,
            needed=needed,
            bytes=moved,
        )
        placed[name] = Placed(needed, rule)

    def _by_rules(self, node: Node, group: OpGroup, placed: dict[str, Placed]) -> dict[str, Placed]:
        inputs = array_inputs(node, group)
        if not inputs or max(inputs) >= len(node.inputs):
            self._say(TOO_FEW_INPUTS, node=node, op=node.op, least=max(inputs, default=0) + 1, count=len(node.inputs))
            return {}
        names = [node.inputs[index] for index in inputs]
        shapes: list[tuple[Dim, ...]] = []
        for name in names:
            shape = self.model.tensor(name).shape
            if shape is None:
                self._say(UNKNOWN_SHAPE, node=node, tensor=name, op=node.op)
                return {}
            shapes.append(shape)
        try:
            todo = stages(self.model, node, group, shapes)
        except NoLoops as why:
            self._say(NO_RULE_GIVEN, error=self.strict, node=node, op=f"{node.op}, as {why},", tensor=names[0], hint="")
            return {}
        by_input = dict(zip(inputs, zip(names, shapes, strict=True), strict=True))
        result: Layout | None = None
        result_shape: tuple[Dim, ...] = ()
        for stage in todo:
            rows = [
                ("its product", result_shape) if term.input == PREVIOUS else by_input[term.input]
                for term in stage.terms
            ]
            sizes = label_sizes(stage, [shape for _, shape in rows])
            result = self._stage(node, stage, rows, sizes, placed, result)
            if result is None:
                return {}
            result_shape = tuple(sizes.get(label, 1) for label in stage.result)
        assert result is not None  # there is a stage
        return {name: Placed(result, todo[-1].rule) for name in filter(None, node.outputs)}

    def _stage(
        self,
        node: Node,
        stage: Stage,
        rows: Sequence[tuple[str, tuple[Dim, ...]]],
        sizes: Mapping[str, Dim],
        placed: dict[str, Placed],
        previous: Layout | None,
    ) -> Layout | None:
        """Infer the result of one stage; None after an error."""
        names, shapes = [name for name, _ in rows], [shape for _, shape in rows]
        while True:
            layouts: list[Layout] = [
                previous if term.input == PREVIOUS and previous else placed[name].layout
                for term, name in zip(stage.terms, names, strict=True)
            ]
            broken = violations(stage, layouts, sizes, shapes, Names(names))
            if not broken:
                return inferred(stage, layouts, sizes, shapes)
            movable = [self._movable(stage, one, names, placed) for one in broken]
            if None in movable:
                for one in broken:
                    self._say(RULES[one.rule], node=node, reason=one.reason)
                return None
            one, term = broken[0], movable[0]
            assert term is not None
            needed = required(stage, layouts, term, sizes, shapes)
            if needed is None or not all(needed.holders or ()) or needed == layouts[term]:
                self._say(RULES[one.rule], node=node, reason=one.reason)
                return None
            self._move(node, one.rule, one.reason, names[term], placed, needed)

    def _movable(self, stage: Stage, one: Violation, names: Sequence[str], placed: Mapping[str, Placed]) -> int | None:
        """Return a term of a broken rule that has no spec at this node and was not moved yet."""
        everyone: Sequence[int] = range(len(names)) if one.rule in ("ONNX-B2", "ONNX-B3") else ()
        pair = [one.term] if one.other is None else [one.term, one.other]
        for term in (*pair, *everyone):
            if stage.terms[term].input != PREVIOUS and placed[names[term]].source in ("ONNX-D1", "ONNX-D2"):
                return term
        return None


def _unknown(node: Node, placed: Mapping[str, Placed]) -> str:
    return next((name for name in node.inputs if name and name not in placed), node.inputs[0] if node.inputs else "")


def _moved(source: Layout, target: Layout, tensor: Tensor) -> str:
    count = bytes_received(source, target, tensor.sizes, tensor.bits)
    return "an unknown number of bytes" if count is None else f"{count} bytes"


def summary_lines(model: Model, report: Report) -> Iterator[str]:
    """Yield a line for each tensor of each participating node, with the layout and its source."""
    for completed in report.completed:
        yield f"configuration '{completed.configuration.name}', {completed.configuration.num_devices} devices"
        for node, placed in zip(model.nodes, completed.nodes, strict=True):
            stage = node.stage(completed.configuration.name)
            if stage is None and all(one.layout.is_anywhere for one in placed.values()):
                continue
            yield f"  {node}" if stage is None else f"  {node}, pipeline stage {stage}"
            for role, names in (("input", node.inputs), ("output", node.outputs)):
                for name in filter(None, names):
                    layout = f"{placed[name].layout}  ({placed[name].source})" if name in placed else "unknown"
                    yield f"    {role} '{name}': {layout}"
