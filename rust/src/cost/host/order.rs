//! The order in which XLA runs kernels on hosts: breadth first, so that as many as can may run at once.
//!
//! Source: XLA's `BFScheduler`.

use super::graph::{Graph, NONE};

/// The kernels of `graph`, each as soon as all that it needs have run. Neither kernels nor what they read may change once this
/// has been asked for.
pub fn breadth_first(graph: &Graph) -> &[u32] {
    graph.order.get_or_init(|| order(graph))
}

fn order(graph: &Graph) -> Vec<u32> {
    let count = graph.kernels.len();
    let mut waits = vec![0_u32; count];
    let mut starts = vec![0_u32; count + 1];
    let needs = |at: u32| {
        let reads = graph.reads(at).iter();
        reads.map(|read| graph.items[read.item as usize].made_by).filter(move |&by| by != NONE)
    };
    for at in 0..count as u32 {
        for by in needs(at) {
            waits[at as usize] += 1;
            starts[by as usize + 1] += 1;
        }
    }
    for at in 0..count {
        starts[at + 1] += starts[at];
    }
    let mut next = starts.clone();
    let mut users = vec![0_u32; *starts.last().unwrap_or(&0) as usize];
    for at in 0..count as u32 {
        for by in needs(at) {
            users[next[by as usize] as usize] = at;
            next[by as usize] += 1;
        }
    }
    let mut order: Vec<u32> = (0..count as u32).filter(|&at| waits[at as usize] == 0).collect();
    let mut done = 0;
    while let Some(&at) = order.get(done) {
        done += 1;
        for &user in &users[starts[at as usize] as usize..starts[at as usize + 1] as usize] {
            waits[user as usize] -= 1;
            if waits[user as usize] == 0 {
                order.push(user);
            }
        }
    }
    order
}
