"""Programs that say little about their shardings, and what an expert would say; one file a kind.

``PROGRAMS`` holds them by name, in the order of the kinds here.
"""

from . import fsdp
from .program import FORMS, PROGRAMS, Annotations, Case, FormedProgram, Lowered, Program

KINDS = (fsdp,)
__all__ = ["FORMS", "KINDS", "PROGRAMS", "Annotations", "Case", "FormedProgram", "Lowered", "Program"]
