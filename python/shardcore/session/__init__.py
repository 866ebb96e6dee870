"""Sessions: edits of the annotations of one program, and the results of each edit.

=====================  ========================================================================
:mod:`~.session`       :class:`Session`: annotations that can be set, removed and undone
:mod:`~.targets`       finds the ports and values that a path, pattern or name denotes
:mod:`~.paths`         paths of arguments and results, ``params['layers'][3]['w']``, and patterns
:mod:`~.shardings`     reads the shardings that users write
:mod:`~.evaluate`      evaluates many edits, in threads or by an executor
:mod:`~.remembered`    results of earlier annotations, for when they are made again
:mod:`~.pickled`       sessions as bytes
:mod:`~.sweep`         all combinations of shardings and meshes, best first
=====================  ========================================================================
"""

from __future__ import annotations

from shardcore.session.evaluate import Evaluation
from shardcore.session.session import Session

__all__ = ["Evaluation", "Session"]
