"""Axis refs: text, order, and how parts of one axis stand to each other."""

from __future__ import annotations

import copy
import pickle

import pytest
from shardcore import AxisRef, Mesh, ParseError, VerificationError


def sub(pre_size: int, size: int, name: str = "a") -> AxisRef:
    return AxisRef(name, pre_size=pre_size, size=size)


@pytest.mark.parametrize(
    ("text", "axis"),
    [('"a"', AxisRef("a")), ('"a":(2)4', sub(2, 4)), ('"\\22"', AxisRef('"'))],
)
def test_text_and_pieces_give_the_same_axis(text: str, axis: AxisRef) -> None:
    assert AxisRef.parse(text) == axis
    assert str(axis) == text
    assert eval(repr(axis)) == axis
    assert pickle.loads(pickle.dumps(axis)) == axis
    assert copy.copy(axis) == axis
    assert len({axis, AxisRef.parse(text)}) == 1


def test_parts() -> None:
    assert (AxisRef("a").pre_size, AxisRef("a").size, AxisRef("a").is_full) == (None, None, True)
    assert (sub(2, 4).pre_size, sub(2, 4).size, sub(2, 4).is_full) == (2, 4, False)
    mesh = Mesh({"a": 8})
    assert (AxisRef("a").size_in(mesh), sub(2, 4).size_in(mesh)) == (8, 4)
    with pytest.raises(VerificationError) as caught:
        AxisRef("b").size_in(mesh)
    assert (caught.value.code, caught.value.hint) == ("unknown-axis", 'did you mean "a"?')


def test_order_is_by_name_then_place() -> None:
    ordered = [sub(1, 2), sub(1, 4), AxisRef("a"), sub(2, 2), sub(4, 2), AxisRef("b")]
    backwards = ordered[::-1]
    assert sorted(backwards) == ordered


def test_relations() -> None:
    assert AxisRef("a").contains(sub(2, 2))
    assert not sub(2, 2).contains(AxisRef("a"))
    assert sub(1, 4).overlaps(sub(2, 4))
    assert not sub(1, 4).overlaps(sub(4, 2))
    assert not AxisRef("a").overlaps(AxisRef("b"))
    assert sub(1, 4).can_coexist(sub(2, 4))
    assert not sub(1, 2).can_coexist(sub(1, 3))
    assert sub(1, 2).can_coexist(sub(1, 3, "b"))


def test_bad_axes() -> None:
    for pre_size, size in [(0, 2), (1, 1), (-1, 2), (1, 0), (2**63 - 1, 2), (2**99, 2)]:
        with pytest.raises(VerificationError) as caught:
            sub(pre_size, size)
        assert caught.value.code == "invalid-sub-axis"
    with pytest.raises(TypeError):
        AxisRef("a", pre_size=1)
    for text in ["a", '"a":', '"a":(1)', '"a":1', '"a" x', '"']:
        with pytest.raises(ParseError):
            AxisRef.parse(text)


def test_parts_of_an_axis_around_another() -> None:
    mesh = Mesh({"a": 4, "b": 16})
    whole, middle = AxisRef("b"), AxisRef("b", 2, 4)
    assert whole.overlap(middle) == middle
    assert whole.prefix_without_overlap(middle) == AxisRef("b", 1, 2)
    assert whole.suffix_without_overlap(middle, mesh) == AxisRef("b", 8, 2)
    assert middle.overlap(AxisRef("b", 1, 2)) is None
    assert middle.overlap(AxisRef("a")) is None
    assert middle.prefix_without_overlap(AxisRef("a")) == middle
    assert middle.suffix_without_overlap(whole, mesh) is None
    with pytest.raises(VerificationError, match="unknown axis"):
        whole.suffix_without_overlap(AxisRef("c"), mesh)


def test_axes_in_a_mesh() -> None:
    mesh = Mesh({"a": 4, "b": 16})
    assert [AxisRef("a").stride_in(mesh), AxisRef("b", 2, 4).stride_in(mesh)] == [16, 2]
    parts = [AxisRef("b", 1, 2), AxisRef("b", 2, 8), "a"]
    assert mesh.merge_axes(parts) == [AxisRef("b"), AxisRef("a")]
    assert mesh.merge_axes(parts[::-1]) == [AxisRef("a"), *parts[1::-1]]
    assert mesh.group_nodes(["b"], 8) == (2, 8)
    assert mesh.group_nodes(["a", AxisRef("b", 8, 2), "b"], 8) == (8, 8)
    assert mesh.group_nodes([AxisRef("b", 1, 4)], 8) == (2, 2)
    turned = Mesh({"a": 4, "b": 4}, [4 * b + a for a in range(4) for b in range(4)])
    assert turned.group_nodes("a", 4) == (1, 4)
    assert Mesh({"x": 2, "y": 1 << 40}).group_nodes("y", 72)[1] == 72
    with pytest.raises(VerificationError, match="not a part"):
        mesh.merge_axes([AxisRef("b", 3, 5)])
    with pytest.raises(VerificationError, match="unknown axis"):
        mesh.group_nodes("c", 8)
