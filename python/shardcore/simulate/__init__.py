"""An interpreter of StableHLO on NumPy, for all devices at once.

:meth:`shardcore.Module.simulate` runs a program once; a :class:`Simulator` prepares a program once
and runs it many times. NumPy and ml_dtypes are loaded with this package, not before.
"""

from __future__ import annotations

from shardcore.simulate.custom_calls import TARGETS
from shardcore.simulate.families import PREPARERS
from shardcore.simulate.simulator import Simulator

__all__ = ["PREPARERS", "TARGETS", "Simulator"]
