"""What may come out of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardcore import ShardcoreError

from tests.fuzz.surfaces.hostile import FellError


def of_call(call: Callable[[], Any]) -> Any:
    """What `call` returns; None where it raises what it may. All else is raised."""
    try:
        return call()
    except ShardcoreError as error:
        if not str(error).startswith("error["):
            raise
    except (TypeError, ValueError, FellError):
        pass
    except (OSError, AttributeError, KeyError, IndexError, OverflowError):
        # Python's own way of saying that there is no such file, attribute, key or item, or that an
        # integer has more than 64 bits.
        pass
    return None
