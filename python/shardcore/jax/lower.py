"""``shardcore.jax.lower``: lowers functions and JAX's staged and serialized programs."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.export
import numpy as np

from shardcore.calculus.mistakes import close_names
from shardcore.jax.artifacts import from_bytes, from_exported
from shardcore.jax.callbacks import without_host
from shardcore.jax.custom_partitioning import with_own_calls
from shardcore.jax.lowered import Lowered, from_jax_lowered
from shardcore.jax.mesh import MeshLike, jax_mesh, mesh_with_devices
from shardcore.jax.mistakes import mistake
from shardcore.jax.private import SHARDINGS, options_of, over
from shardcore.jax.refusals import ask
from shardcore.jax.result import JaxMesh
from shardcore.jax.shardings import UNSPECIFIED, for_jax, is_leaf, on_mesh
from shardcore.jax.signatures import definition

_Shape: Any = jax.ShapeDtypeStruct


def lower(
    fn: Any,
    *args: Any,
    mesh: MeshLike = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    platform: str | None = None,
    **kwargs: Any,
) -> Lowered:
    """Lower ``fn`` to a program, without devices and without compiling it.

    Only functions take arguments other than ``fn``, ``mesh`` and ``platform``.

    Args:
        fn: a function, jitted or not; a ``jax.stages.Traced`` or ``Lowered``; a
            ``jax.export.Exported`` or the bytes it serializes to; or MLIR bytecode, such as a
            StableHLO portable artifact.
        *args: arguments of ``fn``: arrays, or ``jax.ShapeDtypeStruct``, which may have shardings.
        mesh: the mesh: sizes by name, a ``shardcore.Mesh``, or a mesh of ``jax.sharding``; by
            default the mesh of the context. Axes are automatic unless the mesh's ``axis_types`` say
            otherwise.
        in_shardings: as in ``jax.jit``, a pytree or a prefix of one; a ``PartitionSpec`` is over
            ``mesh``. A leaf may be a :class:`shardcore.TensorSharding`, or text such as
            ``'[{"data", ?}, {"model"}p1]'``, with open dims, priorities, sub-axes and replicated
            axes. Dims of a spec may be ``PartitionSpec.UNCONSTRAINED``, which leaves them open.
        out_shardings: as ``in_shardings``, for the results.
        static_argnums: as in ``jax.jit``. A function that is jitted already keeps its own.
        static_argnames: as in ``jax.jit``. A function that is jitted already keeps its own.
        donate_argnums: as in ``jax.jit``. A function that is jitted already keeps its own.
        donate_argnames: as in ``jax.jit``. A function that is jitted already keeps its own.
        platform: the platform to lower for; by default the one of the mesh's devices, or ``"tpu"``
            if it has no devices.
        **kwargs: keyword arguments of ``fn``.

    Raises:
        LoweringError: ``fn`` is none of these, a mesh is missing or malformed, JAX refuses the
            shardings, or a later version of JAX is needed (``jax-version``). Exceptions that ``fn``
            raises when it is traced are not caught.
        ParseError: the bytecode cannot be read.
    """
    found = jax_mesh(mesh)
    options = {
        "in_shardings": _for_jax(in_shardings, found),
        "out_shardings": _for_jax(out_shardings, found),
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
    }
    options = {name: value for name, value in options.items() if value is not None}
    fn = _own(fn)
    if inspect.ismethod(fn) and isinstance(fn.__func__, jax.stages.Wrapped):
        # JAX traces the jitted function of the class, whose first argument is the object.
        fn, args = fn.__func__, (fn.__self__, *args)
    if isinstance(fn, (bytes, bytearray, memoryview)) or _is_staged(fn):
        _refuse(fn, [*(["arguments"] if args or kwargs else []), *options])
        return _lower_staged(fn, found, platform)
    if not callable(fn):
        raise mistake(
            "not-a-function",
            f"a {type(fn).__name__} is nothing that JAX lowers",
            "parse text by shardcore.Module.parse, a file by Module.from_file"
            if isinstance(fn, str)
            else "give a function, a Traced, a Lowered, an Exported, or bytes",
        )
    _check_names(fn, kwargs)
    # PartitionSpecs inside the function refer to the mesh of the context.
    context = contextlib.nullcontext() if found is None else over(found)
    with context:
        jitted = _jitted(fn, options, found)
        leaves = jax.tree.leaves((args, kwargs))
        devices = mesh_with_devices(getattr(leaf, "sharding", None) for leaf in leaves)
        args, kwargs = jax.tree.map(_shape_of, (args, kwargs))
        traced = ask(jitted.trace, *args, of=fn, by=lower, **kwargs)
        program = _lower_traced(
            traced,
            found,
            platform,
            fn,
            devices,
            functools.partial(_anew, fn, options, found, args, kwargs),
        )
    return program.annotated(in_shardings, out_shardings)


def _check_names(fn: Any, kwargs: Mapping[str, Any]) -> None:
    """Raise if a name in ``kwargs`` is no argument of ``fn``, but close to an option of
    ``lower``."""
    if not kwargs:
        return
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return
    known = {each.name for each in parameters}
    options = [
        each.name
        for each in inspect.signature(lower).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    ]
    for name in kwargs.keys() - known:
        close = close_names(name, options, 1)
        if close:
            raise mistake(
                "unexpected-argument",
                f"lower has no option {name}, and the function no argument of that name",
                f"did you mean {close[0]}=?",
            )


def _for_jax(shardings: Any, mesh: JaxMesh | None) -> Any:
    return None if shardings is UNSPECIFIED else for_jax(on_mesh(shardings, mesh), mesh)


def _is_staged(fn: Any) -> bool:
    return isinstance(fn, (jax.stages.Traced, jax.stages.Lowered, jax.export.Exported))


def _refuse(fn: Any, given: Sequence[str]) -> None:
    """Raise if arguments were given that only functions take."""
    if given:
        raise mistake(
            "unexpected-argument",
            f"a {type(fn).__name__} is traced already and takes no {' or '.join(given)}",
            "give them to the function that it was made from",
        )


def _platforms(platform: str | None, mesh: JaxMesh | None) -> tuple[str]:
    """The platform to lower for, under the name that JAX's lowering uses."""
    if platform is not None:
        return (platform,)
    if not isinstance(mesh, jax.sharding.Mesh):
        return ("tpu",)
    device = mesh.devices.flat[0]
    if device.platform != "gpu":
        return (device.platform,)
    return ("rocm" if "rocm" in device.client.platform_version else "cuda",)


def _lower_traced(
    traced: Any,
    mesh: JaxMesh | None,
    platform: str | None,
    fn: Any = None,
    devices: jax.sharding.Mesh | None = None,
    retrace: Callable[[], Any] | None = None,
) -> Lowered:
    """Lower ``traced``. Callbacks into this process work on the devices of ``mesh`` only."""
    own = mesh if isinstance(mesh, jax.sharding.Mesh) else devices
    given = traced = _own(traced)
    traced = with_own_calls(traced, own)
    if platform is not None or not isinstance(mesh, jax.sharding.Mesh):
        traced = without_host(traced)
    lowered = ask(traced.lower, lowering_platforms=_platforms(platform, mesh), of=fn)
    program = from_jax_lowered(lowered, mesh, devices)
    again = functools.partial(_lower_traced, mesh=mesh, platform=platform, fn=fn, devices=devices)
    program = program.with_unreduced_results(traced.out_info)
    return program.of_traced(given, retrace, again, definition(fn))


def _own(staged: Any) -> Any:
    """JAX's staged program inside that of a library that wraps it, such as ``nnx.jit``."""
    for name, own in (("traced", jax.stages.Traced), ("lowered", jax.stages.Lowered)):
        inner = getattr(staged, name, None)
        if not isinstance(staged, own) and isinstance(inner, own):
            return inner
    return staged


def _lower_staged(fn: Any, mesh: JaxMesh | None, platform: str | None) -> Lowered:
    if isinstance(fn, (bytes, bytearray, memoryview)):
        return from_bytes(bytes(fn), mesh)
    if isinstance(fn, jax.export.Exported):
        return from_exported(fn, mesh)
    if isinstance(fn, jax.stages.Traced):
        return _lower_traced(fn, mesh, platform)
    return from_jax_lowered(fn, mesh)


def _jitted(fn: Callable[..., Any], options: dict[str, Any], mesh: JaxMesh | None) -> Any:
    """``fn`` as a jitted function; ``options`` override those that it has, whose specs are over
    ``mesh``."""
    if not isinstance(fn, jax.stages.Wrapped):
        return ask(jax.jit, fn, **options)
    own, has_specs = _own_options(fn, mesh)
    inner = getattr(fn, "__wrapped__", None)
    if not options and not has_specs:
        # A jitted function of another library is jitted again, so that its arguments have the
        # user's paths.
        return jax.jit(fn) if _has_no_options(getattr(fn, "jitted_fn", None)) else fn
    if own is None or inner is None:
        return ask(jax.jit, fn, **options)
    twice = [name for name in options if name in own]
    if twice:
        raise mistake(
            "unexpected-argument",
            f"the function is jitted with {' and '.join(twice)} of its own",
            "give them in one place",
        )
    return ask(jax.jit, inner, **own, **options)


def _own_options(fn: Any, mesh: JaxMesh | None) -> tuple[dict[str, Any] | None, bool]:
    """The options of a jitted function, with each ``PartitionSpec`` as a sharding over ``mesh``,
    since JAX takes specs on a mesh with devices only; and whether there are any."""
    own = options_of(fn)
    found = {
        name: _for_jax(own[name], mesh)
        for name in SHARDINGS
        if own is not None and mesh is not None and name in own and _has_specs(own[name])
    }
    return (None if own is None else own | found), bool(found)


def _has_specs(tree: Any) -> bool:
    leaves = jax.tree.leaves(tree, is_leaf=is_leaf)
    return any(isinstance(leaf, jax.sharding.PartitionSpec) for leaf in leaves)


def _anew(fn: Any, options: dict[str, Any], mesh: JaxMesh | None, args: Any, kwargs: Any) -> Any:
    """``fn`` traced once more, though JAX knows it."""
    own, _ = _own_options(fn, mesh) if isinstance(fn, jax.stages.Wrapped) else (None, False)
    inner = getattr(fn, "__wrapped__", fn) if own is not None else fn

    unknown: Any = functools.wraps(inner)(lambda *args, **kwargs: inner(*args, **kwargs))
    jitted = jax.jit(unknown, **{**(own or {}), **options})
    return _own(jitted.trace(*args, **kwargs))


def _has_no_options(jitted: Any) -> bool:
    """Whether a function was jitted by JAX without shardings and without static or donated
    arguments."""
    own = options_of(jitted)
    return own is not None and not jax.tree.leaves(own)


def _shape_of(leaf: Any) -> Any:
    """The shape and type of an array, without its values and devices."""
    if isinstance(leaf, np.ndarray):
        return _Shape(leaf.shape, jax.dtypes.canonicalize_dtype(leaf.dtype))
    if not isinstance(leaf, jax.Array):
        return leaf
    sharding = leaf.sharding
    if isinstance(sharding, jax.sharding.NamedSharding):
        mesh, kind = sharding.mesh.abstract_mesh, _host_memory_of(leaf)
        sharding = jax.sharding.NamedSharding(mesh, sharding.spec, memory_kind=kind)
        return _Shape(leaf.shape, leaf.dtype, sharding=sharding)
    is_weak = bool(getattr(leaf, "weak_type", False))
    return _Shape(leaf.shape, leaf.dtype, weak_type=is_weak)


def _host_memory_of(array: jax.Array) -> str | None:
    """The memory kind of ``array`` if it is in host memory, else ``None``."""
    kind: str | None = array.sharding.memory_kind
    device: Any = next(iter(array.sharding.device_set))
    is_own = kind is None or kind == device.default_memory().kind
    return kind if not is_own and "host" in str(kind) else None
