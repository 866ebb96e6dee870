"""Memory on TPUs beside that of XLA's compiler for TPUs."""

from __future__ import annotations

import pytest

from tests.accelerators.tpus import cost, kept, large, models, near, ratios, text
from tests.deep import deep, sampled
from tests.shardy.xla.measured import key

# XLA lays out these arguments as single ops want them, not with the least padding.
LAID_OUT = (
    "encoder-decoder-tensor",
    "llama-train-constrained",
    "state-space-width",
)
# How many peaks are so near to XLA's. It is not enough: the aim is 90 % within a twentieth.
MODELS = {0.05: 74, 0.1: 77, 0.25: 86}
LARGE = {0.05: 9, 0.1: 11, 0.25: 16}


@pytest.mark.parametrize("name", sampled([*models(), *large()], 8))
def test_arguments_take_as_many_tiles_as_under_xla(name: str) -> None:
    theirs = kept()[name]
    assert theirs.key == key(text(name))
    ours = cost(name)
    assert ours.compiler == "xla-tpu"
    assert (ours.argument_bytes == theirs.argument) == (name not in LAID_OUT)
    assert sum(value.bytes for value in ours.live_at_peak) == ours.peak_bytes
    assert max(point.bytes for point in ours.memory_timeline().points) == ours.peak_bytes


@deep
def test_peaks_are_near_those_of_xla() -> None:
    for programs, rows in ((models(), MODELS), (large(), LARGE)):
        found = ratios(programs)
        for within, most in rows.items():
            assert near(found, within) >= most, within
