"""The Rust core. Import its classes from :mod:`shardcore`.

Shapes are sequences of sizes, one for each dim, in elements. Device ids are the logical ids of a
mesh. Meshes, shardings and rules are immutable, hashable and picklable, and print as `sdy` text.

Source: Shardy's sharding representation (``docs/sharding_representation.md`` upstream).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from shardcore.calculus.hardware import Hardware
from shardcore.costs import Cost
from shardcore.errors import Diagnostic, Place
from shardcore.expect import Check
from shardcore.gspmd import HloSharding
from shardcore.partition import Partitioned
from shardcore.report.graph import Graph
from shardcore.report.page import Page
from shardcore.report.picture import Picture
from shardcore.session import Session
from shardcore.session.paths import Ports
from shardcore.why import Why, WhyNot
from shardcore.why.steps import Steps

__all__ = [
    "AnnotatedProgram",
    "AxisRef",
    "Block",
    "DataFlowEdge",
    "DimSharding",
    "Explainer",
    "FactorTable",
    "Figures",
    "Mesh",
    "MeshAxis",
    "Module",
    "Op",
    "OpShardingRule",
    "Origin",
    "Originals",
    "PassManager",
    "Port",
    "ReshardPlans",
    "Result",
    "SessionProgram",
    "StrategyProblem",
    "StrategySolution",
    "TensorSharding",
    "Value",
    "__version__",
    "after_fork_in_child",
    "cache_sizes",
    "clear_caches",
    "collective_passes",
    "collective_traffic",
    "default_shardy",
    "error_codes",
    "finish",
    "import_hlo_shardings",
    "is_installed",
    "known_ops",
    "op_names",
    "ops_named",
    "ops_of_size",
    "partition_program",
    "program_figures",
    "registered_rules",
    "registry_version",
    "set_data_flow_edges",
    "set_rule",
    "shardy_changes",
    "shardy_versions",
    "values_on_host",
]

__version__: str

_Axis: TypeAlias = str | AxisRef
_Axes: TypeAlias = _Axis | Iterable[_Axis]
_Dim: TypeAlias = DimSharding | _Axes | None

@final
class MeshAxis:
    """One axis of a mesh: a name and a number of devices.

    Raises:
        VerificationError: ``size`` is below 1 (``invalid-mesh``).
    """

    def __new__(cls, name: str, size: int) -> MeshAxis: ...
    @property
    def name(self) -> str:
        """The name, unique in its mesh."""
    @property
    def size(self) -> int:
        """Number of devices along the axis."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Mesh:
    """Named axes, major to minor, over devices.

    ``Mesh({"x": 2, "y": 4})`` has the devices 0 to 7 in row-major order; ``device_ids`` gives
    another order. ``Mesh.maximal(3)`` is device 3 alone; ``Mesh()`` is the empty mesh, a
    placeholder.

    Args:
        axes: a mapping from name to size, or an iterable of pairs or of ``MeshAxis``.
        device_ids: a permutation of ``range(n)``; the default order is stored as ``None``.
        devices: instead of ``axes``, the devices in nested sequences or an array, one level for
            each axis: ``Mesh(devices=((0, 1), (2, 3)), axis_names=("X", "Y"))``, as in
            ``jax.sharding.Mesh``. A device is a number or an object that has one as ``id``.
        axis_names: the names of the axes of ``devices``, major to minor.

    Raises:
            VerificationError: a size is below 1, a name is used twice, there are 2^62 devices or
                more, or the device ids are no permutation (``invalid-mesh``).
        ProgramTooLargeError: there are more than 2^24 device ids, or more than 2^20 axes.
    """

    def __new__(
        cls,
        axes: Mapping[str, int] | Iterable[tuple[str, int] | MeshAxis] | None = None,
        device_ids: Iterable[int] | None = None,
        *,
        devices: Any = None,
        axis_names: Iterable[str] | str | None = None,
    ) -> Mesh: ...
    @staticmethod
    def parse(text: str) -> Mesh:
        """Parse ``<["x"=2, "y"=4], device_ids=[...]>``, with or without ``#sdy.mesh`` in front.

        Raises:
            ParseError: the text is not that of a mesh.
            VerificationError: as for the constructor, with the position in the text.
        """
    @staticmethod
    def maximal(device_id: int) -> Mesh:
        """Return the maximal mesh of one device, which holds tensors unsharded.

        Raises:
            VerificationError: ``device_id`` is negative (``invalid-mesh``).
        """
    @property
    def axes(self) -> tuple[MeshAxis, ...]:
        """The axes, major to minor."""
    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes, major to minor."""
    @property
    def shape(self) -> dict[str, int]:
        """The size of each axis by name, major to minor."""
    @property
    def device_ids(self) -> tuple[int, ...] | None:
        """The devices in row-major order of the axes; ``None`` for the default order 0, 1, 2,
        ..."""
    @property
    def num_devices(self) -> int:
        """Number of devices: the product of the axis sizes, 0 for the empty mesh."""
    @property
    def is_maximal(self) -> bool:
        """Whether it is a single device, given by its id."""
    @property
    def is_empty(self) -> bool:
        """Whether it has neither axes nor devices."""
    def axis_size(self, name: str) -> int:
        """Return the number of devices along axis ``name``.

        Raises:
            VerificationError: the mesh lacks the axis (``unknown-axis``).
        """
    def merge_axes(self, axes: _Axes) -> list[AxisRef]:
        """Return ``axes`` with consecutive sub-axes of an axis merged: ``"x":(1)2, "x":(2)2``
        becomes ``"x":(1)4``, or ``"x"`` if that is the whole axis.

        Raises:
                VerificationError: the mesh lacks an axis (``unknown-axis``), or a sub-axis does not
                    fit its axis (``invalid-sub-axis``).
        """
    def group_nodes(self, axes: _Axes, node_size: int) -> tuple[int, int]:
        """Return the number of nodes that the first group of devices along ``axes`` spans, and the
        largest number of its devices in one node.

        Nodes have ``node_size`` devices each, in the order of their ids. Takes constant time,
        unless the mesh lists its device ids.

        Raises:
            VerificationError: as for :meth:`merge_axes`.
        """
    def coordinates(self, device_id: int) -> dict[str, int]:
        """Return the coordinate of a device along each axis, major to minor.

        Raises:
            KeyError: the mesh has no device with this id.
        """
    def device_at(self, coordinates: dict[str, int]) -> int:
        """Return the id of the device at these coordinates, one for each axis.

        Raises:
            VerificationError: a coordinate is missing, or outside its axis.
        """
    def __contains__(self, name: str, /) -> bool:
        """Whether there is an axis called ``name``."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Mesh: ...
    def __deepcopy__(self, memo: object, /) -> Mesh: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class AxisRef:
    """A mesh axis or a sub-axis: ``AxisRef("x")``, ``AxisRef("x", pre_size=1, size=2)``.

    A sub-axis ``"x":(m)k`` of an axis of size n is the middle dim after the axis is reshaped to
    ``[m, k, n / (m * k)]``. An ``AxisRef`` has the name of its axis, but not its size.

    Refs order by name, then by position in the axis: ``"a":(1)2 < "a" < "a":(2)2``.

    Raises:
        VerificationError: the pre-size is below 1, or the size is below 2 (``invalid-sub-axis``).
        TypeError: only one of ``pre_size`` and ``size`` is given.
    """

    def __new__(
        cls, name: str, pre_size: int | None = None, size: int | None = None
    ) -> AxisRef: ...
    @staticmethod
    def parse(text: str) -> AxisRef:
        """Parse ``"x"`` or ``"x":(1)2``, quotes included."""
    @property
    def name(self) -> str:
        """The name of the axis."""
    @property
    def pre_size(self) -> int | None:
        """Product of the sizes of the parts major to this one; ``None`` for a whole axis."""
    @property
    def size(self) -> int | None:
        """Size of this part; ``None`` for a whole axis, whose size depends on the mesh."""
    @property
    def is_full(self) -> bool:
        """Whether it is the whole axis."""
    def size_in(self, mesh: Mesh) -> int:
        """Return the number of devices along this ref in ``mesh``.

        Raises:
            VerificationError: the mesh lacks the axis (``unknown-axis``).
        """
    def contains(self, other: AxisRef) -> bool:
        """Whether every part of ``other`` is also part of this one."""
    def overlaps(self, other: AxisRef) -> bool:
        """Whether the two share a part of an axis."""
    def overlap(self, other: AxisRef) -> AxisRef | None:
        """Return the common part; ``None`` if there is none, or if the two cannot coexist."""
    def prefix_without_overlap(self, other: AxisRef) -> AxisRef | None:
        """Return the largest prefix of this ref that does not overlap ``other``; ``None`` if there
        is none, or if the two cannot coexist."""
    def suffix_without_overlap(self, other: AxisRef, mesh: Mesh) -> AxisRef | None:
        """Return the largest suffix of this ref that does not overlap ``other``; ``None`` if there
        is none, or if the two cannot coexist.

        Raises:
            VerificationError: the mesh lacks the axis (``unknown-axis``).
        """
    def stride_in(self, mesh: Mesh) -> int:
        """Return the distance between neighbours along this axis, in the row-major order of the
        devices of ``mesh``.

        Raises:
            VerificationError: the mesh lacks the axis (``unknown-axis``).
        """
    def can_coexist(self, other: AxisRef) -> bool:
        """Whether one split of their axis into sub-axes contains both; true for different axes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: AxisRef, /) -> bool: ...
    def __le__(self, other: AxisRef, /) -> bool: ...
    def __gt__(self, other: AxisRef, /) -> bool: ...
    def __ge__(self, other: AxisRef, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class DimSharding:
    """How one dim is sharded: ``{"x", "y"}`` closed, ``{"x", ?}`` open, ``{?}p1`` with a priority.

    Args:
        axes: an axis or axes, major to minor.
        is_closed: whether propagation may not add axes to the dim.
        priority: the user priority; 0 propagates first, and is the default.

    Raises:
        VerificationError: axes overlap or can be merged, or a closed empty dim has a priority.
    """

    def __new__(
        cls, axes: _Axes | None = None, is_closed: bool = True, priority: int | None = None
    ) -> DimSharding: ...
    @staticmethod
    def parse(text: str) -> DimSharding:
        """Parse ``{"x", ?}p1``."""
    @property
    def axes(self) -> tuple[AxisRef, ...]:
        """The axes, major to minor."""
    @property
    def is_closed(self) -> bool:
        """Whether propagation may not add axes."""
    @property
    def is_open(self) -> bool:
        """Whether propagation may add axes."""
    @property
    def priority(self) -> int | None:
        """The user priority, or ``None``."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class TensorSharding:
    """How a tensor is laid out over a mesh.

    ``TensorSharding(mesh, ["x", None, ["y", "z"]])`` shards dim 0 over ``x``, and dim 2 over ``y``
    (major) and ``z`` (minor); all dims are closed. Pass a ``DimSharding`` for a dim that is open or
    has a priority.

    The mesh is inlined unless ``mesh_name`` gives its symbol. ``mesh`` may also be only the symbol
    of a mesh, ``"@mesh"``. Such a sharding can be printed, compared, and verified as far as
    possible without the mesh; methods that ask what devices hold need :meth:`with_mesh` first.

    Args:
        mesh: the mesh, or the symbol of one.
        dims: for each dim a ``DimSharding``, an axis, axes, or ``None`` for no axes.
        replicated: axes that may not shard any dim, in any order.
            unreduced: axes over which the value is still to be reduced, in any order.
            reduction_op: the reduction over ``unreduced``: ``"sum"``, ``"max"`` or ``"min"``; the
                last two need a program that follows the Shardy of jaxlib 0.12 or newer.
        mesh_name: the symbol of ``mesh``, with or without ``@``.

    Raises:
            VerificationError: an axis is unknown (``unknown-axis``), a sub-axis is malformed
                (``invalid-sub-axis``), an axis is used twice (``axis-overlap``), or another rule of
                the representation is violated (``invalid-sharding``). ``.diagnostics`` lists all
                mistakes.
    """

    def __new__(
        cls,
        mesh: Mesh | str,
        dims: Iterable[_Dim],
        *,
        replicated: _Axes | None = None,
        unreduced: _Axes | None = None,
        reduction_op: Literal["sum", "max", "min"] = "sum",
        mesh_name: str | None = None,
    ) -> TensorSharding: ...
    @staticmethod
    def parse(text: str, mesh: Mesh | Mapping[str, Mesh] | None = None) -> TensorSharding:
        """Parse ``<@mesh, [{"x"}, {?}]>``, with or without ``#sdy.sharding`` in front.

        It also accepts what JAX prints, ``NamedSharding(mesh=Mesh('x': 2), spec=P('x', None))`` and
        ``GSPMDSharding({devices=[2,1]<=[2]})``; without ``mesh``, the latter gets axes ``x``,
        ``y``, ...

        Args:
            text: the sharding.
                    mesh: the mesh of the sharding, or meshes by symbol; without it the mesh is
                    unknown, unless the text inlines it.

        Raises:
                    ParseError: the text is not that of a sharding.
                    VerificationError: as for the constructor, with the position in the text; or
                    ``mesh`` does not contain the named mesh (``unknown-mesh``).
        """
    @staticmethod
    def fully_replicated(
        mesh: Mesh | str, rank: int, *, is_closed: bool = True, mesh_name: str | None = None
    ) -> TensorSharding:
        """Return the sharding of ``rank`` dims without axes, all closed or all open."""
    @property
    def mesh(self) -> Mesh | None:
        """The mesh; ``None`` if only its symbol is known."""
    @property
    def mesh_name(self) -> str | None:
        """The symbol of the mesh, without ``@``; ``None`` if it is inlined."""
    @property
    def rank(self) -> int:
        """Number of dims."""
    @property
    def dims(self) -> tuple[DimSharding, ...]:
        """The sharding of each dim."""
    @property
    def replicated(self) -> tuple[AxisRef, ...]:
        """Axes that may not shard any dim."""
    @property
    def unreduced(self) -> tuple[AxisRef, ...]:
        """Axes over which the value is still to be reduced."""
    @property
    def reduction_op(self) -> Literal["sum", "max", "min"]:
        """The reduction over ``unreduced``; ``"sum"`` if there are no such axes."""
    @property
    def is_fully_replicated(self) -> bool:
        """Whether no dim has axes."""
    @property
    def is_fully_closed(self) -> bool:
        """Whether every dim is closed."""
    @property
    def replication_factor(self) -> int:
        """How many devices hold the same shard.

        Raises:
                    VerificationError: the mesh is unknown (``unknown-mesh``); the methods below
                    that need the mesh raise it too.
        """
    def canonical(self, mesh: Mesh | None = None) -> TensorSharding:
        """Return the canonical form: replicated and unreduced axes in mesh order, sub-axes of one
        axis by ascending pre-size, and consecutive sub-axes merged.

        A sharding over a known mesh is always canonical. One that has only the symbol of its mesh
        becomes canonical with ``mesh``; without it, axes are in order of appearance.

        Source: Shardy's sharding representation, "Explicitly replicated sub-axes".

        Raises:
            VerificationError: as for the constructor.
        """
    def with_mesh(self, mesh: Mesh) -> TensorSharding:
        """Return this sharding over ``mesh``, with the same symbol.

        Raises:
            VerificationError: as for the constructor.
        """
    @staticmethod
    def from_hlo(text: str, mesh: Mesh | None = None, *, rank: int | None = None) -> TensorSharding:
        """Return the sharding in ``text``, which is in GSPMD's notation; see
        :meth:`shardcore.HloSharding.to_sharding`.

        Examples:
            >>> print(TensorSharding.from_hlo("{devices=[2,1]<=[2]}", Mesh({"x": 2})).dims[0])
            {"x"}

        Raises:
                    ParseError: the text is not that of a sharding.
                    VerificationError: the axes of the mesh cannot express the tiling.
        """
    def to_hlo(self, manual: Iterable[str] = ...) -> HloSharding:
        """Return the sharding in GSPMD's notation; see :meth:`shardcore.HloSharding.from_sharding`.

        Examples:
            >>> print(TensorSharding(Mesh({"x": 2, "y": 4}), ["x", None]).to_hlo())
            {devices=[2,1,4]<=[8] last_tile_dim_replicate}
        """
    def closed(self) -> TensorSharding:
        """Return this sharding with every dim closed."""
    def sharded_size(self, dim: int) -> int:
        """Return the number of shards along ``dim``: the product of its axes' sizes.

        Raises:
            IndexError: there is no such dim.
        """
    def local_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape that each device holds of a tensor with global shape ``shape``.

        A dim of size s with k shards has local size ``ceil(s / k)``; the last devices may have
        padding.

        Raises:
            VerificationError: ``shape`` has another rank (``invalid-sharding``).
        """
    def shard_slice(self, shape: Sequence[int], device_id: int) -> tuple[slice, ...]:
        """Return the slice, without padding, that a device holds of a tensor with shape ``shape``.

        Raises:
            KeyError: the mesh has no device with this id.
        """
    def shard_padding(self, shape: Sequence[int], device_id: int) -> tuple[int, ...]:
        """Return the number of padding elements at the end of each dim on a device.

        Raises:
            KeyError: the mesh has no device with this id.
        """
    def device_slices(self, shape: Sequence[int]) -> dict[int, tuple[slice, ...]]:
        """Return the slice that each device holds, by device id, in mesh order.

        Raises:
            ProgramTooLargeError: devices times dims exceed 2^20; see :meth:`shard_slice`.
        """
    def padding(self, shape: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Return the padding at the end of each dim on each device, by device id, in mesh order.

        Raises:
            ProgramTooLargeError: devices times dims exceed 2^20; see :meth:`shard_padding`.
        """
    def bytes_per_device(self, shape: Sequence[int], dtype: str) -> int:
        """Return the bytes on one device, including padding.

        ``dtype`` is an MLIR element type: ``"f32"``, ``"bf16"``, ``"complex<f32>"``. As in XLA,
        ``"i1"`` takes a byte, ``"i4"`` half a byte.

        Raises:
            ValueError: the size of the type is unknown.
        """
    def is_equivalent(self, other: TensorSharding, shape: Sequence[int] | None = None) -> bool:
        """Whether under both shardings every device holds the same elements, and reduces with the
        same devices.

        Names, axis splits, device orders, open dims and priorities do not matter. With ``shape``,
        tensors of that shape are compared, without it those of every shape. Takes constant time for
        meshes in default device order, and time linear in the number of devices for others.
        """
    def visualize(self, shape: Sequence[int] | None = None) -> Picture:
        """Draw which device holds which block: text in a terminal, a picture in a notebook.

        With ``shape``, blocks are labelled by their elements, otherwise by their indices.

        Raises:
                    VerificationError: the mesh is unknown (``unknown-mesh``), or ``shape`` has
                    another rank (``invalid-sharding``).
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class OpShardingRule:
    """The sharding rule of an op: which dims of operands and results belong to the same factor.

    A matmul ``[i, k] x [k, j] -> [i, j]`` with sizes 8, 16 and 32::

        OpShardingRule([8, 16, 32], [[[0], [2]], [[2], [1]]], [[[0], [1]]], reduction=[2])

    Args:
        factor_sizes: the size of each factor.
            operand_mappings: for each operand and each dim its factors, major to minor.
            result_mappings: for each result and each dim its factors, major to minor.
            reduction: reduction factors, such as contracting dims.
            need_replication: factors that must be replicated to compute the op.
            permutation: factors that need a collective permute if they are sharded.
            blocked_propagation: factors along which shardings do not propagate.
            is_custom: whether the user wrote the rule; such a rule is kept through the pipeline.
    Raises:
        VerificationError: the rule is malformed (``invalid-rule``).
    """

    def __new__(
        cls,
        factor_sizes: Sequence[int],
        operand_mappings: Sequence[Sequence[Sequence[int]]],
        result_mappings: Sequence[Sequence[Sequence[int]]],
        *,
        reduction: Sequence[int] | None = None,
        need_replication: Sequence[int] | None = None,
        permutation: Sequence[int] | None = None,
        blocked_propagation: Sequence[int] | None = None,
        is_custom: bool = False,
    ) -> OpShardingRule: ...
    @staticmethod
    def parse(
        text: str,
        operand_shapes: Sequence[Sequence[int]] | None = None,
        result_shapes: Sequence[Sequence[int]] | None = None,
    ) -> OpShardingRule:
        """Parse ``<([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}>``.

        ``#sdy.op_sharding_rule`` may come first. The short notation ``"i k, k j -> i j"`` is
        accepted too, with shapes or with sizes after it: ``"i -> i {i=8}"``; see
        :mod:`shardcore.rules`. Its factors are numbered by first appearance. Tensors may be in
        parentheses: ``"(i, k), (k, j) -> (i, j)"``, ``"((ij), k) -> (i,j,k) : i=2, j=4, k=8"``.

        Raises:
                    ParseError: the text is not that of a rule.
                    VerificationError: as for the constructor, with the position in the text; or the
                    rule does not fit the shapes (``invalid-rule``).
        """
    @property
    def notation(self) -> str:
        """The rule in short notation, ``"i k, k j -> i j"``, without sizes."""
    @staticmethod
    def _restore(text: str) -> OpShardingRule: ...
    @property
    def num_factors(self) -> int:
        """Number of factors."""
    @property
    def factor_names(self) -> list[str]:
        """The symbol of each factor: ``i`` to ``z``, then ``z_1`` and so on."""
    @property
    def factor_sizes(self) -> tuple[int, ...]:
        """The size of each factor."""
    @property
    def operand_mappings(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For each operand and each dim its factors, major to minor."""
    @property
    def result_mappings(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For each result and each dim its factors, major to minor."""
    @property
    def reduction(self) -> tuple[int, ...]:
        """Reduction factors, such as contracting dims."""
    @property
    def need_replication(self) -> tuple[int, ...]:
        """Factors that must be replicated to compute the op."""
    @property
    def permutation(self) -> tuple[int, ...]:
        """Factors that need a collective permute if they are sharded."""
    @property
    def blocked_propagation(self) -> tuple[int, ...]:
        """Factors along which shardings do not propagate."""
    @property
    def pass_through(self) -> tuple[int, ...]:
        """Pass-through factors, which need no communication: those in none of the first three
        lists."""
    @property
    def is_custom(self) -> bool:
        """Whether the user wrote the rule."""
    def check_shapes(
        self, operand_shapes: Sequence[Sequence[int]], result_shapes: Sequence[Sequence[int]]
    ) -> None:
        """Check that the rule fits an op whose operands and results have these shapes.

        Raises:
            VerificationError: it does not fit (``invalid-rule``).
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Module:
    """A program: StableHLO, CHLO, func and sdy ops, with the text that they were parsed from.

    ``str(module)`` is text that MLIR's own parser accepts; ops that no pass changed keep their
    source text. Only :meth:`PassManager.run` changes a module.

    Threads may share a module. All methods read its last state: the parsed program, or the result
    of the last successful run. They neither wait for a run nor fail because of one, even in
    callbacks of the run itself; objects that they returned do not change. A second run on the same
    module at the same time, from a thread or a callback, is refused with a
    :class:`~shardcore.BusyError`. To run passes on one program in several threads, give each a
    copy, ``copy.copy(module)``, which takes constant time.

    Examples:
        >>> module = shardcore.Module.parse('''
        ... sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
        ...     -> tensor<8xf32> {
        ...   %0 = stablehlo.negate %arg0 : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }''')
        >>> str(module.propagate()["%0"].sharding)
        '<@mesh, [{"x"}]>'
    """

    @staticmethod
    def parse(
        text: str | bytes, *, filename: str = "<string>", shardy: str | None = None
    ) -> Module:
        """Parse MLIR text in pretty or generic form.

        Bytes have to be UTF-8. ``filename`` is the name of the text in errors. ``shardy`` is the
        version of Shardy to follow, named after the jaxlib release that contains it, one of
        ``shardcore.SHARDY_VERSIONS``; by default that of the installed jaxlib, or without jaxlib
        the newest.

        Raises:
                    ParseError: the version ``shardy`` is unknown (``shardy-version``).
                    ParseError: the text is not MLIR; has line and column.
                    VerificationError: an op, mesh, sharding or rule is not valid; ``.diagnostics``
                    lists all of them.
        """

    @staticmethod
    def from_file(path: str | PathLike[str], *, shardy: str | None = None) -> Module:
        """Parse a file; see :meth:`parse`.

        Raises:
            OSError: the file cannot be read.
        """

    @property
    def shardy(self) -> str:
        """The version of Shardy that the program follows, one of ``SHARDY_VERSIONS``."""

    @property
    def num_ops(self) -> int:
        """Number of ops, including nested ones and the module itself."""

    @property
    def entry(self) -> str | None:
        """The name of the entry function: ``main``, else the first public one, else the first."""

    @property
    def meshes(self) -> dict[str, Mesh]:
        """The meshes by symbol, without ``@``, in program order; without those inlined in
        shardings."""

    @property
    def _ports(self) -> Ports: ...
    def arguments(self) -> list[Port]:
        """The arguments of the entry function, in order; empty if it has no body."""

    def results(self) -> list[Port]:
        """The results of the entry function, in order."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the module op itself, in the form of :attr:`Op.attributes`."""
    def ops(self) -> list[Op]:
        """Return every op of every function in program order: ``func.func``, then the ops in it.

        Examples:
            >>> [op.name for op in Module.parse("func.func @main() { return }").ops()]
            ['func.func', 'func.return']
        """
    @property
    def filename(self) -> str:
        """The name of the text in errors."""
    def simulate(
        self,
        *arrays: Any,
        devices: int | None = ...,
        replicas: int | None = ...,
        function: str | None = ...,
    ) -> list[Any]:
        """Run the program on NumPy and return its results, one array for each.

        Without ``devices``, the program runs once, as a global program. With ``devices=n``, each of
        n devices runs it: an argument has the shape of the program's parameter, if it is the same
        on all devices, or that shape with a leading dim of size n; results have that leading dim.
        ``shardcore.simulate.Simulator`` prepares a program once and can run it many times.

        Examples:
            >>> text = "func.func @main(%a: tensor<i32>) -> tensor<i32> { return %a : tensor<i32> }"
            >>> [int(result) for result in Module.parse(text).simulate(3)]
            [3]

        Raises:
                    SimulationError: an op cannot be simulated (``unsupported-op``), the arguments
                    do not fit (``invalid-argument``), not all devices of a group reach a collective
                    (``diverging-collective``), or another error of ``Simulator``.
        """
    def values(self) -> list[Value]:
        """Every op result and block argument, function by function in program order."""

    def at(self, place: str) -> list[Value]:
        """The values that a line of the user's program computes: ``module.at("model.py:42")``.

        A file matches by its last path components. A line matches at any depth of the call stack,
        so the line of a call has all values that the call computes. An expression that spans
        several lines is found by each of its lines on which no other expression starts.

        Raises:
                    LocationError: no value comes from there; the error names the nearest lines
                    (``unknown-location``).
        """

    def __getitem__(self, key: str | tuple[str, str], /) -> Value:
        """The value called ``key`` in the entry function, such as ``"%12"`` or ``"%3#1"``.

        The entry function is ``@main``, else the first public one. ``module["@helper", "%0"]`` and
        ``module["@helper %0"]`` look in another function. ``key`` may also be the path of an
        argument in the user's program, ``"params['w']"``, or of a result, which denotes the
        returned value. If several values are printed with one name, ``"%8"`` is the first, and
        ``"%0 do %8"`` the one in region ``do`` of the op that defines ``%0``; see
        :attr:`Value.qualified_name`.

        Raises:
            KeyError: there is no such value or function.
        """

    def propagate(
        self,
        *,
        up_to_priority: int | None = None,
        keep_non_divisible_on_io: bool = False,
        keep_sub_axes_on_io: bool = False,
        dedup_functions_fully: bool = False,
        legalize_chlo: bool = False,
        strategy: str | None = None,
        max_ops: int | None = None,
        progress: Callable[[str, float], object] | None = None,
    ) -> Result:
        """Propagate shardings to all values, as Shardy's ``sdy-propagation-pipeline`` does.

        The module and its annotations do not change. If the annotations are ``mhlo.sharding``
        strings and none is of ``sdy``, or if Shardy has exported them for XLA, they are imported
        first; see :func:`shardcore.import_hlo_shardings`.

        Args:
                    up_to_priority: the last user priority to propagate; by default all.
                    keep_non_divisible_on_io: keep shardings of arguments and results that do not
                    divide a dim evenly, or have sub-axes in open dims. Otherwise the export removes
                    these axes; :attr:`Result.warnings` lists annotations that lost axes.
                    keep_sub_axes_on_io: the former name of ``keep_non_divisible_on_io``.
                    dedup_functions_fully: propagate through all calls of a function together
                    instead of each call site separately.
                    legalize_chlo: give CHLO ops, such as ``chlo.square`` and ``chlo.erf``, the
                    rules of the ops that XLA legalizes them to before it propagates, and inline the
                    decompositions of ``stablehlo.composite``, as XLA does; otherwise these ops have
                    no rules, as in ``sdy-propagation-pipeline``.
            strategy: how conflicts between axes are resolved: ``"aggressive"``, as in Shardy's
                pipeline, ``"basic"`` or ``"basic-then-aggressive"``.
                    max_ops: the largest allowed number of ops, also after the call graph is
                    flattened; by default 16 million.
                    progress: called from time to time with the name of the current step and the
                    fraction of the work that is done, from 0 to 1.

        Raises:
            PropagationError: the program is recursive, or has types that cannot be propagated.
            ProgramTooLargeError: it would have more than ``max_ops`` ops.
            ValueError: ``strategy`` is unknown.
            KeyboardInterrupt: Ctrl-C was pressed.
        """

    def session(self, *, mesh: Mesh | Mapping[str, int] | None = None, **options: Any) -> Session:
        """Return a session in which the annotations can be edited; see :class:`Session`.

        Args:
                    mesh: replaces the program's mesh; or the mesh of a program without one.
                    **options: those of :meth:`propagate`, except ``progress``.

        Raises:
                    VerificationError: ``mesh`` is given for a program with several meshes, or the
                    program's shardings name axes that ``mesh`` does not have.
        """
    def edges(self) -> list[DataFlowEdge]:
        """Every data-flow edge: of loops, conditionals, optimization barriers, manual and named
        computations, and of ops with edges registered by :func:`shardcore.data_flow_edges`.

        Examples:
            >>> module = shardcore.Module.parse('''
            ... func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
            ...   %0 = stablehlo.optimization_barrier %a : tensor<8xf32>
            ...   return %0 : tensor<8xf32>
            ... }''')
            >>> module.edges()
            [<shardcore.DataFlowEdge of stablehlo.optimization_barrier: %a -> %0>]
        """
    def factor_table(self, target: Value | DataFlowEdge | str | tuple[str, str]) -> FactorTable:
        """The table of tensors by factors for the op that defines ``target``, before and after one
        visit.

        A name is as for :meth:`__getitem__`.

        The table of a data-flow edge has the edge's sources as operands and its targets as results;
        a result or block argument of an op with regions has the table of its edge.

        Raises:
            KeyError: ``target`` is an argument of a function, or there is no such value.
            VerificationError: the op has no sharding rule.
        """

    def rule(self, target: Value | str | tuple[str, str]) -> OpShardingRule:
        """The sharding rule of the op that defines ``target``.

        Raises:
            KeyError: ``target`` is an argument, or there is no such value.
            VerificationError: the op has no sharding rule.
        """

    def totals(self) -> dict[str, Any]:
        """Counts and bytes of the values, arguments and results, and how often each axis is
        used."""

    def __copy__(self) -> Module: ...
    def __deepcopy__(self, memo: object, /) -> Module: ...
    def __reduce__(self) -> tuple[Any, tuple[str]]: ...

@final
class Op:
    """One op of a module; a snapshot from the call that returned it.

    Ops compare equal if they are the same op of the same module.
    """

    @property
    def name(self) -> str:
        """Its full name, ``"stablehlo.add"``."""
    @property
    def function(self) -> str:
        """The function that it is in, or that it is, without ``@``."""
    @property
    def operands(self) -> tuple[Value, ...]:
        """Its operands."""
    @property
    def results(self) -> tuple[Value, ...]:
        """Its results."""
    @property
    def regions(self) -> tuple[tuple[Block, ...], ...]:
        """Its regions, each a tuple of blocks in order."""
    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes, by their names in MLIR's generic form, whatever form it was written in.

        They are plain values: numbers, strings, lists, dictionaries; enums, symbols and types as
        strings; dense elements as nested lists. Calls have ``callee``, functions ``sym_name``,
        manual computations ``manual_axes``, ``in_shardings`` and ``out_shardings``.
        """
    @property
    def signature(self) -> int | None:
        """A number that is equal for ops of the module with equal name, types and attributes.

        Attributes with a dialect prefix are ignored. ``None`` for ops without a signature:
        constants, calls, terminators, and ops without tensors.
        """
    @property
    def location(self) -> str | None:
        """Its location in the user's program, ``"model.py:42:8"``; ``None`` if unknown.

        See :attr:`Value.location`.
        """
    @property
    def name_stack(self) -> str:
        """The name stack of its location, in which JAX writes scopes and transformations:
        ``"jit(step)/transpose(jvp(decoder))/layer_3/mlp/mul"``; empty if there is none.
        """
    @property
    def place(self) -> Place | None:
        """The position of its name in the text; ``None`` for ops made by passes or in implied
        regions."""
    def elements(self, name: str = ...) -> tuple[str, list[int], bytes]:
        """Return element type, shape and bytes of a dense attribute, by default ``value``.

        The bytes are little-endian and row-major; for a splat, those of one element. An element
        narrower than a byte takes a byte, with its sign extended.

        Raises:
            KeyError: there is no such attribute, or its elements are no numbers.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Block:
    """One block of a region; a snapshot from the call that returned it."""

    @property
    def arguments(self) -> tuple[Value, ...]:
        """The block arguments; for a function's body, the function's arguments."""
    @property
    def ops(self) -> tuple[Op, ...]:
        """The ops of the block itself, in order; the last one is its terminator."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Value:
    """An op result or a block argument; a snapshot from the call that returned it."""

    @property
    def name(self) -> str:
        """Its name within its function: ``%12``, ``%3#1`` or ``%arg0``."""

    @property
    def qualified_name(self) -> str:
        """Its name for `why` and `Session.set`: ``%12``; ``@helper %12`` outside of the entry
        function; ``%0 do %12`` if several regions have a value with this name.
        """

    @property
    def function(self) -> str:
        """The function that it is in, without ``@``."""

    @property
    def op(self) -> str | None:
        """Name of the op that defines it; ``None`` for an argument."""

    @property
    def type(self) -> str:
        """Its type as the program writes it."""

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """Its global shape, with ``None`` for dynamic sizes; ``None`` unless it is a ranked
        tensor."""

    @property
    def dtype(self) -> str | None:
        """Its element type, like ``"bf16"``; ``None`` unless it is a ranked tensor."""

    @property
    def sharding(self) -> TensorSharding | None:
        """Its sharding, or ``None``."""

    @property
    def local_shape(self) -> tuple[int, ...] | None:
        """The shape on one device, padded if a dim does not divide evenly."""

    @property
    def bytes(self) -> int | None:
        """Bytes of the global tensor; ``None`` if the element size is unknown."""

    @property
    def bytes_per_device(self) -> int | None:
        """Bytes on one device."""

    @property
    def location(self) -> str | None:
        """Its location in the user's program, ``file:line:column``; ``None`` if unknown.

        This is the innermost frame of the call stack outside of installed packages, or, if all
        frames are inside, the innermost one. Lines count from 1; columns as in the location: in
        JAX's from 0, as in Python's ``ast``.
        """

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """The mesh axes that are manual where it is defined; along them its shape is local."""

    @property
    def traceback(self) -> tuple[str, ...]:
        """The call stack that created it, as ``file:line:column``, innermost first."""

    @property
    def name_stack(self) -> str:
        """The name stack of its location, as :attr:`Op.name_stack`; empty for an argument."""

    def visualize(self) -> Picture:
        """Draw which device holds which block of it; see :meth:`TensorSharding.visualize`.

        Raises:
            VerificationError: it has no sharding, or its mesh is unknown.
        """

@final
class DataFlowEdge:
    """One data-flow edge of an op; a snapshot from the call that returned it.

    All its sources and targets are sharded alike: shardings propagate between them as through an op
    with the sources as operands, the targets as results, and an identity rule.

    Source: Shardy's propagation document, "Data flow ops".
    """

    @property
    def op(self) -> str:
        """Name of the op with the edge, such as ``"stablehlo.while"``."""
    @property
    def owner(self) -> Value:
        """The target that represents the edge, and holds its sharding."""
    @property
    def sources(self) -> tuple[Value, ...]:
        """The values that flow in: operands of the op, then values returned by its regions."""
    @property
    def targets(self) -> tuple[Value, ...]:
        """The values that they flow to: the owner, then block arguments of regions."""
    @property
    def sharding(self) -> TensorSharding | None:
        """The owner's sharding, which is that of all targets.

        For an argument or a result of a manual computation, it is the sharding outside, including
        manual axes.
        """
    @property
    def rule(self) -> OpShardingRule:
        """The identity rule from the sources to the targets.

        Raises:
            VerificationError: they are not tensors of the same static rank.
        """
    @property
    def location(self) -> str | None:
        """The location of the op in the user's program; ``None`` if unknown."""
    def factor_table(self) -> FactorTable:
        """The table of the sources and targets by factors; see :meth:`Module.factor_table`.

        Raises:
            VerificationError: as for :attr:`rule`.
        """

@final
class Port:
    """An argument or a result of a module's entry function."""

    @property
    def index(self) -> int:
        """Its number, from 0."""

    @property
    def name(self) -> str:
        """Its name in the program: ``%arg0``, or ``result 0``."""

    @property
    def label(self) -> str | None:
        """Its path in the user's program, such as ``params['w']`` or ``result['loss']``."""

    @property
    def type(self) -> str:
        """Its type as the program writes it."""

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """Its global shape, with ``None`` for dynamic sizes; ``None`` unless it is a ranked
        tensor."""

    @property
    def dtype(self) -> str | None:
        """Its element type, like ``"bf16"``; ``None`` unless it is a ranked tensor."""

    @property
    def sharding(self) -> TensorSharding | None:
        """Its sharding, or ``None``."""

    @property
    def local_shape(self) -> tuple[int, ...] | None:
        """The shape on one device, padded if a dim does not divide evenly."""

    @property
    def bytes(self) -> int | None:
        """Bytes of the global tensor; ``None`` if the element size is unknown."""

    @property
    def bytes_per_device(self) -> int | None:
        """Bytes on one device."""

    @property
    def attributes(self) -> dict[str, str]:
        """Its other attributes as text, like ``{"tf.aliasing_output": "0 : i32"}``."""

@final
class PassManager:
    """A pipeline of passes in MLIR's textual form.

    Examples:
        >>> manager = shardcore.PassManager.parse("builtin.module(sdy-basic-propagate)")
    """

    @staticmethod
    def parse(pipeline: str, *, shardy: str | None = None) -> PassManager:
        """Parse ``builtin.module(pass-a,pass-b{option=value},func.func(pass-c))``.

        ``shardy`` is the version of Shardy whose passes run, as in :meth:`Module.parse`; the module
        follows it after the run. By default it is the module's version.

        Raises:
                    ParseError: the version ``shardy`` is unknown (``shardy-version``).
                    PipelineError: a pass, option, anchor or value is unknown, or the text is
                    malformed.
        """

    @staticmethod
    def from_flags(flags: Sequence[str], *, shardy: str | None = None) -> PassManager:
        """The pipeline for command-line flags of ``sdy_opt``, such as ``--sdy-close-shardings``.

        Raises:
            PipelineError: as for :meth:`parse`.
        """

    @staticmethod
    def pass_names(*, shardy: str | None = None) -> list[str]:
        """The names of all passes and pipelines of a version of Shardy, sorted."""

    @property
    def shardy(self) -> str | None:
        """The version of Shardy whose passes run; ``None`` for the module's version."""

    def enable_verifier(self, enable: bool, /) -> None:
        """Turn verification after each pass on or off; it is off by default.

        After each pass, the program is checked as MLIR's verifier would do. If it is not valid,
        :meth:`run` raises MLIR's error, the hint names the pass, and the module does not change.

        Examples:
            >>> manager = shardcore.PassManager.parse("builtin.module(sdy-close-shardings)")
            >>> manager.enable_verifier(True)
        """

    def run(
        self,
        module: Module,
        *,
        max_ops: int | None = None,
        progress: Callable[[str, float], object] | None = None,
    ) -> None:
        """Run the pipeline on ``module``, in place. If it fails, the module does not change.

        During the run, other threads and callbacks read the old state; see :class:`Module`.

        Raises:
                    BusyError: another run on ``module`` is in progress, in another thread or in a
                    caller of this one (``busy``).
            ShardcoreError: as for :meth:`Module.propagate`.
        """

@final
class Result:
    """A propagated program: what :meth:`Module.propagate` returns."""

    @property
    def module(self) -> Module:
        """The exported program: every value has a sharding, and all dims are closed."""

    @property
    def with_collectives(self) -> Module:
        """The program with explicit reshards, as collectives; computed at the first access.

        It is the output of ``sdy-propagation-pipeline`` if its last part, ``sdy-export-pipeline``,
        runs with ``enable-insert-explicit-collectives=true``. Threads that access it at the same
        time get the same module.

        Raises:
                    BusyError: a user's rule accesses it while it is being computed (``busy``).
                    ShardcoreError: as for :meth:`Module.propagate`; and ``axis-overlap`` if Shardy
                    plans collectives along overlapping sub-axes, which its verifier refuses.
        """

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about annotated axes of arguments and results that the export removed.

        The code is ``non-divisible`` if the dim's size is no multiple of the product of its axes,
        ``sub-axis`` if an open dim had sub-axes.
        """

    @property
    def _explainer(self) -> Explainer: ...
    def _forget_explainer(self) -> None: ...
    def _given(self) -> Module: ...
    def _options(self) -> dict[str, Any]: ...
    def why(
        self, value: Value | str, axis: AxisRef | str | None = None, dim: int | None = None
    ) -> Why:
        """Return the annotations and propagation steps from which the axes of ``value`` come.

        The first call propagates again, and records every change of a sharding.

        Args:
                    value: a value, or its name: the path of an argument or result,
                    ``"params['w']"``, or a name in the original program, ``"%12"``, ``"@helper
                    %12"``.
                    axis: only this axis or sub-axis.
                    dim: only this dim.

        Raises:
                    LocationError: no value has this name, or it does not have the axis
                    (``unknown-location``).
                    BusyError: a rule reads the result that is being computed.
        """
    def why_not(self, value: Value | str, dim: int, axis: AxisRef | str) -> WhyNot:
        """Return why ``axis`` is not on dim ``dim`` of ``value``: one reason of ``WHY_NOT``.

        Args:
            value: as for :meth:`why`.
            dim: the dim, from 0.
            axis: an axis or sub-axis of a mesh of the program.

        Raises:
                    LocationError: no value has this name, it has no such dim, no mesh has the axis,
                    or the axis is there (``unknown-location``).
        """
    def steps(self) -> Steps:
        """Return the changes by each visit of an op: the op-priority steps of each user priority,
        the visits of each step, and the shardings before and after each visit.

        The first call propagates again, and records every change of a sharding.

        Examples:
            >>> module = shardcore.Module.parse('''
            ... sdy.mesh @mesh = <["x"=2]>
            ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
            ...     -> tensor<8xf32> {
            ...   %0 = stablehlo.negate %a : tensor<8xf32>
            ...   return %0 : tensor<8xf32>
            ... }''')
            >>> [visit.op for step, visit in module.propagate().steps().visits()]
            ['stablehlo.negate', 'func.return']

        Raises:
            BusyError: a rule reads the result that is being computed.
        """
    def graph(
        self,
        path: str | PathLike[str] | None = None,
        *,
        around: str | None = None,
        hops: int = 3,
        scope: str | None = None,
        folds: bool = True,
        max_nodes: int = 250,
    ) -> Graph:
        """Return the computation graph of the entry function, drawn with shardings: tensors blue,
        ops red, annotated tensors with a border.

        A large program is folded until it is readable: repeated layers are drawn once, then chains
        of elementwise ops as one node, then ops by scope and source line, by scope, by source line,
        or by several lines. :attr:`Graph.folding` says how, :attr:`Graph.hint` how to see more.

        Args:
            path: where it is written, if anywhere: a ``.svg`` file, or ``.dot`` or ``.gv``, text
                for Graphviz.
            around: only what is near this value: ``"%12"``, or the path of an argument. Nothing is
                folded then.
            hops: how many ops away from it.
            scope: only the ops in this scope, ``"decoder/layer_3"`` or for all layers
                ``"decoder/layer_*"``, or in this group of a folded graph, ``"model.py:12"``.
            folds: fold a large graph; without it each op is drawn.
            max_nodes: fold until there are at most so many tensors and ops.

        Raises:
            LocationError: no tensor is called ``around``, or nothing ``scope``
                (``unknown-location``).
            OSError: the file cannot be written.
            ValueError: the name of the file says neither SVG nor DOT, the graph is too large to be
                drawn as a whole, or both ``around`` and ``scope`` are given.
        """
    def diagnostics(
        self,
        hardware: str | Hardware | None = None,
        *,
        ignore: Iterable[str] | None = None,
        hardware_file: str | Path | None = None,
    ) -> tuple[Diagnostic, ...]:
        """Return warnings about the program, the most important first.

        Each has a ``code`` of :data:`shardcore.DIAGNOSTICS`, the value that it is about, its
        position in the user's source if known, and a hint. :attr:`warnings` are included. At most
        five of one code are listed; the last one says how many more there are. An annotation in a
        hint was tried, and reduces step time times peak memory.

        Args:
                    hardware: a chip: its memory is compared with the peak, and edits are costed on
                    it; otherwise edits are costed on ``tpu-v5p``.
                    ignore: codes to leave out.
                    hardware_file: as for :meth:`cost`.

        Raises:
            ValueError: ``ignore`` has an unknown code.
            CalculusError: the chip is unknown (``unknown-hardware``).
        """
    def _annotated(self) -> tuple[list[Port], list[Port]]: ...
    def _resharded(self) -> Module: ...
    def _legalized(self) -> Module: ...
    def _legalizing(self) -> Result: ...
    def _port_bytes(self) -> list[int]: ...
    def _inlined(self) -> Module | None: ...
    def _as_xla(self, keep_ports: bool, compiler: str = "none") -> tuple[Module, Originals]: ...
    def partition(
        self,
        policy: str = "least",
        *,
        compiler: str = "none",
        progress: Callable[[str, float], object] | None = None,
    ) -> Partitioned:
        """Lower the program to the per-device program; see :func:`shardcore.partition.partition`.

        Raises:
            PartitionError: an op cannot be split over devices (``unpartitionable``).
            ValueError: ``policy`` or ``compiler`` is unknown.
        """

    def cost(
        self,
        hardware: str | Hardware | None = None,
        policy: str = "xla",
        *,
        topology: str | Sequence[int] | None = None,
        mapping: Mapping[str, Sequence[int]] | str | None = None,
        hardware_file: str | Path | None = None,
        exact: bool = False,
        efficiency: float = 1.0,
        one_way: bool = False,
        slices: int | None = None,
        dcn: float | None = None,
        tokens: int | None = None,
        combine: Mapping[str, int | str] | int | str | None = None,
        improve: str | None = None,
        compiler: str | None = None,
        keep_ports: bool = False,
    ) -> Cost:
        """Time, memory and communication of one device, by default a ``"tpu-v5p"``.

        The per-device program of ``policy`` is costed; see :meth:`partition`. Arguments and errors
        are those of :func:`shardcore.cost`. CHLO ops count as the ops that XLA legalizes them to,
        whether or not :meth:`Module.propagate` had ``legalize_chlo``.
        """

    def report(
        self,
        path: str | PathLike[str],
        hardware: str | Hardware | None = None,
        *,
        against: Any = None,
        edits: int = 0,
        **options: Any,
    ) -> None:
        """Write a self-contained HTML page about the result.

        It shows the user's source, if the files named in locations can be read, otherwise the
        program's text, with shardings and collectives next to each line; all values with pictures
        and the origins of their axes; the predicted timeline, and the memory over time.

        Args:
            path: the file.
                    hardware: the chip for times; by default a ``"tpu-v5p"``.
                    against: another result to compare with, of the same program under other
                    annotations, or of another version of it; changes are marked.
                    edits: how many changes of annotations to recommend: the best of some that are
                    tried, which takes half a second.
                    **options: other options of :func:`shardcore.cost`.

        Raises:
            OSError: the file cannot be written.
                    ShardcoreError: as for :func:`shardcore.cost`; but for a program that cannot be
                    partitioned, a page without costs is written.
        """

    def show(
        self,
        hardware: str | Hardware | None = None,
        *,
        against: Any = None,
        edits: int = 0,
        **options: Any,
    ) -> Page:
        """Return the page of :meth:`report` as an object that a notebook displays."""

    def values(self) -> list[Value]:
        """The values of :attr:`module`."""

    def __getitem__(self, key: str | tuple[str, str], /) -> Value:
        """A value of :attr:`module` by name; see :meth:`Module.__getitem__`."""

    def at(self, place: str) -> list[Value]:
        """The values that a line of the user's program computes; see :meth:`Module.at`."""

    def arguments(self) -> list[Port]:
        """The arguments of the program."""

    def results(self) -> list[Port]:
        """The results of the program."""

    def check(
        self, expect: str | PathLike[str] | Mapping[str, Any], *, update: bool = False
    ) -> Check:
        """Compare with expectations: a TOML file, or a mapping of the same form.

        The returned object is true if all expectations hold, and prints those that fail. ``update``
        writes the actual values to the file. See :mod:`shardcore.expect`.

        Raises:
            ExpectationError: the expectations are malformed; ``.diagnostics`` lists all mistakes.
            OSError: the file cannot be read or written.
        """

    def summary(self) -> dict[str, Any]:
        """``{"shardy": version, "ops": n, "before": totals, "after": totals}``; see
        :meth:`Module.totals`.
        """

@final
class FactorTable:
    """The table of tensors by factors for one op, before and after one aggressive visit in all
    directions.

    ``str()`` draws it. A cell lists the axes that shard the factor in that tensor. A ``?`` at the
    end says that propagation may add more; axes after ``|`` overflow the factor; ``-`` means that
    the tensor does not have the factor. Replicated and unreduced axes have a column each, if a
    tensor has some.
    """

    @property
    def op(self) -> str:
        """Name of the op."""

    @property
    def factors(self) -> list[tuple[str, int, str]]:
        """Symbol, size and kind of each factor.

        The kind is ``"pass-through"``, ``"reduction"``, ``"need-replication"`` or
        ``"permutation"``.
        """

    @property
    def before(self) -> dict[str, dict[str, str]]:
        """For each tensor its cells by factor symbol, with the shardings before the visit.

        A tensor that is several operands has a row for each: ``"%x"`` and ``"%x (operand 1)"``.
        """

    @property
    def after(self) -> dict[str, dict[str, str]]:
        """For each tensor its cells by factor symbol, with the shardings after the visit."""

    @property
    def replicated(self) -> dict[str, str]:
        """The explicitly replicated axes of each tensor that has some; a visit does not change
        them."""

    @property
    def unreduced(self) -> dict[str, str]:
        """The unreduced axes of each tensor that has some."""

@final
class StrategyProblem:
    """The choice of one strategy for each node of a graph, as in XLA's automatic sharding.

    The sum of the costs of nodes and edges is minimized, while the memory usages of the live nodes
    never exceed ``limit`` in sum. ``docs/solver.md`` describes the algorithm.

    Args:
            nodes: for each node the cost of each strategy, the memory usage of each strategy, and
                the interval of times in which the node is live (the end is exclusive). An infinite
                cost forbids a strategy.
            edges: for each edge the numbers of two nodes, and a cost for each pair of their
                strategies, row-major with the first node's strategies as rows. An infinite cost
                forbids a pair.
            limit: the most memory that may be live at any time, in the unit of the usages.

    Raises:
        ShardcoreError: the tables do not fit each other (``invalid-problem``).
    """

    def __new__(
        cls,
        nodes: Sequence[tuple[Sequence[float], Sequence[int], tuple[int, int]]],
        edges: Sequence[tuple[tuple[int, int], Sequence[float]]],
        limit: int | None = None,
    ) -> StrategyProblem: ...
    @staticmethod
    def from_json(text: str, filename: str = "<string>") -> StrategyProblem:
        """Return the problem in ``text``, in the format of the IOPDDL contest.

        In this format, costs of 10^17 and more are forbidden.

        Raises:
            ShardcoreError: the text is no such problem.
        """

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""

    @property
    def num_edges(self) -> int:
        """Number of edges."""

    @property
    def limit(self) -> int | None:
        """The most memory that may be live at any time; ``None`` for no limit."""

    def with_limit(self, limit: int | None) -> StrategyProblem:
        """Return the same problem with another limit."""

    def evaluate(self, strategies: Sequence[int]) -> tuple[float, int]:
        """Return the cost of a choice, and its peak of live memory.

        Raises:
            ShardcoreError: the choice is not valid (``invalid-problem``).
        """

    def solve(
        self,
        seconds: float | None = None,
        *,
        rounds: int | None = None,
        seed: int = 0,
        threads: int = 2,
        progress: Callable[[float | None, float], object] | None = None,
    ) -> StrategySolution:
        """Return the best choice found.

        Args:
                    seconds: the time limit; 10 unless ``rounds`` is given.
                    rounds: the largest number of rounds. A search that ends by rounds is
                    deterministic for a given seed and number of threads.
                    seed: the seed of the pseudo-random numbers.
                    threads: the number of threads.
                    progress: called after each round with the lowest cost of a feasible choice so
                    far, and the bound; the search ends if it returns a false value other than
                    ``None``.
        """

@final
class StrategySolution:
    """A choice of a strategy for each node of a :class:`StrategyProblem`."""

    @property
    def strategies(self) -> list[int]:
        """The strategy of each node in the best choice found, even if that is not feasible."""

    @property
    def cost(self) -> float:
        """The sum of the costs of nodes and edges."""

    @property
    def peak(self) -> int:
        """The peak of live memory."""

    @property
    def bound(self) -> float:
        """A lower bound of the cost of feasible choices; infinite if there are none."""

    @property
    def least_peak(self) -> int:
        """A lower bound of the peak of choices without forbidden costs, and so of feasible
        limits."""

    @property
    def status(self) -> str:
        """``"feasible"``, ``"infeasible"`` (none exists), or ``"unknown"`` (none was found)."""

    @property
    def rounds(self) -> int:
        """Number of rounds."""

def import_hlo_shardings(module: Module, mesh: Mesh | None = None) -> Module:
    """Return ``module``, which was lowered for XLA, with its shardings in ``sdy``.

    What Shardy exported (``xla.sdy.*`` frontend attributes and custom calls, as in XLA's dumps) is
    converted back: meshes, shardings, constraints, groups, barriers, sharding rules and manual
    computations. Otherwise, ``mhlo.sharding`` strings become shardings over ``mesh``.

    Shardings of arguments, results and ops are converted; ``@Sharding`` calls become constraints,
    or members of sharding groups (``shard_as``, ``shard_like``); bodies between
    ``@SPMDFullToShardShape`` and ``@SPMDShardToFullShape`` become manual computations. A module
    without such strings is returned unchanged.

    Without ``mesh``, one is made of the axes that the shardings need, as in
    :meth:`HloSharding.to_sharding`.

    Raises:
        ParseError: a string is no sharding.
            VerificationError: no mesh, or not ``mesh``, has axes for all shardings; or a manual
                body uses global values, or its local values are used outside.
    """

def partition_program(
    module: Module,
    progress: Callable[[str, float], object] | None = None,
    shard_rules: Sequence[tuple[int, OpShardingRule, str | None, Sequence[tuple[str, str]]]]
    | None = None,
    policy: str = "least",
    keep_results: bool = False,
    replicates_unknown: bool = False,
    plans: ReshardPlans | None = None,
    originals: Originals | None = None,
    improves: bool | None = None,
    looks_ahead: bool = False,
    takes_source: bool = False,
    local_program: Callable[..., tuple[Module, list[list[list[str]]], list[list[list[str]]]] | None]
    | None = None,
    passes: str = "",
) -> tuple[Module, int, Origin]:
    """Lower ``module``, a propagated program, to the per-device program.

    ``shard_rules`` has, for signatures of custom calls, the rule by which they are computed on
    shards, the target to call on shards, and its attributes. Under the policy ``least``, or as
    ``improves`` says, passes merge, hoist and fuse collectives of the per-device program. With
    ``keep_results``, results keep the sharding in which they are computed until an op needs
    another, and calls are inlined; otherwise results are resharded to their shardings. With
    ``looks_ahead`` in addition, they are resharded to their shardings, or to those that later
    elementwise ops reshard them to. With ``replicates_unknown``, every device computes the ops
    that no rule can split, instead of a refusal. Reshards in ``plans`` are not planned again.
    With ``takes_source``, the program of ``module`` is lowered in place, if it is not shared,
    and ``module`` rebuilds it when it is read. ``local_program`` is called for each call of a
    ``custom_partitioning`` function, with its backend configuration, operands, results, mesh,
    manual axes and location; it returns the per-device program with the axes of each dim of the
    operands and results, or ``None``. ``passes``, a comma-separated list, run on the per-device
    program.

    Returns the per-device module, the number of devices, and the origin of its ops.
    """

@final
class ReshardPlans:
    """Reshard plans, shared between lowerings."""

    def __new__(cls) -> ReshardPlans: ...

@final
class Originals:
    """For a program with inlined calls, the original of each cloned op and value."""

@final
class Origin:
    """The global program of a per-device program, and how its ops are computed."""

    def original(self, op: int) -> int:
        """Return the number of the original of op ``op``, which may be a clone from an inlined
        call."""

    def outcomes(self) -> list[tuple[str, str, str, str | None, int]]:
        """For each op its name, how it is computed, the reason, its location, and its number."""

def collective_traffic(module: Module) -> list[tuple[str, int, int, int]]:
    """Return the traffic of the collectives of ``module``, a per-device program.

    For each group of equal collectives: the kind, the size of a device group, the bytes of the
    gathered array, and the number of runs.
    """

def collective_passes(name: str) -> str:
    """Return the passes on collectives that the compiler called ``name`` runs after partitioning,
    with commas between.
    """

def program_figures(
    module: Module,
    origin: Origin,
    estimates: list[tuple[int, int, int, int | None]],
    compiler: str,
    chip: tuple[int, bool, int | None, tuple[int, int, int], int | None, int],
) -> Figures:
    """Return the figures of ``module``, a per-device program with the origin ``origin``.

    ``estimates`` has signature, flops, transcendentals and bytes of the custom calls with a
    registered cost. Times and traffic are those of the kernels of ``compiler``, if these are known,
    on a ``chip``: the bytes of its cache or vector memory, whether collectives use it, the bytes
    of its memory if kernels are ordered to hide the latency of collectives, and the FLOPs of
    products in bf16, the bytes of memory traffic and the bytes over a link in a second, the most
    bytes of combined collectives, and the elements that a matrix unit sums over at a time.
    """

def op_names(module: Module) -> list[str]:
    """The names of the ops of ``module``, each once, in no order."""

def ops_named(module: Module, names: Sequence[str]) -> list[Op]:
    """The ops that have one of ``names``, in the order of :meth:`Module.ops`."""

def ops_of_size(module: Module, least_bytes: int) -> list[Op]:
    """The ops with a result of which a device holds at least ``least_bytes``, in the order of
    :meth:`Module.ops`."""

def values_on_host(values: list[Value]) -> list[bool]:
    """For each of ``values``, all of one program, whether it is in host memory."""

@final
class Figures:
    """The figures from which :class:`shardcore.Cost` is computed; rows are made when needed."""

    @property
    def is_saturated(self) -> bool:
        """Whether figures are only lower bounds; see :attr:`shardcore.Cost.is_saturated`."""

    def memory(self, on_host: bool) -> list[int]:
        """Bytes of arguments, outputs, and donated outputs, in device or host memory."""

    def peak_bytes(self, compiler: str, on_host: bool) -> int:
        """The peak of live bytes and of :meth:`hole_bytes`, in device or host memory."""

    def hole_bytes(self, compiler: str) -> int:
        """The part of the peak of the device that is between buffers."""

    def async_copies(self, compiler: str) -> tuple[int, int, int]:
        """The number of copies between HBM and vector memory, their bytes, and those that XLA's
        analysis counts, each once.
        """

    def host_work(self) -> tuple[int, int]:
        """FLOPs and transcendentals computed on the host."""

    def host_copies(self) -> list[dict[str, Any]]:
        """The copies between device and host memory, in program order: the fields of
        :class:`shardcore.costs.HostTransfer`, with ``to_host`` for the direction.
        """

    def host_bytes(self) -> int:
        """Bytes that XLA allocates if the program runs on CPUs."""

    def least_peak(self, compiler: str) -> int:
        """The peak of live bytes in the order of ops that needs least."""

    def once(self) -> tuple[list[int], int]:
        """What XLA's cost analysis counts on CPUs, where loop bodies and equal ops count once.

        For each kind in :meth:`work` the number of runs; then the elements that are converted from
        ``bf16`` and back.
        """

    def work(self) -> tuple[list[tuple[Any, ...]], list[int]]:
        """The fields of :class:`shardcore.costs.figures.WorkKind`, for each kind of op; and the
        number of runs of each."""

    def traffic(
        self,
    ) -> list[tuple[str, Mesh | None, list[AxisRef] | None, int, int, int]]:
        """The fields of :class:`shardcore.costs.figures.TrafficKind`, for each kind."""

    def ops(self) -> list[dict[str, Any]]:
        """For each group of ops with one name, location and cost: name, location, index in
        :meth:`work`, count."""

    def collectives(self) -> list[dict[str, Any]]:
        """The collectives in program order; ``kind`` is the index in :meth:`traffic`."""

    def timeline(
        self,
        work: list[float],
        traffic: list[tuple[float, int, float, bool, float]],
        of_rows: list[int],
        contention: float,
        copies: list[float],
    ) -> tuple[float, list[float], list[float]]:
        """The seconds of the program, and the exposed seconds of each row of :meth:`collectives`
        and of :meth:`host_copies`.

        ``work`` has the seconds for each row of :meth:`work`; ``traffic`` the seconds, stream and
        number of chunks of collectives, whether only products take their steps, and the seconds
        that ops beside them lose, with ``of_rows`` as index for each row of :meth:`collectives`;
        ``contention`` is the part of idle time that makes up for what they lose; ``copies`` has the
        seconds for each row of :meth:`host_copies`.
        """

    def combined(
        self, most: dict[str, int]
    ) -> tuple[list[tuple[list[tuple[int, int]], int]], list[int]]:
        """The collectives that are combined into one, given the most bytes of a set for each kind.

        For each set: its kinds, as indices in :meth:`traffic`, each with the number of collectives,
        and the number of runs of the set. Then for each row of :meth:`collectives` an index: of its
        kind if it runs alone; if it is in a set, the number of kinds plus the index among the kinds
        of all sets, in order.
        """

    def whole_ops(self, num_devices: int) -> list[tuple[int, int] | None]:
        """For each of :meth:`ops` that is a product: the FLOPs of the global op that it is a part
        of, and the number of devices that compute that op together."""

    def name_stacks(self) -> tuple[list[str], list[str]]:
        """The name stacks of the ops, and of the ops that need the collectives, in the order of
        :meth:`ops` and :meth:`collectives`."""
    def steps(self, compiler: str) -> list[dict[str, Any]]:
        """The ops in scheduled order: the fields of :class:`shardcore.costs.records.TimedStep`,
        with indices in :meth:`work` and :meth:`traffic` instead of times.
        """

    def kernels(self, compiler: str) -> list[dict[str, Any]]:
        """The fields of :class:`shardcore.costs.Kernel`, for each kernel of ``compiler``; instead
        of the time of one run, the data from which it is computed.
        """

    def uncounted(self) -> list[dict[str, Any]]:
        """The fields of :class:`shardcore.costs.UncountedOp`, for each kind of op."""

    def loops(self) -> list[dict[str, Any]]:
        """The fields of :class:`shardcore.costs.records.LoopTrips`, for each loop."""

    def live_at_peak(self, compiler: str, on_host: bool) -> list[dict[str, Any]]:
        """The fields of :class:`shardcore.costs.LiveValue`, for each value that is live at the peak
        of device or host memory.
        """

    def peak_op(self, compiler: str) -> dict[str, Any] | None:
        """The fields of :class:`shardcore.costs.records.PeakOp`; ``None`` if there is no op."""

    def lifetimes(self, compiler: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The ops at each moment, and the values in memory: the fields of
        :class:`shardcore.costs.records.PeakOp` and :class:`shardcore.costs.LiveValue`, with name
        stacks as ``stack``; values also have their ``role`` and their ``first`` and ``last``
        moments.
        """

    def live_ranges(
        self, compiler: str
    ) -> tuple[list[str | None], list[tuple[str, int, int, int]]]:
        """The first result of the op at each moment; the name and the bytes of each value in
        memory, and its first and last moment."""

@final
class Explainer:
    """Answers the questions of :meth:`Result.why`. Values are given by their numbers."""

    def find(self, name: str) -> int | None:
        """The value called ``name``, ``"%12"`` or ``"@helper %12"``.

        Raises:
            LocationError: several values have this name (``unknown-location``).
        """
    def number(self, value: Value) -> int | None:
        """The number of ``value``, if it is in the original or the propagated program."""
    def of_value(self, value: int) -> list[dict[str, Any]]:
        """The origins of the axes of a value."""
    def of_result(self, index: int) -> list[dict[str, Any]]:
        """The origins of the axes of a result of the entry function."""
    def missing(
        self, number: int, is_result: bool, dim: int, axis: AxisRef
    ) -> dict[str, Any] | None:
        """Why an axis is not on a dim of a value, or of a result of the entry function."""
    def around(
        self, origin: Origin, op: int
    ) -> tuple[list[tuple[int, str]], list[tuple[int, str]], bool, list[int]] | None:
        """The numbers and names of the operands and results of an op of the partitioned program,
        whether it is the entry function's return, and the indices of the arguments that reach it;
        ``None`` if the original program does not have the op."""
    def steps(
        self,
    ) -> list[
        tuple[
            int,
            int,
            str,
            list[tuple[str | None, str | None, list[tuple[str, str | None, str | None]]]],
        ]
    ]:
        """The fields of :class:`shardcore.why.steps.RunStep`, in order."""
    def annotation(self, value: int) -> dict[str, Any] | None:
        """The annotation on a value itself, or ``None``."""
    def describe(self, value: int) -> tuple[TensorSharding | None, int | None, str | None] | None:
        """The sharding of a value, its rank, and the path if it is an argument."""

@final
class SessionProgram:
    """A program that can be annotated: what :class:`shardcore.Session` edits.

    A target is its kind (0: an argument, 1: a result of the entry function, 2: a value; larger: a
    result of another function) and its index. With ``inlines_composites``, composites are replaced
    by their decompositions.
    """

    def __new__(
        cls, module: Module, mesh: Mesh | None = None, inlines_composites: bool = False
    ) -> SessionProgram: ...
    def ports(self) -> tuple[list[Port], list[Port]]:
        """The arguments and the results of the entry function."""
    def find(self, name: str) -> tuple[int, int] | None:
        """The target called ``name``, such as ``"%12"``, ``"@helper %0 do %12"``, ``"@helper result
        0"``.

        Raises:
            LocationError: several values have this name (``unknown-location``).
        """
    def name(self, target: tuple[int, int]) -> str:
        """The shortest unique name of ``target``."""
    def annotation(self, target: tuple[int, int]) -> TensorSharding | None:
        """The sharding of ``target`` in the original program."""
    def rank(self, target: tuple[int, int]) -> int | None:
        """The rank; ``None`` if it is no ranked tensor."""
    def annotated_values(self) -> list[tuple[int, int]]:
        """The annotated targets other than arguments and results of the entry function."""
    def mesh(self) -> tuple[str | None, Mesh] | None:
        """The first mesh with axes, and its name: among named meshes if there are any, else among
        those inlined in shardings.
        """
    @property
    def meshes(self) -> dict[str, Mesh]:
        """The named meshes."""
    def annotated(
        self, edits: Iterable[tuple[tuple[int, int], str, TensorSharding | None]]
    ) -> AnnotatedProgram:
        """The program with edits applied; an edit is a target, its name in errors, and a sharding
        or ``None``."""
    def are_plain(
        self, edits: Iterable[tuple[tuple[int, int], str, TensorSharding | None]]
    ) -> bool:
        """Whether each edit is certainly valid, whatever the other edits are."""

@final
class AnnotatedProgram:
    """A program with the annotations of a session."""

    def module(self) -> Module:
        """The program."""
    def propagate(
        self,
        *,
        up_to_priority: int | None = None,
        keep_non_divisible_on_io: bool = False,
        keep_sub_axes_on_io: bool = False,
        dedup_functions_fully: bool = False,
        legalize_chlo: bool = False,
        strategy: str | None = None,
        max_ops: int | None = None,
    ) -> Result:
        """The result of :meth:`Module.propagate` for this program."""

def after_fork_in_child() -> None:
    """Reset the count of calls of users' functions: a forked child has no other threads."""

def finish(seconds: float) -> list[int]:
    """Wait, at most ``seconds``, until no thread is in a user's function that Rust called.

    Returns the identifiers of the threads that still are in one. A thread that would call one
    afterwards is blocked until the process ends.
    """

def clear_caches() -> None:
    """See :func:`shardcore.clear_caches`."""

def cache_sizes() -> dict[str, tuple[int, int]]:
    """Return ``(entries, max_entries)`` of each cache."""

def error_codes() -> list[str]:
    """Return every code that a diagnostic may have."""

def is_installed(place: str) -> bool:
    """Whether ``file:line:column`` is in an installed package or in Python's library."""

def known_ops() -> dict[str, dict[str, str | None]]:
    """Return for each op how each part of the engine supports it; ``None`` if it does not."""

def registered_rules() -> dict[str, str]:
    """Return the family of every op with a rule; ``"user"`` for registered rules."""

def registry_version() -> int:
    """Return how many times rules or data-flow edges were registered or removed."""

def set_rule(name: str, rule: str | Callable[..., OpShardingRule | str | None] | None) -> None:
    """Give the op ``name`` a rule; see :mod:`shardcore.rules`. ``None`` removes it."""

def set_data_flow_edges(
    name: str,
    groups: Sequence[tuple[Any, ...]] | Callable[..., Sequence[tuple[Any, ...]] | None] | None,
) -> None:
    """Give the op ``name`` data-flow edges; see :mod:`shardcore.rules`. ``None`` removes them."""

def shardy_versions() -> list[str]:
    """The known versions of Shardy, oldest first."""

def default_shardy() -> str:
    """The version of Shardy that is followed by default."""

def shardy_changes() -> dict[str, list[str]]:
    """For each version of Shardy its changes, in sentences."""
