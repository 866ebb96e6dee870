"""Paths of arguments and patterns of them."""

from __future__ import annotations

import pickle

import pytest
from shardcore import Module, PassManager
from shardcore.session.paths import Pattern, steps

from tests.session.test_session import TEXT


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("x", ("x",)),
        ("params['layers'][3]['w']", ("params", "layers", "3", "w")),
        ("params/layers/3/w", ("params", "layers", "3", "w")),
        ("state.params['w']", ("state", "params", "w")),
        ("result[0]['loss']", ("result", "0", "loss")),
        ("p['Dense_0/kernel']", ("p", "Dense_0/kernel")),
        ("p['it\\'s']", ("p", "it's")),
        ('p["a.b"]', ("p", "a.b")),
        ("params**['w']", ("params", "**", "w")),
        ("[", ("[",)),
        ("", ()),
    ],
)
def test_steps(path: str, expected: tuple[str, ...]) -> None:
    assert steps(path) == expected


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("params/**/w", ["params['w']", "params['l'][0]['w']"], ["params['w']['b']", "x['w']"]),
        ("params['layers'][*]['w']", ["params['layers'][7]['w']"], ["params['layers']['w']"]),
        ("layer_*/q", ["layer_1['q']", "layer_['q']"], ["layer['q']", "layer_1['x']['q']"]),
        ("**", ["x", "params['w']"], []),
        ("**/w", ["w", "a['w']", "a['b']['w']"], ["a['w']['b']"]),
        ("a/**/b/**/c", ["a['b']['c']", "a['x']['b']['b']['c']"], ["a['c']['b']"]),
        ("p['a.*']", ["p['a.b']"], ["p['ab']"]),
    ],
)
def test_patterns(pattern: str, matching: list[str], other: list[str]) -> None:
    found = Pattern(pattern)
    assert [path for path in (*matching, *other) if found.matches(steps(path))] == matching


def test_patterns_take_time_linear_in_the_path() -> None:
    assert not Pattern("**/a" * 200).matches(("a",) * 199 + ("b",))


def test_arguments_and_results_are_looked_through_once() -> None:
    module = Module.parse(TEXT)
    ports = module._ports
    assert module["params['b']['w']"].name == module["params/b/w"].name == "%arg2"
    assert module._ports is ports
    found = [ports.find(name) for name in ("x", "%arg0", "result['y']", "result 0", "y", "%77")]
    assert [port and port.name for port in found] == [
        *("%arg0", "%arg0", "result 0", "result 0", None, None)
    ]
    with pytest.raises(KeyError, match="did you mean"):
        module["params['b']['v']"]
    # Another program has other ports.
    PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module)
    assert module._ports is not ports
    assert module["params['b']['w']"].sharding is not None


def test_paths_are_what_the_strings_of_the_text_stand_for() -> None:
    """MLIR writes quotes and what is not ASCII as hexadecimal bytes."""
    module = Module.parse(
        r"""sdy.mesh @mesh = <["a"=2]>
    func.func @main(%0: tensor<8xf32> loc("d['\D0\BA\D0\BB']['\E8\AA\9E']"),
                    %1: tensor<8xf32> loc("d[\22b'x\22]"),
                    %2: tensor<8xf32> loc("d['new\\nline']"))
        -> (tensor<8xf32> {jax.result_info = "r['\D0\BA']"}) {
      %3 = stablehlo.add %0, %1 : tensor<8xf32> loc("\D0\BA.py":3:4)
      return %3 : tensor<8xf32>
    }"""
    )
    session = module.session()
    labels = ["d['кл']['語']", 'd["b\'x"]', r"d['new\nline']", "r['к']"]
    result = session.result
    assert [port.label for port in [*result.arguments(), *result.results()]] == labels
    others = ["d/кл/語", "d/b'x", "d/new\nline", "r/к"]
    for label, other in zip(labels, others, strict=True):
        assert session.targets(label) == session.targets(other) == [label]
        session.set(label, "P('a')")
        assert session.annotations[label]
    assert session.targets("d/к*/**") == labels[:1]
    assert result.why("r['к']").record()["value"] == "result 0"
    assert [value.name for value in module.at("к.py:3")] == ["%3"]
    assert module["%3"].location == "к.py:3:4"
    twin = pickle.loads(pickle.dumps(session))
    assert twin.annotations == session.annotations


def test_paths_that_end_alike_are_near() -> None:
    ports = Module.parse(TEXT)._ports
    assert ports.near("state['w']") == ports.near("w")
    assert "\"params['b']['w']\"" in ports.near("state['w']")
    # That with more in common comes first.
    text = "\n".join(
        f"%a{n}: tensor<8xf32> loc(\"p['{layer}']['{kind}']['w']\"),"
        for n, (layer, kind) in enumerate((a, b) for a in "abc" for b in ("mlp", "attn"))
    ).rstrip(",")
    ports = Module.parse(f"func.func @main({text}) {{ return }}")._ports
    assert ports.near("q['mlp']['w']") == [f"\"p['{layer}']['mlp']['w']\"" for layer in "abc"]
