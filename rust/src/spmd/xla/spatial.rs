//! The properties of a convolution that XLA's partitioner uses besides those of a dot: spatial dims, windows, and feature and batch
//! groups.

use super::super::digits::total_size;
use super::shards::Tensor::{Left, Right};
use super::shards::{Decision, Shards, Tensor};
use crate::stablehlo::windows::WindowDim;

/// The properties of a convolution besides those of a dot.
#[derive(Debug)]
pub struct Convolution {
    /// The spatial dims.
    pub spatial: Vec<Spatial>,
    /// The feature groups or batch groups.
    pub groups: Option<Groups>,
    /// Whether it has feature groups of several input features each, which the partitioner does not shard.
    pub is_dense: bool,
}

/// A spatial dim.
#[derive(Debug)]
pub struct Spatial {
    /// The factor of the dim of the input.
    pub input: usize,
    /// The factor of the dim of the kernel.
    pub kernel: usize,
    /// The factor of the dim of the result.
    pub output: usize,
    /// The windows.
    pub window: WindowDim,
    /// The sizes in the input, the kernel and the result.
    pub sizes: [i64; 3],
}

/// Feature groups or batch groups.
#[derive(Debug)]
pub struct Groups {
    /// Their factor.
    pub factor: usize,
    /// Their number.
    pub count: i64,
}

impl Groups {
    /// The strategy along groups, if they are sharded over all devices.
    pub(super) fn of_all(&self, shards: &Shards) -> Option<Decision> {
        let all = shards.num_devices();
        let fills = |&of: &Tensor| total_size(&shards.of(of)[self.factor]) == all;
        if all == 1 || self.count % all != 0 {
            return None;
        }
        Some(self.alone(shards, [Left, Right].into_iter().find(fills)?))
    }
    /// The strategy along groups only, by the sharding of `leader`.
    pub(super) fn alone(&self, shards: &Shards, leader: Tensor) -> Decision {
        let mut strategy = shards.strategy.clone();
        strategy[self.factor].extend(&shards.of(leader)[self.factor]);
        shards.done(strategy)
    }
}

/// The outcome of the cases for convolutions.
pub(super) enum Attempt {
    /// The partitioner takes this decision.
    Takes(Decision),
    /// The partitioner gives up, and replicates.
    Fails,
    /// It continues with the cases of a dot.
    GoesOn,
}
