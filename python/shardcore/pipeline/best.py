"""The best pipeline of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from shardcore._core import Mesh, Module, Result
from shardcore.bounded import items, shown
from shardcore.pipeline.answer import Pipeline
from shardcore.pipeline.layers import find_layers
from shardcore.pipeline.schedules import SCHEDULES, check
from shardcore.pipeline.search import PipelineSearch, divisors, links_of, tasks_of

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware

STAGES = (2, 4, 8, 16)
"""The numbers of stages to try."""
TURNS = (2, 4)
"""The numbers of chunks per stage to try, for schedules with several."""


def find(
    program: Module | Result,
    hardware: str | Hardware = "tpu-v5p",
    *,
    stages: int | Iterable[int] | None = None,
    micro_batches: int | Iterable[int] | None = None,
    schedules: str | Iterable[str] | None = None,
    chunks: int | Iterable[int] | None = None,
    memory: float | str | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Any,
) -> Pipeline:
    """Return the pipeline of a training step with the least step time times devices that fits into
    memory.

    Each stage runs on as many devices as the program's mesh has, sharded as the program is: stages
    are a new axis, and the work of one device is divided among them. Times are those of the whole
    batch, divided among micro-batches; parameters are gathered and converted once a step, or if
    these do not fit, for each micro-batch.

    Args:
        program: a training step, which is propagated first, or a propagation result.
        hardware: the chip.
        stages: the numbers of stages to try; by default 2, 4, 8 and 16.
        micro_batches: the numbers of micro-batches to try; by default powers of two that divide the
            batch of a device.
        schedules: some of :data:`SCHEDULES`; by default all.
        chunks: the numbers of chunks per stage to try, for schedules with several; by default 2 and
            4.
        memory: bytes of memory of a device, as a number or as ``"16GiB"``; by default the chip's.
        progress: called with the current step and the fraction done.
        options: those of :func:`shardcore.cost`.

    Raises:
        PlanError: there are no layers (``no-layers``), no such schedule, or none for these numbers
            (``schedule``), or nothing fits (``does-not-fit``).
        ShardcoreError: as for :func:`shardcore.cost`.
    """
    layers = find_layers(program, hardware, **options)
    limit = _limit(memory, layers.cost.hardware)
    search = PipelineSearch(layers, limit, links_of(layers.cost.hardware, options), _mesh(program))
    names = _list(schedules, SCHEDULES)
    turns = _list(chunks, TURNS)
    counts = _list(stages, [n for n in STAGES if n <= len(layers.layers)] or [len(layers.layers)])
    batches = _list(micro_batches, divisors(layers.batch))
    for name in names:
        check(name, 1, 1, 1)
    tasks = list(tasks_of(counts, batches, names, turns))
    for at, task in enumerate(tasks):
        if progress is not None:
            progress("pipelines", at / len(tasks))
        search.add(*task)
    return search.answer()


def _mesh(program: Module | Result) -> Mesh | None:
    """The program's mesh of several devices, if it has one."""
    module = program if isinstance(program, Module) else program.module
    own = [mesh for mesh in module.meshes.values() if mesh.num_devices > 1]
    return own[0] if own else None


def _limit(memory: float | str | None, hardware: Hardware) -> float:
    from shardcore.units import parse_bytes

    if memory is None:
        return hardware.hbm_bytes
    found = parse_bytes(int(memory) if isinstance(memory, float) else memory)
    if not found:
        raise ValueError(f"expected a number of bytes, 16GiB, got {shown(memory)}")
    return float(found)


def _list(given: Any, default: Sequence[Any]) -> list[Any]:
    if given is None:
        return list(default)
    return [given] if isinstance(given, (str, int)) else list(items(given, "choices"))
