//! Values that XLA copies before an in-place update, since another reader may run after it.
//!
//! For example, two scatters into the same zeros each update a copy of them; so do loops with the same initial value. A copy is
//! made as soon as its operand is available. Source: XLA's `CopyInsertion`, which runs before kernels are scheduled.

use super::copies;
use crate::compilers::xla_cpu::copy_insertion::reads_before_writes::{are_read_apart, Write};
use crate::compilers::xla_cpu::kernels::graph::{Graph, Item, Read, NONE};
use crate::ir::{OpKind, Program};
use rustc_hash::FxHashSet;

/// An item that a kernel writes into the buffer of another item.
#[derive(Clone, Copy)]
struct Update {
    made: u32,
    write: Write,
}

/// `graph` with copies of the updated operands that have other readers. `given` has pairs of the index of a result and the argument
/// whose buffer it takes; these are skipped here, other arguments are copied before an update. `copies_initial`: whether a loop gets
/// copies of a value that it updates in two ways; otherwise it takes a buffer for each without a copy.
pub fn with_copies(
    program: &Program,
    graph: Graph,
    given: &[(usize, u32)],
    copies_initial: bool,
) -> Graph {
    let updates = shared(&graph, updates(program, &graph), given, copies_initial);
    if updates.is_empty() {
        return graph;
    }
    add_copies(&graph, updates)
}

fn updates(program: &Program, graph: &Graph) -> Vec<Update> {
    let items = graph.items.iter().zip(0..).filter(|(item, _)| {
        item.over != NONE
            && item.bytes > 0
            && program.kind(graph.kernels[item.made_by as usize].op) != OpKind::Sort
    });
    let update = |(item, made): (&Item, u32)| Update {
        made,
        write: Write { kernel: item.made_by, over: graph.stored_as(item.over) },
    };
    items.map(update).collect()
}

/// The in-place updates among `updates` whose operand XLA copies first.
fn shared(
    graph: &Graph,
    mut updates: Vec<Update>,
    given: &[(usize, u32)],
    copies_initial: bool,
) -> Vec<Update> {
    // The arguments that are updated, with the results whose memory they are given to.
    let given = given.iter().filter_map(|&(result, argument)| {
        let item = graph.returned.get(result).filter(|&&item| item != NONE)?;
        Some((argument, graph.stored_as(*item)))
    });
    let given: FxHashSet<(u32, u32)> = given.collect();
    updates.retain(|update| !given.contains(&(update.write.over, update.made)));
    let mut is_returned = vec![false; graph.items.len()];
    for &item in graph.returned.iter().filter(|&&item| item != NONE) {
        is_returned[graph.stored_as(item) as usize] = true;
    }
    let writes: Vec<Write> = updates.iter().map(|update| update.write).collect();
    let is_argument = |over: u32| graph.items[over as usize].made_by == NONE;
    let is_kept = |write: &Write| is_argument(write.over) || is_returned[write.over as usize];
    let are_apart = are_read_apart(graph, &writes, |_, _| true);
    let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
    let mut is_shared = writes.iter().zip(are_apart).map(|(write, reader)| {
        let is_again = !seen.insert((write.kernel, write.over)) && copies_initial;
        reader.is_some() || is_again || is_kept(write)
    });
    updates.into_iter().filter(|_| is_shared.next() == Some(true)).collect()
}

/// `graph` with a copy for each of `updates`, before its kernel.
fn add_copies(graph: &Graph, mut updates: Vec<Update>) -> Graph {
    updates.sort_by_key(|update| update.write.kernel);
    let first = graph.items.len() as u32;
    let mut items = graph.items.clone();
    for (update, copy) in updates.iter().zip(first..) {
        items[update.made as usize].over = copy;
    }
    let before: Vec<(u32, u32)> =
        updates.iter().map(|Update { write, .. }| (write.kernel, write.over)).collect();
    copies::with_copies(graph, items, &before, |kernel, read: Read, instead| {
        let start = before.partition_point(|copy| copy.0 < kernel);
        let own = before[start..].iter().zip(first + start as u32..);
        let stored = graph.stored_as(read.item);
        let copied =
            own.take_while(|(copy, _)| copy.0 == kernel).filter(|(copy, _)| copy.1 == stored);
        let count = instead.total();
        copied.for_each(|(_, item)| instead.push(Read { item, ..read }));
        if instead.total() == count {
            instead.push(read);
        }
    })
}
