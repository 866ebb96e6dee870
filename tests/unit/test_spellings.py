"""One array in four notations."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardcore import Mesh, ParseError, ShardcoreError, TensorSharding
from shardcore.calculus import UNCONSTRAINED, NamedArray, from_spec, parse_any, parse_spec, to_spec
from shardcore.cli import main

MESH = Mesh({"X": 2, "Y": 4})


@pytest.mark.parametrize(
    ("text", "dims", "unreduced"),
    [
        ('P("X", None)', ("X", None), ()),
        ("P(('X', 'Y'), None, P.UNCONSTRAINED,)", (("X", "Y"), None, UNCONSTRAINED), ()),
        ("PartitionSpec('X', UNCONSTRAINED, unreduced={'Y'})", ("X", UNCONSTRAINED), ("Y",)),
        ("jax.sharding.PartitionSpec((), ('X',))", ((), ("X",)), ()),
        ("P()", (), ()),
    ],
)
def test_specs_are_read_as_python_writes_them(text, dims, unreduced) -> None:
    spec = parse_spec(text)
    assert (spec.dims, spec.unreduced) == (dims, frozenset(unreduced))
    assert parse_spec(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("P(X)", 3),
        ('P("X"', 6),
        ('P("X",, None)', 7),
        ('Q("X")', 1),
        ('P("X") x', 8),
        ("P(('X', None))", 9),
        ("P(unreduced={'X'}, unreduced={'Y'})", 20),
    ],
)
def test_texts_that_are_no_specs(text: str, column: int) -> None:
    with pytest.raises(ShardcoreError) as caught:
        parse_spec(text)
    assert (caught.value.code, caught.value.column) == ("notation", column)
    assert "^" in str(caught.value)


SAME = [
    "A[I_X, J_Y]",
    'P("X", "Y")',
    '[{"X"}, {"Y"}]',
    '<@mesh, [{"X"}, {"Y"}]>',
    '<mesh<["X"=2, "Y"=4]>, [{"X"}, {"Y"}]>',
    "{devices=[2,4]<=[8]}",
    "{mesh['X'=2,'Y'=4], [{'X'}, {'Y'}]}",
]


@pytest.mark.parametrize("text", SAME)
def test_the_same_in_every_notation(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    array, mesh = parse_any(text, MESH, shape=(8, 16))
    assert mesh == MESH
    assert array.local_shape(mesh) == (4, 4)
    arguments = ["array", text, "--mesh", "X=2,Y=4", "--shape", "8x16", "--dtype", "bf16", "--json"]
    assert main(arguments) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["sdy"] == '<mesh<["X"=2, "Y"=4]>, [{"X"}, {"Y"}]>'
    assert record["spec"] == "P('X', 'Y')"
    assert record["hlo"] == "{devices=[2,4]<=[8]}"
    assert record["array"].endswith("bf16[I=8_X, J=16_Y]")
    assert (record["bytes_per_device"], record["replication_factor"]) == (32, 1)


def test_a_mesh_is_needed_only_where_the_text_has_none(capsys) -> None:
    assert parse_any("{devices=[2,1,4]<=[8] last_tile_dim_replicate}")[1] == Mesh({"x": 2, "y": 4})
    assert parse_any(SAME[4])[1] == MESH
    for text in ("A[I_X]", "P('X')", '[{"X"}]', "{replicated}"):
        assert main(["array", text]) == 1
        assert "the mesh is not known" in capsys.readouterr().err
    for text, words in [("P('Q')", "no axis"), ("A[I_X]", "2 sizes"), ("{devices=[2]<=[2]}", "2")]:
        assert main(["array", text, "--mesh", "X=2", "--shape", "4x4"]) == 1
        error = capsys.readouterr().err
        assert words in error
        assert "^" in error


def test_what_is_not_known_is_left_out(capsys) -> None:
    assert main(["array", "A[I_X, J]", "--mesh", "X=2", "--json", "--blocks"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert "local_shape" not in record
    assert record["blocks"][1]["slices"] is None
    assert main(["array", "A[I=4_X]", "--mesh", "X=2"]) == 0
    assert "per device   [2]" in capsys.readouterr().out
    assert main(["array", "A[I_X]", "--mesh", "X=2", "--sizes", "i=3"]) == 1
    assert 'did you mean "I"' in capsys.readouterr().err


@given(st.permutations(["X", "Y"]), st.lists(st.integers(0, 2), min_size=2, max_size=2))
def test_shardings_become_specs_and_come_back(axes: list[str], places: list[int]) -> None:
    dims: list[list[str]] = [[], [], []]
    for axis, place in zip(axes, places, strict=True):
        dims[place].append(axis)
    sharding = TensorSharding(MESH, dims)
    spec = to_spec(sharding)
    assert from_spec(spec).to_sharding(MESH) == sharding
    assert from_spec(parse_spec(str(spec))).to_sharding(MESH) == sharding
    assert NamedArray.parse(str(from_spec(spec)), MESH).to_sharding(MESH) == sharding


NO_SPECS = ["P('x'", "P('x'))", "P(1)", "P(x)", "P(*x)", "P(,)", "P('x',,)", "P({'x'})", "P(True)"]
NO_SPECS += [
    "P(b'x')",
    "P('x').y",
    "P(raduced={'x'})",
    "P(reduced='x')",
    "P('x' 'y')",
    "P(unreduced='x')",
    "P(x=)",
]
NO_SPECS += ["P(" + "(" * 10_000, "P(" * 1000, "P('x', (('y',),))"]


@pytest.mark.parametrize("text", NO_SPECS)
def test_what_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_spec(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("PartitionSpec( 'x' , )", ("x",)),
        ("P(('x'), ('y',), (), ['z'])", (("x",), ("y",), (), ("z",))),
        ("P(jax.sharding.PartitionSpec.UNCONSTRAINED)", (UNCONSTRAINED,)),
        ("P('a\\'b', \"c\\\\\", '\\x41\\u00e9\\n', 'é')", ("a'b", "c\\", "Aé\n", "é")),
    ],
)
def test_names_are_read_as_python_writes_them(text: str, dims: tuple[object, ...]) -> None:
    assert parse_spec(text).dims == dims
