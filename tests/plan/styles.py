"""Training scripts as people write them: where the step is jitted, and how a mesh is made and set.

Each has `build`, for `shardcore plan FILE.py:build`, and `main`, which runs the step once on the
devices that there are and prints the loss.
"""

from __future__ import annotations

_HEAD = '''\
"""A training script."""

import dataclasses
import functools
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

WIDTH, INNER, WORDS = 64, 256, 512


def init(key):
    table, up, down = jax.random.split(key, 3)
    return {
        "table": jax.random.normal(table, (WORDS, WIDTH)),
        "layers": [
            {
                "up": jax.random.normal(up, (WIDTH, INNER)) / 8,
                "down": jax.random.normal(down, (INNER, WIDTH)) / 16,
            }
            for _ in range(2)
        ],
    }


def loss_of(params, tokens):
    x = params["table"][tokens]
    for layer in params["layers"]:
        x = x + jnp.tanh(x @ layer["up"]) @ layer["down"]
    return jnp.mean(jax.nn.logsumexp(x @ params["table"].T, -1))


def updated(params, momentum, grads):
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum


def batch():
    return jnp.arange(64 * 16, dtype=jnp.int32).reshape(64, 16) % WORDS


def shapes(function, *args):
    return jax.eval_shape(function, *args)

'''
_STATE = """
def first():
    params = init(jax.random.key(0))
    return {"params": params, "momentum": jax.tree.map(jnp.zeros_like, params)}

"""
_STEP = '''
def train_step(state, tokens):
    """One step."""
    loss, grads = jax.value_and_grad(loss_of)(state["params"], tokens)
    params, momentum = updated(state["params"], state["momentum"], grads)
    return {"params": params, "momentum": momentum}, loss

'''
_MAIN = """
def main():
    state, loss = train_step(first(), batch())
    print(float(loss))


def build():
    return train_step, (shapes(first), shapes(batch)), {"mesh": {"data": 4, "model": 2}}


if __name__ == "__main__":
    main()
"""


def _decorated(decorator: str) -> str:
    return _HEAD + _STATE + "\n" + decorator + _STEP.lstrip("\n").join(("\n", "")) + _MAIN


_CALLED = (
    _HEAD
    + _STATE
    + _STEP
    + """
def main():
    devices = np.array(jax.devices()[:8]).reshape(4, 2)
    mesh = Mesh(devices, ("data", "model"))
    batched = NamedSharding(mesh, P("data"))
    step = jax.jit(
        train_step,
        in_shardings=(NamedSharding(mesh, P()), batched),  # as the data come
        donate_argnums=(0,),
    )
    state, loss = step(first(), batch())
    print(float(loss))


def build():
    step = jax.jit(train_step, donate_argnums=(0,))
    return step, (shapes(first), shapes(batch)), {"mesh": {"data": 4, "model": 2}}


if __name__ == "__main__":
    main()
"""
)
_EXPLICIT = (
    _HEAD
    + _STATE
    + _STEP.replace("def train_step", "@partial(jax.jit, donate_argnums=0)\ndef train_step")
    + """
def main():
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        state, loss = train_step(first(), batch())
        print(float(loss))


def build():
    return train_step, (shapes(first), shapes(batch)), {"mesh": {"data": 4, "model": 2}}


if __name__ == "__main__":
    main()
"""
)
_AT_MODULE_LEVEL = (
    _HEAD
    + _STATE
    + _STEP
    + """
train = jax.jit(train_step, donate_argnums=0, in_shardings=(P(), P()))


def main():
    with jax.set_mesh(jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)):
        state, loss = train(first(), batch())
        print(float(loss))


def build():
    return train, (shapes(first), shapes(batch)), {"mesh": {"data": 4, "model": 2}}


if __name__ == "__main__":
    main()
"""
)
_METHOD = (
    _HEAD
    + _STATE
    + """
class Trainer:
    rate = 0.1

    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def step(self, state, tokens):
        loss, grads = jax.value_and_grad(loss_of)(state["params"], tokens)
        params = jax.tree.map(lambda p, g: p - self.rate * g, state["params"], grads)
        return {"params": params, "momentum": state["momentum"]}, loss


def main():
    state, loss = Trainer().step(first(), batch())
    print(float(loss))


def build():
    return Trainer().step, (shapes(first), shapes(batch)), {"mesh": {"data": 4, "model": 2}}


if __name__ == "__main__":
    main()
"""
)
_ATTRIBUTE = (
    _HEAD
    + _STATE
    + """
class Trainer:
    def __init__(self, rate):
        self.rate = rate
        self.step = jax.jit(self._step, donate_argnums=0)

    def _step(self, state, tokens):
        loss, grads = jax.value_and_grad(loss_of)(state["params"], tokens)
        params = jax.tree.map(lambda p, g: p - self.rate * g, state["params"], grads)
        return {"params": params, "momentum": state["momentum"]}, loss


def main():
    state, loss = Trainer(0.1).step(first(), batch())
    print(float(loss))


def build():
    return Trainer(0.1).step, (shapes(first), shapes(batch)), {"mesh": {"data": 4, "model": 2}}


if __name__ == "__main__":
    main()
"""
)
_KEYWORDS = (
    _HEAD
    + _STATE
    + """
@functools.partial(jax.jit, donate_argnames="state", in_shardings=None)
def train_step(state, *, tokens, weight=1.0):
    loss, grads = jax.value_and_grad(loss_of)(state["params"], tokens)
    params, momentum = updated(state["params"], state["momentum"], grads)

    def result():
        return {"params": params, "momentum": momentum}, weight * loss

    return result()


def main():
    state, loss = train_step(first(), tokens=batch())
    print(float(loss))


def build():
    options = {"mesh": {"data": 4, "model": 2}, "tokens": shapes(batch)}
    return train_step, (shapes(first),), options


if __name__ == "__main__":
    main()
"""
)
_CLASSES = (
    _HEAD
    + """
class Moments(NamedTuple):
    count: jax.Array
    mu: Any


@partial(jax.tree_util.register_dataclass, data_fields=["params", "opt"], meta_fields=["rate"])
@dataclasses.dataclass
class TrainState:
    params: Any
    opt: Any
    rate: float


def first():
    params = init(jax.random.key(0))
    opt = Moments(jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, params)), ()
    return TrainState(params, opt, 0.1)


@jax.jit
def train_step(state, tokens):
    # One step.
    loss, grads = jax.value_and_grad(loss_of)(state.params, tokens)
    if tokens.shape[0] == 0:
        return state, loss
    params, mu = updated(state.params, state.opt[0].mu, grads)
    opt = Moments(state.opt[0].count + 1, mu), ()
    return TrainState(params, opt, state.rate), loss
"""
    + _MAIN
)
_OWN_CONSTRAINTS = (
    _decorated("@partial(jax.jit, donate_argnums=0)")
    .replace(
        """        x = x + jnp.tanh(x @ layer["up"]) @ layer["down"]
""",
        """        x = jax.lax.with_sharding_constraint(x, P("model"))
        h = jax.lax.with_sharding_constraint(x @ layer["up"], P(None, None, "data"))
        x = x + jnp.tanh(h) @ layer["down"]
""",
    )
    .replace(
        "    state, loss = train_step",
        """    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    jax.set_mesh(mesh)
    state, loss = train_step""",
    )
)
_TAKEN = (
    _decorated("@jax.jit")
    .replace(
        "\n\ndef init(key):",
        '''

IN_SHARDINGS = None


def make_mesh():
    """The mesh of the machine."""
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def init(key):''',
    )
    .replace(
        "    state, loss = train_step",
        "    jax.set_mesh(make_mesh())\n    state, loss = train_step",
    )
)
_LAMBDA = (
    _HEAD
    + _STATE
    + _STEP
    + _MAIN.replace(
        "train_step(first(), batch())", "jax.jit(lambda s, t: train_step(s, t))(first(), batch())"
    ).replace(
        "return train_step,", "return jax.jit(lambda state, tokens: train_step(state, tokens)),"
    )
)

STYLES = {
    "jit": _decorated("@jax.jit"),
    "partial": _decorated("@partial(jax.jit, donate_argnums=0)"),
    "called": _CALLED,
    "explicit": _EXPLICIT,
    "module": _AT_MODULE_LEVEL,
    "method": _METHOD,
    "attribute": _ATTRIBUTE,
    "keywords": _KEYWORDS,
    "classes": _CLASSES,
    "constrained": _OWN_CONSTRAINTS,
    "taken": _TAKEN,
    "lambda": _LAMBDA,
}
"""The text of each script."""
