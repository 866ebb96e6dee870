"""Pipeline parallelism: layers of a program, cuts into stages, schedules, and the step time.

========================  =====================================================================
:mod:`~.orders`           the order in which each stage runs its tasks, by schedule
:mod:`~.zero_bubble`      orders that fill waiting with gradients of parameters
:mod:`~.flow`             when tasks start, in a given order
:mod:`~.schedules`        :func:`run`: what each stage does when, exactly
:mod:`~.units`            finds the layers of a program of one device
:mod:`~.repeated_blocks`  equal consecutive blocks of ops
:mod:`~.labels`           which layer each op belongs to, and in which phase it runs
:mod:`~.prepared`         what of it is computed from parameters alone
:mod:`~.part`             what some layers take
:mod:`~.layers`           :func:`find_layers`: the layers, and what each takes
:mod:`~.cuts`             cuts layers into chunks
:mod:`~.answer`           what :func:`find` returns
:mod:`~.search`           pipelines for some layers
:mod:`~.best`             :func:`find`: stages, schedule and micro-batches for a program
:mod:`~.code`             :func:`to_python`: the code of a pipeline
========================  =====================================================================
"""

from __future__ import annotations

from shardcore.pipeline.answer import Candidate, Pipeline
from shardcore.pipeline.best import find
from shardcore.pipeline.code import to_python
from shardcore.pipeline.layers import Layers, find_layers
from shardcore.pipeline.orders import Chunk
from shardcore.pipeline.part import Part
from shardcore.pipeline.schedules import SCHEDULES, Task, Timeline, run

__all__ = [
    "SCHEDULES",
    "Candidate",
    "Chunk",
    "Layers",
    "Part",
    "Pipeline",
    "Task",
    "Timeline",
    "find",
    "find_layers",
    "run",
    "to_python",
]
