"""Programs to plan."""

from __future__ import annotations

from shardcore import Module


def bare(module: Module) -> Module:
    """``module`` without the annotations it came with."""
    session = module.session()
    for target in list(session.annotations):
        session.unset(target)
    return session.module


def with_small_argument() -> Module:
    """A batch of rows that products take, and a small one that they do not; both are sharded."""
    rows, weights, edges = "tensor<4096x256xf32>", "tensor<256x256xf32>", "tensor<64x4xf32>"
    sharded = '{sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}'
    return Module.parse(f"""
sdy.mesh @mesh = <["data"=8]>
func.func @main(
    %arg0: {rows} {sharded} loc("x"), %arg1: {weights} loc("w"), %arg2: {edges} {sharded}
    loc("edges")) -> ({rows}, {edges}) {{
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : ({rows}, {weights}) -> {rows}
  %1 = stablehlo.tanh %0 : {rows}
  %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [1]
      : ({rows}, {weights}) -> {rows}
  %3 = stablehlo.tanh %arg2 : {edges}
  return %2, %3 : {rows}, {edges}
}}""")


def mlp(batch: int = 8192, width: int = 8192, hidden: int = 32768) -> Module:
    """Two products with a tanh between them."""
    x, up = f"tensor<{batch}x{width}xbf16>", f"tensor<{width}x{hidden}xbf16>"
    inner, down = f"tensor<{batch}x{hidden}xbf16>", f"tensor<{hidden}x{width}xbf16>"
    return Module.parse(f"""
func.func @main(
    %arg0: {x} loc("x"), %arg1: {up} loc("params['up']"), %arg2: {down} loc("params['down']"))
    -> {x} {{
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : ({x}, {up}) -> {inner}
  %1 = stablehlo.tanh %0 : {inner}
  %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] : ({inner}, {down}) -> {x}
  return %2 : {x}
}}""")


def mlp_step(batch: int, width: int, hidden: int) -> Module:
    """One step of two products with a tanh between them: forward, backward, update."""

    def type_of(*sizes: int) -> str:
        return f"tensor<{'x'.join(map(str, sizes))}xbf16>"

    x, w1, w2 = type_of(batch, width), type_of(width, hidden), type_of(hidden, width)
    h = type_of(batch, hidden)

    def dot(operands: str, dims: str, types: str) -> str:
        return f"stablehlo.dot_general {operands}, contracting_dims = {dims} : {types}"

    return Module.parse(f"""
func.func @main(
    %x: {x} loc("x"),
    %w1: {w1} {{tf.aliasing_output = 1 : i32}} loc("p['w1']"),
    %w2: {w2} {{tf.aliasing_output = 2 : i32}} loc("p['w2']")) -> ({x}, {w1}, {w2}) {{
  %h = {dot("%x, %w1", "[1] x [0]", f"({x}, {w1}) -> {h}")}
  %a = stablehlo.tanh %h : {h}
  %y = {dot("%a, %w2", "[1] x [0]", f"({h}, {w2}) -> {x}")}
  %g = stablehlo.tanh %y : {x}
  %dw2 = {dot("%a, %g", "[0] x [0]", f"({h}, {x}) -> {w2}")}
  %da = {dot("%g, %w2", "[1] x [1]", f"({x}, {w2}) -> {h}")}
  %dh = stablehlo.multiply %da, %a : {h}
  %dw1 = {dot("%x, %dh", "[0] x [0]", f"({x}, {h}) -> {w1}")}
  %dx = {dot("%dh, %w1", "[1] x [1]", f"({h}, {w1}) -> {x}")}
  %n1 = stablehlo.subtract %w1, %dw1 : {w1}
  %n2 = stablehlo.subtract %w2, %dw2 : {w2}
  return %dx, %n1, %n2 : {x}, {w1}, {w2}
}}""")
