"""What arguments are annotated alike, and which of their dims tensor parallelism cuts."""

from __future__ import annotations

from shardcore import Mesh, Module
from shardcore.calculus.hardware import hardware
from shardcore.plan.objective import Wanted
from shardcore.plan.planner import Planner
from shardcore.plan.program import read
from shardcore.plan.reading import Reading


def blocks() -> Module:
    """Two layers as Flax names them, with a bias of the hidden dim, and the momentum of each."""
    x, up, bias = "tensor<8192x256xf32>", "tensor<256x1024xf32>", "tensor<1024xf32>"
    hidden, down = "tensor<8192x1024xf32>", "tensor<1024x256xf32>"
    head, lines = [f'%x: {x} loc("x")'], []
    current = "%x"
    for layer in range(2):
        for tree in ("params", "m"):
            for name, kind, of in (("up", up, "up"), ("bias", bias, "b"), ("down", down, "down")):
                path = f"state['{tree}']['Block_{layer}']['{name}']"
                head.append(f'%{tree}{of}{layer}: {kind} loc("{path}")')
        lines.append(f"""
  %u{layer} = stablehlo.add %paramsup{layer}, %mup{layer} : {up}
  %b{layer} = stablehlo.add %paramsb{layer}, %mb{layer} : {bias}
  %d{layer} = stablehlo.add %paramsdown{layer}, %mdown{layer} : {down}
  %h{layer} = stablehlo.dot_general {current}, %u{layer}, contracting_dims = [1] x [0]
      : ({x}, {up}) -> {hidden}
  %w{layer} = stablehlo.broadcast_in_dim %b{layer}, dims = [1] : ({bias}) -> {hidden}
  %a{layer} = stablehlo.add %h{layer}, %w{layer} : {hidden}
  %y{layer} = stablehlo.dot_general %a{layer}, %d{layer}, contracting_dims = [1] x [0]
      : ({hidden}, {down}) -> {x}""")
        current = f"%y{layer}"
    last, out = "tensor<256x128xf32>", "tensor<8192x128xf32>"
    arguments = ", ".join([*head, f'%last: {last} loc("head")'])
    body = "".join(lines)
    return Module.parse(f"""
func.func @main({arguments}) -> {out} {{{body}
  %0 = stablehlo.dot_general {current}, %last, contracting_dims = [1] x [0]
      : ({x}, {last}) -> {out}
  return %0 : {out}
}}""")


def planner() -> Planner:
    chip = hardware("tpu-v5e")
    wanted = Wanted((Mesh({"a": 4}),), chip, chip.hbm_bytes, "time", 60.0, None, {}, None)
    return Planner(Reading(read(blocks(), ()), wanted), wanted)


def test_layers_with_numbers_in_their_names_and_their_momentum_are_one_role() -> None:
    found = {role.name: len(role.members) for role in planner()._roles if not role.is_value}
    assert found.pop("x") == 1
    arguments = {name: count for name, count in found.items() if name.startswith("state")}
    assert len(arguments) == 3
    assert set(arguments.values()) == {4}


def test_a_bias_does_not_make_the_hidden_dim_a_width() -> None:
    found = planner()
    up = next(role for role in found._roles if role.shape == (256, 1024))
    width, hidden = up.classes
    assert hidden in found._meanings.inner()
    assert width not in found._meanings.inner()
