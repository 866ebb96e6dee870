"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array


@op("stablehlo.fft")
def fft(site: Site) -> Kernel:
    """The transform along the last dims, in 64 bits; its inverses are divided by their lengths."""
    lengths = site.integers("fft_length")
    dims = tuple(range(-len(lengths), 0))
    dtype = site.results[0].dtype
    transforms: dict[str, Callable[..., Array]] = {
        "FFT": np.fft.fftn,
        "IFFT": np.fft.ifftn,
        "RFFT": np.fft.rfftn,
        "IRFFT": np.fft.irfftn,
    }
    transform = transforms[site.attributes["fft_type"]]

    def compute(x: Array) -> Array:
        if not x.size or not all(lengths):
            return np.zeros((len(x), *site.results[0].shape), dtype)
        higher = np.complex128 if x.dtype.kind == "c" else np.float64
        return transform(x.astype(higher), s=lengths, axes=dims).astype(dtype)

    return arrays(compute)
