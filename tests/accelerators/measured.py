"""What XLA's compilers for GPUs and TPUs make of programs, kept in a file for each chip.

`figures_h100.json` has the models of `tests.shardy.xla` for eight H100, `figures_v5e.json`,
`figures_v6e.json` and `figures_v5p.json` for eight TPUs. Those of H100 and v5e also have the
programs in `large/`: training steps, prefill, decoding and single layers of the size of real ones,
for a mesh of 2 by 4; and those in `more/`, of the same sizes, which were compiled when the rules
for the others had been made. Some of the models fit into the vector memory of a core as a whole.
Figures are kept
with a hash of the text that they are of. `python -m tests.accelerators --measure` and
`python -m tests.accelerators.tpus --chip v5e --measure` write them again, where the compilers are
installed.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from shardcore.calculus.hardware import hardware
from shardcore.costs.compilers import compiler_of
from shardcore.errors import CompilerError
from shardcore.xla import CompiledProgram, compile_for, target_of

from tests.shardy.xla import measured as on_hosts
from tests.shardy.xla import model_rows
from tests.shardy.xla.compiled import partitions
from tests.shardy.xla.measured import key

CHIPS = {"h100": "h100", "v5e": "tpu-v5e", "v6e": "tpu-v6e", "v5p": "tpu-v5p"}
"""The names of the chips in costs, by those in the names of files."""
_LARGE, _MORE = (Path(__file__).with_name(name) for name in ("large", "more"))


@dataclass(frozen=True)
class Measured(on_hosts.Memory):
    """Bytes of one device in its memory, and what it runs."""

    heap: int | None = None
    """Bytes that buffer assignment reserves for temporaries; `None` if they were not read off."""
    collectives: dict[str, list[int]] = field(default_factory=dict)
    """Runs and bytes by kind; see `shardcore.xla.Sent`."""
    kernels: int | None = None
    """Kernels, those in loops once; `None` if they were not counted."""
    accessed: int | None = None
    """Bytes that they read and write, as XLA's analysis counts, loops once; `None` likewise."""
    error: str | None = None
    """Why it does not compile."""

    @property
    def reserved(self) -> int:
        """Arguments, outputs and what is reserved for temporaries."""
        assert self.heap is not None
        return self.ports + self.heap

    @staticmethod
    def of(text: str, made: CompiledProgram) -> Measured:
        """The figures of `text`, compiled."""
        sent = {kind: [round(row.runs), round(row.bytes)] for kind, row in made.collectives.items()}
        return Measured(
            key(text),
            made.argument_bytes,
            made.output_bytes,
            made.alias_bytes,
            made.temp_bytes,
            made.heap_bytes,
            sent,
            made.num_kernels,
            made.bytes_accessed,
        )


def path(chip: str) -> Path:
    """The file of the figures of a chip."""
    return Path(__file__).with_name(f"figures_{chip}.json")


@cache
def kept(chip: str) -> dict[str, Measured]:
    """XLA's figures for a chip, by program."""
    rows = json.loads(path(chip).read_text())
    return {name: Measured(**row) for name, row in rows.items()}


def models() -> list[str]:
    """The models that other tests compile, too."""
    return model_rows.names()


def compiled(chip: str) -> list[str]:
    """The models that compile for a chip."""
    return [name for name in models() if kept(chip)[name].error is None]


def large(chip: str) -> list[str]:
    """The programs of the size of real ones that were compiled for a chip."""
    return _compiled_in(_LARGE, chip)


def more(chip: str) -> list[str]:
    """Those that were compiled when the rules for the others had been made."""
    return _compiled_in(_MORE, chip)


def _compiled_in(folder: Path, chip: str) -> list[str]:
    names = sorted(file.name.removesuffix(".mlir.gz") for file in folder.glob("*.gz"))
    return [name for name in names if name in kept(chip) and kept(chip)[name].error is None]


def text(name: str) -> str:
    """The program called `name`."""
    for file in (folder / f"{name}.mlir.gz" for folder in (_LARGE, _MORE)):
        if file.exists():
            return gzip.decompress(file.read_bytes()).decode()
    return model_rows.text(name)


def compile_on(chip: str, text: str, **options: Any) -> CompiledProgram:
    """What XLA makes of `text` for a chip, with options of XLA."""
    found = hardware(CHIPS[chip])
    target = target_of(compiler_of(found, None), found, partitions(text))
    return compile_for(target, text, options=options)


def measure(chip: str, text: str) -> Measured:
    """The figures of `text`, compiled now."""
    try:
        return Measured.of(text, compile_on(chip, text))
    except CompilerError as error:
        return Measured(key(text), 0, 0, 0, 0, error=error.message[:200])


def write(chip: str, rows: dict[str, Measured]) -> None:
    """Keep the figures of all programs for a chip."""
    lines = (f"{json.dumps(name)}: {json.dumps(asdict(row))}" for name, row in rows.items())
    path(chip).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def measure_all(chip: str, names: list[str]) -> None:
    """Keep the figures of programs for a chip; each compiles in a process of its own."""
    rows = {}
    for at, name in enumerate(names, 1):
        rows[name] = measure(chip, text(name))
        print(f"{at}/{len(names)} {name} {rows[name].error or ''}", flush=True)
    write(chip, rows)
