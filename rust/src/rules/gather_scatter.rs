//! Rules of gather and scatter, computed in one walk over the dims of the slices.
//!
//! The slices are the result of a gather and the updates of a scatter. Each of their dims is either
//! an offset dim, which corresponds to a dim of the input, or a batch dim, which corresponds to a
//! dim of the indices and, if it is an explicit batch dim, also to one of the input.

use super::builder::{FactorKind, RuleBuilder};
use super::view::{membership, SignatureView};
use crate::op_sharding_rule::OpShardingRule;
use crate::stablehlo::dims::{IndexingDims, GATHER, SCATTER};

/// The dims of input, indices and slices that have a factor.
#[derive(Clone, Copy, Default)]
struct Place {
    input: Option<usize>,
    indices: Option<usize>,
    slices: Option<usize>,
}

/// Adds a factor to the rule: its dims, its size, its kind, and whether it is blocked.
type Add<'f> = &'f mut dyn FnMut(Place, i64, FactorKind, bool);

/// Whether the op is a gather or a scatter.
enum Flavor {
    Gather,
    /// Whether the update computation is a reduction, such as a sum.
    Scatter {
        reduces: bool,
    },
}

struct Walk<'a> {
    dims: IndexingDims,
    flavor: Flavor,
    input: &'a [i64],
    indices: &'a [i64],
    slices: &'a [i64],
}

impl Walk<'_> {
    fn run(&self, add: Add<'_>) -> Option<()> {
        let IndexingDims { window, collapsed, input_batching, .. } = &self.dims;
        let is_offset = membership(window, self.slices.len());
        let is_left_out = membership(collapsed.iter().chain(input_batching), self.input.len());
        let (mut input_dim, mut batch) = (0, 0);
        for (dim, &size) in self.slices.iter().enumerate() {
            if is_offset[dim] {
                while is_left_out.get(input_dim) == Some(&true) {
                    input_dim += 1;
                }
                self.offset_factors(input_dim, dim, size, add)?;
                input_dim += 1;
            } else {
                self.batch_factor(batch, dim, size, add)?;
                batch += 1;
            }
        }
        for &dim in &self.dims.collapsed {
            let size = *self.input.get(dim)?;
            let kind = match self.flavor {
                Flavor::Scatter { .. } => FactorKind::PassThrough,
                Flavor::Gather if size == 1 => FactorKind::NeedReplication,
                Flavor::Gather => FactorKind::Reduction,
            };
            add(Place { input: Some(dim), ..Place::default() }, size, kind, false);
        }
        if let Some(&size) = self.indices.get(self.dims.index_vector) {
            let place = Place { indices: Some(self.dims.index_vector), ..Place::default() };
            add(place, size, FactorKind::NeedReplication, false);
        }
        Some(())
    }

    /// Adds the factors of an offset dim: one pass-through factor if slices have the full size of
    /// the input's dim, else factors of other kinds.
    fn offset_factors(&self, input_dim: usize, dim: usize, size: i64, add: Add<'_>) -> Option<()> {
        let input_size = *self.input.get(input_dim)?;
        let input = Place { input: Some(input_dim), ..Place::default() };
        let slices = Place { slices: Some(dim), ..Place::default() };
        let both = Place { slices: Some(dim), ..input };
        match self.flavor {
            _ if input_size == size => add(both, size, FactorKind::PassThrough, false),
            Flavor::Gather if size != 1 => {
                add(both, input_size, FactorKind::NeedReplication, true);
            }
            Flavor::Gather => {
                add(input, input_size, FactorKind::Reduction, false);
                add(slices, size, FactorKind::NeedReplication, false);
            }
            Flavor::Scatter { .. } => {
                add(input, input_size, FactorKind::NeedReplication, false);
                add(slices, size, FactorKind::NeedReplication, false);
            }
        }
        Some(())
    }

    fn batch_factor(&self, batch: usize, dim: usize, size: i64, add: Add<'_>) -> Option<()> {
        let indices_dim = if batch < self.dims.index_vector { batch } else { batch + 1 };
        let explicit = self.dims.indices_batching.iter().position(|&other| other == indices_dim);
        let input = match explicit {
            Some(at) => Some(*self.dims.input_batching.get(at)?),
            None => None,
        };
        let kind = match self.flavor {
            Flavor::Scatter { reduces } if explicit.is_none() => {
                if reduces {
                    FactorKind::Reduction
                } else {
                    FactorKind::NeedReplication
                }
            }
            _ => FactorKind::PassThrough,
        };
        add(Place { input, indices: Some(indices_dim), slices: Some(dim) }, size, kind, false);
        Some(())
    }
}

/// `gather` of an input at indices.
pub fn gather(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let walk = Walk {
        dims: IndexingDims::read(view.attribute(GATHER.attribute)?, &GATHER)?,
        flavor: Flavor::Gather,
        input: view.operand(0)?,
        indices: view.operand(1)?,
        slices: view.result(0)?,
    };
    let mut builder = RuleBuilder::new(view);
    walk.run(&mut |place, size, kind, is_blocked| {
        let operand_dims = [place.input, place.indices];
        builder.factor(&operand_dims, &[place.slices], size, kind).blocked_if(is_blocked);
    })?;
    builder.build()
}

/// `scatter` of updates into inputs at indices.
pub fn scatter(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let num_inputs = view.num_operands() / 2;
    let walk = Walk {
        dims: IndexingDims::read(view.attribute(SCATTER.attribute)?, &SCATTER)?,
        flavor: Flavor::Scatter { reduces: view.surroundings },
        input: view.operand(0)?,
        indices: view.operand(num_inputs)?,
        slices: view.operand(num_inputs + 1)?,
    };
    let mut builder = RuleBuilder::new(view);
    let mut operand_dims = vec![None; 2 * num_inputs + 1];
    walk.run(&mut |place, size, kind, is_blocked| {
        operand_dims[..num_inputs].fill(place.input);
        operand_dims[num_inputs] = place.indices;
        operand_dims[num_inputs + 1..].fill(place.slices);
        let result_dims = vec![place.input; num_inputs];
        builder.factor(&operand_dims, &result_dims, size, kind).blocked_if(is_blocked);
    })?;
    builder.build()
}
