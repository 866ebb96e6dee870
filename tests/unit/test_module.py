"""Module, Value, PassManager and Result: what the user's verbs do and leave alone."""

from __future__ import annotations

import copy
import gc
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import shardcore
from shardcore import Module, PassManager, ShardcoreError, TensorSharding

PROPAGATE = "builtin.module(sdy-propagation-pipeline)"
MLP = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<64x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>},
    %w: tensor<512x2048xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"model"}]>})
    -> tensor<64x2048xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x512xbf16>, tensor<512x2048xbf16>) -> tensor<64x2048xbf16> loc("mlp.py":7:3)
  %1:2 = stablehlo.optimization_barrier %0, %0 : tensor<64x2048xbf16>, tensor<64x2048xbf16>
  %2 = stablehlo.tanh %1#1 : tensor<64x2048xbf16>
  return %2 : tensor<64x2048xbf16>
}
"""


WITHOUT_RULE = """\
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @unknown(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def mlp() -> Module:
    return Module.parse(MLP)


def sharding(module: Module, key: str | tuple[str, str]) -> str:
    return str(module[key].sharding)


def test_text_and_bytes_and_files_are_the_same_program(tmp_path: Path) -> None:
    path = tmp_path / "mlp.mlir"
    path.write_text(MLP)
    assert str(mlp()) == str(Module.parse(MLP.encode())) == str(Module.from_file(path))
    assert str(Module.from_file(str(path))) == str(Module.parse(str(mlp())))


def test_bad_sources_of_text(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Module.from_file(tmp_path / "missing.mlir")
    with pytest.raises(IsADirectoryError):
        Module.from_file(tmp_path)
    with pytest.raises(TypeError, match="str or bytes"):
        Module.parse(3)  # type: ignore[arg-type]
    with pytest.raises(ShardcoreError, match="byte 0xFF is not UTF-8"):
        Module.parse(b"func.func \xff")


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text(MLP.replace('{"data"}', '{"dta"}'))
    with pytest.raises(ShardcoreError) as caught:
        Module.from_file(path)
    assert f"--> {path}:2:" in str(caught.value)
    assert "\n  3 | " in str(caught.value)
    with pytest.raises(ShardcoreError, match=r"--> here:1:1"):
        Module.parse("}", filename="here")


def test_every_value_is_listed_in_program_order() -> None:
    values = mlp().values()
    assert [value.name for value in values] == ["%x", "%w", "%0", "%1#0", "%1#1", "%2"]
    assert {value.function for value in values} == {"main"}
    assert [value.op for value in values][:3] == [None, None, "stablehlo.dot_general"]


def test_a_value_knows_what_it_is() -> None:
    value = mlp()["%w"]
    assert (value.shape, value.dtype, value.type) == ((512, 2048), "bf16", "tensor<512x2048xbf16>")
    assert str(value.sharding) == '<@mesh, [{?}, {"model"}]>'
    assert isinstance(value.sharding, TensorSharding)
    assert value.local_shape == (512, 512)
    assert (value.bytes, value.bytes_per_device) == (512 * 2048 * 2, 512 * 512 * 2)
    assert value.location is None
    assert mlp()["%0"].location == "mlp.py:7:3"
    assert repr(value) == '<shardcore.Value %w: tensor<512x2048xbf16> <@mesh, [{?}, {"model"}]>>'


def test_a_value_without_sharding_is_whole_on_each_device() -> None:
    value = mlp()["%0"]
    assert value.sharding is None
    assert value.local_shape == value.shape
    assert value.bytes_per_device == value.bytes


def test_values_that_are_no_tensors() -> None:
    text = "func.func @f(%t: !stablehlo.token, %d: tensor<?x2xi1>) {\n  return\n}"
    token, dynamic = Module.parse(text).values()
    assert (token.shape, token.dtype, token.bytes, token.local_shape) == (None, None, None, None)
    assert token.type == "!stablehlo.token"
    assert (dynamic.shape, dynamic.bytes) == ((None, 2), None)


def test_values_by_name() -> None:
    helper = "func.func private @helper(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
    module = Module.parse(helper + "  return %a : tensor<2xf32>\n}\n" + MLP)
    assert module["%1#1"].name == module["1#1"].name == "%1#1"
    assert module["@helper", "%a"].function == module["helper", "a"].function == "helper"
    with pytest.raises(KeyError, match="no value %9 in @main"):
        module["%9"]
    with pytest.raises(KeyError, match="no function @other"):
        module["@other", "%a"]
    with pytest.raises(KeyError, match="no function"):
        Module.parse("")["%0"]
    with pytest.raises(TypeError):
        module[3]  # type: ignore[index]


PATHS = """sdy.mesh @mesh = <["x"=2]>
func.func @main(
    %arg0: tensor<8x4xf32> loc("params['w']"), %arg1: tensor<8x4xf32> loc("params['layers'][0].b"))
    -> (tensor<8x4xf32> {jax.result_info = "result['y']"}, tensor<8x4xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x4xf32>
  %1 = call @helper(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
func.func private @helper(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.negate %a : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}"""


def test_values_by_path() -> None:
    module = Module.parse(PATHS)
    result = module.propagate()
    for path, name in (
        ("params['w']", "%arg0"),
        ('params["w"]', "%arg0"),
        ("params/layers/0/b", "%arg1"),
        ("result['y']", "%0"),
        ("result 1", "%1"),
        ("@main %0", "%0"),
    ):
        assert module[path].name == result[path].name == name
    assert module["@helper %0"].qualified_name == "@helper %0"
    assert module.factor_table("result['y']").op == "stablehlo.add"
    assert module.rule("result['y']") == module.rule("%0")
    with pytest.raises(KeyError, match=r"did you mean .params.*w"):
        module["params['v']"]
    with pytest.raises(KeyError, match=r"did you mean .params.*w"):
        module["w"]
    with pytest.raises(KeyError, match="no function @other"):
        module["@other %0"]
    with pytest.raises(KeyError, match="an argument: no op defines it; ops that use it define %0"):
        module.factor_table("params['w']")


def test_a_tensor_that_is_several_operands_has_a_row_for_each() -> None:
    text = """sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
        -> tensor<8x8xf32> {
      %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }"""
    table = Module.parse(text).factor_table("%0")
    assert table.before == {
        "%a": {"i": "", "k": '"x"'},
        "%a (operand 1)": {"j": '"x"', "k": ""},
        "%0": {"i": "?", "j": "?"},
    }
    assert str(table).count("%a (operand 1)") == 2
    assert table._repr_html_().count("%a (operand 1)") == 2
    with pytest.raises(KeyError, match=r"define %0(\W|$)"):
        Module.parse(text).factor_table("%a")


def test_values_of_functions_in_turn() -> None:
    head = "func.func private @f{0}(%a: tensor<{0}xf32>) -> tensor<{0}xf32> {{"
    bodies = [f"{head.format(i)} return %a : tensor<{i}xf32> }}" for i in range(1, 4)]
    module = Module.parse("\n".join([MLP, *bodies]))
    for _ in range(2):
        assert [module[f"f{i}", "a"].shape for i in (3, 1, 2)] == [(3,), (1,), (2,)]
        assert module["x"].shape == (64, 512)


def test_names_are_looked_up_in_the_module_as_it_is_now() -> None:
    module = mlp()
    assert [module[value.name] for value in module.values()] == module.values()
    before = module["%0"]
    PassManager.parse(PROPAGATE).run(module)
    assert module["%0"].sharding != before.sharding
    assert [module[value.name] for value in module.values()] == module.values()


def test_of_equal_names_the_first_counts() -> None:
    branch = "{{ %x = stablehlo.{} %arg0 : tensor<2xf32> stablehlo.return %x : tensor<2xf32> }}"
    text = f"""func.func @main(%arg0: tensor<2xf32>, %index: tensor<i32>) -> tensor<2xf32> {{
      %0 = "stablehlo.case"(%index) ({branch.format("negate")}, {branch.format("tanh")})
          : (tensor<i32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }}"""
    module = Module.parse(text)
    twice = [value for value in module.values() if value.name == "%x"]
    assert len(twice) == 2
    assert module["%x"] == twice[0]


def test_propagate_leaves_the_module_alone() -> None:
    module = mlp()
    result = module.propagate()
    assert str(module) == str(mlp())
    assert module["%0"].sharding is None
    assert str(result["%0"].sharding) == '<@mesh, [{"data"}, {"model"}]>'
    assert str(result.module["%0"].sharding) == str(result.values()[2].sharding)
    assert str(Module.parse(str(result.module))) == str(result.module)


def test_run_works_in_place_and_is_the_same() -> None:
    module = mlp()
    assert PassManager.parse(PROPAGATE).run(module) is None  # type: ignore[func-returns-value]
    assert str(module) == str(mlp().propagate().module)


def test_values_stay_as_they_were() -> None:
    module = mlp()
    before = module["%0"]
    PassManager.parse(PROPAGATE).run(module)
    assert before.sharding is None
    assert sharding(module, "%0") == '<@mesh, [{"data"}, {"model"}]>'
    assert before != module["%0"]
    assert module["%0"] == module["%0"]
    assert len({module["%0"], module["%0"], module["%1#0"]}) == 2
    del module
    gc.collect()
    assert before.name == "%0"


def test_a_failing_run_changes_nothing() -> None:
    text = MLP.replace("  return", "  %3 = stablehlo.tanh %0 : tensor<64x2048xbf16>\n  return")
    call = "func.func @loop() {\n  call @loop() : () -> ()\n  return\n}\n"
    module = Module.parse(text + call)
    pipeline = "builtin.module(symbol-dce,sdy-basic-propagate,sdy-flatten-call-graph)"
    with pytest.raises(ShardcoreError, match="recursive-call"):
        PassManager.parse(pipeline).run(module)
    assert str(module) == text + call


def test_copies_and_pickles() -> None:
    module = mlp()
    copies = [copy.copy(module), copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
    PassManager.parse(PROPAGATE).run(module)
    for other in copies:
        assert str(other) == MLP
        assert other["%0"].sharding is None


def test_pickles_go_by_the_same_name() -> None:
    module = Module.parse(WITHOUT_RULE, filename="mlp.mlir")
    again = pickle.loads(pickle.dumps(module))
    with pytest.raises(ShardcoreError, match=r"--> mlp\.mlir:"):
        again.factor_table("%0")


PRIORITIES = """\
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}p0, {?}]>},
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}p1]>})
    -> tensor<8x8xf32> {
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def test_up_to_priority() -> None:
    module = Module.parse(PRIORITIES)
    assert sharding(module.propagate(up_to_priority=0).module, "%0") == '<@mesh, [{"a"}, {}]>'
    both = '<@mesh, [{"a"}, {"b"}]>'
    assert sharding(module.propagate(up_to_priority=1).module, "%0") == both
    assert sharding(module.propagate().module, "%0") == both


TRIMMED = """\
sdy.mesh @mesh = <["a"=4, "b"=3]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, ?}, {"b", ?}]>})
    -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def test_everything_that_the_export_trims_can_be_kept() -> None:
    module = Module.parse(TRIMMED)
    trimmed = module.propagate().module
    assert sharding(trimmed, "%x") == "<@mesh, [{}, {}]>"
    kept = module.propagate(keep_sub_axes_on_io=True)
    assert sharding(kept.module, "%x") == '<@mesh, [{"a":(1)2}, {"b"}]>'
    # The result's attribute stands in the signature only.
    assert str(kept.module).count('[{"a":(1)2}, {"b"}]') == 3
    assert kept["%x"].local_shape == (4, 3)


def test_chlo_is_legalized_where_asked_for() -> None:
    program = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(
    %a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  %0 = chlo.square %a : tensor<8x4xf32> -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
    module = Module.parse(program)
    assert module.propagate()["%0"].sharding is None
    legalized = module.propagate(legalize_chlo=True)
    assert str(legalized["%0"].sharding) == '<@mesh, [{"x"}, {}]>'
    by_hand = program.replace("chlo.square %a :", "stablehlo.multiply %a, %a :")
    by_hand = by_hand.replace("-> tensor<8x4xf32>\n  return", "\n  return")
    expected = Module.parse(by_hand).propagate()
    for name in ("%a", "%0"):
        assert legalized[name].sharding == expected[name].sharding


def test_max_ops() -> None:
    assert mlp().num_ops == 7
    mlp().propagate(max_ops=20)
    with pytest.raises(shardcore.ProgramTooLargeError) as caught:
        mlp().propagate(max_ops=6)
    assert caught.value.code == "program-too-large"
    with pytest.raises(shardcore.ProgramTooLargeError):
        PassManager.parse(PROPAGATE).run(mlp(), max_ops=6)


def test_summary_counts_before_and_after() -> None:
    summary = mlp().propagate().summary()
    assert set(summary) == {"ops", "shardy", "before", "after"}
    before, after = summary["before"], summary["after"]
    assert (before["values"], before["sharded_values"]) == (6, 2)
    assert (after["values"], after["sharded_values"]) == (6, 6)
    x, w, out = 64 * 512 * 2, 512 * 2048 * 2, 64 * 2048 * 2
    assert before["argument_bytes"] == after["argument_bytes"] == x + w
    assert after["argument_bytes_per_device"] == x // 2 + w // 4
    assert before["result_bytes_per_device"] == out
    assert after["result_bytes_per_device"] == out // 8
    assert before["axes"][0] == {
        "mesh": "mesh",
        "name": "data",
        "size": 2,
        "values": 1,
        "arguments": 1,
    }
    assert [axis["values"] for axis in after["axes"]] == [5, 5]
    assert mlp().totals() == before


def test_results_describe_themselves() -> None:
    assert repr(mlp()) == (
        '<shardcore.Module of 7 ops: @main; meshes: @mesh <["data"=2, "model"=4]>>'
    )
    assert repr(Module.parse("")) == "<shardcore.Module of 1 op: no function; meshes: none>"
    assert repr(mlp().propagate()).startswith("<shardcore.Result: 6 of 6 values sharded, ")


def test_factor_tables() -> None:
    module = mlp()
    table = module.factor_table("%0")
    assert table.op == "stablehlo.dot_general"
    assert table.factors == [
        ("i", 64, "pass-through"),
        ("j", 2048, "pass-through"),
        ("k", 512, "reduction"),
    ]
    assert table.before["%w"] == {"j": '"model"', "k": "?"}
    assert table.after["%0"] == {"i": '"data", ?', "j": '"model", ?'}
    assert module["%0"].sharding is None
    assert str(module.factor_table(module["%0"])) == str(table)


def test_factor_tables_show_axes_that_shard_no_factor() -> None:
    module = Module.parse("""sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
    func.func @main(
        %a: tensor<8x4xf32>
            {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}], replicated={"y":(1)2}>},
        %b: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], unreduced={"z"}>})
        -> tensor<8x4xf32> {
      %0 = stablehlo.add %a, %b : tensor<8x4xf32>
      %1 = stablehlo.tanh %0 : tensor<8x4xf32>
      return %1 : tensor<8x4xf32>
    }""")
    table = module.factor_table("%0")
    assert table.replicated == {"%a": '"y":(1)2'}
    assert table.unreduced == {"%b": '"z"'}
    assert "before  i=8  j=4  replicated  unreduced" in str(table)
    assert str(table).count('"y":(1)2') == str(table).count('"z"') == 2
    assert table._repr_html_().count("replicated") == 2
    # Where no tensor has some there are no columns for them.
    assert "replicated" not in str(module.factor_table("%1"))


def test_factor_tables_that_do_not_exist() -> None:
    module = mlp()
    with pytest.raises(KeyError, match="%x is an argument"):
        module.factor_table("%x")
    with pytest.raises(KeyError, match="no value %7"):
        module.factor_table("%7")
    with pytest.raises(TypeError, match="another module"):
        module.factor_table(mlp()["%0"])
    with pytest.raises(ShardcoreError, match=r"has no sharding rule\n  --> <string>:2:3\n"):
        Module.parse(WITHOUT_RULE).factor_table("%0")


@pytest.mark.parametrize("runs_before", [0, 1, 3, 20])
def test_failed_run_leaves_the_module_as_the_runs_before_made_it(runs_before: int) -> None:
    def stop(what: str, fraction: float) -> None:
        raise RuntimeError("stop")

    module = mlp()
    steps = ["builtin.module(sdy-add-data-flow-edges)", PROPAGATE, "builtin.module(symbol-dce)"]
    for run in range(runs_before):
        PassManager.parse(steps[min(run, 2)]).run(module)
    before, copy, values = str(module), module.__copy__(), module.values()
    with pytest.raises(RuntimeError, match="stop"):
        PassManager.parse(PROPAGATE).run(module, progress=stop)
    assert str(module) == before
    del copy, values
    with pytest.raises(RuntimeError, match="stop"):
        PassManager.parse(PROPAGATE).run(module, progress=stop)
    assert str(module) == before
    PassManager.parse(PROPAGATE).run(module)
    again = mlp()
    for run in range(runs_before):
        PassManager.parse(steps[min(run, 2)]).run(again)
    PassManager.parse(PROPAGATE).run(again)
    assert str(module) == str(again)


def test_long_text_is_made_of_pieces() -> None:
    ops = "".join(
        f"  %{i} = stablehlo.negate %arg0 : tensor<8xf32> // \u2211\n" for i in range(50_000)
    )
    text = f"func.func @main(%arg0: tensor<8xf32>) {{\n{ops}  return\n}}\n"
    assert str(Module.parse(text)) == text


def test_progress_goes_forward() -> None:
    seen: list[tuple[str, float]] = []
    mlp().propagate(progress=lambda what, fraction: seen.append((what, fraction)))
    fractions = [fraction for _, fraction in seen]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0
    assert 0.5 < fractions[-1] <= 1
    assert "sdy-user-priority-propagate" in {what for what, _ in seen}


def test_exceptions_of_the_callback_come_through() -> None:
    class OwnError(Exception):
        pass

    def progress(what: str, fraction: float) -> None:
        if what == "sdy-user-priority-propagate":
            raise OwnError(what)

    module = mlp()
    with pytest.raises(OwnError, match="sdy-user-priority-propagate"):
        module.propagate(progress=progress)
    with pytest.raises(OwnError):
        PassManager.parse(PROPAGATE).run(module, progress=progress)
    assert str(module) == MLP
    with pytest.raises(TypeError):
        module.propagate(progress=lambda: None)  # type: ignore[arg-type,misc]


def test_callbacks_may_use_the_module() -> None:
    module = mlp()
    PassManager.parse(PROPAGATE).run(module, progress=lambda *_: [*module.values(), str(module)])
    assert sharding(module, "%0") == '<@mesh, [{"data"}, {"model"}]>'


INTERRUPTED = """
import signal, shardcore
lines = [f"  %{i + 1} = stablehlo.add %{i}, %{i} : tensor<8xf32>" for i in range(300_000)]
module = shardcore.Module.parse(
    'sdy.mesh @m = <["x"=2]>\\nfunc.func @main('
    '%0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {\\n'
    + "\\n".join(lines) + "\\n  return %300000 : tensor<8xf32>\\n}")
passes = ",".join(["sdy-user-priority-propagate"] * 3)
manager = shardcore.PassManager.parse(f"builtin.module({passes})")
signal.signal(signal.SIGINT, signal.default_int_handler)
seen = []
def progress(what, fraction):
    # As if Ctrl-C was pressed while Rust is at work: the handler runs when Rust lets it.
    if what == "sdy-user-priority-propagate" and not seen:
        seen.append(fraction)
        signal.raise_signal(signal.SIGINT)
try:
    manager.run(module, progress=progress)
except KeyboardInterrupt:
    print("interrupted", module["%1"].sharding)
"""


def test_ctrl_c_stops_the_work() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.stdout == "interrupted None\n", done.stderr


def test_ctrl_c_stops_the_work_without_a_callback() -> None:
    script = """
import signal, shardcore
signal.signal(signal.SIGALRM, signal.default_int_handler)
module = shardcore.Module.parse(open(0).read())
manager = shardcore.PassManager.parse(f"builtin.module({','.join(['symbol-dce'] * 1_000_000)})")
try:
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    manager.run(module)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], input=MLP, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_pipelines_print_what_they_are() -> None:
    manager = PassManager.parse("builtin.module(sdy-close-shardings)")
    assert str(manager) == "builtin.module(sdy-close-shardings)"
    assert repr(manager) == 'PassManager.parse("builtin.module(sdy-close-shardings)")'
    assert str(PassManager.from_flags(["--sdy-close-shardings"])) == str(manager)
    names = PassManager.pass_names()
    assert names == sorted(set(names))
    assert {"sdy-propagation-pipeline", "sdy-basic-propagate", "symbol-dce"} <= set(names)


def test_classes_cannot_be_made_by_hand() -> None:
    classes: list[Any] = [
        Module,
        PassManager,
        shardcore.Result,
        shardcore.Value,
        shardcore.FactorTable,
    ]
    for made in classes:
        with pytest.raises(TypeError):
            made()


def test_results_are_the_same_in_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    module = mlp()
    handler = signal.getsignal(signal.SIGINT)
    with ThreadPoolExecutor(4) as pool:
        texts = set(pool.map(lambda _: str(module.propagate().module), range(16)))
    assert len(texts) == 1
    assert signal.getsignal(signal.SIGINT) is handler


def test_inside_a_manual_computation_shapes_are_local_along_manual_axes() -> None:
    module = Module.parse("""
    sdy.mesh @mesh = <["data"=2, "model"=4]>
    func.func @main(%x: tensor<64x512xf32>) -> tensor<64x512xf32> {
      %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"}, {"model"}]>]
          out_shardings=[<@mesh, [{"data"}, {"model"}]>] manual_axes={"data"}
          (%inner: tensor<32x512xf32>) {
        %1 = stablehlo.negate %inner : tensor<32x512xf32>
        sdy.return %1 : tensor<32x512xf32>
      } : (tensor<64x512xf32>) -> tensor<64x512xf32>
      return %0 : tensor<64x512xf32>
    }""")
    result = module.propagate()
    for name, axes in (("%x", ()), ("%inner", ("data",)), ("%1", ("data",)), ("%0", ())):
        assert result[name].local_shape == (32, 128), name
        assert result[name].manual_axes == axes
    assert str(result["%inner"].sharding) == '<@mesh, [{}, {"model"}]>'
    assert result.summary()["after"]["bytes_per_device"] == 4 * 32 * 128 * 4


def test_the_rule_of_an_op() -> None:
    module = mlp()
    [dot] = [value for value in module.values() if value.op == "stablehlo.dot_general"][:1]
    rule = module.rule(dot)
    assert isinstance(rule, shardcore.OpShardingRule)
    assert rule == module.rule(dot.name)
    assert rule.notation == "i k, k j -> i j"
    assert str(module.factor_table(dot)).startswith(f"stablehlo.dot_general  {rule}\n")
    with pytest.raises(KeyError, match="is an argument"):
        module.rule(module.arguments()[0].name)


CONFLICT = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}"""


@pytest.mark.parametrize("strategy", ["basic", "aggressive", "basic-then-aggressive"])
def test_strategies_are_those_of_the_pass(strategy: str) -> None:
    done = Module.parse(CONFLICT)
    # What `propagate` runs, with the option of the pass that propagates.
    passes = str(shardcore.PassManager.parse("builtin.module(sdy-propagation-pipeline)"))
    name = "propagation-strategy="
    assert passes.count(f"{name}aggressive") == 1
    passes = passes.replace(f"{name}aggressive", f"{name}{strategy}")
    shardcore.PassManager.parse(passes).run(done)
    result = Module.parse(CONFLICT).propagate(strategy=strategy)
    assert str(result.module) == str(done)
    # Edits are tried by the same strategy.
    assert str(result._given().propagate(**result._options()).module) == str(done)
    assert (
        result.why("%0").axes == Module.parse(CONFLICT).propagate(strategy=strategy).why("%0").axes
    )


def test_strategies_differ_and_unknown_ones_are_mistakes() -> None:
    found = {
        str(Module.parse(CONFLICT).propagate(strategy=name)["%1"].sharding)
        for name in ("basic", "aggressive")
    }
    assert len(found) == 2
    assert str(Module.parse(CONFLICT).session(strategy="basic").result["%1"].sharding) in found
    with pytest.raises(ValueError, match="aggressive, basic, basic-then-aggressive, not 'bold'"):
        Module.parse(CONFLICT).propagate(strategy="bold")
