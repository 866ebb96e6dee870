"""Every private name of JAX that shardcore uses, because no public name does the same.

``tests/jax/test_private_names.py`` checks that each version of JAX has all of them, and that no
other file uses one.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
from jax.sharding import AbstractMesh

from shardcore.bounded import shown
from shardcore.jax.mistakes import mistake
from shardcore.jax.versions import is_older, unknown

OPTIONS = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames")
"""The options of ``jax.jit`` that a jitted function keeps as they were given."""
SHARDINGS = ("in_shardings", "out_shardings")
"""The options of ``jax.jit`` that a jitted function keeps as leaves and a tree structure."""


def with_jaxpr(traced: Any, jaxpr: Any) -> Any:
    """Return a ``jax.stages.Traced`` with the program ``jaxpr`` in place of its own."""
    other = copy.copy(traced)
    try:
        if hasattr(traced, "_params"):
            other._params = {**traced._params, "jaxpr": jaxpr}
        else:
            # JAX 0.7.0 and 0.7.1
            call = traced._lower_callable
            other._lower_callable = functools.partial(
                call.func, *call.args, **{**call.keywords, "jaxpr": jaxpr}
            )
    except AttributeError as error:
        raise unknown("what a traced function is lowered from", error) from error
    return other


def over(mesh: AbstractMesh | jax.sharding.Mesh) -> Any:
    """Return a context in which functions are traced over the axes of ``mesh``."""
    if isinstance(mesh, jax.sharding.Mesh):
        if is_older("0.8"):
            # Specs in constraints need a mesh with devices here.
            sharding: Any = jax.sharding
            return jax.set_mesh(mesh) if hasattr(jax, "set_mesh") else sharding.use_mesh(mesh)
        return over(mesh.abstract_mesh)
    if hasattr(jax.sharding, "use_abstract_mesh"):
        return jax.sharding.use_abstract_mesh(mesh)
    # JAX 0.7.0 and 0.7.1
    from jax._src.mesh import use_abstract_mesh

    return use_abstract_mesh(mesh)


def name_of(lowered: Any) -> str:
    """The name of the function that a ``jax.stages.Lowered`` was made from."""
    name = getattr(getattr(lowered, "_lowering", None), "_name", None) or "lowered"
    return str(name).strip("<>")


def shardings_of(lowered: Any) -> list[Any]:
    """The shardings of the arguments and the results of a ``jax.stages.Lowered``."""
    arguments = getattr(getattr(lowered, "_lowering", None), "compile_args", {})
    return [one for name in SHARDINGS for one in arguments.get(name) or ()]


def kept_arguments(lowered: Any, num_leaves: int) -> tuple[int, ...]:
    """The indices of the leaves of the arguments that a ``jax.stages.Lowered`` keeps; JAX drops
    unused ones. ``num_leaves`` is the number of all leaves.

    Raises:
        LoweringError: it was not made by ``jax.jit`` (``not-a-function``), or this version of JAX
            does not tell (``jax-version``).
    """
    lowering = getattr(lowered, "_lowering", None)
    if lowering is None:
        raise mistake("not-a-function", f"{shown(lowered)} is not lowered by jax.jit")
    try:
        arguments = lowering.compile_args
    except AttributeError as error:
        raise unknown("the arguments that it keeps", error) from error
    # Transformations other than jit keep all arguments.
    return tuple(sorted(arguments.get("kept_var_idx", range(num_leaves))))


def options_of(jitted: Any) -> dict[str, Any] | None:
    """The options of a jitted function; ``None`` if another library made it.

    Raises:
        LoweringError: this version of JAX does not tell them (``jax-version``).
    """
    info = getattr(jitted, "_jit_info", None)
    if info is None:
        return None
    try:
        given: Mapping[str, Any] = {name: getattr(info, name) for name in OPTIONS}
        own = {name: value for name, value in given.items() if value != ()}
        for name in SHARDINGS:
            leaves = getattr(info, f"{name}_leaves")
            if not _are_unspecified(leaves):
                own[name] = jax.tree.unflatten(getattr(info, f"{name}_treedef"), leaves)
    except AttributeError as error:
        raise unknown("the options of jitted functions", error) from error
    return own


def _are_unspecified(shardings: Iterable[Any]) -> bool:
    """Whether JAX marks all these shardings as not given."""
    return all(type(leaf).__name__ == "UnspecifiedValue" for leaf in shardings)


def is_ordered(effect: Any) -> bool:
    """Whether ``effect`` is the effect of an ordered callback."""
    return type(effect).__name__ in ("OrderedDebugEffect", "OrderedIOEffect")


def sharding_rule(
    rule: Any, given: tuple[Any, ...], operands: list[Any], results: list[Any]
) -> Any:
    """Return the attribute of the sharding rule of a ``custom_partitioning`` function.

    Args:
        rule: an ``SdyShardingRule``; a function that makes one of the arguments ``given``, the
            types of the operands and the types of the results; or a rule's text and options.
        given: the static arguments of the call, then the mesh.
        operands: the types of the operands in MLIR.
        results: the types of the results in MLIR.
    """
    from jax._src import custom_partitioning_sharding_rule as own

    if callable(rule):
        rule = rule(*given, operands, results)
        options: Mapping[str, Any] = {}
        if isinstance(rule, (list, tuple)) and len(rule) == 2:
            rule, options = rule
        if isinstance(rule, str):
            rule = own.str_to_sdy_sharding_rule(rule, **options)
        elif not isinstance(rule, own.SdyShardingRule):
            raise ValueError("sharding_rule returns an SdyShardingRule or text")
    return own.sdy_sharding_rule_to_mlir(rule, operands, results)


def own_partitioner(key: str) -> Any | None:
    """Return what JAX keeps for a ``custom_partitioning`` call that it lowered in this process,
    found by the backend configuration of the call; ``None`` if it keeps nothing under that key.

    It has ``partition``, ``static_args``, ``in_tree``, ``out_tree``, ``mesh`` and
    ``module_context``.
    """
    from jax._src import custom_partitioning

    known: Mapping[bytes, Any] = getattr(custom_partitioning, "_sharding_callbacks", {})
    return known.get(key.encode())


def without_names(sharding: jax.sharding.NamedSharding, rank: int) -> Any:
    """Return ``sharding``, over a mesh with devices, as a ``GSPMDSharding``."""
    from jax._src.sharding_impls import GSPMDSharding

    devices = tuple(sharding.mesh.devices.flat)
    return GSPMDSharding(devices, sharding._to_xla_hlo_sharding(rank))


def spec_of(sharding: jax.sharding.Sharding, mesh: Any, rank: int) -> Any:
    """Return the ``PartitionSpec`` over ``mesh`` of a sharding of any class.

    Raises the exception of JAX if there is none.
    """
    from jax._src.sharding_impls import parse_flatten_op_sharding

    [spec, *_] = parse_flatten_op_sharding(sharding._to_xla_hlo_sharding(rank), mesh)
    return spec


def name_of_program(program: Any) -> str:
    """Return the name of the function that a jaxpr was traced from."""
    info = getattr(program.jaxpr, "debug_info", None)
    name = getattr(info, "func_name", None) or str(getattr(info, "func_src_info", ""))
    return str(name).split(" at ")[0] or "custom_partitioning"


def place_of(equation: Any) -> str | None:
    """Return the user's source position of a jaxpr equation, ``file:line:column``; ``None`` if JAX
    does not know it.
    """
    from jax._src import source_info_util

    info = equation.source_info
    # JAX before 0.8 takes the whole source info.
    frame = None
    try:
        frame = source_info_util.user_frame(info.traceback)
    except AttributeError:
        frame = source_info_util.user_frame(info)
    return f"{frame.file_name}:{frame.start_line}:{frame.start_column}" if frame else None


class Call(NamedTuple):
    """An expression of the user's program that an equation comes from; columns count bytes."""

    file: str
    line: int
    column: int
    end: tuple[int, int]
    """Line and column where it ends."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def calls_of(equation: Any) -> tuple[Call, ...]:
    """Return the calls of the user's program that an equation of a jaxpr comes from, the innermost
    first.
    """
    from jax._src import source_info_util

    info = equation.source_info
    # JAX before 0.8 takes the whole of it.
    try:
        frames = list(source_info_util.user_frames(info.traceback))
    except AttributeError:
        frames = list(source_info_util.user_frames(info))
    return tuple(
        Call(one.file_name, one.start_line, one.start_column, (one.end_line, one.end_column))
        for one in frames
    )


def is_of_backward_pass(equation: Any) -> bool:
    """Whether an equation of a jaxpr was made by transposing a function, as gradients are."""
    return "transpose(" in str(equation.source_info.name_stack)
