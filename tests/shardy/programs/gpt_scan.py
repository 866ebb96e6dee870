"""GPT training steps with the layers stacked and scanned over, also with rematerialization."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from examples import gpt_step
from examples.gpt_step import Config, Plan, Tree
from tests.shardy.programs.gpt import SMALL
from tests.shardy.programs.registry import lower, mesh, variants


def _stack(tree: Tree, layers: int) -> Tree:
    return jax.tree.map(lambda s: jax.ShapeDtypeStruct((layers, *s.shape), s.dtype), tree)


def _stack_specs(tree: Tree, layer_axis: str | None) -> Tree:
    return jax.tree.map(lambda s: P(layer_axis, *s), tree, is_leaf=lambda x: isinstance(x, P))


@variants(
    full={"on": mesh(data=2, fsdp=2, tensor=2)},
    data={"on": mesh(data=8), "plan": Plan(("data",), None, None)},
    free={"on": mesh(data=2, fsdp=2, tensor=2), "plan": Plan(constrain=False)},
    remat={"on": mesh(data=2, fsdp=2, tensor=2), "remat": True},
    unrolled_twice={"on": mesh(data=2, fsdp=2, tensor=2), "unroll": 2},
    layers_sharded={
        "on": mesh(data=2, stage=2, tensor=2),
        "plan": Plan(("data",), None, "tensor"),
        "layer_axis": "stage",
    },
    accumulated={"on": mesh(data=2, fsdp=2, tensor=2), "micro_batches": 2},
)
def gpt_scan(
    on: AbstractMesh,
    plan: Plan | None = None,
    config: Config = SMALL,
    remat: bool = False,
    unroll: int = 1,
    layer_axis: str | None = None,
    micro_batches: int = 1,
) -> jax.stages.Lowered:
    plan = plan or Plan()

    def loss(params: Tree, batch: Tree) -> jax.Array:
        def layer(x: jax.Array, p: Tree) -> tuple[jax.Array, None]:
            return gpt_step.block(x, p, config.heads, on, plan), None

        x = gpt_step.embed(params, batch["tokens"])
        body = jax.checkpoint(layer) if remat else layer
        x, _ = jax.lax.scan(body, x, params["blocks"], unroll=unroll)
        return gpt_step.cross_entropy(params, x, batch["targets"])

    def gradients(params: Tree, batch: Tree) -> tuple[jax.Array, Tree]:
        if micro_batches == 1:
            return jax.value_and_grad(loss)(params, batch)

        def accumulate(total: Tree, micro: Tree) -> tuple[Tree, None]:
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, micro)), None

        micro = jax.tree.map(lambda x: x.reshape(micro_batches, -1, *x.shape[1:]), batch)
        zeros = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        total, _ = jax.lax.scan(accumulate, zeros, micro)
        return jax.tree.map(lambda x: x / micro_batches, total)

    def step(state: Tree, batch: Tree) -> tuple[Tree, jax.Array]:
        value, grads = gradients(state["params"], batch)
        grads, _ = gpt_step.clip(grads, 1.0)
        params, adam = gpt_step.adam(state["params"], grads, state["adam"])
        return {"params": params, "adam": adam}, value

    shapes = gpt_step.shapes(config)
    shapes["blocks"] = _stack(gpt_step.block_shapes(config.width), config.layers)
    specs = gpt_step.specs(config, plan)
    specs["blocks"] = _stack_specs(gpt_step.block_specs(plan), layer_axis)
    _, batch = gpt_step.inputs(config)
    _, batch_specs = gpt_step.input_specs(config, plan)
    state = gpt_step.train_state(shapes, jax.ShapeDtypeStruct((), jnp.int32))
    state_specs = gpt_step.train_state(specs, P())
    out_specs = (state_specs, None)
    return lower(step, on, (state, batch), (state_specs, batch_specs), out_specs, donate=0)
