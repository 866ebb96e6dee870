"""``python -m tests.shardy.xla``: the comparison with XLA as a table, and why the two differ.

With ``--measure`` the kept figures of the models are brought up to date instead.
"""

from __future__ import annotations

import sys

from tests.shardy.xla.cases import CASES
from tests.shardy.xla.compare import Row, rows
from tests.shardy.xla.measured import measure_all
from tests.shardy.xla.model_rows import names, peak, text

BYTES = ("argument_bytes", "output_bytes", "alias_bytes")
SHORT = {"flops": "FLOPs", "xla_cpu_peak_bytes": "peak memory"}


def main() -> None:
    """Print the table in Markdown."""
    print("| program | bytes in, out, donated | FLOPs | peak memory | collectives, ours / XLA's |")
    print("| --- | --- | --- | --- | --- |")
    causes: dict[str, dict[str, list[str]]] = {}
    for name, differences in CASES.items():
        found = rows(name)
        same = "equal" if all(found[figure].agrees for figure in BYTES) else "differ"
        kinds = [row for row in found.values() if row.figure not in (*BYTES, *SHORT)]
        collectives = ", ".join(_counts(row) for row in kinds) or "none"
        flops, memory = (found[figure].ours / found[figure].xla for figure in SHORT)
        print(f"| `{name}` | {same} | {flops:.2f} | {memory:.2f} | {collectives} |")
        for figure, cause in differences.items():
            figures = causes.setdefault(cause, {}).setdefault(name, [])
            figures.append(SHORT.get(figure, figure))
    print()
    near = [name for name in names() if peak(name).agrees]
    print(f"Peak memory is within 10 % in {len(near)} of {len(names())} programs. Others:")
    print()
    for name in names():
        if name not in near:
            print(f"- `{name}`: {peak(name).ours / peak(name).xla:.2f}")
    print()
    for cause, programs in causes.items():
        named = (f"`{name}` ({', '.join(figures)})" for name, figures in programs.items())
        print(f"- {'; '.join(named)}: {cause}.")


def _counts(row: Row) -> str:
    if row.agrees:
        return f"{row.ours} {row.figure}"
    return f"**{row.ours} / {row.xla} {row.figure}**"


if "--measure" in sys.argv[1:]:
    measure_all((name, text(name)) for name in names())
else:
    main()
