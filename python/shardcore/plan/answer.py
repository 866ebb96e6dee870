"""The result of planning: :class:`Plan`, and the alternatives that it was compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore._core import Mesh, Port, TensorSharding
from shardcore.session import Evaluation, Session
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore.costs import Cost
    from shardcore.plan.stated import Constraint, Stated


@dataclass(frozen=True, repr=False)
class Alternative:
    """Another plan, and why it was not chosen."""

    kind: str
    """The kind: ``"data"``, ``"fsdp"``, ``"tensor"``, ...; ``"given"`` for the program's own
    plan."""
    mesh: Mesh
    annotations: Mapping[str, str]
    """``PartitionSpec``s by pattern; empty for the program's own plan."""
    figures: Evaluation
    """Time, bytes and memory, as in :meth:`Session.evaluate`."""
    reason: str
    """Why it lost, or that it is equally good."""

    def __repr__(self) -> str:
        return f"<shardcore.Alternative {self.kind} over {self.mesh}: {self.reason}>"

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        figures = self.figures.record()
        del figures["edit"]
        return {
            "kind": self.kind,
            "mesh": self.mesh.shape,
            "annotations": dict(self.annotations),
            "figures": figures,
            "reason": self.reason,
        }


@dataclass(frozen=True, repr=False)
class Plan:
    """The best annotations that were found for a program; made by :func:`shardcore.plan`."""

    kind: str
    """The kind of parallelism: ``"data"``, ``"fsdp"``, ``"tensor"``, ``"sequence"``, ``"expert"``,
    ``"spatial"``, ``"mixed"`` or ``"replicated"``."""
    mesh: Mesh
    specs: Mapping[str, str]
    """The annotations as JAX writes them: for each pattern the text of a ``PartitionSpec``."""
    places: Mapping[str, str]
    """For each constrained value (target), its location in the user's program."""
    session: Session
    """The program with the annotations, which can be edited further."""
    cost: Cost
    """The cost of a step under policy ``xla``, for the propagated program."""
    objective: str
    """What was minimized: ``"time"``, ``"memory"``, ``"bytes"`` or ``"slowest-link"``."""
    limit: float
    """Bytes of memory of a device."""
    bound: float
    """A lower bound, in seconds or bytes, for every plan over these meshes."""
    alternatives: tuple[Alternative, ...]
    """The program's own plan, if it had one, and the best plan of each other kind."""
    evaluations: int
    """How many sets of annotations were evaluated exactly."""
    stopped: str
    """Why the search ended: ``"done"``, ``"seconds"`` or ``"interrupted"``."""
    stated: Stated
    """The complete statement of the plan: a spec for each argument and result, and constraints."""
    program: Any
    """The planned program: a :class:`shardcore.Module`, or a lowered JAX function."""
    keeps_constraints: bool
    """Whether the program's own constraints of values stay."""

    @property
    def in_shardings(self) -> tuple[Any, ...]:
        """A ``PartitionSpec`` for each leaf of the positional arguments of a lowered function, in
        their trees, as ``jax.jit`` takes them over :attr:`mesh`; for a module, one for each
        argument.

        ``None`` stands for arguments that JAX dropped, and for those left to propagation because a
        spec would change the plan.

        """
        from shardcore.plan.user_trees import in_shardings

        return in_shardings(self.result, self.stated.arguments)

    @property
    def out_shardings(self) -> Any:
        """A ``PartitionSpec`` for each leaf of the function's results; ``None`` as in
        :attr:`in_shardings`."""
        from shardcore.plan.user_trees import out_shardings

        return out_shardings(self.result, self.stated.results)

    @property
    def rules(self) -> dict[str, Any]:
        """A ``PartitionSpec`` for each regular expression; the first one that matches the whole
        path of an argument, ``params/layers/3/w``, decides its spec."""
        from shardcore.plan.user_trees import rules

        return rules(self.result)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The values inside the program to constrain, each with its line of code."""
        return self.stated.constraints

    def apply(self, devices: Sequence[Any] | None = None) -> Any:
        """Return a function that is sharded according to the plan.

        A lowered JAX function is jitted over :attr:`mesh`, on ``devices`` or the first of
        ``jax.devices()``, with :attr:`in_shardings`, :attr:`out_shardings` and :attr:`constraints`
        instead of its own; static arguments keep the values that it was lowered for. A module
        becomes a function of NumPy arrays that simulates all devices.

        Raises:
            LoweringError: the program was not lowered from a function, or there are too few
                devices.
        """
        from shardcore.plan.user_trees import apply

        return apply(self, devices)

    def to_python(self) -> str:
        """Return the plan as code that a person would write: the mesh, the rules, the shardings
        made by the rules, and the constraints."""
        from shardcore.plan.code import code

        return code(self)

    @property
    def annotations(self) -> dict[str, TensorSharding]:
        """The annotations by pattern, as :meth:`Session.set` takes them."""
        session = self.session
        return {pattern: session.annotations[session.targets(pattern)[0]] for pattern in self.specs}

    @property
    def result(self) -> Any:
        """The propagation result: a :class:`shardcore.Result`, or a ``JaxResult``."""
        return self.session.result

    @property
    def value(self) -> float:
        """The minimized figure of this plan."""
        if self.objective == "memory":
            return self.cost.peak_bytes
        if self.objective == "bytes":
            return self.cost.rows.sent_bytes
        if self.objective == "slowest-link":
            return self.cost.rows.slowest_link_bytes
        return self.cost.serial_seconds

    @property
    def gap(self) -> float | None:
        """The relative distance of the plan from :attr:`bound`; ``None`` if that is 0."""
        return self.value / self.bound - 1 if self.bound else None

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        from shardcore.calculus.partition_spec import spec_text

        return {
            "kind": self.kind,
            "mesh": self.mesh.shape,
            "annotations": [
                {
                    "target": target,
                    "spec": self.specs[target],
                    "sharding": str(sharding),
                    "location": self.places.get(target),
                }
                for target, sharding in self.annotations.items()
            ],
            "objective": self.objective,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "limit_bytes": self.limit,
            "cost": self.cost.record(),
            "rules": {rule: spec_text(spec) for rule, spec in self.rules.items()},
            "in_shardings": self._port_texts(self.result.arguments(), self.stated.arguments),
            "out_shardings": self._port_texts(self.result.results(), self.stated.results),
            "constraints": [each.record() for each in self.constraints],
            "python": self.to_python(),
            "alternatives": [each.record() for each in self.alternatives],
            "evaluations": self.evaluations,
            "stopped": self.stopped,
        }

    def patch(self, file: str | None = None) -> str:
        """Return a unified diff of the user's files that applies the plan: constraints where the
        values are computed, and the rest of :meth:`to_python` at the end of ``file``. No file is
        written.

        Raises:
            OSError: a file cannot be read.
        """
        from shardcore.plan.patch import patch

        return patch(self, file)

    def _port_texts(self, ports: Sequence[Port], specs: Mapping[str, Any]) -> dict[str, str | None]:
        """The text of the spec of each of ``ports``, by path."""
        texts = {name: str(spec) for name, spec in specs.items()}
        return {port.label or port.name: texts.get(port.name) for port in ports}

    def __str__(self) -> str:
        from shardcore.report.console import plain_text
        from shardcore.report.plan_table import plan_parts

        return plain_text(plan_parts(self))

    def __repr__(self) -> str:
        annotations = plural(len(self.specs), "annotation")
        return f"<shardcore.Plan {self.kind} over {self.mesh}: {annotations}>"

    def _repr_html_(self) -> str:
        from shardcore.report.html import parts_html
        from shardcore.report.plan_table import plan_parts

        return parts_html(plan_parts(self))
