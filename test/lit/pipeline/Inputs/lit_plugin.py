"""A pass of a package that knows shardpass, which does not know it."""

from dataclasses import dataclass

from jaxlib.mlir import ir

from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register


@register
@dataclass(frozen=True)
class Tag(ModulePass):
    """Puts a label on the module.

    Options:
        label: the text
        count: how often the text is repeated
    """

    name = "lit-tag"
    summary = "puts a label on the module"

    label: str = "x"
    count: int = 1

    def run(self, module):
        module.operation.attributes["lit.label"] = ir.StringAttr.get(" ".join([self.label] * self.count))
