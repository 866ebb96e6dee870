"""Target: anything as an argument of anything public."""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import types
from collections.abc import Callable
from random import Random
from typing import Any

import shardcore
import shardcore.calculus
import shardcore.gspmd
import shardcore.rules

from tests.fuzz.surfaces import hostile, outcome

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>},
                %w: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {?}]>})
    -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.tanh %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""
MODULES = (shardcore, shardcore.calculus, shardcore.gspmd, shardcore.rules)
DUNDERS = (
    "__eq__",
    "__lt__",
    "__hash__",
    "__repr__",
    "__getitem__",
    "__contains__",
    "__len__",
    "__iter__",
)
LOOKUPS = {"__getitem__", "elements", "factor_table", "sharded_size"}
"""These say with a KeyError or an IndexError that there is no such value or dim."""
UNTRIED = {
    # Records that other functions fill in and return.
    ("shardcore", "Comparison"),
    ("shardcore", "Cost"),
    ("shardcore", "Partitioned"),
    ("shardcore.calculus", "ChainStrategy"),
    ("shardcore.calculus", "Estimate"),
    ("shardcore.calculus", "Hardware"),
    ("shardcore.calculus", "Strategy"),
    ("shardcore.calculus", "Topology"),
    # What they register stays for the inputs after them: a seed would not say everything.
    ("shardcore", "rule"),
    ("shardcore", "data_flow_edges"),
    ("shardcore.rules", "rule"),
    ("shardcore.rules", "data_flow_edges"),
    ("shardcore.rules", "register"),
}


@functools.cache
def samples() -> list[Any]:
    """An object of each public class, where there is a plain way to one."""
    mesh = shardcore.Mesh({"x": 2, "y": 4})
    module = shardcore.Module.parse(PROGRAM)
    result = module.propagate()
    sharding = shardcore.TensorSharding.parse('<@mesh, [{"x"}, {"y":(2)2, ?}p1]>', mesh)
    rule = shardcore.OpShardingRule.parse("i k, k j -> i j", [[8, 8], [8, 16]], [[8, 16]])
    found = [mesh, module, result, sharding, rule, result.cost("tpu-v5p"), result.partition()]
    found += [
        shardcore.AxisRef("x"),
        shardcore.DimSharding(["x"]),
        shardcore.calculus,
        shardcore.gspmd,
    ]
    found += [*result.values(), *module.ops(), *result.partition().arguments]
    found += [
        shardcore.HloSharding.parse("{devices=[2,2]<=[4]}"),
        shardcore.PassManager.parse("builtin.module()"),
    ]
    return found


def run(seed: int) -> None:
    """Calls something public with the arguments of `seed`, and uses what it returns."""
    random = Random(f"arguments {seed}")
    target: Any = random.choice([*MODULES, *MODULES, *samples()])
    for _ in range(random.randint(1, 3)):
        target = _step(random, target)
        if not _is_ours(target):
            return
        outcome.of_call(functools.partial(repr, target))


def _is_ours(target: Any) -> bool:
    home = target.__name__ if isinstance(target, types.ModuleType) else type(target).__module__
    return home.split(".")[0] == "shardcore"


def _step(random: Random, target: Any) -> Any:
    """Takes an attribute of `target` and, if it can be called, calls it."""
    if isinstance(target, types.ModuleType):
        public = getattr(target, "__all__", None) or dir(target)
        names = [name for name in public if (target.__name__, name) not in UNTRIED]
    else:
        names = [name for name in dir(target) if not name.startswith("_")]
        names += [name for name in DUNDERS if hasattr(target, name)]
    names = [name for name in names if not name.startswith("__") or name in DUNDERS]
    if not names:
        return None
    name = random.choice(names)
    found = outcome.of_call(lambda: getattr(target, name))
    if callable(found) and not isinstance(found, types.ModuleType):
        is_lookup = name in LOOKUPS
        return outcome.of_call(lambda: _first(_call(random, found)), is_lookup=is_lookup)
    return found


def _call(random: Random, function: Callable[..., Any]) -> Any:
    positional, named = _arguments(random, function)
    try:
        return function(*positional, **named)
    except Exception as error:
        if sys.version_info >= (3, 11):
            error.add_note(f"in {function} of {len(positional)} and {list(named)}")
        raise


def _first(result: Any) -> Any:
    """The result, or the last of the first thousand where it is an iterator."""
    if not inspect.isgenerator(result):
        return result
    return next(iter(list(itertools.islice(result, 1000))[-1:]), None)


def _arguments(random: Random, function: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
    """Hostile values for the parameters of a function; some are left out."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [hostile.value(random, samples()) for _ in range(random.randrange(4))], {}
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in parameters:
        is_needed = parameter.default is parameter.empty
        if random.random() > (0.95 if is_needed else 0.3):
            continue
        value = hostile.value(random, samples())
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            positional.append(value)
        elif parameter.kind is not parameter.VAR_KEYWORD:
            named[parameter.name] = value
    return positional, named
