"""Sharded products on NumPy arrays: what every device holds before and after each step.

:func:`run` multiplies arrays as devices do that hold shards of them.

Source: "How to Scale Your Model", chapter 3, "Computation With Sharded Arrays".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore._core import AxisRef, Mesh, TensorSharding
from shardcore.calculus.axes import group_size
from shardcore.calculus.blocks import MAX_DEVICES
from shardcore.calculus.contraction import Contraction, names, pairwise, parse_product
from shardcore.calculus.exchange import Blocks, moved
from shardcore.calculus.matmul import matmul_plans
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray
from shardcore.calculus.plan import Stage, arrays_of, layout_in, layout_text
from shardcore.calculus.reshard import Layout, Step
from shardcore.calculus.strategy import step_name
from shardcore.errors import CalculusError
from shardcore.expected import expect, expect_all

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, repr=False)
class Held:
    """What every device holds of one array, after a step."""

    step: str
    """``"given"``, a collective such as ``AllReduce_X(C)``, or ``"multiply"``."""
    text: str
    """The array with its sharding, ``C[I, K] {U_X}``."""
    blocks: Mapping[int, np.ndarray[Any, Any]]
    """The block of each device, by device id."""

    def __post_init__(self) -> None:
        expect(self.step, str)
        expect(self.text, str)
        expect(self.blocks, Mapping)

    def __repr__(self) -> str:
        return f"<Held {self.text}: {self.step}>"

    def __str__(self) -> str:
        lines = [f"{self.step}: {self.text}"]
        for device, block in self.blocks.items():
            rows = str(block).split("\n")
            lines += [f"  device {device}  {rows[0]}", *(f"            {row}" for row in rows[1:])]
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class Run:
    """A sharded product on arrays; see :func:`run`."""

    stages: tuple[Stage, ...]
    mesh: Mesh
    steps: tuple[Held, ...]
    """What devices hold, in order: the operands as given and after collectives, the local products,
    and these after collectives."""
    output: np.ndarray[Any, Any]
    """The product as one global array; unreduced terms are added."""

    def __post_init__(self) -> None:
        expect_all(self.stages, Stage, "stages")
        expect_all(self.steps, Held, "steps")
        expect(self.mesh, Mesh)

    @property
    def name(self) -> str:
        """The collectives in short, as in :attr:`Strategy.name`."""
        steps = [held.step for held in self.steps if held.step not in ("given", "multiply")]
        return "; ".join(steps) or "multiply locally"

    @property
    def products(self) -> Mapping[int, np.ndarray[Any, Any]]:
        """The local products of the last multiplication, by device id."""
        return next(held for held in reversed(self.steps) if held.step == "multiply").blocks

    @property
    def result(self) -> Mapping[int, np.ndarray[Any, Any]]:
        """The blocks of the output, by device id."""
        return self.steps[-1].blocks

    def __repr__(self) -> str:
        return f"<Run {self.stages[-1].contraction}: {self.name}>"

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.steps))


def run(product: str, *, mesh: Mesh, strategy: str | None = None, **arrays: Any) -> Run:
    """Multiply ``arrays`` as the devices of ``mesh`` do.

    ``run("A[I, J_X] * B[J_X, K] -> C[I, K] {U_X}", mesh=mesh, A=a, B=b)`` leaves each device with
    its term of the sum.

    Args:
        product: the product, in the notation of :func:`parse_product`.
        mesh: the mesh.
        strategy: the name of a strategy of :func:`matmul_strategies`; by default the one that sends
            the fewest elements.
        arrays: the operands by name.

    Raises:
        ParseError, VerificationError, CalculusError: as for :func:`parse_product`; an operand is
            missing or has other dims (``size-mismatch``); there is no such strategy
            (``invalid-option``), or the mesh has too many devices (``invalid-option``).
    """
    import numpy as np

    expect(mesh, Mesh)
    if mesh.num_devices > MAX_DEVICES:
        message = f"products run on up to {MAX_DEVICES} devices; the mesh has {mesh.num_devices}"
        raise _option(message, str(mesh), "a smaller mesh shows the same")
    bare, _ = parse_product(product, mesh)
    given = {name: np.asarray(array) for name, array in arrays.items()}
    sizes = _sizes(bare, given, product)
    operands, output = parse_product(product, mesh, sizes=sizes)
    contractions = pairwise(operands, output)
    machine = _Machine(mesh)
    left = given[operands[0].name or ""]
    stages = [
        choose(each, mesh, strategy if len(contractions) == 1 else None) for each in contractions
    ]
    chosen = [stage for stage in stages if stage is not None]
    for stage in chosen:
        right = given[stage.contraction.operands[1].name or ""]
        left = machine.multiply(stage, left, right)
    return Run(tuple(chosen), mesh, tuple(machine.held), left)


def outer_products(left: Any, right: Any) -> np.ndarray[Any, Any]:
    """Return the outer products of the columns of ``left`` and the rows of ``right``, an array of
    shape (P, n, m); their sum is ``left @ right``.
    """
    import numpy as np

    found: np.ndarray[Any, Any] = np.einsum("np,pm->pnm", np.asarray(left), np.asarray(right))
    return found


class _Machine:
    """The devices of a mesh, and everything that they have held."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.held: list[Held] = []

    def multiply(self, stage: Stage, left: Any, right: Any) -> Any:
        """Run ``stage`` on global operands, and return the global product."""
        import numpy as np

        contraction = stage.contraction
        arrays = arrays_of(contraction)
        blocks: dict[str, Blocks] = {}
        for array, whole, layout in zip(
            contraction.operands, (left, right), stage.stored, strict=True
        ):
            slices = _slices(array, layout, self.mesh)
            blocks[array.name or ""] = {device: whole[part] for device, part in slices.items()}
            self.hold("given", layout_text(array, layout), blocks[array.name or ""])
        for step in stage.before:
            self.step(step, arrays[step.tensor], blocks)
        letters = {dim: chr(97 + index) for index, dim in enumerate(contraction.dims)}
        first, second, output = (
            "".join(letters[dim] for dim in names(array))
            for array in (*contraction.operands, contraction.output)
        )
        one, two = (blocks[array.name or ""] for array in contraction.operands)
        formula = f"{first},{second}->{output}"
        products = {d: np.einsum(formula, one[d], two[d]) for d in one}
        result = contraction.output.name or ""
        blocks[result] = products
        cut = layout_in(contraction.output, stage.cut)
        self.hold("multiply", layout_text(contraction.output, cut, stage.unreduced), products)
        for step in stage.after:
            self.step(step, contraction.output, blocks)
        return self.whole(contraction.output, stage, blocks[result])

    def step(self, step: Step, array: NamedArray, blocks: dict[str, Blocks]) -> None:
        """Perform ``step`` on its tensor."""
        summed = [axis for axis in step.before_unreduced if axis not in step.after_unreduced]
        found = moved(
            blocks[step.tensor],
            self.mesh,
            array.shape,
            step.before,
            step.after,
            summed,
            step.after_unreduced,
        )
        blocks[step.tensor] = found
        dim = None if step.dim is None else array.dims[step.dim].name
        self.hold(step_name(step, dim), layout_text(array, step.after, step.after_unreduced), found)

    def hold(self, step: str, text: str, blocks: Blocks) -> None:
        """Record what devices hold."""
        self.held.append(Held(step, text, dict(sorted(blocks.items()))))

    def whole(self, output: NamedArray, stage: Stage, blocks: Blocks) -> Any:
        """The global array of which the devices hold ``blocks``."""
        replicated: Layout = tuple(() for _ in output.dims)
        summed = moved(blocks, self.mesh, output.shape, stage.result, replicated, output.unreduced)
        return next(iter(summed.values()))


def choose(
    contraction: Contraction,
    mesh: Mesh,
    strategy: str | None,
    is_wanted: Callable[[Stage], bool] = lambda _: True,
) -> Stage | None:
    """Return the stage with the name ``strategy``; without a name, among those that ``is_wanted``
    accepts, the one that sends the fewest elements; ``None`` if it accepts none.

    Raises:
        CalculusError: there is no such strategy (``invalid-option``).
    """
    plans = matmul_plans(contraction, mesh)
    if strategy is None:
        wanted = filter(is_wanted, plans)
        return min(wanted, key=lambda stage: _sent(stage, mesh), default=None)
    named = {_name(stage): stage for stage in plans}
    if strategy not in named:
        known = sorted(named, key=lambda name: _sent(named[name], mesh))[:5]
        raise _option(
            f'there is no strategy "{strategy}"', strategy, "one is " + ", ".join(map(repr, known))
        )
    return named[strategy] if is_wanted(named[strategy]) else None


def _name(stage: Stage) -> str:
    arrays = arrays_of(stage.contraction)
    steps = (*stage.before, *stage.after)
    parts = (
        step_name(step, None if step.dim is None else arrays[step.tensor].dims[step.dim].name)
        for step in steps
    )
    return "; ".join(parts) or "multiply locally"


def _sent(stage: Stage, mesh: Mesh) -> tuple[float, float, int]:
    """A sort key: the elements that a device receives, its multiplications, and the number of
    steps."""
    arrays = arrays_of(stage.contraction)
    sent = 0.0
    for step in (*stage.before, *stage.after):
        sizes = arrays[step.tensor].shape
        group = group_size(mesh, step.axes)
        volume = 1.0
        for size, axes in zip(sizes, step.volume, strict=True):
            volume *= size / group_size(mesh, axes)
        share = {"slice": 0.0, "all_reduce": 2.0, "all_to_all": 1 / group}.get(step.op, 1.0)
        sent += share * volume * (group - 1) / group
    work = 1.0 / group_size(mesh, [axis for axes in stage.cut.values() for axis in axes])
    return sent, work, len(stage.before) + len(stage.after)


def _sizes(operands: list[NamedArray], given: Mapping[str, Any], text: str) -> dict[str, int]:
    """The sizes of the dims of ``operands``, from the arrays ``given``."""
    sizes: dict[str, int] = {}
    for array in operands:
        name = array.name or ""
        if name not in given or given[name].ndim != len(array.dims):
            dims = "nothing" if name not in given else f"an array of {given[name].ndim} dims"
            raise mistake(
                CalculusError,
                "size-mismatch",
                f"{name} is {array}, and {dims} is given for it",
                hint=f"give {name}=, an array of {len(array.dims)} dims",
                text=text,
                filename="<product>",
            )
        for dim, size in zip(array.dims, given[name].shape, strict=True):
            if sizes.setdefault(dim.name or "", size) != size:
                raise mistake(
                    CalculusError,
                    "size-mismatch",
                    f"{dim.name} is {sizes[dim.name or '']}, and {size} in the array for {name}",
                    hint="dims with one name have one size",
                    text=text,
                    filename="<product>",
                )
    return sizes


def _slices(
    array: NamedArray, layout: Sequence[Sequence[AxisRef]], mesh: Mesh
) -> dict[int, tuple[slice, ...]]:
    return TensorSharding(mesh, list(layout)).device_slices(array.shape)


def _option(message: str, text: str, hint: str) -> CalculusError:
    return mistake(
        CalculusError, "invalid-option", message, hint=hint, text=text, filename="<product>"
    )
