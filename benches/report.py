"""The results of a comparison as a table and as a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Result = dict[str, Any]

HEADER = (
    "program",
    "ops",
    "parse",
    "propagate",
    "pipeline",
    "text to text",
    "cold",
    "bytes an op",
    "runs",
    "same",
)


def seconds(value: float) -> str:
    """A time with its unit, to about three digits."""
    if value >= 1:
        return f"{value:.1f} s"
    return f"{value * 1e3:.0f} ms" if value >= 0.01 else f"{value * 1e3:.2g} ms"


def times(count: float) -> str:
    """A ratio to about two digits."""
    return f"{count:,.0f} x" if count >= 10 else f"{count:.1f} x"


def table(results: list[Result]) -> str:
    """Results as Markdown: our time, the reference's, and their ratio."""
    lines = [f"| {' | '.join(HEADER)} |", "|" + " --- |" * len(HEADER)]
    for result in results:
        ours, reference, cold = result["ours"], result["reference"], result["cold"]
        cells = [result["program"], f"{result['ops']:,}"]
        for stage in ("parse", "propagate", "pipeline", "text to text"):
            ratio = times(reference[stage] / ours[stage])
            cells.append(f"{seconds(ours[stage])} / {seconds(reference[stage])}: {ratio}")
        ratio = times(reference["text to text"] / cold["text to text"])
        cells.append(f"{seconds(cold['text to text'])}: {ratio}")
        # The peak memory of small programs is mostly the allocator's.
        has_memory = result["ops"] >= 50_000
        cells.append(f"{cold['bytes'] / result['ops']:.0f}" if has_memory else "")
        cells.append(str(result["runs"]))
        cells.append("yes" if result["same"] else "NO")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def replace_table(page: Path, text: str) -> None:
    """Put ``text`` between the two comments in ``page`` that mark the table."""
    before, start, rest = page.read_text().partition("<!-- vs_shardy -->\n")
    _, end, after = rest.partition("<!-- end of vs_shardy -->")
    if not end:
        raise ValueError(f"{page} has no place for the table")
    page.write_text(f"{before}{start}{text}\n{end}{after}")


def plot(results: list[Result], path: Path) -> None:
    """Draw seconds of the pipeline against ops, one line a family and engine."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams.update({"svg.hashsalt": "shardcore", "svg.fonttype": "none"})
    lines: dict[str, list[Result]] = {}
    for result in results:
        lines.setdefault(result["family"], []).append(result)
    figure, axes = plt.subplots(figsize=(9, 6))
    for number, (family, points) in enumerate(lines.items()):
        points.sort(key=lambda point: point["ops"])
        ops = [point["ops"] for point in points]
        for engine, style in (("ours", "o-"), ("reference", "x--")):
            times = [point[engine]["pipeline"] for point in points]
            label = family if engine == "ours" else None
            color = plt.cm.tab20(number * 2 % 20 + number // 10)
            axes.plot(ops, times, style, color=color, label=label, markersize=4, linewidth=1)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="ops that propagation sees, or operands",
        ylabel="seconds",
    )
    axes.set_title("sdy-propagation-pipeline: shardcore (solid), Shardy in jaxlib (dashed)")
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
