"""How an op of the global program is computed in the per-device program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """How one op of the global program is computed."""

    name: str
    """The op's name, such as ``stablehlo.add``."""
    kind: str
    """``local``, ``collective`` or ``gathered``."""
    reason: str
    """What is sent or gathered, and why; empty for a local op."""
    location: str | None
    """The op's location in the user's source."""
    number: int | None = field(default=None, repr=False, compare=False)
    """The op's number in the global program."""

    @property
    def is_whole(self) -> bool:
        """Whether every device computes the whole op, because no rule says how to split it."""
        return self.kind == "gathered" and self.reason.startswith("made whole")

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "kind": self.kind,
            "reason": self.reason,
            "location": self.location,
        }
