"""Meshes: what is one, how it prints, where its devices are."""

from __future__ import annotations

import copy
import pickle

import pytest
from shardcore import Mesh, MeshAxis, ParseError, VerificationError

TEXTS = {
    "<[]>": Mesh(),
    "<[], device_ids=[3]>": Mesh.maximal(3),
    '<["x"=2]>': Mesh({"x": 2}),
    '<["x"=2, "y"=4]>': Mesh({"x": 2, "y": 4}),
    '<["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>': Mesh({"x": 2, "y": 2}, [3, 2, 1, 0]),
    '<["a \\22\\E2\\98\\83"=1]>': Mesh({'a "☃': 1}),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text_and_pieces_give_the_same_mesh(text: str) -> None:
    mesh = Mesh.parse(text)
    assert mesh == TEXTS[text]
    assert hash(mesh) == hash(TEXTS[text])
    assert str(mesh) == text
    assert Mesh.parse("#sdy.mesh" + text) == mesh
    assert eval(repr(mesh)) == mesh
    assert pickle.loads(pickle.dumps(mesh)) == mesh
    assert copy.deepcopy(mesh) is mesh


def test_pieces_come_as_mapping_pairs_or_axes() -> None:
    expected = Mesh({"x": 2, "y": 4})
    assert Mesh([("x", 2), ("y", 4)]) == expected
    assert Mesh([MeshAxis("x", 2), ("y", 4)]) == expected
    assert expected.axes == (MeshAxis("x", 2), MeshAxis("y", 4))
    assert expected.axis_names == ("x", "y")
    assert list(expected.shape.items()) == [("x", 2), ("y", 4)]
    assert Mesh({"y": 4, "x": 2}) != expected


def test_the_default_order_of_devices_is_not_kept() -> None:
    assert Mesh({"x": 2, "y": 2}, range(4)) == Mesh({"x": 2, "y": 2})
    assert Mesh({"x": 2}).device_ids is None
    assert Mesh({"x": 2}, [1, 0]).device_ids == (1, 0)


def test_devices_and_coordinates() -> None:
    mesh = Mesh({"x": 2, "y": 3}, [5, 4, 3, 2, 1, 0])
    for device in range(6):
        assert mesh.device_at(mesh.coordinates(device)) == device
    assert mesh.coordinates(5) == {"x": 0, "y": 0}
    assert mesh.coordinates(0) == {"x": 1, "y": 2}
    assert mesh.num_devices == 6
    assert Mesh.maximal(7).coordinates(7) == {}
    assert (Mesh().num_devices, Mesh.maximal(7).num_devices) == (0, 1)
    with pytest.raises(KeyError, match="no device 6"):
        mesh.coordinates(6)
    with pytest.raises(VerificationError, match=r'coordinate 2 along axis "x" is not in 0\.\.2'):
        mesh.device_at({"x": 2, "y": 0})
    with pytest.raises(VerificationError, match='no coordinate along axis "y"'):
        mesh.device_at({"x": 1})
    with pytest.raises(VerificationError, match='unknown axis name: "z"'):
        mesh.device_at({"x": 1, "y": 1, "z": 1})


def test_kinds() -> None:
    assert Mesh().is_empty
    assert not Mesh().is_maximal
    assert Mesh.maximal(0).is_maximal
    assert not Mesh({"x": 1}).is_maximal
    assert "x" in Mesh({"x": 1})
    assert "y" not in Mesh({"x": 1})
    assert Mesh({"x": 3}).axis_size("x") == 3


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ('<["x"=0]>', "axis size must be at least 1, got: 0", 3),
        ('<["x"=2, "x"=2]>', 'duplicate axis name: "x"', 10),
        (
            '<["x"=2], device_ids=[0, 2]>',
            "sorted device ids must be iota(product(axes)), got: 0, 2",
            26,
        ),
        (
            '<["x"=2], device_ids=[1, 1]>',
            "sorted device ids must be iota(product(axes)), got: 1, 1",
            26,
        ),
        ('<["x"=2], device_ids=[-1, 1]>', "device id must be non-negative, got: -1", 23),
        (
            '<["x"=2], device_ids=[2, 1, 0]>',
            "total product of axis sizes must match total number of device ids, got: 2 != 3",
            22,
        ),
        (
            "<[], device_ids=[1, 2]>",
            "axes is empty and device_ids has more than one element",
            17,
        ),
        (
            '<["x"=2147483648, "y"=2147483648]>',
            "the axis sizes multiply to 2^62 devices or more",
            1,
        ),
    ],
)
def test_bad_meshes(text: str, message: str, column: int) -> None:
    with pytest.raises(VerificationError) as caught:
        Mesh.parse(text)
    assert caught.value.code == "invalid-mesh"
    assert (caught.value.message, caught.value.line, caught.value.column) == (message, 1, column)


def test_bad_pieces() -> None:
    with pytest.raises(VerificationError) as caught:
        Mesh([("x", 0), ("y", -1)])
    assert len(caught.value.diagnostics) == 2
    with pytest.raises(VerificationError):
        MeshAxis("x", 0)
    with pytest.raises(VerificationError):
        Mesh.maximal(-1)
    with pytest.raises(VerificationError, match="2\\^62"):
        Mesh({"x": 2**31, "y": 2**31})
    with pytest.raises(TypeError):
        Mesh([3])  # type: ignore[list-item]
    with pytest.raises(VerificationError, match="2\\^62"):
        Mesh({"x": 2**64})


@pytest.mark.parametrize(
    "text", ["", "<", "<[>", '<["x"]>', "<[]> x", '<["x"=2, ]>', "<device_ids=[0]>"]
)
def test_bad_text(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        Mesh.parse(text)
    assert caught.value.code == "syntax"
    assert caught.value.line == 1
