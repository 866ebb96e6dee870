"""Pipelines: layers of a program, cuts into stages, schedules, and what a step takes with them.

=====================  ========================================================================
:mod:`~.orders`        the order in which each stage runs its tasks, by schedule
:mod:`~.zero_bubble`   orders that fill waiting with gradients of parameters
:mod:`~.schedules`     :func:`run`: what each stage does when, exactly
=====================  ========================================================================
"""

from __future__ import annotations

from shardcore.pipeline.orders import Chunk
from shardcore.pipeline.schedules import SCHEDULES, Task, Timeline, run

__all__ = ["SCHEDULES", "Chunk", "Task", "Timeline", "run"]
