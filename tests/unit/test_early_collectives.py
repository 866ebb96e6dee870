"""What collectives that run beside kernels hold in memory on GPUs."""

from __future__ import annotations

from shardcore import Module

MIB = 1 << 20

# The sum of the gradient is needed at the end alone, after a chain of products.
TEXT = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<16384x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %w: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0]
      : (tensor<16384x1024xf32>, tensor<16384x1024xf32>) -> tensor<1024x1024xf32>
  %1 = stablehlo.dot %w, %w
      : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %2 = stablehlo.dot %1, %w
      : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %3 = stablehlo.dot %2, %2
      : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %4 = stablehlo.dot %0, %3
      : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %4, %3 : tensor<1024x1024xf32>, tensor<1024x1024xf32>
}"""


def test_what_a_collective_reads_stays_until_it_is_awaited() -> None:
    result = Module.parse(TEXT).propagate()
    temporaries = {
        compiler: result.cost("h100", compiler=compiler).memory.temp_size_in_bytes / MIB
        for compiler in ("xla-gpu", "xla-tpu")
    }
    # The partial product and its sum; the products of the chain are in the memory of results. TPUs
    # have both in vector memory.
    assert {name: round(size) for name, size in temporaries.items()} == {"xla-gpu": 8, "xla-tpu": 0}
