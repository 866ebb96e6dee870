"""All families of programs by name."""

from benches.extents import EXTENTS
from benches.families import FAMILIES
from benches.many import MANY
from benches.stress import STRESS
from benches.wide import WIDE

ALL = {**FAMILIES, **STRESS, **WIDE, **MANY, **EXTENTS}
"""The size of ``calls`` is the logarithm of the number of ops."""
