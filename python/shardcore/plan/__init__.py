"""The best sharding of a program, for a chip and a memory limit, as a few annotations.

========================  ======================================================================
:mod:`~.answer`           :class:`Plan`, the answer
:mod:`~.program`          the program without its annotations, but for those that are kept
:mod:`~.reading`          what is read of a program once
:mod:`~.meshes`           the meshes to consider
:mod:`~.placement`        where the axes of a mesh lie on the machine
:mod:`~.classes`          dims that are best sharded alike, by the rules of the ops
:mod:`~.alike`            classes of repeated layers, by how they are used
:mod:`~.roles`            arguments that get one annotation
:mod:`~.states`           arguments that are optimizer states
:mod:`~.expressions`      values that a line of the user's constrains
:mod:`~.pins`             values that are worth a constraint
:mod:`~.expert_routing`   values that go to experts and come back
:mod:`~.residual_stream`  values that products make of the residual stream
:mod:`~.product_values`   the roles of both
:mod:`~.layouts`          for each mesh axis the classes that it shards
:mod:`~.kinds`            what kind of parallelism that is
:mod:`~.model`            estimates what a layout costs, to rank layouts
:mod:`~.candidates`       layouts worth an exact evaluation
:mod:`~.layers`           programs with fewer of their repeated layers
:mod:`~.peaks`            the peak memory of all layers, from what fewer have in memory
:mod:`~.scorers`          evaluates on the whole program, or on fewer layers
:mod:`~.trials`           what was evaluated
:mod:`~.written`          the annotations of a layout as people write them
:mod:`~.search`           the first evaluations, and local search
:mod:`~.fewest`           the fewest annotations that make propagation give the plan
:mod:`~.settled`          annotations that XLA completes alike
:mod:`~.products`         the products, and what their operands are made of
:mod:`~.relaxation`       what products compute twice or send in every plan
:mod:`~.bounds`           what no plan can do better than
:mod:`~.stated`           a spec for each argument and result, and constraints of values
:mod:`~.source_lines`     where in the user's files values are made
:mod:`~.name_rules`       regular expressions of paths for the specs of arguments
:mod:`~.user_trees`       the plan on the user's own trees
:mod:`~.code`             the plan as code
:mod:`~.patch`            the plan as a change of the user's files
:mod:`~.planner`          all of it in order
:mod:`~.limits`           what plans are not to go beyond
:mod:`~.carried`          annotations of values for programs that keep others
:mod:`~.keeping`          what layers keep for the backward pass, chosen with the shardings
:mod:`~.changes`          from an existing plan to another, change by change
:mod:`~.stages`           stages of a pipeline, each with a plan
:mod:`~.staged`           shardings of a stage with their pipelines
:mod:`~.stage_policies`   what layers of stages keep
========================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from shardcore.bounded import shown
from shardcore.errors import Diagnostic, PlanError
from shardcore.expected import expect
from shardcore.plan.answer import Alternative, Plan
from shardcore.units import format_bytes, parse_bytes

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from shardcore.calculus.hardware import Hardware
    from shardcore.plan.meshes import MeshLike
    from shardcore.plan.objective import Wanted
    from shardcore.plan.reading import Reading

__all__ = ["Alternative", "Plan", "plan"]

_MOST_SECONDS = 1e9
"""An upper bound of the time of any search, in seconds."""


def plan(
    program: Any,
    hardware: str | Hardware = "tpu-v5p",
    memory: int | str | None = None,
    mesh: MeshLike | Iterable[MeshLike] | None = None,
    devices: int | None = None,
    keep: str | Iterable[str] = (),
    seconds: float = 30,
    executor: Executor | None = None,
    *,
    minimize: str = "time",
    stages: str | int | Iterable[int] | None = None,
    limits: Mapping[str, Any] | None = None,
    start: Mapping[str, Any] | None = None,
    progress: Callable[[str, float], object] | None = None,
    **options: Any,
) -> Plan:
    """Return the annotations of arguments that make a step fastest within the memory of a device.

    The program's own annotations are removed, except those of ``keep``; the search also tries them
    as a starting point. Figures are those of :func:`shardcore.cost` with policy ``xla``, on the
    propagated program. The plan is deterministic unless ``seconds`` cuts the search short.

    Args:
        program: a :class:`Module`, or what ``shardcore.jax.lower`` returns.
        hardware: the chip.
        memory: bytes of memory of a device, or a text such as ``"16GiB"``; by default the chip's.
        mesh: the mesh, or several to choose from; by default all that ``devices`` devices can form,
            or, without ``devices``, the program's own mesh.
        devices: the number of devices.
        keep: targets, as :meth:`Session.set` takes them, whose annotations stay as they are, and
            that get none if they have none.
        seconds: the time after which the best plan so far is returned; also after Ctrl-C.
        executor: where evaluations are made: any ``concurrent.futures.Executor``, by default
            threads of this process.
        minimize: ``"time"``, the step without overlap; ``"step"``, the step with what overlaps;
            ``"memory"``, the peak; ``"bytes"``, what a device sends; or ``"slowest-link"``, what it
            sends over the slowest links that the mesh has, between slices or nodes where it lies on
            several.
        stages: with it plans with stages of a pipeline are searched, too, for the shortest step:
            ``"any"``, a number of stages or several to choose from, of which 1 is a plan without.
            The mesh is then that of a stage, of its share of ``devices``.
        limits: what the plan is not to go beyond: ``memory`` and ``host_memory`` of a device,
            ``micro_batch``, the fewest sequences that a device has of a batch or a micro-batch,
            ``schedules`` of pipelines, and by the name of an axis of the mesh the kinds of
            parallelism that annotations may use it for, ``{"model": "tensor"}``.
        start: the record of an existing plan; :attr:`Plan.changes` are then what is worth changing
            in it, in order.
        progress: called with the best so far and the fraction of the time.
        **options: those of :func:`shardcore.cost`, but for the policy.

    Raises:
        PlanError: no mesh is known (``no-mesh``), no argument can be sharded
            (``nothing-to-plan``), or nothing fits into the memory (``does-not-fit``).
        LocationError: a target of ``keep`` denotes nothing.
        ValueError: ``minimize``, ``memory`` or ``seconds`` is not valid.
        ShardcoreError: as for :func:`shardcore.cost`.
    """
    # The calculus is imported here, as the package does not import it.
    from shardcore.calculus.hardware import Hardware
    from shardcore.calculus.hardware import hardware as find_hardware
    from shardcore.costs.links import links
    from shardcore.plan.limits import Limits
    from shardcore.plan.meshes import meshes
    from shardcore.plan.objective import Wanted
    from shardcore.plan.program import read
    from shardcore.plan.reading import Reading
    from shardcore.plan.trials import OBJECTIVES

    if minimize not in OBJECTIVES:
        raise ValueError(f"minimize is one of {', '.join(OBJECTIVES)}, not {shown(minimize)}")
    expect(seconds, Real)
    if not seconds > 0:
        raise ValueError(f"seconds are {shown(seconds)}, no time to plan in")
    chip = hardware
    if not isinstance(chip, Hardware):
        chip = find_hardware(chip, options.get("hardware_file"))
    bounds = Limits.of(limits)
    limit = bounds.memory or chip.hbm_bytes if memory is None else parse_bytes(memory)
    if limit is None:
        raise ValueError(f'memory is {shown(memory)}, write "16GiB" or a number of bytes')
    given = read(program, keep)
    over = meshes(given.given.module, mesh, devices, chip, links(chip, options))
    time = float(min(seconds, _MOST_SECONDS))
    counted = executor, options, progress, bounds
    wanted = Wanted(tuple(over), chip, limit, minimize, time, *counted)
    reading = Reading(given, wanted)
    found = _found(reading, wanted, stages)
    if bounds.host_memory is not None and found.cost.host_memory_peak_bytes > bounds.host_memory:
        raise _too_much_for_host(found.cost.host_memory_peak_bytes, bounds.host_memory)
    if start is None:
        return found
    from shardcore.plan.changes import Changes

    return replace(found, changes=tuple(Changes(given, found, start).found()))


def _found(reading: Reading, wanted: Wanted, stages: str | int | Iterable[int] | None) -> Plan:
    if stages is None:
        from shardcore.plan.keeping import without_stages

        return without_stages(reading, wanted)
    from shardcore.plan.stages import StagesPlanner, counts

    return StagesPlanner(reading, wanted, wanted.meshes[0].num_devices, counts(stages)).plan()


def _too_much_for_host(needed: float, limit: float) -> PlanError:
    message = f"the host keeps {format_bytes(needed)} for a device, of which it has "
    message += format_bytes(limit)
    return PlanError(Diagnostic("does-not-fit", message, "offload less, or give more host memory"))
