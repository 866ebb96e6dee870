"""Memory on TPUs beside that of XLA's compiler for TPUs."""

from __future__ import annotations

import pytest
import shardcore
from shardcore.costs import AsyncCopies

from tests.accelerators.measured import CHIPS, compiled, kept, large, more, text
from tests.accelerators.tpus import (
    TPUS,
    cost,
    moved,
    near,
    near_collectives,
    of_reserved,
    ratios,
)
from tests.deep import deep, sampled
from tests.shardy.xla.measured import key

CHIP = "v5e"
"""The chip for which programs were compiled later, and of single programs below."""
HARDWARE = CHIPS[CHIP]
# XLA lays out these arguments as single ops want them, not with the least padding.
LAID_OUT = (
    "encoder-decoder-tensor",
    "llama-train-constrained",
    "state-space-width",
)
# How many peaks are so near to XLA's, of 105 models, on v6e of 103. It is not enough: the aim is
# 90 % within a twentieth. On v5p most of what small models need are tables of tuples.
MODELS = {
    "v5e": {0.05: 76, 0.1: 80, 0.25: 91},
    "v6e": {0.05: 73, 0.1: 76, 0.25: 89},
    "v5p": {0.05: 21, 0.1: 34, 0.25: 58},
}
# The same of what XLA reserves, where it was read off.
MODELS_RESERVED = {
    "v6e": {0.05: 29, 0.1: 44, 0.25: 73},
    "v5p": {0.05: 36, 0.1: 51, 0.25: 76},
}
# Of 18 programs of the size of real ones.
LARGE = {
    "v5e": {0.05: 14, 0.1: 16, 0.25: 18},
    "v6e": {0.05: 10, 0.1: 13, 0.25: 18},
    "v5p": {0.05: 10, 0.1: 16, 0.25: 17},
}
RESERVED = {
    "v5e": {0.05: 16, 0.1: 18, 0.25: 18},
    "v6e": {0.05: 13, 0.1: 15, 0.25: 18},
    "v5p": {0.05: 15, 0.1: 18, 0.25: 18},
}
# Of 37 programs of the same sizes that were compiled later.
MORE = {0.05: 14, 0.1: 22, 0.25: 31}
# How many numbers of kernels and bytes accessed are so near to XLA's on v6e. Asked for are 80 % and
# 90 %: numbers within a fifth, bytes within a tenth.
MOVED = {
    "models": {"kernels": {0.2: 54}, "accessed": {0.1: 30, 0.2: 59}},
    "large": {"kernels": {0.2: 18}, "accessed": {0.1: 5, 0.2: 12}},
}
# Of how many models the collectives are near, by kind. Asked for are 90 % and 80 %.
COLLECTIVES = {
    "v5e": {"bytes": 77, "runs": 73},
    "v6e": {"bytes": 76, "runs": 68},
    "v5p": {"bytes": 68, "runs": 66},
}

MESH = 'sdy.mesh @mesh = <["data"=2, "model"=4]>'
# A parameter that is updated in its own buffer, if the result is laid out like it.
UPDATE = (
    MESH
    + """
func.func public @main(%w: tensor<2048x32000xf32> {
    jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>
}) -> (tensor<2048x32000xf32> {RESULT}) {
  %0 = stablehlo.add %w, %w : tensor<2048x32000xf32>
  return %0 : tensor<2048x32000xf32>
}
"""
)
# A loop of products, and weights that are gathered and read after it.
BESIDE = (
    MESH
    + """
func.func public @main(%y: tensor<16384x16384xf32>, %w: tensor<16384x16384xf32> {
    sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>
}) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %trips = stablehlo.constant dense<4> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %loop:2 = stablehlo.while(%i = %zero, %x = %y) : tensor<i32>, tensor<16384x16384xf32>
  cond {
    %more = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %new = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<16384x16384xf32>, tensor<16384x16384xf32>) -> tensor<16384x16384xf32>
    stablehlo.return %next, %new : tensor<i32>, tensor<16384x16384xf32>
  }
  %all = sdy.sharding_constraint %w <@mesh, [{}, {}]> : tensor<16384x16384xf32>
  %both = stablehlo.multiply %loop#1, %all : tensor<16384x16384xf32>
  %sum = stablehlo.reduce(%both init: %none) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<16384x16384xf32>, tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}
"""
)
# Something that is gathered, and read once.
GATHERED = (
    MESH
    + """
func.func public @main(%x: tensor<1024x1024xf32> {
    sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>
}, %w: tensor<1024x1024xf32>) -> tensor<f32> {
  %0 = stablehlo.tanh %x : tensor<1024x1024xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<1024x1024xf32>
  %2 = stablehlo.multiply %w, %1 : tensor<1024x1024xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}
"""
)
# Arrays of 32 MiB, stored in bf16 for the products that read them; two are there at the same time.
TWO_ARRAYS = """
func.func public @main(%x: tensor<4096x4096xf32>, %u: tensor<4096x4096xf32>,
    %v: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<f32> {
  %0 = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0]
    : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0]
    : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
    : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %3 = stablehlo.dot_general %0, %2, contracting_dims = [0, 1] x [0, 1]
    : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
"""
# A product that is kept as recomputation keeps it, behind a barrier, and read once before that.
KEPT = """
func.func public @main(%a: tensor<4096x4096xbf16>, %b: tensor<4096x4096xbf16>)
    -> (tensor<4096x4096xf32>, tensor<4096x4096xf32>) {
  %dot = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %rounded = stablehlo.reduce_precision %dot, format = e8m7 : tensor<4096x4096xbf16>
  %wide = stablehlo.convert %rounded : (tensor<4096x4096xbf16>) -> tensor<4096x4096xf32>
  %exp = stablehlo.exponential %wide : tensor<4096x4096xf32>
  %next = stablehlo.dot_general %exp, %exp, contracting_dims = [1] x [0]
    : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %kept:2 = stablehlo.optimization_barrier %rounded, %next
    : tensor<4096x4096xbf16>, tensor<4096x4096xf32>
  %again = stablehlo.convert %kept#0 : (tensor<4096x4096xbf16>) -> tensor<4096x4096xf32>
  %tanh = stablehlo.tanh %again : tensor<4096x4096xf32>
  %product = stablehlo.multiply %kept#1, %tanh : tensor<4096x4096xf32>
  return %next, %product : tensor<4096x4096xf32>, tensor<4096x4096xf32>
}
"""
# The scores of attention, with their softmax: BATCH of them, whose operands are computed.
SOFTMAX = """
func.func public @main(%q: tensor<BATCHx64xbf16>, %k: tensor<BATCHx64xbf16>)
    -> tensor<BATCHx1024xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %scores = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1],
    contracting_dims = [3] x [3] : (tensor<BATCHx64xbf16>, tensor<BATCHx64xbf16>)
    -> tensor<BATCHx1024xbf16>
  %wide = stablehlo.convert %scores : (tensor<BATCHx1024xbf16>) -> tensor<BATCHx1024xf32>
  %most = stablehlo.reduce(%wide init: %low) applies stablehlo.maximum across dimensions = [3]
    : (tensor<BATCHx1024xf32>, tensor<f32>) -> tensor<BATCHxf32>
  %mosts = stablehlo.broadcast_in_dim %most, dims = [0, 1, 2]
    : (tensor<BATCHxf32>) -> tensor<BATCHx1024xf32>
  %less = stablehlo.subtract %wide, %mosts : tensor<BATCHx1024xf32>
  %exp = stablehlo.exponential %less : tensor<BATCHx1024xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [3]
    : (tensor<BATCHx1024xf32>, tensor<f32>) -> tensor<BATCHxf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2]
    : (tensor<BATCHxf32>) -> tensor<BATCHx1024xf32>
  %softmax = stablehlo.divide %exp, %sums : tensor<BATCHx1024xf32>
  return %softmax : tensor<BATCHx1024xf32>
}
"""
# Two products that read the transpose of a square: of one and of two contracted dims.
TRANSPOSED = """
func.func public @main(%a: tensor<8x4x4x512x512xbf16>, %q: tensor<8x4x4x512x64xbf16>,
    %k: tensor<8x4x512x64xbf16>) -> (tensor<8x4x512x4x64xbf16>, tensor<8x4x512x64xbf16>) {
  %square = stablehlo.multiply %a, %a : tensor<8x4x4x512x512xbf16>
  %turned = stablehlo.transpose %square, dims = [0, 1, 4, 3, 2]
    : (tensor<8x4x4x512x512xbf16>) -> tensor<8x4x512x512x4xbf16>
  %rows = stablehlo.dot_general %turned, %k, batching_dims = [0, 1] x [0, 1],
    contracting_dims = [2] x [2] : (tensor<8x4x512x512x4xbf16>, tensor<8x4x512x64xbf16>)
    -> tensor<8x4x512x4x64xbf16>
  %columns = stablehlo.dot_general %turned, %q, batching_dims = [0, 1] x [0, 1],
    contracting_dims = [3, 4] x [3, 2] : (tensor<8x4x512x512x4xbf16>, tensor<8x4x4x512x64xbf16>)
    -> tensor<8x4x512x64xbf16>
  return %rows, %columns : tensor<8x4x512x4x64xbf16>, tensor<8x4x512x64xbf16>
}
"""
# What is computed elementwise, and both written and summed.
NARROW = """
func.func public @main(%x: tensor<8x64x64x32xf32>) -> tensor<8x64x64x32xf32> {
  %tanh = stablehlo.tanh %x : tensor<8x64x64x32xf32>
  return %tanh : tensor<8x64x64x32xf32>
}
"""
SUMMED = """
func.func public @main(%a: tensor<8192x8192xf32>, %b: tensor<8192x8192xf32>)
    -> (tensor<8192x8192xf32>, tensor<8192xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %dot = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8192x8192xf32>, tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %sorted = "stablehlo.sort"(%dot) <{dimension = 0 : i64, is_stable = false}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %less = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %tanh = stablehlo.tanh %sorted : tensor<8192x8192xf32>
  %reversed = "stablehlo.sort"(%tanh) <{dimension = 1 : i64, is_stable = false}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %less = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %sum = stablehlo.reduce(SUM init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<8192x8192xf32>, tensor<f32>) -> tensor<8192xf32>
  return %reversed, %sum : tensor<8192x8192xf32>, tensor<8192xf32>
}
"""


# A weight that products read at both ends of a chain of so many ops.
FAR = (
    MESH
    + """
func.func public @main(%x: tensor<512x512xf32> {
    sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>
}, %w: tensor<512x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>})
    -> (tensor<512x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
CHAIN
  %last = stablehlo.dot_general %COUNT, %w, contracting_dims = [1] x [0]
    : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %last : tensor<512x512xf32>
}
"""
)


PROGRAMS = [
    *((chip, name) for chip in TPUS for name in compiled(chip)),
    *((CHIP, name) for name in large(CHIP)),
]


def far(count: int) -> str:
    """:data:`FAR` with ``count`` ops between the products."""
    ops = (f"  %{it + 1} = stablehlo.tanh %{it} : tensor<512x512xf32>" for it in range(count))
    return FAR.replace("CHAIN", "\n".join(ops)).replace("%COUNT", f"%{count}")


def cost_of(text: str) -> shardcore.Cost:
    return shardcore.Module.parse(text).propagate().cost(HARDWARE)


@pytest.mark.parametrize(("chip", "name"), sampled(PROGRAMS, 16))
def test_arguments_take_as_many_tiles_as_under_xla(chip: str, name: str) -> None:
    theirs = kept(chip)[name]
    assert theirs.key == key(text(name))
    ours = cost(chip, name)
    assert ours.compiler == "xla-tpu"
    assert (ours.argument_bytes == theirs.argument) == (name not in LAID_OUT)
    assert sum(value.bytes for value in ours.live_at_peak) == ours.peak_bytes
    assert max(point.bytes for point in ours.memory_timeline().points) == ours.peak_bytes


def test_a_result_of_open_sharding_is_laid_out_as_the_whole_array() -> None:
    given = 'sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>'
    is_open, is_given = (cost_of(UPDATE.replace("RESULT", it)) for it in ("", given))
    # 8,000 columns take no padding as rows of tiles, but 63 tiles of 128 as columns.
    assert (is_given.output_bytes, is_given.alias_bytes) == (1024 * 8000 * 4, 1024 * 8000 * 4)
    assert (is_open.output_bytes, is_open.alias_bytes) == (1024 * 8064 * 4, 0)


def test_what_only_products_read_is_sent_as_they_round_it() -> None:
    exact = text("fp32").replace("DEFAULT", "HIGHEST")
    assert cost_of(exact).peak_bytes - cost(CHIP, "fp32").peak_bytes == 4096 * 8192 * 2


@pytest.mark.parametrize(("between", "gathers"), [(20, 1), (100, 2)])
def test_a_weight_that_is_needed_much_later_is_gathered_again(between: int, gathers: int) -> None:
    result = shardcore.Module.parse(far(between)).propagate()
    found = {
        chip: [row for row in result.cost(chip).collectives if row.kind == "all_gather"]
        for chip in (HARDWARE, "h100")
    }
    assert sum(row.count for row in found[HARDWARE]) == gathers
    assert sum(row.count for row in found["h100"]) == 1
    # Products on TPUs round it to `bf16`.
    assert {row.bytes for row in found[HARDWARE]} == {512 * 512 * 2}
    assert {row.bytes for row in found["h100"]} == {512 * 512 * 4}


def test_weights_are_gathered_beside_the_loop_before_their_use() -> None:
    held = {value.op: value.bytes for value in cost_of(BESIDE).live_at_peak if value.op}
    assert held["stablehlo.all_gather"] == 16384 * 16384 * 4
    assert held["stablehlo.dot_general"] == 16384 * 16384 * 4


def test_a_product_that_is_kept_behind_a_barrier_is_written_once() -> None:
    kernels = cost_of(KEPT).kernels
    # The barrier is no kernel.
    assert [kernel.value for kernel in kernels] == ["%dot", "%next", "%product"]
    assert sum(name == "stablehlo.dot_general" for it in kernels for name, _ in it.ops) == 2


def test_exponentials_of_a_softmax_are_written_by_the_kernel_of_its_product() -> None:
    batched, single = (cost_of(SOFTMAX.replace("BATCH", it)) for it in ("8x4x1024", "1x4x1024"))
    # The kernel that writes them sums them, too.
    assert [kernel.value for kernel in batched.kernels] == ["%exp", "%softmax"]
    # Products with one batch dim write what they make, and exponentials are computed anew.
    assert [kernel.value for kernel in single.kernels] == ["%scores", "%sum", "%softmax"]


@pytest.mark.parametrize(
    ("chip", "heads", "kernels"),
    [
        ("v5e", 128, ["%wide", "%exp", "%softmax"]),
        ("v6e", 128, ["%exp", "%softmax"]),
        ("v6e", 256, ["%wide", "%exp", "%softmax"]),
    ],
)
def test_heads_that_fill_the_matrix_unit_keep_a_softmax_out_of_the_product(
    chip: str, heads: int, kernels: list[str]
) -> None:
    text = SOFTMAX.replace("BATCHx64", f"BATCHx{heads}").replace("BATCH", "8x4x1024")
    cost = shardcore.Module.parse(text).propagate().cost(CHIPS[chip])
    assert [kernel.value for kernel in cost.kernels] == kernels


def test_products_of_several_contracted_dims_take_in_a_transpose_of_what_is_computed() -> None:
    cost = cost_of(TRANSPOSED)
    assert [kernel.value for kernel in cost.kernels] == ["%rows", "%columns"]


def test_chains_of_collectives_are_combined_step_by_step() -> None:
    # Six matrices of Muon, ten all-reduces one after the other for each, and one for their norms.
    found = cost(CHIP, "muon-step").kernels
    sums = [kernel for kernel in found if kernel.is_collective and "all_reduce" in kernel.name]
    assert len(sums) == kept(CHIP)["muon-step"].collectives["all_reduce"][0] == 11


def test_a_kernel_that_also_reduces_writes_over_no_operand() -> None:
    alone, summed = (cost_of(SUMMED.replace("SUM", it)).kernels for it in ("%reversed", "%tanh"))
    assert len(alone) == len(summed) + 1
    peaks = [cost_of(SUMMED.replace("SUM", it)).peak_bytes for it in ("%reversed", "%tanh")]
    assert peaks[1] - peaks[0] == 8192 * 8192 * 4


@deep
@pytest.mark.parametrize("chip", TPUS)
def test_collectives_are_those_that_xla_leaves(chip: str) -> None:
    found = near_collectives(chip)
    for figure, most in COLLECTIVES[chip].items():
        assert sum(row[figure] for row in found) >= most, figure


@deep
@pytest.mark.parametrize("chip", TPUS)
def test_peaks_are_near_those_of_xla(chip: str) -> None:
    found = ratios(chip, compiled(chip))
    for within, most in MODELS[chip].items():
        assert near(found, within) >= most, within
    reserved = of_reserved(chip, found)
    for within, most in MODELS_RESERVED.get(chip, {}).items():
        assert near(reserved, within) >= most, within


@deep
@pytest.mark.parametrize("chip", TPUS)
def test_peaks_of_large_programs_are_near_those_of_xla(chip: str) -> None:
    found = ratios(chip, large(chip))
    for within, most in LARGE[chip].items():
        assert near(found, within) >= most, within
    reserved = of_reserved(chip, found)
    assert len(reserved) == len(found)
    for within, most in RESERVED[chip].items():
        assert near(reserved, within) >= most, within


@deep
@pytest.mark.parametrize("programs", MOVED)
def test_kernels_and_what_they_move_are_near_those_of_xla(programs: str) -> None:
    names = compiled("v6e") if programs == "models" else large("v6e")
    found = moved("v6e", names)
    for figure, rows in MOVED[programs].items():
        for within, most in rows.items():
            assert near(found[figure], within) >= most, (figure, within)


def test_copies_between_memories_count_beside_kernels() -> None:
    ours, theirs = cost("v6e", "averaged-data"), kept("v6e")["averaged-data"]
    copies = ours.async_copies
    assert copies.count > 0
    assert 3 * copies.bytes <= copies.bytes_accessed <= 4 * copies.bytes
    moved = sum(kernel.bytes_accessed for kernel in ours.kernels)
    assert ours.bytes_accessed == moved + copies.bytes_accessed < theirs.accessed
    on_gpus = shardcore.Module.parse(text("averaged-data")).propagate().cost("h100")
    assert on_gpus.async_copies == AsyncCopies(0, 0, 0)


def test_a_kernel_counts_whole_tiles() -> None:
    [kernel] = cost_of(NARROW).kernels
    # Rows of 64 elements take those of 128.
    assert kernel.bytes_accessed == 2 * (8 * 64 * 32 * 128 * 4)


@deep
def test_peaks_of_programs_that_were_compiled_later() -> None:
    found = ratios(CHIP, more(CHIP))
    for within, most in MORE.items():
        assert near(found, within) >= most, within


def test_what_one_kernel_reads_at_several_places_is_computed_in_it() -> None:
    ours, theirs = cost(CHIP, "chain-shared"), kept(CHIP)["chain-shared"]
    assert (len(ours.kernels), theirs.kernels) == (1, 1)
    assert ours.peak_bytes == theirs.peak


def test_kernels_and_reductions_of_the_same_values_are_one_and_store_none() -> None:
    ours, theirs = cost(CHIP, "chain-grad"), kept(CHIP)["chain-grad"]
    assert len(ours.kernels) == theirs.kernels == 3
    assert abs(sum(it.bytes_accessed for it in ours.kernels) / theirs.accessed - 1) < 0.01
    assert ours.peak_bytes - ours.argument_bytes - ours.output_bytes <= 2**20


def test_gaps_between_temporaries_count() -> None:
    # Logits and their logarithms, made when smaller arrays lie where they would fit.
    ours = cost(CHIP, "lm-dp")
    assert ours.hole_bytes > ours.peak_bytes // 10


def temporary(text: str, chip: str) -> int:
    """Bytes of temporary values in HBM."""
    cost = shardcore.Module.parse(text).propagate().cost(CHIPS[chip])
    return cost.peak_bytes - cost.argument_bytes - cost.output_bytes


def test_only_fusions_without_products_write_the_vector_memory_of_v5p() -> None:
    table = 16 * 2**10
    assert temporary(GATHERED, "v5e") == 0
    # What is gathered is copied to vector memory, or read from HBM.
    assert temporary(GATHERED, "v5p") in (4 * 2**20, 4 * 2**20 + table)


def test_a_counter_of_a_loop_is_not_in_hbm() -> None:
    ours, theirs = cost(CHIP, "lstm-data"), kept(CHIP)["lstm-data"]
    assert theirs.temp == 0
    assert ours.peak_bytes <= ours.argument_bytes + ours.output_bytes


MASKED = """func.func @main(%x: tensor<8192x8192xui32>, %y: tensor<8192x8192xf32>,
    %w: tensor<8192x8192xf32>)
    -> (tensor<8192x8192xf32>, tensor<8192x8192xf32>) {
  %half = stablehlo.constant dense<2147483648> : tensor<8192x8192xui32>
  %zero = stablehlo.constant dense<0.0> : tensor<8192x8192xf32>
  %bits = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
    : (tensor<8192x8192xui32>, tensor<8192x8192xui32>) -> tensor<8192x8192xui32>
  %mask = stablehlo.compare LT, %bits, %half
    : (tensor<8192x8192xui32>, tensor<8192x8192xui32>) -> tensor<8192x8192xi1>
  %kept = stablehlo.select %mask, %y, %zero : tensor<8192x8192xi1>, tensor<8192x8192xf32>
  %0 = stablehlo.dot_general %kept, %w, contracting_dims = [1] x [0]
    : (tensor<8192x8192xf32>, tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
    : (tensor<8192x8192xf32>, tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %2 = stablehlo.select %mask, %1, %zero : tensor<8192x8192xi1>, tensor<8192x8192xf32>
  return %0, %2 : tensor<8192x8192xf32>, tensor<8192x8192xf32>
}"""


def test_a_mask_is_stored_and_not_the_bits_that_it_is_computed_of() -> None:
    cost = shardcore.Module.parse(MASKED).propagate().cost(HARDWARE)
    assert [kernel.value for kernel in cost.kernels][:2] == ["%mask", "%0"]


@pytest.mark.parametrize(("name", "are_stored"), [("attn8k", True), ("lm-scan-remat", False)])
def test_exponentials_are_computed_anew_of_scores_in_bf16(name: str, are_stored: bool) -> None:
    live = cost(CHIP, name).live_at_peak
    assert any(value.op == "stablehlo.exponential" for value in live) == are_stored


def test_a_product_whose_result_is_gathered_is_computed_once() -> None:
    kernels = cost(CHIP, "mixtral-grad").kernels
    logits = [it for it in kernels if ("stablehlo.dot_general", None) in it.ops]
    assert sum(it.written_bytes >= 4 * 1024 * 32000 * 2 for it in logits) == 1
    # The gradient of the logits is computed of them in the products that read it.
    assert all(it.flops < 4 * 4 * 1024 * 1024 * 32000 for it in logits)


def test_vector_memory_is_that_of_the_chip() -> None:
    # 32 MiB fit into it twice on v5e, once on v5p.
    assert temporary(TWO_ARRAYS, "v5e") == 0
    assert temporary(TWO_ARRAYS, "v5p") >= 32 * 2**20


GATHERED_ROWS = """func.func @main(%x: tensor<4096x8192xbf16>, %i: tensor<64xi32>)
    -> tensor<64x8192xf32> {
  %0 = stablehlo.convert %x : (tensor<4096x8192xbf16>) -> tensor<4096x8192xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<4096x8192xf32>
  %2 = "stablehlo.gather"(%1, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 8192>}>
    : (tensor<4096x8192xf32>, tensor<64xi32>) -> tensor<64x8192xf32>
  %3 = stablehlo.negate %2 : tensor<64x8192xf32>
  return %3 : tensor<64x8192xf32>
}"""


def test_what_is_gathered_is_in_memory() -> None:
    # 128 MiB fill the vector memory of v5e.
    assert temporary(GATHERED_ROWS, "v5e") >= 128 * 2**20
    gpu = shardcore.Module.parse(GATHERED_ROWS).propagate().cost("h100")
    assert gpu.peak_bytes == gpu.argument_bytes + gpu.output_bytes
