"""Named-axis notation: what is one, what it means, and how it is said elsewhere."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardcore import AxisRef, Mesh, ParseError, ShardcoreError, TensorSharding, VerificationError
from shardcore.calculus import NamedArray, NamedDim, block_table, blocks
from shardcore.calculus.notation_parser import parse_mesh, parse_sizes, split_axes
from shardcore.calculus.partition_spec import UNCONSTRAINED, Spec, from_spec, to_jax, to_spec

MESH = Mesh({"X": 4, "Y": 8, "Z": 2})

SAME = [
    "A[I, J]",
    "A[I_X, J_Y]",
    "A[I_{XY}, J]",
    "A[I_{data,model}, J]",
    "A[I_data]",
    "C[I, K] {U_X}",
    "C[I_Y, K] {U_{XZ}}",
    "bf16[B=1024_X, D=4096_Y]",
    "bf16[2048_Y, 8192]",
    "A: int8[I=128_{XY}, J=2048]",
    "A[]",
    "A[I_{X:(1)2}, J_{X:(2)2,Y}]",
    "A[I_{?}, J_{X?}]",
    'A[I_{"my axis"}]',
    "A[I_{DATA,}]",
    "W_in[D_{XY}, F]",
    "A'[I_X]",
]


@pytest.mark.parametrize("text", SAME)
def test_notation_prints_as_it_is_read(text: str) -> None:
    array = NamedArray.parse(text)
    assert NamedArray.parse(str(array)) == array
    if "?" not in text:
        assert str(array) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("A[I_XY,J]", "A[I_{XY}, J]"),
        ("A[ I_{X,Y} , J ]", "A[I_{XY}, J]"),
        ("C[I]{ U_X, U_Y }", "C[I] {U_{XY}}"),
        ("bf16[1024_X0Y1]", "bf16[1024_{X0,Y1}]"),
    ],
)
def test_spellings(text: str, same: str) -> None:
    assert NamedArray.parse(text) == NamedArray.parse(same)


def test_a_word_is_cut_into_axes_of_the_mesh() -> None:
    mesh = Mesh({"data": 2, "model": 4, "d": 2})
    assert split_axes("datamodel", mesh) == ["data", "model"]
    assert split_axes("dmodel", mesh) == ["d", "model"]
    assert split_axes("data", mesh) == ["data"]
    assert split_axes("datax", mesh) is None
    assert NamedArray.parse("A[I_datamodel]", mesh).dims[0].axes == (
        AxisRef("data"),
        AxisRef("model"),
    )
    assert NamedArray.parse("A[I_{XY,Z}]", MESH).dims[0].axes == tuple(map(AxisRef, "XYZ"))


ERRORS = {
    "A[I_X, J_X]": ("axis-overlap", 10, "gather one of the two, A[I_X, J] or A[I, J_X]"),
    "A[I_{XY}, J_{YX}]": ("axis-overlap", 14, "A[I_{XY}, J] or A[I, J_{YX}]"),
    "A[I_X] {U_X}": ("axis-overlap", 11, "use it once"),
    "A[I_Q]": ("unknown-axis", 5, '"X", "Y", "Z"'),
    "A[I_x]": ("unknown-axis", 5, 'did you mean "X"?'),
    "A[I J]": ("notation", 5, "I_{X,Y}"),
    "A[I_{X": ("notation", 7, None),
    "A": ("notation", 2, "A[I_X, J]"),
    "": ("notation", 1, "A[I_X, J]"),
    "A[I_]": ("notation", 5, "I_{X,Y}"),
    "A[I=]": ("notation", 5, "I=1024_X"),
    "A[=3]": ("notation", 3, "1024_X"),
    "A[I]]": ("notation", 5, None),
    "A: f7[I]": ("notation", 4, None),
    "A[I] {X}": ("notation", 7, "{U_X}"),
    "A[I] {U}": ("notation", 8, "{U_X}"),
    "A[I] {U_?}": ("notation", 10, "{U_X}"),
    "A[99999999999999999999]": ("notation", 3, None),
    "A[I_X,\nJ_X]": ("axis-overlap", 3, "A[I, J_X]"),
    "A[I_{X:(1)3}]": ("invalid-sub-axis", 6, "divides 4"),
    "A[I_{X:(0)4}]": ("invalid-sub-axis", 6, "after a part"),
    "A[I_{X:(1)4}]": ("invalid-sub-axis", 6, "not all of it"),
}


@pytest.mark.parametrize("text", ERRORS)
def test_mistakes_are_shown_where_they_are(text: str) -> None:
    code, column, hint = ERRORS[text]
    with pytest.raises(ShardcoreError) as caught:
        NamedArray.parse(text, MESH)
    error = caught.value
    assert (error.code, error.column) == (code, column), str(error)
    assert isinstance(error, ParseError if code == "notation" else VerificationError)
    assert error.hint
    assert hint is None or hint in error.hint
    assert "^" in str(error)


def test_an_array_refuses_an_axis_used_twice_without_text_too() -> None:
    with pytest.raises(VerificationError, match=r"A\[I_X, J\] or A\[I, J_X\]"):
        NamedArray((NamedDim("I", None, ("X",)), NamedDim("J", None, ("X",))), "A")
    NamedArray.parse("A[I_{X:(1)2}, J_{X:(2)2}]")
    with pytest.raises(VerificationError, match="twice"):
        NamedArray.parse("A[I_{X:(1)2}, J_X]")


def test_what_devices_hold() -> None:
    array = NamedArray.parse("bf16[I=1024_X, J=4096_Y]", MESH)
    assert array.local_shape(MESH) == (256, 512)
    assert array.bytes == 1024 * 4096 * 2
    assert array.bytes_per_device(MESH) == 256 * 512 * 2
    assert array.total_bytes(MESH) == 64 * 256 * 512 * 2
    assert array.replication_factor(MESH) == 2
    uneven = NamedArray.parse("fp32[10_X]", MESH)
    assert uneven.local_shape(MESH) == (3,)
    assert uneven.bytes_per_device(MESH) == 12
    assert NamedArray.parse("int4[7]").bytes == 4


def test_sizes_and_types_that_are_missing_or_differ() -> None:
    array = NamedArray.parse("A[I_X, J]")
    with pytest.raises(ShardcoreError, match="size of I and J") as caught:
        array.local_shape(MESH)
    assert caught.value.code == "missing-size"
    filled = array.with_sizes({"I": 8, "J": 2}, "bf16")
    assert str(filled) == "A: bf16[I=8_X, J=2]"
    with pytest.raises(ShardcoreError, match="I is 8") as caught:
        filled.with_sizes({"I": 9})
    assert caught.value.code == "size-mismatch"
    with pytest.raises(ShardcoreError, match="element type") as caught:
        NamedArray.parse("A[I=3]").bytes_per_device(MESH)
    assert caught.value.code == "missing-size"
    with pytest.raises(ShardcoreError, match='no dim "Q"'):
        array.dim_index("Q")


def test_to_and_from_sdy() -> None:
    text = '<mesh<["X"=4, "Y"=8, "Z"=2]>, [{"X", "Y"}, {?}], unreduced={"Z"}>'
    array = NamedArray.from_sdy(text, MESH)
    assert str(array) == "[I_{XY}, J_{?}] {U_Z}"
    assert str(array.to_sharding(MESH)) == text
    named = NamedArray.parse("A[I_X]", MESH).to_sharding(MESH, "mesh")
    assert str(named) == '<@mesh, [{"X"}]>'
    sub = TensorSharding(MESH, [["X"], []])
    assert (
        NamedArray.from_sharding(sub, "AB", shape=(8, 2), dtype="f32").bytes_per_device(MESH) == 16
    )
    unordered = NamedArray.parse("A[I] {U_{ZX}}", MESH).to_sharding(MESH)
    assert [axis.name for axis in unordered.unreduced] == ["X", "Z"]


def test_specs_as_jax_writes_them() -> None:
    array = from_spec((("X", "Y"), None, UNCONSTRAINED), 4)
    assert str(array) == "[I_{XY}, J, K_{?}, L]"
    assert str(to_spec(array)) == "P(('X', 'Y'), None, UNCONSTRAINED, None)"
    assert from_spec(to_spec(array), 4) == array
    summed = from_spec(Spec(("X",), frozenset({"Y"})))
    assert str(summed) == "[I_X] {U_Y}"
    assert str(to_spec(summed)) == "P('X', unreduced={'Y'})"
    assert UNCONSTRAINED != "X"
    for other, message in [({"shape": [8, 4]}, "2 sizes"), ({"names": []}, "0 names")]:
        with pytest.raises(ShardcoreError, match=f"{message} for an array of 1 dims"):
            from_spec(("X",), 1, **other)
    for spec, message in [(("X", "Y"), "2 entries"), ((3,), "3 is no entry")]:
        with pytest.raises(ShardcoreError, match=message):
            from_spec(spec, 1)
    for text in ("A[I_{X?}]", "A[I_{X:(1)2}]"):
        with pytest.raises(ShardcoreError, match="PartitionSpec cannot say"):
            to_spec(NamedArray.parse(text))


def test_specs_of_jax_itself() -> None:
    sharding = pytest.importorskip("jax.sharding")
    spec = sharding.PartitionSpec
    for given_spec in [
        spec("X", None),
        spec(("X", "Y"), "Z"),
        spec(None, spec.UNCONSTRAINED),
        spec("X", unreduced={"Y"}),
        spec(),
    ]:
        assert to_jax(from_spec(given_spec, len(given_spec))) == given_spec
    assert from_spec(spec(spec.UNCONSTRAINED)).dims[0].is_open


def test_the_block_that_each_device_holds() -> None:
    mesh = Mesh({"X": 2, "Y": 2}, [3, 2, 1, 0])
    array = NamedArray.parse("A[I=4_X, J=128_Y]")
    assert block_table(array, mesh).splitlines() == [
        "    | Y=0         | Y=1",
        "X=0 | 0:2, 0:64   | 0:2, 64:128",
        "X=1 | 2:4, 0:64   | 2:4, 64:128",
    ]
    assert [block.device for block in blocks(array, mesh)] == [3, 2, 1, 0]
    # The order of axes says who has what.
    for text, numbers in [("A[I_{XY}]", [0, 1, 2, 3]), ("A[I_{YX}]", [0, 2, 1, 3])]:
        assert [block.numbers[0] for block in blocks(NamedArray.parse(text), mesh)] == numbers
    table = block_table(NamedArray.parse("A[I_Y]"), Mesh({"Z": 2, "X": 1, "Y": 2}))
    assert table.splitlines()[0] == "Z=0"
    with pytest.raises(ShardcoreError, match="4096"):
        blocks(array, Mesh({"X": 2**13, "Y": 1}))


@st.composite
def arrays(draw: st.DrawFn) -> tuple[Mesh, NamedArray]:
    mesh = Mesh({name: draw(st.sampled_from([1, 2, 3, 4])) for name in ("X", "Y", "data")})
    axes = draw(st.permutations(["X", "Y", "data"]))
    dims: list[list[str]] = [[] for _ in range(draw(st.integers(1, 3)))]
    for axis in axes:
        place = draw(st.integers(-1, len(dims) - 1))
        if place >= 0:
            dims[place].append(axis)
    sizes = [draw(st.integers(1, 20)) for _ in dims]
    named = tuple(
        NamedDim("IJK"[index], size, tuple(cut))
        for index, (size, cut) in enumerate(zip(sizes, dims, strict=True))
    )
    return mesh, NamedArray(named, "A", "bf16")


@given(arrays())
def test_every_way_to_say_it_says_the_same(given_array: tuple[Mesh, NamedArray]) -> None:
    mesh, array = given_array
    assert NamedArray.parse(str(array), mesh) == array
    sharding = array.to_sharding(mesh)
    again = NamedArray.from_sharding(sharding, shape=array.shape, name="A", dtype="bf16")
    assert again == array
    assert from_spec(to_spec(array), shape=array.shape, name="A", dtype="bf16") == array
    assert array.local_shape(mesh) == sharding.local_shape(array.shape)
    assert array.replication_factor(mesh) == sharding.replication_factor
    held = blocks(array, mesh)
    assert len({block.numbers for block in held}) * array.replication_factor(mesh) == len(held)
    local = array.local_shape(mesh)
    for block in held:
        for number, size, part, whole in zip(
            block.numbers, local, block.slices or (), array.shape, strict=True
        ):
            assert part.start == min(number * size, whole)
    assert array.bytes_per_device(mesh) == math.prod(local) * 2


def test_meshes_and_sizes_on_the_command_line() -> None:
    assert parse_mesh("X=8, Y=4") == Mesh({"X": 8, "Y": 4})
    assert parse_mesh('<["x"=2]>') == Mesh({"x": 2})
    assert parse_sizes("I=128,J=8192") == {"I": 128, "J": 8192}
    for parse, text in [
        (parse_mesh, "X"),
        (parse_mesh, "X=,Y=2"),
        (parse_mesh, "8"),
        (parse_mesh, "X=8;Y=4"),
        (parse_sizes, "I=0"),
        (parse_sizes, "I=1,I=2"),
        (parse_sizes, "=3"),
    ]:
        with pytest.raises(ParseError) as caught:
            parse(text)
        assert caught.value.code == "notation"
        assert "^" in str(caught.value)
