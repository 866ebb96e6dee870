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

from shardcore._core import Module, Port, Value
from shardcore.calculus.partition_spec import Spec, spec_of, spec_text
from shardcore.plan.expressions import Expressions
from shardcore.session import Session
from shardcore.source_lines import CONSTRAINT, Site, constrained, constraint_line, site

GRADIENT = "constrained_gradient"
"""What constrains the gradient of a value, and not the value."""


@dataclass(frozen=True)
class Constraint:
    """A sharding constraint on a value inside the program."""

    target: str
    """The value's name in the program, as :meth:`Session.set` takes it."""
    spec: Any
    """Its ``PartitionSpec``."""
    location: str
    """The user's expression to constrain, ``file:line:column``; empty if unknown. It computes the
    value, or the one that the value is the gradient of."""
    op: str
    """The op that computes the value."""
    op_location: str
    """Where that op is."""
    primitive: str
    """The JAX primitive that the op was lowered from; empty if unknown."""
    shape: tuple[int | None, ...]
    site: Site | None
    """The user's expression; ``None`` if its file cannot be read, or if no line constrains the
    value."""
    is_gradient: bool
    """Whether it is the gradient of what the expression computes."""

    @property
    def by(self) -> str:
        """The function that constrains it."""
        return GRADIENT if self.is_gradient else CONSTRAINT

    @property
    def wrapped(self) -> str:
        """The code that replaces the expression."""
        text = "x" if self.site is None else self.site.text
        return constrained(text, spec_text(self.spec), self.by)

    @property
    def line(self) -> str:
        """The line of code: added after the assignment to the variable, or in place of the
        expression."""
        return constraint_line(self.site, spec_text(self.spec), self.by)

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
            "gradient": self.is_gradient,
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


def constraints_of(
    session: Session, module: Module, targets: Sequence[str]
) -> tuple[Constraint, ...]:
    """Return the constraints of values, those with the shortest line first.

    Args:
        session: the program with the plan.
        module: the program without it.
        targets: the annotated values; a target may name several.
    """
    if not targets:
        return ()
    values = {name: value for value in module.values() for name in _names(value)}
    expressions = Expressions(module)
    found = {}
    names = dict.fromkeys(name for each in targets for name in session.targets(each))
    constrained = {values[name] for name in names}
    for name in names:
        value = values[name]
        lines = (each for each in expressions.lines(value) if constrained.issuperset(each.values))
        line = next(lines, None) or expressions.line(value)
        location, op = (line.location, line.op) if line else (value.location or "", "")
        found[name] = Constraint(
            target=name,
            spec=spec_of(session.annotations[name]),
            location=location,
            op=value.op or "",
            op_location=value.location or "",
            primitive=_primitive(value),
            shape=value.shape or (),
            site=site(location, "" if line.is_call else op) if line else None,
            is_gradient=line is not None and line.is_gradient,
        )
    return tuple(sorted(found.values(), key=lambda each: len(each.line)))


def _primitive(value: Value) -> str:
    """The primitive that the op of ``value`` was lowered from, of a call of a jitted function too,
    whose name JAX writes."""
    name = value.name_stack.rpartition("/")[2]
    return "jit" if value.op == "func.call" and "jit(" in name else name


def _names(value: Any) -> tuple[str, ...]:
    return value.qualified_name, f"@{value.function} {value.name}"
