"""GSPMD's notation means and prints what it does in XLA, and converts as JAX converts it."""

import random
from math import prod

import numpy as np
import pytest
from shardcore import (
    AxisRef,
    HloSharding,
    Mesh,
    Module,
    ShardcoreError,
    TensorSharding,
    import_hlo_shardings,
)

from tests.shardy import reference

xla = pytest.importorskip("jaxlib._hlo")
FORMS = [
    "{replicated}",
    " { replicated } ",
    "{maximal device=3}",
    "{device=1 maximal}",
    "{manual}",
    "{unknown}",
    "{unreduced}",
    "{}",
    "{/*why*/replicated}",
    "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
    "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
    "{devices=[2,4]0,1,2,3,4,5,6,7}",
    "{devices=[2, 2]<=[2,2] T(1,0)}",
    "{devices=[1,1]<=[1]}",
    "{devices=[1,1]<=[1] last_tile_dim_replicate}",
    "{devices=[2,4]3,1,2,0,4,7,6,5 last_tile_dim_replicate}",
    "{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}",
    "{devices=[2,2,2]<=[8] last_tile_dims={replicated, manual}}",
    "{devices=[2,4]<=[8] last_tile_dims={}}",
    "{replicated metadata={op_name=\"a}\"} shard_as 3}",
    "{devices=[2]<=[2] shard_like 3 metadata={{op_name=\"a\"}, {op_type=\"b\"}}}",
    "{{replicated},{manual}, {devices=[2]<=[2]}, {unknown}, {replicated}, {replicated shard_as 1}}",
    "{mesh['x'=2, 'y'=4], [{'x','y'}, {}]}",
    "{mesh[\"x\"=2,\"y\"=4] [{'x'}, {?}], metadata={op_name=\"a\"}}",
    "{mesh['x'=2,'y'=4], [{'y':(1)2, ?}, {'x'}], replicated={'y':(2)2}}",
    "{mesh['x'=2,'y'=4,'z'=2,'w'=2], [{'x'}], unreduced={'z'},replicated={'y'},manual={'w'}}",
    "{mesh['x'=2,'y'=4], device_ids=(0,2,4,6,1,3,5,7), [{'x'}]}",
    "{mesh['x'=2,'y'=4], device_ids=([2,2,2]T(1,2,0)), [{'x'}]}",
    "{mesh['x'=2,'y'=4], device_ids=([8]), [{'x'}]}",
    "{mesh['x'=2,'y'=4], []}",
    "{mesh['x'=2], replicated}",
    "{mesh['x'=2], [], unreduced={'x'}}",
    "{mesh['x'=2], manual}",
    "{mesh['x'=2,'y'=4], [], unreduced={'x'}}",
    "{maximal_mesh[device_id=3]}",
]  # fmt: skip
BAD = {
    "foo": (1, 2),
    "{foo}": (2, 5),
    "{replicated": (12, 13),
    "{replicated} x": (14, 15),
    "{replicated,}": (12, 13),
    "{{replicated} {manual}}": (15, 16),
    "{maximal}": (1, 10),
    "{replicated device=1}": (1, 22),
    "{replicated manual}": (13, 19),
    "{devices=[1]5}": (10, 14),
    "{devices=[]0}": (11, 12),
    "{devices=[2,0]<=[0]}": (11, 14),
    "{devices=[2,2]<=[8]}": (10, 20),
    "{devices=[2,2]0,1,2}": (10, 20),
    "{devices=[2,2]0,1,2,2}": (15, 22),
    "{devices=[2,2]<=[2,2]}": (22, 23),
    "{devices=[2,2]<=[2,2]T(0,0)}": (24, 27),
    "{devices=[2,2]<=[4] last_tile_dims={foo}}": (37, 40),
    "{mesh['y'=4], [{'z'}]}": (1, 23),
    "{mesh['y'=4], [{'y'},{'y'}]}": (1, 29),
    "{mesh[y=4], [{}]}": (7, 8),
}


def theirs(text):
    return str(xla.HloSharding.from_string(text))


NEW_FORMS = [
    "{single_device[device_id=3]}",
    "{single_device[device_id=3], metadata={op_name=\"a\"}}",
    "{mesh['x'=2,'y'=2], [], unreduced=max{'x'}}",
    "{mesh['x'=2,'y'=2], [{}], manual={'y'}, unreduced=min {'x'}}",
    "{mesh['x'=2,'y'=2], [{}], unreduced=sum{'x'}}",
    "{mesh['x'=2,'y'=2], [{'y'}], unreduced=max{}}",
    "{mesh['x'=2,'y'=2], unreduced=max}",
    "{mesh['x'=2,'y'=2], unreduced =sum}",
    "{mesh['x'=2,'y'=2], unreduced=max{'x'}}",
    "{mesh['x'=2,'y'=2], unreduced=max {'x', 'y'}}",
    "{mesh['x'=1,'y'=2], [], unreduced=max{'x'}}",
    "{mesh['x'=1], [], unreduced=max{'x'}}",
    "{mesh[], unreduced}",
]  # fmt: skip
"""What the XLA of jaxlib 0.12 has and older ones have not."""


@pytest.mark.parametrize("text", FORMS + (NEW_FORMS if reference.IS_NEW else []))
def test_prints_as_xla_does(text):
    ours = str(HloSharding.parse(text))
    assert ours == theirs(text)
    assert str(HloSharding.parse(ours)) == ours


@pytest.mark.skipif(reference.IS_NEW, reason="the installed XLA has these forms")
@pytest.mark.parametrize("text", NEW_FORMS)
def test_newer_forms_are_refused_as_by_xla(text):
    with pytest.raises(ShardcoreError) as caught:
        HloSharding.parse(text)
    assert "^" in str(caught.value)
    if text != "{mesh[], unreduced}":  # XLA ends the process.
        with pytest.raises(Exception, match="Syntax error"):
            theirs(text)


BAD_REDUCTIONS = {
    "{mesh['x'=2], unreduced=prod}": (25, 29),
    "{mesh['x'=2], [{}], unreduced=prod{'x'}}": (31, 35),
    "{mesh['x'=2], [{}], manual=max{'x'}}": (28, 29),
    "{mesh['x'=2,'y'=2], unreduced=max, manual={'x'}}": (36, 42),
}


@pytest.mark.skipif(not reference.IS_NEW, reason="the installed XLA has no reductions")
@pytest.mark.parametrize(("text", "columns"), BAD_REDUCTIONS.items())
def test_bad_reductions_are_refused_with_their_place(text, columns):
    test_bad_text_is_refused_with_its_place(text, columns)
    with pytest.raises(Exception, match="Syntax error"):
        theirs(text)


@pytest.mark.skipif(not reference.IS_NEW, reason="the installed XLA has no reductions")
def test_reductions_of_named_forms_reach_programs():
    named = HloSharding.parse("{mesh['x'=2,'y'=2], [{'y'}], unreduced=max{'x'}}")
    assert named.to_sharding().reduction_op == "max"
    text = f"""func.func @main(%a: tensor<8xf32> {{mhlo.sharding = "{named}"}}) -> tensor<8xf32> {{
  return %a : tensor<8xf32>
}}"""
    module = import_hlo_shardings(Module.parse(text), Mesh({"x": 2, "y": 2}))
    assert module["%a"].sharding.reduction_op == "max"


@pytest.mark.parametrize(("text", "columns"), BAD.items())
def test_bad_text_is_refused_with_its_place(text, columns):
    with pytest.raises(ShardcoreError) as caught:
        HloSharding.parse(text)
    place = caught.value.diagnostics[0].place
    assert place is not None
    assert (place.column, place.end_column) == columns
    assert "^" in str(caught.value)


def _cut(choose, total, count):
    """Return ``count`` sizes whose product is ``total``."""
    sizes = [1] * count
    for prime in (2, 3, 5, 7):
        while total % prime == 0:
            sizes[choose.randrange(count)] *= prime
            total //= prime
    return sizes


def random_tiling(choose):
    count = choose.choice([1, 2, 4, 6, 8, 12, 16, 24, 30, 64])
    kinds = choose.choices(("manual", "unreduced", "replicated"), k=choose.randrange(4))
    dims = _cut(choose, count, choose.randint(1, 4) + len(kinds))
    text = f"{{devices=[{','.join(map(str, dims))}]"
    if choose.random() < 0.3 and count > 1:
        devices = choose.sample(range(count), count)
        text += ",".join(map(str, devices))
    else:
        reshape = _cut(choose, count, choose.randint(1, 4))
        perm = choose.sample(range(len(reshape)), len(reshape))
        text += f"<=[{','.join(map(str, reshape))}]"
        text += f"T({','.join(map(str, perm))})" if len(perm) > 1 else ""
    if kinds == ["replicated"]:
        return text + " last_tile_dim_replicate}"
    return text + (f" last_tile_dims={{{','.join(kinds)}}}}}" if kinds else "}")


@pytest.mark.parametrize("seed", range(20))
def test_random_tilings_print_as_xla_prints_them(seed):
    choose = random.Random(seed)
    for _ in range(200):
        text = random_tiling(choose)
        assert str(HloSharding.parse(text)) == theirs(text), text


def tiles_of(hlo):
    """For each device, the tile it has in each dim, from XLA's reading of the text."""
    read = xla.HloSharding.from_string(str(hlo))
    devices = np.array(read.tile_assignment_devices()).reshape(read.tile_assignment_dimensions())
    rank = devices.ndim - len(hlo.subgroups)
    return {int(devices[at]): at[:rank] for at in np.ndindex(*devices.shape)}


def tiles_of_sharding(sharding, tiles):
    slices = sharding.device_slices(tiles)
    return {device: tuple(part.start for part in parts) for device, parts in slices.items()}


@pytest.mark.parametrize("seed", range(10))
def test_random_tilings_convert_and_mean_the_same(seed):
    choose = random.Random(seed)
    for _ in range(100):
        hlo = HloSharding.parse(random_tiling(choose))
        if hlo.kind != "tiled" or "manual" in hlo.subgroups:
            continue
        sharding = hlo.to_sharding()
        # XLA reads a tiling of one tile otherwise than it prints it.
        if prod(hlo.tile_dims) == 1:
            continue
        assert tiles_of_sharding(sharding, hlo.tile_dims) == tiles_of(hlo)
        back = HloSharding.from_sharding(sharding)
        assert back.to_sharding(sharding.mesh, rank=sharding.rank) == sharding, hlo
        if back.kind == "tiled":
            assert tiles_of(back) == tiles_of(hlo)


def random_sharding(choose, mesh):
    names = [axis.name for axis in mesh.axes]
    choose.shuffle(names)
    dims = [[] for _ in range(choose.randint(1, 3))]
    unreduced = []
    for name in names:
        where = choose.randrange(len(dims) + 2)
        if where < len(dims):
            dims[where].append(name)
        elif where == len(dims):
            unreduced.append(name)
    unreduced.sort(key=mesh.axis_names.index)
    return TensorSharding(mesh, dims, unreduced=unreduced)


def jax_mesh(mesh):
    from jax.sharding import AbstractMesh, AxisType

    sizes = tuple(mesh.shape.values())
    return AbstractMesh(sizes, mesh.axis_names, axis_types=(AxisType.Explicit,) * len(sizes))


@pytest.mark.parametrize("seed", range(10))
def test_named_axes_become_the_tiling_that_jax_makes(seed):
    from jax._src.sharding_impls import parse_flatten_op_sharding
    from jax.sharding import NamedSharding, PartitionSpec

    choose = random.Random(seed)
    for _ in range(30):
        sizes = [choose.choice([1, 2, 2, 3, 4]) for _ in range(choose.randint(1, 4))]
        mesh = Mesh([(f"a{at}", size) for at, size in enumerate(sizes)])
        sharding = random_sharding(choose, mesh)
        spec = PartitionSpec(
            *(tuple(axis.name for axis in dim.axes) or None for dim in sharding.dims),
            unreduced={axis.name for axis in sharding.unreduced},
        )
        named = NamedSharding(jax_mesh(mesh), spec)
        ours = HloSharding.from_sharding(sharding)
        expected = named._to_xla_hlo_sharding(sharding.rank)
        assert str(ours) == theirs(str(expected)), sharding
        back = ours.to_sharding(mesh, rank=sharding.rank)
        assert back.is_equivalent(sharding)
        if not sharding.unreduced and ours.kind == "tiled" and 1 not in sizes:
            (spec,) = parse_flatten_op_sharding(expected, jax_mesh(mesh))
            axes = [tuple(axis.name for axis in dim.axes) for dim in back.dims]
            assert axes[: len(spec)] == [_tuple(part) for part in spec]
            assert not any(axes[len(spec) :])


def _tuple(part):
    return part if isinstance(part, tuple) else () if part is None else (part,)


def test_meshes_with_device_ids_list_the_devices():
    mesh = Mesh({"x": 2, "y": 2}, device_ids=[0, 3, 1, 2])
    hlo = HloSharding.from_sharding(TensorSharding(mesh, ["x", "y"]))
    assert str(hlo) == "{devices=[2,2]0,3,1,2}"
    assert hlo.to_sharding().is_equivalent(TensorSharding(mesh, ["x", "y"]))
    replicated = HloSharding.from_sharding(TensorSharding(mesh, ["y"]))
    assert str(replicated) == "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}"
    assert replicated.to_sharding(mesh) == TensorSharding(mesh, ["y"])


def test_axes_are_split_where_a_tiling_needs_it():
    mesh = Mesh({"x": 2, "y": 4})
    sharding = HloSharding.parse("{devices=[4,2]<=[8]}").to_sharding(mesh)
    first, second = AxisRef("y", 1, 2), AxisRef("y", 2, 2)
    assert sharding == TensorSharding(mesh, [["x", first], [second]])


@pytest.mark.parametrize(
    ("text", "mesh", "words"),
    [
        ("{devices=[3,2]<=[6]}", Mesh({"x": 2, "y": 3}), "no order of the axes"),
        ("{devices=[2,2]0,1,3,2}", Mesh({"x": 2, "y": 2}), "no order of the axes"),
        ("{devices=[8]<=[8]}", Mesh({"x": 4}), "the mesh has 4"),
        ("{devices=[2]5,6}", None, "no mesh has these devices"),
        ("{manual}", None, "no layout"),
        ("{unreduced}", None, "how many devices"),
        ("{{replicated}}", None, "several"),
        ("{maximal device=1}", Mesh({"x": 4}), "one device"),
    ],
)
def test_what_axes_cannot_say_is_an_error(text, mesh, words):
    with pytest.raises(ShardcoreError, match=words) as caught:
        HloSharding.parse(text).to_sharding(mesh)
    assert text in str(caught.value)


def test_other_forms_convert():
    mesh = Mesh({"x": 2, "y": 4})
    assert HloSharding.parse("{replicated}").to_sharding(mesh, rank=2).is_fully_closed
    assert not HloSharding.parse("{unknown}").to_sharding(mesh, rank=2).is_fully_closed
    unreduced = HloSharding.parse("{unreduced}").to_sharding(mesh, rank=1)
    assert [axis.name for axis in unreduced.unreduced] == ["x", "y"]
    assert str(HloSharding.from_sharding(unreduced)) == "{unreduced}"
    maximal = HloSharding.parse("{maximal device=3}").to_sharding(rank=1)
    assert maximal.mesh == Mesh.maximal(3)
    assert str(HloSharding.from_sharding(maximal)) == "{maximal device=3}"
    named = HloSharding.parse("{mesh['x'=2,'y'=4], [{'x'}, {'y', ?}]}").to_sharding()
    assert str(HloSharding.from_sharding(named)) == "{devices=[2,4]<=[8]}"
