//! The direction in which an op propagates in each op-priority step.
//!
//! There are five op-priority steps, each of which adds to the ones before it: pass-through ops
//! whose operands have no other use; pass-through ops; pass-through factors of all ops, with
//! broadcasts only backward; all factors, with broadcasts only backward; everything.
//!
//! Source: Shardy's propagation document, "Operation priorities".

use crate::index::{FactorId, Id};
use crate::ir::Direction;
use crate::op_sharding_rule::OpShardingRule;

/// Number of op-priority steps; in the last one everything propagates.
pub const NUM_STEPS: usize = 5;

/// How the direction of an op depends on the op-priority step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OpClass {
    /// Elementwise ops, reshapes, transposes, data-flow edges.
    PassThrough,
    /// Dynamic slices and dynamic update slices, which are pass-through forward only.
    DynamicSlice,
    /// Broadcasts.
    Broadcast,
    /// Anything else.
    Other,
    /// An op with this direction in every step, such as a propagation barrier.
    Fixed(Direction),
}

/// Whether it includes forward, and backward.
const fn bits(direction: Direction) -> (bool, bool) {
    match direction {
        Direction::None => (false, false),
        Direction::Forward => (true, false),
        Direction::Backward => (false, true),
        Direction::Both => (true, true),
    }
}

const fn from_bits(forward: bool, backward: bool) -> Direction {
    match (forward, backward) {
        (false, false) => Direction::None,
        (true, false) => Direction::Forward,
        (false, true) => Direction::Backward,
        (true, true) => Direction::Both,
    }
}

/// The direction that includes both.
pub fn union(a: Direction, b: Direction) -> Direction {
    let (a, b) = (bits(a), bits(b));
    from_bits(a.0 | b.0, a.1 | b.1)
}

/// The direction of an op of this class that `step` adds. `has_single_uses` is whether each operand
/// that is not a scalar has no other use, `is_pass_through` whether the factor is pass-through.
fn in_step(class: OpClass, step: usize, has_single_uses: bool, is_pass_through: bool) -> Direction {
    let passes = step == 1 || has_single_uses;
    match (step, class) {
        (_, OpClass::Fixed(direction)) => direction,
        (0 | 1, OpClass::PassThrough) if passes => Direction::Both,
        (0 | 1, OpClass::DynamicSlice) if passes => Direction::Forward,
        (0 | 1, _) => Direction::None,
        (2, _) if !is_pass_through => Direction::None,
        (2 | 3, OpClass::Broadcast) => Direction::Backward,
        _ => Direction::Both,
    }
}

/// The directions of an op along the factors of its rule.
#[derive(Clone, Debug)]
pub struct Directions {
    num_factors: usize,
    /// The direction of each factor in the first step, then in the second one, and so on.
    rows: Vec<Direction>,
}

impl Directions {
    /// The directions of ops of `class` with `rule`; `has_single_uses` is whether each operand that
    /// is not a scalar has no other use.
    pub fn new(class: OpClass, has_single_uses: bool, rule: &OpShardingRule) -> Self {
        let num_factors = rule.num_factors();
        let mut rows = vec![Direction::None; num_factors * NUM_STEPS];
        for factor in (0..num_factors).map(FactorId::from_index) {
            if rule.blocked.binary_search(&factor).is_ok() {
                continue;
            }
            let is_pass_through = rule.is_pass_through(factor);
            let mut so_far = Direction::None;
            for step in 0..NUM_STEPS {
                let own = in_step(class, step, has_single_uses, is_pass_through);
                so_far = union(so_far, own);
                rows[step * num_factors + factor.index()] = so_far;
            }
        }
        Self { num_factors, rows }
    }
    /// For each factor the direction in `step`, which includes the steps before it.
    #[inline]
    pub fn of(&self, step: usize) -> &[Direction] {
        &self.rows[step * self.num_factors..][..self.num_factors]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::FactorId;

    #[test]
    fn steps_widen() {
        let rule = OpShardingRule {
            factor_sizes: vec![4, 4],
            reduction: vec![FactorId::new(1)],
            ..OpShardingRule::default()
        };
        let pass = FactorId::new(0);
        let sum = FactorId::new(1);
        let of = |class, factor: FactorId| {
            let directions = Directions::new(class, false, &rule);
            (0..NUM_STEPS).map(|step| directions.of(step)[factor.index()]).collect()
        };
        let both = Direction::Both;
        let none = Direction::None;
        let all: Vec<Direction> = of(OpClass::PassThrough, pass);
        assert_eq!(all, [none, both, both, both, both]);
        let all: Vec<Direction> = of(OpClass::Other, sum);
        assert_eq!(all, [none, none, none, both, both]);
        let all: Vec<Direction> = of(OpClass::Broadcast, pass);
        let back = Direction::Backward;
        assert_eq!(all, [none, none, back, back, both]);
        let all: Vec<Direction> = of(OpClass::DynamicSlice, sum);
        assert_eq!(all, [none, Direction::Forward, Direction::Forward, both, both]);
    }
}
