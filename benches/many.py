"""Families with thousands of functions, priorities, groups, ...; the argument is their number."""

from __future__ import annotations

import random
from collections.abc import Callable

from benches.families import SQUARE, _module, _sharding
from benches.stress import _annotation, _function, _wide


def _negate(name: str, value: str, *dims: str) -> str:
    annotation = _annotation(*dims) if dims else ""
    return f"{name} = stablehlo.negate {value}{annotation} : {SQUARE}"


def _with_functions(main: str, functions: list[str]) -> str:
    """The module of ``main`` with more functions in it."""
    return main.removesuffix("}\n") + "\n".join([*functions, "}\n"])


def _unary(name: str, body: str) -> str:
    """A private function ``name`` of one square."""
    head = f"func.func private @{name}(%x: {SQUARE}) -> {SQUARE} {{"
    return f"{head} %0 = {body} : {SQUARE} return %0 : {SQUARE} }}"


def own_priorities(arguments: int) -> str:
    """Arguments with a different user priority each, summed."""
    args = [f"%x{i}: {SQUARE} {_sharding('data', 'model', priority=i)}" for i in range(arguments)]
    lines = [_negate("%s0", "%x0")]
    lines += [f"%s{i} = stablehlo.add %s{i - 1}, %x{i} : {SQUARE}" for i in range(1, arguments)]
    return _function(lines, f"%s{arguments - 1}", ", ".join(args))


def result_priorities(arguments: int) -> str:
    """Arguments with a different user priority each, returned one by one."""
    args = [f"%x{i}: {SQUARE} {_sharding('data', 'model', priority=i)}" for i in range(arguments)]
    lines = [_negate(f"%s{i}", f"%x{i}") for i in range(arguments)]
    return _wide(lines, args, [f"%s{i}" for i in range(arguments)])


def functions(count: int) -> str:
    """Functions that are called once each."""
    lines, previous = [], "%x"
    for call in range(count):
        lines.append(f"%{call} = func.call @f{call}({previous}) : ({SQUARE}) -> {SQUARE}")
        previous = f"%{call}"
    callees = [_unary(f"f{call}", "stablehlo.negate %x") for call in range(count)]
    return _with_functions(_function(lines, previous), callees)


def deep_calls(levels: int) -> str:
    """Functions that call the next one once."""
    types = f"({SQUARE}) -> {SQUARE}"
    head = f"func.func private @f{{}}(%x: {SQUARE}) -> {SQUARE} {{{{"
    tail = f"return %0 : {SQUARE} }}"
    callees = [
        f"{head.format(level)} %0 = func.call @f{level + 1}(%x) : {types} {tail}"
        for level in range(levels)
    ]
    callees.append(_unary(f"f{levels}", "stablehlo.negate %x"))
    main = _function([f"%0 = func.call @f0(%x) : {types}"], "%0")
    return _with_functions(main, callees)


def uncalled(count: int) -> str:
    """Functions that are not called."""
    unused = [_unary(f"f{i}", "stablehlo.negate %x") for i in range(count)]
    return _with_functions(_function([_negate("%0", "%x")], "%0"), unused)


def calls_that_disagree(count: int) -> str:
    """Calls of one function with alternating shardings."""
    dims = [("data", ""), ("", "data"), ("model", ""), ("", "model")]
    lines = []
    for call in range(count):
        lines.append(_negate(f"%c{call}", "%x", *dims[call % 4]))
        lines.append(f"%{call} = func.call @f(%c{call}) : ({SQUARE}) -> {SQUARE}")
    main = _wide(lines, [f"%x: {SQUARE}"], [f"%{call}" for call in range(count)])
    return _with_functions(main, [_unary("f", "stablehlo.negate %x")])


def users_that_disagree(count: int) -> str:
    """One value whose users are annotated with alternating axes."""
    dims = [("data", "model"), ("model", "data")]
    lines = [_negate("%h", "%x")]
    lines += [_negate(f"%u{user}", "%h", *dims[user % 2]) for user in range(count)]
    return _wide(lines, [f"%x: {SQUARE}"], [f"%u{user}" for user in range(count)])


def constraints_on_one(count: int) -> str:
    """One value with many sharding constraints that disagree."""
    lines = [_negate("%h", "%x")]
    for user in range(count):
        sharding = f'<@mesh, [{{"{"data" if user % 2 else "model"}"}}, {{?}}]>'
        lines.append(f"%u{user} = sdy.sharding_constraint %h {sharding} : {SQUARE}")
    return _wide(lines, [f"%x: {SQUARE}"], [f"%u{user}" for user in range(count)])


def own_constants(count: int) -> str:
    """Constants that are all different, with two users each."""
    lines, previous = [], "%x"
    for i in range(count):
        lines.append(f"%c{i} = stablehlo.constant dense<{i}.0> : {SQUARE}")
        lines.append(f"%a{i} = stablehlo.add {previous}, %c{i} : {SQUARE}")
        lines.append(f"%b{i} = stablehlo.multiply %a{i}, %c{i} : {SQUARE}")
        previous = f"%b{i}"
    return _function(lines, previous)


def constant_expression(count: int) -> str:
    """An expression of ten constant ops with many users."""
    scalar = "tensor<f32>"
    lines = [f"%c = stablehlo.constant dense<1.0> : {scalar}"]
    lines.append(f"%e0 = stablehlo.broadcast_in_dim %c, dims = [] : ({scalar}) -> {SQUARE}")
    lines += [_negate(f"%e{i}", f"%e{i - 1}") for i in range(1, 10)]
    previous = "%x"
    for i in range(count):
        lines.append(f"%a{i} = stablehlo.add {previous}, %e9 : {SQUARE}")
        previous = f"%a{i}"
    return _function(lines, previous)


def inlined_meshes(count: int) -> str:
    """Shardings over inlined meshes, which differ in the order of devices."""
    lines, previous = [], "%x"
    for op in range(count):
        ids = ", ".join(str((op + device) % 16) for device in range(16))
        mesh = f'mesh<["data"=4, "model"=4], device_ids=[{ids}]>'
        sharding = f'#sdy.sharding_per_value<[<{mesh}, [{{"data"}}, {{?}}]>]>'
        annotation = f"{{sdy.sharding = {sharding}}}"
        lines.append(f"%{op} = stablehlo.negate {previous} {annotation} : {SQUARE}")
        previous = f"%{op}"
    return _function(lines, previous, f"%x: {SQUARE}")


def barriers(count: int) -> str:
    """A chain of propagation barriers of all kinds."""
    lines, previous = [], "%x"
    for op in range(count):
        direction = ("NONE", "FORWARD", "BACKWARD")[op % 3]
        lines.append(
            f"%{op} = sdy.propagation_barrier {previous} allowed_direction={direction} : {SQUARE}"
        )
        previous = f"%{op}"
    return _function(lines, previous)


def members(count: int) -> str:
    """One sharding group of many values, of which two are annotated in one dim each."""
    args = [f"%x{i}: {SQUARE}" for i in range(count)]
    args[0] += f" {_sharding('data', '')}"
    args[-1] += f" {_sharding('', 'model')}"
    lines = []
    for i in range(count):
        lines.append(_negate(f"%{i}", f"%x{i}"))
        lines.append(f"sdy.sharding_group %{i} group_id=0 : {SQUARE}")
    return _wide(lines, args, [f"%{i}" for i in range(count)])


def members_that_disagree(count: int) -> str:
    """One sharding group whose members are annotated with alternating axes."""
    lines = []
    for i in range(count):
        lines.append(_negate(f"%{i}", "%x", "data" if i % 2 else "model", ""))
        lines.append(f"sdy.sharding_group %{i} group_id=0 : {SQUARE}")
    return _wide(lines, [f"%x: {SQUARE}"], [f"%{i}" for i in range(count)])


def siblings(count: int) -> str:
    """Ops of three results each, of which one is used."""
    lines, previous = [], "%x"
    for op in range(count):
        types = f"({SQUARE}) -> ({SQUARE}, {SQUARE}, {SQUARE})"
        lines.append(f"%{op}:3 = stablehlo.custom_call @f({previous}) : {types}")
        lines.append(f"%n{op} = stablehlo.add {previous}, %{op}#1 : {SQUARE}")
        previous = f"%n{op}"
    return _function(lines, previous)


def loops(count: int) -> str:
    """A sequence of loops, annotated after the last."""
    lines, previous = [], "%x"
    for loop in range(count):
        lines.append(f"%w{loop} = stablehlo.while(%i{loop} = {previous}) : {SQUARE} cond {{")
        lines.append(f"%c{loop} = stablehlo.constant dense<true> : tensor<i1>")
        lines.append(f"stablehlo.return %c{loop} : tensor<i1> }} do {{")
        lines.append(_negate(f"%n{loop}", f"%i{loop}"))
        lines.append(f"stablehlo.return %n{loop} : {SQUARE} }}")
        previous = f"%w{loop}"
    return _function([*lines, _negate("%r", previous, "data", "model")], "%r", f"%x: {SQUARE}")


def branches_that_disagree(count: int) -> str:
    """A case whose branches are annotated with alternating axes."""
    dims = [("data", "model"), ("model", "data")]
    bodies = [
        f"{{ {_negate(f'%b{i}', '%x', *dims[i % 2])} stablehlo.return %b{i} : {SQUARE} }}"
        for i in range(count)
    ]
    cases = ",\n".join(bodies)
    lines = [f'%r = "stablehlo.case"(%i) ({cases}) : (tensor<i32>) -> {SQUARE}']
    return _function(lines, "%r", f"%x: {SQUARE}, %i: tensor<i32>")


def scattered(ops: int) -> str:
    """A random graph with some annotations that disagree."""
    choose = random.Random(0)
    dims = [("data", ""), ("", "data"), ("model", ""), ("", "model")]
    lines, values = [], ["%x"]
    for op in range(ops):
        first, second = choose.choice(values), choose.choice(values)
        annotation = _annotation(*choose.choice(dims)) if choose.random() < 0.02 else ""
        lines.append(
            f"%t{op} = stablehlo.transpose {first}, dims = [1, 0] : ({SQUARE}) -> {SQUARE}"
        )
        lines.append(f"%{op} = stablehlo.add %t{op}, {second}{annotation} : {SQUARE}")
        values.append(f"%{op}")
    return _function(lines, values[-1])


def products(ops: int) -> str:
    """A chain of matrix products, no two of the same shape."""
    args = [f"%x: {SQUARE} {_sharding('data', 'model')}"]
    lines, previous, size = [], "%x", 64
    for op in range(ops):
        new = size + 4
        args.append(f"%w{op}: tensor<{size}x{new}xf32>")
        types = f"(tensor<64x{size}xf32>, tensor<{size}x{new}xf32>) -> tensor<64x{new}xf32>"
        dims = "contracting_dims = [1] x [0]"
        lines.append(f"%{op} = stablehlo.dot_general {previous}, %w{op}, {dims} : {types}")
        previous, size = f"%{op}", new
    last = f"tensor<64x{size}xf32>"
    head = f"func.func @main({', '.join(args)}) -> {last} {{"
    return _module([head, *lines, f"return {previous} : {last}", "}"])


MANY: dict[str, Callable[[int], str]] = {
    family.__name__.replace("_", "-"): family
    for family in (
        own_priorities,
        result_priorities,
        functions,
        deep_calls,
        uncalled,
        calls_that_disagree,
        users_that_disagree,
        constraints_on_one,
        own_constants,
        constant_expression,
        inlined_meshes,
        barriers,
        members,
        members_that_disagree,
        siblings,
        loops,
        branches_that_disagree,
        scattered,
        products,
    )
}
"""These families by name."""
