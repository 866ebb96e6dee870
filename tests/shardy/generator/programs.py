"""Whole modules: meshes, functions that call each other, and what they are made of."""

from __future__ import annotations

from random import Random

from shardcore.shardy import default_shardy

from tests.shardy.generator import ops, rare_ops, reductions, regions, sdy_ops, templates
from tests.shardy.generator.scope import Callee, Features, Module, Scope, Value
from tests.shardy.generator.shardings import Style

DEEPEST = 3


def make(seed: int) -> str:
    """The module of a seed."""
    rng = Random(f"module {seed}")
    module = Module(rng, _features(rng), _style(rng))
    module.budget = rng.choice([3, 6, 10, 16, 24, 40])
    functions = []
    if module.features.calls:
        for number in range(rng.randint(1, 3)):
            functions.append(_function(module, f"f{number}", rng.randint(1, 5)))
    functions.append(_function(module, "main", module.budget))
    if rng.random() < 0.5:
        functions.reverse()
    written = [
        f"sdy.mesh {mesh.reference} = <{mesh.text}>"
        for mesh in module.meshes
        if mesh.reference.startswith("@")
    ]
    return "\n".join([*written, *functions]) + "\n"


def _features(rng: Random) -> Features:
    return Features(
        regions=rng.random() < 0.35,
        manual=rng.random() < 0.3,
        calls=rng.random() < 0.25,
        groups=rng.random() < 0.2,
        tokens=rng.random() < 0.1,
        inlined=rng.random() < 0.1,
        named=rng.random() < 0.15,
        rare=rng.random() < 0.2,
        # Only newer versions have other reductions than the sum.
        reductions=default_shardy() != "0.10" and rng.random() < 0.1,
        on_arguments=rng.choice([0.2, 0.5, 0.8]),
        annotated=rng.choice([0.0, 0.05, 0.2, 0.5, 0.9]),
    )


def _style(rng: Random) -> Style:
    return Style(
        sub_axes=rng.choice([0.0, 0.2, 0.7]),
        open_dims=rng.choice([0.1, 0.4, 0.9]),
        priorities=rng.choice([0.0, 0.0, 0.3, 0.7]),
        replicated=rng.choice([0.0, 0.15]),
        unreduced=rng.choice([0.0] * 30 + [0.2]),
        # Only newer versions have other reductions than the sum.
        other_reductions=0.0 if default_shardy() == "0.10" else 0.3,
        uneven=rng.choice([0.0, 0.2, 0.8]),
        density=rng.choice([0.2, 0.45, 0.8]),
    )


def fill(scope: Scope, count: int) -> None:
    """Add about `count` ops."""
    for _ in range(scope.rng.randint(0 if scope.depth > 1 else 1, count)):
        _add(scope)


def _add(scope: Scope) -> None:
    rng, features = scope.rng, scope.module.features
    roll = rng.random()
    nested = scope.depth < DEEPEST
    if roll < 0.12:
        sdy_ops.constraint(scope)
    elif roll < 0.14:
        rng.choice([sdy_ops.reshard, sdy_ops.propagation_barrier])(scope)
    elif features.groups and roll < 0.28:
        rng.choice([sdy_ops.group, sdy_ops.group, sdy_ops.pair])(scope)
    elif features.regions and nested and roll < 0.36:
        makers = [regions.loop, regions.branch, *[regions.named_computation] * features.named]
        rng.choice(makers)(scope, fill)
    elif features.manual and nested and roll < 0.44:
        regions.manual_computation(scope, fill)
    elif features.reductions and roll < 0.48:
        reductions.chain(scope)
    elif features.tokens and roll < 0.5:
        ops.tokens(scope)
    elif scope.module.callees and roll < 0.55:
        call(scope)
    elif roll < 0.7:
        templates.op(scope)
    elif features.rare and roll < 0.8:
        rng.choice(rare_ops.MAKERS)(scope)
    else:
        rng.choice(ops.MAKERS)(scope)


def call(scope: Scope) -> None:
    callee = scope.rng.choice(scope.module.callees)
    operands = [scope.of(v.shape, v.dtype) for v in callee.operands]
    prefix = scope.module.name()
    results = [Value(f"{prefix}#{at}", v.shape, v.dtype) for at, v in enumerate(callee.results)]
    scope.pool += results
    types = (", ".join(v.type for v in operands), ", ".join(v.type for v in results))
    used = ", ".join(value.name for value in operands)
    left = f"{prefix}:{len(results)} = " if results else ""
    sharding = scope.attribute(results)
    scope.emit(f"{left}func.call @{callee.name}({used}){sharding} : ({types[0]}) -> ({types[1]})")


def _function(module: Module, name: str, budget: int) -> str:
    rng, features = module.rng, module.features
    scope = Scope(module, 1)
    scope.manual_scope = module.scope_number()
    scope.may_add_arguments = True
    for _ in range(rng.randint(1, 3)):
        _argument(scope)
    fill(scope, budget)
    results = [_result(scope) for _ in range(rng.choice([1, 1, 2, 3]))]
    scope.keep_alive(results)
    arguments = [
        f"{v.name}: {v.type}{_on_boundary(scope, v, features.on_arguments)}"
        for v in scope.arguments
    ]
    types = [f"{v.type}{_on_boundary(scope, v, 0.25)}" for v in results]
    used = ", ".join(v.name for v in results)
    visibilities = ["private "] * 4 + ["", "nested "] if name != "main" else ["", "public "]
    visibility = rng.choice(visibilities)
    if name != "main":
        module.callees.append(Callee(name, list(scope.arguments), results))
    return (
        f"func.func {visibility}@{name}({', '.join(arguments)}) -> ({', '.join(types)}) {{\n"
        f"{scope.body()}\nfunc.return {used} : {', '.join(v.type for v in results)}\n}}"
    )


def _argument(scope: Scope) -> None:
    rng = scope.rng
    sizes = [2, 3, 4, 4, 6, 8, 8, 8, 12, 16, 16, 24, 1, 5, 7, 48, 30]
    sizes += [0] * scope.module.features.rare
    shape = tuple(rng.choice(sizes) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3, 4])))
    value = Value(scope.module.name(), shape)
    scope.arguments.append(value)
    scope.pool.append(value)


def _result(scope: Scope) -> Value:
    """Late values more often than early ones, of any type."""
    pool = scope.pool
    return pool[-1 - min(scope.rng.randrange(len(pool)) for _ in range(2))]


def _on_boundary(scope: Scope, value: Value, chance: float) -> str:
    if scope.rng.random() > chance:
        return ""
    return f" {{sdy.sharding = #sdy.sharding<{scope.sharding(value.shape)}>}}"
