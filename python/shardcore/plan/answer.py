"""The result of planning: :class:`Plan`, and the alternatives that it was compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore._core import Mesh, Port, TensorSharding
from shardcore.session import Evaluation, Session
from shardcore.session.targets import listed
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore.costs import Cost
    from shardcore.pipeline import Pipeline
    from shardcore.plan.changes import Change
    from shardcore.plan.keeping import Kept
    from shardcore.plan.placement import Placement
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
    """Why it lost, or that it is as good."""
    stages: int | None = None
    """The number of stages, where these were searched."""

    def __repr__(self) -> str:
        return f"<shardcore.Alternative {self.kind} over {self.mesh}: {self.reason}>"

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        figures = self.figures.record()
        del figures["edit"]
        return {
            "kind": self.kind,
            "mesh": self.mesh.shape,
            "stages": self.stages,
            "annotations": dict(self.annotations),
            "figures": figures,
            "reason": self.reason,
        }


@dataclass(frozen=True, repr=False)
class Plan:
    """The best annotations that were found for a program; made by :func:`shardcore.plan`."""

    kind: str
    """The kind of parallelism: ``"data"``, ``"fsdp"``, ``"zero"``, ``"tensor"``, ``"sequence"``,
    ``"expert"``, ``"spatial"``, ``"mixed"`` or ``"replicated"``."""
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
    """What was minimized: ``"time"``, ``"step"``, ``"memory"``, ``"bytes"`` or
    ``"slowest-link"``."""
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
    """Whether constraints of values that the program came with stay."""
    placement: Placement
    """Where the axes of the mesh lie: on links within nodes or slices, or across these."""
    cost_options: Mapping[str, Any]
    """The options of :func:`shardcore.cost` that :attr:`cost` was counted with."""
    pipeline: Pipeline | None = None
    """The stages, their schedule and micro-batches, and what was chosen from; each stage has a mesh
    :attr:`mesh`. ``None`` without stages."""
    changes: tuple[Change, ...] = ()
    """From the plan that planning was to start from to this one, what saves most first."""
    kept: Kept | None = None
    """What layers keep for the backward pass, where that is not what the program says."""

    @property
    def stages(self) -> int:
        """The number of stages of a pipeline, or 1."""
        return 1 if self.pipeline is None else self.pipeline.best.stages

    @property
    def policies(self) -> dict[str, str]:
        """What the layers of each stack keep, have the host keep or compute anew, in words; empty
        where it is what the program says."""
        return {} if self.kept is None else self.kept.policies

    @property
    def layers(self) -> int:
        """The number of layers that stages are made of; 0 without stages."""
        return 0 if self.pipeline is None else len(self.pipeline.layers.layers)

    @property
    def whole_mesh(self) -> Mesh:
        """The mesh of all devices: :attr:`mesh`, with stages an axis ``stage`` before."""
        return self.mesh if self.stages == 1 else Mesh({"stage": self.stages, **self.mesh.shape})

    @property
    def schedule(self) -> str | None:
        """The schedule of the pipeline."""
        return None if self.pipeline is None else self.pipeline.best.schedule

    @property
    def micro_batches(self) -> int:
        """The number of micro-batches of a step."""
        return 1 if self.pipeline is None else self.pipeline.best.micro_batches

    @property
    def devices(self) -> int:
        """The number of devices of all stages."""
        return self.stages * self.mesh.num_devices

    @property
    def step_seconds(self) -> float:
        """Seconds of a step, with what overlaps and what waits."""
        if self.pipeline is None:
            return self.cost.step_seconds
        return self.pipeline.best.step_seconds

    @property
    def peak_bytes(self) -> float:
        """The most bytes that a device has in memory."""
        return self.cost.peak_bytes if self.pipeline is None else self.pipeline.best.peak_bytes

    @property
    def interval(self) -> tuple[float, float]:
        """Seconds between which 9 of 10 steps are: of the cost; with stages as far around the step
        as those are around the step of one stage."""
        share = self.step_seconds / self.cost.step_seconds
        confidence = self.cost.confidence
        return confidence.low * share, self.cost.step_seconds_upper * share

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
        path of an argument, ``params/layers/3/w``, decides its spec. ``None`` as in
        :attr:`in_shardings`."""
        from shardcore.plan.user_trees import rules

        return rules(self)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The values inside the program to constrain, each with its line of code."""
        return self.stated.constraints

    @property
    def unreached(self) -> tuple[Constraint, ...]:
        """Those of :attr:`constraints` that no line of the user's files makes; without them the
        step is another one than planned."""
        return tuple(each for each in self.constraints if each.site is None)

    def apply(self, devices: Sequence[Any] | None = None) -> Any:
        """Return a function that is sharded according to the plan.

        A lowered JAX function is jitted over :attr:`mesh`, on ``devices`` or the first of JAX's,
        with :attr:`in_shardings`, :attr:`out_shardings` and :attr:`constraints`, without its own;
        static arguments are those that it was lowered for. A module becomes a function of NumPy
        arrays that simulates all devices, with stages those of one that has all layers.

        With stages the scan over the layers becomes the loop of
        :func:`shardcore.pipeline.to_python` over :attr:`whole_mesh`, by ``gpipe`` or with several
        chunks ``circular``, whichever schedule the plan has, and values in it are not constrained.

        Raises:
            LoweringError: it was lowered from no function, there are not as many devices, or no
                scan over the layers is found.
            PlanError: stages have no equal numbers of layers (``schedule``).
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
        """The figure that was minimized, of this plan."""
        if self.pipeline is not None or self.objective == "step":
            return self.step_seconds
        if self.objective == "memory":
            return self.cost.peak_bytes
        if self.objective == "bytes":
            return self.cost.rows.sent_bytes
        if self.objective == "slowest-link":
            return self.cost.rows.slowest_link_bytes
        return self.cost.serial_seconds

    @property
    def why(self) -> str | None:
        """Why the plan has its stages, or none; ``None`` where stages were not searched."""
        others = [each for each in self.alternatives if each.stages is not None]
        if not others:
            return None
        best = min(others, key=lambda each: each.figures.step_seconds or math.inf)
        return f"of other stages the best is {best.kind}: {best.reason}"

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
            "placement": self.placement.record(),
            "stages": self.stages,
            "schedule": self.schedule,
            "micro_batches": self.micro_batches,
            "policies": self.policies,
            "why": self.why,
            "step_seconds": self.step_seconds,
            "interval": list(self.interval),
            "peak_bytes": self.peak_bytes,
            "pipeline": None if self.pipeline is None else self.pipeline.record(),
            "annotations": [
                {
                    "target": target,
                    "spec": self.specs[target],
                    "sharding": str(sharding),
                    "location": self.places.get(listed(target)[0]),
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
            "unreached": len(self.unreached),
            "python": self.to_python(),
            "changes": [each.record() for each in self.changes],
            "alternatives": [each.record() for each in self.alternatives],
            "evaluations": self.evaluations,
            "stopped": self.stopped,
        }

    def patch(self, file: str | None = None, function: str | None = None) -> str:
        """Return a unified diff of the user's files that applies the plan. No file is written.

        Values are constrained where they are computed. ``file`` gets the plan's mesh, and the
        shardings where the step is jitted; what is left to do by hand stands before the diff.

        If ``function`` of the file returns a step, its arguments and maybe options of
        :func:`shardcore.jax.lower`, the diff also has ``{function}_planned``, which returns these
        with the plan. The changed files are then run in another process, and the diff begins with
        what the step costs as changed.

        Raises:
            OSError: a file cannot be read.
            LoweringError: ``function`` does not return a step.
        """
        from shardcore.plan.applied import patch

        return patch(self, file, function)

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
