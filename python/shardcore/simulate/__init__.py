"""Programs run on NumPy: an interpreter of StableHLO for all devices at once.

:meth:`shardcore.Module.simulate` is the short way; a :class:`Simulator` prepares a program once and
runs it many times. NumPy and ml_dtypes are loaded with this package, not before.
"""

from __future__ import annotations

from shardcore.simulate.custom_calls import TARGETS
from shardcore.simulate.families import PREPARERS
from shardcore.simulate.simulator import Simulator

__all__ = ["PREPARERS", "TARGETS", "Simulator"]
