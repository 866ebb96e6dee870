"""What XLA makes of the models, kept in `figures.json`, since compiling all of them takes minutes.

Figures are kept with a hash of the text that they are of: those of a model that lowers to another
text are measured anew when somebody asks. `python -m tests.shardy.xla --measure` writes them again.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.shardy.xla import compiled, sent

KEPT = Path(__file__).with_name("figures.json")


@dataclass(frozen=True)
class Memory:
    """Bytes of one device, as `memory_analysis()` has them."""

    key: str
    """A hash of the program's text."""
    argument: int
    output: int
    alias: int
    temp: int

    @property
    def ports(self) -> int:
        """Arguments and outputs."""
        return self.argument + self.output - self.alias

    @property
    def peak(self) -> int:
        """Arguments, outputs and temporaries."""
        return self.ports + self.temp


@dataclass(frozen=True)
class Measured(Memory):
    """Figures of one device, in bytes and FLOPs."""

    # Bytes sent by kind: right after the partitioner, and in the compiled program.
    spmd: dict[str, float]
    final: dict[str, float]
    flops: float


def key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def kept() -> dict[str, Any]:
    return dict(json.loads(KEPT.read_text()))


def measured(name: str, text: str) -> Measured:
    """The figures of the model called `name`, from the file if it has those of `text`."""
    known = kept().get(name)
    if known is not None and known["key"] == key(text):
        return Measured(**known)
    return measure(text)


@cache
def measure(text: str) -> Measured:
    """The figures of `text`, which XLA compiles for host devices with the passes of its default."""
    with tempfile.TemporaryDirectory() as folder:
        run = compiled.executable(
            text,
            xla_dump_to=folder,
            xla_dump_hlo_pass_re="spmd-partitioning",
            xla_dump_emitter_re="none",
        )
        [path] = Path(folder).glob("*after_spmd-partitioning*.txt")
        partitioned = path.read_text()
    memory, devices = run.get_compiled_memory_stats(), compiled.partitions(text)
    return Measured(
        key=key(text),
        argument=memory.argument_size_in_bytes,
        output=memory.output_size_in_bytes,
        alias=memory.alias_size_in_bytes,
        temp=memory.temp_size_in_bytes,
        spmd=dict(sent.count(partitioned, devices)),
        final=dict(sent.count(run.hlo_modules()[0].to_string(), devices)),
        flops=compiled.flops(text),
    )


def measure_all(programs: Iterable[tuple[str, str]]) -> None:
    """Writes the figures of all programs, each a name and a text."""
    figures = {name: asdict(measured(name, text)) for name, text in programs}
    KEPT.write_text(json.dumps(figures, indent=1) + "\n")
