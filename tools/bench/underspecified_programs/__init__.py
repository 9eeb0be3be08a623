"""Programs that say little about their shardings, and what an expert would say; one file a kind.

``PROGRAMS`` holds them by name, in the order of the kinds here.
"""

from . import fsdp  # noqa: I001  the order of the table
from . import zero
from . import megatron
from . import experts
from . import vocabulary
from . import scans
from . import attention
from . import towers
from . import vision
from . import recurrent
from . import recommendation
from . import linear_algebra
from . import few_annotations
from .program import FORMS, PROGRAMS, Annotations, Case, FormedProgram, Lowered, Program

KINDS = (
    fsdp,
    zero,
    megatron,
    experts,
    vocabulary,
    scans,
    attention,
    towers,
    vision,
    recurrent,
    recommendation,
    linear_algebra,
    few_annotations,
)
__all__ = ["FORMS", "KINDS", "PROGRAMS", "Annotations", "Case", "FormedProgram", "Lowered", "Program"]
