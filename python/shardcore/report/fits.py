"""Says in words whether the peak fits into the memory of the chip."""

from __future__ import annotations

import math

from shardcore.units import format_bytes, format_bytes_apart


def fit_text(peak: int, hardware: str, limit: float) -> str:
    """Return ``peak 84.3 GiB: DOES NOT FIT tpu-v5e (16.0 GiB)``, or that it fits."""
    if math.isinf(limit):
        return f"peak {format_bytes(peak)}: the memory of {hardware} is not known"
    taken, has = format_bytes_apart(peak, limit)
    fits = "fits" if peak <= limit else "DOES NOT FIT"
    return f"peak {taken}: {fits} {hardware} ({has})"
