"""These tests need jax, which the test dependencies have from Python 3.11 on."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("jax") else ["test_*.py"]
