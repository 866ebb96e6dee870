"""Profiles of runs on devices, as JAX's profiler writes them.

================  ======================================
:mod:`~.event`    the record of an event of a trace
:mod:`~.xplane`   the events of an XProf trace
:mod:`~.profile`  measured times by instruction
================  ======================================
"""
