"""How a program of this package is built, named, lowered and found again.

A family is a function that takes a mesh and whatever else it varies, and returns a
`jax.stages.Lowered`. `variants` names its instances; `lowered` builds one of them once per process.
Lowering stops at StableHLO and almost all meshes are abstract, so no device is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Tree = Any

# For `device_mesh`; takes effect only before JAX has looked for devices.
jax.config.update("jax_num_cpu_devices", 8)

_BUILDERS: dict[str, Callable[[], jax.stages.Lowered]] = {}


def variants(**named: dict[str, Any]) -> Callable[[Callable[..., jax.stages.Lowered]], Any]:
    """Registers the decorated family once for each name, with the arguments given for it."""

    def register(family: Callable[..., jax.stages.Lowered]) -> Any:
        for name, arguments in named.items():
            full_name = f"{family.__name__}-{name}".replace("_", "-")
            if full_name in _BUILDERS:
                raise ValueError(f"two programs are called {full_name}")
            _BUILDERS[full_name] = partial(family, **arguments)
        return family

    return register


def program(family: Callable[[], jax.stages.Lowered]) -> Any:
    """Registers a family with a single instance."""
    _BUILDERS[family.__name__.replace("_", "-")] = family
    return family


def names() -> list[str]:
    """Every program, in the order of its definition."""
    return list(_BUILDERS)


@cache
def lowered(name: str) -> jax.stages.Lowered:
    return _BUILDERS[name]()


@cache
def text(name: str, locations: bool = False) -> str:
    """The program as JAX prints it."""
    return str(lowered(name).as_text(debug_info=locations))


def mesh(**axes: int) -> AbstractMesh:
    """A mesh whose axes are left to the propagation."""
    return AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def device_mesh(order: Iterable[int], shape: tuple[int, int] = (4, 2)) -> Mesh:
    """A mesh of the axes x and y over real devices, which a few features of JAX insist on."""
    devices = jax.devices("cpu")
    return Mesh(np.array([devices[at] for at in order]).reshape(shape), ("x", "y"))


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def i32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def named(on: AbstractMesh | Mesh, specs: Tree) -> Tree:
    """Shardings for a tree of specs; `None` leaves a value unspecified."""
    return jax.tree.map(
        lambda spec: NamedSharding(on, spec), specs, is_leaf=lambda leaf: isinstance(leaf, P)
    )


def constrain(x: jax.Array, on: AbstractMesh | Mesh, *spec: Any) -> jax.Array:
    return jax.lax.with_sharding_constraint(x, NamedSharding(on, P(*spec)))


def lower(
    function: Callable[..., Any],
    on: AbstractMesh | Mesh,
    arguments: tuple[Tree, ...],
    in_specs: Tree,
    out_specs: Tree = None,
    donate: int | tuple[int, ...] = (),
    platform: str = "tpu",
) -> jax.stages.Lowered:
    """Lowers a jitted `function`; `None` in a spec tree leaves the value to the propagation."""
    jitted = jax.jit(
        function,
        in_shardings=named(on, in_specs),
        out_shardings=named(on, out_specs),
        donate_argnums=donate,
    )
    return jitted.trace(*arguments).lower(lowering_platforms=(platform,))
