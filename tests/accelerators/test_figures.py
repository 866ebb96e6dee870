"""Peaks, kernels and memory traffic beside those of XLA's compiler for GPUs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import shardcore

from tests.accelerators import sent
from tests.accelerators.measured import CHIPS, compiled, kept, large, more, text
from tests.deep import deep, sampled
from tests.shardy.xla.measured import key

CHIP = "h100"
COMPILED = compiled(CHIP)

# Of the 102 programs that compile, how many figures are so near to XLA's, and how many without
# what only that compiler does. It is not enough: the aim is 90 % of peaks within a twentieth, 80 %
# of the numbers of kernels within a fifth, 90 % of the bytes that they move within a tenth.
WITHIN = {
    "peak": {0.05: (75, 28), 0.1: (88, 43), 0.25: (100, 80)},
    "kernels": {0.1: (75, 8), 0.2: (97, 20), 0.25: (99, 24)},
    "accessed": {0.1: (92, 30), 0.2: (98, 62), 0.25: (99, 75)},
}
# The same of 18 programs of the size of real ones, and of 29 that were compiled later.
LARGE = {
    "peak": {0.05: 15, 0.1: 17, 0.25: 18},
    "kernels": {0.1: 14, 0.2: 14, 0.25: 15},
    "accessed": {0.1: 16, 0.2: 16, 0.25: 17},
}
MORE = {
    "peak": {0.05: 21, 0.1: 24, 0.25: 29},
    "kernels": {0.1: 20, 0.2: 26, 0.25: 28},
    "accessed": {0.1: 24, 0.2: 26, 0.25: 26},
}
# What was read off the process of fusion that XLA dumps, and loops that carry what products read
# in the layout of these.
FUSED = ("chain-grad", "lm-tp", "mlp-f32")
CARRIED = ("decode-a", "decode1b", "decode-scan-kv")
# Products with vectors, rows that do not fit on the chip, the layouts of products, and sorts.
REWRITTEN = ("decode-unrolled", "lm-dp", "lm-scan-dots", "topk")
# What is written over an operand of a reduction, names that nothing reads, and attentions whose
# weights two products read, each in a layout of its own.
OVERWRITTEN = ("flash-chunks", "waves-grid")
UNREAD = ("routed-capacity", "decode-b")
TRANSPOSED = ("lm-scan-dots", "llama-data")
# Of how many the bytes of each kind of collectives that sends more than 1 % of all are within a
# twentieth, and their number within a tenth. Asked for are 90 % and 80 %.
COLLECTIVES = {"bytes": 89, "runs": 81}


def figures(name: str, compiler: str) -> dict[str, int]:
    """Ours of a program; kernels in loops count once."""
    result = shardcore.Module.parse(text(name)).propagate(legalize_chlo=True)
    cost = result.cost(CHIPS[CHIP], compiler=compiler)
    accessed = sum(kernel.bytes_accessed for kernel in cost.kernels)
    return {"peak": cost.peak_bytes, "kernels": len(cost.kernels), "accessed": accessed}


def ratios(programs: Iterable[str], compiler: str = "xla-gpu") -> dict[str, dict[str, float]]:
    """Our figures over those of XLA, by program and figure."""
    return {
        name: {
            figure: ours / max(getattr(kept(CHIP)[name], figure), 1)
            for figure, ours in figures(name, compiler).items()
        }
        for name in programs
    }


def near_collectives(name: str) -> dict[str, bool]:
    """Whether the bytes and the number of ours are near those of XLA, for each kind."""
    result = shardcore.Module.parse(text(name)).propagate(legalize_chlo=True)
    return sent.near(result.cost(CHIPS[CHIP]), kept(CHIP)[name])


def near(found: dict[str, dict[str, float]], figure: str, within: float) -> int:
    """How many programs have a figure so near to XLA's."""
    return sum(abs(row[figure] - 1) <= within for row in found.values())


@pytest.mark.parametrize("name", sampled(COMPILED, 8))
def test_arguments_and_donated_outputs_are_those_of_xla(name: str) -> None:
    cost = shardcore.Module.parse(text(name)).propagate(legalize_chlo=True).cost(CHIPS[CHIP])
    theirs = kept(CHIP)[name]
    assert theirs.key == key(text(name))
    assert (cost.argument_bytes, cost.alias_bytes) == (theirs.argument, theirs.alias)
    assert cost.compiler == "xla-gpu"
    assert max(point.bytes for point in cost.memory_timeline().points) == cost.peak_bytes
    assert sum(value.bytes for value in cost.live_at_peak) == cost.peak_bytes
    assert all(kernel.count >= 0 and kernel.seconds >= 0 for kernel in cost.kernels)


@pytest.mark.parametrize("name", [*FUSED, *CARRIED, *REWRITTEN, *OVERWRITTEN, *UNREAD, *TRANSPOSED])
def test_programs_of_real_size_take_the_memory_that_xla_reserves(name: str) -> None:
    assert kept(CHIP)[name].key == key(text(name))
    assert abs(ratios([name])[name]["peak"] - 1) <= 0.1


def test_holes_between_temporaries_count() -> None:
    result = shardcore.Module.parse(text("adapters-grid")).propagate(legalize_chlo=True)
    cost = result.cost(CHIPS[CHIP])
    # Temporaries that are packed by size leave gaps that no other one fits into.
    assert cost.hole_bytes > 3 << 20
    assert abs(cost.peak_bytes / kept(CHIP)["adapters-grid"].peak - 1) < 0.05
    [hole] = [row for row in cost.live_at_peak if row.name == "holes between buffers"]
    assert hole.bytes == cost.hole_bytes
    others = result.cost("tpu-v5e"), result.cost(CHIPS[CHIP], compiler="none")
    assert [other.hole_bytes for other in others] == [0, 0]


@pytest.mark.parametrize("name", CARRIED)
def test_a_loop_carries_what_a_product_reads_in_its_layout(name: str) -> None:
    # Other compilers copy the slices that products read.
    assert 1.1 * ratios([name], "none")[name]["peak"] < ratios([name])[name]["peak"]


@deep
@pytest.mark.parametrize(("programs", "floors"), [(large(CHIP), LARGE), (more(CHIP), MORE)])
def test_figures_of_programs_of_real_size(
    programs: list[str], floors: dict[str, dict[float, int]]
) -> None:
    found = ratios(programs)
    for figure, rows in floors.items():
        for within, most in rows.items():
            assert near(found, figure, within) >= most, (figure, within)


@deep
def test_collectives_are_those_that_xla_leaves() -> None:
    found = [near_collectives(name) for name in COMPILED]
    for figure, most in COLLECTIVES.items():
        assert sum(row[figure] for row in found) >= most, figure


@deep
def test_figures_are_nearer_than_without_a_compiler() -> None:
    ours, without = ratios(COMPILED), ratios(COMPILED, "none")
    for figure, rows in WITHIN.items():
        for within, (most, before) in rows.items():
            assert near(ours, figure, within) >= most, (figure, within)
            assert near(ours, figure, within) > near(without, figure, within) >= before
