"""Turns exceptions that JAX raises into :class:`shardcore.LoweringError`; others pass through."""

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
_INTERPRETED = "give interpret=True to pallas_call: the kernel is ops of StableHLO then"
_HINTS = {
    "Only interpret mode is supported": _INTERPRETED,
    "Unimplemented primitive in Pallas": _INTERPRETED,
    "Cannot lower pallas_call on platform": _INTERPRETED,
    "wrap the call in a shard_map": "call the kernel in a jax.shard_map, or give interpret=True to "
    "pallas_call: the kernel is ops of StableHLO then, which are partitioned",
    "has duplicate entries": "name an axis once in a spec",
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
"""A hint for each exception of JAX that is recognized by a part of its message."""
_OF_KERNELS = re.compile(r"[Pp]allas|Mosaic|Triton")
_OF_ARGUMENTS = re.compile(
    r"in_shardings|out_shardings|PartitionSpec|abstract array|arg(num|name)s|argument"
)
"""Parts of messages with which JAX refuses arguments of ``jax.jit``."""
_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
_NO_RULE = re.compile(r"translation rule for primitive '(.+)' not found for platform (\w+)")
_NO_TARGET = re.compile(r"No registered implementation for .*custom call to (\S+) for ")
_OF_PLATFORMS = re.compile(
    r"tpu_|mosaic_|triton_|__gpu|__cu|cu(solver|blas|dnn|sparse|fft)|hip(solver|blas|sparse|fft)"
)
"""Prefixes of the custom call targets to which JAX lowers for platforms other than the CPU."""
_LATER = {
    "requires a non-empty mesh": (
        "0.8",
        "sharding constraints by PartitionSpec over a mesh without devices",
    ),
    "equal to the unreduced present": ("0.9.1", "jax.shard_map that returns unreduced arrays"),
    "not equal to the size of the mesh": ("0.8", "explicit sharding over a mesh without devices"),
}
"""For parts of JAX's messages: the version that supports the feature, and the feature's name."""
_UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")


def ask(
    call: Callable[..., Any],
    *args: Any,
    of: Any = None,
    by: Callable[..., Any] | None = None,
    what: str = "",
    platform: str | None = None,
    **kwargs: Any,
) -> Any:
    """Return ``call(*args, **kwargs)``, where ``call`` is a function of JAX.

    Args:
        call: the function.
        *args: its arguments.
        of: the user's function that JAX calls; exceptions that it raises pass through.
        by: the function of shardcore that the user called, whose options the hint may name.
        what: what JAX is asked for, if the message is to say it.
        platform: the platform of the devices that JAX compiles for.
        **kwargs: its keyword arguments.

    Raises:
        LoweringError: JAX raised an exception (``lowering``), or only a later version of JAX can do
            it (``jax-version``). Exceptions from the user's function, and from code of shardcore
            that JAX calls, such as lowering rules, pass through unchanged.
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
            "lowering", f"{refused}: {' '.join(lines)[:600]}", _hint(str(error), by, platform)
        ) from error


def _codes_below(error: Exception) -> Iterator[CodeType]:
    """The code objects that were running below :func:`ask` when ``error`` was raised."""
    frame = error.__traceback__ and error.__traceback__.tb_next
    while frame is not None:
        yield frame.tb_frame.f_code
        frame = frame.tb_next


def _is_own(code: CodeType) -> bool:
    return code.co_filename.startswith(_PACKAGE)


def _hint(refusal: str, by: Callable[..., Any] | None, platform: str | None) -> str | None:
    """A hint for what JAX refuses; ``None`` if there is none."""
    # The calculus is imported here, as the package does not import it.
    from shardcore.calculus.mistakes import close_names

    unexpected = _UNEXPECTED.search(refusal)
    options = inspect.signature(by).parameters if by is not None else {}
    close = close_names(unexpected[1], options, 1) if unexpected else []
    if close:
        return f"did you mean {close[0]}=?"
    for said, hint in _HINTS.items():
        if said in refusal:
            return hint
    if rule := _NO_RULE.search(refusal):
        if rule[2] not in _PLATFORMS:
            return f"platforms are {', '.join(_PLATFORMS)}"
        return f"jax.interpreters.mlir.register_lowering takes a rule for {rule[1]}"
    if target := _NO_TARGET.search(refusal):
        if platform and _OF_PLATFORMS.match(target[1]):
            return f'lower the function for these devices: platform="{platform}"'
        return f'register the target: jax.ffi.register_ffi_target("{target[1]}", ...)'
    if _OF_ARGUMENTS.search(refusal) and not _OF_KERNELS.search(refusal):
        return "give shardings and arguments as jax.jit takes them"
    return None


def _code(fn: Any) -> Any:
    """The code that runs when ``fn`` is called."""
    fn = inspect.unwrap(fn)
    while isinstance(fn, functools.partial):
        fn = inspect.unwrap(fn.func)
    fn = getattr(fn, "__func__", fn)
    return getattr(fn, "__code__", None) or getattr(type(fn).__call__, "__code__", None)
