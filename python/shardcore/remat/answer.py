"""What layers should keep: the answer, and what was tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shardcore.remat.choices import Choice, Setting, each, label

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.remat.loss import Loss
    from shardcore.remat.programs import Stack
    from shardcore.remat.values import Value


@dataclass(frozen=True)
class Trial:
    """A program whose layers keep what was chosen, and what it costs."""

    setting: Setting | None
    """``None``: the program as it was given."""
    step_seconds: float
    peak_bytes: int
    """Bytes of a device at the peak."""
    host_bytes: int
    """Bytes in the memory of its host at the peak."""

    @property
    def label(self) -> str:
        """What is kept, in words."""
        return "as given" if self.setting is None else label(self.setting)

    def fits(self, limit: float, host_limit: float) -> bool:
        """Return whether it takes no more than this memory of a device and of its host."""
        return self.peak_bytes <= limit and self.host_bytes <= host_limit

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "label": self.label,
            "step_seconds": self.step_seconds,
            "peak_bytes": self.peak_bytes,
            "host_bytes": self.host_bytes,
        }


@dataclass(frozen=True, repr=False)
class Remat:
    """What each layer keeps, computes anew or has the host keep, so that a step is fastest within
    the memory of a device.

    ``str()`` is a report, :meth:`to_python` the code, :meth:`apply` a function that runs.
    """

    best: Trial
    trials: tuple[Trial, ...]
    """All that was tried, policies of JAX's first."""
    stacks: tuple[Stack, ...]
    """The layers that were found."""
    values: tuple[tuple[Value, ...], ...]
    """Of the layers of each stack the values with names that the best uses, in program order."""
    hardware: Hardware
    limit: float
    """Bytes of memory of a device."""
    host_limit: float
    """Bytes of memory of the host of a device."""
    stopped: str
    """``done``, or ``seconds`` if the time was up."""
    _loss: Loss = field(repr=False)

    @property
    def setting(self) -> Setting:
        """What the layers of each stack keep, from the first on."""
        assert self.best.setting is not None
        return self.best.setting

    @property
    def whole(self) -> Trial:
        """The program without recomputation."""
        [found] = (trial for trial in self.trials if _is_whole(trial))
        return found

    @property
    def best_built_in(self) -> Trial | None:
        """The fastest that fits of those without names: one policy of JAX's for all layers, or no
        recomputation. ``None`` if none fits."""
        found = [
            trial
            for trial in self.trials
            if trial.fits(self.limit, self.host_limit) and _is_built_in(trial)
        ]
        return min(found, key=lambda trial: trial.step_seconds, default=None)

    def policies(self) -> tuple[tuple[Callable[..., Any] | None, ...], ...]:
        """Return for each stack the policy of each layer, as ``jax.checkpoint`` takes it; ``None``
        is a layer that is not checkpointed.
        """
        return tuple(
            tuple(one.policy_of_jax() if one.is_checkpointed else None for one in each(runs))
            for runs in self.setting
        )

    def apply(self) -> Callable[..., Any]:
        """Return the function that was given, with the same value and gradients, whose layers keep
        what was chosen. It can be jitted, differentiated and called with other arguments.
        """
        return self._loss.with_setting(self.setting)

    def to_python(self) -> str:
        """Return what to write in the program: names of values, and the policy of each stack."""
        from shardcore.remat.code import to_python

        return to_python(self.stacks, self.setting, self.values)

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        stacks = [
            {
                **stack.record(),
                "choices": [{"layers": count, **choice.record()} for count, choice in runs],
                "values": [value.record() for value in values],
            }
            for stack, runs, values in zip(self.stacks, self.setting, self.values, strict=True)
        ]
        return {
            "hardware": self.hardware.name,
            "limit_bytes": self.limit,
            "best": self.best.record(),
            "without_recomputation": self.whole.record(),
            "best_built_in": self.best_built_in and self.best_built_in.record(),
            "stacks": stacks,
            "trials": [trial.record() for trial in self.trials],
            "stopped": self.stopped,
            "code": self.to_python(),
        }

    def __str__(self) -> str:
        from shardcore.report.remat_table import remat_text

        return remat_text(self)

    def __repr__(self) -> str:
        return (
            f"<shardcore.Remat: {self.best.label}, {self.best.step_seconds:.4g} s, "
            f"{self.best.peak_bytes} bytes at the peak, of {len(self.trials)}>"
        )


def _choices(trial: Trial) -> set[Choice]:
    return {choice for runs in trial.setting or () for _, choice in runs}


def _is_whole(trial: Trial) -> bool:
    return trial.setting is not None and {one.policy for one in _choices(trial)} == {"none"}


def _is_built_in(trial: Trial) -> bool:
    found = _choices(trial)
    return len(found) == 1 and all(not one.names for one in found)
