"""Programs with what layers keep, lowered and costed, each once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from shardcore.compilers import PLATFORMS
from shardcore.costs.compilers import compiler_of
from shardcore.remat.answer import Trial
from shardcore.remat.choices import Setting
from shardcore.remat.loss import Loss, Program, has_aux

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware

ABOUT = 1.002
"""Times of steps that differ by less are about the same."""

MakeStep = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes the function whose cost counts of the loss."""


class Programs(Protocol):
    """Programs whose layers keep something, and what they cost."""

    @property
    def program(self) -> Program:
        """The loss with the layers."""
        ...

    def trial(self, setting: Setting | None) -> Trial:
        """Return what the program costs whose layers keep what ``setting`` says; ``None`` is the
        program as it is."""
        ...


class OfLoss:
    """Programs that are made of a loss."""

    def __init__(
        self,
        loss: Loss,
        arguments: tuple[Any, ...],
        chip: Hardware,
        step: MakeStep | None,
        lowering: dict[str, Any],
        costing: dict[str, Any],
    ) -> None:
        self.loss = loss
        self._chip, self._arguments, self._step = chip, arguments, step
        self._lowering, self._costing = lowering, costing
        self._lowering.setdefault("platform", PLATFORMS[compiler_of(chip, None)])
        if step is None:
            aux = has_aux(loss.program(arguments, {}))
            self._step = _gradient_with_aux if aux else _gradient

    @property
    def program(self) -> Program:
        """The loss, once it was traced."""
        assert self.loss.first is not None, "the step calls the loss"
        return self.loss.first

    def trial(self, setting: Setting | None) -> Trial:
        """Lower the program, and return what it costs."""
        import shardcore.jax

        assert self._step is not None
        function = self.loss.recorded if setting is None else self.loss.with_setting(setting)
        step = self._step(function)
        lowered = shardcore.jax.lower(step, *self._arguments, **self._lowering)
        cost = lowered.propagate().cost(self._chip, **self._costing)
        return Trial(setting, cost.step_seconds, cost.peak_bytes, cost.host_memory_peak_bytes)


class Trials:
    """What was tried."""

    def __init__(
        self,
        programs: Programs,
        chip: Hardware,
        limits: tuple[float, float],
        seconds: float,
        progress: Callable[[str, float], object] | None,
    ) -> None:
        self._programs, self.chip, self.limits = programs, chip, limits
        self._progress, self._start, self._seconds = progress, time.monotonic(), seconds
        self.known: dict[Setting | None, Trial] = {}
        self.was_cut = False
        """Whether the time decided what was tried."""
        self.run(None)
        self.program: Program = programs.program
        self.given_names = {
            (at, value.name)
            for at, values in enumerate(self.program.values)
            for value in values
            if value.is_given
        }
        """Names that the program has, with their stacks."""

    def is_late(self, share: float = 1.0) -> bool:
        """Return whether this part of the time is up, which then cuts the search short."""
        is_late = time.monotonic() - self._start > self._seconds * share
        self.was_cut = self.was_cut or is_late
        return is_late

    def run(self, setting: Setting | None) -> Trial:
        """Return what the program costs whose layers keep what ``setting`` says; ``None`` is the
        program as it is.
        """
        if setting not in self.known:
            self.known[setting] = self._programs.trial(setting)
            self._report()
        return self.known[setting]

    def fits(self, trial: Trial) -> bool:
        """Return whether ``trial`` is within the limits."""
        return trial.fits(*self.limits)

    @property
    def best(self) -> Trial | None:
        """The fastest that fits; of those that are about as fast, that with the fewest names."""
        found = [one for one in self.known.values() if self.fits(one) and one.setting is not None]
        least = min((one.step_seconds for one in found), default=0.0) * ABOUT
        found = [one for one in found if one.step_seconds <= least]
        return min(found, key=lambda one: (self._names(one), one.step_seconds), default=None)

    def _names(self, trial: Trial) -> tuple[int, int, int]:
        """How many names ``trial`` has that the program does not have, how many in all, and how
        many of these are of values on the host.
        """
        choices = [
            (at, choice) for at, runs in enumerate(trial.setting or ()) for _, choice in runs
        ]
        names = [(at, name) for at, choice in choices for name in choice.names]
        moved = sum(len(choice.offloaded) for _, choice in choices)
        return len({*names} - self.given_names), len(names), moved

    def _report(self) -> None:
        if self._progress is not None:
            best = self.best
            text = "" if best is None else f"{best.step_seconds:.4g} s"
            share = min(1.0, (time.monotonic() - self._start) / self._seconds)
            self._progress(text, share)


def _gradient(loss: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    return jax.value_and_grad(loss)


def _gradient_with_aux(loss: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    return jax.value_and_grad(loss, has_aux=True)
