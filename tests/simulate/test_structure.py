"""Ops that move elements, gathers and scatters: random shapes and parameters, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jax import lax

from tests.simulate.check import check, check_text, few, function
from tests.simulate.numbers import ALL, edges, small

RNG = np.random.default_rng(0)
ELEMENTS = st.sampled_from(["f32", "i32", "bf16", "i1", "ui8", "complex<f32>"])
SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def draw_array(data: st.DataObject, shape: tuple[int, ...], element: str | None = None) -> Any:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    return small(rng, shape, element or data.draw(ELEMENTS))


@pytest.mark.parametrize("element", ALL)
def test_constants_of_every_type(element: str) -> None:
    x = edges(element)[:40].reshape(5, 8)
    if x.dtype.kind == "V" or x.dtype.kind == "f":
        x = np.where(np.isfinite(x.astype(float)), x.astype(float), 1).astype(x.dtype)

    def written(value: Any) -> str:
        if x.dtype.kind == "c":
            return f"({value.real:.9e}, {value.imag:.9e})"
        if x.dtype.kind == "b":
            return str(bool(value)).lower()
        is_integer = "int" in x.dtype.name
        return str(int(value)) if is_integer else f"{float(value):.17e}"

    rows = ", ".join(f"[{', '.join(map(written, row))}]" for row in x)
    kind = f"tensor<5x8x{element}>"
    body = [
        f"%0 = stablehlo.constant dense<[{rows}]> : {kind}",
        f"%1 = stablehlo.constant dense<{written(x[1, 3])}> : {kind}",
    ]
    if x.dtype.itemsize > 1 or x.dtype.name in ("int8", "uint8"):
        body.append(f'%2 = stablehlo.constant dense<"0x{x.tobytes().hex().upper()}"> : {kind}')
    check_text(function(body, {}, {str(at): kind for at in range(len(body))}))


@few
@given(st.data())
def test_reshapes_and_transposes(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    x = draw_array(data, shape)
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    dims = data.draw(st.sets(st.sampled_from(range(len(shape)))))
    more = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape)), max_size=2))))
    check(
        lambda x: (
            lax.reshape(lax.transpose(x, order), (x.size,)),
            lax.rev(x, tuple(dims)),
            lax.expand_dims(x, more) if len(more) == len(set(more)) else x,
            lax.broadcast(x, (2, 3)),
            lax.concatenate([x, x[:1], x], 0),
            lax.broadcasted_iota("int32", shape, len(shape) - 1),
        ),
        x,
    )


@few
@given(st.data())
def test_pads_and_slices(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    x = draw_array(data, shape)
    amounts = [
        (low, max(high, -(size + (size - 1) * inner + low)), inner)
        for size, (low, high, inner) in zip(
            shape,
            data.draw(
                st.lists(
                    st.tuples(st.integers(-2, 3), st.integers(-3, 3), st.integers(0, 2)),
                    min_size=len(shape),
                    max_size=len(shape),
                )
            ),
            strict=True,
        )
    ]
    amounts = [(max(low, -(size + (size - 1) * inner)), high, inner)
               for (low, high, inner), size in zip(amounts, shape, strict=True)]  # fmt: skip
    starts = [data.draw(st.integers(0, size)) for size in shape]
    limits = [data.draw(st.integers(s, size)) for s, size in zip(starts, shape, strict=True)]
    strides = [data.draw(st.integers(1, 3)) for _ in shape]
    check(
        lambda x, v: (lax.pad(x, v, amounts), lax.slice(x, starts, limits, strides)),
        x,
        np.ones((), x.dtype),
    )


@few
@given(st.data())
def test_dynamic_slices_out_of_range(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    x = draw_array(data, shape)
    sizes = tuple(data.draw(st.integers(0, size)) for size in shape)
    kind = data.draw(st.sampled_from([np.int32, np.int8, np.uint32, np.uint8, np.int64]))
    edges = [-9, -1, 0, 1, 3, 100] if np.issubdtype(kind, np.signedinteger) else [0, 1, 3, 200]
    starts = [kind(data.draw(st.sampled_from(edges))) for _ in shape]
    update = np.ones(sizes, x.dtype)
    scalar = f"tensor<{np.dtype(kind).name.replace('uint', 'ui').replace('int', 'i')}>"
    element = {"float32": "f32", "int32": "i32", "bfloat16": "bf16", "bool": "i1",
               "uint8": "ui8", "complex64": "complex<f32>"}[x.dtype.name]  # fmt: skip
    whole = f"tensor<{'x'.join(map(str, (*shape, element)))}>"
    part = f"tensor<{'x'.join(map(str, (*sizes, element)))}>"
    names = [f"s{at}" for at in range(len(shape))]
    listed = ", ".join(f"%{name}" for name in names)
    scalars = ", ".join([scalar] * len(shape))
    body = [
        f"%0 = stablehlo.dynamic_slice %x, {listed}, sizes = {list(sizes)} "
        f": ({whole}, {scalars}) -> {part}",
        f"%1 = stablehlo.dynamic_update_slice %x, %u, {listed} "
        f": ({whole}, {part}, {scalars}) -> {whole}",
    ]
    arguments = {"x": whole, "u": part} | dict.fromkeys(names, scalar)
    check_text(function(body, arguments, {"0": part, "1": whole}), x, update, *starts)


def test_dims_longer_than_starts_count() -> None:
    x = np.arange(300, dtype=np.float32)
    for kind, start in (("ui8", np.uint8(200)), ("i8", np.int8(100)), ("i8", np.int8(-1))):
        body = [
            "%0 = stablehlo.dynamic_slice %x, %s, sizes = [150] "
            f": (tensor<300xf32>, tensor<{kind}>) -> tensor<150xf32>"
        ]
        arguments = {"x": "tensor<300xf32>", "s": f"tensor<{kind}>"}
        check_text(function(body, arguments, {"0": "tensor<150xf32>"}), x, start)


@st.composite
def gathers(draw: st.DrawFn) -> tuple[Any, ...]:
    """An operand, indices and the dimension numbers and sizes of a gather."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple))
    dims = draw(st.permutations(range(len(shape))))
    num_batching = draw(st.integers(0, min(2, len(shape) - 1)))
    batching = sorted(dims[:num_batching])
    rest = dims[num_batching:]
    mapped = rest[: draw(st.integers(0, len(rest)))]
    collapsed = sorted(dim for dim in rest if draw(st.booleans()))
    batch = [shape[dim] for dim in batching] + draw(st.lists(st.integers(1, 4), max_size=2))
    sizes = [
        1 if dim in collapsed or dim in batching else draw(st.integers(1, shape[dim]))
        for dim in range(len(shape))
    ]
    numbers = draw(st.integers(-2, 6))
    rng = np.random.default_rng(numbers + 50)
    indices = rng.integers(-2, 7, (*batch, len(mapped))).astype(np.int32)
    rank = len(batch) + len(shape) - len(collapsed) - len(batching)
    offsets = sorted(
        draw(st.permutations(range(rank)))[: len(shape) - len(collapsed) - len(batching)]
    )
    return shape, indices, offsets, collapsed, mapped, batching, list(range(len(batching))), sizes


@few
@given(gathers(), st.data())
def test_gathers(case: tuple[Any, ...], data: st.DataObject) -> None:
    shape, indices, offsets, collapsed, mapped, batching, index_batching, sizes = case
    numbers = lax.GatherDimensionNumbers(
        tuple(offsets), tuple(collapsed), tuple(mapped), tuple(batching), tuple(index_batching)
    )
    check(
        lambda x, at: lax.gather(x, at, numbers, tuple(sizes), mode="clip"),
        draw_array(data, shape),
        indices,
    )


SCATTERS = (lax.scatter, lax.scatter_add, lax.scatter_mul, lax.scatter_min, lax.scatter_max)


@few
@given(gathers(), st.data())
def test_scatters(case: tuple[Any, ...], data: st.DataObject) -> None:
    shape, indices, offsets, collapsed, mapped, batching, index_batching, sizes = case
    # Of updates without any index XLA applies one alone.
    assume(mapped)
    numbers = lax.ScatterDimensionNumbers(
        tuple(offsets), tuple(collapsed), tuple(mapped), tuple(batching), tuple(index_batching)
    )
    scatter = data.draw(st.sampled_from(SCATTERS))
    element = data.draw(st.sampled_from(["f32", "i32", "bf16", "ui8"]))
    window = iter([sizes[dim] for dim in range(len(shape)) if dim not in (*collapsed, *batching)])
    batch = iter(indices.shape[:-1])
    rank = len(offsets) + indices.ndim - 1
    updates = tuple(next(window) if dim in offsets else next(batch) for dim in range(rank))
    check(
        lambda x, at, u: scatter(x, at, u, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP),
        draw_array(data, shape, element),
        indices,
        draw_array(data, updates, element),
    )


def test_windows_partly_out_of_bounds_are_left_out_in_full() -> None:
    numbers = lax.ScatterDimensionNumbers((1, 2), (), (0,))
    x, updates = small(RNG, (12, 6), "f32"), small(RNG, (5, 3, 6), "f32")
    at = np.array([[-1], [3], [9], [10], [12]], np.int32)
    check(lambda x, at, u: lax.scatter_add(x, at, u, numbers), x, at, updates)


def test_a_scatter_with_a_body_of_its_own() -> None:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    x = RNG.integers(0, 9, 6).astype(np.float32)
    at = np.array([[0], [3], [0], [9], [0], [-1], [3]], np.int32)
    u = np.arange(7, dtype=np.float32)

    def applied(x: Any, at: Any, u: Any) -> Any:
        found = lax.scatter_apply(x, at, lambda y: y * 3 - 1, numbers, update_shape=(7,))
        return found, x.at[at[:2, 0]].set(u[:2])

    check(applied, x, at, u)


def test_torch_index_select() -> None:
    x, at = small(RNG, (2, 3, 4, 5), "f32"), RNG.integers(0, 4, (2, 6)).astype(np.int32)
    body = [
        '%r = "stablehlo.torch_index_select"(%x, %i) <{dim = 2 : i64, batch_dims = 1 : i64}> '
        ": (tensor<2x3x4x5xf32>, tensor<2x6xi32>) -> tensor<2x3x6x5xf32>"
    ]
    arguments = {"x": "tensor<2x3x4x5xf32>", "i": "tensor<2x6xi32>"}
    check_text(function(body, arguments, {"r": "tensor<2x3x6x5xf32>"}), x, at)


def test_tuples_tokens_and_barriers() -> None:
    body = [
        "%t = stablehlo.tuple %x, %y : tuple<tensor<3xf32>, tensor<2xi32>>",
        "%0 = stablehlo.get_tuple_element %t[1] "
        ": (tuple<tensor<3xf32>, tensor<2xi32>>) -> tensor<2xi32>",
        "%k = stablehlo.create_token : !stablehlo.token",
        "%m = stablehlo.after_all %k, %k : !stablehlo.token",
        "%b:2 = stablehlo.optimization_barrier %x, %0 : tensor<3xf32>, tensor<2xi32>",
        "%1 = stablehlo.add %b#0, %b#0 : tensor<3xf32>",
    ]
    arguments = {"x": "tensor<3xf32>", "y": "tensor<2xi32>"}
    text = function(body, arguments, {"0": "tensor<2xi32>", "1": "tensor<3xf32>"})
    check_text(text, np.arange(3, dtype=np.float32), np.array([5, 6], np.int32))
