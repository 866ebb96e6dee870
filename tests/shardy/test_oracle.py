"""The oracle and the reference agree on random meshes, shardings, rules, ops and programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from jax._src.op_shardings import op_sharding_to_numpy_indices
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from jaxlib.mlir import ir

from tests.oracle import slices, text, verify
from tests.oracle.axis import AxisRef
from tests.oracle.graph import Op, Program, Value
from tests.oracle.mesh import Mesh
from tests.oracle.printing import to_mlir
from tests.oracle.sharding import DimSharding, TensorSharding
from tests.property import agreement
from tests.property.choices import Choices, chosen
from tests.property.passes import PASSES, SWEEPS, oracle_rows
from tests.property.strategies import (
    make_any_sharding,
    make_mesh,
    make_rule,
    make_shape,
    make_sharding,
)
from tests.shardy import reference
from tests.shardy.annotations import after


def assert_agree(program: Program, passes: str) -> None:
    theirs = after(passes, to_mlir(program))
    assert oracle_rows(program, passes) == theirs


@pytest.mark.parametrize("case", sorted(agreement.CASES.keys() - agreement.THE_REFERENCE_DIES))
def test_random_programs(case: str) -> None:
    agreement.check_random_programs(case, assert_agree)


@pytest.mark.parametrize("num_factors", [3, 9, 18])
@pytest.mark.parametrize("passes", list(SWEEPS))
def test_order_of_factors_shows(num_factors: int, passes: str) -> None:
    agreement.check_order_of_factors(num_factors, passes, assert_agree)


@pytest.mark.parametrize("passes", list(PASSES))
def test_order_of_uses_shows(passes: str) -> None:
    agreement.check_order_of_uses(passes, assert_agree)


def is_valid(sharding: TensorSharding, mesh: Mesh, shape: tuple[int, ...]) -> bool:
    argument = Value(shape)
    ops = [Op("func.return", [argument])]
    program = Program({"mesh": mesh}, [argument], ops, {argument: sharding}, [None])
    try:
        reference.canonical(to_mlir(program))
    except reference.RejectedError:
        return False
    return True


@given(chosen(lambda c: c))
def test_verification_of_shardings(c: Choices) -> None:
    mesh, shape = make_mesh(c), make_shape(c)
    good = make_sharding(c, mesh, len(shape), priorities=True, unreduced=True)
    assert verify.sharding_errors(good, mesh, shape) == []
    assert is_valid(good, mesh, shape)
    sharding = make_any_sharding(c, mesh, len(shape))
    errors = verify.sharding_errors(sharding, mesh, shape)
    assert is_valid(sharding, mesh, shape) == (not errors), errors


def printed(kind: str, attribute: object) -> str:
    """The reference's print of what the oracle prints."""
    with reference.context():
        return str(ir.Attribute.parse(f"#sdy.{kind}{attribute}")).removeprefix(f"#sdy.{kind}")


@given(chosen(lambda c: c))
def test_text(c: Choices) -> None:
    mesh, rank = make_mesh(c, device_orders=True), c.integer(0, 4)
    name = c.of(("mesh", mesh))
    sharding = make_sharding(c, mesh, rank, name, priorities=True, unreduced=True)
    rule = make_rule(c)
    assert printed("mesh", mesh) == str(mesh)
    assert printed("sharding", sharding) == str(sharding)
    assert printed("op_sharding_rule", rule) == str(rule)
    assert text.parse_mesh(str(mesh)) == mesh
    assert text.parse_sharding(f"#sdy.sharding{sharding}") == sharding
    assert text.parse_rule(str(rule)) == rule


@given(chosen(lambda c: c))
def test_device_slices_are_those_of_jax(c: Choices) -> None:
    mesh = make_mesh(c)
    names = c.permutation([name for name, _ in mesh.axes])
    cut = c.integer(0, len(names))
    dims = (tuple(names[:cut]), tuple(names[cut : c.integer(cut, len(names))]))
    sharding = TensorSharding("mesh", tuple(DimSharding(tuple(map(AxisRef, n))) for n in dims))
    shape = tuple(3 * dim.sharded_size(mesh) for dim in sharding.dims)

    axis_names, axis_sizes = zip(*mesh.axes, strict=True)
    theirs = NamedSharding(AbstractMesh(axis_sizes, axis_names), PartitionSpec(*dims))
    indices = op_sharding_to_numpy_indices(
        theirs._to_xla_hlo_sharding(len(shape)), shape, mesh.num_devices
    )
    expected = {
        device: tuple(part.indices(size)[:2] for part, size in zip(index, shape, strict=True))
        for device, index in enumerate(indices)
    }
    assert slices.device_slices(sharding, mesh, shape) == expected
