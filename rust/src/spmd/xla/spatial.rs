//! What XLA's partitioner looks at in a convolution beyond a product: spatial dims, windows, and groups of features and of
//! images.

use super::super::digits::total_size;
use super::shards::Tensor::{Left, Right};
use super::shards::{Decision, Shards, Tensor};
use crate::stablehlo::windows::WindowDim;

/// A convolution, as far as it is more than a product.
#[derive(Debug)]
pub struct Convolution {
    /// The dims along which windows move.
    pub spatial: Vec<Spatial>,
    /// The groups of features, or of the input's batch.
    pub groups: Option<Groups>,
    /// Whether it has groups of several features of the input each, which the partitioner does not shard.
    pub is_dense: bool,
}

/// A dim along which windows move.
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

/// Groups of features, or of the input's batch.
#[derive(Debug)]
pub struct Groups {
    /// Their factor.
    pub factor: usize,
    /// How many there are.
    pub count: i64,
}

impl Groups {
    /// The strategy along groups if all devices are along them.
    pub(super) fn of_all(&self, shards: &Shards) -> Option<Decision> {
        let all = shards.num_devices();
        let fills = |&of: &Tensor| total_size(&shards.of(of)[self.factor]) == all;
        if all == 1 || self.count % all != 0 {
            return None;
        }
        Some(self.alone(shards, [Left, Right].into_iter().find(fills)?))
    }
    /// The strategy along groups alone, as `leader` has them.
    pub(super) fn alone(&self, shards: &Shards, leader: Tensor) -> Decision {
        let mut strategy = shards.strategy.clone();
        strategy[self.factor].extend(&shards.of(leader)[self.factor]);
        shards.done(strategy)
    }
}

/// What trying to compute a convolution led to.
pub(super) enum Attempt {
    /// The partitioner takes this decision.
    Takes(Decision),
    /// The partitioner gives up.
    Fails,
    /// It goes on as with a product.
    GoesOn,
}
