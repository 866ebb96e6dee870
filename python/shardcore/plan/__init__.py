"""The best sharding of a program, for a chip and a memory limit, as a few annotations.

=======================  ========================================================================
:mod:`~.answer`          :class:`Plan`, the answer
:mod:`~.program`         the program without its annotations, except those kept
:mod:`~.meshes`          the meshes to consider
:mod:`~.classes`         dims that are best sharded alike, by the rules of the ops
:mod:`~.alike`           classes of repeated layers, by how they are used
:mod:`~.roles`           arguments that get one annotation
:mod:`~.pins`            values that are worth a constraint
:mod:`~.expert_routing`  values that go to experts and come back
:mod:`~.layouts`         for each mesh axis the classes that it shards
:mod:`~.kinds`           what kind of parallelism that is
:mod:`~.model`           estimates what a layout costs, to rank layouts
:mod:`~.candidates`      layouts worth an exact evaluation
:mod:`~.layers`          programs with fewer of their repeated layers
:mod:`~.scorers`         evaluates on the whole program, or on fewer layers
:mod:`~.trials`          what was evaluated
:mod:`~.search`          the first evaluations, and local search
:mod:`~.fewest`          the fewest annotations that make propagation give the plan
:mod:`~.settled`         annotations that XLA completes alike
:mod:`~.products`        the products, and what their operands are made of
:mod:`~.relaxation`      what products compute twice or send in every plan
:mod:`~.bounds`          what no plan can do better than
:mod:`~.stated`          a spec for each argument and result, and constraints of values
:mod:`~.source_lines`    where in the user's files values are made
:mod:`~.name_rules`      regular expressions of paths for the specs of arguments
:mod:`~.user_trees`      the plan on the user's own trees
:mod:`~.code`            the plan as code
:mod:`~.patch`           the plan as a change of the user's files
:mod:`~.planner`         all of it in order
=======================  ========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any

from shardcore.bounded import shown
from shardcore.expected import expect
from shardcore.plan.answer import Alternative, Plan
from shardcore.units import parse_bytes

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from shardcore.calculus.hardware import Hardware
    from shardcore.plan.meshes import MeshLike

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
        keep: targets, as in :meth:`Session.set`; their annotations stay as they are, and those
            without an annotation get none.
        seconds: the time after which the best plan so far is returned; Ctrl-C does so too.
        executor: where evaluations run: a ``concurrent.futures.Executor``; by default threads of
            this process.
        minimize: ``"time"``: the step time without overlap; ``"memory"``: the peak; ``"bytes"``:
            the bytes that a device sends; ``"slowest-link"``: the bytes that it sends over the
            slowest kind of link of the mesh: between slices or nodes, if the mesh spans several.
        progress: called with the best plan so far and the fraction of the time.
        **options: those of :func:`shardcore.cost`, except the policy.

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
    from shardcore.plan.meshes import meshes
    from shardcore.plan.objective import Wanted, links
    from shardcore.plan.planner import Planner
    from shardcore.plan.program import read
    from shardcore.plan.trials import OBJECTIVES

    if minimize not in OBJECTIVES:
        raise ValueError(f"minimize is one of {', '.join(OBJECTIVES)}, not {shown(minimize)}")
    expect(seconds, Real)
    if not seconds > 0:
        raise ValueError(f"seconds are {shown(seconds)}, no time to plan in")
    chip = hardware
    if not isinstance(chip, Hardware):
        chip = find_hardware(chip, options.get("hardware_file"))
    limit = chip.hbm_bytes if memory is None else parse_bytes(memory)
    if limit is None:
        raise ValueError(f'memory is {shown(memory)}, write "16GiB" or a number of bytes')
    given = read(program, keep)
    over = meshes(given.given.module, mesh, devices, chip, links(chip, options))
    time = float(min(seconds, _MOST_SECONDS))
    wanted = Wanted(tuple(over), chip, limit, minimize, time, executor, options, progress)
    return Planner(given, wanted).plan()
