"""Files that return a step of the tests: a family, or a model of the bench."""

from __future__ import annotations

FAMILY = """
import jax
from tests.plan.families import FAMILIES

step, arguments, donated, _ = FAMILIES["{name}"]()


def build():
    planned = jax.jit(step, donate_argnums=() if donated is None else donated)
    return planned, arguments, {{"mesh": {{"data": 4, "model": 2}}, "platform": "cpu"}}
"""
MODEL = """
from tests.shardy.programs import registry


def parts(function, on, arguments, in_specs, out_specs=None, donate=(), platform="tpu"):
    given = {{"mesh": on, "platform": platform, "donate_argnums": donate}}
    given |= {{"in_shardings": in_specs, "out_shardings": out_specs}}
    return function, arguments, given


registry.lower = parts
from tests.shardy.xla.models import catalog


def build():
    step, arguments, options = catalog._BUILDERS["{name}"]()
    return step, arguments, options
"""
