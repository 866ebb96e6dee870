"""Prints how near our figures are to those of XLA for GPUs, or measures these again."""

from __future__ import annotations

import sys

from tests.accelerators.measured import large, measure_all, models, more
from tests.accelerators.sent import summary
from tests.accelerators.test_figures import (
    CHIP,
    COMPILED,
    WITHIN,
    near,
    near_collectives,
    ratios,
)

GROUPS = {"models": COMPILED, "large programs": large(CHIP), "more": more(CHIP)}

if sys.argv[1:] == ["--measure"]:
    measure_all(CHIP, [*models(), *large(CHIP), *more(CHIP)])
    sys.exit()
for kind, names in GROUPS.items():
    found = ratios(names)
    print(" ".join(f"{figure:>8}" for figure in WITHIN))
    for name, row in sorted(found.items(), key=lambda row: row[1]["peak"]):
        print(" ".join(f"{row[figure]:8.2f}" for figure in WITHIN), name)
    for figure, rows in WITHIN.items():
        shares = (f"{near(found, figure, within)} within {within:.0%}" for within in rows)
        print(f"{figure}, of {len(found)} {kind}: {', '.join(shares)}")
    print(summary(near_collectives(name) for name in names))
