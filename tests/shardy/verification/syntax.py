"""Ops in their own syntax, and attributes that nobody reads, with a token more, one less, or two
of them the other way round; and with white space and comments between tokens.
"""

from __future__ import annotations

import re

F, T = "tensor<f32>", "tensor<8xf32>"
TO_T, TO_F = f"({T}) -> {T}", f"({T}, {T}) -> {F}"
SHARDED = "<@mesh, [{}]>"
BODY = f"(%x: {T}) {{ sdy.return %x : {T} }} : {TO_T}"
EQUAL = "in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>]"

OPS = [
    f"stablehlo.add %a, %b {{p}} : {T}",
    f"stablehlo.tanh %a : {T}",
    f"stablehlo.compare LT, %a, %b, FLOAT : ({T}, {T}) -> tensor<8xi1>",
    f"stablehlo.select %c, %a, %b : tensor<i1>, {T}",
    f"stablehlo.clamp %a, %a, %b : {T}",
    f"stablehlo.constant dense<1.0> : {T}",
    f"stablehlo.iota dim = 0 : {T}",
    f"stablehlo.convert %a : ({T}) -> tensor<8xi32>",
    f"stablehlo.transpose %a, dims = [0] : {TO_T}",
    f"stablehlo.reshape %a : {TO_T}",
    f"stablehlo.broadcast_in_dim %a, dims = [0] : {TO_T}",
    f"stablehlo.concatenate %a, %b, dim = 0 : ({T}, {T}) -> tensor<16xf32>",
    f"stablehlo.slice %a [0:4:2] : ({T}) -> tensor<2xf32>",
    f"stablehlo.dynamic_slice %a, %i, sizes = [4] : ({T}, tensor<i32>) -> tensor<4xf32>",
    f"stablehlo.pad %a, %z, low = [0], high = [0], interior = [0] : ({T}, {F}) -> {T}",
    f"stablehlo.dot_general %a, %b, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] "
    f": {TO_F}",
    f"stablehlo.dot %a, %b : {TO_F}",
    f"stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] {{p}} "
    f": ({T}, {F}) -> {F}",
    f"stablehlo.custom_call @f(%a) {{api_version = 2 : i32}} : {TO_T}",
    f'stablehlo.composite "a.b" %a {{decomposition = @g}} : {TO_T}',
    "stablehlo.fft %c1, type = FFT, length = [8] : (tensor<8xcomplex<f32>>) -> "
    "tensor<8xcomplex<f32>>",
    f"stablehlo.reduce_precision %a, format = e5m2 : {T}",
    f"stablehlo.rng %z, %z, %n, distribution = UNIFORM : ({F}, {F}, tensor<1xi64>) -> {T}",
    f"stablehlo.tuple %a, %b {{p}} : tuple<{T}, {T}>",
    "stablehlo.create_token : !stablehlo.token",
    "stablehlo.after_all : !stablehlo.token",
    f"stablehlo.optimization_barrier %a : {T}",
    f"stablehlo.while(%x = %a) : {T} attributes {{p}} cond {{ stablehlo.return %c : tensor<i1> }} "
    f"do {{ stablehlo.return %x : {T} }}",
    f'"stablehlo.if"(%c) ({{ stablehlo.return %a {{p}} : {T} }}, {{ stablehlo.return %b : {T} }}) '
    f": (tensor<i1>) -> {T}",
    f"chlo.erf %a : {T} -> {T}",
    f"chlo.broadcast_add %a, %b : ({T}, {T}) -> {T}",
    f"chlo.top_k(%a, k = 2) : {T} -> (tensor<2xf32>, tensor<2xi32>)",
    f"call @g(%a) {{p}} : {TO_T}",
    f"sdy.sharding_constraint %a {SHARDED} {{p}} : {T}",
    f"sdy.reshard %a {SHARDED} : {T}",
    f"sdy.constant {{p}} dense<1.0> : {T}",
    f"sdy.all_gather [{{}}] %a out_sharding={SHARDED} {{p}} : {T}",
    f"sdy.all_slice [{{}}] %a out_sharding={SHARDED} : {T}",
    f'sdy.all_to_all [{{"x"}}: 0->0] %a out_sharding={SHARDED} : {T}',
    f"sdy.all_reduce {{}} %a out_sharding={SHARDED} : {T}",
    f"sdy.reduce_scatter [{{}}] %a out_sharding={SHARDED} : {T}",
    f"sdy.collective_permute %a out_sharding={SHARDED} : {T}",
    f"sdy.sharded_to_unreduced [{{}}] %a out_sharding={SHARDED} : {T}",
    f"sdy.replicated_to_unreduced {{}} %a out_sharding={SHARDED} : {T}",
    f"sdy.propagation_barrier %a allowed_direction=FORWARD : {T}",
    f"sdy.data_flow_edge %a sharding={SHARDED} : {T}",
    f"sdy.func_data_flow_edge %a : {T}",
    f"sdy.manual_computation(%a) {EQUAL} manual_axes={{}} {BODY}",
    f'sdy.named_computation<"f">(%a) {EQUAL} {BODY}',
]
"""Each an op with its result left out."""

UNREAD = [
    '#sdy.mesh<["x"=2], device_ids=[1, 0]>',
    '#sdy.sharding<@mesh, [{"x", ?}p1, {}], replicated={"y":(1)2}, unreduced={"z"}>',
    "#sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{?}]>]>",
    '#sdy.manual_axes{"x", "y"}',
    "#sdy.op_sharding_rule<([i, jk], [k])->([i, l]) {i=2, j=4, k=2, l=3} reduction={k} "
    "need_replication={l} permutation={i} blocked_propagation={j}, custom>",
    '#sdy.propagation_edges<[{step-0 = [{"a" = operand-0 -> [operand-1, result-0]}]}]>',
]
"""Attributes of aliases that nothing uses, and of dictionaries."""

PROGRAM = f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: {T}, %b: {T}, %c: tensor<i1>, %z: {F}, %i: tensor<i32>, %n: tensor<1xi64>,
                %c1: tensor<8xcomplex<f32>>) -> {T} {{{{
  %r = {{}}
  return %a : {T}
}}}}
func.func private @g(%a: {T}) -> {T} {{{{ return %a : {T} }}}}
"""

TOKEN = re.compile(r"""tensor<[^<>]*(?:<[^<>]*>)?>|#[\w.]+<?|[!@%]?[\w.]+|"[^"]*"|->|\S""")
SPACES = ["\n", "\t\t", "\n//\n", " // more\n"]
MORE = ["{q = 1 : i32}", "%b", ",", ":", "[{}]", "attributes {q = 1 : i32}", "loc(unknown)"]


def changed(op: str) -> list[str]:
    """``op``, and what is made of it."""
    tokens = TOKEN.findall(op)
    found = [op, " ".join(tokens), "\n".join(tokens), " // more\n".join(tokens)]
    for at in range(1, len(tokens) + 1):
        before, after = tokens[:at], tokens[at:]
        found += [" ".join(before) + space + " ".join(after) for space in SPACES]
        found += [" ".join([*before, more, *after]) for more in MORE]
        if after:
            found.append(" ".join([*before, *after[1:]]))
            found.append(" ".join([*before, *after[1:2], after[0], *after[2:]]))
    return list(dict.fromkeys(found))


def programs() -> list[str]:
    """All programs."""
    found = [PROGRAM.format(text) for op in OPS for text in changed(op)]
    for attribute in UNREAD:
        for text in changed(attribute):
            found += [f"#unread = {text}", f"module attributes {{a.b = {text}}} {{\n}}"]
    return found
