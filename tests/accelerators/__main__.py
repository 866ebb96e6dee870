"""Measures all programs again, or prints how near our peaks are: `python -m tests.accelerators`."""

from __future__ import annotations

import sys

from tests.accelerators.measured import measure_all
from tests.accelerators.test_peaks import ratios
from tests.shardy.xla.model_rows import names, text

if sys.argv[1:] == ["--measure"]:
    measure_all({name: text(name) for name in names()})
else:
    found = ratios(names())
    for name, ratio in sorted(found.items(), key=lambda row: row[1]):
        print(f"{ratio:6.2f}  {name}")
    for within in (0.05, 0.1, 0.25):
        near = sum(abs(ratio - 1) <= within for ratio in found.values())
        print(f"within {within:.0%}: {near} of {len(found)}")
