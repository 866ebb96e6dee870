"""Training steps of MaxText from its configuration files, without MaxText.

:mod:`~.config` reads files and settings over the defaults; :mod:`~.models` and :mod:`~.mesh` make
the model and the mesh; :mod:`~.step` makes the run that :mod:`shardcore.bench` lowers.
``keys.json`` says what each key means for a step; ``models.json`` has the sizes of MaxText's
models.
"""
