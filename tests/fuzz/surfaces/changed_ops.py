"""Target: ops that are changed, or have types of other dialects or sharding rules of their own.

What is known of values of such types, and of ops with such rules, is less than verification asks of
others; passes and programs of one device have to bear it.
"""

from __future__ import annotations

import re
import string
from dataclasses import replace
from functools import cache
from random import Random

from shardcore import Module, PassManager, ShardcoreError

from tests.fuzz.surfaces import outcome
from tests.shardy.verification.case import Case
from tests.shardy.verification.sound import sound
from tests.shardy.verification.ways import variants

TENSOR = re.compile(r"tensor<((?:[\d?]+x)*).*>")
PIPELINES = [
    "func.func(sdy-pad-for-divisibility)",
    "func.func(sdy-explicit-gather-scatter-batching)",
    "sdy-import-pipeline,sdy-user-priority-propagate,"
    "sdy-export-pipeline{enable-insert-explicit-collectives=true}",
    "sdy-propagation-pipeline,func.func(sdy-insert-explicit-reshards{enable-full-version=true}),"
    "sdy-convert-global-to-local",
]
TARGETS = [
    "Sharding", "SPMDFullToShardShape", "LayoutConstraint", "ApproxTopK", "PartialReduce", "TopK",
    "X64Combine", "X64SplitHigh", "mhlo.topk", "Cholesky", "LuDecomposition", "lapack_sgtsv", "Qr",
    "cu_threefry2x32_ffi", "nothing.known",
]  # fmt: skip


def run(seed: int) -> None:
    """Partitions, costs and transforms the program of `seed`."""
    random = Random(f"changed ops {seed}")
    text = program(random)
    try:
        result = Module.parse(text).propagate()
    except ShardcoreError:
        return
    for policy in ("least", "shardy", "xla"):
        outcome.of_call(lambda policy=policy: result.partition(policy).sent_bytes)
    outcome.of_call(lambda: result.cost("v5p"))
    for pipeline in PIPELINES:
        manager = PassManager.parse(f"builtin.module({pipeline})", shardy="0.10")
        outcome.of_call(lambda manager=manager: manager.run(Module.parse(text)))


@cache
def changed() -> list[Case]:
    """The sound ops and all their variants."""
    return [other for case in sound() for other in (case, *variants(case))]


def program(random: Random) -> str:
    """A program of one op whose operands are sharded."""
    change = random.choice([elements, value, rule, custom_call])
    case = change(random, random.choice(sound() if change is rule else changed()))
    args = ", ".join(
        f"%a{at}: {ty}{sharding(random, ty)}"
        for at, ty in enumerate(case.operands)
        if at not in case.constants
    )
    constants = [
        f'  %a{at} = "stablehlo.constant"() {{value = {text} : {ty}}} : () -> {ty}'
        for at, text in case.constants.items()
        for ty in case.operands[at : at + 1]
    ]
    results = ", ".join(case.results)
    names = ", ".join(f"%r#{at}" for at in range(len(case.results)))
    lines = [
        'sdy.mesh @m = <["a"=2, "b"=3]>',
        f"func.func @main({args}) -> ({results}) {{",
        *constants,
        f"  {case.op()}",
        f"  return {names} : {results}" if names else "  return",
        "}",
        case.more,
    ]
    return "\n".join(lines)


def sharding(random: Random, ty: str) -> str:
    """An attribute that shards one or two dims of a tensor."""
    match = TENSOR.fullmatch(ty)
    rank = match[1].count("x") if match else 0
    if rank == 0:
        return ""
    dims = ["{?}"] * rank
    for axis in ("a", "b"):
        at = random.randrange(rank)
        dims[at] = f'{{"{axis}", ?}}' if dims[at] == "{?}" else dims[at]
    return f" {{sdy.sharding = #sdy.sharding<@m, [{', '.join(dims)}]>}}"


def elements(_: Random, case: Case) -> Case:
    """Quantized tensors in place of others."""

    def quantized(types: tuple[str, ...]) -> tuple[str, ...]:
        element = "!quant.uniform<i8:f32, 2.0>"
        return tuple(re.sub(r"(f32|i32|f64|bf16)(?=>$)", element, ty) for ty in types)

    return replace(case, operands=quantized(case.operands), results=quantized(case.results))


def value(random: Random, case: Case) -> Case:
    """A value of another dialect in place of an operand."""
    if not case.operands:
        return case
    at = random.randrange(len(case.operands))
    operands = (*case.operands[:at], "!other.type", *case.operands[at + 1 :])
    constants = {place: text for place, text in case.constants.items() if place != at}
    return replace(case, operands=operands, constants=constants)


def rule(random: Random, case: Case) -> Case:
    """A sharding rule that fits the shapes, and not what the op computes."""
    sizes: list[int] = []

    def mapping(ty: str) -> str:
        match = TENSOR.fullmatch(ty)
        own: list[int] = []
        for size in re.findall(r"\d+", match[1]) if match else ():
            free = [at for at, known in enumerate(sizes) if known == int(size) and at not in own]
            if not free or random.random() < 0.4:
                free = [len(sizes)]
                sizes.append(int(size))
            own.append(random.choice(free))
        return f"[{', '.join(map(name, own))}]"

    def name(at: int) -> str:
        letters = string.ascii_lowercase[8:]
        return letters[at] if at < 18 else f"z_{at - 17}"

    operands = ", ".join(map(mapping, case.operands))
    results = ", ".join(map(mapping, case.results))
    kinds: dict[str, list[str]] = {"reduction": [], "need_replication": [], "permutation": []}
    for at in range(len(sizes)):
        if random.random() < 0.3:
            kinds[random.choice(list(kinds))].append(name(at))
    factors = ", ".join(f"{name(at)}={size}" for at, size in enumerate(sizes))
    lists = "".join(f" {kind}={{{', '.join(names)}}}" for kind, names in kinds.items() if names)
    text = f"#sdy.op_sharding_rule<({operands})->({results}) {{{factors}}}{lists}>"
    return replace(case, attributes={**case.attributes, "sdy.sharding_rule": text})


def custom_call(random: Random, _: Case) -> Case:
    """A call of a known target, of any shapes."""

    def tensor() -> str:
        sizes = "".join(f"{random.choice([0, 1, 2, 4, 6])}x" for _ in range(random.randrange(4)))
        return f"tensor<{sizes}{random.choice(['f32', 'i32', 'ui64'])}>"

    attributes = {"call_target_name": f'"{random.choice(TARGETS)}"'}
    if random.random() < 0.3:
        dim = random.randrange(-1, 6)
        config = f"{{reduction_dim = {dim} : i64, top_k = 3 : i64, is_fallback = true}}"
        attributes |= {"api_version": "4 : i32", "backend_config": config}
    operands = tuple(tensor() for _ in range(random.randrange(5)))
    results = tuple(tensor() for _ in range(random.randrange(4)))
    return Case("stablehlo.custom_call", operands, results, attributes)
