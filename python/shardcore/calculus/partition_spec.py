"""Shardings as JAX's ``PartitionSpec`` writes them: ``P("X", None)``, ``P(("X", "Y"))``.

JAX is not needed: a spec is anything that lists, for each dim, ``None``, an axis, a tuple of axes
or ``PartitionSpec.UNCONSTRAINED``. It may have a set of axes ``unreduced``, and an
``unreduced_kind``, which says how the terms are reduced. Dims beyond its length have no axes. Only
:func:`to_jax` imports JAX.

Source: the documentation of ``jax.sharding.PartitionSpec``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

from shardcore._core import AxisRef, TensorSharding
from shardcore.bounded import MOST_ITEMS, items, shown
from shardcore.calculus.axes import axis_text
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray, NamedDim, default_names
from shardcore.errors import CalculusError, Diagnostic, ProgramTooLargeError
from shardcore.expected import expect

Kind = Literal["sum", "max", "min"]
KINDS = get_args(Kind)
"""The reductions of unreduced arrays; JAX has ``max`` and ``min`` since 0.11."""


class Unconstrained:
    """An open dim; equal to JAX's ``PartitionSpec.UNCONSTRAINED``."""

    def __eq__(self, other: object) -> bool:
        return is_unconstrained(other)

    def __hash__(self) -> int:
        return hash("UNCONSTRAINED")

    def __repr__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = Unconstrained()


class Spec(NamedTuple):
    """A ``PartitionSpec`` without JAX."""

    dims: tuple[str | tuple[str, ...] | Unconstrained | None, ...]
    unreduced: frozenset[str] = frozenset()
    unreduced_kind: str = "sum"
    """The reduction of the terms along the unreduced axes: one of :data:`KINDS`."""
    reduced: frozenset[str] = frozenset()
    """Axes along which the gradient is unreduced; they do not shard the array itself."""

    def __str__(self) -> str:
        parts = [*map(repr, self.dims)]
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                parts.append(f"{name}={{{', '.join(map(repr, sorted(axes)))}}}")
        if self.unreduced and self.unreduced_kind != "sum":
            parts.append(f"unreduced_kind={self.unreduced_kind}")
        return f"P({', '.join(parts)})"


def is_spec(value: object) -> bool:
    """Whether ``value`` is a spec of JAX or of shardcore."""
    # Specs of JAX before 0.10 have no `partitions`.
    is_named = type(value).__name__ in ("PartitionSpec", "P")
    return isinstance(value, Spec) or (is_named and hasattr(value, "unreduced"))


def entries_of(spec: Any) -> Iterable[Any]:
    """The entries of ``spec``, one for each dim.

    Since JAX 0.10 specs with unreduced or reduced axes cannot be iterated over.
    """
    if isinstance(spec, Spec):
        return spec.dims
    return getattr(spec, "partitions", spec)  # type: ignore[no-any-return]


def kind_of(spec: Any) -> Kind:
    """The reduction of the terms along the unreduced axes of ``spec``: one of :data:`KINDS`."""
    kind = getattr(spec, "unreduced_kind", None)
    return "sum" if kind is None else cast(Kind, getattr(kind, "name", kind))


def is_unconstrained(entry: object) -> bool:
    """Whether ``entry`` of a spec is ``UNCONSTRAINED``, of JAX or of shardcore."""
    return type(entry).__name__ in ("Unconstrained", "UnconstrainedSingleton")


def from_spec(
    spec: Iterable[Any],
    rank: int | None = None,
    *,
    names: Sequence[str] | None = None,
    shape: Sequence[int] | None = None,
    name: str | None = None,
    dtype: str | None = None,
    any_kind: bool = False,
) -> NamedArray:
    """Return an array with the sharding ``spec``.

    The number of dims is ``rank``, or that of ``names`` or ``shape``, or the length of the spec.
    The array is unreduced by sums; with ``any_kind`` another reduction in the spec is ignored.

    Raises:
        CalculusError: the spec has more dims, or invalid entries, or is unreduced by a maximum or a
            minimum; or ``rank``, ``names`` and ``shape`` disagree (``notation``).
        VerificationError: an axis is used twice (``axis-overlap``).
    """
    if not any_kind and kind_of(spec) != "sum":
        raise mistake(
            CalculusError,
            "notation",
            f"arrays are unreduced by sums, not by {kind_of(spec)}",
            hint="programs may have other kinds, the calculus not",
            text=str(spec),
            filename="<spec>",
        )
    entries = list(items(entries_of(spec), "entries"))
    if rank is None:
        rank = next((len(known) for known in (names, shape) if known is not None), len(entries))
    if rank > MOST_ITEMS:
        raise ProgramTooLargeError(Diagnostic("program-too-large", f"more than {MOST_ITEMS} dims"))
    if len(entries) > rank:
        raise mistake(
            CalculusError,
            "notation",
            f"the spec has {len(entries)} entries for an array of {rank} dims",
            hint="a spec has at most one entry for each dim",
            text=str(spec),
            filename="<spec>",
        )
    for what, known in (("names", names), ("sizes", shape)):
        if known is not None and len(known) != rank:
            raise mistake(
                CalculusError,
                "notation",
                f"{len(known)} {what} for an array of {rank} dims",
                hint="give as many as it has dims",
                text=str(spec),
                filename="<spec>",
            )
    labels = default_names(rank) if names is None else names
    sizes: Sequence[int | None] = shape if shape is not None else [None] * rank
    padded = [*entries, *[None] * (rank - len(entries))]
    dims = tuple(
        NamedDim(label, size, *_entry(entry))
        for label, size, entry in zip(labels, sizes, padded, strict=True)
    )
    unreduced = sorted(getattr(spec, "unreduced", ()) or ())
    return NamedArray(dims, name, dtype, tuple(map(AxisRef, unreduced)))


def _entry(entry: Any) -> tuple[tuple[AxisRef, ...], bool]:
    if entry is None:
        return (), False
    if is_unconstrained(entry):
        return (), True
    if isinstance(entry, str):
        return (AxisRef(entry),), False
    if isinstance(entry, (tuple, list)) and all(isinstance(axis, str) for axis in entry):
        return tuple(map(AxisRef, entry)), False
    raise mistake(
        CalculusError,
        "notation",
        f"{shown(entry)} is no entry of a PartitionSpec",
        hint="an entry is None, an axis, a tuple of axes or UNCONSTRAINED",
        text=shown(entry),
        filename="<spec>",
    )


def to_spec(array: NamedArray | TensorSharding) -> Spec:
    """Return the sharding of ``array`` as a spec.

    Raises:
        CalculusError: it has sub-axes, or an open dim with axes, which a spec cannot say
            (``notation``).
    """
    expect(array, NamedArray, TensorSharding)
    if isinstance(array, TensorSharding):
        array = NamedArray.from_sharding(array)
    entries: list[str | tuple[str, ...] | Unconstrained | None] = []
    for dim in array.dims:
        if dim.is_open and dim.axes:
            raise mistake(
                CalculusError,
                "notation",
                f"a PartitionSpec cannot say that {dim} is open",
                hint="close it, or drop its axes",
                text=str(array),
            )
        if dim.is_open:
            entries.append(UNCONSTRAINED)
        else:
            names = tuple(axis.name for axis in dim.axes)
            entries.append(names[0] if len(names) == 1 else names or None)
    for axis in (*array.axes, *array.unreduced):
        if not axis.is_full:
            raise mistake(
                CalculusError,
                "notation",
                f"a PartitionSpec cannot say sub-axis {axis_text(axis)}",
                hint="split the axis of the mesh in two",
                text=str(array),
            )
    return Spec(tuple(entries), frozenset(axis.name for axis in array.unreduced))


def to_jax(array: NamedArray | TensorSharding) -> Any:
    """Return the sharding of ``array`` as a ``jax.sharding.PartitionSpec``.

    Raises:
        CalculusError: as for :func:`to_spec`.
        ImportError: JAX is not installed.
    """
    return jax_spec(to_spec(array))


def jax_spec(spec: Spec) -> Any:
    """Return ``spec`` as a ``jax.sharding.PartitionSpec``.

    Raises:
        ImportError: JAX is not installed.
    """
    from jax.sharding import PartitionSpec

    build: Any = PartitionSpec
    entries = [
        PartitionSpec.UNCONSTRAINED if is_unconstrained(entry) else entry for entry in spec.dims
    ]
    if spec.unreduced:
        return build(*entries, unreduced=set(spec.unreduced))
    return build(*entries)


def spec_of(sharding: TensorSharding | None) -> Spec | None:
    """Return ``sharding`` as a spec without trailing ``None``; ``None`` if no spec can say it."""
    if sharding is None:
        return Spec(())
    try:
        spec = to_spec(sharding)
    except CalculusError:
        return None
    dims = list(spec.dims)
    while dims and dims[-1] is None:
        dims.pop()
    return spec._replace(dims=tuple(dims))


def spec_text(spec: Any) -> str:
    """Return ``spec``, of JAX or of shardcore, as code: ``P('data')``; ``None`` as that."""
    if spec is None:
        return "None"
    unreduced = frozenset(getattr(spec, "unreduced", None) or ())
    return str(Spec(tuple(entries_of(spec)), unreduced))
