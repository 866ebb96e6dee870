"""Rematerialization: what each layer keeps for the backward pass, computes anew or offloads.

=====================  ========================================================================
:mod:`~.choices`       what a layer may keep, as policies of ``jax.checkpoint``
:mod:`~.answer`        :class:`Remat`, the answer
:mod:`~.programs`      traced functions without calls, and their layers
:mod:`~.values`        values of a layer that can be named
:mod:`~.alike`         whether two programs compute the same
:mod:`~.wrapping`      programs with layers that keep what is chosen
:mod:`~.loss`          a loss, traced and changed
:mod:`~.step`          a step that differentiates a loss, with another loss
:mod:`~.model`         estimates what a layer computes anew, to rank choices
:mod:`~.trials`        what was lowered and costed
:mod:`~.search`        the search
:mod:`~.code`          the code to write
=====================  ========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from numbers import Real
from typing import TYPE_CHECKING, Any

from shardcore.bounded import shown
from shardcore.errors import Diagnostic, LoweringError, PlanError
from shardcore.expected import expect
from shardcore.remat.answer import Remat, Trial
from shardcore.units import format_bytes, parse_bytes

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware

__all__ = ["Remat", "Trial", "remat"]

_LOWERING = (
    "mesh",
    "in_shardings",
    "out_shardings",
    "static_argnums",
    "donate_argnums",
    "platform",
)
"""Options of ``shardcore.jax.lower``."""


def remat(
    loss: Callable[..., Any],
    *args: Any,
    hardware: str | Hardware = "tpu-v5p",
    memory: int | str | None = None,
    host_memory: int | str | None = None,
    seconds: float = 30,
    step: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    progress: Callable[[str, float], object] | None = None,
    **options: Any,
) -> Remat:
    """Return what layers should keep so that a step is fastest within the memory of a device.

    Layers are what scans run, or blocks that repeat. What they keep is tried: policies of JAX's,
    and values by names, each program lowered and costed.

    Args:
        loss: the function whose value is differentiated; it may return others besides. Where
            layers are checkpointed already, that is replaced.
        *args: arguments of the step: arrays, or ``jax.ShapeDtypeStruct``.
        hardware: the chip.
        memory: bytes that a device has, or a text such as ``"16GiB"``; by default the chip's.
        host_memory: bytes that its host has for it; without it as many as needed.
        seconds: the time after which the best so far is returned.
        step: makes the function whose cost counts, of the loss; by default
            ``jax.value_and_grad`` of it.
        progress: called with the best so far and the fraction of the time.
        **options: those of :func:`shardcore.jax.lower`, as ``mesh`` and ``in_shardings``, for the
            step, and of :func:`shardcore.cost`.

    Raises:
        PlanError: it is no loss (``not-a-loss``), has no layers (``no-layers``), or nothing fits
            (``does-not-fit``).
        LoweringError: JAX is not installed (``lowering``).
        ValueError: ``memory``, ``host_memory`` or ``seconds`` is none of these.
        ShardcoreError: as for :func:`shardcore.jax.lower` and :func:`shardcore.cost`.
    """
    if find_spec("jax") is None:
        message = "layers are functions of JAX, which is not installed"
        hint = "pip install 'shardcore[jax]', on Python 3.11 or later"
        raise LoweringError(Diagnostic("lowering", message, hint))
    # The calculus and JAX are not imported with the package.
    from shardcore.calculus.hardware import Hardware
    from shardcore.calculus.hardware import hardware as find_hardware
    from shardcore.remat.loss import Loss
    from shardcore.remat.search import Search
    from shardcore.remat.trials import OfLoss, Trials

    if not callable(loss):
        message = f"a {type(loss).__name__} is no function: layers are changed before lowering"
        hint = "give the JAX function whose value is the loss, and its arguments"
        raise PlanError(Diagnostic("not-a-loss", message, hint))
    expect(seconds, Real)
    if not seconds > 0:
        raise ValueError(f"seconds are {shown(seconds)}, no time to search in")
    chip = hardware
    if not isinstance(chip, Hardware):
        chip = find_hardware(chip, options.get("hardware_file"))
    limit = chip.hbm_bytes if memory is None else _bytes("memory", memory)
    host_limit = float("inf") if host_memory is None else _bytes("host_memory", host_memory)
    lowering = {name: options.pop(name) for name in _LOWERING if name in options}
    programs = OfLoss(Loss(loss), args, chip, step, lowering, options)
    trials = Trials(programs, chip, (limit, host_limit), float(seconds), progress)
    Search(trials).run()
    best = trials.best
    if best is None:
        least = min(trials.known.values(), key=lambda trial: trial.peak_bytes)
        message = (
            f"no choice fits {format_bytes(limit)}: the least is {format_bytes(least.peak_bytes)}, "
            f"{least.label}"
        )
        hint = "shard the program over more devices, or make the batch smaller"
        raise PlanError(Diagnostic("does-not-fit", message, hint))
    program = trials.program
    setting = best.setting or ()
    return Remat(
        best,
        tuple(trials.known.values()),
        program.stacks,
        program.used(setting),
        chip,
        limit,
        host_limit,
        "seconds" if trials.was_cut else "done",
        programs.loss,
    )


def _bytes(name: str, given: int | str) -> int:
    found = parse_bytes(given)
    if found is None:
        raise ValueError(f'{name} is {shown(given)}, write "16GiB" or a number of bytes')
    return found
