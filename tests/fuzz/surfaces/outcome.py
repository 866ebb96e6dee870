"""What may come out of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardcore import ShardcoreError

from tests.fuzz.surfaces.hostile import FellError


def of_call(call: Callable[[], Any], *, is_lookup: bool = False) -> Any:
    """What `call`, which is or is not `object[key]`, returns; None where it raises what it may. All
    else is raised."""
    try:
        return call()
    except ShardcoreError as error:
        if not str(error).startswith("error["):
            raise
    except (TypeError, ValueError, FellError):
        pass
    except OSError:
        # Python's own way of saying that there is no such file.
        pass
    except (KeyError, IndexError):
        # What `object[key]` raises where there is no such item.
        if not is_lookup:
            raise
    return None
