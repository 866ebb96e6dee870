"""What one says of a program so that it is sharded as planned: a spec for each argument and result,
and constraints of values at lines of the user's files.

A plan is found as the fewest annotations, from which propagation completes the others. It is
stated completely where that costs no more, which also leaves nothing to XLA; where propagation
decides otherwise inside the program once more is annotated, less is stated: arguments alone, then
the fewest annotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardcore._core import Port
from shardcore.calculus.partition_spec import Spec, spec_of, spec_text
from shardcore.session import Session
from shardcore.source_lines import Site, constrained, constraint_line, site


@dataclass(frozen=True)
class Constraint:
    """A value inside the program that is constrained."""

    target: str
    """Its name in the program, as :meth:`Session.set` takes it."""
    spec: Any
    """Its ``PartitionSpec``."""
    location: str
    """Where the user's program makes it, ``file:line:column``; empty where that is not known."""
    op: str
    """The op that makes it."""
    primitive: str
    """The primitive of JAX that the op was lowered from; empty where that is not known."""
    shape: tuple[int | None, ...]
    site: Site | None
    """The expression in the user's file that makes it, if the file can be read."""

    @property
    def wrapped(self) -> str:
        """The code in place of the expression."""
        text = "x" if self.site is None else self.site.text
        return constrained(text, spec_text(self.spec))

    @property
    def line(self) -> str:
        """The line of code: after the assignment to the variable, or in place of the
        expression."""
        return constraint_line(self.site, spec_text(self.spec))

    @property
    def place(self) -> str:
        """``file:line``."""
        return self.location.rpartition(":")[0]

    def __str__(self) -> str:
        shape = "x".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.line}  # {self.place or self.target}: {self.op.rpartition('.')[2]}, {shape}"

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
    """What is said of a program."""

    arguments: Mapping[str, Spec]
    """Of arguments, by their names in the program; those that are not in it are left open."""
    results: Mapping[str, Spec]
    """Of results, by their names in the program."""
    constraints: tuple[Constraint, ...]

    def edit(self) -> dict[str, str]:
        """Return the edit of a session that says this."""
        values = {each.target: spec_text(each.spec) for each in self.constraints}
        ports = {**self.arguments, **self.results}
        return {**{name: str(spec) for name, spec in ports.items()}, **values}


def statements(
    session: Session, specs: Mapping[str, str], constraints: tuple[Constraint, ...]
) -> tuple[Stated, ...]:
    """Return what may be said of a program, the most complete first: a spec for each argument and
    result, for each argument, and what ``specs`` name.

    Args:
        session: the program with the plan.
        specs: the annotations, by pattern.
        constraints: those of them that are constraints of values.
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
    """Return the specs of ``ports`` that have one, by name."""
    found = ((port.name, spec_of(port.sharding)) for port in ports if port.shape is not None)
    return {name: spec for name, spec in found if spec is not None}


def constraints_of(session: Session, places: Mapping[str, str]) -> tuple[Constraint, ...]:
    """Return the values that are constrained, those with the shortest line first.

    Args:
        session: the program with the plan.
        places: where the values come from, by target.
    """
    if not places:
        return ()
    values = {name: value for value in session.module.values() for name in _names(value)}
    found = []
    for target, location in places.items():
        sharding = spec_of(session.annotations[session.targets(target)[0]])
        value = values.get(target)
        op = (value.op if value is not None else None) or ""
        shape = (value.shape if value is not None else None) or ()
        primitive = "" if value is None else value.name_stack.rpartition("/")[2]
        at = site(location, op)
        found.append(Constraint(target, sharding, location, op, primitive, shape, at))
    return tuple(sorted(found, key=lambda each: len(each.line)))


def _names(value: Any) -> tuple[str, ...]:
    return value.qualified_name, f"@{value.function} {value.name}"
