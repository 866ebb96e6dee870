"""Time shardcore against Shardy inside jaxlib, side by side in one run.

Each program is run alternately by both, several times; medians and their ratio are printed, and
the results are compared. ``--help`` lists the choices; ``make bench`` runs all.

Three times a program: *propagate* is the user-priority pass on the imported module, *pipeline* the
whole ``sdy-propagation-pipeline``, *text to text* parse, pipeline and print. The reference runs
without its verifier, which would double its time.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benches.families import FAMILIES  # noqa: E402

PIPELINE = "builtin.module(sdy-propagation-pipeline)"
IMPORT = (
    "builtin.module(symbol-dce,sdy-lift-inlined-meshes,sdy-remove-size-one-axes,"
    "sdy-propagate-sharding-from-func-to-call,sdy-constant-or-scalar-splitter,symbol-dce,"
    "sdy-manual-axes-cleanup,sdy-add-data-flow-edges,sdy-flatten-call-graph,symbol-dce,"
    "sdy-import-func-calls,symbol-dce,sdy-apply-sharding-constraints,sdy-sharding-group-import,"
    "sdy-pre-order-funcs)"
)
PROPAGATE = "builtin.module(sdy-user-priority-propagate{keep-sharding-rules=true})"

DEFAULT_SIZES = {
    "mlp": 30_000,
    "mlp-16-priorities": 30_000,
    "chain": 100_000,
    "concatenate": 16_000,
    "results": 16_000,
    "hub": 16_000,
    "groups": 5_000,
    "calls": 12,
    "unique-shapes": 30_000,
}


class Reference:
    """Shardy inside jaxlib."""

    def __init__(self) -> None:
        from jax._src.interpreters import mlir as jax_mlir
        from jax._src.lib.mlir import ir, passmanager

        self.context = jax_mlir.make_ir_context()
        self._ir, self._passmanager = ir, passmanager

    def parse(self, text: str) -> Any:
        with self.context:
            return self._ir.Module.parse(text)

    def run(self, module: Any, pipeline: str) -> None:
        with self.context:
            manager = self._passmanager.PassManager.parse(pipeline)
            manager.enable_verifier(False)
            manager.run(module.operation)

    def canonical(self, text: str) -> str:
        return str(self.parse(text))


class Ours:
    """shardcore."""

    def __init__(self) -> None:
        import shardcore

        self._shardcore = shardcore

    def parse(self, text: str) -> Any:
        return self._shardcore.Module.parse(text)

    def run(self, module: Any, pipeline: str) -> None:
        self._shardcore.PassManager.parse(pipeline).run(module)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that ``function`` takes, and what it returns."""
    gc.collect()
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def measure(engine: Ours | Reference, text: str) -> tuple[dict[str, float], str]:
    """Seconds of each stage, and the program after the whole pipeline."""
    parse, module = timed(lambda: engine.parse(text))
    pipeline, _ = timed(lambda: engine.run(module, PIPELINE))
    output, printed = timed(lambda: str(module))
    imported = engine.parse(text)
    engine.run(imported, IMPORT)
    propagate, _ = timed(lambda: engine.run(imported, PROPAGATE))
    seconds = {
        "parse": parse,
        "propagate": propagate,
        "pipeline": pipeline,
        "print": output,
        "text to text": parse + pipeline + output,
    }
    return seconds, printed


def compare(name: str, text: str, repeats: int, reference: Reference, ours: Ours) -> dict[str, Any]:
    """Both engines on one program, alternating."""
    samples: dict[str, list[dict[str, float]]] = {"ours": [], "reference": []}
    cold, mine = measure(ours, text)
    for _ in range(repeats):
        seconds, theirs = measure(reference, text)
        samples["reference"].append(seconds)
        seconds, mine = measure(ours, text)
        samples["ours"].append(seconds)
    medians = {
        engine: {stage: statistics.median(run[stage] for run in runs) for stage in runs[0]}
        for engine, runs in samples.items()
    }
    return {
        "program": name,
        "bytes": len(text),
        "ops": ours.parse(mine).num_ops,
        "equal": reference.canonical(mine) == reference.canonical(theirs),
        "cold": cold,
        **medians,
        "ratio": {stage: medians["reference"][stage] / medians["ours"][stage] for stage in cold},
        "cold_ratio": {stage: medians["reference"][stage] / cold[stage] for stage in cold},
    }


def gpt(layers: int) -> str:
    """A GPT training step of as many layers, lowered now."""
    sys.path.insert(0, str(ROOT / "examples"))
    import gpt_step

    mesh = gpt_step.abstract_mesh(data=2, fsdp=4, tensor=4)
    return gpt_step.lower(gpt_step.Config(layers=layers), mesh, gpt_step.Plan())


def families(wanted: list[str], scaling: bool) -> Iterator[tuple[str, str]]:
    """Name and text of each program to run."""
    for family in wanted:
        name, _, size = family.partition("=")
        if name.startswith("gpt-"):
            yield name, gpt(int(name.removeprefix("gpt-")))
            continue
        largest = int(size) if size else DEFAULT_SIZES[name]
        # A level more of calls doubles the program; ten times the program are some three levels.
        smaller = [largest - 6, largest - 3] if name == "calls" else [largest // 100, largest // 10]
        for count in [*(smaller if scaling else []), largest]:
            yield f"{name}={count}", FAMILIES[name](count)


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds of the pipeline against the size of the text, for both engines."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    lines: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        lines.setdefault(result["program"].partition("=")[0], []).append(result)
    figure, axes = plt.subplots(figsize=(9, 6))
    for number, (family, points) in enumerate(lines.items()):
        color = f"C{number % 10}"
        sizes = [point["ops"] for point in points]
        for engine, style in (("ours", "o-"), ("reference", "x--")):
            seconds = [point[engine]["pipeline"] for point in points]
            label = family if engine == "ours" else None
            axes.plot(sizes, seconds, style, color=color, label=label)
    axes.set(xscale="log", yscale="log", xlabel="ops after the pipeline", ylabel="seconds")
    axes.set_title("sdy-propagation-pipeline: shardcore (solid) and Shardy in jaxlib (dashed)")
    axes.legend()
    figure.savefig(path)


def rows(results: list[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| program | parse | propagate | pipeline | text to text "
        "| ratio: propagate | pipeline | text to text | cold pipeline | equal |",
        "|" + " --- |" * 10,
    ]
    for result in results:
        times = [
            f"{result['ours'][stage] * 1000:.1f} / {result['reference'][stage] * 1000:.0f} ms"
            for stage in ("parse", "propagate", "pipeline", "text to text")
        ]
        ratios = [
            f"{result['ratio'][stage]:.0f}" for stage in ("propagate", "pipeline", "text to text")
        ]
        cold = f"{result['cold_ratio']['pipeline']:.0f}"
        equal = "yes" if result["equal"] else "NO"
        lines.append(f"| {result['program']} | {' | '.join(times + ratios)} | {cold} | {equal} |")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmarks that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "families",
        nargs="*",
        help="gpt-LAYERS, FAMILY or FAMILY=SIZE",
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--scaling", action="store_true", help="also a tenth and a hundredth of each size"
    )
    parser.add_argument(
        "--out", type=Path, help="folder for the table, all figures as JSON, and a plot"
    )
    options = parser.parse_args()
    wanted = options.families or ["gpt-12", *FAMILIES]
    reference, ours = Reference(), Ours()
    results = []
    for name, text in families(wanted, options.scaling):
        print(f"running {name} ({len(text) / 1e6:.1f} MB)", file=sys.stderr)
        results.append(compare(name, text, options.repeats, reference, ours))
    machine, day = platform.machine(), time.strftime("%Y-%m-%d")
    table = rows(results)
    print(table)
    print(f"\nours / reference, medians of {options.repeats}; {machine}, {day}")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "vs_shardy.json").write_text(json.dumps(results, indent=1))
        (options.out / "vs_shardy.md").write_text(table + "\n")
        plot(results, options.out / "vs_shardy.svg")
    return 0 if all(result["equal"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
