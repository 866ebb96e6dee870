"""What cannot be simulated is refused by name, at its line; every op is known or refused."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from jaxlib.mlir.dialects import chlo, stablehlo
from shardcore import Module, SimulationError
from shardcore.simulate import PREPARERS, TARGETS, Simulator
from shardcore.simulate.mistakes import CODES

from tests.simulate.check import function

F = "tensor<4xf32>"


def one_op(line: str, *results: str) -> str:
    """A program of one op on ``%x``, whose results are called ``%0``, ``%1``, ..."""
    names = {str(at): kind for at, kind in enumerate(results)}
    return function([line], {"x": F}, names)


def refused(text: str, *arrays: Any, **options: Any) -> SimulationError:
    with pytest.raises(SimulationError) as caught:
        Module.parse(text, filename="model.mlir").simulate(*arrays, **options)
    assert caught.value.code in CODES
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    return caught.value


X = np.zeros(4, np.float32)


@pytest.mark.parametrize(
    ("line", "results", "said"),
    [
        (
            "%0 = stablehlo.custom_call @my_kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>",
            (F,),
            'the custom call of "my_kernel"',
        ),
        (
            "%0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) "
            ": (tensor<4xf32>) -> tensor<4xf32>",
            (F,),
            "callback",
        ),
        (
            "%0 = stablehlo.uniform_quantize %x "
            ": (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 1.0:0>>",
            ("tensor<4x!quant.uniform<i8:f32, 1.0:0>>",),
            "stablehlo.uniform_quantize",
        ),
        ('%0 = "my.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>', (F,), "my.op"),
        (
            "%0 = stablehlo.rng %a, %b, %s, distribution = UNIFORM "
            ": (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>",
            (F,),
            "stablehlo.rng",
        ),
        (
            "%0 = stablehlo.constant dense_resource<weights> : tensor<4xf32>",
            (F,),
            "elements",
        ),
        (
            '%t = stablehlo.create_token : !stablehlo.token\n  %0 = "stablehlo.outfeed"(%x, %t) '
            '<{outfeed_config = ""}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token',
            (),
            "stablehlo.outfeed",
        ),
    ],
)
def test_ops_that_cannot_be_simulated(line: str, results: tuple[str, ...], said: str) -> None:
    if "stablehlo.rng" in line:
        line = (
            "%a = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "  %b = stablehlo.constant dense<1.0> : tensor<f32>\n"
            f"  %s = stablehlo.constant dense<4> : tensor<1xi64>\n  {line}"
        )
    text = one_op(line, *results)
    if not results:
        text = text.replace("return  : ", "return").replace("() ->", "() ->")
    error = refused(text, X)
    assert error.code == "unsupported-op"
    assert said in error.message
    assert error.line == 2 + line.count("\n")
    assert "model.mlir" in str(error)


def test_dialects_are_told_of_ops_of_other_dialects_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(one_op(f'%0 = "my.op"(%x) : ({F}) -> {F}', F), X)
    assert error.hint == "ops of StableHLO, CHLO, func and sdy can be simulated"
    monkeypatch.delitem(PREPARERS, "stablehlo.add")
    error = refused(one_op(f"%0 = stablehlo.add %x, %x : {F}", F), X)
    assert error.message == "stablehlo.add cannot be simulated"
    assert error.hint is None


def test_an_op_that_is_refused_where_it_is_not_run_still_is() -> None:
    text = """
    func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.if"(%p) ({
        %1 = "my.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
        stablehlo.return %1 : tensor<4xf32>
      }, {
        stablehlo.return %x : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    with pytest.raises(SimulationError, match=r"my\.op cannot be simulated"):
        Simulator(Module.parse(text))


def test_arrays_of_more_elements_than_numpy_has_are_refused() -> None:
    kind = f"tensor<{2**62}xi32>"
    text = f"""
    func.func @main() -> {kind} {{
      %0 = stablehlo.iota dim = 0 : {kind}
      return %0 : {kind}
    }}"""
    with pytest.raises(SimulationError, match=r"stablehlo\.iota cannot be computed") as caught:
        Simulator(Module.parse(text))
    assert (caught.value.code, caught.value.line) == ("invalid-op", 3)


def test_regions_that_nest_too_deeply_are_refused() -> None:
    depth, kind = 1_500, "tensor<4xf32>"
    opened = "".join(f'%{n} = "my.op"(%x) ({{\n' for n in range(depth))
    closed = "".join(f'"my.end"() : () -> ()\n}}) : ({kind}) -> {kind}\n' for _ in range(depth))
    text = f"func.func @main(%x: {kind}) -> {kind} {{\n{opened}{closed}return %0 : {kind}\n}}"
    with pytest.raises(SimulationError, match="regions nest too deeply"):
        Simulator(Module.parse(text))


def test_values_of_quantized_types_are_refused_by_name() -> None:
    kind = "tensor<4x!quant.uniform<i8:f32, 1.0:0>>"
    text = function([f"%0 = stablehlo.add %x, %x : {kind}"], {"x": kind}, {"0": kind})
    error = refused(text, X)
    assert "!quant.uniform<i8:f32, 1.0:0>" in error.message
    assert error.hint
    assert error.line == 2


IDENTITY = one_op("%0 = stablehlo.add %x, %x : tensor<4xf32>", F)


@pytest.mark.parametrize(
    ("arrays", "options", "said"),
    [
        ((), {}, "takes 1 arguments, not 0"),
        ((X, X), {}, "takes 1 arguments, not 2"),
        ((X[:3],), {}, r"argument 0 has shape \(3,\), not \(4,\)"),
        ((np.zeros((3, 4), np.float32),), {"devices": 2}, r"not \(4,\) or \(2, 4\)"),
        ((X.astype(np.int32),), {}, "element type int32, not float32"),
        ((X + 1j,), {}, "element type complex"),
        ((X,), {"devices": 3, "replicas": 2}, "3 devices are not 2 replicas"),
    ],
)
def test_arguments_that_do_not_fit(arrays: Any, options: dict[str, int], said: str) -> None:
    with pytest.raises(SimulationError, match=said) as caught:
        Module.parse(IDENTITY).simulate(*arrays, **options)
    assert caught.value.code == "invalid-argument"
    assert caught.value.line == 1


def test_numbers_of_python_are_taken_where_the_type_holds_them() -> None:
    module = Module.parse(IDENTITY)
    assert module.simulate([1, 2, 3, 4])[0].tolist() == [2, 4, 6, 8]
    assert module.simulate([0.5] * 4)[0].dtype == np.float32
    text = IDENTITY.replace("f32", "i8")
    assert Module.parse(text).simulate([1, 2, 3, 100])[0].tolist() == [2, 4, 6, -56]
    assert refused(text, [1, 2, 3, 200]).code == "invalid-argument"


@pytest.mark.parametrize("equation", ["i->ii", "i->", "i"])
def test_results_that_do_not_have_the_type_that_is_written(equation: str) -> None:
    line = f'%0 = "stablehlo.unary_einsum"(%x) <{{einsum_config = "{equation}"}}> : ({F}) -> {F}'
    error = refused(one_op(line, F), X)
    assert (error.code, error.line) == ("invalid-op", 2)


def test_slices_at_constants_that_contradict_their_type() -> None:
    bounds = "tensor<1xi64>"
    lines = [
        f"%{name} = stablehlo.constant dense<{at}> : {bounds}"
        for name, at in zip("slk", (0, 3, 1), strict=True)
    ]
    lines.append(
        f'%0 = "stablehlo.real_dynamic_slice"(%x, %s, %l, %k) : '
        f"({F}, {bounds}, {bounds}, {bounds}) -> {F}"
    )
    error = refused(function(lines, {"x": F}, {"0": F}), X)
    assert "its result has the shape (3,), not (4,)" in error.message


def test_functions_that_are_not_there() -> None:
    module = Module.parse(IDENTITY)
    with pytest.raises(SimulationError, match="no function @other") as caught:
        module.simulate(X, function="other")
    assert caught.value.hint == "there is @main"
    with pytest.raises(SimulationError, match="no function"):
        Module.parse("").simulate()


def test_recursion_ends() -> None:
    text = """
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = func.call @main(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    assert "too deeply" in refused(text, np.float32(0)).message


def test_results_are_the_users_own() -> None:
    text = function([], {"x": F}, {"x": F})
    given = np.zeros(4, np.float32)
    [found] = Module.parse(text).simulate(given)
    found += 1
    assert (given == 0).all()
    constant = "%0 = stablehlo.constant dense<1.0> : tensor<4xf32>"
    simulator = Simulator(Module.parse(function([constant], {}, {"0": F})))
    simulator()[0][:] = 5
    assert (simulator()[0] == 1).all()


REFUSED_BY_TYPE = {"stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"}
NOT_LOWERED = {"chlo._asin_acos_kernel"}


def test_every_op_of_the_dialects_is_known() -> None:
    for dialect in (stablehlo, chlo):
        name = dialect.__name__.split(".")[-1]
        generated = import_module(f"jaxlib.mlir.dialects._{name}_ops_gen")
        ops = {
            view.OPERATION_NAME
            for view in vars(generated).values()
            if hasattr(view, "OPERATION_NAME")
        }
        returns = {f"{name}.return"}
        assert ops - set(PREPARERS) - REFUSED_BY_TYPE - NOT_LOWERED - returns == set()


def test_targets_can_be_added() -> None:
    line = "%0 = stablehlo.custom_call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>"
    TARGETS["twice"] = lambda site: lambda run, x: 2 * x
    try:
        assert Module.parse(one_op(line, F)).simulate(X + 3)[0].tolist() == [6] * 4
    finally:
        del TARGETS["twice"]
    assert refused(one_op(line, F), X).code == "unsupported-op"
