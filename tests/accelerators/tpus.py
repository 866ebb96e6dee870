"""Memory and collectives of programs on TPUs, beside those that XLA's compiler for TPUs makes.

`figures_v5e.json` has what that compiler says of the models of `tests.shardy.xla`, and of the
programs in `large/`: training steps, prefill, decoding and single layers of the size of real ones,
for a mesh of 2 by 4. Some of the models fit into the vector memory of a core as a whole.
`python -m tests.accelerators.tpus --measure` writes it anew, where `jax[tpu]` is installed;
without arguments the command prints the ratios. `memory_analysis()` counts the holes between
temporary buffers twice, or temporaries not at all; beside it stands what XLA reserves (see
`tests.accelerators.buffers`).
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import shardcore

from tests.accelerators import sent
from tests.accelerators.buffers import heap_bytes
from tests.accelerators.hlo import collectives
from tests.shardy.xla import measured, model_rows
from tests.shardy.xla.measured import key

KEPT = Path(__file__).with_name("figures_v5e.json")
_LARGE = Path(__file__).with_name("large")
HARDWARE = "tpu-v5e"


@dataclass(frozen=True)
class Memory(measured.Memory):
    """Bytes of one device in HBM."""

    heap: int | None = None
    """Bytes that buffer assignment reserves for temporaries; `None` if they were not read off."""
    collectives: dict[str, list[int]] | None = None
    """Runs and bytes by kind, of the models; see :func:`tests.accelerators.hlo.collectives`."""

    @property
    def reserved(self) -> int:
        """Arguments, outputs and what is reserved for temporaries."""
        assert self.heap is not None
        return self.ports + self.heap


def models() -> list[str]:
    """The models that other tests compile, too."""
    return model_rows.names()


def large() -> list[str]:
    """Programs of the size of real ones."""
    return sorted(path.name.removesuffix(".mlir.gz") for path in _LARGE.glob("*.gz"))


def text(name: str) -> str:
    """The program called `name`."""
    path = _LARGE / f"{name}.mlir.gz"
    return gzip.decompress(path.read_bytes()).decode() if path.exists() else model_rows.text(name)


@cache
def kept() -> dict[str, Memory]:
    """XLA's figures, by program."""
    rows = json.loads(KEPT.read_text())
    return {name: Memory(**row) for name, row in rows.items()}


def cost(name: str) -> shardcore.Cost:
    """Ours of the program called `name`."""
    return shardcore.Module.parse(text(name)).propagate(legalize_chlo=True).cost(HARDWARE)


def near_collectives(name: str, own: shardcore.Cost) -> dict[str, bool]:
    """Whether bytes and runs of the collectives of a model are near XLA's, for each kind."""
    theirs = kept()[name].collectives
    assert theirs is not None
    return sent.near(sent.collectives(own), theirs)


def ratios(programs: Iterable[str]) -> dict[str, float]:
    """Our peaks over XLA's."""
    return {name: cost(name).peak_bytes / kept()[name].peak for name in programs}


def of_reserved(found: dict[str, float]) -> dict[str, float]:
    """Our peaks over the bytes that XLA reserves, of `ratios`, as far as these are kept."""
    rows = kept()
    known = {name: ratio for name, ratio in found.items() if rows[name].heap is not None}
    return {name: ratio * rows[name].peak / rows[name].reserved for name, ratio in known.items()}


def near(found: dict[str, float], within: float) -> int:
    """How many are so near to XLA's."""
    return sum(abs(ratio - 1) <= within for ratio in found.values())


def measure(text: str) -> Memory:
    """What XLA's compiler says of `text`."""
    from tests.accelerators.oracle import TPUS, executable

    compiled = executable(text, TPUS)
    memory = compiled.get_compiled_memory_stats()
    return Memory(
        key(text),
        memory.argument_size_in_bytes,
        memory.output_size_in_bytes,
        memory.alias_size_in_bytes,
        memory.temp_size_in_bytes,
        heap_bytes(compiled.serialize()),
        collectives(compiled.hlo_modules()[0].to_string()),
    )


def main() -> None:
    if sys.argv[1:] == ["--measure"]:
        rows = {name: asdict(measure(text(name))) for name in (*models(), *large())}
        lines = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return
    for kind, names in (("models", models()), ("large programs", large())):
        found = ratios(names)
        reserved = of_reserved(found)
        for name, ratio in sorted(found.items(), key=lambda row: row[1]):
            beside = f"{reserved[name]:.2f}" if name in reserved else ""
            print(f"{ratio:8.2f} {beside:>5} {name}")
        for what, rows in (("memory_analysis()", found), ("reserved bytes", reserved)):
            shares = (f"{near(rows, within)} within {within:.0%}" for within in (0.05, 0.1, 0.25))
            print(f"peaks of {len(rows)} {kind} beside {what}: {', '.join(shares)}")
    print(sent.summary(near_collectives(name, cost(name)) for name in models()))


if __name__ == "__main__":
    main()
