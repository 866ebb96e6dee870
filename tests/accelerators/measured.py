"""What XLA's compiler for GPUs makes of the models of `tests.shardy.xla`, kept in `figures.json`.

Figures are kept with a hash of the text that they are of. `python -m tests.accelerators` writes
them again, where XLA's compiler for GPUs is installed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.accelerators.hlo import analysis, collectives, num_kernels
from tests.shardy.xla.measured import Memory, key

KEPT = Path(__file__).with_name("figures.json")


@dataclass(frozen=True)
class Measured(Memory):
    """Bytes of one device, and the collectives of the compiled program."""

    collectives: dict[str, list[int]]
    """Runs and bytes by kind; see :func:`tests.accelerators.hlo.collectives`."""
    kernels: int = 0
    """Kernels, those in loops once."""
    accessed: int = 0
    """Bytes that they read and write, as XLA's analysis counts, loops once."""
    error: str | None = None


@cache
def kept() -> dict[str, Any]:
    return dict(json.loads(KEPT.read_text()))


def measured(name: str) -> Measured:
    """The figures of the program called `name`."""
    return Measured(**kept()[name])


def measure(text: str) -> Measured:
    """The figures of `text`, compiled now."""
    from tests.accelerators.oracle import executable

    try:
        run = executable(text)
    except Exception as error:
        return Measured(key(text), 0, 0, 0, 0, {}, 0, 0, str(error).splitlines()[0][:200])
    memory = run.get_compiled_memory_stats()
    hlo = run.hlo_modules()[0].to_string()
    return Measured(
        key(text),
        memory.argument_size_in_bytes,
        memory.output_size_in_bytes,
        memory.alias_size_in_bytes,
        memory.temp_size_in_bytes,
        collectives(hlo),
        num_kernels(hlo),
        round(analysis(hlo)["bytes accessed"]),
    )


def measure_all(programs: dict[str, str]) -> None:
    """Writes the figures of all programs."""
    figures = {name: asdict(measure(text)) for name, text in programs.items()}
    KEPT.write_text(json.dumps(figures, indent=1) + "\n")
