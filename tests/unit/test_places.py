"""Places in the user's program, in modules that were parsed."""

from __future__ import annotations

import pytest
from shardcore import LocationError, Module
from shardcore._core import is_installed

PROGRAM = """
#add = loc("src/model.py":3:14 to :20)
#call = loc("src/train.py":9:1 to 12:5)
#stack = loc("step"(callsite("name"(#add) at #call)))
#again = loc("again")
func.func @main(%x: tensor<4xf32> loc("weights"), %y: tensor<4xf32> loc("src/train.py":7:2))
    -> (tensor<4xf32>, tensor<4xf32> {jax.result_info = "result['y']"}) {
  %0 = stablehlo.add %x, %y : tensor<4xf32> loc(#stack)
  %1 = stablehlo.negate %0 : tensor<4xf32> loc("src/other/model.py":3:1)
  %2 = stablehlo.negate %1 : tensor<4xf32> loc(fused<"why">["scope", #call, #add])
  %3 = stablehlo.negate %2 : tensor<4xf32> loc(#again)
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return Module.parse(PROGRAM)


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("model.py:3", ["%0", "%1", "%2"]),
        ("src/model.py:3", ["%0", "%2"]),
        ("./src/model.py:3:14", ["%0", "%2"]),
        ("train.py:9", ["%0", "%2"]),
        ("train.py:11", ["%0", "%2"]),
        ("train.py:7", ["%y"]),
    ],
)
def test_values_of_a_line(module: Module, place: str, names: list[str]) -> None:
    assert [value.name for value in module.at(place)] == names
    assert [value.name for value in module.propagate().at(place)] == names


@pytest.mark.parametrize(
    ("place", "hint"),
    [
        ("model.py:4", "3"),
        ("train.py:13", "7, 9"),
        ("odel.py:3", 'did you mean "model.py"?'),
        ("nothing/at/all.py:3", '"model.py", "train.py"'),
        ("model.py", "write the file and the line"),
        (":3", "write the file and the line"),
        ("model.py:-3", "write the file and the line"),
    ],
)
def test_what_is_not_there(module: Module, place: str, hint: str) -> None:
    with pytest.raises(LocationError) as caught:
        module.at(place)
    assert caught.value.code == "unknown-location"
    assert hint in str(caught.value.hint)


def test_a_program_without_locations_says_how_to_get_them() -> None:
    with pytest.raises(LocationError, match="debug_info=True"):
        Module.parse("func.func @f() { return }").at("model.py:3")


def test_tracebacks_are_innermost_first(module: Module) -> None:
    assert module["%0"].traceback == ("src/model.py:3:14", "src/train.py:9:1")
    assert module["%2"].traceback == ("src/train.py:9:1", "src/model.py:3:14")
    assert module["%3"].traceback == ()
    assert module["%x"].traceback == ()


def test_ports_are_what_goes_in_and_out(module: Module) -> None:
    x, y = module.arguments()
    assert (x.index, x.name, x.label, x.shape, x.dtype) == (0, "%x", "weights", (4,), "f32")
    assert (y.index, y.name, y.type, y.bytes) == (1, "%y", "tensor<4xf32>", 16)
    first, second = module.results()
    assert (first.name, first.label, first.attributes) == ("result 0", None, {})
    assert second.label == "result['y']"
    assert second.attributes == {"jax.result_info": "\"result['y']\""}
    assert second.sharding is None
    assert second.local_shape == (4,)
    assert second.bytes_per_device == 16
    assert repr(second) == "<shardcore.Port result 1 result['y']: tensor<4xf32> no sharding>"


def test_ports_of_a_program_without_a_body() -> None:
    module = Module.parse("func.func private @f(tensor<4xf32>) -> tensor<4xf32>")
    assert module.arguments() == []
    assert [port.shape for port in module.results()] == [(4,)]
    assert Module.parse("").results() == []


def test_meshes_by_symbol() -> None:
    module = Module.parse('sdy.mesh @a = <["x"=2]>\nsdy.mesh @b = <["y"=4, "z"=2]>')
    assert {name: mesh.shape for name, mesh in module.meshes.items()} == {
        "a": {"x": 2},
        "b": {"y": 4, "z": 2},
    }


HELPERS = """
func.func @main(%a: tensor<8xf32> loc("a")) -> tensor<8xf32> {
  %0 = call @norm(%a) : (tensor<8xf32>) -> tensor<8xf32>
      loc("norm"(callsite("m.py":3:1 at "m.py":9:1)))
  %1 = call @norm(%0) : (tensor<8xf32>) -> tensor<8xf32> loc("m.py":4:1)
  %2 = call @unplaced(%1) : (tensor<8xf32>) -> tensor<8xf32> loc("m.py":5:1)
  return %2 : tensor<8xf32>
}
func.func private @norm(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<8xf32> loc("mul")
  %1 = stablehlo.sqrt %0 : tensor<8xf32> loc("helper.py":7:2)
  return %1 : tensor<8xf32>
}
func.func private @unplaced(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @inner(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("inner")
  return %0 : tensor<8xf32>
}
func.func private @inner(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("tanh")
  return %0 : tensor<8xf32>
}
func.func private @circle(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @circle(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def test_what_a_helper_makes_comes_from_the_line_that_calls_it() -> None:
    module = Module.parse(HELPERS)
    multiply, sqrt = module["norm", "%0"], module["norm", "%1"]
    assert multiply.location == "m.py:3:1"
    assert multiply.traceback == ("m.py:3:1", "m.py:9:1")
    assert module["norm", "%x"].location == "m.py:3:1"
    # What has a place keeps it.
    assert (sqrt.location, sqrt.traceback) == ("helper.py:7:2", ("helper.py:7:2",))
    assert module["inner", "%0"].location == "m.py:5:1"
    assert module["circle", "%0"].location is None
    assert module.ops()[-1].location is None


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("m.py:3", {"main %0", "norm %x", "norm %0"}),
        ("m.py:9", {"main %0", "norm %x", "norm %0"}),
        ("m.py:4", {"main %1", "norm %x", "norm %0"}),
        ("m.py:5", {"main %2", "unplaced %x", "unplaced %0", "inner %x", "inner %0"}),
        ("helper.py:7", {"norm %1"}),
    ],
)
def test_a_line_made_what_the_helpers_that_it_calls_make(place: str, found: set[str]) -> None:
    values = Module.parse(HELPERS).at(place)
    assert {f"{value.function} {value.name}" for value in values} == found


def test_costs_count_for_the_line_of_each_call() -> None:
    rows = Module.parse(HELPERS).propagate().cost().ops
    places = {(row.name, row.location) for row in rows}
    assert ("stablehlo.multiply", "m.py:3:1") in places
    assert ("stablehlo.multiply", "m.py:4:1") in places
    assert ("stablehlo.tanh", "m.py:5:1") in places


LIBRARY = "/venv/lib/python3.11/site-packages/flax/linear.py"
"""A layer of a package, called by a decorator of Python's library, called by the user."""
LAYERS = f"""
#dot = loc("{LIBRARY}":287:8)
#inner = loc("/usr/lib/python3.11/contextlib.py":81:16)
#model = loc("model.py":9:4)
#step = loc("train.py":30:2)
#stack = loc(callsite(#dot at callsite(#inner at callsite(#model at #step))))
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(f)/tanh"(#stack))
  %1 = stablehlo.tanh %0 : tensor<8xf32> loc(#dot)
  %2 = call @layer(%1) : (tensor<8xf32>) -> tensor<8xf32> loc(#model)
  return %2 : tensor<8xf32>
}}
func.func private @layer(%x: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = stablehlo.tanh %x : tensor<8xf32> loc(#dot)
  return %0 : tensor<8xf32>
}}
"""


def test_a_location_is_the_line_of_the_user_and_not_of_a_package() -> None:
    module = Module.parse(LAYERS)
    assert module["%0"].location == "model.py:9:4"
    assert module["%0"].traceback == (
        f"{LIBRARY}:287:8",
        "/usr/lib/python3.11/contextlib.py:81:16",
        "model.py:9:4",
        "train.py:30:2",
    )
    assert [op.location for op in module.ops() if op.name == "stablehlo.tanh"] == [
        "model.py:9:4",
        f"{LIBRARY}:287:8",
        "model.py:9:4",
    ]
    # Where there is no other line, it is the package's; of a helper, that of the call.
    assert module["%1"].location == f"{LIBRARY}:287:8"
    assert module["layer", "%0"].location == "model.py:9:4"
    # The lines of packages are still found.
    assert [value.name for value in module.at("flax/linear.py:287")] == ["%0", "%1", "%0"]


def test_costs_are_at_lines_of_the_user() -> None:
    """A call inlines what its function has at lines of packages at its own line."""
    rows = Module.parse(LAYERS).propagate().cost().ops
    counts = {row.location: row.count for row in rows}
    assert counts == {f"{LIBRARY}:287:8": 1, "model.py:9:4": 2}


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/v/lib/python3.11/site-packages/flax/linear.py:3:4", True),
        ("/usr/lib/python3/dist-packages/flax/linear.py", True),
        ("/usr/lib/python3.13t/functools.py:1:0", True),
        ("C:\\v\\Lib\\site-packages\\net.py:3:4", True),
        ("<frozen runpy>:88:0", True),
        ("/home/me/lib/model.py:3:4", False),
        ("/home/me/lib/python_models/model.py:3:4", False),
        ("site-packages:3:4", False),
        ("model.py:3:4", False),
    ],
)
def test_what_is_installed(place: str, expected: bool) -> None:
    assert is_installed(place) is expected
