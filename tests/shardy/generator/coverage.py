"""Counts what random modules hit: ops, features of `sdy`, rules, conflicts, trimming."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

import shardcore
from jaxlib.mlir import ir

from tests.oracle import text as notation
from tests.oracle.sharding import TensorSharding
from tests.shardy import reference
from tests.shardy.generator import pipelines, programs

FEATURES = {
    "constraint": r"sdy\.sharding_constraint",
    "group": r"sdy\.sharding_group",
    "manual computation": r"sdy\.manual_computation",
    "manual computation inside another": r"manual_computation\((?:(?!\n}).)*manual_computation\(",
    "named computation": r"sdy\.named_computation",
    "barrier": r"sdy\.propagation_barrier",
    "reshard": r"sdy\.reshard",
    "call": r"func\.call",
    "call in a private function": r"private(?:(?!\n}).)*func\.call",
    "loop": r"stablehlo\.while",
    "branch": r'"stablehlo\.(case|if)"',
    "optimization barrier": r"stablehlo\.optimization_barrier",
    "token": r"stablehlo\.token",
    "own rule": r"sdy\.sharding_rule",
    "permutation factor": r"permutation=\{",
    "blocked factor": r"blocked_propagation=\{",
    "several meshes": r"sdy\.mesh .*\n.*sdy\.mesh ",
    "inlined mesh": r"<mesh<",
    "maximal mesh": r"<\[\], device_ids",
    "device ids": r"\], device_ids=\[\d+,",
    "axis of size one": r'"\w+"=1\b',
    "sub-axis": r'":\(\d+\)\d+',
    "axis of odd size": r'"\w+"=(3|5)\b',
    "priority": r"\}p\d",
    "gap in priorities": r"\}p7",
    "closed empty dim": r"\{\}",
    "open empty dim": r"\{\?\}",
    "replicated": r"replicated=\{",
    "unreduced": r"unreduced=(max|min)?\{",
    "scalar": r"tensor<f32>",
    "constant": r"stablehlo\.constant",
    "iota": r"stablehlo\.iota",
    "side effect": r"has_side_effect = true",
    "chlo": r'"chlo\.',
    "dynamic shape": r'"stablehlo\.(real_dynamic_slice|dynamic_(reshape|broadcast_in_dim|iota))',
    "composite": r"stablehlo\.composite",
    "tuple": r"stablehlo\.tuple",
    "dim without elements": r"tensor<(\d+x)*0x",
}


def features(text: str) -> Counter[str]:
    """The features and ops in a module's text."""
    hits: Counter[str] = Counter()
    for name, pattern in FEATURES.items():
        flags = re.DOTALL if "inside" in name or "in a private" in name else 0
        hits[name] += re.search(pattern, text, flags) is not None
    hits.update({f"op {name}": 1 for name in set(re.findall(r'"stablehlo\.(\w+)"', text))})
    hits.update(
        {f"target {name}": 1 for name in set(re.findall(r'call_target_name = "([^"]+)"', text))}
    )
    return hits


def outcomes(text: str) -> Counter[str]:
    """The passes that change the module, and what factors look like after propagation."""
    hits: Counter[str] = Counter()
    last = reference.canonical(text)
    passes = pipelines.expanded(dedup=False)
    kept = [
        one.replace("keep-sharding-rules=false", "keep-sharding-rules=true", 1) for one in passes
    ]
    for one, printed in zip(kept, reference.stages(text, kept), strict=True):
        name = one.split("{")[0]
        hits[f"pass {name}"] += printed != last
        hits.update(f"trimming {way}" for way in _ways_of_trimming(name, last, printed))
        last = printed
        if name == "sdy-user-priority-propagate":
            hits.update(set(_factors(printed)))
    return hits


def of_seed(seed: int, on_step: Callable[[str], None]) -> list[Counter[str]]:
    """Everything that the module of a seed hits, for `workers.run`."""
    text = programs.make(seed)
    try:
        return [features(text) + outcomes(text)]
    except reference.RejectedError:
        return [features(text)]


def _ways_of_trimming(name: str, before: str, after: str) -> Iterator[str]:
    """What a pass that trims shardings did to some of them."""
    if "non-divisible" in name:
        if after.count('":(') > before.count('":('):
            yield "an axis to the part that divides"
        if after.count('"') < before.count('"'):
            yield "axes that do not divide"
    elif "sub-axes" in name and after != before:
        yield "sub-axes of inputs and outputs"
    elif "close" in name and after.count("?") < before.count("?"):
        yield "openness"


def _factors(printed: str) -> Iterator[str]:
    """The rules in a module, and how the shardings of each factor relate."""
    families = shardcore.rules.registered()
    with reference.context():
        module = ir.Module.parse(printed)
        for op in reference.walk(module.operation):
            if "sdy.sharding_rule" not in op.attributes:
                continue
            rule = notation.parse_rule(str(op.attributes["sdy.sharding_rule"]))
            is_own = rule.is_custom or op.name not in families
            yield f"rule {'of its own' if is_own else families[op.name]}"
            shardings = [*map(_sharding, op.operands), *map(_sharding, op.results)]
            mappings = [*rule.operands, *rule.results]
            found: dict[int, list[tuple[object, ...]]] = {}
            for sharding, mapping in zip(shardings, mappings, strict=True):
                for at, factors in enumerate(mapping):
                    if len(factors) == 1 and sharding and at < len(sharding.dims):
                        found.setdefault(factors[0], []).append(tuple(sharding.dims[at].axes))
            for lists in found.values():
                yield from _relations(lists)


def _relations(lists: list[tuple[object, ...]]) -> Iterator[str]:
    for at, left in enumerate(lists):
        for right in lists[at + 1 :]:
            common = min(len(left), len(right))
            names = [{getattr(axis, "name", str(axis)) for axis in side} for side in (left, right)]
            if left == right:
                yield "factor agrees" if left else "factor unsharded"
            elif left[:common] == right[:common]:
                yield "factor stuck at a prefix" if common else "factor stuck at nothing"
            elif names[0] & names[1]:
                yield "factor conflict about parts or order of an axis"
            else:
                yield "factor conflict between axes"


def _sharding(value: ir.Value) -> TensorSharding | None:
    owner = value.owner
    if isinstance(owner, ir.Block):
        function = owner.owner
        if function.operation.name != "func.func" or "arg_attrs" not in function.attributes:
            return None
        at = ir.BlockArgument(value).arg_number
        entry = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[at])
        has_one = "sdy.sharding" in entry
        return notation.parse_sharding(str(entry["sdy.sharding"])) if has_one else None
    if "sdy.sharding" not in owner.attributes:
        return None
    listed = notation.parse_sharding_per_value(str(owner.attributes["sdy.sharding"]))
    return list(listed)[ir.OpResult(value).result_number]
