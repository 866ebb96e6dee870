"""Are public pipelines near the best whole plan that is found, by the costs of the same program?

Of each measured training step with stages, dense layers and no axis of tokens, the step is built
without any sharding; what its source says of it, stages, chunks, micro-batches, data and tensor
parallelism, is costed as a pipeline of that program with its layers unrolled, and the program is
planned on as many devices of the same chip. It is met where theirs is within 5 % of the best, or
among the three best of different kinds. `!` is more than the chip has. Run it with `python -m
benches.whole_plans [ROW ...]`; rows are numbers of lines, and those that are asked for may have an
axis of tokens, but are then only planned. Times are processor seconds of planning, the limit of a
search too, so that other programs do not count.
"""

from __future__ import annotations

import math
import operator
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import shardcore
import shardcore.jax
from jax._src import source_info_util
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P
from rich.console import Console
from rich.table import Table
from shardcore import Mesh, Plan, PlanError
from shardcore.bench import cross_entropy, decoder, kernels
from shardcore.bench.leaderboard import chip_of
from shardcore.bench.parameters import Parameter, shapes
from shardcore.bench.placement import ByHand, Weights
from shardcore.bench.products import NARROW
from shardcore.bench.rebuilt import NotBuiltError, training_of
from shardcore.bench.rows import Row, read_rows
from shardcore.bench.step import adam
from shardcore.bench.training import Training
from shardcore.pipeline import Candidate, find_layers
from shardcore.pipeline.cuts import Cut
from shardcore.pipeline.search import PipelineSearch, links_of

SECONDS = 300.0
NEAR = 1.05
AMONG = 3
WHOLE = "b t (g r) d, b s g d, b s g e -> b t (g r) e need_replication={t, s, d, e}"
BACK = (
    "b t (g r) d, b s g d, b s g e, b t (g r) e, b t (g r) e -> "
    "b t (g r) d, b s g d, b s g e need_replication={t, s, d, e}"
)


@dataclass(frozen=True)
class Global(ByHand):
    """Arrays are global, and nothing is constrained: a plan says where they are. Elementwise work
    keeps its operands alone, as kernels of libraries do."""

    def enter(self, y: jax.Array) -> jax.Array:
        return y

    def leave(self, y: jax.Array) -> jax.Array:
        return y

    def gathered(self, y: jax.Array) -> jax.Array:
        """The operand of a product in a wide type."""
        return y

    def whole(self, y: jax.Array) -> jax.Array:
        """What each device along tensor parallelism has a term of."""
        return y

    def attend(self, kind: Any, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        kernel = kernels.Kernel(self.run.platform, kernels.seen(self.run.time, kind.windows))
        return kernels.flash_attention(q, k, v, kernel).astype(jnp.bfloat16)


@dataclass(frozen=True)
class Placed(Global):
    """Activations are where the source says: whole rows of a device for products that are cut, and
    between these a part of the tokens with sequence parallelism; gradients likewise. What is
    scaled to a narrow type is gathered afterwards, as by libraries."""

    def enter(self, y: jax.Array) -> jax.Array:
        return placed(y, self._between, self._between) if self._is_narrow else self.gathered(y)

    def leave(self, y: jax.Array) -> jax.Array:
        return placed(y, self._between, self._between if self._is_narrow else WHOLE_ROWS)

    def operand(self, y: jax.Array) -> jax.Array:
        # It is scaled where it is, and then gathered.
        part = jax.lax.with_sharding_constraint(y, self._between)
        return jax.lax.with_sharding_constraint(part, WHOLE_ROWS)

    def gathered(self, y: jax.Array) -> jax.Array:
        return placed(y, WHOLE_ROWS, self._between)

    def whole(self, y: jax.Array) -> jax.Array:
        return placed(y, WHOLE_ROWS, WHOLE_ROWS)

    @property
    def _is_narrow(self) -> bool:
        return self.run.dtype in NARROW

    @property
    def _between(self) -> P:
        return P("data", "tensor" if self.run.sequence_parallel else None)


WHOLE_ROWS = P("data")


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def placed(y: jax.Array, spec: P, of_gradient: P) -> jax.Array:
    """``y`` with a sharding, and with another one of its gradient."""
    return jax.lax.with_sharding_constraint(y, spec)


def _placed(y: jax.Array, spec: P, of_gradient: P) -> tuple[jax.Array, None]:
    return placed(y, spec, of_gradient), None


def _gradient_placed(spec: P, of_gradient: P, _: None, gradient: jax.Array) -> tuple[jax.Array]:
    return (jax.lax.with_sharding_constraint(gradient, of_gradient),)


placed.defvjp(_placed, _gradient_placed)


def rules() -> None:
    """Attention is computed apart for each sequence and group of heads; lines of the model are
    lines of a user's."""
    kernels.register()
    source_info_util.register_inclusion(f"{Path(decoder.__file__).parent}{os.sep}")

    def of(signature: Any) -> str | None:
        target = str(signature.attributes.get("call_target_name"))
        text = {kernels.FORWARD: WHOLE, kernels.BACKWARD: BACK}.get(target)
        if text is None:
            # The rule that it has without this one.
            return "... -> ..." if target == "annotate_device_placement" else None
        heads = [each.shape[2] for each in signature.operand_types[:2]]
        return f"{text} {{g={heads[1]}, r={heads[0] // heads[1]}}}"

    shardcore.rule("stablehlo.custom_call")(of)
    for target in (kernels.FORWARD, kernels.BACKWARD):
        shardcore.partition_rule(target)(of)


def loss(params: Weights, tokens: jax.Array, how: Global) -> jax.Array:
    run = how.run
    x = decoder.with_positions(how.whole(decoder.table(params)[tokens]), params)
    x = how.leave(x)
    depths = {place: kind.depth for place, kind in enumerate(run.model.kinds)}
    x = decoder.layers(how, x, params, depths)
    logits = how.gathered(decoder.norm(how, x, params["norm"])) @ decoder.logits_weight(params)

    def lost(logits: jax.Array) -> jax.Array:
        return cross_entropy.in_one_kernel(logits, tokens)

    return jnp.mean(decoder.fused(how, lost, logits))


def lowered(how: Global, mesh: AbstractMesh | None = None) -> shardcore.jax.Lowered:
    """The step of a run, whose parameters and moments have no shardings; if layers are unrolled,
    each has arrays of its own."""
    run = how.run

    def array(each: Parameter) -> Any:
        if run.scan or each.kind is None:
            return jax.ShapeDtypeStruct(each.shape, jnp.float32)
        return (jax.ShapeDtypeStruct(each.shape[1:], jnp.float32),) * each.shape[0]

    arrays = {name: array(each) for name, each in shapes(run.model).items()}
    tokens = jax.ShapeDtypeStruct((run.batch, run.time), jnp.int32)

    def step(params: Any, first: Any, second: Any, count: Any, tokens: jax.Array) -> Any:
        value, gradient = jax.value_and_grad(loss)(params, tokens, how)
        return *adam((params, first, second, count), gradient), value

    state = (arrays, arrays, arrays, jax.ShapeDtypeStruct((), jnp.int32))
    options: Any = {"donate_argnums": (0, 1, 2), "platform": "cuda"}
    return shardcore.jax.lower(step, *state, tokens, mesh=mesh, **options)


def rows(chosen: list[int]) -> Iterator[tuple[Row, Training]]:
    """Rows with stages, each configuration once."""
    seen: set[str] = set()
    for row in read_rows():
        if row.number_of("pp") <= 1 or (chosen and row.number not in chosen):
            continue
        try:
            run = training_of(row)
        except NotBuiltError:
            continue
        is_dense = all(kind.experts is None for kind in run.model.kinds)
        key = repr((run, row.chip))
        if is_dense and (chosen or row.number_of("cp") == 1) and key not in seen:
            seen.add(key)
            yield row, replace(run, scan=True)


def chunks(run: Training, found: int) -> Cut:
    """The layers of each chunk: equally many, or if they do not divide evenly, as if the embedding
    and the logits were a layer each. Layers that were not found are in what comes before them."""
    depth, count = run.model.depth, run.sizes["stage"] * run.interleave
    rest = 0 if depth % count == 0 else 1
    size = (depth + 2 * rest) // count
    return (size - rest - depth + found, *(size,) * (count - 2), size - rest)


def specs(
    run: Training, name: str, each: Parameter, is_over_data: bool
) -> Iterator[tuple[str, str]]:
    """The shardings of the arrays of a parameter over tensor parallelism, and over data, too; by
    what follows the name of a tree."""
    axes = [*replace(run, sizes={"tensor": 2}).spec(name, each)]
    if is_over_data and "embed" in each.dims:
        axes[each.dims.index("embed")] = "data"
    if each.kind is None:
        yield f"['{name}']", str(P(*axes))
        return
    for number in range(each.shape[0]):
        yield f"['{name}'][{number}]", str(P(*axes[1:]))


def theirs(run: Training, chip: Any) -> Candidate:
    """The pipeline of the source: parameters over tensor parallelism, moments over data, too, and
    parameters likewise, prepared once a step or for each micro-batch: what is fastest of what fits,
    or at all if nothing fits. Layers are unrolled, as libraries run them: what they keep is not
    copied."""
    run = replace(run, scan=False)
    data = run.sizes.get("data", 1)
    sizes = {"data": data, "tensor": run.sizes.get("tensor", 1)}
    mesh = Mesh(sizes)
    types = (AxisType.Auto,) * len(sizes)
    program = lowered(Placed(run), AbstractMesh((*sizes.values(),), (*sizes,), axis_types=types))
    found: list[Candidate] = []
    for trees in (("first", "second"), ("params", "first", "second")):
        session = program.session()
        session.set("tokens", "P('data')")
        for name, each in shapes(run.model).items():
            for at, tree in enumerate(("params", "first", "second")):
                for path, spec in specs(run, name, each, tree in trees and data > 1):
                    session.set(f"{tree}{path}", spec)
                    session.set(f"result[{at}]{path}", spec)
        layers = find_layers(session.result.result, chip)
        schedule = "interleaved" if run.interleave > 1 else "1f1b"
        kind = schedule, run.sizes["stage"], run.interleave, run.microbatches
        for once in (True, False):
            search = PipelineSearch(layers, math.inf, links_of(chip, {}), mesh)
            search.add(*kind, chunks(run, len(layers.layers)), once)
            found += [search.best] if search.best is not None else []
    fitting = [each for each in found if each.peak_bytes <= chip.hbm_bytes]
    return min(fitting or found, key=operator.attrgetter("step_seconds"))


def rank(plan: Plan, step: float) -> int:
    """Which of the plans of different kinds `step` would be; plans of as many stages and the same
    parallelism are one kind, whatever layers keep."""
    found = [(plan.stages, plan.kind, plan.step_seconds)]
    found += [
        (a.stages, a.kind.partition(",")[0], a.figures.step_seconds or math.inf)
        for a in plan.alternatives
        if a.stages is not None
    ]
    return 1 + len({(stages, kind) for stages, kind, other in found if other < step * (1 - 1e-9)})


def main(chosen: list[int]) -> None:
    rules()
    time.monotonic = time.process_time
    columns = ("row", "theirs", "GiB", "ratio", "rank", "best", "GiB", "stages", "schedule", "s")
    table = Table(*columns)
    met = count = 0
    for row, run in rows(chosen):
        chip = chip_of(row, run)
        program = lowered(Global(run))
        own = None if "context" in run.sizes else theirs(run, chip)
        start = time.process_time()
        try:
            plan = shardcore.plan(
                program, chip, devices=row.number_of("chips"), stages="any", seconds=SECONDS
            )
        except PlanError as error:
            print(row.number, row.name, error.message)
            continue
        took = time.process_time() - start
        cells = [f"{row.number} {row.name}", "", "", "", ""]
        if own is not None:
            ratio, place = own.step_seconds / plan.step_seconds, rank(plan, own.step_seconds)
            fits = "" if own.peak_bytes <= chip.hbm_bytes else "!"
            cells[1:] = [f"{own.step_seconds:.2f}", f"{own.peak_bytes / 2**30:.0f}{fits}"]
            cells += [f"{ratio:.2f}", str(place)]
            count += 1
            met += ratio <= NEAR or place <= AMONG
        stages = f"{plan.stages} of {plan.kind} {','.join(map(str, plan.mesh.shape.values()))}"
        cells += [f"{plan.step_seconds:.2f}", f"{plan.peak_bytes / 2**30:.0f}", stages]
        cells += [f"{plan.schedule} {plan.micro_batches}", f"{took:.0f} {plan.stopped}"]
        table.add_row(*cells)
        Console(width=180).print(table)
    print(f"{met} of {count}")


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]])
