//! The order in which a product reads the elements of a value: runs of elements, each along one dim of an operand of the product.
//!
//! A kernel of products is made of tiles with one side along the dims that are summed over and one along the free ones, so it computes
//! an operand itself only if each of these is one run in memory: of two runs of the free dims it can follow those of a left operand.
//!
//! Source: XLA's `triton_tiling_propagation.cc`.

/// What the dims of an operand of a product are: batch dims, each by itself, and dims that are free or summed over, together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Batch(usize),
    Free,
    Contracting,
}

/// Elements that are adjacent along one dim, in the order of these.
#[derive(Clone, Copy, Debug)]
struct Run {
    role: Role,
    /// The distance of two of its elements among those of its role.
    stride: i64,
    size: i64,
}

/// The runs of a value, the outermost first.
#[derive(Clone, Debug)]
pub struct TileOrder {
    runs: Vec<Run>,
    /// Whether the free dims may be two runs.
    may_split: bool,
}

impl TileOrder {
    /// For an operand with dims of these roles and sizes; `is_left` of a product without batch dims.
    pub fn new(dims: &[(Role, i64)], is_left: bool) -> Self {
        let is_batch = |&(role, _): &(Role, i64)| matches!(role, Role::Batch(_));
        let may_split = is_left && !dims.iter().any(is_batch);
        let run = |(at, &(role, size)): (usize, &(Role, i64))| {
            let inner = dims[at + 1..].iter().filter(|(other, _)| *other == role);
            let stride = inner.fold(1_i64, |stride, (_, size)| stride.saturating_mul(*size));
            Run { role, stride, size }
        };
        Self { runs: dims.iter().enumerate().map(run).collect(), may_split }
    }
    /// Whether the kernel of a product can follow this order.
    pub fn is_supported(&self) -> bool {
        let runs: Vec<&Run> = self.runs.iter().filter(|run| run.size > 1).collect();
        let mut num_splits = 0;
        for (at, run) in runs.iter().enumerate() {
            let Some(before) = runs[..at].iter().rposition(|other| other.role == run.role) else {
                continue;
            };
            let is_split = before + 1 != at;
            num_splits += usize::from(is_split);
            let may_split = self.may_split && run.role == Role::Free && num_splits == 1;
            if runs[before].stride <= run.stride || is_split && !may_split {
                return false;
            }
        }
        true
    }
    /// The runs of each dim of a value with these `sizes`; `None` if some run is in two of them that it does not fill.
    fn by_dim(&self, sizes: &[i64]) -> Option<Vec<Vec<Run>>> {
        let mut runs = self.runs.iter().copied();
        let (mut found, mut left) = (Vec::with_capacity(sizes.len()), None);
        for &size in sizes {
            let (mut own, mut missing) = (Vec::new(), size);
            while missing > 1 {
                let run: Run = left.take().or_else(|| runs.next()).filter(|run| run.size > 0)?;
                if missing % run.size == 0 {
                    missing /= run.size;
                    own.push(run);
                } else if run.size % missing == 0 {
                    let inner = run.size / missing;
                    own.push(Run {
                        size: missing,
                        stride: run.stride.saturating_mul(inner),
                        ..run
                    });
                    left = Some(Run { size: inner, ..run });
                    missing = 1;
                } else {
                    return None;
                }
            }
            found.push(own);
        }
        Some(found)
    }
    /// The order of the operand of a transpose with this `permutation`, whose result has these `sizes`.
    pub fn before_transpose(&self, sizes: &[i64], permutation: &[usize]) -> Option<Self> {
        let by_dim = self.by_dim(sizes)?;
        let place = |dim: usize| permutation.iter().position(|&of| of == dim);
        let mut runs = Vec::with_capacity(self.runs.len());
        for dim in 0..permutation.len() {
            runs.extend(by_dim.get(place(dim)?)?);
        }
        Some(Self { runs, ..*self })
    }
    /// The order of the operand of a broadcast whose dims are those at `places` of a result with these `sizes`; `None` if it has only
    /// a part of the dims of some role.
    pub fn before_broadcast(&self, sizes: &[i64], places: &[usize]) -> Option<Self> {
        let by_dim = self.by_dim(sizes)?;
        let mut runs: Vec<Run> = Vec::new();
        for &place in places {
            runs.extend(by_dim.get(place)?);
        }
        let is_kept = |run: &Run| runs.iter().any(|other| other.role == run.role);
        let dropped = (0..sizes.len()).filter(|dim| !places.contains(dim));
        let is_partial =
            dropped.flat_map(|dim| &by_dim[dim]).any(|run| run.size > 1 && is_kept(run));
        (!is_partial).then_some(Self { runs, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::{Role, TileOrder};

    fn order(dims: &[(Role, i64)], is_left: bool) -> TileOrder {
        TileOrder::new(dims, is_left)
    }

    #[test]
    fn free_dims_of_a_left_operand_may_be_two_runs() {
        // Of [2, 4, 64, 256], moved to [2, 256, 4, 64] and read as [512, 256]: rows are in two runs.
        let rows = order(&[(Role::Free, 512), (Role::Contracting, 256)], true);
        let before = rows.before_transpose(&[2, 256, 4, 64], &[0, 3, 1, 2]).unwrap();
        assert!(before.is_supported());
        let rows = order(&[(Role::Free, 512), (Role::Contracting, 256)], false);
        assert!(!rows.before_transpose(&[2, 256, 4, 64], &[0, 3, 1, 2]).unwrap().is_supported());
    }

    #[test]
    fn a_transpose_within_a_role_is_not_supported() {
        let summed = order(&[(Role::Contracting, 8), (Role::Contracting, 4)], true);
        assert!(summed.is_supported());
        assert!(!summed.before_transpose(&[8, 4], &[1, 0]).unwrap().is_supported());
    }

    #[test]
    fn a_broadcast_of_a_part_of_a_role_is_none() {
        let rows = order(&[(Role::Free, 8), (Role::Contracting, 4)], true);
        assert!(rows.before_broadcast(&[8, 4], &[1]).is_some());
        assert!(rows.before_broadcast(&[2, 4, 4], &[1, 2]).is_none());
    }

    #[test]
    fn empty_and_huge_dims_have_orders() {
        let empty = order(&[(Role::Free, 0), (Role::Contracting, 6)], true);
        assert!(empty.before_transpose(&[3, 2, 0], &[0, 1, 2]).is_none());
        let huge = order(&[(Role::Free, i64::MAX), (Role::Free, i64::MAX)], true);
        assert!(huge.is_supported());
        assert!(huge.before_transpose(&[2, 3], &[1, 0]).is_none());
    }
}
