"""Products as StableHLO programs, to be partitioned.

:func:`program` writes a product with the shardings of its operands and its result, and the
shardings that a strategy gives the operands while devices multiply.
``program(...).propagate().partition().module`` is the per-device program: the collectives of the
strategy, and a product of shards.

With ``chunked``, one collective of the strategy becomes a loop over a ring of devices, a collective
matmul; see :mod:`~shardcore.calculus.collective_matmul`.

Source: "How to Scale Your Model", chapter 3, "Computation With Sharded Arrays".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardcore._core import Mesh, Module
from shardcore.calculus.collective_matmul import loop_of, looped
from shardcore.calculus.contraction import Contraction, pairwise, parse_product
from shardcore.calculus.matmul import dtypes_of, known_sizes
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray
from shardcore.calculus.numbers import choose
from shardcore.calculus.plan import Stage, layout_of
from shardcore.calculus.stablehlo_lines import MESH, Lines, Tensor, mlir_type
from shardcore.errors import CalculusError
from shardcore.expected import expect


def program(
    product: str,
    *,
    mesh: Mesh,
    sizes: Mapping[str, int] | None = None,
    dtype: str | None = None,
    strategy: str | None = None,
    chunked: bool = False,
) -> Module:
    """Return the StableHLO program of a sharded product, or of a chain of products.

    ``program("A[I, J_X] * B[J, K] -> C[I, K]", mesh=mesh, sizes=sizes, dtype="f32")`` has the
    operands as arguments and the output as its result, with their shardings.

    Args:
        product: the product, in the notation of :func:`parse_product`.
        mesh: the mesh.
        sizes: the sizes of its dims.
        dtype: the element type of its arrays.
        strategy: for a product of two, the name of a strategy of :func:`matmul_strategies`: the
            operands are constrained to the shardings in which they are multiplied. By default the
            policy of :meth:`Result.partition` chooses; with ``chunked``, the strategy that sends
            the fewest elements is taken.
        chunked: whether to write one AllGather, ReduceScatter or AllReduce of each product as a
            collective matmul: a loop that multiplies one block while the next is sent. A product of
            a chain that needs no collective stays one product.

    Raises:
        ParseError, VerificationError, CalculusError: as for :func:`parse_product`; a size or an
            element type is unknown (``missing-size``); there is no such strategy, no strategy has a
            collective that can become a loop, its blocks have unequal sizes, or the output is
            unreduced (``invalid-option``).
    """
    expect(mesh, Mesh)
    operands, output = parse_product(product, mesh, sizes=sizes, dtype=dtype)
    contractions = pairwise(operands, output)
    known_sizes(contractions)
    dtypes_of(contractions)
    if output.unreduced:
        raise _option(
            f"{output} leaves terms unsummed", product, "a program returns sums: drop {U_...}"
        )
    if strategy is not None and len(contractions) > 1:
        raise _option("a chain of products has no one strategy", strategy, "write one product")
    stages = [(each, _stage(each, mesh, strategy, chunked=chunked)) for each in contractions]
    if chunked and not any(stage for _, stage in stages):
        raise _option(
            f"{strategy or 'the product'} has no collective that can be a loop",
            strategy or product,
            "an AllGather of an operand, a ReduceScatter or an AllReduce can, where devices hold "
            "equal blocks, and do not add terms to copies of one result in different orders",
        )
    return Module.parse(_text(operands, stages, mesh, chunked=chunked), filename=product)


def _stage(
    contraction: Contraction, mesh: Mesh, strategy: str | None, *, chunked: bool
) -> Stage | None:
    """The strategy for ``contraction``, with ``chunked`` one that has a loop; ``None`` if there is
    none, or if the partitioner is to choose.
    """
    if not chunked:
        return None if strategy is None else choose(contraction, mesh, strategy)
    best = choose(contraction, mesh, strategy)
    if strategy is None and best is not None and _is_local(best):
        return None
    return choose(contraction, mesh, strategy, lambda stage: loop_of(stage, mesh) is not None)


def _is_local(stage: Stage) -> bool:
    return all(step.op == "slice" for step in (*stage.before, *stage.after))


def _text(
    operands: Sequence[NamedArray],
    stages: Sequence[tuple[Contraction, Stage | None]],
    mesh: Mesh,
    *,
    chunked: bool,
) -> str:
    lines = Lines(mesh)
    arguments = [
        Tensor(f"%arg{at}", array.shape, mlir_type(array.dtype or ""))
        for at, array in enumerate(operands)
    ]
    left = arguments[0]
    for right, (contraction, stage) in zip(arguments[1:], stages, strict=True):
        element = mlir_type(contraction.output.dtype or "")
        if stage is not None and chunked:
            left = looped(lines, stage, left, right, element)
            continue
        pair = (left, right)
        if stage is not None:
            layouts = stage.cut_layouts
            pair = lines.constrained(left, layouts[0]), lines.constrained(right, layouts[1])
        left = lines.product(contraction, *pair, element)
    output = stages[-1][0].output
    given = ", ".join(
        f"{tensor.name}: {tensor.type} {_attribute(lines, array)}"
        for tensor, array in zip(arguments, operands, strict=True)
    )
    return "\n".join(
        [
            f"sdy.mesh @{MESH} = {mesh}",
            f"func.func public @main({given}) -> ({left.type} {_attribute(lines, output)}) {{",
            *lines.text,
            f"return {left.name} : {left.type}",
            "}",
        ]
    )


def _attribute(lines: Lines, array: NamedArray) -> str:
    return f"{{sdy.sharding = #sdy.sharding{lines.sharding(layout_of(array))}}}"


def _option(message: str, text: str, hint: str) -> CalculusError:
    return mistake(
        CalculusError, "invalid-option", message, hint=hint, text=text, filename="<product>"
    )
