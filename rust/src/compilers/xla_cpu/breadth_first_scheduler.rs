//! The order in which XLA:CPU runs kernels: breadth first, so that as many as possible may run concurrently.
//!
//! Source: XLA's `BFScheduler`.

use crate::compilers::xla_cpu::kernels::graph::{Graph, Order, NONE};

/// The kernels of `graph`, each as soon as its producers have run. The graph may not change once its order was asked for.
pub fn breadth_first(graph: &Graph) -> &[u32] {
    &order(graph).kernels
}

/// The order of the kernels of `graph` as in [`breadth_first`], with their depths.
pub fn order(graph: &Graph) -> &Order {
    graph.order.get_or_init(|| make(graph))
}

fn make(graph: &Graph) -> Order {
    let count = graph.kernels.len();
    let mut waits = vec![0_u32; count];
    // The users of each kernel, the first ones first: pairs of a user and the place of the next one. Names come last: XLA makes
    // them when all else is there.
    let mut first_users = [vec![NONE; count], vec![NONE; count]];
    let mut users: Vec<(u32, u32)> = Vec::with_capacity(graph.num_reads());
    let mut kernels = Vec::with_capacity(count);
    for at in (0..count as u32).rev() {
        let first_users = &mut first_users[usize::from(graph.kernels[at as usize].is_name)];
        graph.for_each_need(at, |by| {
            waits[at as usize] += 1;
            let next = std::mem::replace(&mut first_users[by as usize], users.len() as u32);
            users.push((at, next));
        });
        if waits[at as usize] == 0 {
            kernels.push(at);
        }
    }
    kernels.reverse();
    let mut depths = vec![0; count];
    let mut done = 0;
    while let Some(&at) = kernels.get(done) {
        done += 1;
        let depth = depths[at as usize] + 1;
        for first_users in &first_users {
            let mut next = first_users[at as usize];
            while let Some(&(user, after)) = users.get(next as usize) {
                next = after;
                let waits = &mut waits[user as usize];
                *waits -= 1;
                if *waits == 0 {
                    // The deepest of what it needs has run last.
                    depths[user as usize] = depth;
                    kernels.push(user);
                }
            }
        }
    }
    Order { kernels, depths }
}
