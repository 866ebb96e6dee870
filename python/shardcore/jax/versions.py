"""Versions of JAX: which feature needs which version, and the errors that say so."""

from __future__ import annotations

import jax

from shardcore.errors import LoweringError
from shardcore.jax.mistakes import mistake

OLDEST = "0.7.0"
"""The first JAX that is supported; it needs Python 3.11."""
NEWEST = "0.12.0.1"
"""The newest JAX that the tests have run on."""


def parsed(version: str) -> tuple[int, ...]:
    """Return the numbers of ``version`` as a tuple to compare; suffixes are left out."""
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def is_older(version: str) -> bool:
    """Whether the JAX that is installed is older than ``version``."""
    return parsed(jax.__version__) < parsed(version)


def needs(version: str, what: str) -> LoweringError:
    """Return the error that ``what`` needs JAX ``version`` or later."""
    return mistake(
        "jax-version",
        f"JAX {jax.__version__} has no {what}",
        f"JAX {version} and later have: pip install 'jax>={version}'",
    )


def unknown(what: str, error: Exception) -> LoweringError:
    """Return the error that this version of JAX does not give ``what``, on which shardcore
    relies."""
    return mistake(
        "jax-version",
        f"shardcore does not know how to ask JAX {jax.__version__} for {what}: {error}",
        f"shardcore is tested with JAX {OLDEST} to {NEWEST}",
    )
