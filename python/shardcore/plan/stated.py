"""The statement of a plan: a spec for each argument and result, and constraints of values at lines
of the user's files.

The search finds few annotations, from which propagation completes the others. The statement has all
specs if that costs no more, which also leaves no choice to XLA. If more annotations change what
propagation does inside the program, less is stated: only arguments, or only the few annotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardcore._core import Port
from shardcore.calculus.partition_spec import Spec, spec_of, spec_text
from shardcore.session import Session
from shardcore.source_lines import Site, constrained, constraint_line, site

_TRANSPOSED = "transpose("
"""In a name stack, what JAX writes of the backward pass."""


@dataclass(frozen=True)
class Constraint:
    """A sharding constraint on a value inside the program."""

    target: str
    """The value's name in the program, as :meth:`Session.set` takes it."""
    spec: Any
    """Its ``PartitionSpec``."""
    location: str
    """The user's expression that computes it, ``file:line:column``; empty if unknown."""
    op: str
    """The op that computes it."""
    primitive: str
    """The JAX primitive that the op was lowered from; empty if unknown."""
    shape: tuple[int | None, ...]
    site: Site | None
    """The user's expression that computes it, if the file can be read; ``None`` for a value of a
    gradient, which no expression is."""
    is_gradient: bool = False
    """Whether it is a value of a gradient, at the location of the expression that it is of."""

    @property
    def wrapped(self) -> str:
        """The code that replaces the expression."""
        text = "x" if self.site is None else self.site.text
        return constrained(text, spec_text(self.spec))

    @property
    def line(self) -> str:
        """The line of code: added after the assignment to the variable, or in place of the
        expression."""
        return constraint_line(self.site, spec_text(self.spec))

    @property
    def place(self) -> str:
        """``file:line``."""
        return self.location.rpartition(":")[0]

    def __str__(self) -> str:
        shape = "x".join("?" if size is None else str(size) for size in self.shape)
        op = f"{'gradient, ' if self.is_gradient else ''}{self.op.rpartition('.')[2]}"
        return f"{self.line}  # {self.place or self.target}: {op}, {shape}"

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "target": self.target,
            "spec": spec_text(self.spec),
            "location": self.location or None,
            "op": self.op,
            "shape": list(self.shape),
            "line": self.line,
        }


@dataclass(frozen=True)
class Stated:
    """All specs and constraints of a program."""

    arguments: Mapping[str, Spec]
    """Specs of arguments by name in the program; arguments that are missing here stay open."""
    results: Mapping[str, Spec]
    """Specs of results by name in the program."""
    constraints: tuple[Constraint, ...]

    def edit(self) -> dict[str, str]:
        """Return the session edit for this statement."""
        values = {each.target: spec_text(each.spec) for each in self.constraints}
        ports = {**self.arguments, **self.results}
        return {**{name: str(spec) for name, spec in ports.items()}, **values}


def statements(
    session: Session, specs: Mapping[str, str], constraints: tuple[Constraint, ...]
) -> tuple[Stated, ...]:
    """Return possible statements, the most complete first: specs for all arguments and results, for
    all arguments, and only for ``specs``.

    Args:
        session: the program with the plan.
        specs: the annotations, by pattern.
        constraints: those of the annotations that constrain values.
    """
    result = session.result
    arguments, results = specs_of(result.arguments()), specs_of(result.results())
    given = {each for name in specs for each in session.targets(name)}
    paths = {
        port.name: port.label or port.name for port in (*result.arguments(), *result.results())
    }

    def fewest(every: Mapping[str, Spec]) -> dict[str, Spec]:
        return {name: spec for name, spec in every.items() if {name, paths[name]} & given}

    return (
        Stated(arguments, results, constraints),
        Stated(arguments, fewest(results), constraints),
        Stated(fewest(arguments), fewest(results), constraints),
    )


def specs_of(ports: Sequence[Port]) -> dict[str, Spec]:
    """Return the specs of ``ports`` that can be written as one, by name."""
    found = ((port.name, spec_of(port.sharding)) for port in ports if port.shape is not None)
    return {name: spec for name, spec in found if spec is not None}


def constraints_of(session: Session, places: Mapping[str, str]) -> tuple[Constraint, ...]:
    """Return the constraints of values, those with the shortest line first.

    Args:
        session: the program with the plan.
        places: the locations of the values, by target.
    """
    if not places:
        return ()
    values = {name: value for value in session.module.values() for name in _names(value)}
    found = []
    for target, place in places.items():
        # A target may name several values, which are computed in several places.
        for name in session.targets(target):
            sharding = spec_of(session.annotations[name])
            value = values.get(name)
            if value is None:
                found.append(Constraint(name, sharding, place, "", "", (), site(place, "")))
                continue
            location, op = value.location or place, value.op or ""
            primitive = value.name_stack.rpartition("/")[2]
            is_gradient = _TRANSPOSED in value.name_stack
            at = None if is_gradient else site(location, op)
            known = location, op, primitive, value.shape or (), at, is_gradient
            found.append(Constraint(name, sharding, *known))
    return tuple(sorted(found, key=lambda each: len(each.line)))


def _names(value: Any) -> tuple[str, ...]:
    return value.qualified_name, f"@{value.function} {value.name}"
