"""Training steps of MaxText from its configurations, without MaxText.

:mod:`~.config` reads files and settings over the defaults, :mod:`~.models` and :mod:`~.mesh` make
the model and the mesh of them, and :mod:`~.step` the run that :mod:`shardcore.bench` lowers. What a
key is to a step is in ``keys.json``; sizes of MaxText's models are in ``models.json``.
"""
