"""Families of one op, call or function with thousands of tensors; the argument is their number."""

from __future__ import annotations

from collections.abc import Callable

from benches.families import SQUARE, _module, _sharding
from benches.stress import _annotation, _function, _squares, _wide

COLUMN = "tensor<64xf32>"
SCALAR = "tensor<f32>"


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def _types(count: int) -> str:
    return ", ".join([SQUARE] * count)


def _factor(index: int) -> str:
    return "ijklmnopqrstuvwxyz"[index] if index < 18 else f"z_{index - 17}"


def _custom(count: int, factors: list[tuple[int, int]]) -> str:
    """An op from ``count`` squares to as many, each with these two factors, by a custom rule."""
    tensors = ", ".join(f"[{_factor(row)}, {_factor(column)}]" for row, column in factors)
    last = max(max(pair) for pair in factors)
    sizes = ", ".join(f"{_factor(index)}=64" for index in range(last + 1))
    rule = f"#sdy.op_sharding_rule<({tensors})->({tensors}) {{{sizes}}}, custom>"
    operands = ", ".join(_names("%x", count))
    types = f"({_types(count)}) -> ({_types(count)})"
    call = f"%r:{count} = stablehlo.custom_call @f({operands})"
    return f"{call} {{sdy.sharding_rule = {rule}}} : {types}"


def own_factors(count: int) -> str:
    """An op whose operands and results have two factors each that no others have."""
    factors = [(2 * i, 2 * i + 1) for i in range(count)]
    dims = [("data", "model"), ("model", "data")]
    args = [f"%x{i}: {SQUARE} {_sharding(*dims[i % 2])}" for i in range(count)]
    return _wide([_custom(count, factors)], args, _names("%r#", count))


def _backward(count: int, factors: list[tuple[int, int]]) -> str:
    """An op with these factors, whose operands have annotated users, one by one."""
    lines = [_custom(count, factors)]
    for user in range(count):
        annotation = _annotation("", "data" if user % 2 else "model")
        lines.append(f"%u{user} = stablehlo.negate %x{user}{annotation} : {SQUARE}")
    args = [f"{name}: {SQUARE}" for name in _names("%x", count)]
    return _wide(lines, args, [*_names("%u", count), "%r#0"])


def own_factors_backward(count: int) -> str:
    """:func:`own_factors` whose operands get shardings one by one from ops after it."""
    return _backward(count, [(2 * i, 2 * i + 1) for i in range(count)])


def own_factors_in_parts(count: int) -> str:
    """:func:`own_factors` along a sub-axis whose size is no power of two."""
    text = own_factors_backward(count).replace('"data"=4', '"data"=12')
    return text.replace('{"data"}', '{"data":(1)6}')


def shared_factor(count: int) -> str:
    """An op whose tensors have one factor in common, and one of their own."""
    factors = [(0, i + 1) for i in range(count)]
    args = [f"%x{i}: {SQUARE} {_sharding('data', 'model') if i % 2 else ''}" for i in range(count)]
    return _wide([_custom(count, factors)], args, _names("%r#", count))


def shared_factor_backward(count: int) -> str:
    """:func:`shared_factor` whose operands get shardings one by one from ops after it."""
    return _backward(count, [(0, i + 1) for i in range(count)])


def shared_factor_round(count: int) -> str:
    """An op with a shared factor, whose results are each added to the next operand."""
    lines = [_custom(count, [(0, i + 1) for i in range(count)])]
    for i in range(count):
        lines.append(f"%u{i} = stablehlo.add %r#{i}, %x{(i + 1) % count} : {SQUARE}")
    args = _squares(count, _sharding("", "model"))
    return _wide(lines, args, _names("%u", count))


def own_factors_closed(count: int) -> str:
    """:func:`own_factors` with closed shardings that disagree: all have to be resharded."""
    dims = ['[{"data"}, {}]', '[{"model"}, {"data"}]']
    operand, result = (
        f"{SQUARE} {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}" for sharding in dims
    )
    args = [f"{name}: {operand}" for name in _names("%x", count)]
    head = f"func.func @main({', '.join(args)}) -> ({', '.join([result] * count)}) {{"
    call = _custom(count, [(2 * i, 2 * i + 1) for i in range(count)])
    last = f"return {', '.join(_names('%r#', count))} : {_types(count)}"
    return _module([head, call, last, "}"])


def results_of_one(count: int) -> str:
    """An op without a rule, of many results, one of which gets a sharding from its user."""
    lines = [f"%r:{count} = stablehlo.custom_call @f(%x) : ({SQUARE}) -> ({_types(count)})"]
    for user in range(count):
        annotation = _annotation("", "model") if user == count - 1 else ""
        lines.append(f"%u{user} = stablehlo.negate %r#{user}{annotation} : {SQUARE}")
    return _wide(lines, [f"%x: {SQUARE}"], _names("%u", count))


def reduce(count: int) -> str:
    """A reduction of many tensors at once."""
    inits = ", ".join(["%z"] * count)
    args = [*_names("%a", count), *_names("%b", count)]
    body = "\n".join(f"%s{i} = stablehlo.add %a{i}, %b{i} : {SCALAR}" for i in range(count))
    scalars, columns = ", ".join([SCALAR] * count), ", ".join([COLUMN] * count)
    sums = ", ".join(_names("%s", count))
    lines = [
        f"func.func @main({', '.join(_squares(count))}) -> ({columns}) {{",
        f"%z = stablehlo.constant dense<0.0> : {SCALAR}",
        f'%r:{count} = "stablehlo.reduce"({", ".join(_names("%x", count))}, {inits})',
        "<{dimensions = array<i64: 1>}> ({",
        f"^bb0({', '.join(f'{arg}: {SCALAR}' for arg in args)}):",
        body,
        f'"stablehlo.return"({sums}) : ({scalars}) -> ()',
        f"}}) : ({_types(count)}, {scalars}) -> ({columns})",
        f"return {', '.join(_names('%r#', count))} : {columns}",
        "}",
    ]
    return _module(lines)


def rotating(count: int) -> str:
    """A loop that rotates its values."""
    carried = ", ".join(f"%i{i} = %x{i}" for i in range(count))
    rotated = ", ".join(f"%i{(i + 1) % count}" for i in range(count))
    lines = [
        f"%w:{count} = stablehlo.while({carried}) : {_types(count)} cond {{",
        "%c = stablehlo.constant dense<true> : tensor<i1>",
        "stablehlo.return %c : tensor<i1> } do {",
        f"stablehlo.return {rotated} : {_types(count)} }}",
    ]
    return _wide(lines, _squares(count), _names("%w#", count))


def manual_tensors(count: int) -> str:
    """A manual computation of many tensors."""
    local = "tensor<16x64xf32>"
    sharding = '<@mesh, [{"data", ?}, {?}]>'
    sharding = f"[{', '.join([sharding] * count)}]"
    args = ", ".join(f"%a{i}: {local}" for i in range(count))
    ends = f'in_shardings={sharding} out_shardings={sharding} manual_axes={{"data"}}'
    lines = [f"%m:{count} = sdy.manual_computation({', '.join(_names('%x', count))}) {ends}"]
    lines.append(f"({args}) {{")
    lines += [f"%n{i} = stablehlo.negate %a{i} : {local}" for i in range(count)]
    lines.append(f"sdy.return {', '.join(_names('%n', count))} : {', '.join([local] * count)}")
    lines.append(f"}} : ({_types(count)}) -> ({_types(count)})")
    return _wide(lines, _squares(count, _sharding("", "model")), _names("%m#", count))


def wide_calls(count: int) -> str:
    """A function of many arguments and results, called twice."""
    types = f"({_types(count)}) -> ({_types(count)})"
    once = f"%a:{count} = func.call @f({', '.join(_names('%x', count))}) : {types}"
    twice = f"%b:{count} = func.call @f({', '.join(_names('%a#', count))}) : {types}"
    main = _wide([once, twice], _squares(count), _names("%b#", count))
    args = ", ".join(f"%x{i}: {SQUARE}" for i in range(count))
    body = [f"func.func private @f({args}) -> ({_types(count)}) {{"]
    body += [f"%{i} = stablehlo.negate %x{i} : {SQUARE}" for i in range(count)]
    body.append(f"return {', '.join(_names('%', count))} : {_types(count)} }}")
    return main.removesuffix("}\n") + "\n".join([*body, "}\n"])


def same_result(count: int) -> str:
    """A function that returns one value many times."""
    lines = [f"%0 = stablehlo.negate %x : {SQUARE}"]
    return _wide(lines, [f"%x: {SQUARE} {_sharding('data', 'model')}"], ["%0"] * count)


def same_operand(count: int) -> str:
    """A concatenate of one value with itself, many times."""
    rows = f"tensor<{64 * count}x64xf32>"
    operands = ", ".join(["%x"] * count)
    lines = [f"%c = stablehlo.concatenate {operands}, dim = 0 : ({_types(count)}) -> {rows}"]
    lines.append(f"%s = stablehlo.slice %c [0:64, 0:64] : ({rows}) -> {SQUARE}")
    return _function(lines, "%s")


WIDE: dict[str, Callable[[int], str]] = {
    family.__name__.replace("_", "-"): family
    for family in (
        own_factors,
        own_factors_backward,
        own_factors_in_parts,
        shared_factor,
        shared_factor_backward,
        shared_factor_round,
        own_factors_closed,
        results_of_one,
        reduce,
        rotating,
        manual_tensors,
        wide_calls,
        same_result,
        same_operand,
    )
}
"""These families by name."""
