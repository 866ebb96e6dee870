"""Names that denote one value: of regions beside each other, and of other functions."""

import copy
import pickle

import pytest
from shardcore import LocationError, Mesh, Module, Session, TensorSharding, VerificationError

LOOP = """stablehlo.while(%iterArg = {}, %iterArg_0 = %c) : tensor<8x4xf32>, tensor<i32>
  cond {{
    %8 = stablehlo.compare LT, %iterArg_0, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %8 : tensor<i1>
  }} do {{
    %8 = stablehlo.tanh %iterArg : tensor<8x4xf32>
    %9 = stablehlo.add %iterArg_0, %one : tensor<i32>
    stablehlo.return %8, %9 : tensor<8x4xf32>, tensor<i32>
  }}"""
CASE = """"stablehlo.case"(%one) ({{
    %8 = stablehlo.sine {0} : tensor<8x4xf32>
    {1}
  }}, {{
    %8 = stablehlo.cosine {0} : tensor<8x4xf32>
    {1}
  }}) : (tensor<i32>) -> {2}"""
FIRST, SECOND = LOOP.format("%x"), LOOP.format("%0#0")
TWO = CASE.format("%1#0", "stablehlo.return %8 : tensor<8x4xf32>", "tensor<8x4xf32>")
NONE = CASE.format("%2", "stablehlo.return", "()")
TEXT = f"""sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {{
  %c = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = {FIRST}
  %1:2 = {SECOND}
  %2 = {TWO}
  {NONE}
  {NONE}
  %3 = call @helper(%2) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}}
func.func private @helper(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {{
  %0 = stablehlo.tanh %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}}"""
SPECS = ["P('a')", "P('b')", "P('a', 'b')", "P(None, 'a')"]


@pytest.fixture
def session() -> Session:
    return Module.parse(TEXT).session()


def assert_as_new(session: Session) -> None:
    """The results of ``session`` are those of a new run on its module."""
    module = session.module
    assert str(module) == str(Module.parse(str(module)))
    assert str(session.result.module) == str(module.propagate().module)
    assert session.cost().record() == module.propagate().cost().record()


def test_each_value_has_a_name_of_its_own(session: Session) -> None:
    module = session.module
    values = module.values()
    names = [value.qualified_name for value in values]
    assert len(set(names)) == len(names)
    for value in values:
        assert module[value.qualified_name] == value
        assert session.targets(value.qualified_name) == [value.qualified_name]
    loop = ["%0#0", "%0#1", "%0 cond %iterArg", "%0 cond %iterArg_0", "%0 %iterArg"]
    loop += ["%0 %iterArg_0", "%0 cond %8", "%0 do %8", "%0 %9"]
    assert names[4:13] == loop
    assert names[-9:-2] == [
        "%2 region 0 %8",
        "%2 region 1 %8",
        "stablehlo.case region 0 %8",
        "stablehlo.case region 1 %8",
        "stablehlo.case#1 region 0 %8",
        "stablehlo.case#1 region 1 %8",
        "%3",
    ]
    assert module["%8"] == module["%0 cond %8"]


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("%iterArg", '"%0 %iterArg", "%1 %iterArg"'),
        ("%0 %8", '"%0 cond %8", "%0 do %8"'),
        ("%9", '"%0 %9", "%1 %9"'),
        ("stablehlo.case %8", '"stablehlo.case region 0 %8", "stablehlo.case region 1 %8"'),
    ],
)
def test_what_denotes_several_is_refused(session: Session, target: str, hint: str) -> None:
    with pytest.raises(LocationError) as caught:
        session.set(target, "P('a')")
    assert caught.value.diagnostics[0].message == f"{target} denotes several values"
    assert caught.value.hint == f"say which by the op that it is in: {hint}"
    assert not session.annotations


def test_why_says_which_values_a_name_denotes(session: Session) -> None:
    session.set("%x", "P('a')")
    result = session.result
    assert result.why("%1 do %8").record()["value"] == "%1 do %8"
    with pytest.raises(LocationError, match="denotes several values"):
        result.why("%9")
    chain = result.why("%1 do %8").record()["axes"][0]["chain"]
    assert chain[-1]["value"] == "%1 do %8"
    for step in chain:
        assert session.targets(step["value"]) == [step["value"]]


@pytest.mark.parametrize(
    "target",
    [
        "%0 do",
        "%0 do %77",
        "%2 region 2 %8",
        "%2 region %8",
        "%2 region -1 %8",
        "%x %8",
        "%0 do do %8",
    ],
)
def test_a_way_to_nothing_is_unknown(session: Session, target: str) -> None:
    with pytest.raises(LocationError, match="no value"):
        session.set(target, "P('a')")


def test_loops_are_annotated_each_on_its_own(session: Session) -> None:
    targets = ["%0 %iterArg", "%1 %iterArg", "%0 do %8", "%1 do %8", "%2 region 0 %8"]
    targets += ["%2 region 1 %8", "stablehlo.case region 1 %8", "stablehlo.case#1 region 1 %8"]
    for target, spec in zip(targets, SPECS * 2, strict=True):
        session.set(target, spec)
        assert_as_new(session)
    assert list(session.annotations) == targets
    twins = (pickle.loads(pickle.dumps(session)), copy.copy(session))
    for twin in twins:
        assert twin.annotations == session.annotations
        assert str(twin.result.module) == str(session.result.module)
        twin.undo()
        assert list(twin.annotations) == targets[:-1]
    row = next(session.evaluate([{"%1 do %8, %0 do %8": "P()"}], "tpu-v5e"))
    assert row.error is None
    # What the text shares with the condition is constrained in the body, where it has an effect.
    before = str(session.module).split("do {")[1].lstrip().splitlines()[0]
    assert "sdy.sharding_constraint %iterArg <@mesh" in before


def test_arguments_and_results_of_other_functions_are_targets(session: Session) -> None:
    session.set("@helper result 0", "P('a')")
    session.set("@helper %x", "P(None, 'b')")
    assert list(session.annotations) == ["@helper result 0", "@helper %x"]
    assert "sharding_constraint" not in str(session.module)
    assert_as_new(session)
    assert str(session.result["%3"].sharding) == '<@mesh, [{"a"}, {"b"}]>'
    loaded = Session(session.module)
    assert list(loaded.annotations) == ["@helper %x", "@helper result 0"]
    loaded.unset("@helper result 0")
    assert list(loaded.annotations) == ["@helper %x"]
    assert_as_new(loaded)
    loaded.set({"@helper %x, @helper result 0": "P('b')", "%x": "P('a')"})
    assert_as_new(loaded)
    for target in ("@helper result 1", "@helper result", "@helper result -1", "@other result 0"):
        with pytest.raises(LocationError):
            session.set(target, "P()")
    assert session.targets("@main result 0") == ["result 0"]


def test_edits_of_arguments_replay_runs_with_annotated_helpers(session: Session) -> None:
    session.set("@helper result 0", "P('a')")
    for spec in SPECS:
        session.set("%x", spec)
        assert_as_new(session)
    session.undo()
    session.unset("@helper result 0")
    assert_as_new(session)


def test_a_sharding_without_a_mesh_is_over_a_mesh_without_a_name() -> None:
    module = Module.parse(
        """func.func @main(%x: tensor<8x4xf32>
        {sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{"a"}, {}]>}) -> tensor<8x4xf32> {
      %0 = stablehlo.tanh %x : tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }"""
    )
    session = module.session()
    for sharding in ("P(None, 'a')", '[{}, {"a"}]'):
        session.reset()
        session.set("%x", sharding)
        assert session.annotations["%x"] == TensorSharding(Mesh({"a": 2}), [[], ["a"]])
        assert str(session.result.module) == str(session.module.propagate().module)
    for sharding in ("P('b')", '[{"b"}, {}]'):
        with pytest.raises(VerificationError) as caught:
            session.set("%x", sharding)
        assert 'the program\'s first one, <["a"=2]>; another one is written' in caught.value.hint
    session.set("%x", '<mesh<["b"=4]>, [{"b"}, {}]>')
    assert session.result["%x"].sharding.mesh == Mesh({"b": 4})


def test_meshes_without_axes_do_not_count() -> None:
    """JAX writes such a mesh for random keys."""
    text = """sdy.mesh @empty_mesh = <[]>
    {}
    func.func @main(%x: tensor<8x4xf32>, %key: tensor<2xui32>)
        -> (tensor<8x4xf32>, tensor<2xui32>) {{
      %0 = sdy.sharding_constraint %key <@empty_mesh, [{{}}]> : tensor<2xui32>
      %1 = stablehlo.tanh %x : tensor<8x4xf32>
      return %1, %0 : tensor<8x4xf32>, tensor<2xui32>
    }}"""
    bare = Module.parse(text.format(""))
    with pytest.raises(VerificationError) as caught:
        bare.session().set("%x", "P('a')")
    assert "module.session(mesh=" in caught.value.hint
    for module in (bare, Module.parse(text.format('sdy.mesh @mesh = <["b"=2]>'))):
        session = module.session(mesh={"a": 4})
        assert session.module.meshes == {"empty_mesh": Mesh(), "mesh": Mesh({"a": 4})}
        session.set("%x", "P('a')")
        assert session.annotations["%x"].mesh_name == "mesh"
        assert_as_new(session)
    empty = Module.parse("sdy.mesh @mesh = <[]>").session(mesh={"a": 4})
    assert empty.module.meshes == {"mesh": Mesh({"a": 4})}
