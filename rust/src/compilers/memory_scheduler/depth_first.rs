//! Post-orders of the kernels of a block.
//!
//! Source: XLA's `DFSMemoryScheduler` and `PostOrderScheduler`.

use super::Edges;
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};

/// Statistics of a kernel and all its transitive producers.
#[derive(Clone, Copy, Default)]
struct Stats {
    /// The sum of their numbers of users beyond the first.
    extra_users: u64,
    /// The bytes of their results.
    bytes: u128,
}

/// Post-order that visits operands in their order.
pub(super) fn post_order(graph: &Graph, edges: &Edges) -> Vec<u32> {
    visit(graph, edges, |_| {})
}

/// Post-order that visits first the operands with most extra users ([`Stats`]), then those with most bytes; `post_order` is
/// [`post_order`].
pub(super) fn by_stats(graph: &Graph, edges: &Edges, post_order: &[u32]) -> Vec<u32> {
    let count = graph.kernels.len();
    let mut stats = vec![Stats::default(); count];
    let mut total: u128 = 0;
    for &at in post_order {
        let own = bytes_made(graph, at);
        total = total.saturating_add(own);
        let users = edges.users.row(at).len() as u64;
        let mut all = Stats { extra_users: users.saturating_sub(1), bytes: own };
        for &operand in edges.operands.row(at) {
            let before = stats[operand as usize];
            all.extra_users = all.extra_users.saturating_add(before.extra_users);
            all.bytes = all.bytes.saturating_add(before.bytes);
        }
        // Paths are counted, of which there may be very many.
        all.extra_users = all.extra_users.min(count as u64);
        all.bytes = all.bytes.min(total);
        stats[at as usize] = all;
    }
    visit(graph, edges, |operands| {
        operands.sort_by_key(|&at| {
            let Stats { extra_users, bytes } = stats[at as usize];
            std::cmp::Reverse((extra_users, bytes))
        });
    })
}

/// The bytes of the results of kernel `at`.
pub(super) fn bytes_made(graph: &Graph, at: u32) -> u128 {
    graph
        .makes(at)
        .iter()
        .fold(0, |sum: u128, &item| sum.saturating_add(graph.items[item as usize].bytes))
}

/// Each kernel after its operands, which are visited in the order that `sort` gives: from the values that the block returns, then
/// from values without users.
fn visit(graph: &Graph, edges: &Edges, sort: impl Fn(&mut [u32])) -> Vec<u32> {
    let count = graph.kernels.len();
    let mut order = Vec::with_capacity(count);
    let mut is_begun = vec![false; count];
    let returned = graph.returned.iter().filter(|&&item| item != NONE);
    let makers = returned.map(|&item| graph.items[item as usize].made_by);
    let mut roots: Vec<u32> = makers.filter(|&by| by != NONE).collect();
    sort(&mut roots);
    let unused = (0..count as u32).filter(|&at| edges.users.row(at).is_empty());
    // For each open kernel where its operands begin in `operands`, and how many of them were visited.
    let mut stack: Vec<(u32, usize, usize)> = Vec::new();
    let mut operands: Vec<u32> = Vec::new();
    let mut open = |root: u32, stack: &mut Vec<_>, operands: &mut Vec<u32>| {
        if std::mem::replace(&mut is_begun[root as usize], true) {
            return;
        }
        let first = operands.len();
        operands.extend(edges.operands.row(root));
        sort(&mut operands[first..]);
        stack.push((root, first, 0));
    };
    for root in roots.into_iter().chain(unused.collect::<Vec<_>>()) {
        open(root, &mut stack, &mut operands);
        while let Some((at, first, next)) = stack.last_mut() {
            if let Some(&operand) = operands.get(*first + *next) {
                *next += 1;
                open(operand, &mut stack, &mut operands);
            } else {
                order.push(*at);
                operands.truncate(*first);
                stack.pop();
            }
        }
    }
    order
}
