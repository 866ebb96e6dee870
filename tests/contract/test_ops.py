"""Every hole in the table of `docs/ops.md`, what each part knows of each op, has a reason.

The table comes from the code (`rust/src/op_table.rs`, the registry of the simulator), so this fails
when an op gains or loses what a part knows of it. Change `HOLES` then, and write the page anew with
`python tests/contract/test_ops.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from shardcore import _core
from shardcore.simulate import PREPARERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ops.md"

INTRODUCTION = """\
# What is known of each op

A row for each op, a column for each part of shardcore. The table is generated from the code, and a
test compares the two. A number in parentheses is a hole: its reason is listed below the table.

| column | what it says | where it is said |
| --- | --- | --- |
| traits | memory effects and elementwise traits that propagation and the folding drivers use | \
`rust/src/ir/op_info.rs` |
| syntax | the assembly format that is parsed besides the generic form | `rust/src/ir/op_info.rs`, \
`rust/src/mlir/reader/format_table.rs` |
| verification | what is verified besides shardings, sharding rules and types of uses | \
`rust/src/verify/mod.rs` |
| sharding rule | the family of the rule, or how shardings propagate without one | \
`rust/src/rules/table.rs`; `rust/src/rules/chlo.rs` for ops that XLA legalizes before it runs \
Shardy |
| cost | the family that counts flops and bytes | `rust/src/work/ops/mod.rs` |
| padding | how `sdy-pad-for-divisibility` derives the result types; ops of true size get \
operands without padding | \
`rust/src/export/pad_for_divisibility/shapes.rs` |
| partitioning | how the op is lowered in the per-device program: by its sharding rule, as the ops \
that it is legalized to, whole (on gathered operands, since it has no rule), or in a way of its \
own | \
`rust/src/spmd/lower/lowering_kind.rs` |
| simulator | the file that computes it on NumPy | `python/shardcore/simulate/` |

An op that is not in the table is parsed in its generic form and keeps its text; `@shardcore.rule`
registers a sharding rule for it.

"""

ARITH = "arith.* tensor.cast"
CONTAINERS = "builtin.module func.func"
TERMINATORS = "func.return mhlo.return mpmd.return sdy.return stablehlo.return"
PIPELINES = "mpmd.[!r]* mpmd.reduce"
PIPELINE_CALLS = "mpmd.call mpmd.fragment_call"
NAMES = "mpmd.broadcast mpmd.named_computation mpmd.named_tensor mpmd.reduce"
MHLO = "mhlo.*"
RAGGED = "mhlo.ragged_dot"
MHLO_COMPUTED = f"mhlo.[!r]* {RAGGED}"
HOST = "stablehlo.infeed stablehlo.outfeed stablehlo.recv stablehlo.send"
ASYNC = "stablehlo.async_done stablehlo.async_start stablehlo.collective_reduce"
# Ops whose result shapes are operands.
DYNAMIC = (
    "stablehlo.dynamic_broadcast_in_dim stablehlo.dynamic_conv stablehlo.dynamic_gather "
    "stablehlo.dynamic_iota stablehlo.dynamic_pad stablehlo.dynamic_reshape "
    "stablehlo.get_dimension_size stablehlo.real_dynamic_slice stablehlo.set_dimension_size"
)

# For each column the reasons of its holes, with the ops they are the reason for. A name with a star
# stands for all ops that fit, and every one of them has to be a hole.
HOLES: dict[str, dict[str, str]] = {
    "traits": {
        "an op of MHLO, which XLA's dumps may contain: only its sharding rule is supported": RAGGED,
    },
    "syntax": {
        "its dialect defines no assembly format": (
            "chlo.constant_like chlo.ragged_dot stablehlo.all_gather stablehlo.all_reduce "
            "stablehlo.all_to_all stablehlo.batch_norm_* stablehlo.case "
            "stablehlo.collective_* stablehlo.cross-replica-sum stablehlo.dynamic_conv "
            "stablehlo.dynamic_gather stablehlo.gather stablehlo.if stablehlo.infeed stablehlo.map "
            "stablehlo.outfeed stablehlo.recv stablehlo.reduce_scatter stablehlo.reduce_window "
            "stablehlo.scatter stablehlo.select_and_scatter stablehlo.send stablehlo.sort "
            "stablehlo.torch_index_select stablehlo.triangular_solve stablehlo.async_*"
        ),
        "an op of MHLO, which XLA's dumps may contain: only its sharding rule is supported": RAGGED,
    },
    "verification": {
        "an op of MHLO, which XLA's dumps may contain: only its sharding rule is supported": MHLO,
        "of other dialects only structure is checked: names, types of uses, symbols, terminators": (
            f"{ARITH} builtin.* func.call* func.constant func.return"
        ),
        "its sharding or mesh is verified like that of any value; it has no other constraints": (
            "sdy.constant sdy.mesh sdy.return sdy.sharding_group"
        ),
    },
    "sharding rule": {
        "Shardy has no rule for it either": (
            f"{ARITH} builtin.unrealized_conversion_cast chlo.constant chlo.constant_like "
            "func.constant sdy.constant stablehlo.after_all stablehlo.batch_norm_grad "
            "stablehlo.batch_norm_training stablehlo.broadcast stablehlo.composite "
            "stablehlo.constant stablehlo.create_token stablehlo.einsum "
            "stablehlo.get_tuple_element stablehlo.iota stablehlo.map stablehlo.partition_id "
            "stablehlo.replica_id stablehlo.rng stablehlo.torch_index_select stablehlo.tuple "
            f"stablehlo.unary_einsum {DYNAMIC} {ASYNC} {HOST} {NAMES} mpmd.assign "
            "mpmd.unassign mhlo.erf"
        ),
        "quantized types: jaxlib does not have their dialect, so there is no reference": (
            "stablehlo.uniform_*"
        ),
        "broadcasting CHLO ops are legalized to several ops with different rules": (
            "chlo.broadcast_*"
        ),
        "shardings propagate through calls along the data-flow edges of the callee": (
            "func.call func.call_indirect"
        ),
        "shardings do not propagate through calls of pipelines": PIPELINE_CALLS,
        "a terminator: the op around it propagates the shardings of its operands": TERMINATORS,
        "it holds the program and has no tensors": f"{CONTAINERS} sdy.mesh",
        "a reshard or a collective: passes insert them after propagation": (
            "sdy.all_* sdy.collective_permute sdy.reduce_scatter sdy.replicated_to_unreduced "
            "sdy.reshard sdy.sharded_to_unreduced"
        ),
        "members of a group get the same sharding, without a rule": "sdy.sharding_group",
    },
    "cost": {
        "it holds the program, or is a terminator": f"{CONTAINERS} sdy.mesh {TERMINATORS}",
        "sizes are known at run time only": DYNAMIC,
        "it communicates with the host, which the hardware tables do not describe": HOST,
        "the overlap of asynchronous ops with other work is not modelled": ASYNC,
        "a pipeline has a cost on each of its meshes, which is not counted": PIPELINES,
        "not counted; reports list it": (
            "arith.bitcast arith.ext* arith.trunc* arith.*to* arith.index_cast "
            "func.call_indirect stablehlo.einsum stablehlo.unary_einsum " + MHLO_COMPUTED
        ),
    },
    "padding": {
        "only ops of StableHLO are padded; other ops keep their types": (
            "arith.* builtin.* chlo.* func.* mpmd.* tensor.cast " + MHLO
        ),
        "ops of Shardy other than collectives keep their types": (
            "sdy.constant sdy.*data_flow_edge sdy.*_computation sdy.mesh sdy.propagation_barrier "
            "sdy.reshard sdy.return sdy.sharding_*"
        ),
        "padded with zeros before it, by a pad of its own, from jaxlib 0.12 on": (
            "sdy.all_to_all sdy.reduce_scatter"
        ),
    },
    "partitioning": {
        "refused unless the user registers a sharding rule": (
            f"{ARITH} builtin.unrealized_conversion_cast func.call_indirect func.constant {MHLO}"
        ),
        "it holds the program": CONTAINERS,
        "refused: a pipeline has a program for each mesh": "mpmd.*",
        "refused: sdy-export-pipeline removes it first": (
            "sdy.func_data_flow_edge sdy.named_computation"
        ),
        "refused: it communicates with the host, once for the whole program": HOST,
    },
    "simulator": {
        "dialects other than StableHLO, CHLO and Shardy are refused": (
            f"{ARITH} builtin.unrealized_conversion_cast func.call_indirect func.constant "
            f"{PIPELINES} {MHLO_COMPUTED}"
        ),
        "functions, blocks and meshes are read when a program is prepared, not run as ops": (
            f"{CONTAINERS} sdy.mesh {TERMINATORS}"
        ),
        "quantized types are refused": "stablehlo.uniform_*",
        "only XLA's passes create it": "chlo._asin_acos_kernel stablehlo.collective_reduce",
    },
}


def table() -> dict[str, dict[str, str | None]]:
    """For each op what each part knows of it."""
    rows = _core.known_ops()
    for name in sorted(set(rows) | set(PREPARERS)):
        prepare = PREPARERS.get(name)
        file = None if prepare is None else prepare.__module__.rpartition(".")[2]
        rows.setdefault(name, dict.fromkeys(next(iter(rows.values()))))["simulator"] = file
    return dict(sorted(rows.items()))


TABLE = table()
COLUMNS = list(TABLE["stablehlo.add"])


def reasons(column: str) -> Iterator[tuple[str, str]]:
    """Every hole of a column that `HOLES` lists, with the reason."""
    for reason, patterns in HOLES[column].items():
        for pattern in patterns.split():
            fitting = [name for name in TABLE if fnmatchcase(name, pattern)]
            assert fitting, f"{column}: there is no op {pattern}"
            yield from ((name, reason) for name in fitting)


def numbers() -> dict[str, int]:
    """The number of each reason, in the order in which they stand below the table."""
    all_reasons = dict.fromkeys(reason for column in HOLES.values() for reason in column)
    return {reason: number for number, reason in enumerate(all_reasons, 1)}


def page() -> str:
    """The page that prints the table."""
    number = numbers()
    lines = [" | ".join(["", "op", *COLUMNS, ""]).strip()]
    lines.append("| --- " * (len(COLUMNS) + 1) + "|")
    found = {column: dict(reasons(column)) for column in COLUMNS}
    for name, row in TABLE.items():
        cells = [
            (row[column] or "none")
            if row[column] is not None
            else f"({number[found[column][name]]})"
            for column in COLUMNS
        ]
        lines.append(" | ".join(["", f"`{name}`", *cells, ""]).strip())
    listed = [f"{number}. {reason}" for reason, number in number.items()]
    return INTRODUCTION + "\n".join([*lines, "", "Why there are holes:", "", *listed]) + "\n"


def test_every_hole_has_one_reason() -> None:
    assert list(HOLES) == COLUMNS
    wrong = []
    for column in COLUMNS:
        listed = Counter(name for name, _ in reasons(column))
        holes = {name for name, row in TABLE.items() if row[column] is None}
        wrong += [f"{name}, {column}: no hole, but a reason" for name in listed.keys() - holes]
        wrong += [f"{name}, {column}: a hole without a reason" for name in holes - listed.keys()]
        wrong += [f"{name}, {column}: two reasons" for name in listed if listed[name] > 1]
    assert not wrong, "\n".join(sorted(wrong))


def test_the_work_of_regions_is_counted() -> None:
    """Without a cost of its own an op that runs its region often has the work of one run."""
    runs_regions = {name for name, row in TABLE.items() if "recursive" in (row["traits"] or "")}
    uncounted = {name for name in runs_regions if TABLE[name]["cost"] is None}
    # Pipelines are refused; other ops of MHLO are in dumps that are read for their shardings.
    assert {name for name in uncounted if not name.startswith(("mpmd.", "mhlo."))} == set()


def test_the_page_prints_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/contract/test_ops.py writes it"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
