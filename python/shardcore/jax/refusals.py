"""Turns what JAX raises into a :class:`shardcore.LoweringError`, and nothing else into one."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from shardcore.errors import ShardcoreError
from shardcore.jax.mistakes import mistake
from shardcore.jax.versions import is_older, needs

_PACKAGE = str(Path(__file__).parent.parent)
_HINTS = {
    "require devices": "give a jax.sharding.Mesh with devices",
    "ordered effects": "leave out ordered=True: JAX orders them on one device alone",
    "different from the lowering platform": "give platform= the platform of this process",
    "values of rank at least": "a spec has at most one entry for each dim",
    "should evenly divide the shape": "shard a dim that the axes divide, or pad it in the program",
    "expected to be PartitionSpec": 'write a spec for each leaf, P("data"), or None',
    "required positional argument": "give what the function takes: shapes and dtypes are enough",
    "does not match the specs of the input": "explicit axes are in the types of arguments: shard "
    "those, or give a mesh whose axis_types are AxisType.Auto",
    "of type `Explicit`": "give a mesh whose axis_types say that these axes are AxisType.Explicit",
}
"""A hint for each refusal of JAX's that is told by a part of its words."""
_LATER = {
    "requires a non-empty mesh": (
        "0.8",
        "sharding constraints by PartitionSpec over a mesh without devices",
    ),
    "equal to the unreduced present": ("0.9.1", "jax.shard_map that returns unreduced arrays"),
    "not equal to the size of the mesh": ("0.8", "explicit sharding over a mesh without devices"),
}
"""The version that does what JAX refuses in these words, and what that is."""
_UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")


def ask(
    call: Callable[..., Any],
    *args: Any,
    of: Any = None,
    by: Callable[..., Any] | None = None,
    what: str = "",
    hint: str | None = None,
    **kwargs: Any,
) -> Any:
    """Return what ``call``, a function of JAX's, returns for the arguments.

    Args:
        call: the function.
        *args: its arguments.
        of: the user's function that it calls; what that raises passes through.
        by: the function of shardcore that the user called, whose options the hint may name.
        what: what JAX is asked for, if the message is to say it.
        hint: what to do if it refuses; without it the words of the refusal are looked up.
        **kwargs: its keyword arguments.

    Raises:
        LoweringError: JAX raised an exception (``lowering``). What the user's function raises, and
            what code of shardcore's raises that JAX calls, such as rules of lowering, stays as it
            is. A later JAX can do it (``jax-version``).
    """
    try:
        return call(*args, **kwargs)
    # JAX's exceptions have no common base class.
    except Exception as error:
        for said, (version, later) in _LATER.items():
            if said in str(error) and is_older(version):
                raise needs(version, later) from error
        codes = list(_codes_below(error))
        if isinstance(error, (ShardcoreError, Warning)) or any(map(_is_own, codes)):
            raise
        if of is not None and _code(of) in codes:
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        refused = f"JAX refuses {what}" if what else "JAX refuses"
        raise mistake(
            "lowering", f"{refused}: {' '.join(lines)[:600]}", hint or _hint(str(error), by)
        ) from error


def _codes_below(error: Exception) -> Iterator[CodeType]:
    """The code that ran when ``error`` was raised, below :func:`ask`."""
    frame = error.__traceback__ and error.__traceback__.tb_next
    while frame is not None:
        yield frame.tb_frame.f_code
        frame = frame.tb_next


def _is_own(code: CodeType) -> bool:
    return code.co_filename.startswith(_PACKAGE)


def _hint(refusal: str, by: Callable[..., Any] | None) -> str:
    """What to do about what JAX refuses."""
    # The calculus is not imported with the package.
    from shardcore.calculus.mistakes import close_names

    unexpected = _UNEXPECTED.search(refusal)
    options = inspect.signature(by).parameters if by is not None else {}
    close = close_names(unexpected[1], options, 1) if unexpected else []
    if close:
        return f"did you mean {close[0]}=?"
    known = (hint for said, hint in _HINTS.items() if said in refusal)
    return next(known, "give shardings and arguments as jax.jit takes them")


def _code(fn: Any) -> Any:
    """The code that runs when ``fn`` is called."""
    fn = inspect.unwrap(fn)
    while isinstance(fn, functools.partial):
        fn = inspect.unwrap(fn.func)
    fn = getattr(fn, "__func__", fn)
    return getattr(fn, "__code__", None) or getattr(type(fn).__call__, "__code__", None)
