"""Convolutions: windows over the input, multiplied with the kernel."""

from __future__ import annotations

import math

import numpy as np

from shardcore.simulate.contract import Products, sum_in_type
from shardcore.simulate.convert import converted
from shardcore.simulate.registry import op
from shardcore.simulate.run import Run
from shardcore.simulate.shapes import uniform_integers
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array
from shardcore.simulate.windows import Window, windows_of


def _order(numbers: dict[str, object], side: str, first: str, second: str) -> tuple[int, ...]:
    """The dims of one of the tensors: the two named dims, then the spatial dims."""
    spatial = numbers.get(f"{side}_spatial_dimensions", ())
    named = (numbers[f"{side}_{first}_dimension"], numbers[f"{side}_{second}_dimension"])
    return tuple(int(dim) for dim in (*named, *spatial))  # type: ignore[misc]


def _arranged(x: Array, order: tuple[int, ...]) -> Array:
    return x.transpose(0, *(dim + 1 for dim in order))


@op("stablehlo.convolution", "stablehlo.dynamic_conv")
def convolution(site: Site) -> Kernel:
    """The convolution of an input and a kernel, in groups of features or of the batch."""
    numbers = site.attributes["dimension_numbers"]
    lhs_order = _order(numbers, "input", "batch", "feature")
    rhs_order = _order(numbers, "kernel", "output_feature", "input_feature")
    out_order = _order(numbers, "output", "batch", "feature")
    spatial = len(lhs_order) - 2
    ones = (1,) * spatial
    strides, base = site.integers("window_strides", ones), site.integers("lhs_dilation", ones)
    dilations = site.integers("rhs_dilation", ones)
    reversal = site.integers("window_reversal", (0,) * spatial)
    flipped = tuple(dim + 3 for dim in range(spatial) if reversal[dim])
    features, batches = site.integer("feature_group_count"), site.integer("batch_group_count")
    products = Products(site)
    kind, dtype = products.kind, products.dtype
    back = np.argsort(out_order)
    sizes = tuple(site.operands[1].shape[dim] for dim in rhs_order[2:])
    fixed = (
        site.integers("padding", (0, 0) * spatial) if site.name == "stablehlo.convolution" else ()
    )
    if len(fixed) == 1:
        fixed *= 2 * spatial

    def kernel(run: Run, lhs: Array, rhs: Array, *amounts: Array) -> Array:
        padding = uniform_integers(amounts[0], site, "the padding") if amounts else fixed
        window = Window(sizes, strides, base, dilations, padding[::2], padding[1::2])
        a = converted(_arranged(lhs, lhs_order), kind)
        b = converted(_arranged(rhs, rhs_order), kind)
        b = np.flip(b, flipped) if flipped else b
        view = windows_of(window.padded(a, np.zeros(1, kind)), sizes, strides, dilations)
        found = _multiplied(view, b, features, batches, products)
        return sum_in_type(found.transpose(0, *(back + 1)), dtype)

    return kernel


def _multiplied(view: Array, b: Array, features: int, batches: int, products: Products) -> Array:
    """Windows (devices, batch, feature, places, window) times (devices, out, in, window)."""
    spatial = b.ndim - 3
    devices, batch, channels = view.shape[:3]
    places = view.shape[3 : 3 + spatial]
    groups = features * batches
    # The group dim comes first; only one of feature groups and batch groups exceeds one.
    x = view.reshape(
        devices, batches, batch // batches, features, channels // features, *view.shape[3:]
    )
    rank = x.ndim
    inner = range(rank - spatial, rank)
    x = x.transpose(0, 1, 3, 2, *range(5, 5 + spatial), 4, *inner)
    rows, terms = (batch // batches) * math.prod(places), math.prod(b.shape[2:])
    x = x.reshape(devices, groups, rows, terms)
    out = b.shape[1]
    w = b.reshape(len(b), groups, out // groups, terms)
    found = products.matmul(x, w.swapaxes(-1, -2))
    found = found.reshape(len(found), groups, batch // batches, *places, out // groups)
    found = np.moveaxis(found, 1, -2)
    return np.moveaxis(found.reshape(len(found), batch // batches, *places, out), -1, 2)
