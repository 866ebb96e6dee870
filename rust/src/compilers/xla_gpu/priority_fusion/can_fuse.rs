//! Which producers XLA may fuse into which consumers.
//!
//! Source: XLA's `PriorityFusion`, `FusionFitsInBudget`, `CanEmitInputFusedScatter` and `ShouldFuseInPlaceOp`.

use super::expression::{Expression, NONE};
use super::hero::Hero;
use super::node::{Kind, Node};

/// The most operands and results of a kernel.
pub const MAX_OPERANDS: usize = 96;
/// Bytes of shared memory of a block of threads.
pub const SHARED_BYTES: f64 = 49_152.0;
/// The most reductions that one kernel emits.
pub const MAX_REDUCTIONS: u32 = 8;
/// The most ops that are emitted for one kernel.
const MAX_SIZE: f64 = 10_000.0;

/// Whether `producer`, node `at`, may be fused into `consumer`, one of its users.
pub fn can_fuse(at: u32, producer: &Node, consumer: &Node) -> bool {
    if consumer.kind != Kind::Fusible || !matches!(producer.kind, Kind::Fusible | Kind::Bitcast) {
        return false;
    }
    let (inner, outer) = (&producer.expression, &consumer.expression);
    if inner.hero == Hero::Tiled || outer.hero == Hero::Tiled {
        return is_tileable(inner) && is_tileable(outer) && has_few_operands(producer, consumer);
    }
    if inner.hero == Hero::Scatter {
        return false;
    }
    if outer.hero == Hero::Scatter {
        let updated = outer.updated;
        if updated == at || updated != NONE && inner.use_of(updated).is_some() {
            return false;
        }
    }
    if inner.has_reduction && outer.has_reduction {
        return false;
    }
    // A reduction stays one.
    if matches!(inner.hero, Hero::Reduction(_)) && outer.hero_with(at, inner) == Hero::Loop {
        return false;
    }
    let fits = inner.shared_bytes + outer.shared_bytes <= SHARED_BYTES
        && inner.num_reductions + outer.num_reductions <= MAX_REDUCTIONS;
    fits && has_few_operands(producer, consumer)
        && is_small(at, producer, consumer)
        && is_safe_in_place(at, producer, consumer)
}

fn has_few_operands(producer: &Node, consumer: &Node) -> bool {
    let (inner, outer) = (&producer.expression.uses, &consumer.expression.uses);
    if inner.len() + outer.len() < MAX_OPERANDS {
        return true;
    }
    let is_new = |node: u32| consumer.expression.use_of(node).is_none();
    let count = outer.len() - 1 + inner.iter().filter(|it| is_new(it.node)).count();
    count <= outer.len() || count + 2 <= MAX_OPERANDS
}

fn is_small(at: u32, producer: &Node, consumer: &Node) -> bool {
    let outer = &consumer.expression;
    let emitted = outer.use_of(at).map_or(0.0, |it| outer.emitted(it));
    emitted.mul_add(producer.expression.size, outer.size) <= MAX_SIZE
}

/// Whether the buffer that `consumer` updates in place is still read elementwise only, once `producer` is fused into it.
fn is_safe_in_place(at: u32, producer: &Node, consumer: &Node) -> bool {
    let updated = consumer.expression.updated;
    let is_shared =
        updated != NONE && (updated == at || producer.expression.use_of(updated).is_some());
    !is_shared || producer.expression.num_moving == 0
}

fn is_tileable(expression: &Expression) -> bool {
    expression.hero == Hero::Tiled || expression.is_tileable
}
