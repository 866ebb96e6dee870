//! Kernels with several results: a reduction is computed by the kernel that writes what it reads, elementwise kernels and reductions
//! that read the same array are one kernel. All of them loop over the same elements, and none needs anything else that depends on
//! another.
//!
//! Transposes of what a product writes or reads are layouts, and no kernels.
//!
//! Source: fusions with tuples as results in programs that XLA compiled for TPUs, as `(f32[16,12,512], bf16[16,12,512,512])` of scores
//! and their maximum.

use crate::compilers::xla_cpu::fusion::op_facts::{Fact, Facts};
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::compilers::xla_cpu::kernels::kernel_row::KernelRow;
use crate::compilers::xla_tpu::product_fusion::is_product;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most reads that are followed to see whether one kernel depends on another.
const MAX_FOLLOWED: usize = 4096;

/// The most groups that read an array and are tried, and the most that a kernel tries.
const MAX_SIBLINGS: usize = 4;
const MAX_TRIED: usize = 16;

/// The most names of a value that are followed.
const MAX_NAMES: usize = 8;

/// What a kernel computes, as far as it may have more results.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Product,
    Reduction,
    Loop,
    Other,
}

/// Kernels that become one.
struct Group {
    class: Class,
    /// The elements that it loops over.
    elements: u128,
    members: Vec<u32>,
    /// The index of its row.
    row: usize,
}

/// The groups of the kernels so far.
struct Groups<'g> {
    graph: &'g Graph,
    groups: Vec<Group>,
    /// The group of each kernel.
    group_of: Vec<u32>,
    /// The last groups that read each item and loop over its elements.
    readers: FxHashMap<u32, Vec<u32>>,
    /// What each group reads or writes, and the ops of each.
    touched: FxHashSet<(u32, u32)>,
    ops: FxHashSet<(u32, OpId)>,
}

/// `rows` of kernels of `graph`, each with its number, in program order, of which several may become one.
pub fn fused_rows(
    (program, works): (&Program, &mut Works<'_>),
    facts: &Facts,
    graph: &Graph,
    rows: Vec<(u32, KernelRow)>,
) -> Vec<KernelRow> {
    let group_of = vec![NONE; graph.kernels.len()];
    let (groups, readers, touched, ops) = Default::default();
    let mut groups = Groups { graph, groups, group_of, readers, touched, ops };
    let mut found: Vec<KernelRow> = Vec::with_capacity(rows.len());
    for (kernel, row) in rows {
        if is_layout(program, graph, kernel, &row) {
            continue;
        }
        let (class, elements) = class_of((program, works), facts, &row);
        let mut wholes: Vec<u32> = Vec::new();
        if class != Class::Other {
            for read in graph.reads(kernel) {
                let item = graph.stored_as(read.item);
                let is_apart = is_behind_barrier(program, graph.items[read.item as usize].value);
                if !is_apart
                    && works.tensors.of(graph.items[item as usize].value).elements == elements
                {
                    wholes.push(item);
                }
            }
            wholes.sort_unstable();
            wholes.dedup();
        }
        let place = if let Some(place) = groups.host(kernel, (class, elements), &wholes) {
            let host = &mut found[groups.groups[place as usize].row];
            groups.add_row((place, host), kernel, row);
            place
        } else {
            let members = Vec::new();
            let place = groups.groups.len() as u32;
            groups.groups.push(Group { class, elements, members, row: found.len() });
            groups.ops.extend(row.fused.iter().chain([&row.op]).map(|&op| (place, op)));
            found.push(row);
            place
        };
        groups.join(place, kernel, &wholes);
    }
    found
}

impl Groups<'_> {
    /// The group that `kernel` can join, of which it reads or which reads one of `wholes`, all the elements that it loops over.
    fn host(&self, kernel: u32, (class, elements): (Class, u128), wholes: &[u32]) -> Option<u32> {
        if !matches!(class, Class::Reduction | Class::Loop) {
            return None;
        }
        let made_by = wholes.iter().map(|&item| self.graph.items[item as usize].made_by);
        let makers = made_by.filter(|&by| by != NONE).map(|by| self.group_of[by as usize]);
        let siblings = wholes.iter().filter_map(|item| self.readers.get(item)).flatten().copied();
        let tried = makers.filter(|&group| group != NONE).chain(siblings);
        let mut tried = tried.take(MAX_TRIED);
        tried.find(|&place| {
            let group = &self.groups[place as usize];
            let takes = match group.class {
                Class::Product => class == Class::Reduction,
                Class::Reduction | Class::Loop => true,
                Class::Other => false,
            };
            takes && group.elements == elements && !self.depends(kernel, place, wholes)
        })
    }
    /// Whether `kernel` needs something besides `wholes` that depends on the group at `place`, or that takes too long to see.
    fn depends(&self, kernel: u32, place: u32, wholes: &[u32]) -> bool {
        let first = self.groups[place as usize].members[0];
        let mut left = MAX_FOLLOWED;
        let mut makers = |at: u32, open: &mut Vec<u32>, known: &[u32]| {
            let reads = self.graph.reads(at);
            let is_short = reads.len() < left;
            left = left.saturating_sub(reads.len() + 1);
            for read in reads.iter().filter(|_| is_short) {
                let item = self.graph.stored_as(read.item);
                let by = self.graph.items[item as usize].made_by;
                let is_known =
                    || known.binary_search(&item).is_ok() && self.group_of[by as usize] == place;
                if by != NONE && by >= first && !is_known() {
                    open.push(by);
                }
            }
            is_short
        };
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut open: Vec<u32> = Vec::new();
        let mut is_seen = makers(kernel, &mut open, wholes);
        while let Some(at) = open.pop() {
            let own = self.group_of[at as usize];
            if own == place || !is_seen {
                return true;
            }
            if seen.insert(at) {
                let alone = [at];
                let members = self.groups.get(own as usize).map_or(&alone[..], |it| &it.members);
                is_seen = members.iter().all(|&member| makers(member, &mut open, &[]));
            }
        }
        !is_seen
    }
    /// Adds `kernel` to the group at `place`, whose row is `host`.
    fn add_row(&mut self, (place, host): (u32, &mut KernelRow), kernel: u32, row: KernelRow) {
        // What the group reads or makes is read once.
        let again = self.graph.reads(kernel).iter().map(|read| {
            let item = self.graph.stored_as(read.item);
            (item, self.graph.items[item as usize].bytes.min(read.bytes.into()))
        });
        let mut again: Vec<(u32, u128)> =
            again.filter(|&(item, _)| self.touched.contains(&(place, item))).collect();
        again.sort_unstable();
        again.dedup_by_key(|one| one.0);
        let again = again.iter().fold(0, |sum: u128, one| sum.saturating_add(one.1));
        host.read = host.read.saturating_add(row.read.saturating_sub(again));
        host.written = host.written.saturating_add(row.written);
        host.accessed = host.accessed.saturating_add(row.accessed.saturating_sub(again));
        let ops = std::iter::once(row.op).chain(row.fused);
        host.fused.extend(ops.filter(|&op| self.ops.insert((place, op))));
    }
    /// Makes `kernel`, which reads all of `wholes`, a member of the group at `place`.
    fn join(&mut self, place: u32, kernel: u32, wholes: &[u32]) {
        self.group_of[kernel as usize] = place;
        self.groups[place as usize].members.push(kernel);
        let read = self.graph.reads(kernel).iter().map(|read| self.graph.stored_as(read.item));
        let made = self.graph.makes(kernel).iter().map(|&item| self.graph.stored_as(item));
        self.touched.extend(read.chain(made).map(|item| (place, item)));
        if !matches!(self.groups[place as usize].class, Class::Reduction | Class::Loop) {
            return;
        }
        for &item in wholes {
            let readers = self.readers.entry(item).or_default();
            if !readers.contains(&place) {
                if readers.len() == MAX_SIBLINGS {
                    readers.remove(0);
                }
                readers.push(place);
            }
        }
    }
}

/// Whether `value` is the result of a barrier, or another name of one.
fn is_behind_barrier(program: &Program, mut value: ValueId) -> bool {
    for _ in 0..MAX_NAMES {
        match program.defining_op(value) {
            Some(op) if program.op_name(op) == "stablehlo.optimization_barrier" => return true,
            Some(op) if is_rearranged(program, op) => value = program.operand(op, 0),
            _ => break,
        }
    }
    false
}

/// Whether `op` only transposes or reshapes.
fn is_rearranged(program: &Program, op: OpId) -> bool {
    matches!(program.op_name(op), "stablehlo.transpose" | "stablehlo.reshape")
}

/// What the kernel of `row` computes, and the elements that it loops over.
fn class_of(
    (program, works): (&Program, &mut Works<'_>),
    facts: &Facts,
    row: &KernelRow,
) -> (Class, u128) {
    let op = row.op;
    let is_reduction = program.kind(op) == OpKind::Reduce;
    let looped =
        if is_reduction { program.operands(op).next() } else { program.op_results(op).next() };
    let Some(looped) = looped.filter(|_| !row.is_copy) else { return (Class::Other, 0) };
    let class = if std::iter::once(&op).chain(&row.fused).any(|&op| is_product(program, op)) {
        Class::Product
    } else if is_reduction {
        Class::Reduction
    } else if facts.has(op, Fact::POINTWISE) {
        Class::Loop
    } else {
        Class::Other
    };
    (class, works.tensors.of(looped).elements)
}

/// Whether the kernel of `row` only transposes what a product writes, or what only products read.
fn is_layout(program: &Program, graph: &Graph, kernel: u32, row: &KernelRow) -> bool {
    let mut ops = std::iter::once(&row.op).chain(&row.fused);
    if row.is_copy || !ops.all(|&op| is_rearranged(program, op)) {
        return false;
    }
    let made_by = |item: u32| program.defining_op(graph.items[item as usize].value);
    let is_written = graph
        .reads(kernel)
        .iter()
        .filter_map(|read| made_by(read.item))
        .any(|op| is_product(program, op));
    is_written
        || program.op_results(row.op).all(|it| program.users(it).all(|op| is_product(program, op)))
}
