"""What some layers take in each phase."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Part:
    """The cost of some layers on one device, in seconds and bytes for the whole batch."""

    forward: float = 0.0
    """Seconds of the forward pass that are divided among micro-batches."""
    backward_input: float = 0.0
    """Seconds of the gradient of the input, divided likewise."""
    backward_weight: float = 0.0
    """Seconds of the gradients of the parameters, divided likewise."""
    fixed_forward: float = 0.0
    """Seconds of the forward pass that every micro-batch takes, however small: gathering and
    converting parameters."""
    fixed_backward: float = 0.0
    """Seconds of the backward pass that every micro-batch takes."""
    update: float = 0.0
    """Seconds once per step: reducing gradients, and the optimizer."""
    flops: int = 0
    moved_bytes: int = 0
    """Bytes read from and written to memory."""
    parameter_bytes: int = 0
    """Bytes of parameters and of their optimizer state."""
    gradient_bytes: int = 0
    """Bytes of their gradients before reduction."""
    prepared_bytes: int = 0
    """Bytes of parameters as they are gathered and converted, if that is kept until the end of the
    step."""
    activation_bytes: int = 0
    """Bytes that the forward pass keeps for the backward pass."""
    delayed_bytes: int = 0
    """Bytes that the gradient of the input keeps for the gradients of the parameters besides, if
    these are computed later."""

    @property
    def seconds(self) -> float:
        """Seconds of the step with one micro-batch."""
        times = self.forward + self.backward_input + self.backward_weight
        return times + self.fixed_forward + self.fixed_backward + self.update

    def __add__(self, other: Part) -> Part:
        """Return the sums."""
        its = vars(other)
        return _part({name: at + its[name] for name, at in vars(self).items()})

    def __sub__(self, other: Part) -> Part:
        """Return the differences."""
        its = vars(other)
        return _part({name: at - its[name] for name, at in vars(self).items()})

    def at_least_nothing(self) -> Part:
        """Return it with 0 for what is below."""
        return Part(**{name: max(at, 0) for name, at in vars(self).items()})

    def scaled(self, factor: float) -> Part:
        """Return a copy with its seconds multiplied by ``factor``."""
        names = ("forward", "backward_input", "backward_weight", "fixed_forward", "fixed_backward")
        times = {name: getattr(self, name) * factor for name in (*names, "update")}
        return replace(self, **times)

    def divided(self, count: int) -> Part:
        """Return one of ``count`` equal parts."""
        if count == 1:
            return self
        shares: dict[str, Any] = {
            name: at / count if isinstance(at, float) else -(-at // count)
            for name, at in vars(self).items()
        }
        return Part(**shares)

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**vars(self), "seconds": self.seconds}


def _part(fields: dict[str, Any]) -> Part:
    """A part with ``fields``, which are all that it has: sums are made by the million."""
    found = object.__new__(Part)
    vars(found).update(fields)
    return found
