"""What a program costs: collectives, time, memory, loops and calls, with numbers by hand."""

from __future__ import annotations

import json

import pytest
import shardcore
from shardcore import CalculusError, Cost, Module, ShardcoreError
from shardcore.costs.records import Site

from tests.unit.texts import sharded

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>'


def cost_of(text: str, mesh: str = MESH, **options: object) -> Cost:
    module = Module.parse(f"{mesh}\n{text}", filename="program.mlir")
    return shardcore.cost(module, **{"compiler": "none", **options})  # type: ignore[arg-type]


def mlp(x: str = "x", w: str = "y") -> str:
    """Megatron: the contraction of the second product is cut, so its result is summed."""
    return f"""func.func @main(
        %x: tensor<64x512xbf16> {sharded(x, "")}, %w: tensor<512x2048xbf16> {sharded("", w)},
        %v: tensor<2048x512xbf16> {sharded(w, "")}) -> (tensor<64x512xbf16> {sharded(x, "")}) {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<64x512xbf16>, tensor<512x2048xbf16>) -> tensor<64x2048xbf16> loc("mlp.py":3:4)
      %1 = stablehlo.tanh %0 : tensor<64x2048xbf16> loc("mlp.py":4:4)
      %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
        : (tensor<64x2048xbf16>, tensor<2048x512xbf16>) -> tensor<64x512xbf16> loc("mlp.py":5:8)
      return %2 : tensor<64x512xbf16>
    }}"""


def test_a_block_by_hand() -> None:
    cost = cost_of(mlp())
    # On a device x is 32 x 512, w 512 x 512, v 512 x 512.
    dot = 2 * 32 * 512 * 512
    assert cost.flops == 2 * dot + 32 * 512  # The sum adds once for each element.
    assert cost.transcendentals == 32 * 512
    x, w = 32 * 512 * 2, 512 * 512 * 2
    assert (cost.argument_bytes, cost.output_bytes, cost.alias_bytes) == (x + 2 * w, x, 0)
    [sums] = cost.collectives
    assert (sums.kind, sums.axes, sums.count) == ("all_reduce", ("y",), 1)
    assert (sums.bytes, sums.wire_bytes) == (x, 2 * 3 * x // 4)
    assert (sums.cause, sums.cause_location) == ("stablehlo.dot_general", "mlp.py:5:8")
    assert sums.operand_sharding == sums.result_sharding == '<@mesh, [{"x"}, {}]>'
    # Two hops each way round a ring of 4 chips, at 1 us; 32 KiB over 2 x 9e10 B/s are quicker.
    assert sums.seconds == pytest.approx(4e-6)
    assert cost.comm_seconds == pytest.approx(4e-6)
    rows = {(row.name, row.location): row for row in cost.ops}
    first = rows["stablehlo.dot_general", "mlp.py:3:4"]
    assert (first.flops, first.bytes, first.count, first.bound) == (dot, 2 * x + w, 1, "memory")
    assert first.seconds == pytest.approx((2 * x + w) / 2.8e12)
    assert cost.compute_seconds == pytest.approx(sum(row.seconds for row in cost.ops))
    assert cost.step_seconds_lower == max(cost.compute_seconds, cost.comm_seconds)
    assert cost.serial_seconds == cost.compute_seconds + cost.comm_seconds
    assert cost.step_seconds_lower <= cost.step_seconds <= cost.step_seconds_upper
    # %0, then %1, are in the memory of the output, the sum; the second product stands beside it.
    assert cost.peak_bytes == cost.argument_bytes + 2 * x
    [*arguments, _, product] = [row.name for row in cost.live_at_peak]
    assert (arguments, product) == (["%x", "%w", "%v"], "%2")


def test_sums_by_kind_axis_and_line() -> None:
    cost = cost_of(mlp())
    [sums] = cost.collectives
    for found, key in (
        (cost.by_kind(), "all_reduce"),
        (cost.by_axis(), "y"),
        (cost.by_line(), "mlp.py:5:8"),
    ):
        assert list(found) == [key]
        assert (found[key].count, found[key].bytes) == (1, sums.bytes)
        assert found[key].seconds == sums.seconds
    ((site, found),) = cost.by_site().items()
    assert site == Site("all_reduce", ("y",), "stablehlo.dot_general", "mlp.py:5:8")
    assert (found.count, found.seconds) == (1, sums.seconds)
    assert cost.top_collectives(1) == (sums,)
    assert cost.top_collectives(0) == ()


@pytest.mark.parametrize(
    ("operand", "result", "kind", "axes", "gathered"),
    [
        (("y", ""), ("", ""), "all_gather", ("y",), 64 * 32),
        (("y", ""), ("", "y"), "all_to_all", ("y",), 64 * 32),
        (("x", ""), ("", "x"), "all_to_all", ("x",), 64 * 32),
        (('"y":(1)2', ""), ('"y":(2)2', ""), "collective_permute", ("y",), 32 * 32),
        (('"y":(1)2', ""), ("", ""), "all_gather", ("y:(1)2",), 64 * 32),
    ],
)
def test_kinds_of_collectives(
    operand: tuple[str, ...],
    result: tuple[str, ...],
    kind: str,
    axes: tuple[str, ...],
    gathered: int,
) -> None:
    def sharding(dims: tuple[str, ...]) -> str:
        return sharded(*dims).removeprefix("{sdy.sharding = #sdy.sharding").removesuffix("}")

    cost = cost_of(f"""func.func @main(%a: tensor<64x32xf32>) -> tensor<64x32xf32> {{
      %0 = sdy.sharding_constraint %a {sharding(operand)} : tensor<64x32xf32> loc("a.py":1:1)
      %1 = stablehlo.negate %0 {{sdy.sharding = #sdy.sharding_per_value<[{sharding(operand)}]>}}
        : tensor<64x32xf32>
      %2 = sdy.sharding_constraint %1 {sharding(result)} : tensor<64x32xf32> loc("a.py":2:1)
      %3 = stablehlo.tanh %2 {{sdy.sharding = #sdy.sharding_per_value<[{sharding(result)}]>}}
        : tensor<64x32xf32>
      return %3 : tensor<64x32xf32>
    }}""")
    [found] = [row for row in cost.collectives if row.cause_location == "a.py:2:1"]
    assert (found.kind, found.axes, found.bytes) == (kind, axes, gathered * 4)
    assert found.operand_sharding == sharding(operand)
    assert found.result_sharding == sharding(result)
    assert found.seconds > 0
    assert found.cause == "sdy.reshard"


def test_times_are_those_of_the_calculus() -> None:
    from shardcore import Mesh
    from shardcore.calculus import Collective, NamedArray, Topology, estimate, hardware

    mesh = Mesh({"x": 2, "y": 4})
    array = NamedArray.parse("bf16[4096_y, 8192]", mesh)
    gather = Collective.of("all_gather", array, ["y"], mesh=mesh)
    for chip in ("tpu-v5p", "tpu-v5e", "h100"):
        expected = estimate(gather, Topology.of(mesh, hardware(chip)))
        cost = cost_of(
            f"""func.func @main(%a: tensor<4096x8192xbf16> {sharded("y", "")})
              -> (tensor<4096x8192xbf16> {sharded("", "")}) {{
              return %a : tensor<4096x8192xbf16>
            }}""",
            hardware=chip,
        )
        [found] = cost.collectives
        assert (found.bytes, found.wire_bytes) == (expected.bytes, expected.wire_bytes)
        assert found.seconds == expected.seconds
        assert (found.cause, found.op) == ("func.return", found.op)


def test_collectives_of_one_line_are_one_row() -> None:
    text = mlp().replace(
        "return %2",
        """%3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0]
        : (tensor<64x512xbf16>, tensor<512x2048xbf16>) -> tensor<64x2048xbf16> loc("mlp.py":3:4)
      %4 = stablehlo.dot_general %3, %v, contracting_dims = [1] x [0]
        : (tensor<64x2048xbf16>, tensor<2048x512xbf16>) -> tensor<64x512xbf16>
          loc("/home/me/mlp.py":5:8)
      %5 = stablehlo.dot_general %3, %v, contracting_dims = [1] x [0]
        : (tensor<64x2048xbf16>, tensor<2048x512xbf16>) -> tensor<64x512xbf16>
          loc("/home/me/mlp.py":5:8)
      %6 = stablehlo.add %4, %5 : tensor<64x512xbf16>
      return %6""",
    )
    cost = cost_of(text, combine=0)
    assert [(site.location, sums.count) for site, sums in cost.by_site().items()] == [
        ("/home/me/mlp.py:5:8", 2),
        ("mlp.py:5:8", 1),
    ]
    start = str(cost).index("most expensive collectives")
    title, columns, first, *_ = str(cost)[start:].splitlines()
    assert columns.split() == [
        "kind",
        "axes",
        "count",
        "sent",
        "at",
        "peak",
        "exposed",
        "because",
        "of",
        "source",
    ]
    assert first.split() == [
        "all_reduce",
        "y",
        "2",
        "96.0",
        "KiB",
        "8",
        "us",
        "11.2",
        "us",
        "dot_general",
        "mlp.py:5:8",
    ]
    assert all(len(line) <= 80 for line in (title, columns, first))


def test_topology_and_how_time_is_counted() -> None:
    plain = cost_of(mlp()).comm_seconds
    # One way round a ring of 4 chips there are 3 hops and not 2.
    assert cost_of(mlp(), one_way=True).comm_seconds == pytest.approx(plain * 3 / 2)
    assert cost_of(mlp(), topology="2x4", mapping="x=0;y=1").comm_seconds == plain
    assert cost_of(mlp(), topology="2x2x2", mapping={"x": (0,), "y": (1, 2)}).comm_seconds == plain


def test_dims_that_do_not_divide_are_padded() -> None:
    cost = cost_of(
        f"""func.func @main(%a: tensor<6x10xf32> {sharded("", "")}) -> tensor<6x10xf32> {{
          %0 = sdy.sharding_constraint %a <@mesh, [{{}}, {{"y"}}]> : tensor<6x10xf32>
          %1 = stablehlo.negate %0 : tensor<6x10xf32>
          return %1 : tensor<6x10xf32>
        }}"""
    )
    rows = {row.name: row for row in cost.ops}
    # 10 over 4 devices are 3 each.
    assert rows["stablehlo.negate"].flops == 6 * 3


LOOP = """func.func @main(%a: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {{
  %start = stablehlo.constant dense<{start}> : tensor<i32>
  %end = stablehlo.constant dense<{end}> : tensor<i32>
  %0:3 = stablehlo.while(%i = %start, %last = {bound}, %x = %a)
      : tensor<i32>, tensor<i32>, tensor<8xf32>
    cond {{
      %c = stablehlo.compare {direction}, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %step = stablehlo.constant dense<{step}> : tensor<i32>
      %next = stablehlo.{change} %i, %step : tensor<i32>
      %y = stablehlo.tanh %x : tensor<8xf32>
      stablehlo.return %next, %last, %y : tensor<i32>, tensor<i32>, tensor<8xf32>
    }} loc("loop.py":7:1)
  return %0#2 : tensor<8xf32>
}}"""


@pytest.mark.parametrize(
    ("start", "end", "direction", "change", "step", "trips"),
    [
        (0, 10, "LT", "add", 1, 10),
        (3, 10, "LT", "add", 2, 4),
        (0, 10, "LE", "add", 1, 11),
        (10, 0, "GT", "subtract", 1, 10),
        (10, 0, "GE", "add", -5, 3),
        (0, 12, "NE", "add", 4, 3),
        (5, 5, "LT", "add", 1, 0),
        (7, 5, "LT", "add", 1, 0),
        (0, 10, "LT", "add", -1, None),
        (0, 10, "LT", "add", 0, None),
        (0, 10, "NE", "add", 3, None),
        (0, 10, "EQ", "add", 1, None),
        (0, 10, "LT", "multiply", 2, None),
    ],
)
def test_loops_count_their_trips(
    start: int, end: int, direction: str, change: str, step: int, trips: int | None
) -> None:
    text = LOOP.format(
        start=start, end=end, bound="%end", direction=direction, change=change, step=step
    )
    cost = cost_of(text)
    [loop] = cost.loops
    assert (loop.trips, loop.entered, loop.location) == (trips, 1, "loop.py:7:1")
    assert cost.transcendentals == 8 * (1 if trips is None else trips)
    assert ("counted as one trip" in str(cost)) == (trips is None)
    # A trip adds to the counter, and compares once more than that.
    assert cost.flops == (2 if trips is None else trips) + (1 if trips is None else trips + 1)
    assert cost.flops_counting_loops_once == 2


@pytest.mark.parametrize(
    ("outer", "trips"), [("%s", [(5, 3), (3, 1)]), ("%more", [(None, 3), (3, 1)])]
)
def test_loops_that_capture_their_step_count_their_trips(
    outer: str, trips: list[tuple[int | None, int]]
) -> None:
    """Of the inner loop the step, start and bound stand outside of both; one may change there."""
    text = f"""func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %0:3 = stablehlo.while(%a = %x, %i = %zero, %s = %two)
      : tensor<8xf32>, tensor<i32>, tensor<i32>
    cond {{
    %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %1:2 = stablehlo.while(%b = %a, %j = %zero) : tensor<8xf32>, tensor<i32>
      cond {{
      %d = stablehlo.compare LT, %j, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %d : tensor<i1>
    }} do {{
      %k = stablehlo.add %s, %j : tensor<i32>
      %e = stablehlo.tanh %b : tensor<8xf32>
      stablehlo.return %e, %k : tensor<8xf32>, tensor<i32>
    }}
    %more = stablehlo.add %s, %one : tensor<i32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %1#0, %n, {outer} : tensor<8xf32>, tensor<i32>, tensor<i32>
  }}
  return %0#0 : tensor<8xf32>
}}"""
    cost = cost_of(text)
    assert sorted(((loop.trips, loop.entered) for loop in cost.loops), key=str) == sorted(
        trips, key=str
    )
    inner = 5 if trips[0][0] else 1
    assert cost.transcendentals == 8 * 3 * inner


def test_equal_ops_and_libraries_count_as_on_hosts() -> None:
    text = """func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("a.py":1:1)
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("a.py":2:1)
  %2 = stablehlo.add %0, %1 : tensor<4x4xf32>
  %3:2 = chlo.top_k(%2, k = 2) : tensor<4x4xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return %3#0 : tensor<4x2xf32>
}"""
    cost = cost_of(text)
    assert cost.flops == 2 * 2 * 4 * 4 * 8 + 16 + 16
    assert cost.flops_counting_loops_once == 2 * 4 * 4 * 8 + 16


def test_the_body_of_a_scan_runs_for_each_slice() -> None:
    cost = cost_of("""func.func @main(%x: tensor<4x16xf32>, %c: tensor<4xf32>) -> tensor<4x16xf32> {
  %0:2 = chlo.scan(%x) inits (%c) dimension=1 {
  ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):
    %1 = stablehlo.add %p, %q : tensor<4xf32>
    %2 = stablehlo.tanh %1 : tensor<4xf32>
    stablehlo.return %2, %1 : tensor<4xf32>, tensor<4xf32>
  } : (tensor<4x16xf32>, tensor<4xf32>) -> (tensor<4x16xf32>, tensor<4xf32>)
  return %0#0 : tensor<4x16xf32>
}""")
    assert (cost.flops, cost.transcendentals) == (4 * 16, 4 * 16)
    assert not cost.uncounted


def test_hosts_compute_all_pairs_of_groups_of_images() -> None:
    text = """func.func @main(%x: tensor<4x8x8x16xf32>, %g: tensor<4x8x8x16xf32>)
    -> tensor<3x3x1x16xf32> {
  %0 = stablehlo.convolution(%x, %g)
      dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]}
      {batch_group_count = 16 : i64, feature_group_count = 1 : i64}
      : (tensor<4x8x8x16xf32>, tensor<4x8x8x16xf32>) -> tensor<3x3x1x16xf32>
  return %0 : tensor<3x3x1x16xf32>
}"""
    cost = cost_of(text)
    result = 3 * 3 * 16 * 4
    assert cost.output_bytes == result
    # With the pairs, of which the result is the diagonal, copies of both operands are in memory.
    assert cost.peak_bytes == 2 * cost.argument_bytes + result
    assert cost.xla_cpu_peak_bytes == cost.peak_bytes + 16 * result


def test_a_loop_to_an_argument_says_nothing() -> None:
    text = LOOP.format(start=0, end=1, bound="%n", direction="LT", change="add", step=1)
    [loop] = cost_of(text).loops
    assert loop.trips is None


def test_nested_loops_and_calls_multiply() -> None:
    inner = LOOP.format(start=0, end=5, bound="%end", direction="LT", change="add", step=1)
    inner = inner.replace("@main", "private @inner").replace(", %n: tensor<i32>", "")
    cost = cost_of(
        inner
        + LOOP.format(start=0, end=3, bound="%end", direction="LT", change="add", step=1).replace(
            "%y = stablehlo.tanh %x : tensor<8xf32>",
            "%u = func.call @inner(%x) : (tensor<8xf32>) -> tensor<8xf32>\n"
            "%y = func.call @inner(%u) : (tensor<8xf32>) -> tensor<8xf32>",
        )
    )
    assert cost.transcendentals == 8 * 5 * 2 * 3
    assert sorted((loop.trips, loop.entered) for loop in cost.loops) == [(3, 1), (5, 3), (5, 3)]
    names = {loop.op for loop in cost.loops if loop.trips == 5}
    assert all(name is not None and name.startswith("@inner %") for name in names)


def test_the_heaviest_branch_counts() -> None:
    cost = cost_of("""func.func @main(%i: tensor<i32>, %a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = "stablehlo.case"(%i) ({
        stablehlo.return %a : tensor<8xf32>
      }, {
        %1 = stablehlo.add %a, %a : tensor<8xf32>
        %2 = stablehlo.multiply %1, %1 : tensor<8xf32>
        stablehlo.return %2 : tensor<8xf32>
      }, {
        %1 = stablehlo.tanh %a : tensor<8xf32>
        stablehlo.return %1 : tensor<8xf32>
      }) : (tensor<i32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }""")
    assert (cost.flops, cost.transcendentals) == (16, 0)


def test_calls_count_each_time() -> None:
    cost = cost_of("""func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.tanh %a : tensor<8xf32>
      %1 = stablehlo.add %0, %a : tensor<8xf32>
      return %1 : tensor<8xf32>
    }
    func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
      %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
      return %1 : tensor<8xf32>
    }""")
    assert (cost.flops, cost.transcendentals) == (16, 16)


def test_donated_arguments_give_their_memory_to_outputs() -> None:
    text = """func.func @main(%p: tensor<64xf32> {{{attribute}}}, %g: tensor<64xf32>)
        -> tensor<64xf32> {{
      %0 = stablehlo.add %p, %g : tensor<64xf32>
      return %0 : tensor<64xf32>
    }}"""
    kept = cost_of(text.format(attribute=""))
    assert (kept.argument_bytes, kept.output_bytes, kept.alias_bytes) == (512, 256, 0)
    assert kept.peak_bytes == 768
    for attribute in ("tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"):
        donated = cost_of(text.format(attribute=attribute))
        assert (donated.alias_bytes, donated.peak_bytes) == (256, 512)


def test_memory_of_a_donated_argument_that_is_still_needed_is_not_free() -> None:
    cost = cost_of("""func.func @main(%p: tensor<64xf32> {tf.aliasing_output = 0 : i32})
        -> (tensor<64xf32>, tensor<64x64xf32>) {
      %0 = stablehlo.tanh %p : tensor<64xf32>
      %1 = stablehlo.dot_general %0, %p, contracting_dims = [] x []
        : (tensor<64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
      return %0, %1 : tensor<64xf32>, tensor<64x64xf32>
    }""")
    # %0 is made while %p is needed for %1.
    assert cost.peak_bytes == 256 + 256 + 64 * 64 * 4


def test_what_dies_makes_room() -> None:
    dot = (
        "contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>"
    )
    cost = cost_of(f"""func.func @main(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {{
      %0 = stablehlo.dot_general %a, %a, {dot}
      %1 = stablehlo.dot_general %0, %a, {dot}
      %2 = stablehlo.dot_general %1, %0, {dot} loc("peak.py":3:1)
      %3 = stablehlo.dot_general %2, %a, {dot}
      return %3 : tensor<32x32xf32>
    }}""")
    size = 32 * 32 * 4
    assert cost.peak_bytes == size + 3 * size
    assert cost.peak_op is not None
    assert (cost.peak_op.value, cost.peak_op.name) == ("%2", "stablehlo.dot_general")
    assert cost.peak_op.location == "peak.py:3:1"
    assert [(row.name, row.op, row.bytes) for row in cost.live_at_peak] == [
        ("%a", None, size),
        # The memory of the output, in which %0 is.
        ("%3", "stablehlo.dot_general", size),
        ("%1", "stablehlo.dot_general", size),
        ("%2", "stablehlo.dot_general", size),
    ]


def test_a_loop_updates_what_it_carries_in_place() -> None:
    cost = cost_of("""func.func @main(%a: tensor<8x64xf32>) -> tensor<8x64xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %buffer = stablehlo.negate %a : tensor<8x64xf32>
      %0:2 = stablehlo.while(%i = %zero, %x = %buffer) : tensor<i32>, tensor<8x64xf32>
        cond {
          %n = stablehlo.constant dense<8> : tensor<i32>
          %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          %o = stablehlo.constant dense<0> : tensor<i32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %row = stablehlo.dynamic_slice %x, %i, %o, sizes = [1, 64]
            : (tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
          %new = stablehlo.tanh %row : tensor<1x64xf32>
          %y = stablehlo.dynamic_update_slice %x, %new, %i, %o
            : (tensor<8x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<8x64xf32>
          %next = stablehlo.add %i, %one : tensor<i32>
          stablehlo.return %next, %y : tensor<i32>, tensor<8x64xf32>
        }
      return %0#1 : tensor<8x64xf32>
    }""")
    assert cost.loops[0].trips == 8
    whole = 8 * 64 * 4
    # The argument, the buffer; the row is fused into the update; counters and a flag.
    assert 2 * whole <= cost.peak_bytes <= 2 * whole + 16
    update = next(row for row in cost.ops if row.name == "stablehlo.dynamic_update_slice")
    # A row is read and written, with its place, in each of 8 trips.
    assert update.bytes == 8 * 2 * (64 * 4 + 4)


def test_a_chain_of_elementwise_ops_reads_and_writes_once() -> None:
    cost = cost_of("""func.func @main(%a: tensor<1024xf32>, %b: tensor<f32>) -> tensor<1024xf32> {
      %0 = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<1024xf32>
      %1 = stablehlo.multiply %a, %0 : tensor<1024xf32>
      %2 = stablehlo.tanh %1 : tensor<1024xf32>
      %3 = stablehlo.add %2, %a : tensor<1024xf32>
      return %3 : tensor<1024xf32>
    }""")
    assert cost.hbm_bytes == 4096 + 4 + 4096
    assert cost.peak_bytes == 4096 + 4 + 4096


def test_manual_computations_are_local_and_their_groups_are_axes() -> None:
    cost = cost_of(f"""func.func @main(
        %a: tensor<8x16xf32> {sharded("x", "y")}) -> tensor<8x16xf32> {{
      %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{"y"}}]>]
          out_shardings=[<@mesh, [{{"x"}}, {{}}]>] manual_axes={{"x", "y"}} (%b: tensor<4x4xf32>) {{
        %1 = "stablehlo.all_reduce"(%b) ({{
          ^bb0(%p: tensor<f32>, %q: tensor<f32>):
            %s = stablehlo.add %p, %q : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }}) {{replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>}}
            : (tensor<4x4xf32>) -> tensor<4x4xf32>
        %2 = "stablehlo.all_gather"(%1) {{all_gather_dim = 1 : i64,
            replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>}}
            : (tensor<4x4xf32>) -> tensor<4x16xf32>
        %3 = "stablehlo.collective_permute"(%2)
            {{source_target_pairs = dense<[[0, 4], [1, 5]]> : tensor<2x2xi64>}}
            : (tensor<4x16xf32>) -> tensor<4x16xf32>
        %4 = "stablehlo.all_to_all"(%3) {{split_dimension = 0 : i64, concat_dimension = 1 : i64,
            split_count = 2 : i64,
            replica_groups = dense<[[0, 5], [1, 4], [2, 7], [3, 6]]> : tensor<4x2xi64>}}
            : (tensor<4x16xf32>) -> tensor<2x32xf32>
        %5 = stablehlo.reshape %4 : (tensor<2x32xf32>) -> tensor<4x16xf32>
        sdy.return %5 : tensor<4x16xf32>
      }} : (tensor<8x16xf32>) -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }}""")
    found = [(row.kind, row.axes, row.bytes) for row in cost.collectives]
    assert found[:3] == [
        ("all_reduce", ("y",), 4 * 4 * 4),
        ("all_gather", ("y",), 4 * 16 * 4),
        ("collective_permute", ("x",), 4 * 16 * 4),
    ]
    # Devices 0 and 5 differ in both axes, but are two and not eight.
    assert found[3][:2] == ("all_to_all", ())
    [unknown] = cost.uncounted
    assert (unknown.name, unknown.reason) == (
        "all_to_all",
        "the axes along which it runs are not known",
    )


def test_a_function_that_does_nothing_costs_nothing() -> None:
    cost = shardcore.cost(Module.parse("func.func @main() { return }"))
    assert (cost.flops, cost.peak_bytes, cost.ops, cost.collectives) == (0, 0, (), ())
    assert "peak memory  0 B" in str(cost)


def test_mistakes_have_codes_and_hints() -> None:
    def raised(**options: object) -> ShardcoreError:
        with pytest.raises(ShardcoreError) as caught:
            cost_of(mlp(), **options)
        return caught.value

    unknown = raised(hardware="tpu-v5")
    assert isinstance(unknown, CalculusError)
    assert (unknown.code, unknown.hint is not None) == ("unknown-hardware", True)
    assert raised(topology="3x3").code == "invalid-topology"
    assert raised(mapping="x=0").code == "invalid-topology"
    axis = raised(topology="2x4", mapping={"z": (0,)})
    assert (axis.code, axis.hint) == ("unknown-axis", 'there is "x", "y"')
    assert raised(efficiency=2.0).code == "invalid-option"


def test_json_has_everything() -> None:
    cost = cost_of(mlp())
    data = json.loads(cost.to_json())
    assert data == json.loads(json.dumps(cost.record()))
    assert data["by_kind"] == {
        "all_reduce": {
            "count": 1,
            "bytes": 32768,
            "wire_bytes": 49152,
            "seconds": pytest.approx(4e-6),
            "exposed_seconds": pytest.approx(cost.exposed_seconds),
        }
    }
    assert data["collectives"][0]["cause_location"] == "mlp.py:5:8"
    assert data["peak_bytes"] == cost.peak_bytes
    assert data["hardware"] == "tpu-v5p"


def test_a_result_keeps_its_options_and_its_program() -> None:
    result = Module.parse(f"{MESH}\n{mlp()}").propagate()
    assert "sdy.all_reduce" in str(result.with_collectives)
    assert "sdy.all_reduce" not in str(result.module)
    assert result.cost("tpu-v5e") == shardcore.cost(result, "tpu-v5e")
    assert result.cost().hardware.name == "tpu-v5p"


def test_exchanges_along_a_sharded_dim_are_counted() -> None:
    sliced = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(
    %a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.slice %a [2:6, 0:4] : (tensor<8x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
"""
    cost = shardcore.Module.parse(sliced).propagate().cost(policy="least")
    # Both devices have two of the four rows of their part of the result.
    assert not cost.collectives
    cost = shardcore.Module.parse(sliced.replace("2:6", "1:5")).propagate().cost(policy="least")
    # The first device lacks none, the second one has one and lacks a row of 4 floats.
    assert {row.kind for row in cost.collectives} == {"collective_permute"}
    assert {(row.cause, row.axes) for row in cost.collectives} == {("stablehlo.slice", ("x",))}
    assert not cost.uncounted


def test_chlo_counts_as_what_xla_makes_of_it() -> None:
    squared = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(
    %a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
  %0 = chlo.square %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
      : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
    (collective,) = shardcore.Module.parse(squared).propagate().cost().collectives
    assert (collective.kind, collective.axes) == ("all_reduce", ("x",))
