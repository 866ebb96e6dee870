"""Ops of `sdy` with a value each: constraints, groups, barriers, reshards."""

from __future__ import annotations

from tests.shardy.generator.scope import Scope


def constraint(scope: Scope) -> None:
    value = scope.any()
    result = scope.define(value.shape)
    sharding = scope.sharding(value.shape)
    scope.emit(f"{result.name} = sdy.sharding_constraint {value.name} <{sharding}> : {value.type}")


def reshard(scope: Scope) -> None:
    value = scope.any()
    result = scope.define(value.shape)
    scope.emit(
        f"{result.name} = sdy.reshard {value.name} <{scope.sharding(value.shape)}> : {value.type}"
    )


def propagation_barrier(scope: Scope) -> None:
    value = scope.any()
    result = scope.define(value.shape)
    direction = scope.rng.choice(["NONE", "FORWARD", "BACKWARD"])
    head = f"{result.name} = sdy.propagation_barrier {value.name}"
    scope.emit(f"{head} allowed_direction={direction} : {value.type}")


def pair(scope: Scope) -> None:
    """Groups the result of an op with another value: its operand depends on that one."""
    value = scope.any()
    operand, result = scope.fresh(value.shape), scope.define(value.shape)
    number = 10 * len(scope.module.groups) + 2
    scope.module.groups[number] = (value.type, scope.manual_scope)
    scope.emit(
        f'{result.name} = "stablehlo.cosine"({operand.name}) : ({value.type}) -> {value.type}'
    )
    for member in scope.rng.sample([value, result], 2):
        scope.emit(f"sdy.sharding_group {member.name} group_id={number} : {member.type}")


def group(scope: Scope) -> None:
    """Adds a value to a group, usually one whose members look like it."""
    module = scope.module
    value = scope.any()
    key = (value.type, scope.manual_scope)
    same = [number for number, of in module.groups.items() if of == key]
    if same and scope.rng.random() < 0.8:
        number = scope.rng.choice(same)
    else:
        number = scope.rng.choice([0, 1, 5, 7, 33, 4000, -2]) + 10 * len(module.groups)
        if number in module.groups and scope.rng.random() < 0.98:
            return
        module.groups[number] = key
    scope.emit(f"sdy.sharding_group {value.name} group_id={number} : {value.type}")
