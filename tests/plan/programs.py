"""Programs without annotations."""

from __future__ import annotations

from shardcore import Module


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
