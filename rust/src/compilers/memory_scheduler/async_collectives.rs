//! Asynchronous collectives: each starts as soon as its operands are ready, and its `done` is right before the first kernel that
//! reads its result. Its operands stay live until then.
//!
//! Source: `PostprocessorToScheduleAsEarlyOrLateAsPossible` of XLA's `gpu_hlo_schedule`. All-gathers are not among them.

use crate::compilers::xla_cpu::kernels::graph::Graph;
use crate::compilers::xla_cpu::ragged_rows::Rows;
use crate::ir::Program;

/// The collectives that are started early.
const EARLY: [&str; 4] = [
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_permute",
    "stablehlo.reduce_scatter",
];

/// For each kernel of `graph` whether it is a collective that is started early.
pub fn early_kernels(program: &Program, graph: &Graph) -> Vec<bool> {
    let is_early = |name: &str| EARLY.contains(&name);
    let kernels = graph.kernels.iter();
    kernels.map(|kernel| kernel.is_op && is_early(program.op_name(kernel.op))).collect()
}

/// `order` with the kernels in `is_early` moved to where their operands are ready; and the items that they read, each with the
/// position until which its live range is extended.
pub fn with_early_starts(
    graph: &Graph,
    order: &[u32],
    is_early: &[bool],
) -> (Vec<u32>, Vec<(u32, u32)>) {
    let count = graph.kernels.len();
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut waits = vec![0_u32; count];
    for at in 0..count as u32 {
        graph.for_each_need(at, |by| {
            edges.push((by, at));
            waits[at as usize] += 1;
        });
    }
    let users = Rows::of(count, &edges);
    let (mut early, mut is_done) = (Vec::with_capacity(count), vec![false; count]);
    let mut ready: Vec<u32> = Vec::new();
    for &kernel in order {
        ready.push(kernel);
        while let Some(kernel) = ready.pop() {
            if std::mem::replace(&mut is_done[kernel as usize], true) {
                continue;
            }
            early.push(kernel);
            for &user in users.row(kernel) {
                let waits = &mut waits[user as usize];
                *waits = waits.saturating_sub(1);
                // What only gives a result another name starts nothing, and is passed.
                if *waits == 0 && (is_early[user as usize] || graph.makes_names(user)) {
                    ready.push(user);
                }
            }
        }
    }
    let mut places = vec![0_u32; count];
    for (&kernel, at) in early.iter().zip(0..) {
        places[kernel as usize] = at;
    }
    // From the last kernel on, so that names know their own first use.
    let mut first_use = vec![count.saturating_sub(1) as u32; count];
    let mut held = Vec::new();
    for &kernel in early.iter().rev() {
        let use_of = |&user: &u32| {
            let of = if graph.makes_names(user) { &first_use } else { &places };
            of[user as usize]
        };
        let uses = users.row(kernel).iter().map(use_of);
        if let Some(first) = uses.min() {
            first_use[kernel as usize] = first;
        }
        // What is written over its operand holds it anyway.
        if is_early[kernel as usize] && !graph.overwrites(kernel) {
            let until = first_use[kernel as usize].saturating_sub(1);
            held.extend(graph.reads(kernel).iter().map(|it| (graph.stored_as(it.item), until)));
        }
    }
    (early, held)
}
