//! Whether XLA's partitioner exchanges halos along a dim, or replicates it.
//!
//! Source: `ReshardAsWindowedInput` in `spmd_partitioner.cc`; `ExchangeHalo`, `ExchangeHaloAndGetValidData` in
//! `spmd_partitioner_util.cc`; `convolution_handler.cc`.

use crate::layout::ceil_div;
use crate::stablehlo::windows::WindowDim;

/// The halos of the shards of a dim.
#[derive(Debug)]
pub struct Halos {
    /// For each shard the number of elements that it needs before its own.
    left: Vec<i64>,
    /// For each shard the number of elements that it needs after its own.
    right: Vec<i64>,
    /// The size of a shard.
    shard: i64,
    /// The most elements of a shard with its halos.
    with_halos: i64,
    /// The padding on the left.
    padding: i64,
}

impl Halos {
    /// The halos of an input with these windows, for the shards of the result; `None` if the partitioner cannot exchange them
    /// because of the dilation.
    pub fn of_windows(window: &WindowDim, sizes: [i64; 3], count: i64) -> Option<Self> {
        let [base, size, windows] = sizes;
        let (stride, dilation, [low, _]) = (window.stride, window.base_dilation, window.padding);
        let per_shard = ceil_div(windows, count);
        if stride != 1 && (stride * per_shard) % dilation != 0 {
            return None;
        }
        let reach = 1 + (size - 1) * window.window_dilation;
        let of_shard = stride * (per_shard - 1) + reach;
        let (padding, rest) = (low / dilation, low % dilation);
        let start = |at: i64| (stride * per_shard * at + dilation - 1 - rest) / dilation;
        let limit = |at: i64| (stride * per_shard * at + of_shard + dilation - 1 - rest) / dilation;
        let shard = ceil_div(base, count);
        Some(Self {
            left: (0..count).map(|at| shard * at + padding - start(at)).collect(),
            right: (0..count).map(|at| limit(at) - shard * (at + 1) - padding).collect(),
            shard,
            with_halos: (0..count).map(|at| limit(at) - start(at)).max()?,
            padding,
        })
    }
    /// The halos of an input for the shards of its kernel.
    pub fn of_kernel(window: &WindowDim, sizes: [i64; 3], count: i64) -> Self {
        let [base, size, windows] = sizes;
        let (shard, part) = (ceil_div(base, count), ceil_div(size, count));
        let (inside, low) = (window.window_dilation, window.padding[0]);
        let reach = window.stride * (windows - 1);
        let more = part * inside - shard;
        Self {
            left: (0..count).map(|at| low - more * at).collect(),
            right: (0..count).map(|at| more * (at + 1) + 1 - inside + reach - low).collect(),
            shard,
            with_halos: reach + (part - 1) * inside + 1,
            padding: low,
        }
    }
    /// Whether the partitioner exchanges them.
    pub fn reach(&self) -> bool {
        let count = self.left.len();
        let most = |halos: &[i64]| halos.iter().copied().max().unwrap_or(0);
        let (left, right) = (most(&self.left), most(&self.right));
        let both = self.left.iter().zip(&self.right).map(|(left, right)| left + right).max();
        let all = self.shard * count as i64;
        let with_halos = self.shard + both.unwrap_or(0);
        if self.left.first() == Some(&self.padding)
            && with_halos == self.with_halos
            && left.max(right) > 2 * with_halos
        {
            return with_halos * 2 < all;
        }
        let (inner_left, inner_right) =
            (most(&self.left[1.min(count)..]), most(&self.right[..count.saturating_sub(1)]));
        let is_all = inner_left + inner_right + self.shard >= all;
        let is_far = inner_left > self.shard || inner_right > self.shard;
        !(is_all && is_far) && -left < self.shard + right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: WindowDim = WindowDim {
        size: Some(3),
        stride: 1,
        padding: [1, 1],
        base_dilation: 1,
        window_dilation: 1,
        is_reversed: false,
    };

    #[test]
    fn halos_reach_to_neighbours() {
        assert!(Halos::of_windows(&WINDOW, [16, 3, 16], 8).is_some_and(|halos| halos.reach()));
        let cumulative = WindowDim { size: Some(64), padding: [63, 0], ..WINDOW };
        assert!(Halos::of_windows(&cumulative, [64, 64, 64], 4).is_some_and(|h| !h.reach()));
    }
    #[test]
    fn strides_that_dilation_does_not_divide_have_none() {
        let odd = WindowDim { stride: 3, base_dilation: 2, ..WINDOW };
        assert!(Halos::of_windows(&odd, [16, 3, 11], 4).is_none());
    }
    #[test]
    fn a_part_of_a_long_kernel_needs_what_its_windows_begin_with() {
        // The gradient with respect to a kernel of 3: 3 windows of 16 elements of a padded input.
        let halos = Halos::of_kernel(&WINDOW, [16, 16, 3], 4);
        assert_eq!((&halos.left[..], &halos.right[..]), (&[1; 4][..], &[1; 4][..]));
        assert!(halos.reach());
    }
}
