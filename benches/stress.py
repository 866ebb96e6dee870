"""More families of programs, in which an engine must not take superlinear time.

The argument of each is about the number of ops, or of tensors of an op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benches.families import SQUARE, _module, _sharding

ANNOTATED = _sharding("data", "model")


def _annotation(*dims: str) -> str:
    """The attribute of an op with one result."""
    sharding = _sharding(*dims).removeprefix("{sdy.sharding = #sdy.sharding").removesuffix("}")
    return f" {{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}}"


def _function(lines: Iterable[str], returned: str, args: str = f"%x: {SQUARE} {ANNOTATED}") -> str:
    """A module of one function from ``args`` to a square."""
    head, last = f"func.func @main({args}) -> {SQUARE} {{", f"return {returned} : {SQUARE}"
    return _module([head, *lines, last, "}"])


def _wide(lines: Iterable[str], args: list[str], returned: list[str]) -> str:
    """A module of one function from ``args`` to one square for each of ``returned``."""
    types = ", ".join([SQUARE] * len(returned))
    head = f"func.func @main({', '.join(args)}) -> ({types}) {{"
    return _module([head, *lines, f"return {', '.join(returned)} : {types}", "}"])


def _squares(count: int, annotation: str = ANNOTATED) -> list[str]:
    """``count`` arguments, of which the last is annotated."""
    args = [f"%x{i}: {SQUARE}" for i in range(count)]
    args[-1] += f" {annotation}"
    return args


def zigzag(ops: int) -> str:
    """Sums of neighbouring arguments, last to first; the first argument is annotated."""
    args = [f"%x{i}: {SQUARE}" for i in range(ops + 1)]
    args[0] += f" {ANNOTATED}"
    lines = [f"%u{i} = stablehlo.add %x{i}, %x{i + 1} : {SQUARE}" for i in reversed(range(ops))]
    return _wide(lines, args, [f"%u{i}" for i in range(ops)])


def ladder(ops: int) -> str:
    """Two chains joined at each rung; one is annotated at its start, the other at its end."""
    lines, left, right = [], "%x", "%y"
    for rung in range(ops // 2):
        lines.append(f"%a{rung} = stablehlo.add {left}, {right} : {SQUARE}")
        lines.append(f"%b{rung} = stablehlo.multiply {right}, {left} : {SQUARE}")
        left, right = f"%a{rung}", f"%b{rung}"
    lines.append(f"%r = stablehlo.add {left}, {right}{_annotation('data', '')} : {SQUARE}")
    return _function(lines, "%r", f"%x: {SQUARE}, %y: {SQUARE} {_sharding('', 'model')}")


def conflicts(ops: int) -> str:
    """A chain in which every tenth op is annotated with other axes than the start."""
    lines, previous = [], "%x"
    for op in range(ops):
        annotation = _annotation("model", "data") if op % 10 == 9 else ""
        lines.append(f"%{op} = stablehlo.negate {previous}{annotation} : {SQUARE}")
        previous = f"%{op}"
    return _function(lines, previous)


def axes(ops: int) -> str:
    """A chain annotated with one more of sixty axes every fifty ops."""
    mesh = ", ".join(f'"a{i}"=2' for i in range(60))
    type_ = "tensor<4194304x4194304x4194304xf32>"
    lines, previous = [], "%x"
    for op in range(ops):
        annotation = ""
        if op % 50 == 0:
            dims = ["{?}"] * 3
            dims[op // 50 % 3] = f'{{"a{op // 50 % 60}", ?}}'
            sharding = f"<@wide, [{', '.join(dims)}]>"
            annotation = f" {{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}}"
        lines.append(f"%{op} = stablehlo.negate {previous}{annotation} : {type_}")
        previous = f"%{op}"
    head = f"func.func @main(%x: {type_}) -> {type_} {{"
    return _module(
        [f"sdy.mesh @wide = <[{mesh}]>", head, *lines, f"return {previous} : {type_}", "}"]
    )


def meshes(ops: int) -> str:
    """As many meshes as functions."""
    lines = []
    for number in range(ops // 4):
        lines.append(f'sdy.mesh @mesh{number} = <["data"={4 + number % 7}, "model"=4]>')
        name = f"f{number}" if number else "main"
        annotation = ANNOTATED.replace("@mesh", f"@mesh{number}")
        lines.append(f"func.func @{name}(%x: {SQUARE} {annotation}) -> {SQUARE} {{")
        lines.append(f"%0 = stablehlo.negate %x : {SQUARE} return %0 : {SQUARE} }}")
    return _module(lines)


def constants(ops: int) -> str:
    """One constant with a user in every op of a chain."""
    lines, previous = [f"%c = stablehlo.constant dense<1.0> : {SQUARE}"], "%x"
    for op in range(ops):
        lines.append(f"%{op} = stablehlo.add {previous}, %c : {SQUARE}")
        previous = f"%{op}"
    return _function(lines, previous)


def wide_backward(operands: int) -> str:
    """A concatenate whose operands get shardings one by one from ops after it."""
    rows = f"tensor<{64 * operands}x64xf32>"
    args = [f"%x{i}: {SQUARE}" for i in range(operands)]
    names = ", ".join(f"%x{i}" for i in range(operands))
    types = ", ".join([SQUARE] * operands)
    lines = [f"%c = stablehlo.concatenate {names}, dim = 0 : ({types}) -> {rows}"]
    for user in range(operands):
        annotation = _annotation("", "data" if user % 2 else "model")
        lines.append(f"%u{user} = stablehlo.negate %x{user}{annotation} : {SQUARE}")
    return _wide(lines, args, [f"%u{user}" for user in range(operands)])


def barrier(values: int) -> str:
    """An optimization barrier of many values, which are summed after it."""
    names = ", ".join(f"%x{i}" for i in range(values))
    types = ", ".join([SQUARE] * values)
    lines = [f"%b:{values} = stablehlo.optimization_barrier {names} : {types}"]
    lines.append(f"%s0 = stablehlo.negate %b#0 : {SQUARE}")
    for value in range(1, values):
        lines.append(f"%s{value} = stablehlo.add %s{value - 1}, %b#{value} : {SQUARE}")
    return _function(lines, f"%s{values - 1}", ", ".join(_squares(values)))


def carried(values: int) -> str:
    """A loop that carries many values, each summed with its neighbour."""
    names = ", ".join(f"%i{i} = %x{i}" for i in range(values))
    types = ", ".join([SQUARE] * values)
    lines = [
        f"%w:{values} = stablehlo.while({names}) : {types} cond {{",
        "%c = stablehlo.constant dense<true> : tensor<i1>",
        "stablehlo.return %c : tensor<i1> } do {",
    ]
    for value in range(values):
        other = max(0, value - 1)
        lines.append(f"%d{value} = stablehlo.add %i{value}, %i{other} : {SQUARE}")
    returned = ", ".join(f"%d{value}" for value in range(values))
    lines.append(f"stablehlo.return {returned} : {types} }}")
    return _wide(lines, _squares(values), [f"%w#{value}" for value in range(values)])


def nested(ops: int) -> str:
    """A sequence of loops nested fifty deep."""
    lines, value, depth = [], "%x", 50
    for nest in range(max(1, ops // (5 * depth))):
        for level in range(depth):
            name = f"{nest}_{level}"
            lines.append(f"%w{name} = stablehlo.while(%i{name} = {value}) : {SQUARE} cond {{")
            lines.append(f"%c{name} = stablehlo.constant dense<true> : tensor<i1>")
            lines.append(f"stablehlo.return %c{name} : tensor<i1> }} do {{")
            value = f"%i{name}"
        lines.append(f"%n{nest} = stablehlo.negate {value} : {SQUARE}")
        value = f"%n{nest}"
        for level in reversed(range(depth)):
            lines.append(f"stablehlo.return {value} : {SQUARE} }}")
            value = f"%w{nest}_{level}"
    return _function(lines, value)


def branches(ops: int) -> str:
    """A case of many branches."""
    body = f"{{ %b = stablehlo.negate %x : {SQUARE} stablehlo.return %b : {SQUARE} }}"
    cases = ",\n".join([body] * (ops // 2))
    lines = [f'%r = "stablehlo.case"(%i) ({cases}) : (tensor<i32>) -> {SQUARE}']
    return _function(lines, "%r", f"%x: {SQUARE} {ANNOTATED}, %i: tensor<i32>")


def own_rules(ops: int) -> str:
    """Custom calls with different sharding rules."""
    lines, previous, old = [], "%x", SQUARE
    for op in range(ops):
        size = 64 * (op + 2)
        new = f"tensor<64x{size}xf32>"
        rule = f"([i, j])->([i, k]) {{i=64, j={size - 64}, k={size}}}, custom"
        attribute = f"{{sdy.sharding_rule = #sdy.op_sharding_rule<{rule}>}}"
        lines.append(f"%{op} = stablehlo.custom_call @f({previous}) {attribute} : ({old}) -> {new}")
        previous, old = f"%{op}", new
    head = f"func.func @main(%x: {SQUARE} {ANNOTATED}) -> {old} {{"
    return _module([head, *lines, f"return {previous} : {old}", "}"])


def one_callee(ops: int) -> str:
    """One function with many calls."""
    lines, previous = [], "%x"
    for call in range(ops // 3):
        lines.append(f"%{call} = func.call @f({previous}) : ({SQUARE}) -> {SQUARE}")
        previous = f"%{call}"
    callee = f"func.func private @f(%a: {SQUARE}) -> {SQUARE} {{"
    body = f"%0 = stablehlo.negate %a : {SQUARE} return %0 : {SQUARE} }}"
    return _function(lines, previous).replace("\n}\n}", f"\n}}\n{callee} {body}\n}}")


def constraints(ops: int) -> str:
    """A chain of sharding constraints."""
    lines, previous = [], "%x"
    for op in range(ops // 2):
        lines.append(f"%n{op} = stablehlo.negate {previous} : {SQUARE}")
        sharding = '<@mesh, [{"data"}, {?}]>'
        lines.append(f"%{op} = sdy.sharding_constraint %n{op} {sharding} : {SQUARE}")
        previous = f"%{op}"
    return _function(lines, previous)


def one_group(ops: int) -> str:
    """All values of a chain in one sharding group, by groups that overlap."""
    lines, previous = [], "%x"
    for op in range(ops // 3):
        lines.append(f"%{op} = stablehlo.negate {previous} : {SQUARE}")
        previous = f"%{op}"
        lines.append(f"sdy.sharding_group {previous} group_id={op} : {SQUARE}")
        lines.append(f"sdy.sharding_group {previous} group_id={op + 1} : {SQUARE}")
    return _function(lines, previous)


def manual(ops: int) -> str:
    """A sequence of manual computations."""
    lines, previous, local = [], "%x", "tensor<16x64xf32>"
    sharding = '[<@mesh, [{"data", ?}, {?}]>]'
    for op in range(ops // 4):
        ends = f'in_shardings={sharding} out_shardings={sharding} manual_axes={{"data"}}'
        lines.append(f"%m{op} = sdy.manual_computation({previous}) {ends} (%a: {local}) {{")
        lines.append(f"%n = stablehlo.negate %a : {local} sdy.return %n : {local}")
        lines.append(f"}} : ({SQUARE}) -> {SQUARE}")
        previous = f"%m{op}"
    return _function(lines, previous, f"%x: {SQUARE} {_sharding('', 'model')}")


def priorities(arguments: int) -> str:
    """Arguments of sixteen user priorities, summed."""
    args = [
        f"%x{i}: {SQUARE} {_sharding('data', 'model', priority=i % 16)}" for i in range(arguments)
    ]
    lines = [f"%s0 = stablehlo.negate %x0 : {SQUARE}"]
    lines += [f"%s{i} = stablehlo.add %s{i - 1}, %x{i} : {SQUARE}" for i in range(1, arguments)]
    return _function(lines, f"%s{arguments - 1}", ", ".join(args))


def locations(ops: int) -> str:
    """A chain whose ops have locations, each named after the one before."""
    lines, previous = [], "%x"
    for op in range(ops):
        lines.append(f"%{op} = stablehlo.negate {previous} : {SQUARE} loc(#loc{op})")
        previous = f"%{op}"
    names = [f'#loc{op} = loc("n{op}"(#loc{op - 1}))' for op in range(1, ops)]
    return "\n".join([_function(lines, previous), '#loc0 = loc("f.py":1:1)', *names, ""])


STRESS: dict[str, Callable[[int], str]] = {
    family.__name__.replace("_", "-"): family
    for family in (
        zigzag,
        ladder,
        conflicts,
        axes,
        meshes,
        constants,
        wide_backward,
        barrier,
        carried,
        nested,
        branches,
        own_rules,
        one_callee,
        constraints,
        one_group,
        manual,
        priorities,
        locations,
    )
}
"""These families by name."""
