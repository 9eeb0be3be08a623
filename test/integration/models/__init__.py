"""Real programs, one file a family; ``PROGRAMS`` holds them by name, in the order of the families here."""

from . import mlp  # noqa: I001  the order of the table
from . import transformer
from . import attention
from . import decoding
from . import vision
from . import experts
from . import recurrent
from . import sampling
from . import science
from . import linear_algebra
from . import data
from . import libraries
from .program import PROGRAMS, Case, Lowered, Program

FAMILIES = (
    mlp,
    transformer,
    attention,
    decoding,
    vision,
    experts,
    recurrent,
    sampling,
    science,
    linear_algebra,
    data,
    libraries,
)
__all__ = ["FAMILIES", "PROGRAMS", "Case", "Lowered", "Program"]
