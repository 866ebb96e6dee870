"""Tensor shardings: text, pieces, and what devices hold."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardcore import (
    AxisRef,
    DimSharding,
    Mesh,
    Module,
    ParseError,
    PassManager,
    ProgramTooLargeError,
    ShardcoreError,
    TensorSharding,
    VerificationError,
)
from shardcore.calculus import NamedArray

MESH = Mesh({"x": 8, "y": 4, "z": 2})
OPEN = DimSharding(is_closed=False)


def half(name: str, pre_size: int = 1) -> AxisRef:
    return AxisRef(name, pre_size=pre_size, size=2)


CASES = {
    "<@mesh, []>": TensorSharding(MESH, [], mesh_name="mesh"),
    '<@mesh, [{"x", "y":(1)2}, {}]>': TensorSharding(
        MESH, [["x", half("y")], None], mesh_name="@mesh"
    ),
    '<@mesh, [{"x"}], unreduced=max{"y"}>': TensorSharding(
        MESH, ["x"], unreduced="y", reduction_op="max", mesh_name="mesh"
    ),
    '<@mesh, [{?}, {"x", ?}p1, {"y"}p0]>': TensorSharding(
        MESH,
        [OPEN, DimSharding("x", is_closed=False, priority=1), DimSharding(["y"], priority=0)],
        mesh_name="mesh",
    ),
    '<@"a b", [{"x":(2)2}], replicated={"y", "z"}, unreduced={"x":(4)2}>': TensorSharding(
        MESH, [half("x", 2)], replicated=["y", "z"], unreduced=half("x", 4), mesh_name="a b"
    ),
    '<mesh<["a"=2]>, [{"a"}]>': TensorSharding(Mesh({"a": 2}), ["a"]),
    "<mesh<[], device_ids=[5]>, []>": TensorSharding(Mesh.maximal(5), []),
}


@pytest.mark.parametrize("text", CASES)
def test_text_and_pieces_give_the_same_sharding(text: str) -> None:
    sharding = TensorSharding.parse(text, MESH)
    assert sharding == CASES[text]
    assert hash(sharding) == hash(CASES[text])
    assert str(sharding) == text
    assert TensorSharding.parse("#sdy.sharding" + text, MESH) == sharding
    assert eval(repr(sharding)) == sharding
    for again in (pickle.loads(pickle.dumps(sharding)), copy.deepcopy(sharding)):
        assert again == sharding
        assert again.mesh == sharding.mesh


@pytest.mark.parametrize("text", [text for text in CASES if text.startswith("<@")])
def test_the_mesh_may_be_unknown(text: str) -> None:
    sharding = TensorSharding.parse(text)
    assert sharding.mesh is None
    assert sharding != CASES[text]
    assert str(sharding) == text
    assert eval(repr(sharding)) == sharding
    assert pickle.loads(pickle.dumps(sharding)) == sharding
    assert sharding.with_mesh(MESH) == CASES[text]
    with pytest.raises(VerificationError) as caught:
        sharding.local_shape([1] * sharding.rank)
    assert caught.value.code == "unknown-mesh"
    assert caught.value.hint == "give it one: sharding.with_mesh(mesh)"


def test_what_an_unknown_mesh_does_not_excuse() -> None:
    for text in ['<@m, [{"x"}, {"x"}]>', '<@m, [{"x"}, {"x":(1)2}]>', '<@m, [{"x":(0)2}]>']:
        with pytest.raises(VerificationError):
            TensorSharding.parse(text)
    with pytest.raises(VerificationError):
        TensorSharding("@m", ["x", "x"])
    unordered = TensorSharding.parse('<@m, [], unreduced={"y"}, replicated={"z", "x"}>')
    assert unordered == TensorSharding("@m", [], replicated=["z", "x"], unreduced="y")
    assert unordered.with_mesh(MESH).replicated == (AxisRef("x"), AxisRef("z"))
    with pytest.raises(VerificationError, match=r"replicated axes are not ordered w\.r\.t\. mesh"):
        TensorSharding.parse(str(unordered), MESH)


def test_meshes_may_be_given_by_name() -> None:
    meshes = {"a": Mesh({"x": 2}), "@b": MESH}
    assert TensorSharding.parse("<@a, []>", meshes).mesh == Mesh({"x": 2})
    assert TensorSharding.parse("<@b, []>", meshes).mesh == MESH
    with pytest.raises(VerificationError) as caught:
        TensorSharding.parse("<@c, []>", meshes)
    assert (caught.value.code, caught.value.column) == ("unknown-mesh", 2)
    assert caught.value.hint == "did you mean @a?"


def test_properties() -> None:
    sharding = CASES['<@"a b", [{"x":(2)2}], replicated={"y", "z"}, unreduced={"x":(4)2}>']
    assert sharding.mesh == MESH
    assert (sharding.mesh_name, sharding.rank) == ("a b", 1)
    assert sharding.dims == (DimSharding(half("x", 2)),)
    assert sharding.replicated == (AxisRef("y"), AxisRef("z"))
    assert sharding.unreduced == (half("x", 4),)
    assert not sharding.is_fully_replicated
    assert sharding.is_fully_closed
    replicated = TensorSharding.fully_replicated(MESH, 2, is_closed=False, mesh_name="m")
    assert str(replicated) == "<@m, [{?}, {?}]>"
    assert replicated.is_fully_replicated
    assert not replicated.is_fully_closed
    assert (
        str(TensorSharding("m", [OPEN, DimSharding("x", False, 1)]).closed())
        == '<@m, [{}, {"x"}p1]>'
    )


def test_dim_shardings() -> None:
    for text in ["{}", "{?}", '{"x"}', '{"x", "y":(1)2, ?}p3', "{?}p0"]:
        dim = DimSharding.parse(text)
        assert str(dim) == text
        assert eval(repr(dim)) == dim
        assert pickle.loads(pickle.dumps(dim)) == dim
        assert dim.is_open is not dim.is_closed
    assert DimSharding.parse('{"x"}p2').priority == 2
    assert DimSharding("x").axes == DimSharding([AxisRef("x")]).axes == (AxisRef("x"),)
    for bad in [lambda: DimSharding([], True, 1), lambda: DimSharding("x", priority=-1)]:
        with pytest.raises(VerificationError) as caught:
            bad()
        assert caught.value.code == "invalid-sharding"


@pytest.mark.parametrize(
    ("text", "code", "columns"),
    [
        ('<@mesh, [{"x"}, {"x"}]>', "axis-overlap", [18]),
        ('<@mesh, [{"x"}, {"x":(2)2}]>', "axis-overlap", [18]),
        ('<@mesh, [{"w"}, {"v"}]>', "unknown-axis", [11, 18]),
        ('<@mesh, [{"x":(1)3}]>', "invalid-sub-axis", [11]),
        ('<@mesh, [{"x":(9223372036854775807)2}]>', "invalid-sub-axis", [11]),
        ('<@mesh, [{"x":(1)2, "x":(2)2}]>', "invalid-sharding", [21]),
        ('<@mesh, [], replicated={"y", "x"}>', "invalid-sharding", [30]),
        ("<@mesh, [{}p1]>", "invalid-sharding", [10]),
    ],
)
def test_broken_rules(text: str, code: str, columns: list[int]) -> None:
    with pytest.raises(VerificationError) as caught:
        TensorSharding.parse(text, MESH)
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {code}
    assert [diagnostic.column for diagnostic in caught.value.diagnostics] == columns


def test_bad_arguments() -> None:
    with pytest.raises(TypeError):
        TensorSharding(MESH, "xy")
    with pytest.raises(TypeError):
        TensorSharding(MESH, [3])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        TensorSharding(3, [])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        TensorSharding("m", [], mesh_name="m")
    with pytest.raises(ParseError):
        TensorSharding.parse("<@mesh [], []>", MESH)
    sharding = TensorSharding(MESH, ["x", None])
    with pytest.raises(VerificationError, match="has 2 dims, and the tensor has 1"):
        sharding.local_shape([8])
    with pytest.raises(VerificationError):
        sharding.local_shape([8, -1])
    with pytest.raises(IndexError):
        sharding.sharded_size(2)
    with pytest.raises(KeyError):
        sharding.shard_slice([8, 8], 64)
    with pytest.raises(ValueError, match="not known"):
        sharding.bytes_per_device([8, 8], "token")


def test_what_devices_hold() -> None:
    mesh = Mesh({"x": 2, "y": 4})
    sharding = TensorSharding(mesh, ["y", "x"])
    assert sharding.local_shape([10, 8]) == (3, 4)
    assert sharding.shard_slice([10, 8], 6) == (slice(6, 9, 1), slice(4, 8, 1))
    assert sharding.shard_padding([10, 8], 7) == (2, 0)
    assert sharding.sharded_size(0) == sharding.sharded_size(-2) == 4
    assert sharding.bytes_per_device((10, 8), "bf16") == 24
    assert sharding.bytes_per_device((10, 8), "complex<f32>") == 96
    assert sharding.bytes_per_device((10, 8), "i1") == 12
    assert sharding.bytes_per_device((10, 8), "i4") == 6
    assert sharding.bytes_per_device((10, 8), "!quant.uniform<i4:f32, 2.0>") == 6
    assert sharding.bytes_per_device((10, 8), "!quant.uniform<u8<1:200>:bf16:1, {2.0}>") == 12
    assert sharding.bytes_per_device((10, 8), "!quant.any<i16>") == 24
    for dtype in ("!quant.calibrated<f32<-1.0:1.0>>", "!quant.any<u>", "!quant.uniform<"):
        with pytest.raises(ValueError, match="not known"):
            sharding.bytes_per_device((10, 8), dtype)
    assert TensorSharding(mesh, ["y", None]).replication_factor == 2
    assert TensorSharding(mesh, ["y"], unreduced="x").replication_factor == 1
    maximal = TensorSharding(Mesh.maximal(3), [])
    assert maximal.device_slices([2, 3]) == {3: (slice(0, 2, 1), slice(0, 3, 1))}


def test_huge_meshes() -> None:
    mesh = Mesh({"a": 2**30, "b": 2**30})
    sharding = TensorSharding(mesh, [["a"], ["b"]])
    split = TensorSharding(Mesh({"c": 2**60}), [AxisRef("c", 1, 2**30), AxisRef("c", 2**30, 2**30)])
    assert sharding.is_equivalent(split)
    assert sharding.is_equivalent(split, [100, 2**31])
    assert sharding.shard_slice([2**31, 2**31], 2**30 + 1) == (slice(2, 4, 1), slice(2, 4, 1))
    with pytest.raises(ProgramTooLargeError):
        sharding.device_slices([1, 1])


def test_devices_of_8_split_as_4_by_2_are_the_mesh_of_4_by_2() -> None:
    split = TensorSharding(
        Mesh({"devices": 8}), [AxisRef("devices", 1, 4), AxisRef("devices", 4, 2)]
    )
    assert split.is_equivalent(TensorSharding(Mesh({"x": 4, "y": 2}), ["x", "y"]))
    assert not split.is_equivalent(TensorSharding(Mesh({"x": 4, "y": 2}), ["y", "x"]))


@st.composite
def shardings(draw: st.DrawFn) -> TensorSharding:
    """A sharding of two dims over some mesh of 8 or 12 devices."""
    sizes = draw(st.sampled_from([(8,), (2, 4), (4, 2), (2, 2, 2), (12,), (3, 4), (2, 6), (6, 2)]))
    names = ["a", "b", "c"][: len(sizes)]
    count = math.prod(sizes)
    order = draw(st.one_of(st.none(), st.permutations(range(count))))
    parts = []
    for name, size in zip(names, sizes, strict=True):
        divisor = draw(st.sampled_from([k for k in range(1, size + 1) if size % k == 0]))
        if divisor in (1, size):
            parts.append(AxisRef(name))
        else:
            parts += [AxisRef(name, 1, divisor), AxisRef(name, divisor, size // divisor)]
    used = draw(st.permutations(parts))
    cuts = sorted(draw(st.lists(st.integers(0, len(used)), min_size=2, max_size=2)))
    rest = used[cuts[1] :]
    unreduced = sorted(draw(st.lists(st.sampled_from(rest), unique=True))) if rest else []
    dims = [list(used[: cuts[0]]), list(used[cuts[0] : cuts[1]])]
    try:
        return TensorSharding(
            Mesh(dict(zip(names, sizes, strict=True)), order), dims, unreduced=unreduced
        )
    except VerificationError:  # two parts of an axis that stand together are one
        return TensorSharding(Mesh(dict(zip(names, sizes, strict=True)), order), [None, None])


def shard_numbers(sharding: TensorSharding, axes: tuple[AxisRef, ...], device: int) -> int:
    """The digits of the device's coordinates that ``axes`` name, as one number."""
    assert sharding.mesh is not None
    number = 0
    for axis in axes:
        full = sharding.mesh.axis_size(axis.name)
        size = axis.size_in(sharding.mesh)
        minor = full // ((axis.pre_size or 1) * size)
        number = number * size + sharding.mesh.coordinates(device)[axis.name] // minor % size
    return number


def held(sharding: TensorSharding, shape: tuple[int, ...]) -> list[object]:
    """What each device holds, and the devices that it sums with, without Rust's help."""
    assert sharding.mesh is not None
    devices = range(sharding.mesh.num_devices)
    names = sharding.mesh.axis_names

    def sums_with(device: int) -> frozenset[int]:
        def rest(other: int) -> list[int]:
            # What is left of the coordinates when the unreduced parts are taken out.
            assert sharding.mesh is not None
            left = []
            for name in names:
                coordinate = sharding.mesh.coordinates(other)[name]
                for axis in sharding.unreduced:
                    if axis.name == name:
                        full = sharding.mesh.axis_size(name)
                        size = axis.size_in(sharding.mesh)
                        minor = full // ((axis.pre_size or 1) * size)
                        coordinate -= coordinate // minor % size * minor
                left.append(coordinate)
            return left

        return frozenset(other for other in devices if rest(other) == rest(device))

    found: list[object] = []
    for device in devices:
        elements = []
        for size, dim in zip(shape, sharding.dims, strict=True):
            count = math.prod(axis.size_in(sharding.mesh) for axis in dim.axes)
            local = -(-size // count)
            start = shard_numbers(sharding, dim.axes, device) * local
            elements.append([i for i in range(start, start + local) if i < size])
        found.append((set(itertools.product(*elements)), sums_with(device)))
    return found


@given(shardings(), st.tuples(st.integers(0, 13), st.integers(0, 13)))
def test_slices_are_those_of_the_definition(
    sharding: TensorSharding, shape: tuple[int, int]
) -> None:
    slices = sharding.device_slices(shape)
    assert sharding.mesh is not None
    padding = sharding.padding(shape)
    local = sharding.local_shape(shape)
    for device, (elements, _) in enumerate(held(sharding, shape)):  # type: ignore[misc]
        ranges = [range(*piece.indices(10**6)) for piece in slices[device]]
        assert set(itertools.product(*ranges)) == elements
        lengths = tuple(map(len, ranges))
        assert tuple(a + b for a, b in zip(lengths, padding[device], strict=True)) == local
        assert slices[device] == sharding.shard_slice(shape, device)
        assert padding[device] == sharding.shard_padding(shape, device)


@given(shardings(), shardings(), st.tuples(st.integers(0, 13), st.integers(0, 13)))
def test_equivalence_is_that_of_the_definition(
    one: TensorSharding, other: TensorSharding, shape: tuple[int, int]
) -> None:
    expected = held(one, shape) == held(other, shape)
    assert one.is_equivalent(other, shape) == expected
    # 24 elements a dim divide by every number of shards here, so no two shards look alike.
    assert one.is_equivalent(other) == (held(one, (24, 24)) == held(other, (24, 24)))
    assert one.is_equivalent(one, shape)


def test_reductions_over_unreduced_axes() -> None:
    sharding = TensorSharding(MESH, ["x"], unreduced="y", reduction_op="min")
    assert sharding.reduction_op == "min"
    summed = TensorSharding(MESH, ["x"], unreduced="y")
    assert summed.reduction_op == "sum"
    assert summed == TensorSharding.parse(str(summed).replace("unreduced=", "unreduced=sum"))
    assert sharding != summed
    assert not sharding.is_equivalent(summed)
    assert sharding.is_equivalent(sharding.with_mesh(MESH))
    assert sharding.closed().canonical().reduction_op == "min"
    # Without unreduced axes there is nothing to reduce.
    assert TensorSharding(MESH, ["x"], reduction_op="max") == TensorSharding(MESH, ["x"])
    with pytest.raises(ValueError, match="reduction_op is one of 'sum', 'max', 'min', not mean"):
        TensorSharding(MESH, ["x"], unreduced="y", reduction_op="mean")  # type: ignore[arg-type]


def test_notations_without_reductions_refuse_them() -> None:
    sharding = TensorSharding(MESH, ["x"], unreduced="y", reduction_op="max")
    for convert in (NamedArray.from_sharding, TensorSharding.to_hlo):
        with pytest.raises(VerificationError, match="has no max over unreduced axes"):
            convert(sharding)


REDUCED = """sdy.mesh @mesh = <["x"=8, "y"=4, "z"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced=max{"y"}>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
"""  # noqa: E501
COLLECTIVE = """sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.all_reduce sum {"x"} %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


@pytest.mark.parametrize("text", [REDUCED, REDUCED.replace("max", "sum"), COLLECTIVE])
def test_older_versions_of_shardy_know_no_reductions(text: str) -> None:
    assert str(Module.parse(text, shardy="0.12")) == text
    with pytest.raises(ShardcoreError) as caught:
        Module.parse(text, shardy="0.10")
    assert caught.value.code == "shardy-version"
    assert caught.value.hint is not None
    assert 'shardy="0.12"' in caught.value.hint


def test_a_pass_of_an_older_version_does_not_lose_a_reduction() -> None:
    module = Module.parse(REDUCED, shardy="0.12")
    PassManager.parse("builtin.module(sdy-close-shardings)").run(module)
    assert 'unreduced=max{"y"}' in str(module)
    with pytest.raises(ShardcoreError) as caught:
        PassManager.parse("builtin.module(sdy-close-shardings)", shardy="0.10").run(module)
    assert caught.value.code == "shardy-version"
    assert "the reduction 'max' over unreduced axes" in str(caught.value)
    summed = Module.parse(REDUCED.replace("max", ""), shardy="0.12")
    PassManager.parse("builtin.module(sdy-close-shardings)", shardy="0.10").run(summed)
