"""Programs are rebuilt in jax, which the test dependencies have from Python 3.11 on."""

import importlib.util

HAS_JAX = importlib.util.find_spec("jax") is not None
collect_ignore = [] if HAS_JAX else ["test_models.py", "test_programs.py"]
