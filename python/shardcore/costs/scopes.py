"""Costs by scope: by the names that users give to parts of the program (``jax.named_scope``).

JAX writes them into the locations of ops: ``jit(f)/transpose(jvp(decoder))/layer_3/mlp/mul`` is in
the backward pass of ``decoder/layer_3/mlp``. Names of transformations and of control flow are not
part of a scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

PASSES = ("forward", "backward", "recomputed")
"""The passes; ``recomputed`` is what rematerialization computes again."""

_DROPPED = frozenset({"jit", "pjit"})
"""Transformations whose argument is a function name, which is no scope."""

_EQUATION = "->"
"""In the names that JAX gives to an einsum."""

_STRUCTURE = re.compile(
    r"(while|body|cond|scan|closed_call|checkpoint|remat2?|rematted_computation|core_call|shard_map"
    r"|branch_\d+_fun|custom_jvp_call|custom_vjp_call|custom_lin|pjit|jit|xla_pmap)\Z"
)
_WRAPPED = re.compile(r"(\w+)\((.*)\)\Z", re.DOTALL)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class ScopeCost:
    """The cost of the ops of one scope, over all their runs on one device."""

    scope: str
    """The names from the outermost inwards, ``decoder/layer_*/mlp``; empty outside of scopes."""
    direction: str
    """One of :data:`PASSES`."""
    layers: int
    """How many scopes are merged; they differ only in numbers."""
    flops: int = 0
    bytes: int = 0
    """Bytes read from and written to memory."""
    compute_seconds: float = 0.0
    """The sum of the ops' roofline times."""
    collectives: int = 0
    """The number of runs of collectives."""
    wire_bytes: int = 0
    """Bytes that the device sends."""
    comm_seconds: float = 0.0
    step_seconds: float = 0.0
    """The part of ``Cost.step_seconds`` that its ops take, and in which its collectives are
    awaited."""

    @property
    def seconds(self) -> float:
        """Seconds at the peak of the chip, with nothing overlapped."""
        return self.compute_seconds + self.comm_seconds

    def plus(self, other: ScopeCost) -> ScopeCost:
        """Return the sums of both, under the scope of this one."""
        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in (field.name for field in fields(self)[3:])
        }
        return ScopeCost(self.scope, self.direction, self.layers, **sums)

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**vars(self), "seconds": self.seconds}


def merged(
    rows: Iterable[ScopeCost], depth: int | None = None, is_merged: bool = True
) -> tuple[ScopeCost, ...]:
    """Return the sums of ``rows`` by scope and direction, the longest first.

    Args:
        rows: costs by scope.
        depth: how many names are distinguished; by default all.
        is_merged: whether to merge scopes that differ only in numbers, ``layer_3``, as ``layer_*``.
    """
    sums: dict[tuple[str, str], ScopeCost] = {}
    members: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        scope = "/".join(row.scope.split("/")[:depth])
        name = _NUMBER.sub("*", scope) if is_merged else scope
        key = (name, row.direction)
        members.setdefault(key, set()).add(scope)
        known = sums.get(key)
        sums[key] = (
            ScopeCost(name, row.direction, 1).plus(row) if known is None else known.plus(row)
        )
    found = (
        ScopeCost(name, direction, len(members[name, direction])).plus(row)
        for (name, direction), row in sums.items()
    )
    return tuple(sorted(found, key=lambda row: -row.step_seconds))


@lru_cache(maxsize=1 << 16)
def scope_of(stack: str) -> tuple[str, str]:
    """Return the scope and the direction of an op whose location has the name stack ``stack``.

    >>> scope_of("jit(step)/transpose(jvp(decoder))/layer_3/mlp/mul")
    ('decoder/layer_3/mlp', 'backward')
    """
    names: list[str] = []
    wrappers: set[str] = set()
    # The last name is the primitive.
    for part in _parts(stack)[:-1]:
        _unwrap(part, names, wrappers)
    if "rematted_computation" in wrappers:
        direction = "recomputed"
    else:
        direction = "backward" if "transpose" in wrappers else "forward"
    return "/".join(_once(names)), direction


def _once(names: list[str]) -> list[str]:
    """``names`` without immediate repetitions: the gradient of ``jax.checkpoint`` enters the
    enclosing scopes again.
    """
    for size in range(len(names) // 2, 0, -1):
        if names[:size] == names[size : 2 * size]:
            return _once(names[size:])
    return names


def _unwrap(part: str, names: list[str], wrappers: set[str]) -> None:
    """Add the names in one part of a stack, and the transformations around them."""
    while True:
        found = _WRAPPED.match(part)
        if found is None:
            break
        wrappers.add(found[1])
        if found[1] in _DROPPED:
            return
        part = found[2]
        inner = _parts(part)
        if len(inner) > 1:
            for each in inner:
                _unwrap(each, names, wrappers)
            return
    if _STRUCTURE.match(part):
        wrappers.add(part)
    elif part and _EQUATION not in part:
        names.append(part)


def _parts(stack: str) -> list[str]:
    """``stack`` split at slashes outside of parentheses."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(stack):
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(depth - 1, 0)
        elif char == "/" and not depth:
            parts.append(stack[start:at])
            start = at + 1
    return [*parts, stack[start:]]
