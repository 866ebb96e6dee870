"""GPT training steps with unrolled layers: forward, loss, backward, clipping and Adam."""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from examples.gpt_step import Config, Plan, Tree, input_specs, inputs, train_step
from tests.shardy.programs.registry import lower, mesh, variants

SMALL = Config(layers=2, width=64, heads=4, vocab=512, context=32, batch=16)

# A name in the path of an argument selects it; everything else is left to the propagation.
ONLY_BATCH = ("tokens", "targets")
ONLY_UP = ("'up'",)


def _keep(specs: Tree, wanted: tuple[str, ...]) -> Tree:
    def chosen(path: Any, spec: P) -> P | None:
        return spec if any(name in jax.tree_util.keystr(path) for name in wanted) else None

    return jax.tree_util.tree_map_with_path(chosen, specs, is_leaf=lambda x: isinstance(x, P))


@variants(
    full={"on": mesh(data=2, fsdp=2, tensor=2)},
    pods={"on": mesh(pod=2, data=1, fsdp=4, tensor=4), "plan": Plan(batch=("pod", "data", "fsdp"))},
    data={"on": mesh(data=8), "plan": Plan(("data",), None, None)},
    fsdp={"on": mesh(fsdp=8), "plan": Plan(("fsdp",), "fsdp", None)},
    tensor={"on": mesh(tensor=4), "plan": Plan((), None, "tensor")},
    free={"on": mesh(data=2, fsdp=2, tensor=2), "plan": Plan(constrain=False), "out": False},
    batch_only={
        "on": mesh(data=4, fsdp=2, tensor=2),
        "plan": Plan(constrain=False),
        "annotate": ONLY_BATCH,
    },
    one_weight={
        "on": mesh(data=2, fsdp=2, tensor=2),
        "plan": Plan(constrain=False),
        "annotate": ONLY_UP,
    },
    constraints_only={"on": mesh(data=2, fsdp=2, tensor=2), "annotate": ()},
    odd={
        "on": mesh(data=3, fsdp=5, tensor=7),
        "config": Config(layers=2, width=210, heads=6, vocab=448, context=32, batch=15),
    },
    crossed={
        "on": mesh(data=2, fsdp=2, tensor=2),
        "plan": Plan(("data",), "tensor", "fsdp", constrain=False),
    },
    one_axis={"on": mesh(x=8), "plan": Plan(("x",), "x", None)},
    conflict={"on": mesh(x=4, y=2), "plan": Plan(("x",), None, "x", constrain=False)},
)
def gpt(
    on: AbstractMesh,
    plan: Plan | None = None,
    config: Config = SMALL,
    annotate: tuple[str, ...] = ("",),
    out: bool = True,
) -> jax.stages.Lowered:
    plan = plan or Plan()
    state, batch = _keep(input_specs(config, plan), annotate)
    out_specs = (state, None) if out else None
    step = train_step(config, on, plan)
    return lower(step, on, inputs(config), (state, batch), out_specs, donate=0)
