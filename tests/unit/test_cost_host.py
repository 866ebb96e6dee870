"""The memory of the host: what is in it, what is copied to and from it, what is computed there."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from shardcore import Cost, Module
from shardcore.calculus import hardware
from shardcore.calculus.hardware import Hardware
from shardcore.costs import HostCost

MESH = 'sdy.mesh @mesh = <["x"=8]>'
ROWS = 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>'
T = "tensor<8192x8192xf32>"
SHARD = 8192 * 8192 * 4 // 8
PCIE = 6.4e10
"""Bytes a second between an H100 and its host, one way."""


def port(kind: str, more: str = "") -> str:
    return f'{T} {{mhlo.memory_kind = "{kind}", {ROWS}{more}}}'


def place(result: str, operand: str, kind: str, ty: str = T) -> str:
    return (
        f"{result} = stablehlo.custom_call @annotate_device_placement({operand}) "
        f"{{has_side_effect = true, mhlo.frontend_attributes = "
        f'{{_xla_buffer_placement = "{kind}"}}}} : ({ty}) -> {ty}\n'
    )


def cost_of(arguments: str, results: str, body: str, chip: str | Hardware = "h100") -> Cost:
    text = f"{MESH}\nfunc.func @main({arguments}) -> ({results}) {{\n{body}\n}}"
    return Module.parse(text).propagate().cost(chip)


def transfers(cost: Cost) -> list[tuple[str, str, int, int]]:
    return [(row.value, row.direction, row.bytes, row.count) for row in cost.host.transfers]


def update(load: str, more: str = "", chip: str = "h100", kind: str = "pinned_host") -> Cost:
    """An optimizer whose state ``%opt`` is on the host; ``load`` makes ``%o`` of it."""
    body = (
        f"{load}%c = stablehlo.constant dense<0.9> : {T}\n"
        f"%0 = stablehlo.multiply %o, %c : {T}\n%1 = stablehlo.add %0, %g : {T}\n"
        + place("%2", "%1", kind)
        + f"return %2 : {T}"
    )
    return cost_of(f"%opt: {port(kind, more)}, %g: {port('device')}", port(kind), body, chip)


LOAD = place("%o", "%opt", "device")


def test_combined_collectives_are_not_on_the_host() -> None:
    rows, columns, whole = "tensor<64x512xf32>", "tensor<512x64xf32>", "tensor<64x64xf32>"
    body = "\n".join(
        f"%{number} = stablehlo.dot_general %a, %{other}, contracting_dims = [1] x [0]"
        f" : ({rows}, {columns}) -> {whole}"
        for number, other in enumerate("bc")
    )
    by_columns = 'sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>'
    cost = cost_of(
        f"%a: {rows} {{{by_columns}}}, %b: {columns} {{{ROWS}}}, %c: {columns} {{{ROWS}}}",
        f"{whole}, {whole}",
        f"{body}\nreturn %0, %1 : {whole}, {whole}",
    )
    assert [row.kind for row in cost.collectives] == ["all_reduce"] * 2
    # They are combined: some kernel has the ops of both.
    assert any(len(kernel.ops) > 1 for kernel in cost.kernels)
    assert (cost.host_memory_peak_bytes, cost.host_live_at_peak) == (0, ())


@pytest.mark.parametrize("kind", ["pinned_host", "unpinned_host"])
def test_state_on_the_host_takes_no_memory_of_the_device(kind: str) -> None:
    cost = update(LOAD, kind=kind)
    # The gradient, and the state while it is updated.
    assert (cost.argument_bytes, cost.output_bytes, cost.peak_bytes) == (SHARD, 0, 2 * SHARD)
    assert cost.host_memory_peak_bytes == 2 * SHARD
    assert cost.host == HostCost(SHARD, SHARD, transfers=cost.host.transfers)
    assert transfers(cost) == [("%opt", "to_device", SHARD, 1), ("%1", "to_host", SHARD, 1)]
    assert [row.seconds for row in cost.host.transfers] == [SHARD / PCIE] * 2
    assert {row.name for row in cost.live_at_peak if row.bytes > 4} == {"%g", "%o"}
    assert [row.name for row in cost.host_live_at_peak] == ["%opt", "%2"]
    # Multiply and add, at half a product each.
    assert cost.flops == 2 * 1024 * 8192
    assert cost.fits


def test_donated_state_stays_where_it_is() -> None:
    cost = update(LOAD, ", tf.aliasing_output = 0 : i32")
    assert (cost.host.alias_bytes, cost.alias_bytes) == (SHARD, 0)
    assert cost.host_memory_peak_bytes == SHARD
    assert cost.peak_bytes == 2 * SHARD
    given = update(LOAD, ", jax.buffer_donor = true")
    assert given.host.alias_bytes == SHARD
    # An argument on the device cannot give its memory to a result on the host.
    moved = cost_of(
        f"%g: {port('device', ', jax.buffer_donor = true')}",
        port("pinned_host"),
        place("%0", "%g", "pinned_host") + f"return %0 : {T}",
    )
    assert (moved.alias_bytes, moved.host.alias_bytes) == (0, 0)


def test_copies_bound_the_step() -> None:
    cost = update(LOAD)
    one = SHARD / PCIE
    # Both directions at once at best; one after the other as one waits for the other.
    assert cost.step_seconds_lower == pytest.approx(one)
    achieved = hardware("h100").achieved
    both = 2 * one / achieved.links
    assert both < cost.step_seconds < both + 1e-3
    exposed = sum(row.exposed_seconds or 0.0 for row in cost.host.transfers)
    assert cost.host.exposed_seconds == exposed == pytest.approx(both, rel=0.05)
    assert cost.step_seconds_upper > cost.step_seconds
    assert cost.exposed_seconds == 0
    assert not cost.collectives


def test_a_chip_without_a_rate_says_so() -> None:
    cost = update(LOAD, chip="tpu-v3")
    assert [row.seconds for row in cost.host.transfers] == [None, None]
    assert [row.exposed_seconds for row in cost.host.transfers] == [None, None]
    assert [(row.name, row.missing, row.bytes) for row in cost.uncounted] == [
        ("to_device", "communication", SHARD),
        ("to_host", "communication", SHARD),
    ]
    assert cost.not_in_step.communication_bytes == 2 * SHARD
    assert "whose time is not known: tpu-v3 has no host_bytes_per_second" in str(cost)
    assert cost.record()["host_transfers"][0]["total_seconds"] is None


def test_the_host_computes_what_reads_its_memory() -> None:
    # As XLA for TPUs: 32 MiB of arguments on the device, as many on the host, and of results there.
    cost = update("%o = stablehlo.reshape %opt : (" + T + ") -> " + T + "\n")
    assert (cost.argument_bytes, cost.output_bytes, cost.peak_bytes) == (SHARD, 0, SHARD)
    assert cost.host_memory_peak_bytes == 2 * SHARD
    assert transfers(cost) == [("%g", "to_host", SHARD, 1)]
    assert (cost.flops, cost.host.flops) == (0, 2 * 1024 * 8192)
    names = [row.name for row in cost.uncounted]
    assert names == ["stablehlo.multiply", "stablehlo.add"]
    assert all("an operand is in its memory" in row.reason for row in cost.uncounted)
    assert "host work    16.8 MFLOPs, whose time is not known" in str(cost)


def test_what_the_host_is_asked_to_compute_comes_back() -> None:
    host = 'mhlo.frontend_attributes = {_xla_compute_type = "host"}'
    body = (
        f"%0 = stablehlo.negate %g : {T}\n%1 = stablehlo.tanh %0 {{{host}}} : {T}\n"
        f"%2 = stablehlo.add %1, %1 {{{host}}} : {T}\n%3 = stablehlo.multiply %2, %g : {T}\n"
        f"return %3 : {T}"
    )
    cost = cost_of(f"%g: {port('device')}", port("device"), body)
    assert transfers(cost) == [("%0", "to_host", SHARD, 1), ("%2", "to_device", SHARD, 1)]
    # Negated and multiplied on the chip, the rest on the host.
    elements = 1024 * 8192
    assert (cost.flops, cost.host.flops) == (2 * elements, elements)
    assert (cost.transcendentals, cost.host.transcendentals) == (0, elements)
    assert {row.reason for row in cost.uncounted} == {"the host computes it"}


ROW, STACK = "tensor<1x8192xf32>", "tensor<16x8192xf32>"
STACKED = f"""
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %init = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> {STACK}
  %w:3 = stablehlo.while(%i = %c0, %s = %init, %x = %a) : tensor<i32>, {STACK}, {ROW}
  cond {{
    %n = stablehlo.constant dense<16> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.tanh %x : {ROW}
    SAVE
    %u = stablehlo.dynamic_update_slice %s, %h, %i, %c0
        : ({STACK}, {ROW}, tensor<i32>, tensor<i32>) -> {STACK}
    stablehlo.return %j, %u, %y : tensor<i32>, {STACK}, {ROW}
  }}
  %v:3 = stablehlo.while(%i = %c0, %s = %w#1, %x = %w#2) : tensor<i32>, {STACK}, {ROW}
  cond {{
    %n = stablehlo.constant dense<16> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.dynamic_slice %s, %i, %c0, sizes = [1, 8192]
        : ({STACK}, tensor<i32>, tensor<i32>) -> {ROW}
    LOAD
    %q = stablehlo.multiply %x, %l : {ROW}
    %k = stablehlo.cosine %q : {ROW}
    stablehlo.return %j, %s, %k : tensor<i32>, {STACK}, {ROW}
  }}
  return %v#2 : {ROW}"""
ROW_BYTES = 8192 * 4


def scan(kind: str, chip: str | Hardware = "h100") -> Cost:
    body = STACKED.replace("SAVE", place("%h", "%y", kind, ROW))
    body = body.replace("LOAD", place("%l", "%d", "device", ROW))
    return cost_of(f"%a: {ROW}", ROW, body, chip)


def test_loops_on_tpus_copy_while_they_compute() -> None:
    chip = hardware("tpu-v6e")
    kept = scan("device", chip).step_seconds
    fast, slow = (
        scan("pinned_host", replace(chip, host_bytes_per_second=rate)) for rate in (1e12, 1e6)
    )
    assert fast.step_seconds <= kept
    assert [row.exposed_seconds for row in fast.host.transfers] == [0.0, 0.0]
    # The copies of a direction follow each other, and nothing else takes time.
    copies = sum(row.total_seconds or 0.0 for row in slow.host.transfers) / chip.achieved.links
    assert slow.step_seconds == pytest.approx(copies, rel=1e-2)
    exposed = sum(row.exposed_seconds or 0.0 for row in slow.host.transfers)
    assert exposed == pytest.approx(copies, rel=1e-2)
    awaited = scan("pinned_host", replace(hardware("h100"), host_bytes_per_second=1e12))
    assert sum(row.exposed_seconds or 0.0 for row in awaited.host.transfers) > 0


def test_residuals_of_a_scan_are_one_buffer_of_the_host() -> None:
    cost, kept = scan("pinned_host"), scan("device")
    assert cost.host_memory_peak_bytes == 16 * ROW_BYTES
    assert transfers(cost) == [("%y", "to_host", ROW_BYTES, 16), ("%l", "to_device", ROW_BYTES, 16)]
    assert cost.host.moved("to_host") == 16 * ROW_BYTES
    assert not kept.host
    assert kept.host_memory_peak_bytes == 0
    # The rows are not on the device, but for one that is read.
    assert kept.peak_bytes - cost.peak_bytes >= 15 * ROW_BYTES
    assert all(row.bytes < 16 * ROW_BYTES for row in cost.live_at_peak)
    points, values = cost.memory_timeline().points, cost.memory_timeline().values
    assert max(point.bytes for point in points) == cost.peak_bytes
    assert all(row.value.bytes < 16 * ROW_BYTES for row in values)


def test_placements_of_what_is_there_are_nothing() -> None:
    body = f"%0 = stablehlo.negate %g : {T}\n"
    plain = cost_of(f"%g: {port('device')}", port("device"), body + f"return %0 : {T}")
    body += place("%1", "%0", "device") + f"return %1 : {T}"
    placed = cost_of(f"%g: {port('device')}", port("device"), body)
    assert (placed.peak_bytes, placed.hbm_bytes) == (plain.peak_bytes, plain.hbm_bytes)
    assert (placed.step_seconds, placed.uncounted) == (plain.step_seconds, ())
    assert not placed.host
    assert "host" not in str(placed)


def test_gathers_of_what_is_on_the_host_are_done_on_the_device() -> None:
    whole = (
        f'{T} {{mhlo.memory_kind = "device", sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}'
    )
    body = f"%0 = sdy.sharding_constraint %a <@mesh, [{{}}, {{}}]> : {T}\n"
    body += place("%1", "%0", "device") + f"return %1 : {T}"
    cost = cost_of(f"%a: {port('pinned_host')}", whole, body)
    assert [row.kind for row in cost.collectives] == ["all_gather"]
    assert transfers(cost) == [("%a", "to_device", SHARD, 1)]
    assert (cost.host.argument_bytes, cost.output_bytes) == (SHARD, 8 * SHARD)


def test_costs_with_a_host_are_copied_whole() -> None:
    cost = update(LOAD)
    assert pickle.loads(pickle.dumps(cost)).record() == cost.record()
    record = cost.record()
    assert record["host_argument_bytes"] == record["host_output_bytes"] == SHARD
    assert record["host_memory_peak_bytes"] == 2 * SHARD
    assert [row["direction"] for row in record["host_transfers"]] == ["to_device", "to_host"]


def test_what_is_on_the_host_is_no_large_replicated_value() -> None:
    kind = '{mhlo.memory_kind = "KIND"}'
    text = f"""{MESH}
    func.func @main(%w: {T} {kind}, %x: {T} {{{ROWS}}}) -> {T} {{
      %0 = stablehlo.negate %x : {T}
      return %0 : {T}
    }}"""

    def codes(kind: str) -> list[str]:
        found = Module.parse(text.replace("KIND", kind)).propagate().diagnostics("tpu-v5e")
        return [each.code for each in found if each.value == "%w"]

    assert codes("device") == ["large-replicated"]
    assert codes("pinned_host") == []


def test_large_values_that_are_placed_on_the_host_fit() -> None:
    big = "tensor<65536x65536xf32>"
    # 16 GiB on each device, as large as the memory of a v5e.
    text = f"""{MESH}
    func.func @main(%w: {big} {{mhlo.memory_kind = "KIND"}}) -> tensor<8x65536xf32> {{
      %0 = stablehlo.slice %w [0:8, 0:65536] : ({big}) -> tensor<8x65536xf32>
      {place("%1", "%0", "device", "tensor<8x65536xf32>")}
      return %1 : tensor<8x65536xf32>
    }}"""

    def found(kind: str) -> Cost:
        return Module.parse(text.replace("KIND", kind)).propagate().cost("tpu-v5e")

    assert not found("device").fits
    cost = found("pinned_host")
    assert cost.fits
    assert cost.peak_bytes == 8 * 65536 * 4
    assert transfers(cost) == [("%1", "to_device", 8 * 65536 * 4, 1)]
    assert cost.host_memory_peak_bytes == 65536 * 65536 * 4


def test_the_host_computes_all_that_its_functions_do() -> None:
    # JAX says it of calls, and not of all ops inside.
    host = '{mhlo.frontend_attributes = {_xla_compute_type = "host"}}'
    text = f"""{MESH}
    func.func @main(%g: {port("device")}) -> ({port("device")}) {{
      %0 = call @f(%g) {host} : ({T}) -> {T}
      return %0 : {T}
    }}
    func.func private @f(%a: {T}) -> {T} {{
      %0 = stablehlo.negate %a {host} : {T}
      %1 = call @g(%0) : ({T}) -> {T}
      return %1 : {T}
    }}
    func.func private @g(%a: {T}) -> {T} {{
      %0 = stablehlo.abs %a : {T}
      return %0 : {T}
    }}"""
    cost = Module.parse(text).propagate().cost("h100")
    assert (cost.flops, cost.host.flops) == (0, 2 * 1024 * 8192)
    assert [row[1:] for row in transfers(cost)] == [("to_host", SHARD, 1), ("to_device", SHARD, 1)]
