"""Many annotations of one program: edits, and what they lead to.

=====================  ========================================================================
:mod:`~.session`       :class:`Session`: annotations that can be set, removed and undone
:mod:`~.targets`       finds what a path, a pattern of paths or the name of a value denotes
:mod:`~.paths`         paths of arguments and results, ``params['layers'][3]['w']``, and patterns
:mod:`~.shardings`     reads the shardings that users write
:mod:`~.evaluate`      evaluates many edits, in threads or by an executor
:mod:`~.remembered`    what annotations led to, for when they are made again
:mod:`~.pickled`       sessions as bytes
:mod:`~.sweep`         all combinations of shardings and meshes, best first
=====================  ========================================================================
"""

from __future__ import annotations

from shardcore.session.evaluate import Evaluation
from shardcore.session.session import Session

__all__ = ["Evaluation", "Session"]
