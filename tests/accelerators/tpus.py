"""Memory, kernels and collectives on TPUs, beside those that XLA's compiler for TPUs makes.

    python -m tests.accelerators.tpus --chip v6e              prints the ratios, ours over XLA's
    python -m tests.accelerators.tpus --chip v6e --measure    compiles the programs again

`memory_analysis()` counts the holes between temporary buffers twice, or temporaries not at all;
beside it stands what XLA reserves (see `shardcore.xla.buffers`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

import shardcore

from tests.accelerators import sent
from tests.accelerators.measured import (
    CHIPS,
    compiled,
    kept,
    large,
    measure_all,
    models,
    more,
    path,
    text,
)

TPUS = [chip for chip in CHIPS if CHIPS[chip].startswith("tpu")]


def cost(chip: str, name: str) -> shardcore.Cost:
    """Ours of the program called `name`."""
    return shardcore.Module.parse(text(name)).propagate(legalize_chlo=True).cost(CHIPS[chip])


def ratios(chip: str, programs: Iterable[str]) -> dict[str, float]:
    """Our peaks over XLA's."""
    return {name: cost(chip, name).peak_bytes / kept(chip)[name].peak for name in programs}


def of_reserved(chip: str, found: dict[str, float]) -> dict[str, float]:
    """Our peaks over the bytes that XLA reserves, of `ratios`, as far as these are kept."""
    rows = kept(chip)
    known = {name: ratio for name, ratio in found.items() if rows[name].heap is not None}
    return {name: ratio * rows[name].peak / rows[name].reserved for name, ratio in known.items()}


def moved(chip: str, programs: Iterable[str]) -> dict[str, dict[str, float]]:
    """Our numbers of kernels and bytes accessed over XLA's, of those that were counted."""
    found: dict[str, dict[str, float]] = {"kernels": {}, "accessed": {}}
    for name in programs:
        row, ours = kept(chip)[name], cost(chip, name)
        if row.kernels is not None:
            found["kernels"][name] = len(ours.kernels) / row.kernels
        if row.accessed is not None:
            found["accessed"][name] = ours.bytes_accessed / row.accessed
    return found


def near(found: dict[str, float], within: float) -> int:
    """How many are so near to XLA's."""
    return sum(abs(ratio - 1) <= within for ratio in found.values())


def near_collectives(chip: str) -> list[dict[str, bool]]:
    """For each model whether bytes and runs of its collectives are near XLA's."""
    return [sent.near(cost(chip, name), kept(chip)[name]) for name in compiled(chip)]


def show(chip: str) -> None:
    """Print ratios."""
    groups = {"models": compiled(chip), "large programs": large(chip), "more": more(chip)}
    for kind, names in ((kind, names) for kind, names in groups.items() if names):
        found = ratios(chip, names)
        reserved = of_reserved(chip, found)
        for name, ratio in sorted(found.items(), key=lambda row: row[1]):
            beside = f"{reserved[name]:.2f}" if name in reserved else ""
            print(f"{ratio:8.2f} {beside:>5} {name}")
        for what, rows in (("memory_analysis()", found), ("reserved bytes", reserved)):
            if not rows:
                continue
            shares = (f"{near(rows, within)} within {within:.0%}" for within in (0.05, 0.1, 0.25))
            print(f"peaks of {len(rows)} {kind} beside {what}: {', '.join(shares)}")
        for what, rows in moved(chip, names).items():
            shares = (f"{near(rows, within)} within {within:.0%}" for within in (0.1, 0.2, 0.25))
            print(f"{what} of {len(rows)} {kind}: {', '.join(shares)}")
    print(sent.summary(near_collectives(chip)))


def main() -> None:
    """Show or measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chip", choices=TPUS, default="v5e")
    parser.add_argument("--measure", action="store_true", help=f"write {path('CHIP').name}")
    options = parser.parse_args()
    if options.measure:
        measure_all(options.chip, [*models(), *large(options.chip), *more(options.chip)])
    else:
        show(options.chip)


if __name__ == "__main__":
    main()
